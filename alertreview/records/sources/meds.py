"""Read a MEDS data set (Medical Event Data Standard 0.3 and 0.4) with pyarrow, shard by shard."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from alertreview.files import parse_json
from alertreview.records.sources import cells
from alertreview.records.sources.base import CHUNK_ROWS, Format, Source, lacking, row_identity, unread
from alertreview.records.sources.text_tables import is_ignored, refuse_archives, require_no_bomb, unread_files
from core.errors import SourceError
from core.events.code_book import spelled_for
from core.events.mapping import DetailColumn, SiteMapping
from core.events.plausibility import Finding
from core.number_texts import counted

_NEEDED = ("subject_id", "time", "code")
_ADVICE = "Give the folder of a MEDS data set (data/*.parquet, metadata/codes.parquet)."
_N_ROWS_TO_LOOK_AT = 2_000_000
_BYTES_PER_ROW = 8
_DETAILS_IN_WORDS: tuple[DetailColumn, ...] = ("dose", "route")


def shards(folder: Path) -> list[Path]:
    """Return the files ``data/**/*.parquet`` of a MEDS data set, sorted; raise SourceError when there is none."""
    if not folder.is_dir():
        raise SourceError(f"{folder} is not a folder. {_ADVICE}")
    data = folder / "data"
    found = sorted(
        path for path in data.rglob("*.parquet") if path.is_file() and not is_ignored(path.relative_to(data))
    )
    if not found:
        refuse_archives(folder)
        raise SourceError(
            f"{folder} is not a MEDS data set: there is no parquet file below {folder / 'data'}. {_ADVICE}"
        )
    return found


def read(folder: Path, mapping: SiteMapping) -> Source:
    """Open a MEDS data set: ``data/**/*.parquet``; codes, splits and ``dataset.json`` in ``metadata`` may be missing.

    The mapping names extra columns and the time zone. Raise SourceError when a file is no Parquet or lacks a column,
    or, while chunks are read, holds what cannot be.
    """
    paths = shards(folder)
    n_rows = sum(open_parquet(path).metadata.num_rows for path in paths)
    if n_rows == 0:
        raise SourceError(f"{folder / 'data'}: {len(paths)} parquet files and not one row in them. {_ADVICE}")
    for path in paths:
        _check_columns(path)
    remarks: list[str] = []
    return Source(
        name=folder.name or str(folder),
        chunks=_chunks(paths, mapping, remarks),
        n_rows=n_rows,
        descriptions=_named(_descriptions(folder / "metadata" / "codes.parquet", mapping, remarks), mapping),
        splits=_splits(folder / "metadata" / "subject_splits.parquet"),
        simulated=_says_simulated(folder / "metadata" / "dataset.json"),
        remarks=remarks,
        findings=[
            *unread(
                [
                    *(f"data/{name}" for name in unread_files(folder / "data", lambda name: name.endswith(".parquet"))),
                    *_beside(folder),
                ],
                remarks,
            ),
            *_zones(paths, mapping),
        ],
    )


def _beside(folder: Path) -> list[str]:
    """Return the tables that seem to be events but do not lie below ``data``: of another data set, or beside it."""
    found = sorted(path.relative_to(folder) for path in folder.rglob("*.parquet"))
    return [
        str(path)
        for path in found
        if not is_ignored(path) and path.parts[0] != "data" and ("data" in path.parts or not path.parts[1:])
    ]


def code_counts(folder: Path, mapping: SiteMapping) -> Counter[str]:
    """Count codes in the first rows of every shard, two million at most, to find out which mapping fits."""
    paths = shards(folder)
    counts: Counter[str] = Counter()
    for path in paths:
        _check_columns(path)
        left = _N_ROWS_TO_LOOK_AT // len(paths)
        wanted = ["code", *_prefix_column(path, mapping)]
        for batch in open_parquet(path).iter_batches(batch_size=min(CHUNK_ROWS, left), columns=wanted):
            for pair in pc.value_counts(_codes(batch, mapping)).to_pylist():
                if pair["values"] is not None:
                    counts[str(pair["values"])] += pair["counts"]
            left -= batch.num_rows
            if left <= 0:
                break
    return counts


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Raise an error that names the damaged file, whatever breaks first."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        reason = str(error).splitlines()[0][:120] if isinstance(error, OSError | pa.ArrowException) else "no UTF-8"
        raise SourceError(
            f"{path}: is not a complete parquet file ({reason}). Copy it again from its origin."
        ) from None


def open_parquet(path: Path, texts: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a file, or raise an error where it is damaged or would unpack to much more than its size.

    Of the columns `texts`, each different text is read once.
    """
    with refusing_damage(path):
        file = pq.ParquetFile(path, read_dictionary=list(texts))
        sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)]
    # Equal values take no room: a billion of them are a few bytes packed and a few more unpacked.
    require_no_bomb(path, max(sum(sizes), _BYTES_PER_ROW * file.metadata.num_rows))
    return file


