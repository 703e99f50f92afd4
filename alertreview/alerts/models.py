"""What pages read: frozen answers of the application, in the words of the screen and without database objects.

Times are timezone-aware in the site's zone. Identifiers in links are numbers or names of runs, alerts, studies and
cases, never of patients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from alertreview.alerts.reasons import ReasonWords
from alertreview.alerts.triage_models import Grouping, ListOrder, TriageChoice, TriageStatus
from alertreview.scoring.models import Histogram, RunView
from core.kinds import Kind, KindWords
from core.statistics.alert_rate import HEADLINE_BUDGET
from core.vocabulary import AlertId, Decision, PersonId, RunId


@dataclass(frozen=True)
class WorklistFilters:
    """What the worklist shows; every field but `within`, `reader` and `patient_id` is in the URL.

    None or an empty text means no restriction.
    """

    run_id: RunId | None = None
    decision: Decision | None = None  # None takes turns by rank between omissions and commissions
    kind: Kind | None = None
    unit: str = ""
    task_key: str = ""
    text: str = ""  # part of a task's name, or a patient's whole identifier
    alerts_per_patient_day: float = HEADLINE_BUDGET
    """Alert budget of omissions and commissions together, counted before every other filter."""
    include_cut_windows: bool = False
    """Omission alerts on decision windows cut short by discharge, death or the end of the data."""
    scorer: str = ""  # whose lists: one of `RunView.scorers`; the run's first when empty
    within: tuple[str, ...] | None = None
    """Units that the person may see, None for all; set by the application, never read from an address."""
    reader: PersonId | None = None
    """Whose cases still to be judged are left out, None for nobody's; who is signed in, never read from an address."""
    triage: TriageChoice = TriageChoice.ANY
    first_day: date | None = None  # instances of this day or later, in the site's zone
    last_day: date | None = None  # instances of this day or earlier
    lowest_score: float | None = None  # scaled score, lower end of a range
    highest_score: float | None = None  # scaled score, upper end of a range
    patient_id: str = ""  # never in an address: it stays in the session
    grouping: Grouping = Grouping.ALERT
    order: ListOrder = ListOrder.RANK


@dataclass(frozen=True)
class AlertRow:
    """One line of the worklist."""

    alert_id: AlertId
    rank: int  # 1 = most unusual, within its decision (omission or commission) of the run
    task_key: str
    task_name: str
    kind: Kind
    decision: Decision
    decision_words: str  # "Troponin I not ordered", "Heparin given"
    patient_id: str
    sex: str
    age_years: float | None
    unit: str
    snapshot_at: datetime
    score: float
    scaled_score: float
    support: float
    scorer: str = ""
    order_group: str = ""
    """Tasks that are ordered together, such as the labs of one panel; empty for a task that is alone."""
    window_cut: bool = False  # the decision window was cut short by discharge, death or the end of the data
    triage: TriageStatus = field(default_factory=TriageStatus)  # of the decision, whatever the run
    done: str = ""  # what the import calls it that the task was done; see `core.kinds.done_word`

    @property
    def words(self) -> KindWords:
        """Words of the decision."""
        return self.kind.worded(self.done)


@dataclass(frozen=True)
class WorklistLine:
    """Alerts that stand as one line, by the grouping of the list."""

    members: tuple[AlertRow, ...]  # in the order of the list; the first one gives the line its place
    words: str  # "Troponin I not ordered", "Basic metabolic panel: 8 labs not ordered"

    @property
    def first(self) -> AlertRow:
        """The most unusual of the members, or the newest where the list is by day."""
        return self.members[0]


@dataclass(frozen=True)
class WorklistPage:
    """A page of the worklist and the figures of its header."""

    rows: tuple[AlertRow, ...]  # the first alert of each line
    next_cursor: str | None  # pass it back as `after` for the page that follows; None on the last page
    n_within_budget: int  # alerts that the filters and the budget let through, over all pages
    n_patient_days: int
    lowest_scores: Mapping[Decision, float]
    """The scaled score at which the budget ends in each list; without a list that shows nothing."""
    n_hidden_by_filter: dict[str, int] = field(default_factory=dict)
    """When no row is left: how many alerts each single filter hides, by its field name."""
    lines: tuple[WorklistLine, ...] = ()
    n_in_lists: int = 0  # as `n_within_budget`, but whatever the ward has done with them
    n_to_judge_first: int = 0
    """Decisions that the reader has still to judge without knowing their score. They are in no list of this reader;
    the number is the same whatever the filters, since a number that followed them would tell the score."""

    @property
    def lowest_scaled_score(self) -> float | None:
        """The lowest scaled score that the filters and the budget let through; None when nothing is shown."""
        return min(self.lowest_scores.values(), default=None)


@dataclass(frozen=True)
class FilterChoices:
    """What the filter widgets offer for a run."""

    units: tuple[str, ...]
    tasks: tuple[tuple[str, str], ...]  # (task_key, name), by name
    days: tuple[date, date] | None = None  # first and last day of the import, in the site's zone
    scores: tuple[float, float] | None = None  # lowest and highest scaled score of the lists


