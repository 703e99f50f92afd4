"""What a run learned, kept in a folder of the home: enough to score new instances without learning again."""

import shutil
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alertreview.files import arrays_of, sync
from alertreview.records.snapshots import Snapshot
from core.errors import SourceError
from core.features import SparseStandardizer
from core.scoring.new_instances import STORED_ARRAYS, StoredPast
from core.scoring.parameters import ScoringParameters
from core.scoring.scores import ScoredTasks
from core.scoring.shared import SharedModel

RUNS_KEPT = 3
"""Folders kept of the newest runs; older runs stay listed, but nothing new can be scored against them."""
_SHARED = "shared.npz"


@dataclass(frozen=True)
class StoredModel:
    """What a run learned, opened."""

    folder: Path
    past: StoredPast
    # `feature_keys` and `task_keys`: which feature and which task a column is.
    feature_keys: NDArray[Any]
    task_keys: NDArray[Any]
    past_patients: NDArray[Any]  # shape (n_past,)
    past_times: NDArray[Any]  # shape (n_past,): site time of the instances that were learned from

    @property
    def past_end(self) -> pd.Timestamp:
        """Site time of the last instance that was learned from."""
        return pd.Timestamp(self.past_times.max())

    def of_task(self, column: int) -> dict[str, NDArray[Any]]:
        """Read what was learned of one task."""
        with arrays_of(self.folder / f"{column}.npz") as arrays:
            return dict(arrays)


def feature_keys(snapshot: Snapshot) -> NDArray[Any]:
    """Return a key for each feature from its description; duplicates are numbered."""
    described = snapshot.feature_dictionary[["name", "source", "aspect", "meaning", "unit"]].astype(str)
    again = described.groupby(list(described.columns), sort=False).cumcount().astype(str)
    return np.array(["\t".join(row) for row in described.assign(again=again).to_numpy()], dtype=np.str_)


def store_model(
    parent: Path, name: str, snapshot: Snapshot, past: NDArray[np.int64], scored: ScoredTasks, *, exclude_patients: bool
) -> str:
    """Write what a run learned from past rows; either the whole folder is there afterwards, or nothing.

    The same name means the same contents; `scored` was scored with ``keep_graphs``. Raise SourceError if the folder
    cannot be written.
    """
    target = parent / name
    if (target / _SHARED).exists():
        return name
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".writing-", dir=parent))
    except OSError as error:
        raise SourceError(f"{parent}: cannot be written ({error.strerror}). Make room, or correct its owner.") from None
    try:
        for task in scored:
            evidence = scored.evidence[task].items()
            kept: Any = {name: array for name, array in evidence if name.startswith(STORED_ARRAYS)}
            np.savez(temporary / f"{task}.npz", **kept)
        shared: Any = _shared(snapshot, past, scored, exclude_patients)
        np.savez_compressed(temporary / _SHARED, **shared)
        sync(temporary)
        temporary.rename(target)
        sync(parent)
    except OSError as error:
        raise SourceError(f"{target}: cannot be written ({error.strerror}). Make room and score again.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return name


def _shared(
    snapshot: Snapshot, past: NDArray[np.int64], scored: ScoredTasks, exclude_patients: bool
) -> dict[str, NDArray[Any]]:
    standardizer = scored.prepared.standardizer
    if standardizer is None:
        raise SourceError("A run without its standardisation cannot be kept. Score again.")
    instances = snapshot.instances.iloc[past]
    return {
        "center": standardizer.center_,
        "scale": standardizer.scale_,
        "is_elapsed": standardizer.is_elapsed_,
        "kept_features": scored.prepared.kept_features,
        "kept_weights": scored.prepared.kept_weights,
        "feature_keys": feature_keys(snapshot),
        "task_keys": snapshot.tasks["task_key"].to_numpy(dtype=np.str_),
        "past_patients": instances["patient_id"].to_numpy(dtype=np.str_),
        "past_times": instances["snapshot_at"].to_numpy(dtype="datetime64[us]"),
        "exclude_patients": np.array(exclude_patients),
        **({} if scored.shared is None else scored.shared.stored()),
    }


def open_model(folder: Path, parameters: ScoringParameters) -> StoredModel:
    """Open what a run learned; raise SourceError if it is not there any more, or damaged."""
    try:
        with arrays_of(folder / _SHARED) as arrays:
            shared = dict(arrays)
        standardizer = SparseStandardizer.restored(
            parameters.clip, shared["center"], shared["scale"], shared["is_elapsed"]
        )
        patients = shared["past_patients"] if shared["exclude_patients"] else None
        past = StoredPast(
            standardizer,
            shared["kept_features"],
            shared["kept_weights"],
            parameters,
            patients,
            SharedModel.of_stored(shared),
        )
        return StoredModel(
            folder, past, shared["feature_keys"], shared["task_keys"], shared["past_patients"], shared["past_times"]
        )
    except (OSError, KeyError, ValueError):
        raise SourceError(
            f"{folder}: what the run learned is not kept any more, or damaged. Score again (--from-run none)."
        ) from None


def discard_old(parent: Path, keep: Collection[str]) -> None:
    """Remove all folders but those named, and what a killed job left behind."""
    for folder in parent.glob("*"):
        if folder.name not in keep:
            shutil.rmtree(folder, ignore_errors=True)
