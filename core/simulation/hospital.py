"""A simulated hospital with known truth: latent illness, labs that follow it, rules of ordering, planted decisions."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.cohort.cohort import Cohort
from core.errors import InvalidInputError, SourceError
from core.events.mapping import normalise
from core.kinds import Kind, task_key
from core.simulation.course import MEMBER_DRAWN, OTHER_UNITS, Course, Options, Truth
from core.simulation.labs import VITALS
from core.simulation.population import DAY, HOME_NUMBER, HOUR, WARDS, Population, make_population
from core.simulation.rules import ALLERGIES, DOSES, PROBLEMS, REASONS, Catalogue, extended
from core.vocabulary import SNAPSHOT_HOUR

TRUTH = "metadata/truth.parquet"
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
        ``metadata/dataset.json`` (with ``"simulated": true``) and ``metadata/truth.parquet``.

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


__all__ = ["LAST_DAY", "SIZES", "SimulatedCohort", "load_truth", "simulate", "simulate_cohort", "write_meds"]
LAST_DAY = date(2026, 2, 28)
"""Where the calendar of a simulated hospital ends unless told otherwise: fixed, so that it is the same every day."""
SIZES: dict[str, dict[str, Any]] = {
    "small": {"n_patients": 200, "n_days": 35},
    "medium": {"n_patients": 1000, "n_days": 90, "n_labs": 120, "n_drugs": 90},
    "paper": {"n_patients": 4486, "n_days": 365, "mean_days": 10, "n_labs": 430, "n_drugs": 319},
}
"""Arguments of `simulate_cohort` by the name of the size."""


def simulate(size: str = "small", *, seed: int = 0, **switches: float) -> SimulatedCohort:
    """Simulate a hospital of a named size.

    Parameters
    ----------
    size : {"small", "medium", "paper"}
        "paper" has about the patients, instances, features and tasks of the method's paper.
    seed : int, default 0
    **switches : float
        ``planted_rate``, ``missing_rate``, ``unit_noise`` and ``drift`` of `simulate_cohort`.

    Returns
    -------
    SimulatedCohort

    Raises
    ------
    InvalidInputError
        When there is no such size, or a switch makes no sense.
    """
    if size not in SIZES:
        raise InvalidInputError(f"There is no simulated hospital of size {size!r}; choose one of {', '.join(SIZES)}.")
    return simulate_cohort(seed=seed, **{**SIZES[size], **switches})


def simulate_cohort(
    *,
    n_patients: int = 200,
    n_days: int = 35,
    ends_on: date = LAST_DAY,
    seed: int = 0,
    planted_rate: float = 0.02,
    mean_days: float = 8.0,
    n_labs: int = 0,
    n_drugs: int = 0,
    missing_rate: float = 0.01,
    unit_noise: float = 0.0,
    drift: float = 0.0,
) -> SimulatedCohort:
    """Simulate a hospital.

    Parameters
    ----------
    n_patients : int, default 200
        Gives about 1,700 patient-state instances.
    n_days : int, default 35
        Length of the calendar in days.
    ends_on : date
        The data end at 08:00 of this day; patients who are in hospital then have open stays.
    seed : int, default 0
    planted_rate : float, default 0.02
        Share of the decisions taken that are dropped where the rule is clear; about as many are added.
    mean_days : float, default 8
        Mean length of a stay.
    n_labs, n_drugs : int, default 0
        Labs and drugs altogether, at least the 45 and 34 of the readable core.
    missing_rate : float, default 0.01
        Share of results without a usable number.
    unit_noise : float, default 0
        Share of glucose, creatinine and hemoglobin results that come in another unit.
    drift : float, default 0
        How far habits move over the calendar, in logits: every second rule up, the others down.

    Returns
    -------
    SimulatedCohort
        The same for the same arguments.

    Raises
    ------
    InvalidInputError
        When a number makes no sense.
    """
    _refuse_nonsense(
        n_patients=(n_patients, 1, 1_000_000),
        n_days=(n_days, 5, 36_500),
        planted_rate=(planted_rate, 0.0, 0.5),
        mean_days=(mean_days, 1.0, 30.0),
        missing_rate=(missing_rate, 0.0, 1.0),
        unit_noise=(unit_noise, 0.0, 1.0),
        drift=(drift, -5.0, 5.0),
    )
    rng = np.random.default_rng(seed)
    catalogue = extended(n_labs, n_drugs, seed)
    last = datetime(ends_on.year, ends_on.month, ends_on.day, SNAPSHOT_HOUR, tzinfo=UTC)
    population = make_population(rng, n_patients, n_days, int(last.timestamp()), mean_days)
    course = Course(population, catalogue, rng, Options(planted_rate, missing_rate, unit_noise, drift))
    course.run()
    _log_stays(course, rng)
    _log_background(course, np.random.default_rng([seed, 2]))
    return SimulatedCohort(
        events=_events(course),
        codes=_codes(catalogue),
        splits=_splits(rng, n_patients),
        truth=_truth(population, catalogue, course.truths),
        seed=seed,
        planted_rate=planted_rate,
    )


def _refuse_nonsense(**limits: tuple[float, float, float]) -> None:
    """Check (value, lowest, highest) of every number."""
    for name, (value, low, high) in limits.items():
        if not low <= value <= high:
            raise InvalidInputError(f"{name} = {value} of a simulated hospital must lie between {low} and {high}.")


def _log_stays(course: Course, rng: np.random.Generator) -> None:
    """Log admissions, discharges, deaths and moves between care units."""
    population, log = course.population, course.log
    stay = np.arange(len(population.patient))
    for i, (words, _, _) in enumerate(REASONS.values()):
        mine = stay[population.reason == i]
        log.add(mine, population.admitted[mine], f"HOSPITAL_ADMISSION//{words}")
    for rows, words in ((population.died, "DIED"), (~population.died, "HOME")):
        log.add(stay[rows], population.discharged[rows], f"HOSPITAL_DISCHARGE//{words}")
    dead = stay[population.died]
    log.add(dead, population.discharged[dead], "MEDS_DEATH")
    for k in range(population.ward.shape[1]):
        moved = population.ward[:, k] != population.ward[:, k - 1] if k else np.ones(len(stay), dtype=bool)
        moved &= population.n_mornings >= k
        time = population.admitted + 120
        if k:
            evening = population.first_morning + (k - 2) * DAY + (rng.uniform(2, 12, len(stay)) * HOUR).astype(np.int64)
            time = np.maximum(evening, population.admitted + 180)
        for i, ward in enumerate(WARDS):
            rows = stay[moved & (population.ward[:, k] == i)]
            log.add(rows, time[rows], f"TRANSFER_TO//{ward}")


def _log_background(course: Course, rng: np.random.Generator) -> None:
    """Log problems and allergies, which no rule looks at; they have a separate stream of random numbers."""
    population, log = course.population, course.log
    stay = np.arange(len(population.patient))
    home = population.home[population.patient]
    listed: dict[str, npt.NDArray[np.bool_]] = {}
    for drug, problem in PROBLEMS.items():
        has = home[:, HOME_NUMBER[drug]]
        listed[problem] = listed.get(problem, np.zeros(len(stay), dtype=bool)) | has
    for problem, has in listed.items():
        log.add(stay[has], population.admitted[has] + 60, f"PROBLEM//{problem}")
    for i, (words, _, _) in enumerate(REASONS.values()):
        mine = stay[population.reason == i]
        log.add(mine, population.admitted[mine] + 60, f"REASON//{words}")
    for allergy, share in ALLERGIES.items():
        has = (rng.random(len(population.birth)) < share)[population.patient]
        log.add(stay[has], population.admitted[has] + 60, f"ALLERGY//{allergy}")


def _details(codes: list[str], catalogue: Catalogue) -> pd.DataFrame:
    """Return dose, route and reference range of each code; ranges in the lab's own unit alone."""
    limits = {f"LAB//RESULT//{lab.name}//{lab.unit}": (lab.low, lab.high) for lab in catalogue.labs if not lab.text}
    limits |= {f"VITAL//{vital.name}//{vital.unit}": (vital.low, vital.high) for vital in VITALS}
    doses = {f"MEDICATION//START//{drug}": words for drug, words in DOSES.items()}
    rows = [(*doses.get(code, ("", "")), *limits.get(code, (np.nan, np.nan))) for code in codes]
    return pd.DataFrame(rows, columns=["dose", "route", "range_low", "range_high"])


