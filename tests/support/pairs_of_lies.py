"""Kinds of lies that a source can tell two of at once, each with the honest source that it has to be read as.

A lie changes the acts, the rows of a table or resources, or how a file is written. Most are read as the honest source;
those that leave doubt are refused.
"""

import csv
import gzip
import io
import json
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.lying_records import ITEM_NUMBERS, Act, at_time, without, write

Row = dict[str, Any]
ChangeActs = Callable[[list[Act]], list[Act]]
ChangeRows = Callable[[str, list[Row]], list[Row]]
TEXT, ALL = ("csv", "omop"), ("csv", "omop", "meds", "fhir")


@dataclass(frozen=True)
class Lie:
    """One kind of lie.

    Parameters
    ----------
    name : str
    formats : tuple of str
    acts, honest : callable
        What it makes of the acts, and what it has to be read as.
    rows : callable(table, rows)
        What it makes of a table, or of the resources of a type.
    writing : dict
        How files are written; see `Writing`.
    is_refused : bool
    """

    name: str
    formats: tuple[str, ...] = ALL
    acts: ChangeActs | None = None
    honest: ChangeActs | None = None
    rows: ChangeRows | None = None
    writing: dict[str, Any] = field(default_factory=dict)
    is_refused: bool = False

    def conflicts(self, other: "Lie") -> bool:
        """Return whether both say how the same is spelled."""
        about = {self.name.partition(":")[0], *self.writing} & {other.name.partition(":")[0], *other.writing}
        return bool(about - {"row"})


def half(change: Callable[[Act], Act], *what: str) -> ChangeActs:
    """Change every second act of some kinds."""

    def changed(acts: list[Act]) -> list[Act]:
        chosen = {i for n, i in enumerate(i for i, act in enumerate(acts) if act.what in what) if n % 2}
        return [change(act) if i in chosen else act for i, act in enumerate(acts)]

    return changed


def each(change: Callable[[Act], Act], *what: str) -> ChangeActs:
    """Change all acts of some kinds."""
    return lambda acts: [change(act) if act.what in what else act for act in acts]


ITEMS = ("order", "result", "start", "stop")
TIMED = ("admit", "discharge", "ward", "order", "result", "start", "stop")


def _named(change: Callable[[str], str]) -> ChangeActs:
    """Change the names of one patient: a start and its stop keep one."""
    return lambda acts: [
        replace(act, item=change(act.item)) if act.patient == 1 and act.what in ITEMS else act for act in acts
    ]


def _valued(change: Callable[[str], str], *, every: bool = True) -> ChangeActs:
    chosen = each if every else half
    return chosen(lambda act: replace(act, value=change(act.value)), "result")


def _timed(pattern: str, *, every: bool = True) -> ChangeActs:
    chosen = each if every else half
    return chosen(lambda act: replace(act, time=pd.Timestamp(act.time).strftime(pattern)), *TIMED)


def _accented(acts: list[Act]) -> list[Act]:
    return each(lambda act: replace(act, item=act.item.replace("Heparin", "H\u00e9parine")), *ITEMS)(acts)


def _thousands(text: Callable[[float], str]) -> ChangeActs:
    return _valued(lambda value: text(float(value) * 1000 + 0.5))


def _of_second(what: str, **changes: str) -> ChangeActs:
    return lambda acts: [replace(a, **changes) if (a.patient, a.what) == (1, what) else a for a in acts]


SPELLINGS_OF_NUMBERS: dict[str, Callable[[str], str]] = {
    "float": lambda n: f"{n}.0",
    "decimal": lambda n: f"{n}.00",
    "zeros": lambda n: f"00{n}",
    "power": lambda n: f"{n[0]}.{n[1:]}E+{len(n) - 1:02d}",
    "grouped": lambda n: f"{int(n):,}",
    "apostrophe": lambda n: f"'{n}",
    "formula": lambda n: f'="{n}"',
}
"""How a code that is a number comes back from a spreadsheet or a column of floats."""

