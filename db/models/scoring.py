"""Tables of a scoring run: the run, what each task scored, and one row for each alert."""

from collections.abc import Collection
from datetime import datetime
from typing import ClassVar, TypedDict

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from core.kinds import Kind
from core.vocabulary import AlertId, Decision, InstanceId, RunId, RunStatus, SnapshotId, Split, TaskId, TriageState
from db.models.base import UNSAVED, Column, JsonObject, Record, column
from db.models.types import BigId, CompressedVector, words


class ScoringRun(Record):
    """One execution of one or more scorers on one snapshot.

    A run with `base_run_id` learned no past: it scored new instances against what that run had learned and kept
    in `model_folder`.

    `fold_of_row` has one entry for each instance of the snapshot: the fold it is scored in (0, 1, ...), -1 for an
    instance that is only learned from, -2 for one that is left out. The past of fold k is every instance that is
    neither in fold k nor left out. Vectors of task results run over the instances with a fold of 0 or more, by row.
    """

    __tablename__ = "scoring_run"
    __table_args__ = (
        sa.Index(
            "uq_scoring_run_one_running",
            "status",
            unique=True,
            sqlite_where=sa.text("status = 'running'"),
            postgresql_where=sa.text("status = 'running'"),
        ),
        sa.Index(None, "status", "published_at"),
    )

    id: Column[RunId] = column(primary_key=True, default=UNSAVED)
    snapshot_id: Column[SnapshotId] = column(sa.ForeignKey("cohort_snapshot.id"), index=True)
    scorer: Column[str]
    """The scorer whose list is shown first."""
    scorers: Column[JsonObject] = column(default_factory=dict)
    """Further scorers of the run by name; once published, each with the floors and lengths of its lists."""
    parameters: Column[JsonObject]
    """Parameters of the scorers: graph, neighbours, regularisation, scaling."""
    seed: Column[int] = column(sa.BigInteger)
    """Seed of everything drawn at random."""
    code_version: Column[str]
    """Version of the program that scored."""
    split: Column[Split]
    """How past and recent instances were separated."""
    status: Column[RunStatus] = column(default=RunStatus.RUNNING)
    """Where the run stands; readers only see published ones."""
    created_at: Column[datetime]
    published_at: Column[datetime | None] = column(default=None)
    """When its alerts were published; empty before."""
    n_past: Column[int]
    """Instances it learned from."""
    n_recent: Column[int]
    """Instances it scored."""
    n_patient_days: Column[int]
    """Days on which a patient was scored: what alert rates are counted per."""
    fold_of_row: ClassVar[Column[npt.NDArray[np.int16]]] = column(CompressedVector("int16"))
    """Fold of each instance of the snapshot, by row; see above."""
    floor_omission: Column[float | None] = column(default=None)
    """Scaled score of the last omission that is kept as an alert."""
    floor_commission: Column[float | None] = column(default=None)
    """Scaled score of the last commission that is kept as an alert."""
    n_omissions: Column[int] = column(default=0)
    """Omissions kept as alerts."""
    n_commissions: Column[int] = column(default=0)
    """Commissions kept as alerts."""
    n_tasks_scored: Column[int] = column(default=0)
    """Tasks with scores."""
    n_tasks_left_out: Column[int] = column(default=0)
    """Tasks without, each with its reason in `task_result`."""
    base_run_id: Column[RunId | None] = column(sa.ForeignKey("scoring_run.id"), index=True, default=None)
    model_folder: Column[str] = column(default="")
    """Name of the folder inside the home that keeps what the run learned; empty when it was not kept."""

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


class RunSensitivity(Record):
    """How much a run's lists depend on graph size and regularisation; see `core.scoring.sensitivity`."""

    __tablename__ = "run_sensitivity"

    run_id: Column[RunId] = column(sa.ForeignKey("scoring_run.id"), primary_key=True)
    computed_at: Column[datetime]
    """When the curves were computed."""
    code_version: Column[str]
    """Version of the program that computed them."""
    curves: Column[JsonObject]
    """What is shared with the run's lists, and the AUC, by scorer and setting."""


