"""Text tables (CSV) of any encoding, plain, gzipped or in a zip archive, read in batches with every cell as text."""

import bz2
import codecs
import gzip
import io
import lzma
import re
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from alertreview.records.sources.base import is_document
from core.errors import SourceError
from core.events.spelling import shape_of, tidy

BLOCK_BYTES = 8 << 20
MAX_MEMBER_BYTES = 64 << 30
MAX_RATIO = 200
"""Text shrinks 5 to 20 times; what shrinks 200 times is a bomb."""
_BOMB_BYTES = 64 << 20
"""Small members may shrink as they like."""
_PACKED: dict[str, Callable[[IO[bytes]], AbstractContextManager[object]]] = {
    ".gz": lambda stream: gzip.GzipFile(fileobj=stream),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda stream: pa.CompressedInputStream(stream, "zstd"),
    ".lz4": lambda stream: pa.CompressedInputStream(stream, "lz4"),
}
"""Suffixes of packed files, and what unpacks them."""
_ARCHIVES = (".zip", ".tar", ".tgz", ".tbz2", ".txz", ".7z", ".rar", *(f".tar{each}" for each in _PACKED))
_PACKED_MARKS = (
    b"\x1f\x8b",
    b"\x1f\x9d",
    b"BZh",
    b"PK\x03\x04",
    b"7z\xbc\xaf",
    b"Rar!",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
)
_TAR = slice(257, 262)
_DELIMITERS = (",", "\t", ";", "|")


@dataclass(frozen=True)
class TextFile:
    """One text table somewhere."""

    name: str  # for people: "cdm.zip, PERSON.csv"
    stem: str  # file name without folder and suffixes, in lower case: "person"
    opener: Callable[[], AbstractContextManager[IO[bytes]]]  # opens the bytes, decompressed
    n_bytes: int = 0  # compressed size; 0 when unknown


@dataclass(frozen=True)
class Layout:
    """What was found out about a text table before reading it."""

    columns: tuple[str, ...]  # as the header has them, trimmed; a name that begins with NUL stands for an empty one
    encoding: str
    delimiter: str
    n_lines: int = 0  # lines of the file; 0 when not counted


def _stem(name: str) -> str:
    stem = PurePosixPath(name).name.lower()
    for suffix in (*_PACKED, ".csv", ".tsv", ".txt"):
        stem = stem.removesuffix(suffix)
    return stem


def without_packing(name: str) -> str:
    """Return a file name in lower case without the suffix of what packed it."""
    lower = name.lower()
    return lower.removesuffix(next((each for each in _PACKED if lower.endswith(each)), ""))


def is_text_table(name: str) -> bool:
    """Return whether a file name looks like a text table."""
    return not is_document(name) and without_packing(name).endswith((".csv", ".tsv", ".txt"))


def is_ignored(path: PurePath) -> bool:
    """Return whether a path inside a source is ignored: a part begins with a point, an underscore or ``~$``."""
    return any(part.startswith((".", "_", "~$")) for part in path.parts)


def unread_files(source: Path, wanted: Callable[[str], bool] = is_text_table) -> list[str]:
    """Return the names of files of a folder or archive, sorted, that are neither wanted nor ignored by `is_ignored`."""
    if source.is_dir():
        found = (path for path in source.rglob("*") if path.is_file() or _is_lost(path, source))
        paths = [path.relative_to(source) for path in found]
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as opened:
            paths = [Path(info.filename) for info in opened.infolist() if not info.is_dir()]
    else:
        paths = []
    return sorted(
        str(path)
        for path in paths
        if not is_ignored(path) and not (wanted(path.name) and (source.is_file() or (source / path).is_file()))
    )


def _is_lost(path: Path, source: Path) -> bool:
    """Return whether a link leads nowhere, or to a folder outside: it is not followed."""
    return path.is_symlink() and not (path.exists() and path.resolve().is_relative_to(source.resolve()))