_ACTS = [
    Lie(
        "name:decomposed",
        acts=lambda acts: _named(lambda n: unicodedata.normalize("NFD", n))(_accented(acts)),
        honest=_accented,
    ),
    Lie("name:blanks", acts=_named(lambda n: f" {n}\u00a0")),
    Lie("name:invisible", acts=_named(lambda n: f"{n[:1]}\u200b{n[1:]}")),
    Lie("name:case", (*TEXT, "fhir"), acts=_named(str.upper)),
    Lie("name:quotes", acts=_named(lambda n: f'"{n}"')),
    *(
        Lie(f"name:{name}", ("meds",), acts=_named(lambda n, spell=spell: spell(n) if n.isdigit() else n))
        for name, spell in SPELLINGS_OF_NUMBERS.items()
    ),
    Lie("name:typographic quotes", acts=_named(lambda n: f"\u201c{n}\u201d")),
    Lie("name:wide", acts=_named(lambda n: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in n))),
    *(
        Lie(f"unit:{unit}", acts=half(lambda act, unit=unit: replace(act, unit=unit), "result"))
        for unit in ("mmol/l", "MMOL/L", "mmol\u00b7L\u207b\u00b9", "[mmol/L]", " mmol/L\u00a0", "mmol per l")
    ),
    Lie(
        "unit:two micro signs",
        acts=lambda acts: half(lambda a: replace(a, unit="\u03bcmol/l"), "result")(
            each(lambda a: replace(a, unit="\u00b5mol/L"), "result")(acts)
        ),
        honest=each(lambda a: replace(a, unit="umol/L"), "result"),
    ),
    Lie("value:comma", TEXT, acts=_valued(lambda v: v.replace(".", ","))),
    Lie("value:unit beside it", TEXT, acts=_valued(lambda v: f"{v} mmol/L", every=False)),
    Lie("value:flag", TEXT, acts=_valued(lambda v: f"{v} (H)", every=False)),
    Lie("value:at most", TEXT, acts=_valued(lambda v: f"\u2264{v}", every=False)),
    Lie(
        "value:other digits",
        TEXT,
        acts=_valued(lambda v: "".join(chr(ord(c) + 0x660 - 0x30) if c.isdigit() else c for c in v), every=False),
    ),
    Lie("value:power", TEXT, acts=_valued(lambda v: f"{v}e0", every=False)),
    Lie("value:thousands", TEXT, acts=_thousands(lambda x: f"{x:,.1f}"), honest=_thousands(lambda x: f"{x:.1f}")),
    Lie(
        "value:spaced",
        TEXT,
        acts=_thousands(lambda x: f"{x:,.1f}".replace(",", "\u202f")),
        honest=_thousands(lambda x: f"{x:.1f}"),
    ),
    Lie(
        "value:both signs",
        TEXT,
        acts=_thousands(lambda x: f"{x:,.1f}".translate(str.maketrans(",.", ".,"))),
        honest=_thousands(lambda x: f"{x:.1f}"),
    ),
    Lie("value:sentinel", acts=_of_second("result", value="999999"), honest=_of_second("result", value="")),
    Lie(
        "stay:without end",
        acts=lambda a: at_time(a, 1, "discharge", "9999-12-31 23:59"),
        honest=lambda a: without(a, 1, "discharge"),
    ),
    Lie(
        "stay:ends in 2099",
        acts=lambda a: at_time(a, 1, "discharge", "2099-12-31 10:00"),
        honest=lambda a: without(a, 1, "discharge"),
    ),
    Lie(
        "birth:after everything",
        ("csv", "meds", "fhir"),
        acts=lambda a: at_time(a, 1, "birth", "2027-01-01 00:00"),
        honest=lambda a: at_time(a, 1, "birth", "2027-01-01 00:00"),
    ),
    *(
        Lie(f"time:{name}", TEXT, acts=_timed(pattern))
        for name, pattern in {
            "T": "%Y-%m-%dT%H:%M:%S",
            "slashes": "%Y/%m/%d %H:%M",
            "points": "%Y.%m.%d %H:%M",
            "compact": "%Y%m%d%H%M%S",
            "half days": "%Y-%m-%d %I:%M %p",
            "milliseconds": "%Y-%m-%d %H:%M:%S.000",
            "commas": "%Y-%m-%dT%H:%M:%S,000",
            "UTC": "%Y-%m-%d %H:%M UTC",
            "PostgreSQL": "%Y-%m-%d %H:%M:%S+00",
            "a named zone": "%Y-%m-%dT%H:%M:%SZ[UTC]",
            "an apostrophe": "'%Y-%m-%d %H:%M",
        }.items()
    ),
    Lie("time:mixed zones", TEXT, acts=_timed("%Y-%m-%dT%H:%M:%S+00:00", every=False)),
    Lie("time:blanks", TEXT, acts=_timed("\u00a0%Y-%m-%d  %H:%M ", every=False)),
    Lie("time:day first", TEXT, acts=_timed("%d/%m/%Y %H:%M"), is_refused=True),
    Lie("time:month in words", TEXT, acts=_timed("%d-%b-%Y %H:%M"), is_refused=True),
    Lie(
        "time:of a spreadsheet",
        TEXT,
        is_refused=True,
        acts=each(
            lambda a: replace(a, time=str(46000 + pd.Timestamp(a.time).day_of_year + pd.Timestamp(a.time).hour / 24)),
            "order",
            "result",
        ),
    ),
]


