"""The parts of a study's report: frozen, comparable, and one-to-one with the report's JSON."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from core.errors import InvalidInputError
from core.statistics.alert_rate import HEADLINE_BUDGET
from core.statistics.estimate import BudgetPoint, Ceiling, Estimate, RocCurve
from core.vocabulary import CaseState, is_open_panel

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Turn dataclasses, tuples, mappings and enum members into dicts, lists and numbers, ready for `json.dumps`.

    Fields come in the order of their definition, keys of mappings, which are texts, sorted. Raise InvalidInputError if
    a number is NaN or infinite (a report says "not computable" instead), or a type has no plain form.

    Examples
    --------
    >>> to_plain({"b": (1, 2), "a": None})
    {'a': None, 'b': [1, 2]}
    """
    if value is None or type(value) in (str, int, bool):  # most of what there is, by far
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(f"A report cannot hold the number {value}; it must say why it is not computable.")
        return float(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, (str, int)):
        return value
    raise InvalidInputError(f"A report cannot hold a {type(value).__name__}; make it a plain number or text first.")


def from_plain(kind: type[T], plain: object) -> T:
    """Rebuild a value of type `kind` from what `to_plain` returned.

    Not by pydantic: it would fill a missing field with its default and drop an unknown one, so that a report of another
    version would pass for one of this version, under another hash. Raise InvalidInputError, naming the field, if one is
    missing or unknown, or a value does not have its type.
    """
    rebuilt: T = _rebuild(kind, plain, kind.__name__)
    return rebuilt


