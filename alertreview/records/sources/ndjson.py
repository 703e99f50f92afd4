"""Files with one JSON object a line (ndjson), plain, gzipped or in a zip archive; errors name line and place."""

import json
import re
import zipfile
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from alertreview.records.sources.text_tables import TextFile, text_files
from core.errors import SourceError

JsonObject = dict[str, Any]

_ENDINGS = (".ndjson", ".jsonl")
_MAX_LINE_BYTES = 64 << 20
_MOST_EMPTY_LINES = 100_000
_ID = re.compile(rb'"id"\s*:\s*"([^"]*)"')
_ADVICE = "Export the file again."


def is_ndjson(name: str) -> bool:
    """Return whether a file name looks like one JSON object a line."""
    return name.lower().removesuffix(".gz").endswith(_ENDINGS)


def ndjson_files(source: Path) -> list[TextFile]:
    """Find the ndjson files of a folder or zip archive, by name, or the single file.

    Raise SourceError as `text_files`.
    """
    if source.is_file() and not zipfile.is_zipfile(source) and not is_ndjson(source.name):
        return []
    return text_files(source, is_ndjson)


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
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise SourceError(
            f"{file.name}: cannot be read after line {number:,} ({type(error).__name__}); it is cut short or damaged. "
            "Copy it again from its origin."
        ) from None


def repeated(files: Sequence[TextFile]) -> Iterator[tuple[str, int, JsonObject]]:
    """Yield the objects whose ``id`` other lines have as well, with file and line.

    Lines are compared by the first ``id`` in them, without reading the rest: an export of today has each once.
    """
    ids = array("q")
    for file in files:
        ids.extend(hash(found[1]) for found in map(_ID.search, _lines(file)) if found)
    once, counts = np.unique(np.frombuffer(ids, dtype=np.int64), return_counts=True)
    wanted = frozenset(once[counts > 1].tolist())
    for file in files if wanted else ():
        for number, line in enumerate(_lines(file), 1):
            found = _ID.search(line)
            if found and hash(found[1]) in wanted:
                yield file.name, number, _parsed(line, file.name, number)


def _lines(file: TextFile) -> Iterator[bytes]:
    """Yield lines up to where the file ends or is damaged; `objects` says so."""
    with suppress(OSError, EOFError, zipfile.BadZipFile, zlib.error), file.opener() as stream:
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