def text_files(source: Path, wanted: Callable[[str], bool] = is_text_table) -> list[TextFile]:
    """Find the text tables of a folder or zip archive, by name, or the single file.

    `is_ignored` files and the droppings of archivers are left out. Raise SourceError when there is nothing, the only
    tables are in archives further inside, the archive is damaged, or a member is a link, leaves the archive, or is a
    bomb.
    """
    if source.is_dir():
        visible = _visible(source)
        paths = [path for path in visible if wanted(path.name)]
        if not paths:
            refuse_archives(source)
        outside = [path for path in paths if not path.resolve().is_relative_to(source.resolve())]
        if outside:
            raise SourceError(f"{outside[0]}: is a link that leads out of the folder. Copy the file itself.")
        return [_plain(path, str(path.relative_to(source))) for path in paths if path.is_file()]
    if not source.is_file():
        raise SourceError(f"{source}: there is no such file or folder. Check the path.")
    if zipfile.is_zipfile(source):
        return _members(source, wanted)
    if source.suffix.lower() == ".zip":
        raise SourceError(f"{source}: is not a complete zip archive. Copy it again from its origin.")
    return [_plain(source, source.name)]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not is_ignored(path.relative_to(folder)))


def refuse_archives(source: Path, names: Sequence[str] = ()) -> None:
    """Raise an error with what to do where a folder, or an archive of these names, has archives instead of tables."""
    inside = names or [str(path.relative_to(source)) for path in _visible(source)]
    archives = [name for name in inside if name.lower().endswith(_ARCHIVES)]
    if archives:
        more = f" and {len(archives) - 1} more" if archives[1:] else ""
        advice = "Unpack it, and give what was inside."
        if source.is_dir() and archives[0].lower().endswith(".zip"):
            advice = "Give the path of the archive itself."
        raise SourceError(f"{source}: holds no table, only the archive {archives[0]}{more}. {advice}")


def _plain(path: Path, name: str) -> TextFile:
    @contextmanager
    def opener() -> Iterator[IO[bytes]]:
        with path.open("rb") as stream, _unpacked(stream, path.name, path.stat().st_size) as text:
            yield text

    return TextFile(name, _stem(name), opener, path.stat().st_size)


@contextmanager
def _unpacked(stream: IO[bytes], name: str, n_packed: int) -> Iterator[IO[bytes]]:
    opened = next((opener for suffix, opener in _PACKED.items() if name.lower().endswith(suffix)), None)
    if opened is None:
        yield stream
    else:
        with (
            opened(stream) as text,
            io.BufferedReader(_Bounded(cast(IO[bytes], text), name, n_packed), 1 << 20) as read,
        ):
            yield read


class _Bounded(io.RawIOBase):
    """What is unpacked, up to `MAX_RATIO` times what was packed."""

    def __init__(self, stream: IO[bytes], name: str, n_packed: int) -> None:
        self._stream, self._name = stream, name
        self._left = max(_BOMB_BYTES, MAX_RATIO * n_packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._left -= len(block)
        if self._left < 0:
            raise SourceError(
                f"{self._name}: unpacks to more than {MAX_RATIO} times its size. Unpack it yourself and check it."
            )
        buffer[: len(block)] = block
        return len(block)


def require_no_bomb(path: Path, n_unpacked: int) -> None:
    """Raise SourceError for a file that would unpack, as it says itself, to more than `MAX_RATIO` times its size."""
    n_bytes = path.stat().st_size
    if n_unpacked > max(_BOMB_BYTES, MAX_RATIO * n_bytes):
        raise SourceError(
            f"{path}: unpacks to {n_unpacked // max(n_bytes, 1):,} times its size; {MAX_RATIO} are allowed. "
            "Unpack it yourself and check it."
        )


def _members(archive: Path, wanted: Callable[[str], bool]) -> list[TextFile]:
    try:
        with zipfile.ZipFile(archive) as opened:
            infos = opened.infolist()
    except (zipfile.BadZipFile, OSError):
        raise SourceError(f"{archive}: is not a complete zip archive. Copy it again from its origin.") from None
    out, others = [], []
    for info in infos:
        _check_member(archive, info)
        path = PurePosixPath(info.filename)
        if info.is_dir() or is_ignored(path):
            continue
        if wanted(path.name):
            out.append(_member(archive, info))
        else:
            others.append(info.filename)
    require_no_bomb(archive, sum(info.file_size for info in infos))
    if not out:
        refuse_archives(archive, others)
    return sorted(out, key=lambda file: file.name)


def _check_member(archive: Path, info: zipfile.ZipInfo) -> None:
    path = PurePosixPath(info.filename.replace("\\", "/"))
    rule = ""
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0:1]:
        rule = "leads out of the archive"
    elif stat.S_ISLNK(info.external_attr >> 16):
        rule = "is a link"
    elif info.flag_bits & 1:
        rule = "is encrypted"
    elif info.file_size > MAX_MEMBER_BYTES:
        rule = f"would unpack to {info.file_size >> 30} GB; {MAX_MEMBER_BYTES >> 30} GB are allowed"
    elif info.file_size > _BOMB_BYTES and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        rule = f"unpacks to {info.file_size // max(info.compress_size, 1)} times its size; {MAX_RATIO} are allowed"
    if rule:
        raise SourceError(f"{archive.name}, {info.filename}: {rule}. Unpack the archive yourself and check it.")