def _rebuild(kind: Any, plain: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _rebuild_dataclass(kind, plain, where)
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        inner = [a for a in typing.get_args(kind) if a is not type(None)]
        return None if plain is None else _rebuild(inner[0], plain, where)
    if origin is tuple:
        _demand(plain, list, where)
        item_kind = typing.get_args(kind)[0]
        return tuple(_rebuild(item_kind, item, f"{where}[{i}]") for i, item in enumerate(plain))
    if origin is not None and issubclass(origin, Mapping):
        _demand(plain, dict, where)
        item_kind = typing.get_args(kind)[1]
        return {key: _rebuild(item_kind, item, f"{where}[{key!r}]") for key, item in plain.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(plain)
        except ValueError:
            raise InvalidInputError(f"{where} is {plain!r}; it must be one of {[m.value for m in kind]}.") from None
    return _rebuild_number_or_text(kind, plain, where)


def _rebuild_dataclass(kind: type, plain: Any, where: str) -> Any:
    _demand(plain, dict, where)
    hints = typing.get_type_hints(kind)
    names = {f.name for f in dataclasses.fields(kind)}
    missing, unknown = sorted(names - plain.keys()), sorted(plain.keys() - names)
    if missing or unknown:
        raise InvalidInputError(
            f"{where} does not have the fields of this version (missing: {', '.join(missing) or 'none'}; "
            f"unknown: {', '.join(unknown) or 'none'}). Make the report again with this version."
        )
    return kind(**{name: _rebuild(hints[name], plain[name], f"{where}.{name}") for name in plain})


def _rebuild_number_or_text(kind: Any, plain: Any, where: str) -> Any:
    if kind is float and isinstance(plain, int) and not isinstance(plain, bool):
        return float(plain)
    _demand(plain, kind, where)
    return plain


def _demand(plain: Any, kind: type, where: str) -> None:
    if not isinstance(plain, kind) or (kind is int and isinstance(plain, bool)):
        raise InvalidInputError(f"{where} is a {type(plain).__name__}; it must be a {kind.__name__}.")


FORMAT_VERSION = 2
"""Raised when a field of the stored report changes its meaning."""


@dataclass(frozen=True)
class SubgroupReport:
    """AUC inside one group of cases."""

    grouping: str  # what divides the cases: "kind", "decision", "sex", "age band", "unit"
    group: str
    n: int
    n_positive: int
    auc_naive: Estimate
    auc_weighted: Estimate


@dataclass(frozen=True)
class SubgroupDifference:
    """AUC inside one group less that among all other cases."""

    grouping: str
    group: str
    difference: Estimate
    p_value: float | None
    p_holm: float | None  # adjusted for all groups of the report


@dataclass(frozen=True)
class ScorerReport:
    """How well one scorer ranks relevant cases above the others."""

    scorer: str  # stable key, "softhad"
    label: str  # for people, "SoftHAD"
    n: int
    n_positive: int
    auc_naive: Estimate
    """All cases count the same; interval by DeLong, as if cases were drawn at random and independent."""
    auc_weighted: Estimate
    """Cases count by the inverse of their inclusion probability; interval by a Bayesian bootstrap over patients."""
    auc_task_mean: Estimate  # mean over tasks that have cases of both classes; no interval
    roc_naive: RocCurve
    roc_weighted: RocCurve
    subgroups: tuple[SubgroupReport, ...] = ()


@dataclass(frozen=True)
class PairedComparison:
    """Difference in AUC of two scorers on the same cases (first minus second)."""

    scorer_a: str
    scorer_b: str
    n: int
    difference_naive: Estimate  # interval by paired DeLong
    z: float | None
    p_value: float | None
    difference_weighted: Estimate  # interval by a Bayesian bootstrap over patients
    p_value_weighted: float | None
    p_holm: float | None = None  # `p_value_weighted` adjusted for all comparisons of the report


@dataclass(frozen=True)
class ReaderReport:
    """One reader against the scorers."""

    reader: str  # code, never a name: "reader-1"
    n_votes: int
    n_cannot_judge: int
    share_positive: Estimate  # share of this reader's votes that are positive
    auc_against: Mapping[str, Estimate] = field(default_factory=dict)
    """Scorer key -> weighted AUC when this reader alone gives the labels."""
    auc_without: Mapping[str, Estimate] = field(default_factory=dict)
    """Scorer key -> weighted AUC against the majority of the other readers."""


@dataclass(frozen=True)
class AgreementFigures:
    """Agreement of all readers on a set of cases; never kappa alone."""

    name: str  # "all cases", "LAB_ORDER", a task name ...
    n_cases: int  # cases with at least two votes
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
class WeightedAgreement:
    """Agreement as it would be on all candidates."""

    raw: Estimate
    fleiss: Estimate
    ac1: Estimate


@dataclass(frozen=True)
class RepeatReport:
    """How readers agree with themselves: hidden repeats against the first answer."""

    n_pairs: int
    same_answer: Estimate  # share of pairs with the same answer
    kappa: Estimate  # cohen's kappa of "relevant or not"
    by_reader: Mapping[str, Estimate] = field(default_factory=dict)  # share of pairs with the same answer, by reader


@dataclass(frozen=True)
class MultiReaderReport:
    """Mean AUC over readers, each giving the labels alone; readers and cases random."""

    n_readers: int
    means: Mapping[str, Estimate] = field(default_factory=dict)  # by scorer
    differences: Mapping[str, Estimate] = field(default_factory=dict)
    """Primary scorer minus the others, by the other scorer."""
    p_values: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class AgreementReport:
    """How far the readers agree."""

    answers: AgreementFigures  # on the answers usual / unusual / relevant; an answer that is no vote is left out
    positive: AgreementFigures  # on the question of the report, positive or not: this one limits the AUC
    by_kind: tuple[AgreementFigures, ...] = ()
    by_decision: tuple[AgreementFigures, ...] = ()
    by_task: tuple[AgreementFigures, ...] = ()
    pairs: tuple[PairAgreement, ...] = ()
    second_rule: AgreementFigures | None = None  # on "unusual or not"
    weighted: WeightedAgreement | None = None  # "Relevant or not", weighted to all candidates
    repeats: RepeatReport | None = None


@dataclass(frozen=True)
class AlertRateCurve:
    """True-alert rate over alert budgets for one kind of alert."""

    name: str  # "both", "omission", "commission", or the key of a kind of decision
    points: tuple[BudgetPoint, ...]
    positive_share: Estimate
    """Weighted share of relevant cases among all candidates of this kind: the line below which a list is no help."""
    reason: str = ""


@dataclass(frozen=True)
class NetBenefit:
    """Relevant less weighted irrelevant alerts, per candidate."""

    chance: float  # an alert is worth reading from this chance of being relevant on
    within_budget: Estimate
    all_shown: Estimate


@dataclass(frozen=True)
class OperatingPoint:
    """The primary scorer at the headline budget: what is shown against what is relevant."""

    alerts_per_patient_day: float
    threshold: float
    n_shown_relevant: int
    n_shown_other: int
    n_missed_relevant: int
    n_cleared: int  # judged cases in the four fields; the shares are weighted to all candidates
    sensitivity: Estimate
    specificity: Estimate
    positive_value: Estimate
    negative_value: Estimate
    net_benefit: tuple[NetBenefit, ...] = ()


@dataclass(frozen=True)
class CalibrationBin:
    """Candidates of one stratum of the scaled score: what the score says against what is relevant."""

    stratum: str
    n: int
    mean_score: float
    relevant_share: Estimate


@dataclass(frozen=True)
class CaseUse:
    """Whether a case is in the figures, and why not."""

    case_label: str
    state: CaseState
    label: str  # "positive", "negative" or "undetermined"
    used: bool
    why_not: str = ""


@dataclass(frozen=True)
class ResultSet:
    """Everything that follows from one way of labelling the cases."""

    key: str  # "majority-3", "adjudicated-3", "majority-2-3", "adjudicated-2-3", "dawid-skene-3", "record"
    title: str  # "Majority of the readers; positive: unusual and clinically relevant"
    n_used: int
    n_positive: int
    left_out: Mapping[str, int]
    prevalence_naive: Estimate
    prevalence_weighted: Estimate
    scorers: tuple[ScorerReport, ...]
    comparisons: tuple[PairedComparison, ...]
    alert_rates: tuple[AlertRateCurve, ...]
    cases: tuple[CaseUse, ...]
    operating_point: OperatingPoint | None = None
    calibration: tuple[CalibrationBin, ...] = ()
    subgroup_differences: tuple[SubgroupDifference, ...] = ()

    def scorer(self, key: str) -> ScorerReport | None:
        """Return the report of the scorer with this key, or None."""
        return next((s for s in self.scorers if s.scorer == key), None)


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
    n_candidates: int | None  # instance x task pairs (order groups once) from which cases were chosen
    n_chosen: int
    n_judged: int  # cases with at least one judgment
    n_complete: int  # cases whose slots are all judged
    n_decided: int  # cases with a majority label under the first positive rule
    left_out: Mapping[str, int] = field(default_factory=dict)  # why chosen cases are not decided, by reason


@dataclass(frozen=True)
class DawidSkeneReport:
    """Labels weighted by how reliable each reader seems: a sensitivity analysis, not the result."""

    n_cases: int
    prevalence: float | None
    sensitivity: Mapping[str, float]
    specificity: Mapping[str, float]
    n_iterations: int
    converged: bool
    n_changed: int  # cases whose label differs from the majority label
    reason: str = ""


@dataclass(frozen=True)
class StudyReport:
    """The report of a study, everything a page, a document or a signature needs."""

    format_version: int
    slug: str
    title: str
    simulated: bool
    locked: bool
    hidden: bool  # True for the version that may be seen while readers are still blinded: counts only
    question: str
    positive_texts: tuple[str, ...]
    """What counts as positive, first rule then second: ("unusual and clinically relevant", "unusual")."""
    primary_scorer: str
    n_cases: int
    n_patients: int
    n_readers: int
    n_slots: int  # readers wanted per case
    n_votes: int
    n_cannot_judge: int
    headline: tuple[str, ...]  # sentences for the top of the page; **bold** marks the figures
    warnings: tuple[str, ...]  # sentences on what limits the figures or could not be computed
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
    headline_budget: float = HEADLINE_BUDGET  # alerts per patient-day quoted in headline, tiles and documents
    ceiling_second_rule: Ceiling | None = None  # the ceiling when "unusual" counts as positive
    multi_reader: MultiReaderReport | None = None

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

        Raise InvalidInputError if a field is missing, unknown, or of the wrong type.
        """
        return from_plain(cls, plain)
