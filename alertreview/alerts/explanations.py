"""Why an alert is an alert: the most similar past instances, what made them similar, and the patient's time line."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import sparse

from alertreview.alerts.models import CaseView, Comparison, Neighbour, Timeline
from alertreview.alerts.patient import SnapshotViews
from alertreview.alerts.reasons import ReasonWords, reasons_in_words
from alertreview.records.snapshots import Snapshot, elapsed_features, open_import
from alertreview.scoring.resume import GROUP_WEIGHTS
from alertreview.scoring.splits import FoldOfRow, rows_of_fold
from alertreview.settings import Settings
from core.cohort.feature_roles import FEATURE_GROUP_WEIGHTS, FeatureRoles
from core.errors import NotFoundError
from core.features import SparseStandardizer
from core.graph.explain import nearest_past
from core.graph.shared_graph import WeightedCosine
from core.scoring.reasons import TaskContrast, fit_contrast
from core.scoring.scorers import needs_shared_graph
from core.vocabulary import Decision
from db.cache import Cache
from db.database import Database
from db.models import ListedAlert, ScoringRun, TaskPast

N_NEIGHBOURS = 75
N_NEIGHBOURS_SHOWN = 6
OPEN_SNAPSHOTS = 2
CACHED_EXPLANATIONS = 256
CACHED_NEAREST = 1024
"""Alerts whose nearest past instances are cached, two kilobytes each: a preview and the alert page share them."""
CACHED_SHARED_GRAPHS = 1
"""Standardised past of a run, as large as the features of the import."""
CACHED_CONTRASTS = 1024
"""What tells the decisions of a task apart, some kilobytes for each task."""


@dataclass(frozen=True)
class Past:
    """What an alert was compared with."""

    run: ScoringRun  # the alert's run
    result: TaskPast  # what the alert's scorer learned of its task
    folds: FoldOfRow  # shape (n_instances,): how the run parted the instances


@dataclass(frozen=True)
class Nearest:
    """Past days of other patients most similar to an alert's, most similar first; shared: do not change its arrays."""

    rows: npt.NDArray[np.int64]  # shape (n_nearest,): rows of the import
    similarities: npt.NDArray[np.float64]  # shape (n_nearest,): in (0, 1], 1 = the same state
    decided: npt.NDArray[np.bool_]  # shape (n_nearest,): whether the decision was taken
    n_patients: int  # patients behind the rows
    # `n_own_days` and `n_own_decided`: earlier days of the alert's own patient in the import, and those on which the
    # decision was taken.
    n_own_days: int
    n_own_decided: int

    @property
    def comparison(self) -> Comparison:
        """The counts, without rows."""
        n_decided = int(self.decided.sum())
        return Comparison(len(self.rows), n_decided, self.n_patients, self.n_own_days, self.n_own_decided)


@dataclass(frozen=True)
class Explanation:
    """What stands behind one alert; fields as in `alertreview.alerts.models.AlertDetail`."""

    patient: CaseView
    nearest: Nearest
    neighbours: tuple[Neighbour, ...]
    reasons: ReasonWords
    record_after: tuple[str, ...]


@dataclass(frozen=True)
class ReviewPatientViews:
    """The patients of one import as the blinded review sees them; see `alertreview.alerts.patient.PatientViews`."""

    views: SnapshotViews
    related: dict[str, tuple[str, ...]]  # task key -> names of labs and drugs that tell its decisions apart, best first

    def case(self, row_index: int, task_key: str) -> CaseView:
        """Return what was known at the snapshot, and the decision in question."""
        return self.views.case(row_index, task_key, self.related.get(task_key, ()))


