"""Rows of scoring runs, task results and alerts."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from core.vocabulary import Decision, Kind, RunStatus, Split, TriageState


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A scoring run that begins."""

    snapshot_id: int
    scorer: str
    """The scorer whose list is shown first."""
    parameters: dict[str, Any]
    seed: int
    code_version: str
    split: Split
    fold_of_row: npt.NDArray[np.int16]
    """For each instance of the snapshot the fold it is scored in; -1 only learned from, -2 left out."""
    n_past: int
    n_recent: int
    n_patient_days: int
    created_at: datetime
    scorers: dict[str, Any] = field(default_factory=dict)
    """Further scorers of the run by name."""
    base_run_id: int | None = None
    """The run whose stored past the instances are scored against; None for a run with a past of its own."""
    model_folder: str = ""
    """Folder inside the home that keeps what the run learned; empty when it was not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A scoring run without its vectors."""

    id: int
    snapshot_id: int
    scorer: str
    scorers: dict[str, Any]
    """Further scorers by name, each with the floors and lengths of its lists; see `floors` and `n_alerts`."""
    parameters: dict[str, Any]
    seed: int
    code_version: str
    split: Split
    status: RunStatus
    created_at: datetime
    published_at: datetime | None
    n_past: int
    n_recent: int
    n_patient_days: int
    floor_omission: float | None
    floor_commission: float | None
    n_omissions: int
    n_commissions: int
    n_tasks_scored: int
    n_tasks_left_out: int
    base_run_id: int | None
    model_folder: str

    @property
    def all_scorers(self) -> tuple[str, ...]:
        """Names of all scorers, the one whose list is shown first before the others."""
        return (self.scorer, *self.scorers)

    def floors(self, scorer: str | None = None) -> dict[Decision, float]:
        """Return the scaled scores below which a scorer's lists hold nothing; a list without alerts has none."""
        if scorer is None or scorer == self.scorer:
            found = {Decision.OMISSION: self.floor_omission, Decision.COMMISSION: self.floor_commission}
        else:
            found = {decision: self.scorers[scorer].get(f"floor_{decision.value}") for decision in Decision}
        return {decision: floor for decision, floor in found.items() if floor is not None}

    def n_alerts(self, scorer: str | None = None) -> dict[Decision, int]:
        """Return the lengths of a scorer's lists."""
        if scorer is None or scorer == self.scorer:
            return {Decision.OMISSION: self.n_omissions, Decision.COMMISSION: self.n_commissions}
        return {decision: self.scorers[scorer].get(f"n_{decision.value}s", 0) for decision in Decision}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummary:
    """What a scorer made of a task, without vectors and histograms."""

    task_id: int
    scorer: str
    reason: str = ""
    """Why the task was not scored; empty when it was."""
    n_past: int
    n_past_positive: int
    scaling: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPast:
    """What a scorer learned of a task and how its scores are spread, without a vector over instances."""

    n_past: int
    n_past_positive: int
    feature_columns: npt.NDArray[np.int32] | None
    feature_weights: npt.NDArray[np.float32] | None
    score_histogram: dict[str, Any] | None
    """As in `NewTaskResult`; shared, so not to be changed."""
    scaled_histogram: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTaskResult(TaskSummary):
    """What a scorer made of a task; vectors of shape (n_recent,) over the run's recent instances in row order."""

    score: npt.NDArray[np.float32] | None = None
    scaled_score: npt.NDArray[np.float32] | None = None
    soft_label: npt.NDArray[np.float32] | None = None
    support: npt.NDArray[np.float32] | None = None
    feature_columns: npt.NDArray[np.int32] | None = None
    feature_weights: npt.NDArray[np.float32] | None = None
    score_histogram: dict[str, Any] | None = None
    """{"edges": [...], "counts": [...]}; see `alertreview.scoring.models.Histogram`."""
    scaled_histogram: dict[str, Any] | None = None


Histograms: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""Of the scores and of the scaled scores of a task; each as in `NewTaskResult`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResultRow(NewTaskResult):
    """A stored task result."""

    run_id: int


@dataclass(frozen=True, slots=True)
class NewAlert:
    """An alert to be stored; `rank` counts from 1 within run, scorer and decision, without gaps."""

    task_id: int
    instance_id: int
    rank: int
    decision: Decision
    kind: Kind
    unit: str
    window_cut: bool
    score: float
    scaled_score: float
    soft_label: float
    support: float
    scorer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRecord:
    """An alert with its instance and task."""

    id: int
    run_id: int
    scorer: str
    rank: int
    decision: Decision
    kind: Kind
    unit: str
    window_cut: bool
    score: float
    scaled_score: float
    soft_label: float
    support: float
    task_id: int
    task_key: str
    task_name: str
    order_group: str
    column_index: int
    instance_id: int
    row_index: int
    patient_id: str
    stay_id: int
    snapshot_at: datetime
    day_of_stay: int
    age_years: float | None
    sex: str
    window_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedAlert:
    """An alert under what it is about, comparable between runs and imports."""

    alert_id: int
    patient_id: str
    snapshot_at: datetime
    task_key: str
    task_name: str
    kind: Kind
    rank: int
    scaled_score: float


class AlertFilters(TypedDict, total=False):
    """Restrictions on alerts; what is absent, None or an empty text restricts nothing."""

    scorer: str
    """Whose list; absent or empty means the run's first scorer."""
    decision: Decision | None
    kind: Kind | None
    unit: str
    task_key: str
    text: str
    """Part of a task's name, in any case."""
    patient_id: str
    max_ranks: dict[Decision, int]
    """Lowest rank shown of a decision: the alert budget; a decision that is not named has none."""
    min_ranks: dict[Decision, int]
    """Highest rank shown of a decision: a scaled score above which nothing is shown."""
    since: datetime | None
    """Instances at or after this moment."""
    before: datetime | None
    """Instances before this moment."""
    triage: Collection[TriageState]
    """Only alerts that stand at one of these states; needs `now`."""
    now: datetime
    """When the question is asked: a snooze that is over stands at "new"."""
    within: Collection[str] | None
    """Only units that the person may see; None for all."""
    without: Collection[int]
    """Alerts left out by number: decisions that whoever asks has still to judge without knowing the score."""
    include_cut_windows: bool
    """False hides omissions on decision windows shorter than 24 h."""


@dataclass(frozen=True, slots=True)
class AlertPage:
    """Alerts in the order of the worklist."""

    rows: tuple[AlertRecord, ...]
    next_cursor: str | None
    """Passed back as `after`; None on the last page."""
