"""Evidence of a scoring on disk, task by task: memory holds one task, and an interrupted scoring goes on from there."""

import hashlib
import json
import shutil
from collections.abc import ItemsView, Iterator, Mapping, MutableMapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from alertreview import __version__
from alertreview.files import arrays_of
from alertreview.scoring.splits import FoldOfRow
from core.errors import SourceError
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import Evidence
from core.scoring.scorers import SHARED

GROUP_WEIGHTS: Final = "group_weights"
"""Parameter of a run: learned weights of the groups of features, one mapping for each fold."""


class ArraysInFile(Mapping[str, NDArray[Any]]):
    """Arrays of an .npz file, each read when it is asked for."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __getitem__(self, name: str) -> NDArray[Any]:
        with arrays_of(self._file) as arrays:
            array: NDArray[Any] = arrays[name]
        return array

    def __iter__(self) -> Iterator[str]:
        with arrays_of(self._file) as arrays:
            return iter(list(arrays))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> ItemsView[str, NDArray[Any]]:
        """Return all arrays, for which the file is opened once."""
        with arrays_of(self._file) as arrays:
            return dict(arrays).items()


class StoredEvidence(MutableMapping[int, Evidence]):
    """Evidence by task column in a folder; a task is there as a whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, task: int) -> Evidence:
        if task not in self:
            raise KeyError(task)
        return ArraysInFile(self._file(task))

    def __setitem__(self, task: int, evidence: Evidence) -> None:
        temporary = self._folder / f"{task}.part"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                np.savez(file, **evidence)  # type: ignore[arg-type]
            temporary.replace(self._file(task))
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise SourceError(
                f"{self._folder} cannot be written ({error.strerror}). Free some space there and start the same "
                "command again: it keeps the tasks that are finished."
            ) from error

    def __delitem__(self, task: int) -> None:
        self._file(task).unlink()

    def __contains__(self, task: object) -> bool:
        return isinstance(task, int) and self._file(task).exists()

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(int(path.stem) for path in self._folder.glob("*.npz")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _file(self, task: int) -> Path:
        return self._folder / f"{task}.npz"


class ScoringCheckpoint:
    """Folder of finished tasks of one scoring: same data, parameters, seed, split and version give the same folder.

    Its name is a short digest of all that the evidence depends on; `left_out` are columns of tasks that are not scored.
    """

    def __init__(
        self,
        folder: Path,
        content_hash: str,
        request: "ScoringRequest",
        parameters: ScoringParameters,
        folds: FoldOfRow,
        left_out: tuple[int, ...] = (),
    ) -> None:
        key = json.dumps(
            [__version__, content_hash, sorted(request.scorers), request.seed, asdict(parameters), left_out],
            sort_keys=True,
        )
        self.name = hashlib.sha256(key.encode() + folds.tobytes()).hexdigest()[:16]
        self._folder = folder / self.name
        self._parent = folder

    def of_fold(self, fold: int) -> StoredEvidence:
        """Return the evidence of a fold: what is finished, and where the rest will be kept."""
        return StoredEvidence(self._folder / str(fold))

    def discard(self) -> None:
        """Remove every unfinished scoring of the site: a newer run is published."""
        shutil.rmtree(self._parent, ignore_errors=True)


@dataclass(frozen=True)
class ScoringRequest:
    """What somebody asked to be scored, and how."""

    scorers: tuple[str, ...] = (SHARED.key,)  # each gets its own lists; those of the first are shown first
    split: str = "auto"
    since: str | None = None
    n_nodes: int = 200
    n_graphs: int = 3
    seed: int = 1
    n_jobs: int | None = None
    learn_weights: bool = False
    """Whether the shared graph learns what each group of features weighs."""

    def parameters(self) -> ScoringParameters:
        """Return the parameters of the scorers."""
        return ScoringParameters(n_nodes=self.n_nodes, n_graphs=self.n_graphs, learn_group_weights=self.learn_weights)
