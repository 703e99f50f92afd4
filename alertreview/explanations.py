"""Why an alert is an alert: the most similar past instances, what made them similar, and the patient's time line."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy as np
import numpy.typing as npt

from alertreview.read_models import LastValue, Neighbour, Timeline
from alertreview.settings import Settings
from alertreview.snapshot_views import SnapshotViews
from alertreview.snapshots import Snapshot, elapsed_features, read_snapshot
from alertreview.splits import FoldOfRow, rows_of_fold
from core.errors import NotFoundError
from core.explain import nearest_past
from core.vocabulary import Split
from db.rows import AlertRecord, RunRow, TaskResultRow
from db.session import Database

N_NEIGHBOURS = 75
N_NEIGHBOURS_SHOWN = 6
N_FEATURES_SHOWN = 6
OPEN_SNAPSHOTS = 2
KEPT_EXPLANATIONS = 256
"""Explanations that are kept for whoever looks next: opening an alert after its preview, or the top of a list again."""


@dataclass(frozen=True)
class Explanation:
    """What stands behind one alert; fields as in `alertreview.read_models.AlertDetail`."""

    timeline: Timeline
    n_neighbours: int
    n_neighbours_decided: int
    neighbours: tuple[Neighbour, ...]
    near_features: tuple[tuple[str, float], ...]
    record_after: tuple[str, ...]


@dataclass(frozen=True)
class ReviewPatientViews:
    """The patients of one import as the blinded review sees them; see `alertreview.patient_views.PatientViews`."""

    views: SnapshotViews
    related: dict[str, tuple[str, ...]]
    """Task key -> names of labs and drugs that tell its decisions apart, best first."""

    def timeline(self, row_index: int, task_key: str) -> Timeline:
        """Give what was known at the snapshot, and the decision in question."""
        return self.views.timeline(row_index, task_key, self.related.get(task_key, ()))

    def last_values(self, row_index: int) -> tuple[LastValue, ...]:
        """Give the last result of each lab before the snapshot."""
        return self.views.last_values(row_index)


class Explanations:
    """Opens imports and explains alerts on them; keeps the last few imports open.

    Parameters
    ----------
    settings : Settings
        The site.
    database : Database
        Its database.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._open = lru_cache(maxsize=OPEN_SNAPSHOTS)(self._read_snapshot)
        self._review_views = lru_cache(maxsize=OPEN_SNAPSHOTS)(self._read_review_views)
        self._kept: OrderedDict[tuple[str, int], Explanation] = OrderedDict()
        self._keeping = Lock()

    def close(self) -> None:
        """Let go of the open imports."""
        with self._keeping:
            self._kept.clear()
        for cache in (self._open, self._review_views):
            cache.cache_clear()

    def snapshot(self, content_hash: str) -> Snapshot:
        """Give the import with a content hash."""
        return self._open(content_hash).snapshot

    def __call__(self, content_hash: str) -> ReviewPatientViews:
        """Give the patients of the import with a content hash to the blinded review."""
        return self._review_views(content_hash)

    def explain(
        self, content_hash: str, record: AlertRecord, run: RunRow, result: TaskResultRow, folds: FoldOfRow
    ) -> Explanation:
        """Explain one alert.

        Parameters
        ----------
        content_hash : str
            Of the import that the run scored.
        record : AlertRecord
            The alert.
        run : RunRow
            Its run.
        result : TaskResultRow
            What the run's scorer made of the alert's task.
        folds : int16 array of shape (n_instances,)
            How the run parted the instances.
        """
        key = (content_hash, record.id)
        with self._keeping:
            kept = self._kept.get(key)
        # A published run and its import never change, so neither does what stands behind an alert of it.
        explanation = kept or self._explain(content_hash, record, run, result, folds)
        with self._keeping:
            self._kept[key] = explanation
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT_EXPLANATIONS:
                self._kept.popitem(last=False)
        return explanation

    def _explain(
        self, content_hash: str, record: AlertRecord, run: RunRow, result: TaskResultRow, folds: FoldOfRow
    ) -> Explanation:
        views = self._open(content_hash)
        rows, similarities, shares = _nearest(views, record, run, result, folds)
        taken = np.asarray(views.snapshot.decisions[rows, record.column_index].toarray()).ravel().astype(bool)
        columns, _ = _kept_features(result)
        names = views.snapshot.feature_dictionary["name"].to_numpy()[columns]
        best = np.argsort(-shares, kind="stable")[:N_FEATURES_SHOWN]
        return Explanation(
            timeline=views.timeline(record.row_index, record.task_key, _related_names(views.snapshot, result)),
            n_neighbours=len(rows),
            n_neighbours_decided=int(taken.sum()),
            neighbours=tuple(
                _neighbour(views, int(row), float(similarity), bool(decided), record.task_key)
                for row, similarity, decided in list(zip(rows, similarities, taken, strict=True))[:N_NEIGHBOURS_SHOWN]
            ),
            near_features=tuple((str(names[place]), float(shares[place])) for place in best),
            record_after=views.record_after(record.row_index, record.task_key),
        )

    def past_timeline(
        self,
        content_hash: str,
        record: AlertRecord,
        run: RunRow,
        result: TaskResultRow,
        folds: FoldOfRow,
        position: int,
    ) -> Timeline | None:
        """Give the time line of one of the past instances that `explain` shows, None for a position that it has not."""
        views = self._open(content_hash)
        rows, _, _ = _nearest(views, record, run, result, folds)
        if not 0 <= position < min(len(rows), N_NEIGHBOURS_SHOWN):
            return None
        return views.timeline(int(rows[position]), record.task_key, _related_names(views.snapshot, result))

    def _read_snapshot(self, content_hash: str) -> SnapshotViews:
        with self._database.read() as uow:
            stored = uow.snapshots.by_hash(content_hash)
        if stored is None:
            raise NotFoundError("The import behind this page is not in the database any more.")
        return SnapshotViews(read_snapshot(self._settings.snapshots / stored.folder))

    def _read_review_views(self, content_hash: str) -> ReviewPatientViews:
        """Find for each task what to show beside it, from the features that the last run on this import chose."""
        views = self._open(content_hash)
        related: dict[str, tuple[str, ...]] = {}
        with self._database.read() as uow:
            stored = uow.snapshots.by_hash(content_hash)
            runs = [run for run in uow.runs.published() if stored is not None and run.snapshot_id == stored.id]
            if stored is not None and runs:
                for task in uow.snapshots.tasks(stored.id):
                    result = uow.runs.task_result(runs[0].id, task.id)
                    related[task.task_key] = _related_names(views.snapshot, result)
        return ReviewPatientViews(views, related)


