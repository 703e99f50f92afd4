"""Serve the dashboard over doubles: `python -m tests.browser.serve_double --port 8599`.

Every browser names its own double in its user agent, "Double/NAME State/STATE", so that tests share one server but no
data, and a second window of the same name sees the same site.
"""

import argparse
import re
from dataclasses import dataclass

import streamlit as st

from alertreview.review.review import ReviewService
from core.errors import DatabaseUnavailableError
from dashboard import context
from dashboard.launch import serve
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.review import FakeReview
from tests.dashboard.doubles.sign_in import guarded_as

STATES: dict[str, dict[str, object]] = {
    "full": {},
    "short": {"n_cases": 2},
    "empty": {"published": False},
    "no-alerts": {"n_alerts": 0, "with_studies": False},
    "hostile": {"hostile": True},
    "panel": {"with_panel": True},
    "many-tasks": {"n_more_tasks": 20},
}


@guarded_as(ReviewService)
@dataclass
class FailingReview(FakeReview):
    """A double whose every second save fails."""

    n_saves: int = 0

    def submit_judgment(self, slug: str, person_id: int, case_id: int, **given: object) -> object:
        self.n_saves += 1
        if self.n_saves % 2 == 1:
            raise DatabaseUnavailableError("The database is full. Nothing of this answer was kept.")
        return super().submit_judgment(slug, person_id, case_id, **given)  # type: ignore[arg-type]


_doubles: dict[str, FakeApplication] = {}


def double_of_this_browser(default_state: str) -> FakeApplication:
    """Return the double that the browser names, made at its first visit."""
    agent = st.context.headers.get("User-Agent") or ""
    name = _token(agent, "Double") or default_state
    if name not in _doubles:
        state = _token(agent, "State") or default_state
        double = _doubles[name] = FakeApplication(**STATES.get(state, {}))  # type: ignore[arg-type]
        if state == "failing":
            double.review = FailingReview(double)
    return _doubles[name]


def _token(agent: str, name: str) -> str:
    found = re.search(rf"{name}/([\w-]+)", agent)
    return found[1] if found else ""


def main() -> None:
    """Put the doubles where the application would be, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", choices=sorted(STATES), default="full")
    options = parser.parse_args()
    context.opened_site = lambda _home, _database: double_of_this_browser(options.state)  # type: ignore[assignment]
    serve(port=options.port)


if __name__ == "__main__":
    main()
