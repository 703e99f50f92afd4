"""A simulated hospital as files: a MEDS 0.4 data set that says it is simulated, and the truth beside it."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.cohort.cohort import Cohort
from core.errors import SourceError

TRUTH = "truth.parquet"
_EVENTS = pa.schema(
    [
        pa.field("subject_id", pa.int64(), nullable=False),
        ("time", pa.timestamp("us")),
        pa.field("code", pa.string(), nullable=False),
        ("numeric_value", pa.float32()),
        ("text_value", pa.large_string()),
        ("dose", pa.string()),
        ("route", pa.string()),
        ("range_low", pa.float32()),
        ("range_high", pa.float32()),
    ]
)
_CODES = pa.schema(
    [
        pa.field("code", pa.string(), nullable=False),
        ("description", pa.string()),
        ("parent_codes", pa.list_(pa.string())),
    ]
)
_SPLITS = pa.schema(
    [pa.field("subject_id", pa.int64(), nullable=False), pa.field("split", pa.string(), nullable=False)]
)


def write_meds(sim: "SimulatedCohort", folder: Path, *, patients_per_shard: int = 1000) -> Path:
    """Write a simulated hospital as a MEDS data set.

    Parameters
    ----------
    sim : SimulatedCohort
    folder : Path
        Made if missing; files of the same names are overwritten.
    patients_per_shard : int, default 1000

    Returns
    -------
    Path
        The folder: ``data/*.parquet``, ``metadata/codes.parquet``, ``metadata/subject_splits.parquet``,
        ``metadata/dataset.json`` (with ``"simulated": true``) and ``truth.parquet``.

    Raises
    ------
    SourceError
        When the folder cannot be written.
    """
    try:
        for name in ("data", "metadata"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        shard = (sim.events["subject_id"] - 1) // patients_per_shard
        for number, part in sim.events.groupby(shard):
            table = pa.Table.from_pandas(_plain(part), schema=_EVENTS, preserve_index=False)
            pq.write_table(table, folder / "data" / f"{number}.parquet", compression="zstd")
        codes = sim.codes.assign(parent_codes=[[] for _ in range(len(sim.codes))])
        for name, frame, schema in (("codes", codes, _CODES), ("subject_splits", sim.splits, _SPLITS)):
            table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
            pq.write_table(table, folder / "metadata" / f"{name}.parquet")
        about = {
            "dataset_name": "Simulated hospital (no real patient)",
            "dataset_version": "1",
            "meds_version": "0.4.1",
            "etl_name": "alertreview simulate",
            "simulated": True,
            "seed": sim.seed,
            "planted_rate": sim.planted_rate,
        }
        (folder / "metadata" / "dataset.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
        pq.write_table(pa.Table.from_pandas(sim.truth, preserve_index=False), folder / TRUTH, compression="zstd")
    except OSError as error:
        raise SourceError(f"{folder}: cannot be written ({error.strerror}). Choose another folder.") from None
    return folder


def _plain(part: pd.DataFrame) -> pd.DataFrame:
    return part.assign(
        code=part["code"].astype("str"),
        **{name: part[name].astype("object") for name in ("text_value", "dose", "route")},
    )


def load_truth(folder: Path, cohort: Cohort) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Read the truth behind a simulated cohort, in the order of its instances and tasks.

    Parameters
    ----------
    folder : Path
        The simulated data set from which the cohort was imported.
    cohort : Cohort

    Returns
    -------
    true_score : array of shape (n_instances, n_tasks)
        P(other decision | state), in [0, 1], higher = more unusual; NaN where the truth says nothing.
    planted : array of bool, shape (n_instances, n_tasks)

    Raises
    ------
    SourceError
        When the folder holds no truth, or that of another cohort.
    """
    path = Path(folder) / TRUTH
    if not path.exists():
        raise SourceError(f"{path} is missing; only simulated data sets have a known truth.")
    truth = pq.read_table(path, columns=["subject_id", "snapshot_at", "task_key", "true_score", "planted"]).to_pandas()
    subject = cohort.instances["patient_id"].str.extract(r"(\d+)$", expand=False).astype("int64")
    keys = pd.MultiIndex.from_arrays([subject, cohort.instances["snapshot_at"]])
    instances = pd.Series(np.arange(len(keys)), index=keys)
    pairs = pd.MultiIndex.from_arrays([truth["subject_id"], truth["snapshot_at"]])
    row = instances.reindex(pairs).to_numpy()
    task = pd.Index(cohort.tasks["task_key"]).get_indexer(truth["task_key"].astype("str"))
    here = ~np.isnan(row) & (task >= 0)
    shape = (len(cohort.instances), len(cohort.tasks))
    true_score, planted = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    rows, tasks = row[here].astype(np.int64), task[here]
    true_score[rows, tasks] = truth["true_score"].to_numpy()[here]
    planted[rows, tasks] = truth["planted"].to_numpy()[here]
    if not here.any():
        raise SourceError(f"{path} does not belong to this cohort: no instance and task of it occurs there.")
    return true_score, planted


@dataclass(frozen=True)
class SimulatedCohort:
    """Event tables of a hospital that does not exist, and the truth behind its decisions.

    Parameters
    ----------
    events : DataFrame
        ``subject_id`` (int64), ``time`` (datetime64, site time), ``code``, ``numeric_value``, ``text_value``; sorted.
    codes : DataFrame
        ``code``, ``description``.
    splits : DataFrame
        ``subject_id``, ``split`` ("train", "tuning", "held_out").
    truth : DataFrame
        One row per instance and task: ``subject_id``, ``snapshot_at``, ``task_key`` (category), ``task_name``
        (category), ``decided`` (bool), ``true_score`` (P(other decision | state), in [0, 1], higher = more unusual),
        ``planted`` (bool).
    seed : int
    planted_rate : float
    """

    events: pd.DataFrame
    codes: pd.DataFrame
    splits: pd.DataFrame
    truth: pd.DataFrame
    seed: int
    planted_rate: float