def _nearest(
    views: SnapshotViews, record: AlertRecord, run: RunRow, result: TaskResultRow, folds: FoldOfRow
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Rows of the nearest past instances and their similarities, most similar first; shares of the task's features."""
    past = _past_rows(views.snapshot, record, run, folds)
    columns, weights = _kept_features(result)
    chosen = views.feature_columns[:, columns].tocsr()
    is_flag = views.snapshot.feature_dictionary["is_flag"].to_numpy(dtype=bool)[columns]
    # Only the task's own columns are handed over, so that they are numbered from 0 there.
    found = nearest_past(
        chosen[past],
        chosen[[record.row_index]],
        np.arange(len(columns)),
        weights,
        is_flag=is_flag,
        is_elapsed=elapsed_features(views.snapshot)[columns],
        n_nearest=N_NEIGHBOURS,
    )
    # Nearest by distance are chosen, most similar ones shown first: similarity also knows how dense a place is.
    order = np.argsort(-found.similarities, kind="stable")
    return past[found.rows[order]], found.similarities[order], found.feature_shares


def _past_rows(snapshot: Snapshot, record: AlertRecord, run: RunRow, folds: FoldOfRow) -> npt.NDArray[np.int64]:
    """Rows that the alert was compared with; where patients are parted, never other days of the same patient."""
    past, _ = rows_of_fold(folds, int(folds[record.row_index]))
    if run.split is Split.TIME:
        return past
    same = (snapshot.instances["patient_id"] == record.patient_id).to_numpy()
    others: npt.NDArray[np.int64] = past[~same[past]]
    return others


def _kept_features(result: TaskResultRow) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    if result.feature_columns is None or result.feature_weights is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    return result.feature_columns.astype(np.int64), result.feature_weights.astype(np.float64)


def _related_names(snapshot: Snapshot, result: TaskResultRow) -> tuple[str, ...]:
    """Names of the labs and drugs whose features tell the task's decisions apart, best first."""
    columns, _ = _kept_features(result)
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
