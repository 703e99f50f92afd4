"""Tables of a scoring run: the run, what each task scored, and one row for each alert."""

from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from core.vocabulary import Decision, Kind, RunStatus, Split
from db.models.base import Base, JsonObject
from db.models.types import BigId, CompressedVector, words


class ScoringRun(Base):
    """One execution of one or more scorers on one snapshot.

    A run with `base_run_id` took no past of its own: it scored new instances against what that run had learned and kept
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

    id: Mapped[int] = mapped_column(primary_key=True)
    snapshot_id: Mapped[int] = mapped_column(sa.ForeignKey("cohort_snapshot.id"), index=True)
    scorer: Mapped[str]
    """The scorer whose list is shown first."""
    scorers: Mapped[JsonObject]
    """Further scorers of the run by name; once published, each with the floors and lengths of its lists."""
    parameters: Mapped[JsonObject]
    """Parameters of the scorers: graph, neighbours, regularisation, scaling."""
    seed: Mapped[int] = mapped_column(sa.BigInteger)
    """Seed of everything drawn at random."""
    code_version: Mapped[str]
    """Version of the program that scored."""
    split: Mapped[Split] = mapped_column(words(Split, "split"))
    """How past and recent were told apart."""
    status: Mapped[RunStatus] = mapped_column(words(RunStatus, "status"))
    """Where the run stands; readers only see published ones."""
    created_at: Mapped[datetime]
    published_at: Mapped[datetime | None]
    """When its alerts were published; empty before."""
    n_past: Mapped[int]
    """Instances it learned from."""
    n_recent: Mapped[int]
    """Instances it scored."""
    n_patient_days: Mapped[int]
    """Days on which a patient was scored: what alert rates are counted per."""
    fold_of_row: Mapped[npt.NDArray[np.int16]] = mapped_column(CompressedVector("int16"))
    """Fold of each instance of the snapshot, by row; see above."""
    floor_omission: Mapped[float | None]
    """Scaled score of the last omission that is kept as an alert."""
    floor_commission: Mapped[float | None]
    """Scaled score of the last commission that is kept as an alert."""
    n_omissions: Mapped[int]
    """Omissions kept as alerts."""
    n_commissions: Mapped[int]
    """Commissions kept as alerts."""
    n_tasks_scored: Mapped[int]
    """Tasks with scores."""
    n_tasks_left_out: Mapped[int]
    """Tasks without, each with its reason in `task_result`."""
    base_run_id: Mapped[int | None] = mapped_column(sa.ForeignKey("scoring_run.id"), index=True)
    model_folder: Mapped[str]
    """Name of the folder inside the home that keeps what the run learned; empty when it was not kept."""


class RunSensitivity(Base):
    """How much a run's lists depend on graph size and regularisation; see `core.scoring.sensitivity`."""

    __tablename__ = "run_sensitivity"

    run_id: Mapped[int] = mapped_column(sa.ForeignKey("scoring_run.id"), primary_key=True)
    computed_at: Mapped[datetime]
    """When the curves were computed."""
    code_version: Mapped[str]
    """Version of the program that computed them."""
    curves: Mapped[JsonObject]
    """What is shared with the run's lists, and the AUC, by scorer and setting."""


class TaskResult(Base):
    """What one scorer made of one task: vectors over the run's recent instances, or the reason why there are none."""

    __tablename__ = "task_result"

    run_id: Mapped[int] = mapped_column(sa.ForeignKey("scoring_run.id"), primary_key=True)
    task_id: Mapped[int] = mapped_column(sa.ForeignKey("task.id"), primary_key=True, index=True)
    scorer: Mapped[str] = mapped_column(primary_key=True)
    """Scorer whose result this is."""
    reason: Mapped[str]
    """Why the task was not scored; empty when it was."""
    n_past: Mapped[int]
    """Past instances it learned from."""
    n_past_positive: Mapped[int]
    """Past instances in which the task was done."""
    score: Mapped[npt.NDArray[np.float32] | None] = mapped_column(CompressedVector("float32"))
    """Anomaly score of each recent instance, by row; higher = more unusual."""
    scaled_score: Mapped[npt.NDArray[np.float32] | None] = mapped_column(CompressedVector("float32"))
    """The same made comparable between tasks."""
    soft_label: Mapped[npt.NDArray[np.float32] | None] = mapped_column(CompressedVector("float32"))
    """The decision that the past lets expect, from -1 (not done) to 1 (done), by row."""
    support: Mapped[npt.NDArray[np.float32] | None] = mapped_column(CompressedVector("float32"))
    """How strongly each recent instance is tied to past ones, 0 to 1, by row."""
    feature_columns: Mapped[npt.NDArray[np.int32] | None] = mapped_column(CompressedVector("int32"))
    """Columns of the features that were compared."""
    feature_weights: Mapped[npt.NDArray[np.float32] | None] = mapped_column(CompressedVector("float32"))
    """Their weights (psi), in the same order."""
    score_histogram: Mapped[dict[str, Any] | None] = mapped_column(sa.JSON(none_as_null=True))
    """Histogram of the scores, with its edges."""
    scaled_histogram: Mapped[dict[str, Any] | None] = mapped_column(sa.JSON(none_as_null=True))
    """Histogram of the scaled scores, with its edges."""
    scaling: Mapped[JsonObject]
    """How scores were scaled: method and its figures."""
    diagnostics: Mapped[JsonObject]
    """What somebody should know of the task's graph and calibration."""


class Alert(Base):
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

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    run_id: Mapped[int] = mapped_column(sa.ForeignKey("scoring_run.id"))
    task_id: Mapped[int] = mapped_column(sa.ForeignKey("task.id"), index=True)
    instance_id: Mapped[int] = mapped_column(sa.ForeignKey("instance.id"))
    scorer: Mapped[str]
    """Scorer whose list this is."""
    rank: Mapped[int]
    """1 for the most unusual of its list."""
    decision: Mapped[Decision] = mapped_column(words(Decision, "decision"))
    """Which way the alert points."""
    kind: Mapped[Kind] = mapped_column(words(Kind, "kind"))
    """Kind of the task."""
    unit: Mapped[str]
    """Care unit of the patient at the instance."""
    window_cut: Mapped[bool]
    """The decision window is shorter than 24 h: discharge, death or the end of the data."""
    score: Mapped[float]
    """The scorer's anomaly score; higher = more unusual."""
    scaled_score: Mapped[float]
    """Score made comparable between tasks; higher = more unusual."""
    soft_label: Mapped[float]
    """The decision that the past lets expect, from -1 (not done) to 1 (done)."""
    support: Mapped[float]
    """How strongly the instance is tied to past ones, 0 to 1; 0 = isolated."""
