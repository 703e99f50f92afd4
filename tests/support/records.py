"""Small health records for tests, written down event by event."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.events.import_report import ImportReport, KindCount, ReadCounts
from core.events.mapping import SiteMapping
from core.events.parts import EventStream, gathered
from core.events.reading import StreamBuilder
from core.events.stays import make_instances, make_patients, stay_ends

Row = tuple[Any, ...]
"""(subject, time, code), and where it matters value and text."""

RULES = [
    {"code": "SEX//(?P<item>.+)", "kind": "SEX"},
    {"code": "BIRTH", "kind": "BIRTH"},
    {"code": "DEATH", "kind": "DEATH"},
    {"code": "IN(//(?P<item>.+))?", "kind": "ADMISSION"},
    {"code": "OUT", "kind": "DISCHARGE"},
    {"code": "WARD//(?P<item>.+)", "kind": "UNIT"},
    {"code": "ASK//(?P<item>.+)", "kind": "LAB_ORDER"},
    {"code": "LAB//(?P<item>[^/]+)(//(?P<unit>.*))?", "kind": "LAB_RESULT"},
    {"code": "SIGN//(?P<item>[^/]+)", "kind": "OBSERVATION"},
    {"code": "START//(?P<item>.+)", "kind": "MEDICATION_ORDER"},
    {"code": "STOP//(?P<item>.+)", "kind": "MEDICATION_STOP"},
    {"code": "GIVE//(?P<item>[^/]+)(//(?P<event>.+))?", "kind": "ADMINISTRATION"},
    {"code": "BILL//.*", "kind": "IGNORE", "reason": "billing code"},
]


def site(**changes: Any) -> SiteMapping:
    """A site mapping with short codes."""
    keys: dict[str, Any] = {"name": "test", "title": "Test", "format": "meds", "rules": RULES, "min_positive": 1}
    keys["ask_about"] = "everything"
    return SiteMapping.model_validate({**keys, **changes})


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Rows as a chunk of a source."""
    padded = [(*row, *(np.nan, "")[len(row) - 3 :]) if len(row) < 5 else row for row in rows]
    columns = ["subject", "time", "code", "value", "text"]
    table = pd.DataFrame(padded, columns=columns)
    table["time"] = [pd.Timestamp(time) for time in table["time"]]
    table["time"] = table["time"].astype("datetime64[us]")
    table["value"] = table["value"].astype("float64")
    return table.astype({"code": "category", "text": "category"})


def parts(rows: Sequence[Row], mapping: SiteMapping | None = None) -> tuple[EventStream, ReadCounts]:
    """The event stream of some rows, and what was counted."""
    builder = StreamBuilder(mapping or site(), {})
    builder.add(frame(rows))
    return builder.finish_parts()


def stream(rows: Sequence[Row], mapping: SiteMapping | None = None) -> tuple[pd.DataFrame, ReadCounts]:
    """The event stream of some rows as one table, and what was counted."""
    found, counts = parts(rows, mapping)
    return gathered(found), counts


def finished(builder: StreamBuilder) -> tuple[pd.DataFrame, ReadCounts]:
    """The event stream as one table, and what was counted."""
    stream_in_parts, counts = builder.finish_parts()
    return gathered(stream_in_parts), counts


def write_meds(folder: Path, rows: Sequence[Row], shard: str = "0.parquet", **extra: Any) -> Path:
    """Rows as one shard of a MEDS data set; `extra` columns are added."""
    table = frame(rows)
    columns = {
        "subject_id": pa.array(table["subject"].tolist(), pa.int64()),
        "time": pa.array(table["time"], pa.timestamp("us")),
        "code": pa.array(table["code"].tolist(), pa.string()),
        "numeric_value": pa.array(table["value"], pa.float32()),
        "text_value": pa.array([text or None for text in table["text"]], pa.string()),
        **extra,
    }
    path = folder / "data" / shard
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return folder


def end_of(events: pd.DataFrame) -> pd.Timestamp:
    """Time of the last event."""
    return events["time"].max()


def instances_of(
    events: pd.DataFrame, stays: pd.DataFrame, hour: int = 8, *, shifted: bool
) -> tuple[pd.DataFrame, int]:
    """The instances of some stays, as the import places them."""
    patients, end = make_patients(events, {}), end_of(events)
    return make_instances(
        stays, patients, hour, end, stay_ends(events, stays, patients, end, shifted=shifted), shifted=shifted
    )


def counted(report: ImportReport, kind: str) -> KindCount:
    """Counts of one kind of event in an import; zeros when there was none."""
    return next((count for count in report.read.kinds if count.kind == kind), KindCount(kind, 0, 0, 0, 0))
