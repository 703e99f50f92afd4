"""What the Task page reads: one task in one run, and how it changed from run to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from alertreview.read_models import Histogram
from core.estimate import Estimate
from core.vocabulary import Decision, Kind, TriageState


@dataclass(frozen=True)
class TaskChoice:
    """One task that a run has looked at."""

    task_key: str
    name: str
    kind: Kind
    is_scored: bool


@dataclass(frozen=True)
class AlertMarks:
    """How many alerts lie in each bin of a histogram."""

    omissions: tuple[int, ...]
    commissions: tuple[int, ...]

    def of(self, decision: Decision) -> tuple[int, ...]:
        """Give the counts of one decision."""
        return self.omissions if decision is Decision.OMISSION else self.commissions


@dataclass(frozen=True)
class TaskView:
    """One task as a scorer of a run sees it."""

    task_key: str
    name: str
    kind: Kind
    order_group: str
    scorer: str
    reason: str
    """Why the task was not scored; empty when it was."""
    n_past: int
    n_past_positive: int
    """Past instances in which it was ordered or given."""
    n_scored: int
    """Recent instances that have a score."""
    n_patient_days: int
    """Of the run."""
    scaled_histogram: Histogram
    """Of past and recent instances together, as on the alert page."""
    score_histogram: Histogram
    scaled_marks: AlertMarks
    """Alerts within the budget, in the bins of the scaled scores."""
    score_marks: AlertMarks
    thresholds: Mapping[Decision, float]
    """Scaled score at which the budget ends in each list of the run; a list that is shorter than its budget has
    none."""
    n_alerts: Mapping[Decision, int]
    """Alerts of this task within the budget."""
    triage: Mapping[TriageState, int]
    """Where those alerts stand; adds up to them."""


@dataclass(frozen=True)
class JudgedTask:
    """How well the scaled scores of one task order what readers judged relevant."""

    auc: Estimate
    """Cases count by the inverse of their inclusion probability; interval by leaving out one patient at a time."""
    study: str = ""
    """Title of the judged study; empty when there is none."""


@dataclass(frozen=True)
class RunPoint:
    """One stored run in a figure over runs."""

    run_id: int
    published_at: datetime
    """In the site's zone."""
    n_scored: int
    """Recent instances."""
    past_share: float | None
    """Share of past decisions that were taken, in [0, 1]; None for a task that the run does not know."""
    recent_share: float | None
    """The same among the instances that were scored; None when the import is not on this machine any more."""
    n_alerts: Mapping[Decision, int] = field(default_factory=dict)
    """Within the budget for one task; listed above the floor for a whole run."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Scaled scores by what they are, "median", "9 in 10 lie below"; for a whole run where the budget ends."""