def _check_columns(path: Path) -> None:
    with refusing_damage(path):
        schema = open_parquet(path).schema_arrow
        names = list(schema.names)
    refuse_doubled(path, names)
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        found = ", ".join(names) or "no column"
        raise SourceError(f"{path}: lacks the column {missing[0]!r} of MEDS (found: {found}). {_ADVICE}")
    rules = (
        ("subject_id", pa.types.is_integer, "whole numbers (int64)"),
        ("time", lambda kind: pa.types.is_timestamp(kind) or pa.types.is_date(kind), "timestamps"),
        ("code", is_text, "texts"),
        ("numeric_value", lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind), "numbers"),
        ("text_value", is_text, "texts"),
    )
    for name, is_right, words in rules:
        if name in names:
            kind = schema.field(name).type
            if not (is_right(kind) or pa.types.is_null(kind)):
                raise SourceError(f"{path}: column {name!r} holds {kind}; MEDS wants {words}. Convert the column.")


def refuse_doubled(path: Path, names: list[str]) -> None:
    """Raise an error where two columns have one name."""
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise SourceError(f"{path}: the column {doubled!r} appears twice. Rename or drop one of them.")


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds texts, as they are or as numbers of a dictionary."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _chunks(paths: list[Path], mapping: SiteMapping, remarks: list[str]) -> Iterator[pd.DataFrame]:
    extra = {"text": mapping.columns.text or "text_value", "unit": mapping.columns.unit}
    extra |= {"known_at": mapping.columns.known_at, "stay": mapping.columns.stay, "end": mapping.columns.end}
    extra |= {"status": mapping.columns.status or "status", "order": mapping.columns.order}
    optional = {*extra.values(), *mapping.details.values()}
    names = {f"{path.parent.name}/{path.name}": open_parquet(path).schema_arrow.names for path in paths}
    remarks += lacking({name: optional.intersection(columns) for name, columns in names.items()})
    for path in paths:
        schema = open_parquet(path).schema_arrow
        said = {"code", *(extra[each] for each in ("text", "unit", "status"))}
        said |= {mapping.details.get(each, "") for each in _DETAILS_IN_WORDS}
        file = open_parquet(path, [field.name for field in schema if field.name in said and is_text(field.type)])
        names = schema.names
        columns = {ours: theirs for ours, theirs in extra.items() if theirs in names}
        if "numeric_value" not in names:
            remarks.append(f"{path.name} has no column numeric_value: only its texts may hold numbers.")
        details = [name for name in mapping.details.values() if name in names]
        details += _prefix_column(path, mapping)
        wanted = [*_NEEDED, *(["numeric_value"] if "numeric_value" in names else []), *columns.values(), *details]
        with refusing_damage(path):
            n_before = 0
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=list(dict.fromkeys(wanted))):
                yield _chunk(batch, columns, mapping, path, n_before)
                n_before += batch.num_rows
            # Arrow may end at a damaged page as if the file ended there.
            if n_before != file.metadata.num_rows:
                raise OSError(f"{n_before:,} of {file.metadata.num_rows:,} rows can be read")


