"""What was decided on a similar day, in words."""

import pytest

from dashboard.components.alerts.neighbours import outcome


@pytest.mark.parametrize(
    ("done", "decided", "hours", "words"),
    [
        ("given", False, None, "Not given"),
        ("given", True, None, "Given"),
        ("given", True, 0.5, "Given, 30 min later"),
        ("labelled true", True, 0.0, "Labelled true"),
        ("labelled true", False, None, "Not labelled true"),
    ],
)
def test_an_outcome_says_when_unless_it_is_at_the_snapshot(
    done: str, decided: bool, hours: float | None, words: str
) -> None:
    assert outcome(done, decided, hours) == words