def _member(archive: Path, info: zipfile.ZipInfo) -> TextFile:
    @contextmanager
    def opener() -> Iterator[IO[bytes]]:
        with (
            zipfile.ZipFile(archive) as opened,
            opened.open(info) as packed,
            _unpacked(packed, info.filename, info.compress_size) as text,
        ):
            yield text

    return TextFile(f"{archive.name}, {info.filename}", _stem(info.filename), opener, info.compress_size)


_MOST_OF_A_HEADER = 1 << 20
_GUESSED = ("cp1252", "latin-1")
_NOT_IN_WINDOWS = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")


def guesses(files: Iterable[tuple[TextFile, Layout]]) -> list[str]:
    """Say in a sentence each which files are no Unicode, so that their encoding was guessed."""
    return [
        f"{file.name} is not UTF-8; it was read as {layout.encoding.replace('cp', 'Windows-')}. Check its accents."
        for file, layout in files
        if layout.encoding in _GUESSED
    ]


def look_at(file: TextFile) -> Layout:
    """Find encoding, delimiter and columns; reads the whole file once, block by block.

    An encoding of `_GUESSED` is a guess, made when the bytes are no UTF-8. Raise SourceError when the file is empty,
    damaged, a bomb, binary, or has no or a doubtful header.
    """
    try:
        encoding, head, n_lines = _encoding(file)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError) as error:
        raise SourceError(f"{file.name}: cannot be read to its end ({type(error).__name__}). Copy it again.") from None
    text = head.decode(encoding, errors="replace").lstrip("\ufeff")
    first = text.splitlines()[0] if text.strip() else ""
    if not first.strip():
        what = "its first line is empty; it" if text.strip() else "is empty; its first line"
        raise SourceError(f"{file.name}: {what} must name the columns.")
    if len(head) == _MOST_OF_A_HEADER and first == text:
        raise SourceError(f"{file.name}: its first line has a million characters and names no columns. Give a table.")
    if first.strip().strip('"').lower().startswith("sep="):
        raise SourceError(
            f"{file.name}: its first line tells a spreadsheet the delimiter ({first.strip()}). Remove it: the first "
            "line must name the columns."
        )
    delimiter = max(_DELIMITERS, key=first.count)
    columns = tuple(tidy(name.strip().strip('"')) for name in first.split(delimiter))
    for name, times in Counter(name.lower() for name in columns).items():
        if name and times > 1:
            raise SourceError(f"{file.name}: the column {name!r} appears twice. Rename one of them.")
    # Columns without a name are never asked for; the reader wants every name to be different.
    return Layout(tuple(name or f"\0{i}" for i, name in enumerate(columns)), encoding, delimiter, n_lines)


