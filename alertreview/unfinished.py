"""What an interrupted scoring has already finished, task by task, so that the next one goes on from there."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alertreview import __version__
from alertreview.splits import FoldOfRow
from core.multitask import ScoringParameters
from core.task_evidence import Evidence

if TYPE_CHECKING:
    from alertreview.scoring import ScoringRequest


class _FinishedTasks(Mapping[int, Evidence]):
    """Evidence of a fold's finished tasks, read from disk one task at a time."""

    def __init__(self, folder: Path) -> None:
        self._files = {int(path.stem): path for path in folder.glob("*.npz")}

    def __getitem__(self, task: int) -> Evidence:
        with np.load(self._files[task], allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def __iter__(self) -> Iterator[int]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


class UnfinishedScoring:
    """Folder of finished tasks of one scoring: same data, parameters, seed, split and version give the same folder.

    Parameters
    ----------
    folder : Path
        Where unfinished scorings lie.
    content_hash : str
        Of the snapshot.
    request : ScoringRequest
        What is scored.
    parameters : ScoringParameters
        With what.
    folds : int16 array of shape (n_instances,)
        How instances are parted.
    """

    def __init__(
        self,
        folder: Path,
        content_hash: str,
        request: "ScoringRequest",
        parameters: ScoringParameters,
        folds: FoldOfRow,
    ) -> None:
        key = json.dumps(
            [__version__, content_hash, sorted(request.scorers), request.seed, asdict(parameters)], sort_keys=True
        )
        digest = hashlib.sha256(key.encode() + folds.tobytes()).hexdigest()[:16]
        self._folder = folder / digest
        self._parent = folder

    def finished(self, fold: int) -> Mapping[int, Evidence]:
        """Give the finished tasks of a fold by task column."""
        return _FinishedTasks(self._folder / str(fold))

    def keep(self, fold: int) -> Callable[[int, Evidence], None]:
        """Give a function that keeps a finished task: written under another name and renamed, so never half there."""
        folder = self._folder / str(fold)
        folder.mkdir(parents=True, exist_ok=True)

        def keep_task(task: int, evidence: Evidence) -> None:
            temporary = folder / f"{task}.part"
            with temporary.open("wb") as file:
                np.savez(file, **evidence)  # type: ignore[arg-type]
            temporary.replace(folder / f"{task}.npz")

        return keep_task

    def discard(self) -> None:
        """Remove every unfinished scoring of the site: a newer run is published."""
        shutil.rmtree(self._parent, ignore_errors=True)
