"""Checks judge every rule, found or not, against its bounds; bounds come from the mapping where it names them."""

import pytest

from core.errors import MappingError
from core.events.mapping import parse_mapping
from core.events.plausibility import RULES, Bounds, Finding, Severity, judged
from tests.support.records import site


def check(name, findings, bounds=None):
    return next(each for each in judged(findings, bounds or {}) if each.name == name)


def test_every_rule_gives_one_check_in_a_fixed_order_even_without_findings():
    checks = judged([], {})
    assert [each.name for each in checks] == [rule.name for rule in RULES]
    assert {each.severity for each in checks} == {Severity.OK}
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(("count", "severity"), [(0, "ok"), (10, "ok"), (11, "yellow"), (50, "yellow"), (51, "red")])
def test_a_check_is_raised_above_its_bound_not_at_it(count, severity):
    found = check("open_stays", [Finding("open_stays", count, 100)], {"open_stays": Bounds(0.1, 0.5)})
    assert (found.severity, found.count, found.share) == (severity, count, count / 100)
    assert found.bound == (0.5 if severity == "red" else 0.1)


@pytest.mark.parametrize(("count", "severity"), [(3, "ok"), (4, "yellow"), (10, "red")])
def test_a_rule_about_counts_is_held_against_counts_whatever_they_are_of(count, severity):
    found = check("respelled", [Finding("respelled", count, 1000)], {"respelled": Bounds(3, 9)})
    assert (found.severity, found.share, found.bound_is_count) == (severity, count / 1000, True)


def test_findings_of_one_rule_add_up_and_keep_their_examples():
    found = check("open_stays", [Finding("open_stays", 1, 10, ("a",)), Finding("open_stays", 2, 20, ("b", "a"))])
    assert (found.count, found.n_of, found.examples) == (3, 30, ("a", "b"))
    assert found.sentence.startswith("3 of 30 ")
    many = check("open_stays", [Finding("open_stays", 9, 10, tuple("abcdefgh"))])
    assert many.examples == tuple("abcde")


def test_what_is_counted_among_nothing_reads_well_for_one():
    found = check("unread_files", [Finding("unread_files", 1, examples=("log.json",))])
    assert found.sentence == "Files of the source were not read: 1."


def test_a_finding_without_a_rule_is_a_mistake_of_the_program():
    with pytest.raises(KeyError, match="made_up"):
        judged([Finding("made_up", 1)], {})


def test_a_mapping_names_bounds_and_only_of_checks_that_exist():
    mapping = site(checks={"open_stays": {"yellow": 0, "red": 0.5}})
    assert mapping.checks["open_stays"] == Bounds(0.0, 0.5)
    with pytest.raises(MappingError, match=r"made_up.*open_stays"):
        parse_mapping({**mapping.model_dump(), "checks": {"made_up": {"yellow": 0, "red": 1}}}, "my.yaml")


ASKED_FOR = {
    "stay length": {"long_stays"},
    "open stays": {"open_stays"},
    "events outside stays or life": {"events_outside_stays", "events_after_death", "events_before_birth"},
    "future and sentinel dates": {"future_events", "sentinel_dates", "far_dates"},
    "instances per day and per patient": {"uneven_days", "crowded_patients"},
    "midnights per kind": {"midnight_times"},
    "values lost per item": {"lost_values"},
    "items merged": {"respelled", "alike_tasks"},
    "names missing": {"unnamed_tasks"},
    "drugs without end": {"open_orders"},
    "orders never given": {"ungiven_orders", "never_done"},
    "sudden change against the last import": {"sudden_change"},
}
"""What an import has to doubt, and the rules that do."""


@pytest.mark.parametrize("doubt", ASKED_FOR)
def test_every_doubt_has_a_rule_with_a_bound_and_an_effect(doubt):
    rules = {rule.name: rule for rule in RULES}
    for name in ASKED_FOR[doubt]:
        rule = rules[name]
        assert rule.bounds.yellow < float("inf")
        assert rule.bounds.yellow <= rule.bounds.red
        assert rule.effect.endswith(".")
        assert not rule.what.endswith(".")