def _encoding(file: TextFile) -> tuple[str, bytes, int]:
    """Return the encoding, the first bytes and the number of lines."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    head, encoding, n_lines, last = b"", "utf-8", 0, b""
    with file.opener() as stream:
        while block := stream.read(_MOST_OF_A_HEADER):
            if not head:
                end = block.find(b"\n")
                head = block if end < 0 else block[: max(1 << 16, end + 2)]
                _refuse_packed(file, head)
            if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
                return "utf-32", head, 0
            if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16", head, 0
            if b"\0" in block:
                raise SourceError(
                    f"{file.name}: holds NUL bytes and is not text. Export the table again as CSV in UTF-8."
                )
            n_lines, last = n_lines + block.count(b"\n"), block[-1:]
            if encoding == "utf-8":
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    encoding = _GUESSED[0]
            if encoding == _GUESSED[0] and any(byte in block for byte in _NOT_IN_WINDOWS):
                encoding = _GUESSED[1]
    return encoding, head, n_lines + (n_lines > 0 and last != b"\n")


def _refuse_packed(file: TextFile, head: bytes) -> None:
    if head.startswith(_PACKED_MARKS) or head[_TAR] == b"ustar":
        raise SourceError(
            f"{file.name}: is packed, or packed twice, in a way that is not read. Unpack it; files that end in "
            f"{', '.join(_PACKED)} and zip archives are unpacked as they are read."
        )


def batches(file: TextFile, layout: Layout, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield some columns with the number of the first row (the header is 1), every cell as text.

    Empty and NULL are null. Raise SourceError, naming file and row, when a row has too few or too many cells, or a
    quote that is not closed makes a cell of what follows.
    """
    wrong: list[csv.InvalidRow] = []
    row = 2
    try:
        with file.opener() as stream:
            for batch in _reader(stream, layout, columns, wrong):
                yield row, batch
                row += batch.num_rows
        if layout.n_lines >= row:
            _refuse_swallowed(file, layout)
    except UnicodeError:
        raise SourceError(
            f"{file.name}: after row {row:,} comes what is not {layout.encoding.upper()}; the file is cut short or "
            "damaged. Export it again, best in UTF-8."
        ) from None
    except (pa.ArrowException, OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError) as error:
        if wrong:
            first = wrong[0]
            where = f"row {first.number}" if first.number else f"a row after row {row:,}"
            raise SourceError(
                f"{file.name}: {where} has {first.actual_columns} cells, the header {first.expected_columns}. "
                "Correct the row."
            ) from None
        if "Empty CSV" in str(error) or "skip initial 1 row" in str(error):
            return
        what = type(error).__name__
        raise SourceError(f"{file.name}: cannot be read after row {row:,} ({what}). Export it again.") from None


def _refuse_swallowed(file: TextFile, layout: Layout) -> None:
    """Raise SourceError if a cell holds the beginning of another row: a line that begins like the row itself."""
    row = 2
    with file.opener() as stream:
        for batch in _reader(stream, layout, list(layout.columns), []):
            for column in batch.columns:
                broken = pc.fill_null(pc.match_substring(column, "\n"), False)
                for at in np.flatnonzero(broken.to_numpy(zero_copy_only=False)).tolist():
                    key = _likeness(batch.columns[0][at].as_py() or "")
                    lines = [line.split(layout.delimiter) for line in column[at].as_py().splitlines()[1:]]
                    if key and any(len(cells) > 2 and _likeness(cells[0]) == key for cells in lines):
                        raise SourceError(
                            f"{file.name}: a cell of row {row + at:,} holds the beginning of another row; a quote is "
                            'not closed. Close it, or write "" for a quote inside a text.'
                        )
            row += batch.num_rows


def _likeness(text: str) -> str:
    return re.sub(r"[^\W\d_]", "a", shape_of(text.strip()))


def _reader(
    stream: IO[bytes], layout: Layout, columns: list[str], wrong: list[csv.InvalidRow]
) -> csv.CSVStreamingReader:
    def refuse(row: csv.InvalidRow) -> str:
        wrong.append(row)
        return "error"

    return csv.open_csv(
        pa.PythonFile(stream, mode="r"),
        read_options=csv.ReadOptions(
            encoding=layout.encoding,
            use_threads=False,
            block_size=BLOCK_BYTES,
            column_names=list(layout.columns),
            skip_rows=1,
        ),
        parse_options=csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=refuse),
        convert_options=csv.ConvertOptions(
            include_columns=columns,
            column_types=dict.fromkeys(columns, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            null_values=["", "NULL", "\\N"],
        ),
    )
