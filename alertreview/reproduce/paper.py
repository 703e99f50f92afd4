"""What the repeated experiments share: runs kept one by one, tables for people and programs, pages with figures."""

import hashlib
import json
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from alertreview import __version__
from alertreview.files import write_bytes
from alertreview.reports.blocks import Block, Document, Paragraph, Table
from alertreview.reports.documents import write_html
from alertreview.settings import Progress
from core.errors import FewerNodesThanNeighboursWarning, NearlyDeadGraphWarning, SourceError

Row: TypeAlias = dict[str, Any]
SIMULATED: Final = "Simulated data: no real patient stands behind these figures."


@dataclass(frozen=True)
class Options:
    """Settings of every experiment."""

    runs: int
    seed: int  # with the number of the run the seed of everything drawn in it
    jobs: int  # runs side by side; results do not depend on it
    out: Path  # folder for results; finished runs in it are not repeated


@dataclass(frozen=True)
class Spill:
    """Finished runs of one experiment, one file each, so that an interrupted experiment goes on where it stopped."""

    folder: Path
    settings: Mapping[str, Any]  # what results depend on; runs made by others are not taken for these

    @property
    def _mark(self) -> str:
        text = json.dumps({"version": __version__, **self.settings}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _path(self, run: int) -> Path:
        return self.folder / f"run-{run:04d}.json"

    def read(self, run: int) -> list[Row] | None:
        """Return the rows of a finished run; None if it is missing or has other settings."""
        try:
            kept = json.loads(self._path(run).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("settings") != self._mark:
            return None
        rows: list[Row] = kept["rows"]
        return rows

    def keep(self, run: int, rows: Sequence[Row]) -> None:
        """Save the rows of a finished run, completely or not at all."""
        write_bytes(self._path(run), json.dumps({"settings": self._mark, "rows": list(rows)}).encode())


def make_folder(folder: Path) -> None:
    """Make a folder for results; raise SourceError when it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"{folder} cannot be made ({error.strerror}). Pass --out another folder.") from error


def collect_runs(
    work: Callable[[int], list[Row]], options: Options, name: str, settings: Mapping[str, Any], progress: Progress
) -> list[Row]:
    """Do the unfinished runs and return the rows of all, with their number as "run".

    `work` returns the rows of a run; it must go to other processes, and depend on nothing but its number. The settings
    are what results depend on beside the seed and the version of the program.
    """
    spill = Spill(options.out / "runs" / name, {"experiment": name, "seed": options.seed, **settings})
    make_folder(spill.folder)
    found = {run: rows for run in range(options.runs) if (rows := spill.read(run)) is not None}
    progress(len(found), options.runs)
    waiting = [run for run in range(options.runs) if run not in found]
    parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered", batch_size=1)
    for run, rows in parallel(joblib.delayed(_alone)(work, run) for run in waiting):
        spill.keep(run, rows)
        found[run] = rows
        progress(len(found), options.runs)
    return [{"run": run, **row} for run in range(options.runs) for row in found[run]]


def _alone(work: Callable[[int], list[Row]], run: int) -> tuple[int, list[Row]]:
    """Return one run with one numerical thread, so that its time does not depend on its neighbours."""
    with quiet_graphs():
        return run, work(run)


@contextmanager
def quiet_graphs() -> Iterator[None]:
    """Use one numerical thread, without warnings of graphs with vanishing edges."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", NearlyDeadGraphWarning)
        warnings.simplefilter("ignore", FewerNodesThanNeighboursWarning)
        yield


@dataclass(frozen=True)
class Grid:
    """A table of an experiment."""

    name: str  # for files
    caption: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def lines(self) -> list[str]:
        """Return the table as text: first column to the left, the others to the right."""
        widths = [max(len(row[i]) for row in (self.header, *self.rows)) for i in range(len(self.header))]
        made = [self.caption]
        for row in (self.header, *self.rows):
            first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            made.append("  ".join((first.strip().ljust(widths[0]), *rest)).rstrip())
        return made

    def markdown(self) -> str:
        """Return the table for a document in Markdown."""
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + f"\n\n{self.caption}.\n"

    def block(self) -> Table:
        """Return the table as a block of a document."""
        return Table(self.caption, self.header, tuple(self.rows), frozenset(range(1, len(self.header))))


@dataclass(frozen=True)
class Results:
    """What an experiment found."""

    name: str  # for files: "synthetic", "uci", "sensitivity", "scaling"
    title: str
    explanation: str  # what was done, in sentences
    simulated: bool
    rows: list[Row]  # one for each run and thing measured
    grids: tuple[Grid, ...]
    figures: tuple[Block, ...] = ()
    summary: dict[str, Any] = field(default_factory=dict)  # for programs

    def lines(self) -> list[str]:
        """Return the tables as text."""
        made = [self.title] + ([SIMULATED] if self.simulated else [])
        for grid in self.grids:
            made += ["", *grid.lines()]
        return made

    def write(self, options: Options) -> list[Path]:
        """Write CSV (every run), JSON (summary), HTML (tables and figures) and Markdown (tables); give the paths."""
        about = {
            "experiment": self.name,
            "explanation": self.explanation,
            "simulated": self.simulated,
            "runs": options.runs,
            "seed": options.seed,
            "alertreview": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        }
        tables = {grid.name: {"header": grid.header, "rows": grid.rows} for grid in self.grids}
        page = Document(
            title=self.title,
            subtitle=f"{options.runs} runs, seed {options.seed}, alertreview {__version__}",
            banner=SIMULATED if self.simulated else "",
            blocks=(Paragraph(self.explanation), *(grid.block() for grid in self.grids), *self.figures),
            footer=f"Made by: alertreview reproduce {self.name} --runs {options.runs} --seed {options.seed}",
        )
        content = {
            ".csv": pd.DataFrame(self.rows).assign(simulated=self.simulated).to_csv(index=False, lineterminator="\n"),
            ".json": json.dumps({"about": about, "summary": self.summary, "tables": tables}, indent=1),
            ".html": write_html(page),
            ".md": "\n".join(grid.markdown() for grid in self.grids),
        }
        paths = []
        for ending, text in content.items():
            paths.append(options.out / f"{self.name}{ending}")
            write_bytes(paths[-1], text.encode())
        return paths


def mean_and_spread(values: Sequence[float], *, percent: bool = True) -> str:
    """Return "74.5 (1.5)": mean and standard deviation between runs; the latter a dash for one run."""
    numbers = np.asarray(values, dtype=np.float64) * (100 if percent else 1)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) == 0:
        return "–"
    spread = f"{numbers.std(ddof=1):.1f}" if len(numbers) > 1 else "–"
    return f"{numbers.mean():.1f} ({spread})"


def difference_and_error(first: Sequence[float], second: Sequence[float]) -> str:
    """Return "+1.3 ± 0.2": mean paired difference over runs and its standard error, in per cent."""
    difference = 100 * (np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64))
    error = f"{difference.std(ddof=1) / np.sqrt(len(difference)):.1f}" if len(difference) > 1 else "–"
    return f"{difference.mean():+.1f} ± {error}"