class Explanations:
    """Opens imports, the last two of them cached, and explains alerts on them."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._open = lru_cache(maxsize=OPEN_SNAPSHOTS)(self._read_snapshot)
        self._review_views = lru_cache(maxsize=OPEN_SNAPSHOTS)(self._read_review_views)
        self._explanations: Cache[Explanation] = Cache(CACHED_EXPLANATIONS)
        self._nearest: Cache[Nearest] = Cache(CACHED_NEAREST)
        self._contrasts: Cache[TaskContrast] = Cache(CACHED_CONTRASTS)
        self._shared_graphs: Cache[_SharedGraph] = Cache(CACHED_SHARED_GRAPHS)

    def close(self) -> None:
        """Release the open imports."""
        self._explanations.clear()
        self._nearest.clear()
        self._contrasts.clear()
        self._shared_graphs.clear()
        self._open.cache_clear()
        self._review_views.cache_clear()

    def snapshot(self, content_hash: str) -> Snapshot:
        """Return the import with a content hash."""
        return self._open(content_hash).snapshot

    def __call__(self, content_hash: str) -> ReviewPatientViews:
        """Return the patients of the import with a content hash to the blinded review."""
        return self._review_views(content_hash)

    def explain(self, content_hash: str, record: ListedAlert, past: Past) -> Explanation:
        """Explain one alert on the import with a content hash."""
        # A published run and its import never change, so neither does what stands behind an alert of it.
        return self._explanations.get((content_hash, record.id), lambda: self._explain(content_hash, record, past))

    def nearest(self, content_hash: str, record: ListedAlert, past: Past) -> Nearest:
        """Return the past instances most similar to an alert's; parameters as those of `explain`."""
        return self._nearest.get((content_hash, record.id), lambda: self._search(content_hash, record, past))

    def _search(self, content_hash: str, record: ListedAlert, past: Past) -> Nearest:
        """Search where the alert's scorer looks: in the graph of all tasks, or in what tells its task apart."""
        views = self._open(content_hash)
        if not needs_shared_graph([record.scorer]):
            return _counted(views, record, *_nearest_in_task(views, record, past))
        fold = int(past.folds[record.row_index])
        graph = self._shared_graphs.get(
            (content_hash, past.run.id, fold), lambda: _SharedGraph.of(views.snapshot, past, fold)
        )
        return _counted(views, record, *graph.nearest(views.snapshot, record))

    def _explain(self, content_hash: str, record: ListedAlert, past: Past) -> Explanation:
        views = self._open(content_hash)
        nearest = self.nearest(content_hash, record, past)
        shown = list(zip(nearest.rows, nearest.similarities, nearest.decided, strict=True))[:N_NEIGHBOURS_SHOWN]
        related = _related_names(views.snapshot, past.result)
        patient = views.case(record.row_index, record.task_key, related)
        return Explanation(
            patient=patient,
            nearest=nearest,
            neighbours=tuple(
                _neighbour(views, int(row), float(similarity), bool(decided), record.task_key)
                for row, similarity, decided in shown
            ),
            reasons=self._reasons(content_hash, record, past, {lab.name for lab in patient.timeline.labs}),
            record_after=views.record_after(record.row_index, record.task_key),
        )

    def _reasons(self, content_hash: str, record: ListedAlert, past: Past, in_stay: set[str]) -> ReasonWords:
        """Say which findings speak for what was expected; empty where one decision alone occurs in the past."""
        views = self._open(content_hash)
        dictionary = views.snapshot.feature_dictionary
        rows, _ = rows_of_fold(past.folds, int(past.folds[record.row_index]))
        taken = _decided(views.snapshot, rows, record)
        if taken.all() or not taken.any():
            return ReasonWords()
        kept, _ = _task_features(past.result)
        patients = views.snapshot.instances["patient_id"].iloc[rows].astype("category").cat.codes.to_numpy()
        # The last day of a time split, or the fold: what the past was is part of the key.
        contrast = self._contrasts.get(
            (content_hash, past.run.id, record.task_id, record.scorer, int(past.folds[record.row_index])),
            lambda: fit_contrast(views.feature_columns[rows], taken, patients, dictionary, kept if len(kept) else None),
        )
        x = np.where(dictionary["is_flag"].to_numpy(dtype=bool), 0.0, np.nan)
        own = views.snapshot.features[[record.row_index]]
        x[own.indices] = own.data
        found = contrast.reasons(x, expected=record.decision is Decision.OMISSION)
        return reasons_in_words(found, dictionary, record.decision, in_stay)

    def past_timeline(self, content_hash: str, record: ListedAlert, past: Past, position: int) -> Timeline | None:
        """Return the time line of a past instance that `explain` shows; None for a position that it has not."""
        views = self._open(content_hash)
        rows = self.nearest(content_hash, record, past).rows
        if not 0 <= position < min(len(rows), N_NEIGHBOURS_SHOWN):
            return None
        return views.timeline(int(rows[position]), record.task_key, _related_names(views.snapshot, past.result))

    def _read_snapshot(self, content_hash: str) -> SnapshotViews:
        with self._database.read() as uow:
            stored = uow.snapshots.by_hash(content_hash)
            if stored is None:
                raise NotFoundError("The import behind this page is not in the database any more.")
            return SnapshotViews(open_import(self._settings, uow, stored.folder))

    def _read_review_views(self, content_hash: str) -> ReviewPatientViews:
        """Find for each task what to show beside it, from the features that the last run on this import chose."""
        views = self._open(content_hash)
        related: dict[str, tuple[str, ...]] = {}
        with self._database.read() as uow:
            stored = uow.snapshots.by_hash(content_hash)
            runs = [run for run in uow.runs.published() if stored is not None and run.snapshot_id == stored.id]
            if stored is not None and runs:
                for task in uow.snapshots.tasks(stored.id):
                    result = uow.runs.past_of_task(runs[0], task.id, runs[0].scorer)
                    related[task.task_key] = _related_names(views.snapshot, result)
        return ReviewPatientViews(views, related)