@dataclass(frozen=True)
class TimelineLab:
    """One lab's or vital sign's results of the stay before the snapshot."""

    name: str
    unit: str
    times: tuple[datetime, ...]
    values: tuple[float, ...]
    low: float | None
    """Lower end of the laboratory's reference range; None where the source has none. Only this range sets a flag."""
    high: float | None
    usual_low: float | None = None  # lower end of the central 90 % of past values at this site, which sets no flag
    usual_high: float | None = None

    def flag(self, value: float) -> str:
        """Return "high" or "low" against the reference range, "" inside it or without one."""
        if self.high is not None and value > self.high:
            return "high"
        return "low" if self.low is not None and value < self.low else ""


@dataclass(frozen=True)
class TimelineDrug:
    """One drug in the stay before the snapshot."""

    name: str
    periods: tuple[tuple[datetime, datetime], ...]  # from each order to its stop; one that runs ends at the snapshot
    given_at: tuple[datetime, ...] = ()  # doses charted as given
    dose: str = ""  # of the last order, empty where the source has none
    route: str = ""
    is_running: bool = False  # ordered and not stopped


@dataclass(frozen=True)
class Timeline:
    """What was known at the snapshot, and the decision in question; nothing after the snapshot but that decision."""

    snapshot_at: datetime
    window_hours: float  # fewer than 24 where discharge, death or the end of the data cuts the window
    decision_name: str
    past_orders: tuple[datetime, ...]
    orders_in_window: tuple[datetime, ...]
    labs: tuple[TimelineLab, ...]  # labs and vital signs, those that bear on the decision first
    drugs: tuple[TimelineDrug, ...]  # drugs that bear on the decision first, then those that run
    admitted_at: datetime | None = None
    done: str = ""  # as `AlertRow.done`
    decision: Decision = field(init=False)
    """What was decided here, read from the record itself so that no page can draw another patient's decision."""

    def __post_init__(self) -> None:
        decision = Decision.COMMISSION if self.orders_in_window else Decision.OMISSION
        object.__setattr__(self, "decision", decision)


@dataclass(frozen=True)
class LastValue:
    """The last result of a lab or vital sign of the stay before the snapshot."""

    name: str
    value: float | None  # None for a result in words, and where nothing was measured
    unit: str
    flag: str  # "high", "low" or "" against the laboratory's reference range; without a range there is no flag
    hours_old: float | None  # None where nothing was measured in the stay
    text: str = ""  # a result in words, such as of a culture
    low: float | None = None
    high: float | None = None  # the reference range
    trend: tuple[float, ...] = ()


@dataclass(frozen=True)
class CaseView:
    """A patient as of a snapshot: what a physician needs to judge the decision; no score, rank, stratum or vote.

    Review, the alert page and adjudication show the same.
    """

    timeline: Timeline
    last_values: tuple[LastValue, ...]  # the lab in question first, then flagged and recent ones
    background: tuple[tuple[str, str], ...] = ()
    """(what, words) of reasons for admission, problems and diagnoses, allergies, procedures known by then."""
    absent: tuple[str, ...] = ()  # what the source does not have of these
    unknown: tuple[str, ...] = ()
    """What the source has of other patients, but not of this one: problems and diagnoses, allergies."""

    @property
    def drugs_now(self) -> tuple[TimelineDrug, ...]:
        """Drugs that run at the snapshot by name, where a certain one is found among forty."""
        running = [drug for drug in self.timeline.drugs if drug.is_running]
        return tuple(sorted(running, key=lambda drug: drug.name.casefold()))


@dataclass(frozen=True)
class Neighbour:
    """A past instance among the most similar ones."""

    patient_id: str
    snapshot_at: datetime
    similarity: float  # in (0, 1], 1 = the same state
    decided: bool
    hours_to_decision: float | None


@dataclass(frozen=True)
class Comparison:
    """What the most similar past days of other patients got, and the patient's own earlier days beside them."""

    n_days: int  # most similar past days of other patients
    n_decided: int  # those of them with the decision
    n_patients: int  # patients whose days they are
    n_own_days: int  # earlier days of the patient
    n_own_decided: int


@dataclass(frozen=True)
class AlertDetail:
    """Everything the alert page shows."""

    row: AlertRow
    run: RunView
    day_of_stay: int
    soft_label: float
    task_positive_share: float  # share of past instances with the decision
    score_histogram: Histogram
    scaled_histogram: Histogram
    patient: CaseView
    compared: Comparison
    neighbours: tuple[Neighbour, ...]
    reasons: ReasonWords
    record_after: tuple[str, ...]  # sentences: what the record shows in the 72 h after the snapshot
    previous_alert_id: AlertId | None = None
    next_alert_id: AlertId | None = None
    disagreement: float | None = None
    """What the score is before it is multiplied by the support; None for scorers that do not multiply."""
    surprise: float | None = None
    """Odds of the other decision by the state over its odds in general; None where the score is no chance."""
    lowest_scaled_score: float | None = None
    """The scaled score at which the list of its decision ends; None when that list shows nothing."""


def histogram_of(stored: Mapping[str, Sequence[float]] | None) -> Histogram:
    """Return a stored histogram; one empty bin where there is none."""
    stored = stored or {"edges": [0.0, 1.0], "counts": [0]}
    return Histogram(tuple(stored["edges"]), tuple(map(int, stored["counts"])))
