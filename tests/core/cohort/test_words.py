"""What an import calls its decisions, against the events that decide in its source."""

import pytest

from core.cohort.build import build
from core.cohort.cohort import About
from core.errors import MappingError
from core.events.mapping import parse_mapping
from core.kinds import ACT_WORDS, done_word
from tests.support.records import RULES, parts, site

STAY = [(1, "2026-01-01 10:00", "IN"), (1, "2026-01-04 12:00", "OUT")]
AT = "2026-01-02 10:00"


def words_of(codes, **changes):
    """What the report says of each task, and the events that the cohort itself marks as its decisions."""
    mapping = site(**changes)
    rows = [*STAY, *((1, AT, code) for code in codes)]
    cohort, report = build(*parts(rows, mapping), mapping, About("test", {}, False), lambda what, share: None)
    marked = cohort.events[cohort.events["is_decision"]]
    by_task = {key: set(marked.loc[marked["item"] == key.split("/")[1], "kind"]) for key in cohort.tasks["task_key"]}
    return {key: done_word(report.words, key) for key in by_task}, by_task, report


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["ASK//K", "LAB//K"], {"LAB_ORDER/K": "ordered"}),
        (
            ["LAB//K", "LAB//Na", "ASK//Mg"],
            {"LAB_ORDER/K": "measured", "LAB_ORDER/Na": "measured", "LAB_ORDER/Mg": "ordered"},
        ),
        (["START//A", "GIVE//B", "GIVE//A"], {"MEDICATION/a": "ordered", "MEDICATION/b": "given"}),
    ],
)
def test_a_decision_is_called_what_its_events_are(codes, expected):
    said, by_task, _ = words_of(codes)
    assert said == expected
    for key, kinds in by_task.items():
        assert said[key] in {word for kind in kinds for word in ACT_WORDS[kind]}


def test_the_mapping_knows_better():
    changes = {"LAB_ORDER": "sampled", "MEDICATION_ORDER": "dispensed", "ADMINISTRATION": "given"}
    said, _, report = words_of(["ASK//K", "START//A", "GIVE//B"], act_words=changes)
    assert said == {"LAB_ORDER/K": "sampled", "MEDICATION/a": "dispensed", "MEDICATION/b": "given"}
    (row,) = [value for label, value in report.sections()[0][1] if label == "words of decisions"]
    assert row == "labs sampled, drugs dispensed (1 of them otherwise)"


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ({"LAB_RESULT": "ordered"}, "known are measured"),
        ({"MEDICATION_ORDER": "bought"}, "known are ordered, prescribed, dispensed"),
        ({"BIRTH": "born"}, "BIRTH never decides"),
    ],
)
def test_a_word_that_could_be_false_is_refused(words, rule):
    content = {"name": "test", "title": "Test", "format": "meds", "rules": RULES, "act_words": words}
    with pytest.raises(MappingError, match=rule):
        parse_mapping(content, "site.yaml")
