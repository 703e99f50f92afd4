"""Plan a next study from what the report of a finished one shows of each stratum."""

from core.errors import InvalidInputError
from core.statistics.design_planning import ExpectedReaders, ExpectedStratum, Forecast, plan_designs
from core.studies.report import StudyReport


def plan_next(
    report: StudyReport, half_width: float, *, n_readers: int | None = None, undecided_share: float | None = None
) -> tuple[Forecast, ...]:
    """Return for each allocation the study that reaches a half width in (0, 0.5), the recommended one first.

    The strata of the report give sizes and shares of relevant cases, by labels, so readers' errors are in them; readers
    per case and the share that ends undecided are those of the report unless told otherwise. Raise InvalidInputError if
    the report is hidden, or has no decided case in strata of known size.
    """
    strata = [s for s in report.strata if s.n_population]
    if not any(s.n_decided for s in strata):
        raise InvalidInputError(
            "The report has no decided case in strata of known size, so nothing can be expected of a next study. "
            "Judge a pilot of 30 cases first."
        )
    expected = [ExpectedStratum(s.n_population, (s.n_positive + 0.25) / (s.n_decided + 0.5)) for s in strata]
    if undecided_share is None:
        undecided_share = min(1.0 - sum(s.n_decided for s in strata) / max(report.n_cases, 1), 0.9)
    readers = ExpectedReaders(n_readers or report.n_slots, undecided_share=max(undecided_share, 0.0))
    return plan_designs(expected, half_width, n_patients=max(report.n_patients, 2), readers=readers, level=report.level)