def _twice(_: str, rows: list[Row]) -> list[Row]:
    return [*rows, *(dict(row) for row in rows)]


def _other_column(content: str) -> ChangeRows:
    return lambda _, rows: [{**row, "remarks": content} for row in rows]


def _subjects(change: Callable[[str], str], *, every: bool = False) -> ChangeRows:
    def changed(_: str, rows: list[Row]) -> list[Row]:
        key = next((key for key in ("patient", "person_id") if rows and key in rows[0]), "")
        return [{**row, key: change(str(row[key]))} if key and (every or i % 2) else row for i, row in enumerate(rows)]

    return changed


def _called_off(table: str, rows: list[Row]) -> list[Row]:
    """Add acts that were never done, in the words of each format."""
    if table == "records":
        lost = [{**row, "code": row["code"].replace("START//Heparin", "START//Aspirin")} for row in rows]
        return [
            *({**row, "status": "completed"} for row in rows),
            *({**row, "status": "CANCELLED"} for row in lost if "Aspirin" in row["code"]),
        ]
    if table == "drug_exposure":
        lost = [
            {**row, "drug_source_value": "Aspirin", "drug_exposure_id": f"9{row['drug_exposure_id']}"} for row in rows
        ]
        return [
            *({**row, "stop_reason": ""} for row in rows),
            *({**row, "stop_reason": "Entered in error"} for row in lost),
        ]
    if table in ("MedicationRequest", "ServiceRequest"):
        lost = json.loads(json.dumps(rows).replace("Heparin", "Aspirin").replace("Potassium", "Troponin"))
        return [
            *rows,
            *({**row, "status": ("revoked", "entered-in-error", "Draft")[i % 3]} for i, row in enumerate(lost)),
        ]
    return rows


def _json(old: str, new: str) -> ChangeRows:
    """Replace in resources as they are written."""
    return lambda _, rows: [
        json.loads(json.dumps(row).replace(old, new)) if i % 2 else row for i, row in enumerate(rows)
    ]


def _respelled_patient(suffix: str) -> ChangeRows:
    return lambda table, rows: [{**r, "id": f"{r['id']}{suffix}"} if table == "Patient" else r for r in rows]


def _without_time(table: str, rows: list[Row]) -> list[Row]:
    """Write nothing in another way."""
    return [{key: value or "NULL" for key, value in row.items()} for row in rows]


