"""FHIR as JSON, one resource a line (ndjson) or in Bundles, packed or in a zip archive; errors name line or entry."""

import codecs
import json
import lzma
import re
import zipfile
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from alertreview.records.sources.text_tables import TextFile, text_files, without_packing
from core.errors import SourceError

JsonObject = dict[str, Any]

_ENDINGS = (".ndjson", ".jsonl")
_MAX_LINE_BYTES = 64 << 20
_MOST_EMPTY_LINES = 100_000
_HEAD = 4096
_BLOCK = 1 << 20
_BLANKS = re.compile(r"[ \t\r\n]*")
_ID = re.compile(rb'"id"\s*:\s*"([^"]*)"')
_ADVICE = "Export the file again."
_DAMAGES = (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)


def is_ndjson(name: str) -> bool:
    """Return whether a file name looks like one JSON object a line."""
    return without_packing(name).endswith(_ENDINGS)


def is_json(name: str) -> bool:
    """Return whether a file name looks like JSON of either kind."""
    return without_packing(name).endswith((*_ENDINGS, ".json"))


def fhir_files(source: Path) -> tuple[list[TextFile], list[str]]:
    """Find the ndjson files of a folder or zip archive, by name, or the single file, and JSON that has a resource.

    Return the names of other JSON files beside them. Raise SourceError as `text_files`.
    """
    if source.is_file() and not zipfile.is_zipfile(source) and not is_json(source.name):
        return [], []
    files = text_files(source, is_json)
    read = [file for file in files if is_ndjson(file.name) or _has_resource(file)]
    return read, [file.name for file in files if file not in read]


def _has_resource(file: TextFile) -> bool:
    try:
        with file.opener() as stream:
            return b'"resourceType"' in stream.read(_HEAD)
    except _DAMAGES:
        return True  # `entries` says what is wrong


def objects(file: TextFile) -> Iterator[tuple[int, JsonObject]]:
    """Yield the objects of a file with their lines, counted from 1, empty ones too.

    Raise SourceError, naming file, line and column, when a line is not a JSON object, is nested too deeply or too long,
    or the file is damaged.
    """
    number = n_empty = 0
    try:
        with file.opener() as stream:
            while line := stream.readline(_MAX_LINE_BYTES):
                number += 1
                if len(line) == _MAX_LINE_BYTES:
                    raise SourceError(
                        f"{file.name}: line {number:,} is longer than {_MAX_LINE_BYTES >> 20} MB. Each line is "
                        f"one resource. {_ADVICE}"
                    )
                if line.strip():
                    n_empty = 0
                    yield number, _parsed(line, file.name, number)
                    continue
                n_empty += 1
                if n_empty > _MOST_EMPTY_LINES:
                    raise SourceError(
                        f"{file.name}: line {number:,} is empty, like the {_MOST_EMPTY_LINES:,} before it. {_ADVICE}"
                    )
    except _DAMAGES as error:
        raise _damaged(file, f"line {number:,}", error) from None


def entries(file: TextFile) -> Iterator[Any]:
    """Yield the entries of the Bundles in a JSON file, and other resources as entries, one in memory at a time.

    Raise SourceError, naming file and entry, when the file is not JSON, or damaged.
    """
    n = 0
    try:
        with file.opener() as stream:
            text = _Json(stream)
            while mark := text.next_mark():
                if mark == "[":
                    text.take("[")
                    for _ in text.items("]"):
                        resource = text.value()
                        n += 1
                        yield {"resource": resource}
                    continue
                text.take("{")
                about: JsonObject = {}
                for _ in text.items("}"):
                    key = str(text.value())
                    text.take(":")
                    if key != "entry" or text.next_mark() != "[":
                        about[key] = text.value()
                        continue
                    text.take("[")
                    for _ in text.items("]"):
                        entry = text.value()
                        n += 1
                        yield entry
                if about.get("resourceType") != "Bundle":
                    n += 1
                    yield {"resource": about}
    except _DAMAGES as error:
        raise _damaged(file, f"entry {n:,}", error) from None
    except SourceError:
        raise
    except (ValueError, RecursionError) as error:
        why = getattr(error, "msg", getattr(error, "reason", "a number or depth that it does not allow"))
        raise SourceError(f"{file.name}: after entry {n:,} comes what is not JSON ({why}). {_ADVICE}") from None