def _events(course: Course) -> pd.DataFrame:
    population = course.population
    stay, time, code, value, text = course.log.table()
    n = len(population.birth)
    person = np.arange(n)
    names = [*course.log.codes, "MEDS_BIRTH", "GENDER//F", "GENDER//M"]
    n_codes = len(course.log.codes)
    frame = pd.DataFrame(
        {
            "subject_id": np.concatenate([population.patient[stay], person, person]) + 1,
            "time": np.concatenate([time, population.birth, population.birth])
            .astype("datetime64[s]")
            .astype("datetime64[us]"),
            "code": np.concatenate(
                [code, np.full(n, n_codes), np.where(population.is_female, n_codes + 1, n_codes + 2)]
            ),
            "numeric_value": np.concatenate([value, np.full(2 * n, np.nan)]),
            "text_value": np.concatenate([text, np.full(2 * n, "", dtype=object)]),
        }
    )
    is_sex = (frame["code"] > n_codes).to_numpy()
    known = is_sex | (frame["time"] < pd.Timestamp(population.end, unit="s")).to_numpy()
    frame = frame[known & np.isin(frame["subject_id"], population.patient + 1)]
    frame["time"] = frame["time"].where(frame["code"] <= n_codes)
    details = _details(names, course.catalogue).iloc[frame["code"].to_numpy()]
    for name in details:
        frame[name] = pd.Categorical(details[name]) if name in ("dose", "route") else details[name].to_numpy()
    frame["code"] = pd.Categorical.from_codes(frame["code"], categories=names)
    text_value = frame["text_value"].astype("category")
    frame["text_value"] = text_value.cat.set_categories(sorted(set(text_value.cat.categories) - {""}))
    return frame.sort_values(["subject_id", "time", "code"], na_position="first", kind="stable").reset_index(drop=True)


