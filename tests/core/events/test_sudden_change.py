"""A feed that broke is seen when its import is compared with the one before."""

from dataclasses import replace

import pytest

from core.events.code_book import UNKNOWN
from core.events.import_report import Dropped, ImportReport, KindCount, ReadCounts, StayCounts
from core.events.plausibility import Bounds, Severity, judged
from core.events.sudden_change import NAME, sudden_change, with_sudden_change


def report(n_results=1000, n_orders=800, n_unknown=100, n_other=50, n_patients=100, n_instances=500, **changes):
    kinds = (KindCount("LAB_RESULT", n_results, 5, 5, 5), KindCount("LAB_ORDER", n_orders, 5, 5, 5))
    dropped = Dropped(UNKNOWN, n_unknown, 1, ()), Dropped("without a time", n_other, 1, ())
    read = replace(_read(), n_rows=n_results + n_orders + n_unknown + n_other, kinds=kinds, dropped=dropped)
    plain = ImportReport(
        "a.csv", "csv", "csv", n_patients, 0, read, StayCounts(), n_instances, 0, 0, {}, {}, checks=judged([], {})
    )
    return replace(plain, **changes)


def _read():
    return ReadCounts(n_rows=0, n_codes=0, kinds=(), facts=(), dropped=())


def change_of(now, before, bounds=None):
    found = with_sudden_change(now, before, bounds or {})
    assert [check.name for check in found.checks] == [check.name for check in now.checks]
    return next(check for check in found.checks if check.name == NAME)


def test_the_same_feed_of_another_size_has_not_changed():
    double = report(2000, 1600, 200, n_patients=200, n_instances=1000)
    assert sudden_change(double, report()).count == 0
    assert change_of(report(), report()).severity is Severity.OK


@pytest.mark.parametrize(
    ("now", "name"),
    [
        (report(n_results=400), "LAB_RESULT of an instance"),
        (report(n_orders=0), "LAB_ORDER of an instance"),
        (report(n_unknown=900), "share of rows with an unknown code"),
        (report(n_patients=20), "instances of a patient"),
    ],
)
def test_a_figure_that_doubled_or_halved_is_named(now, name):
    check = change_of(now, report())
    assert check.severity is Severity.YELLOW
    assert check.count == 1
    assert check.examples[0].startswith(f"{name}: ")
    back = change_of(report(), now)
    assert (back.count, back.severity) == (1, Severity.YELLOW)


def test_most_figures_at_once_stop_the_scoring_and_the_mapping_sets_the_bounds():
    broken = report(n_results=100, n_orders=80, n_unknown=2000)
    assert change_of(broken, report()).severity is Severity.RED
    assert change_of(broken, report(), {NAME: Bounds(1.0, 1.0)}).severity is Severity.OK


def test_few_rows_and_another_source_say_nothing():
    assert sudden_change(report(n_unknown=40), report(n_unknown=10)).count == 0
    assert sudden_change(report(n_other=900), report()).count == 0, "rows without a time are another check's"
    assert change_of(report(n_results=0, mapping="other"), report()).count == 0
    assert with_sudden_change(report(), None, {}) == report()
