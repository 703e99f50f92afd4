"""The three UCI data sets of the paper: where their files come from, what they must hold, and how they are read."""

import hashlib
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from alertreview.files import write_bytes
from core.errors import InvalidInputError, SourceError
from core.validation import FloatArray

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
    """Read the numbers of a file; what stands in quotation marks is a name, and rows with a "?" are left out."""
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
