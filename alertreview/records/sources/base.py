"""What every health record source offers: chunks of rows with codes, and what is known beside them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from core.events.mapping import SiteMapping
from core.events.plausibility import Finding

CHUNK_ROWS = 500_000
DOCUMENTS = {".md", ".rst", ".html", ".htm", ".pdf", ".cff"}
ABOUT = {"license", "licence", "copying", "readme", "changelog", "changes", "citation", "sha256sums", "md5sums"}
"""Names of files that come with a published data set and hold no record of it."""


@dataclass(frozen=True)
class Source:
    """One source, opened for one mapping and not read yet."""

    name: str  # for people: the name of the folder or file, never its path
    # Rows as `core.events.reading.StreamBuilder.add` takes them, read as they are asked for.
    chunks: Iterator[pd.DataFrame]
    n_rows: int = 0  # how many rows there are, for the progress bar; 0 when unknown
    descriptions: dict[str, str] = field(default_factory=dict)  # code to text
    splits: dict[str, str] = field(default_factory=dict)  # subject (as text) to "train", "tuning" or "held_out"
    simulated: bool = False  # the source says that no real patient stands behind it
    remarks: list[str] = field(default_factory=list)  # sentences for the import report; may grow while chunks are read
    # For the checks of the import; may grow while chunks are read.
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Format:
    """A format of health records; `alertreview.records.sources.formats.FORMATS` lists them."""

    name: str  # as ``--format`` and the key ``format`` of a mapping spell it
    fits: Callable[[Path | str], bool]  # whether a file, folder, archive or URL looks like this format
    # Opens a source; ``schema`` is that of a database, None else.
    read: Callable[[Path | str, SiteMapping, str | None], Source]
    # Counts the codes of a source, of a large one in its first rows, as the mapping spells them.
    code_counts: Callable[[Path | str, SiteMapping, str | None], Counter[str]]


def microseconds(column: pa.Array) -> pd.Series:
    """Convert timestamps or dates of any unit to microseconds, with their zone.

    Raise ArrowInvalid when a time lies outside the calendar.
    """
    zone = getattr(column.type, "tz", None)
    # Only nanoseconds may lose digits; seconds that overflow must not wrap around.
    exact = column.cast(pa.timestamp("us", tz=zone), safe=getattr(column.type, "unit", "") != "ns")
    return pd.Series(exact.to_pandas()).astype(f"datetime64[us, {zone}]" if zone else "datetime64[us]")


def site_time(times: pd.Series, mapping: SiteMapping) -> pd.Series:
    """Read times as site time without a zone; times without a zone are site time, or UTC if the mapping says so."""
    zone = getattr(times.dtype, "tz", None)
    if zone is None and mapping.naive_times == "utc":
        times = times.dt.tz_localize("UTC")
        zone = "UTC"
    if zone is not None:
        times = times.dt.tz_convert(mapping.timezone).dt.tz_localize(None)
    return times.astype("datetime64[us]")


def counted_codes(chunks: Iterable[pd.DataFrame]) -> Counter[str]:
    """Count the codes of some chunks."""
    counts: Counter[str] = Counter()
    for chunk in chunks:
        counts.update(pd.Series(chunk["code"]).astype("str").value_counts().to_dict())
    return counts


def unread(names: list[str], remarks: list[str]) -> list[Finding]:
    """Return the finding that names the files of a source that were not read; a remark names mere documents."""
    if documents := [name for name in names if is_document(name)]:
        remarks.append(f"Not read, because they hold no records: {', '.join(documents)}.")
    doubtful = [name for name in names if not is_document(name)]
    return [Finding("unread_files", len(doubtful), 0, tuple(doubtful))]


def is_document(name: str) -> bool:
    """Return whether a file is about a source instead of part of it, such as a licence or a list of checksums."""
    path = PurePosixPath(name.lower())
    return path.suffix in DOCUMENTS or (path.stem in ABOUT and path.suffix in {"", ".txt"})


def row_identity(columns: dict[str, object]) -> npt.NDArray[np.int64]:
    """Return a number for each row that only equal rows share, never 0: the identity of an order that has no other."""
    hashes = pd.util.hash_pandas_object(pd.DataFrame(columns), index=False).to_numpy().view(np.int64)
    return np.where(hashes == 0, 1, hashes)


def shared_stays(stays: pd.DataFrame) -> Finding:
    """Count the different `number` of stays under which more than one `patient` has one."""
    return Finding("shared_stays", int((stays.groupby("number")["patient"].nunique() > 1).sum()))


def lacking(columns_of: Mapping[str, Collection[str]]) -> list[str]:
    """Say which files of a source lack columns that others have; `columns_of` are the columns read, by file."""
    every = set[str]().union(*columns_of.values())
    files: dict[str, list[str]] = {}
    for file, columns in columns_of.items():
        if missing := ", ".join(sorted(every.difference(columns))):
            files.setdefault(missing, []).append(file)
    return [
        f"{', '.join(names[:3])}{f' and {len(names) - 3:,} more' if names[3:] else ''}: without the column {missing} "
        "of the other files; what would stand there is missing."
        for missing, names in files.items()
    ]