@dataclass(frozen=True)
class _SharedGraph:
    """The similarity that "shared" was scored by, and the past that it was learned from."""

    standardizer: SparseStandardizer
    cosine: WeightedCosine
    rows: npt.NDArray[np.int64]
    points: sparse.csr_array  # standardised past, by `rows`
    lengths: npt.NDArray[np.float64]

    @classmethod
    def of(cls, snapshot: Snapshot, past: Past, fold: int) -> "_SharedGraph":
        rows, _ = rows_of_fold(past.folds, fold)
        dictionary = snapshot.feature_dictionary
        is_flag = dictionary["is_flag"].to_numpy(dtype=bool)
        raw = sparse.csr_array(snapshot.features[rows])
        standardizer = SparseStandardizer(clip=past.run.parameters["clip"])
        points = standardizer.fit(raw, is_flag, elapsed_features(snapshot)).transform(raw)
        groups = FeatureRoles.of(dictionary, [], []).groups
        learned = past.run.parameters.get(GROUP_WEIGHTS)
        cosine = WeightedCosine.fit(points, groups, learned[fold] if learned else FEATURE_GROUP_WEIGHTS)
        return cls(standardizer, cosine, rows, points, cosine.lengths(points))

    def nearest(self, snapshot: Snapshot, record: ListedAlert) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return rows of other patients and their similarities, most similar first."""
        x = self.standardizer.transform(sparse.csr_array(snapshot.features[[record.row_index]]))
        similarities = self.cosine.similarities(self.points, self.lengths, x)
        similarities[_own_patient(snapshot, record)[self.rows]] = -1.0
        first = np.argsort(-similarities, kind="stable")[:N_NEIGHBOURS]
        first = first[similarities[first] > 0]
        return self.rows[first], similarities[first]


def _nearest_in_task(
    views: SnapshotViews, record: ListedAlert, past: Past
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return rows of other patients and their similarities by the features of the task, most similar first."""
    rows = _past_rows(views.snapshot, record, past)
    columns, weights = _task_features(past.result)
    chosen = views.feature_columns[:, columns].tocsr()
    is_flag = views.snapshot.feature_dictionary["is_flag"].to_numpy(dtype=bool)[columns]
    # Only the task's own columns are handed over, so that they are numbered from 0 there.
    found = nearest_past(
        chosen[rows],
        chosen[[record.row_index]],
        np.arange(len(columns)),
        weights,
        is_flag=is_flag,
        is_elapsed=elapsed_features(views.snapshot)[columns],
        n_nearest=N_NEIGHBOURS,
    )
    # Nearest by distance are chosen, most similar ones shown first: similarity also knows how dense a place is.
    order = np.argsort(-found.similarities, kind="stable")
    return rows[found.rows[order]], found.similarities[order]


def _counted(
    views: SnapshotViews, record: ListedAlert, nearest: npt.NDArray[np.int64], similarities: npt.NDArray[np.float64]
) -> Nearest:
    instances = views.snapshot.instances
    own = _own_patient(views.snapshot, record)
    earlier = np.flatnonzero(
        own & (instances["snapshot_at"] < instances["snapshot_at"].iat[record.row_index]).to_numpy()
    )
    return Nearest(
        rows=nearest,
        similarities=similarities,
        decided=_decided(views.snapshot, nearest, record),
        n_patients=int(instances["patient_id"].iloc[nearest].nunique()),
        n_own_days=len(earlier),
        n_own_decided=int(_decided(views.snapshot, earlier, record).sum()),
    )


def _decided(snapshot: Snapshot, rows: npt.NDArray[np.int64], record: ListedAlert) -> npt.NDArray[np.bool_]:
    return np.asarray(snapshot.decisions[rows, record.column_index].toarray()).ravel().astype(bool)


def _own_patient(snapshot: Snapshot, record: ListedAlert) -> npt.NDArray[np.bool_]:
    own: npt.NDArray[np.bool_] = (snapshot.instances["patient_id"] == record.patient_id).to_numpy()
    return own


def _past_rows(snapshot: Snapshot, record: ListedAlert, compared: Past) -> npt.NDArray[np.int64]:
    """Days of other patients that the alert was compared with; a patient's own days are no second opinion."""
    past, _ = rows_of_fold(compared.folds, int(compared.folds[record.row_index]))
    others: npt.NDArray[np.int64] = past[~_own_patient(snapshot, record)[past]]
    return others


def _task_features(result: TaskPast) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    if result.feature_columns is None or result.feature_weights is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    return result.feature_columns.astype(np.int64), result.feature_weights.astype(np.float64)


def _related_names(snapshot: Snapshot, result: TaskPast) -> tuple[str, ...]:
    """Names of the labs and drugs whose features tell the task's decisions apart, best first."""
    columns, _ = _task_features(result)
    sources = snapshot.feature_dictionary["source"].to_numpy()[columns]
    return tuple(dict.fromkeys(map(str, sources)))


def _neighbour(views: SnapshotViews, row: int, similarity: float, decided: bool, task_key: str) -> Neighbour:
    instance = views.snapshot.instances.iloc[row]
    return Neighbour(
        patient_id=str(instance["patient_id"]),
        snapshot_at=views.at(instance["snapshot_at"]),
        similarity=similarity,
        decided=decided,
        hours_to_decision=views.hours_to_decision(row, task_key) if decided else None,
    )
