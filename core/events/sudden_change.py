"""What differs between an import and the one before it: a feed that broke shows in the counts of a patient's day."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from core.events.code_book import UNKNOWN
from core.events.import_report import ImportReport
from core.events.plausibility import Bounds, Finding, judged

NAME = "sudden_change"
_TIMES = 2.0
"""A figure has changed when it is over twice, or less than half, of what it was."""
_FEWEST = 50
"""Figures that rest on fewer rows in both imports say nothing."""


def with_sudden_change(report: ImportReport, former: ImportReport | None, bounds: Mapping[str, Bounds]) -> ImportReport:
    """Return an import report whose check of sudden changes compares it with the import before.

    Nothing is compared without one, or where source format or mapping are others.
    """
    if former is None or _origin(former) != _origin(report):
        return report
    (check,) = (each for each in judged([sudden_change(report, former)], bounds) if each.name == NAME)
    return replace(report, checks=tuple(check if each.name == NAME else each for each in report.checks))


def _origin(report: ImportReport) -> tuple[object, ...]:
    return report.format, report.mapping, report.simulated


def sudden_change(report: ImportReport, former: ImportReport) -> Finding:
    """Count the figures that changed: instances of a patient, events of each kind of an instance, unknown rows."""
    now, before = dict(_figures(report)), dict(_figures(former))
    changed = []
    for name in dict.fromkeys([*now, *before]):
        (n, of), (n_before, of_before) = now.get(name, (0, 1)), before.get(name, (0, 1))
        one, other = n / max(of, 1), n_before / max(of_before, 1)
        if max(n, n_before) >= _FEWEST and max(one, other) > _TIMES * min(one, other):
            changed.append(f"{name}: {one:.3g}, {other:.3g} before")
    return Finding(NAME, len(changed), len(now.keys() | before.keys()), tuple(changed))


def _figures(report: ImportReport) -> Iterator[tuple[str, tuple[int, int]]]:
    """Return counts by name, each with what it is divided by."""
    yield "instances of a patient", (report.n_instances, report.n_patients)
    for kind in report.read.kinds:
        yield f"{kind.kind} of an instance", (kind.n_rows, report.n_instances)
    unknown = sum(drop.n_rows for drop in report.read.dropped if drop.reason == UNKNOWN)
    yield "share of rows with an unknown code", (unknown, report.read.n_rows)