class TaskResult(Record):
    """What one scorer made of one task: vectors over the run's recent instances, or the reason why there are none."""

    __tablename__ = "task_result"

    run_id: Column[RunId] = column(sa.ForeignKey("scoring_run.id"), primary_key=True, default=UNSAVED)
    task_id: Column[TaskId] = column(sa.ForeignKey("task.id"), primary_key=True, index=True)
    scorer: Column[str] = column(primary_key=True)
    """Scorer whose result this is."""
    reason: Column[str] = column(default="")
    """Why the task was not scored; empty when it was."""
    n_past: Column[int]
    """Past instances it learned from."""
    n_past_positive: Column[int]
    """Past instances in which the task was done."""
    score: Column[npt.NDArray[np.float32] | None] = column(CompressedVector("float32"), default=None)
    """Anomaly score of each recent instance, by row; higher = more unusual."""
    scaled_score: Column[npt.NDArray[np.float32] | None] = column(CompressedVector("float32"), default=None)
    """The same made comparable between tasks."""
    soft_label: Column[npt.NDArray[np.float32] | None] = column(CompressedVector("float32"), default=None)
    """The decision that the past lets expect, from -1 (not done) to 1 (done), by row."""
    support: Column[npt.NDArray[np.float32] | None] = column(CompressedVector("float32"), default=None)
    """How strongly each recent instance is tied to past ones, 0 to 1, by row."""
    feature_columns: Column[npt.NDArray[np.int32] | None] = column(CompressedVector("int32"), default=None)
    """Columns of the features that were compared."""
    feature_weights: Column[npt.NDArray[np.float32] | None] = column(CompressedVector("float32"), default=None)
    """Their weights (psi), in the same order."""
    score_histogram: Column[JsonObject | None] = column(sa.JSON(none_as_null=True), default=None)
    """Histogram of the scores, with its edges."""
    scaled_histogram: Column[JsonObject | None] = column(sa.JSON(none_as_null=True), default=None)
    """Histogram of the scaled scores, with its edges."""
    scaling: Column[JsonObject] = column(default_factory=dict)
    """How scores were scaled: method and its figures."""
    diagnostics: Column[JsonObject] = column(default_factory=dict)
    """What somebody should know of the task's graph and calibration."""


class TaskSummary(Record):
    """What a scorer made of a task, without vectors and histograms."""

    task_id: TaskId
    scorer: str
    reason: str
    n_past: int
    n_past_positive: int
    scaling: JsonObject
    diagnostics: JsonObject


class TaskPast(Record):
    """What a scorer learned of a task and how its scores are spread; shared by readers, so not to be changed."""

    n_past: int
    n_past_positive: int
    feature_columns: npt.NDArray[np.int32] | None
    feature_weights: npt.NDArray[np.float32] | None
    score_histogram: JsonObject | None
    scaled_histogram: JsonObject | None


class Alert(Record):
    """An instance x task at or above the floor of one scorer; `rank` is 1 for the most unusual of its list.

    A run has one list for each of its scorers and decisions; lists of different scorers are never merged. Every index
    ends with (rank, decision), the order of the worklist, so that a page is a seek and a short walk whatever the
    filter; `window_cut` is there so that counts need not touch the table.
    """

    __tablename__ = "alert"
    __table_args__ = (
        sa.UniqueConstraint("run_id", "scorer", "decision", "rank"),
        sa.Index(None, "run_id", "scorer", "rank", "decision", "window_cut"),
        sa.Index(None, "run_id", "scorer", "unit", "rank", "decision", "window_cut"),
        sa.Index(None, "run_id", "scorer", "kind", "rank", "decision", "window_cut"),
        sa.Index(None, "run_id", "scorer", "task_id", "rank", "decision", "window_cut"),
        sa.Index(None, "instance_id", "task_id"),
        sa.CheckConstraint("rank >= 1", name="rank_from_one"),
    )

    id: Column[AlertId] = column(BigId, primary_key=True, default=UNSAVED)
    run_id: Column[RunId] = column(sa.ForeignKey("scoring_run.id"), default=UNSAVED)
    task_id: Column[TaskId] = column(sa.ForeignKey("task.id"), index=True)
    instance_id: Column[InstanceId] = column(sa.ForeignKey("instance.id"))
    scorer: Column[str]
    """Scorer whose list this is."""
    rank: Column[int]
    """1 for the most unusual of its list."""
    decision: Column[Decision]
    """Which way the alert points."""
    kind: Column[Kind] = column(words(Kind, "kind", checked=False))
    """Kind of the task."""
    unit: Column[str]
    """Care unit of the patient at the instance."""
    window_cut: Column[bool]
    """The decision window is shorter than 24 h: discharge, death or the end of the data."""
    score: Column[float]
    """The scorer's anomaly score; higher = more unusual."""
    scaled_score: Column[float]
    """Score made comparable between tasks; higher = more unusual."""
    soft_label: Column[float]
    """The decision that the past lets expect, from -1 (not done) to 1 (done)."""
    support: Column[float]
    """How strongly the instance is tied to past ones, 0 to 1; 0 = isolated."""


class ListedAlert(Alert):
    """An alert with its instance and task."""

    task_key: str
    task_name: str
    order_group: str
    column_index: int
    row_index: int
    patient_id: str
    stay_id: int
    snapshot_at: datetime
    day_of_stay: int
    age_years: float | None
    sex: str
    window_hours: float


class RankedAlert(Record):
    """An alert under what it is about, comparable between runs and imports."""

    alert_id: AlertId
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
    """Part of a task's name in any case, or a patient's identifier."""
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
    without: Collection[AlertId]
    """Alerts left out by number: decisions that whoever asks has still to judge without knowing the score."""
    include_cut_windows: bool
    """False hides omissions on decision windows shorter than 24 h."""


class AlertPage(Record):
    """Alerts in the order of the worklist."""

    rows: tuple[ListedAlert, ...]
    next_cursor: str | None
    """Passed back as `after`; None on the last page."""
