"""Labels in the MEDS label schema: one Parquet file for each task, for tools that train and test on MEDS data."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import InvalidInputError

MEDS_LABELS = pa.schema(
    [
        pa.field("subject_id", pa.int64(), nullable=False),
        pa.field("prediction_time", pa.timestamp("us"), nullable=False),
        pa.field("boolean_value", pa.bool_()),
        pa.field("integer_value", pa.int64()),
        pa.field("float_value", pa.float32()),
        pa.field("categorical_value", pa.string()),
    ]
)


@dataclass(frozen=True)
class MedsLabel:
    """One label.

    Attributes
    ----------
    task_key : str
    patient_id : str
        A whole number written in digits, as MEDS subjects are.
    snapshot_at : datetime
        Site time, with or without zone; MEDS times carry none, so 08:00 stays 08:00.
    is_positive : bool
    """

    task_key: str
    patient_id: str
    snapshot_at: datetime
    is_positive: bool


def write_meds_labels(folder: Path, labels: Iterable[MedsLabel]) -> dict[str, Path]:
    """Write one file of labels for each task.

    Parameters
    ----------
    folder : Path
        Made if missing; files are called after the task's key.
    labels : iterable of MedsLabel

    Returns
    -------
    dict of str to Path
        By task key.

    Raises
    ------
    InvalidInputError
        If a patient id is not a whole number in digits: then the site's data are not MEDS subjects.
    """
    by_task: dict[str, list[MedsLabel]] = {}
    for label in labels:
        if not re.fullmatch(r"0|-?[1-9]\d{0,18}", label.patient_id) or abs(int(label.patient_id)) > 2**63 - 1:
            raise InvalidInputError(
                "A patient id of this study is not a whole number as MEDS subjects have it, so MEDS labels cannot be "
                "written. Choose another format."
            )
        by_task.setdefault(label.task_key, []).append(label)
    folder.mkdir(parents=True, exist_ok=True)
    names = _file_names(sorted(by_task))
    return {task: _write(folder / names[task], by_task[task]) for task in sorted(by_task)}


def _file_names(tasks: list[str]) -> dict[str, str]:
    """Safe file names that stay different."""
    names: dict[str, str] = {}
    for task in tasks:
        base = re.sub(r"[^A-Za-z0-9]+", "_", task).strip("_") or "task"
        name, turn = f"{base}.parquet", 2
        while name in names.values():
            name, turn = f"{base}_{turn}.parquet", turn + 1
        names[task] = name
    return names


def _write(path: Path, labels: list[MedsLabel]) -> Path:
    rows = sorted(labels, key=lambda label: (int(label.patient_id), label.snapshot_at.replace(tzinfo=None)))
    columns = {
        "subject_id": [int(label.patient_id) for label in rows],
        "prediction_time": [label.snapshot_at.replace(tzinfo=None) for label in rows],
        "boolean_value": [label.is_positive for label in rows],
    }
    empty = {name: [None] * len(rows) for name in MEDS_LABELS.names if name not in columns}
    part = path.with_name(f".{path.name}.part")
    pq.write_table(pa.table(columns | empty, schema=MEDS_LABELS), part)
    part.replace(path)
    return path