_ROWS = [
    Lie("row:twice", rows=_twice),
    Lie("column:another", rows=_other_column("x")),
    Lie("column:lines", (*TEXT, "fhir"), rows=_other_column('two\nlines, and "quotes"')),
    Lie("column:of nothing", TEXT, rows=lambda _, rows: [{**row, "": "", " ": ""} for row in rows]),
    Lie(
        "column:order",
        ("csv", "omop", "meds", "fhir"),
        rows=lambda _, rows: [dict(reversed(row.items())) for row in rows],
    ),
    Lie("row:order", rows=lambda _, rows: rows[::-1]),
    Lie("nothing:NULL", TEXT, rows=_without_time),
    Lie("patient:blank", ("csv",), rows=_subjects(lambda name: f"{name}\u00a0")),
    Lie("patient:apostrophe", TEXT, rows=_subjects(lambda name: f"'{name}")),
    Lie("patient:float", ("omop",), rows=_subjects(lambda name: f"{name}.0")),
    Lie("patient:zeros", ("omop",), rows=_subjects(lambda name: name.zfill(8))),
    Lie("patient:rounded", ("csv",), rows=_subjects(lambda name: "1.23E+11"), is_refused=True),
    Lie("patient:nobody", TEXT, rows=_subjects(lambda name: "N/A"), is_refused=True),
    Lie("row:called off", (*TEXT, "fhir"), rows=_called_off),
    Lie("reference:blank", ("fhir",), rows=_json('"Patient/P00', '" Patient/ P00')),
    Lie(
        "reference:blank behind",
        ("fhir",),
        rows=lambda _, rows: [
            {**r, "subject": {"reference": f"{r['subject']['reference']} \u200b"}} if "subject" in r else r
            for r in rows
        ],
    ),
    Lie("reference:address", ("fhir",), rows=_json('"Patient/P00', '"https://example.org/fhir/Patient/P00')),
    Lie(
        "reference:version",
        ("fhir",),
        rows=lambda _, rows: [
            {**r, "subject": {"reference": f"{r['subject']['reference']}/_history/2"}} if "subject" in r else r
            for r in rows
        ],
    ),
    Lie("reference:urn", ("fhir",), rows=_json('"Patient/P00', '"urn:uuid:P00')),
    Lie("id:blank", ("fhir",), rows=_respelled_patient(" ")),
    Lie("id:invisible", ("fhir",), rows=_respelled_patient("\u200b")),
    Lie("zone:offset", ("fhir",), rows=_json(':00Z"', ':00+00:00"')),
    Lie("zone:none", ("fhir",), rows=_json(':00Z"', ':00"')),
    Lie("zone:fraction", ("fhir",), rows=_json(':00Z"', ':00.000Z"')),
    Lie("zone:small letters", ("fhir",), rows=_json(':00Z"', ':00z"')),
    Lie("zone:no colon", ("fhir",), rows=_json(':00Z"', ':00+0000"')),
    Lie(
        "status:capitals",
        ("fhir",),
        rows=lambda _, rows: [{**r, "status": r["status"].upper()} if "status" in r else r for r in rows],
    ),
    Lie(
        "number:text",
        ("fhir",),
        rows=lambda _, rows: [
            {**r, "valueQuantity": {**r["valueQuantity"], "value": str(r["valueQuantity"].get("value", ""))}}
            if "valueQuantity" in r
            else r
            for r in rows
        ],
        is_refused=True,
    ),
]
_WRITING = [
    Lie("file:BOM", (*TEXT, "fhir"), writing={"encoding": "utf-8-sig"}),
    Lie("file:UTF-16", TEXT, writing={"encoding": "utf-16"}),
    Lie("file:UTF-16 resources", ("fhir",), writing={"encoding": "utf-16"}, is_refused=True),
    Lie("file:CRLF", (*TEXT, "fhir"), writing={"newline": "\r\n"}),
    Lie("file:gzip", (*TEXT, "fhir"), writing={"packed": True}),
    Lie("file:zip", (*TEXT, "fhir"), writing={"zipped": True}),
    Lie("file:semicolons", TEXT, writing={"delimiter": ";"}),
    Lie("file:tabs", TEXT, writing={"delimiter": "\t"}),
    Lie("file:quoted", TEXT, writing={"quoting": csv.QUOTE_ALL}),
    Lie("header:capitals", TEXT, writing={"header": str.upper}),
    Lie("header:blanks", TEXT, writing={"header": lambda name: f" {name}\u00a0"}),
    Lie("file:blank line first", TEXT, writing={"start": "\n"}, is_refused=True),
    Lie("file:blank lines", (*TEXT, "fhir"), writing={"end": "\n\n\n"}),
    Lie("file:an empty one beside it", ("csv",), writing={"beside": ("records2.csv", b"")}, is_refused=True),
    Lie("file:hidden ones", ALL, writing={"beside": ("._records.csv", b"\0\5")}),
    Lie("file:shards", ("meds",), writing={"shards": 3}),
    Lie("type:large texts", ("meds",), writing={"text_type": pa.large_string()}),
    Lie("type:dictionary", ("meds",), writing={"text_type": pa.dictionary(pa.int32(), pa.string())}),
    Lie("type:nanoseconds", ("meds",), writing={"time_type": pa.timestamp("ns")}),
    Lie("type:milliseconds", ("meds",), writing={"time_type": pa.timestamp("ms")}),
    Lie("type:doubles", ("meds",), writing={"value_type": pa.float64()}),
    Lie("type:subjects in texts", ("meds",), writing={"subject_type": pa.string()}, is_refused=True),
    Lie("type:times in texts", ("meds",), writing={"time_type": pa.string()}, is_refused=True),
    Lie("header:capitals of MEDS", ("meds",), writing={"header": str.upper}, is_refused=True),
]
LIES = [*_ACTS, *_ROWS, *_WRITING]


