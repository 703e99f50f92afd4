"""The paper's table on UCI data: agreement with the true score after 3 % of the labels were switched."""

import hashlib
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from alertreview.files import write_bytes
from alertreview.reproduce.paper import Options, Results, Row, collect_runs
from alertreview.reproduce.tables import by_method, duels, measure, summarise
from alertreview.settings import Progress
from core.errors import InvalidInputError, SourceError
from core.scoring.variants import DETECTORS
from core.simulation.paper_points import FLIPPED_SHARE
from core.validation import FloatArray, IntArray

ARCHIVE: Final = "https://archive.ics.uci.edu/ml/machine-learning-databases"
DOWNLOAD_SECONDS: Final = 30


@dataclass(frozen=True)
class UciFile:
    """One file of the UCI archive."""

    data_set: str  # name in tables
    name: str  # name of the file
    folder: str  # its folder in the archive
    sha256: str  # of the text with line ends and trailing blanks normalised: copies differ in nothing else
    separator: str | None  # between columns; None for blanks
    n_header_lines: int
    response: int  # column of the response variable

    @property
    def address(self) -> str:
        """Where the archive has the file."""
        return f"{ARCHIVE}/{self.folder}/{self.name}"


UCI_FILES: Final = (
    UciFile(
        "Wine Quality (red)",
        "winequality-red.csv",
        "wine-quality",
        "6b2911cfa622198d63f62c9d49825de3804d58ac90ab48eba0c5be0087599394",
        ";",
        1,
        -1,
    ),
    UciFile(
        "Housing",
        "housing.data",
        "housing",
        "e3e36f7b9e5435f9eb8320e106aebad00031fefa3064527da0c71dec59e49b76",
        None,
        0,
        -1,
    ),
    UciFile(
        "Auto MPG",
        "auto-mpg.data",
        "auto-mpg",
        "41d02e24b4997055a521834546bfe8581bdf72f15495ca18c78abe4b2ff461ed",
        None,
        0,
        0,
    ),
)


@dataclass(frozen=True)
class Responses:
    """A data set with a response variable."""

    name: str
    X: FloatArray  # shape (n, n_features)
    response: FloatArray  # shape (n,)
    n_left_out: int  # rows with a missing value


def read_uci(data: Path | None, downloads: Path) -> tuple[Responses, ...]:
    """Read the three data sets from a folder, else from earlier downloads, else from the archive.

    Raise SourceError when a file is not there and cannot be fetched, or is not the file of the archive.
    """
    if data is not None and not data.is_dir():
        raise SourceError(f"{data} is not a folder. Pass --data the folder that holds {_names()}.")
    return tuple(parse(file, _text(file, data, downloads)) for file in UCI_FILES)


def _names() -> str:
    return ", ".join(file.name for file in UCI_FILES)


def _text(file: UciFile, data: Path | None, downloads: Path) -> str:
    for folder in filter(None, (data, downloads)):
        path = folder / file.name
        if path.is_file():
            return checked(file, path.read_bytes(), str(path))
    content = _download(file, data)
    text = checked(file, content, file.address)
    downloads.mkdir(parents=True, exist_ok=True)
    write_bytes(downloads / file.name, content)
    return text


def _download(file: UciFile, data: Path | None) -> bytes:
    try:
        # A fixed https address, whose content is checked against a fixed sum.
        with urllib.request.urlopen(file.address, timeout=DOWNLOAD_SECONDS) as answer:  # noqa: S310
            content: bytes = answer.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        where = f"is not in {data} and" if data else "is not on this machine and"
        raise SourceError(
            f"{file.name} {where} could not be downloaded from {file.address} ({reason}). "
            f"Fetch {_names()} on a machine that can, put them into one folder and pass --data FOLDER."
        ) from error
    return content


def fingerprint(text: str) -> str:
    """SHA-256 of a text with line ends and trailing blanks normalised."""
    lines = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
    return hashlib.sha256(lines.encode()).hexdigest()


def checked(file: UciFile, content: bytes, where: str) -> str:
    """Return the text of a file; raise SourceError if it is another than the archive's."""
    text = content.decode("utf-8", errors="replace")
    found = fingerprint(text)
    if found != file.sha256:
        raise SourceError(
            f"{where} is not the {file.name} that these results are about: its SHA-256 is {found[:12]}..., "
            f"expected {file.sha256[:12]}.... Fetch it again from {file.address}."
        )
    return text