def _codes(catalogue: Catalogue) -> pd.DataFrame:
    rows = [(f"LAB//RESULT//{lab.name}//{lab.unit}", lab.name) for lab in catalogue.labs]
    rows += [(f"LAB//RESULT//{name}//{unit}", name) for name, (unit, _) in OTHER_UNITS.items()]
    rows += [(f"LAB//ORDERED//{lab.name}", lab.name) for lab in catalogue.labs]
    for drug in catalogue.drug_units:
        rows += [(f"MEDICATION//{word}//{drug.name}", drug.name) for word in ("START", "STOP")]
        rows += [(f"MEDICATION//{drug.name}//{word}", drug.name) for word in ("Administered", "Not Given")]
    return pd.DataFrame(rows, columns=["code", "description"])


def _splits(rng: np.random.Generator, n_patients: int) -> pd.DataFrame:
    split = rng.choice(["train", "tuning", "held_out"], size=n_patients, p=[0.7, 0.15, 0.15])
    return pd.DataFrame({"subject_id": np.arange(n_patients) + 1, "split": split})


def _truth(population: Population, catalogue: Catalogue, truths: list[Truth]) -> pd.DataFrame:
    tasks, n_lab_units = catalogue.members, len(catalogue.lab_units)
    keys = [
        task_key(Kind.LAB_ORDER, item) if unit < n_lab_units else task_key(Kind.MEDICATION, normalise(item))
        for unit, item in tasks
    ]
    from_panel = pd.Series([unit for unit, _ in tasks]).duplicated(keep=False).to_numpy()
    share = np.where(from_panel, MEMBER_DRAWN, 1.0)
    units = np.array([unit for unit, _ in tasks])
    stay = np.concatenate([truth.stay for truth in truths])
    morning = np.concatenate([np.full(len(truth.stay), truth.morning) for truth in truths])
    probability = np.concatenate([truth.probability[:, units] * share for truth in truths])
    decided = np.concatenate([truth.decided for truth in truths])
    planted = np.concatenate([truth.planted for truth in truths])
    snapshot = population.first_morning[stay] + (morning - 1) * DAY
    order = np.lexsort([snapshot, population.patient[stay]])
    n = len(tasks)
    score = np.where(decided, 1 - probability, probability)[order]
    return pd.DataFrame(
        {
            "subject_id": np.repeat(population.patient[stay][order] + 1, n),
            "snapshot_at": np.repeat(snapshot[order], n).astype("datetime64[s]").astype("datetime64[us]"),
            "task_key": pd.Categorical.from_codes(np.tile(np.arange(n), len(stay)), categories=keys),
            "task_name": pd.Categorical.from_codes(
                np.tile(np.arange(n), len(stay)), categories=[item for _, item in tasks]
            ),
            "decided": decided[order].ravel(),
            "true_score": score.astype(np.float32).ravel(),
            "planted": planted[order].ravel(),
        }
    )