def pairs(format: str) -> Iterator[tuple[Lie, Lie]]:  # noqa: A002
    """Return all pairs of lies that one source of a format can tell."""
    mine = [lie for lie in LIES if format in lie.formats]
    for i, one in enumerate(mine):
        yield from ((one, other) for other in mine[i + 1 :] if not one.conflicts(other))


def honest(acts: list[Act], *lies: Lie) -> list[Act]:
    """Return the acts as they have to be read."""
    for lie in lies:
        acts = lie.honest(acts) if lie.honest else acts
    return acts


def tell(acts: list[Act], format: str, folder: Path, *lies: Lie) -> Path:  # noqa: A002
    """Write a source that tells some lies, and return where it is."""
    if format == "meds":
        acts = [replace(act, item=ITEM_NUMBERS.get(act.item, act.item)) for act in acts]
    for lie in lies:
        acts = lie.acts(acts) if lie.acts else acts
    source = write(acts, format, folder)
    files = sorted((source / "data" if format == "meds" else folder).iterdir())
    tables = {file: _read(file) for file in files}
    for lie in (lie for lie in lies if lie.rows):
        tables = {file: lie.rows(file.name.partition(".")[0], rows) for file, rows in tables.items() if lie.rows}
    writing = {key: value for lie in lies for key, value in lie.writing.items()}
    for file, rows in tables.items():
        {".csv": _write_csv, ".parquet": _write_meds, ".ndjson": _write_ndjson}[file.suffix](file, rows, writing)
    if "beside" in writing:
        name, content = writing["beside"]
        (files[0].parent / name).write_bytes(content)
        source = source if source.is_dir() else folder
    elif writing.get("packed") and source.suffix == ".csv":
        source = source.with_suffix(".csv.gz")
    if writing.get("zipped"):
        packed = folder.with_suffix(".zip")
        with zipfile.ZipFile(packed, "w") as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, file.name)
        source = packed
    return source


def _read(file: Path) -> list[Row]:
    if file.suffix == ".parquet":
        return pq.read_table(file, partitioning=None).to_pylist()
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ndjson":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _write_bytes(file: Path, text: str, writing: dict[str, Any]) -> None:
    content = (writing.get("start", "") + text + writing.get("end", "")).replace("\r\n", "\n")
    content = content.replace("\n", writing.get("newline", "\n"))
    data = content.encode(writing.get("encoding", "utf-8"))
    if writing.get("packed"):
        file.unlink()
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(data))
    else:
        file.write_bytes(data)


def _write_csv(file: Path, rows: list[Row], writing: dict[str, Any]) -> None:
    if not rows:
        return
    out = io.StringIO(newline="")
    made = csv.writer(out, delimiter=writing.get("delimiter", ","), quoting=writing.get("quoting", csv.QUOTE_MINIMAL))
    made.writerow([writing.get("header", str)(name) for name in rows[0]])
    made.writerows([row.values() for row in rows])
    _write_bytes(file, out.getvalue(), writing)


def _write_ndjson(file: Path, rows: list[Row], writing: dict[str, Any]) -> None:
    _write_bytes(file, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), writing)


def _write_meds(file: Path, rows: list[Row], writing: dict[str, Any]) -> None:
    file.unlink()
    n = writing.get("shards", 1)
    for i in range(n):
        columns = {}
        for name in rows[0]:
            column = pa.array([row[name] for row in rows[i::n]])
            kind = {"time": "time_type", "subject_id": "subject_type", "numeric_value": "value_type"}.get(
                name, "text_type"
            )
            wanted = writing.get(kind)
            is_text = pa.types.is_string(column.type)
            column = column if wanted is None or (kind == "text_type" and not is_text) else column.cast(wanted)
            columns[writing.get("header", str)(name)] = column
        pq.write_table(pa.table(columns), file.with_name(f"{i}.parquet"))
