"""Small files that would unpack to gigabytes: refused by name and rule, and nothing of them stays on the disk."""

import bz2
import gzip
import lzma
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alertreview.records.importing import import_snapshot
from core.errors import SourceError
from tests.support.records import write_meds

UNPACKED = 1 << 30
PIECE = 8 << 20
MOST_MEMORY = 400 << 20
"""Of this process, above what it had: blocks, not the whole."""
HEADER = b"subject,time,code,value,text\n"
ROW = b",,,,\n"


def repeated(pack: Callable[[bytes], bytes], line: bytes, first: bytes = b"") -> bytes:
    """Return gigabytes of a line, made of one packed piece again and again."""
    piece = pack(line * (PIECE // len(line)))
    return pack(first) + piece * (UNPACKED // PIECE)


def text(suffix: str, pack: Callable[[bytes], bytes], line: bytes, first: bytes = b"") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / f"records.{suffix}"
        path.write_bytes(repeated(pack, line, first))
        return path

    return make


def zipped(name: str, n_members: int, n_bytes: int) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "records.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(n_members):
                with archive.open(name.format(number), "w") as member:
                    member.write(HEADER + ROW * (n_bytes // len(ROW)))
        return path

    return make


def packed_inside(folder: Path) -> Path:
    path = folder / "records.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("records.csv.gz", repeated(gzip.compress, ROW, HEADER))
    return path


def equal_rows(folder: Path) -> Path:
    n_rows, n_at_once = 12_000_000, 4_000_000
    columns = {
        "subject_id": pa.array([1], pa.int64()),
        "time": pa.array([0], pa.timestamp("us")),
        "code": pa.array(["LAB//K"]),
        "numeric_value": pa.array([4.1], pa.float32()),
    }
    at_once = pa.table({name: pa.repeat(column[0], n_at_once) for name, column in columns.items()})
    (folder / "data").mkdir()
    with pq.ParquetWriter(folder / "data" / "0.parquet", at_once.schema, compression="zstd") as writer:
        for _ in range(n_rows // n_at_once):
            writer.write_table(at_once, row_group_size=n_at_once)
    return folder


def one_long_text(folder: Path) -> Path:
    write_meds(folder, [(1, "2026-01-01 10:00", "IN")])
    table = pq.read_table(folder / "data" / "0.parquet")
    long = table.set_column(table.schema.get_field_index("code"), "code", pa.array(["x" * (100 << 20)]))
    pq.write_table(long, folder / "data" / "0.parquet", compression="zstd")
    return folder


BOMBS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "csv.gz": ("csv", text("csv.gz", lambda piece: gzip.compress(piece, 9), ROW, HEADER)),
    "csv.bz2": ("csv", text("csv.bz2", bz2.compress, ROW, HEADER)),
    "csv.xz": ("csv", text("csv.xz", lambda piece: lzma.compress(piece, preset=0), ROW, HEADER)),
    "one member": ("csv", zipped("records.csv", 1, 70 << 20)),
    "many small members": ("csv", zipped("records-{}.csv", 3, 30 << 20)),
    "packed inside": ("csv", packed_inside),
    "empty lines of ndjson": ("fhir", text("ndjson.gz", lambda piece: gzip.compress(piece, 9), b"\n")),
    "equal rows of parquet": ("meds", equal_rows),
    "a text of parquet": ("meds", one_long_text),
}


@pytest.mark.checklist("D2")
@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_much_more_is_refused_by_name_and_rule(tmp_path: Path, name: str) -> None:
    format_, make = BOMBS[name]
    (tmp_path / "given").mkdir()
    source = make(tmp_path / "given")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    with pytest.raises(SourceError, match=r"(records|0\.parquet).*(times its size|100,000 before it)"):
        import_snapshot(source, tmp_path / "home", format=format_)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before < MOST_MEMORY
    assert sum(path.stat().st_size for path in (tmp_path / "home").rglob("*") if path.is_file()) == 0
