"""Plan a next study from what the report of a finished one shows of each stratum."""

from core.errors import InvalidInputError
from core.statistics.design_planning import ExpectedReaders, ExpectedStratum, Forecast, plan_designs
from core.studies.report import StudyReport


def plan_next(
    report: StudyReport, half_width: float, *, n_readers: int | None = None, undecided_share: float | None = None
) -> tuple[Forecast, ...]:
    """Return for each allocation the study that reaches a half width, the recommended one first.

    Parameters
    ----------
    report : StudyReport
        Its strata give sizes and shares of relevant cases. The shares are of labels, so readers' errors are in them.
    half_width : float
        Wanted half width of the AUC's interval, in (0, 0.5).
    n_readers : int, optional
        Readers per case; those of the report when left out.
    undecided_share : float, optional
        Cases that end without a label, in [0, 1); as in the report when left out.

    Raises
    ------
    InvalidInputError
        If the report is hidden, or has no decided case in strata of known size.
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
