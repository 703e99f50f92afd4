"""The parts of a study's report: frozen, comparable, and one-to-one with the report's JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.estimate import Estimate
from core.open_panel import is_open_panel
from core.plain import from_plain, to_plain
from core.vocabulary import CaseState

FORMAT_VERSION = 1
"""Raised when a field of the stored report changes its meaning."""


@dataclass(frozen=True)
class RocCurve:
    """Receiver operating characteristic of a scorer; empty tuples and a reason when there is none.

    The curve has a corner at every distinct score. The band is pointwise, at `band_at`, found by resampling patients.
    """

    false_alert_fraction: tuple[float, ...]
    """1 - specificity, rising from 0 to 1."""
    found_fraction: tuple[float, ...]
    """Sensitivity at the same threshold, rising from 0 to 1."""
    band_at: tuple[float, ...] = ()
    band_low: tuple[float, ...] = ()
    band_high: tuple[float, ...] = ()
    weighted: bool = False
    level: float = 0.95
    reason: str = ""


@dataclass(frozen=True)
class SubgroupReport:
    """AUC inside one group of cases."""

    grouping: str
    """What divides the cases: "kind", "decision", "sex", "age band", "unit"."""
    group: str
    n: int
    n_positive: int
    auc_naive: Estimate
    auc_weighted: Estimate


@dataclass(frozen=True)
class ScorerReport:
    """How well one scorer ranks relevant cases above the others."""

    scorer: str
    """Stable key, "softhad"."""
    label: str
    """For people, "SoftHAD"."""
    n: int
    n_positive: int
    auc_naive: Estimate
    """All cases count the same; interval by DeLong, as if cases were drawn at random and independent."""
    auc_weighted: Estimate
    """Cases count by the inverse of their inclusion probability; interval by leaving out one patient at a time."""
    auc_task_mean: Estimate
    """Mean over tasks that have cases of both classes; no interval."""
    roc_naive: RocCurve
    roc_weighted: RocCurve
    subgroups: tuple[SubgroupReport, ...] = ()


@dataclass(frozen=True)
class PairedComparison:
    """Difference in AUC of two scorers on the same cases (first minus second)."""

    scorer_a: str
    scorer_b: str
    n: int
    difference_naive: Estimate
    """Interval by paired DeLong."""
    z: float | None
    p_value: float | None
    difference_weighted: Estimate
    """Interval by leaving out one patient at a time."""
    p_value_weighted: float | None


@dataclass(frozen=True)
class ReaderReport:
    """One reader against the scorers."""

    reader: str
    """Code, never a name: "reader-1"."""
    n_votes: int
    n_cannot_judge: int
    share_positive: Estimate
    """Share of this reader's votes that are positive."""
    auc_against: Mapping[str, Estimate] = field(default_factory=dict)
    """Scorer key -> weighted AUC when this reader alone gives the labels."""
    auc_without: Mapping[str, Estimate] = field(default_factory=dict)
    """Scorer key -> weighted AUC against the majority of the other readers."""