def _chunk(
    batch: pa.RecordBatch, columns: dict[str, str], mapping: SiteMapping, path: Path, n_before: int
) -> pd.DataFrame:
    subject = batch.column("subject_id")
    if subject.null_count:
        row = n_before + int(np.flatnonzero(pc.is_null(subject).to_numpy(zero_copy_only=False))[0]) + 1
        raise SourceError(f"{path}: row {row:,} has no subject_id. Every event belongs to a patient; correct the file.")
    if pa.types.is_uint64(subject.type) and (pc.max(subject).as_py() or 0) >= 2**63:
        raise SourceError(f"{path}: a subject_id is larger than MEDS allows (int64). Renumber the patients.")
    chunk: dict[str, object] = {
        "subject": subject.cast(pa.int64()).to_numpy(),
        "time": cells.times(batch.column("time"), mapping, str(path), "time", n_before + 1),
        "code": _category(_codes(batch, mapping)),
        "value": np.full(batch.num_rows, np.nan),
    }
    if "numeric_value" in batch.schema.names:
        chunk["value"] = pc.fill_null(batch.column("numeric_value").cast(pa.float64()), float("nan")).to_numpy()
    for ours, theirs in columns.items():
        column = batch.column(theirs)
        if ours in ("known_at", "end"):
            chunk[ours] = cells.times(column, mapping, str(path), theirs, n_before + 1)
        elif ours == "stay":
            chunk[ours] = pc.fill_null(column.cast(pa.int64()), -1).to_numpy()
        else:
            chunk[ours] = _category(column)
    named = {name: batch.column(name) for name in batch.schema.names if name in mapping.details.values()}
    chunk |= cells.details(named, mapping, str(path), n_before + 1)
    rows = _with_ends(pd.DataFrame(chunk, copy=False), makes_events="end" in columns)
    rows.attrs = {"file": path.name, "first_row": n_before + 1}
    return rows


def _with_ends(chunk: pd.DataFrame, *, makes_events: bool) -> pd.DataFrame:
    """Return the events, and for each that has an end a second event there."""
    if not makes_events:
        return chunk
    if "order" not in chunk:
        named = {"subject": chunk["subject"], "time": chunk["time"], "code": chunk["code"].astype("str")}
        chunk = chunk.assign(order=row_identity({**named, "end": chunk["end"]}))
    elif (is_whole := chunk["end"].notna() & chunk["order"].notna()).any():
        # The row is a separate order, even if others have its name.
        name = chunk["order"].astype("str")
        chunk = chunk.assign(order=name.where(~is_whole, name + "//" + chunk["time"].astype("str")))
    ends = chunk[chunk["end"].notna()]
    code = ends["code"].cat.remove_unused_categories()
    ends = ends.assign(
        time=ends["end"], end=pd.NaT, value=np.nan, code=code.cat.rename_categories(lambda each: f"{each}//END")
    )
    both = pd.concat([chunk.astype({"code": "str"}), ends.astype({"code": "str"})])
    return both.drop(columns=["known_at"] if "known_at" in both else []).astype({"code": "category"})


def _zones(paths: Sequence[Path], mapping: SiteMapping) -> list[Finding]:
    """Count the rows of shards whose times have no zone while others have one, and another zone than the site's."""
    n_of: Counter[str] = Counter()
    for path in paths:
        shard = open_parquet(path)
        n_of[getattr(shard.schema_arrow.field("time").type, "tz", None) or ""] += shard.metadata.num_rows
    known = {"", "UTC", "Etc/UTC", "+00:00", mapping.timezone}
    n_foreign = sum(n for zone, n in n_of.items() if zone not in known)
    n_naive = n_of[""] if any(n_of.keys() - {""}) else 0
    return [Finding("mixed_zones", n_naive, n_of.total()), Finding("foreign_zones", n_foreign, n_of.total())]


def _prefix_column(path: Path, mapping: SiteMapping) -> list[str]:
    """Return the column whose texts go before the codes, if the mapping names one that the file has."""
    return [name for name in (mapping.code_prefix,) if name and name in open_parquet(path).schema_arrow.names]