class _Json:
    """JSON text of which values are taken from the front, and no more than the next one is in memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._decoder = stream, codecs.getincrementaldecoder("utf-8-sig")()
        self._values = json.JSONDecoder(parse_constant=_refuse_constant)
        self._text, self._at = "", 0

    def _grow(self) -> bool:
        """Read on, at least as much again, so that a long value is not tried often."""
        block = self._stream.read(max(_BLOCK, len(self._text) - self._at))
        self._text, self._at = self._text[self._at :] + self._decoder.decode(block, final=not block), 0
        return bool(block)

    def next_mark(self) -> str:
        """Return the next character that is no blank; "" at the end."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._grow():
                return ""

    def take(self, marks: str) -> str:
        """Take one of some characters."""
        if (found := self.next_mark() or "the end") not in marks:
            raise json.JSONDecodeError(f"{found} instead of {' or '.join(marks)}", self._text, self._at)
        self._at += 1
        return found

    def value(self) -> Any:
        """Take a whole value."""
        self.next_mark()
        while True:
            try:
                found, end = self._values.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if len(self._text) - self._at > _MAX_LINE_BYTES or not self._grow():
                    raise
            else:
                n = end - self._at
                # A number at the end of what was read may go on.
                if end < len(self._text) or not self._grow():
                    self._at += n
                    return found

    def items(self, end: str) -> Iterator[None]:
        """Stop before each item of a list or an object whose first mark is taken; take the marks between and `end`."""
        if self.next_mark() == end:
            self.take(end)
            return
        yield
        while self.take(f",{end}") != end:
            yield


def _damaged(file: TextFile, where: str, error: Exception) -> SourceError:
    return SourceError(
        f"{file.name}: cannot be read after {where} ({type(error).__name__}); it is cut short or damaged. "
        "Copy it again from its origin."
    )


def ids(files: Iterable[TextFile]) -> Iterator[str]:
    """Yield the first ``id`` in each line that has one, without reading the rest."""
    return (found[1].decode(errors="replace") for file in files for found in map(_ID.search, _lines(file)) if found)


def with_ids(file: TextFile, wanted: frozenset[int]) -> Iterator[tuple[int, JsonObject]]:
    """Yield the objects the hash of whose `ids` is wanted, with their lines."""
    for number, line in enumerate(_lines(file), 1):
        found = _ID.search(line)
        if found and hash(found[1].decode(errors="replace")) in wanted:
            yield number, _parsed(line, file.name, number)


def more_than_once(hashes: Iterable[int]) -> frozenset[int]:
    """Return the hashes that come more than once, with 8 bytes of memory for each."""
    once, counts = np.unique(np.frombuffer(array("q", hashes), dtype=np.int64), return_counts=True)
    return frozenset(once[counts > 1].tolist())


def _lines(file: TextFile) -> Iterator[bytes]:
    """Yield lines up to where the file ends or is damaged; `objects` says so."""
    with suppress(*_DAMAGES), file.opener() as stream:
        while line := stream.readline(_MAX_LINE_BYTES):
            yield line


def _parsed(line: bytes, name: str, number: int) -> JsonObject:
    where = f"{name}: line {number:,}"
    try:
        text = line.decode("utf-8-sig")
        content = json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise SourceError(f"{where}, byte {error.start + 1:,}: is not UTF-8. {_ADVICE}") from None
    except json.JSONDecodeError as error:
        raise SourceError(f"{where}, column {error.colno:,}: is not JSON ({error.msg}). {_ADVICE}") from None
    except RecursionError:
        raise SourceError(f"{where}: is nested too deeply for a FHIR resource. {_ADVICE}") from None
    except ValueError:
        raise SourceError(f"{where}: holds a number that JSON does not allow. {_ADVICE}") from None
    if not isinstance(content, dict):
        raise SourceError(f"{where}: is not a JSON object. Each line is one resource. {_ADVICE}")
    return content


def _refuse_constant(text: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(text)