@dataclass(frozen=True)
class AgreementFigures:
    """Agreement of all readers on a set of cases; never kappa alone."""

    name: str
    """ "all cases", "LAB_ORDER", a task name ..."""
    n_cases: int
    """Cases with at least two votes."""
    n_votes: int
    raw: Estimate
    fleiss: Estimate
    alpha: Estimate
    ac1: Estimate


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of two readers on the cases both voted on."""

    reader_a: str
    reader_b: str
    n_cases: int
    raw: Estimate
    cohen: Estimate


@dataclass(frozen=True)
class AgreementReport:
    """How far the readers agree."""

    answers: AgreementFigures
    """On the answers usual / unusual / relevant ("cannot judge" is no vote)."""
    positive: AgreementFigures
    """On the question of the report, positive or not: this one limits the AUC."""
    by_kind: tuple[AgreementFigures, ...] = ()
    by_decision: tuple[AgreementFigures, ...] = ()
    by_task: tuple[AgreementFigures, ...] = ()
    pairs: tuple[PairAgreement, ...] = ()


@dataclass(frozen=True)
class BudgetPoint:
    """True-alert rate when this many alerts are shown."""

    alerts_per_patient_day: float
    threshold: float
    """Scaled score of the last alert inside the budget."""
    n_cases: int
    """Judged cases at or above the threshold."""
    n_alerts: float
    """Alerts of the run at or above the threshold (estimated from the weights when the run does not say)."""
    rate: Estimate
    """Share of alerts judged relevant, weighted to all alerts of the run."""
    minutes_per_patient_day: float | None = None
    """Reading time: alerts per patient-day x median active minutes per case; None when time was not measured."""


@dataclass(frozen=True)
class AlertRateCurve:
    """True-alert rate over alert budgets for one kind of alert."""

    name: str
    """ "both", "omission", "commission", "LAB_ORDER", "MEDICATION"."""
    points: tuple[BudgetPoint, ...]
    positive_share: Estimate
    """Weighted share of relevant cases among all candidates of this kind: the line below which a list is no help."""
    reason: str = ""


@dataclass(frozen=True)
class CaseUse:
    """Whether a case is in the figures, and why not."""

    case_label: str
    state: CaseState
    label: str
    """ "positive", "negative" or "undetermined"."""
    used: bool
    why_not: str = ""


@dataclass(frozen=True)
class ResultSet:
    """Everything that follows from one way of labelling the cases."""

    key: str
    """ "majority-3", "adjudicated-3", "majority-2-3", "adjudicated-2-3", "dawid-skene-3", "record"."""
    title: str
    """ "Majority of the readers; positive: unusual and clinically relevant"."""
    n_used: int
    n_positive: int
    left_out: Mapping[str, int]
    prevalence_naive: Estimate
    prevalence_weighted: Estimate
    scorers: tuple[ScorerReport, ...]
    comparisons: tuple[PairedComparison, ...]
    alert_rates: tuple[AlertRateCurve, ...]
    cases: tuple[CaseUse, ...]

    def scorer(self, key: str) -> ScorerReport | None:
        """Return the report of the scorer with this key, or None."""
        return next((s for s in self.scorers if s.scorer == key), None)


@dataclass(frozen=True)
class Ceiling:
    """How far disagreement limits any AUC (see `core.ceiling`)."""

    naive: Estimate
    """Highest AUC a perfect detector would show on the chosen cases."""
    weighted: Estimate
    """The same for all candidates, at their weighted share of positives."""
    reader_error: float | None
    """Share of votes that are wrong in the model of two classes and equal readers."""
    n_readers: int


@dataclass(frozen=True)
class StratumReport:
    """One stratum of the selection."""

    stratum: str
    n_population: int
    n_chosen: int
    inclusion_probability: float
    n_decided: int
    n_positive: int


@dataclass(frozen=True)
class FlowDiagram:
    """From instances to decided cases, each number at most the one before it."""

    n_instances: int | None
    n_candidates: int | None
    """Instance x task pairs (order groups once) from which cases were chosen."""
    n_chosen: int
    n_judged: int
    """Cases with at least one judgment."""
    n_complete: int
    """Cases whose slots are all judged."""
    n_decided: int
    """Cases with a majority label under the first positive rule."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Why chosen cases are not decided, by reason."""


@dataclass(frozen=True)
class DawidSkeneReport:
    """Labels weighted by how reliable each reader seems: a sensitivity analysis, not the result."""

    n_cases: int
    prevalence: float | None
    sensitivity: Mapping[str, float]
    specificity: Mapping[str, float]
    n_iterations: int
    converged: bool
    n_changed: int
    """Cases whose label differs from the majority label."""
    reason: str = ""


@dataclass(frozen=True)
class StudyReport:
    """The report of a study, everything a page, a document or a signature needs."""

    format_version: int
    slug: str
    title: str
    simulated: bool
    locked: bool
    hidden: bool
    """True for the version that may be seen while readers are still blinded: counts only."""
    question: str
    positive_texts: tuple[str, ...]
    """What counts as positive, first rule then second: ("unusual and clinically relevant", "unusual")."""
    primary_scorer: str
    n_cases: int
    n_patients: int
    n_readers: int
    n_slots: int
    """Readers wanted per case."""
    n_votes: int
    n_cannot_judge: int
    headline: tuple[str, ...]
    """Sentences for the top of the page; **bold** marks the figures."""
    warnings: tuple[str, ...]
    """Sentences on what limits the figures or could not be computed."""
    results: tuple[ResultSet, ...]
    """Majority first, then adjudicated, then the second positive rule, then sensitivity analyses."""
    agreement: AgreementReport
    ceiling: Ceiling
    readers: tuple[ReaderReport, ...]
    dawid_skene: DawidSkeneReport
    flow: FlowDiagram
    strata: tuple[StratumReport, ...]
    design: Mapping[str, str] = field(default_factory=dict)
    """Run, scorer versions, rubric and guideline versions, selection design, seed, code version, data hash, as text."""
    level: float = 0.95

    @property
    def is_open_panel(self) -> bool:
        """Whether its readers saw the scores before they judged."""
        return is_open_panel(self.design)

    @property
    def primary(self) -> ResultSet:
        """The majority result under the first positive rule."""
        return self.results[0]

    def result(self, key: str) -> ResultSet | None:
        """Return the result set with this key, or None."""
        return next((r for r in self.results if r.key == key), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists and numbers, always in the same order."""
        plain = to_plain(self)
        return dict(plain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "StudyReport":
        """Rebuild a report from `to_dict`.

        Raises
        ------
        InvalidInputError
            If a field is missing, unknown, or of the wrong type.
        """
        return from_plain(cls, plain)