def parse(file: UciFile, text: str) -> Responses:
    """Read the numbers of a file; what is in quotation marks is a name, and rows with a "?" are left out."""
    rows, n_left_out = [], 0
    for line in text.splitlines()[file.n_header_lines :]:
        cells = line.split('"')[0].split(file.separator)
        if "?" in cells:
            n_left_out += 1
        elif cells:
            rows.append(cells)
    try:
        table = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise InvalidInputError(
            f"{file.name} holds something that is not a number: {error}. Fetch it again."
        ) from error
    X = np.delete(table, file.response, axis=1)
    return Responses(file.data_set, X, table[:, file.response], n_left_out)


PAST_SHARE: Final = 2 / 3
PAPER: Final = {
    "QDA": ("75.1 (1.3)", "56.7 (1.5)", "65.9 (2.9)"),
    "SVM": ("75.0 (9.3)", "58.5 (4.4)", "37.1 (8.6)"),
    "1-class SVM": ("44.2 (1.9)", "27.2 (0.5)", "50.1 (3.5)"),
    "weighted k-NN": ("67.6 (1.4)", "44.4 (2.0)", "61.4 (2.3)"),
    "SoftHAD": ("74.5 (1.5)", "71.3 (3.2)", "72.6 (1.7)"),
}
"""The paper's table "UCI ML data sets": mean and what it calls variance."""
EXPLANATION: Final = (
    "The response is scaled to [-1, 1] over the whole data set; the label is +1 where it is 0 or more. Three per cent "
    "of all labels are switched; the true score is the distance between the scaled response and the label as it then "
    "stands. Two thirds of the instances, drawn again in each run, are the past; the others are scored. Features are "
    "standardised by the past."
)


@dataclass(frozen=True)
class Split:
    """Past and recent instances of one run."""

    past: tuple[FloatArray, FloatArray]
    recent: tuple[FloatArray, FloatArray]
    true_score: FloatArray
    flipped: np.ndarray[tuple[int], np.dtype[np.bool_]]


def split_responses(data: Responses, random: np.random.Generator) -> Split:
    """Switch labels and part the instances as the paper does, section "UCI ML Datasets"."""
    low, high = data.response.min(), data.response.max()
    scaled = 2 * (data.response - low) / (high - low) - 1
    n = len(scaled)
    flipped = np.zeros(n, dtype=bool)
    flipped[random.choice(n, round(FLIPPED_SHARE * n), replace=False)] = True
    y = np.where((scaled >= 0) ^ flipped, 1.0, -1.0)
    order: IntArray = random.permutation(n)
    n_past = round(PAST_SHARE * n)
    past, recent = order[:n_past], order[n_past:]
    spread = data.X[past].std(axis=0)
    X = (data.X - data.X[past].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Split((X[past], y[past]), (X[recent], y[recent]), np.abs(scaled - y)[recent], flipped[recent])


def one_run(data_sets: tuple[Responses, ...], seed: int, run: int) -> list[Row]:
    """Return the rows of one run: every method on every data set."""
    rows = []
    for place, data in enumerate(data_sets):
        split = split_responses(data, np.random.default_rng([seed, run, place]))
        rows += measure(data.name, split.past, split.recent, split.true_score, split.flipped)
    return rows


def reproduce_uci(options: Options, data: Path | None, progress: Progress) -> Results:
    """Repeat the paper's UCI table with every method, from a folder with the files; without it they are downloaded.

    Raise SourceError when a file is missing, cannot be fetched, or is another one.
    """
    data_sets = read_uci(data, options.out / "uci")
    names = [found.name for found in data_sets]
    work = partial(one_run, data_sets, options.seed)
    rows = collect_runs(work, options, "uci", {"methods": list(DETECTORS)}, progress)
    against, leads = duels(rows, names)
    left_out = "; ".join(f"{found.n_left_out} of {found.name}" for found in data_sets if found.n_left_out)
    return Results(
        name="uci",
        title="UCI data sets with switched labels",
        explanation=EXPLANATION + (f" Rows with a missing value are left out: {left_out}." if left_out else ""),
        simulated=False,
        rows=rows,
        grids=(by_method(rows, names, PAPER), against),
        summary={"methods": summarise(rows, names), "ahead_of_the_papers_baselines": leads},
    )