def _codes(batch: pa.RecordBatch, mapping: SiteMapping) -> pa.Array:
    code = batch.column("code")
    if mapping.code_prefix not in batch.schema.names:
        return code
    prefix = pc.fill_null(batch.column(mapping.code_prefix).cast(pa.string()), "")
    return pc.binary_join_element_wise(prefix, code.cast(pa.string()), "//")


class _NamesWithoutPrefix(dict[str, str]):
    """Texts of codes that a prefix was put before."""

    def get(self, code: str, default: str = "") -> str:  # type: ignore[override]
        """Return the text of the code after its prefix."""
        return super().get(code.partition("//")[2], default)


def _named(descriptions: dict[str, str], mapping: SiteMapping) -> dict[str, str]:
    return _NamesWithoutPrefix(descriptions) if mapping.code_prefix else descriptions


def _category(column: pa.Array) -> pd.Categorical:
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    elif len(column.dictionary) > len(column):
        # Batches of a file share a dictionary.
        column = column.cast(column.type.value_type).dictionary_encode()
    return column.to_pandas().cat.remove_unused_categories().array


def _table(path: Path, needed: tuple[str, ...]) -> pd.DataFrame | None:
    """Read one metadata table; None when there is none."""
    if not path.exists():
        return None
    file = open_parquet(path)
    refuse_doubled(path, list(file.schema_arrow.names))
    missing = [name for name in needed if name not in file.schema_arrow.names]
    if missing:
        raise SourceError(f"{path}: lacks the column {missing[0]!r}. Remove the file, or write it as MEDS says.")
    with refusing_damage(path):
        return file.read(columns=list(needed)).to_pandas()


def _descriptions(path: Path, mapping: SiteMapping, remarks: list[str]) -> dict[str, str]:
    if path.exists() and "description" not in open_parquet(path).schema_arrow.names:
        remarks.append(f"{path.name} has no column description: items are named after their codes.")
        return {}
    table = _table(path, ("code", "description"))
    if table is None:
        return {}
    table = table.dropna().drop_duplicates()
    codes = [spelled_for(code, mapping) for code in table["code"].astype("str")]
    if n := len(codes) - len({*codes}):
        remarks.append(f"{path.name} describes {counted(n, 'code')} once more, with another text: the last one counts.")
    return dict(zip(codes, table["description"].astype("str"), strict=True))


def _splits(path: Path) -> dict[str, str]:
    table = _table(path, ("subject_id", "split"))
    if table is None:
        return {}
    table = table.dropna()
    if pd.api.types.is_float_dtype(table["subject_id"]):
        # Whole numbers that went through a float on their way; beyond 2^53 they are no longer the same.
        if (table["subject_id"] % 1 != 0).any() or (table["subject_id"].abs() >= 2**53).any():
            raise SourceError(f"{path}: column 'subject_id' holds numbers that are not whole. Write it as int64.")
        table["subject_id"] = table["subject_id"].astype("int64")
    table = table.drop_duplicates()
    if table["subject_id"].duplicated().any():
        row = int(np.flatnonzero(table["subject_id"].duplicated())[0])
        raise SourceError(f"{path}: row {table.index[row] + 1:,} puts a patient into a second split. Keep one of them.")
    return dict(zip(table["subject_id"].astype("str"), table["split"].astype("str"), strict=True))


def _says_simulated(path: Path) -> bool:
    if not path.exists():
        return False
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError):
        raise SourceError(f"{path}: is not JSON. Correct or remove the file.") from None
    return isinstance(content, dict) and content.get("simulated") is True


def _fits(source: Path | str) -> bool:
    return isinstance(source, Path) and next((source / "data").rglob("*.parquet"), None) is not None


FORMAT = Format(
    name="meds",
    fits=_fits,
    read=lambda source, mapping, schema: read(Path(source), mapping),
    code_counts=lambda source, mapping, schema: code_counts(Path(source), mapping),
)
