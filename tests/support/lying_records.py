"""A small hospital whose records can be made to lie, in every format: the same acts as CSV, MEDS, OMOP and FHIR.

Fourteen patients stay five days each, one after the other; a day has a lab of each of two kinds and a dose-free drug
order on most days. No real patient stands behind it.
"""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.fhir_records import Resource, coded, encounter, lab, order, patient, write_export

FORMATS = ("csv", "meds", "omop", "fhir")
"""Formats that `write` knows."""
N_PATIENTS, N_DAYS = 14, 5
N_INSTANCES = N_PATIENTS * N_DAYS


@dataclass(frozen=True)
class Act:
    """One thing that happened to a patient.

    Parameters
    ----------
    patient : int
    time : str
    what : {"birth", "sex", "death", "admit", "discharge", "ward", "order", "result", "start", "stop", "dose", "word"}
    item : str
    value : str
        As the source spells it.
    unit : str
    """

    patient: int
    time: str
    what: str
    item: str = ""
    value: str = ""
    unit: str = ""


def patient_acts(patient: int, start: str, *, labs: tuple[str, str] = ("Potassium", "Creatinine")) -> list[Act]:
    """Return the acts of one patient, admitted at 10:00 of a day and discharged at 10:00 five days later."""
    day = pd.Timestamp(start).normalize()

    def at(days: int, clock: str) -> str:
        return f"{(day + pd.Timedelta(days=days)).date()} {clock}"

    acts = [
        Act(patient, at(-25000, "00:00"), "birth"),
        Act(patient, at(0, "10:00"), "sex", "F"),
        Act(patient, at(0, "10:00"), "admit"),
        Act(patient, at(0, "11:00"), "ward", "Ward A"),
    ]
    for i in range(N_DAYS):
        for j, name in enumerate(labs):
            if (i + j + patient) % 4 or i == N_DAYS - 1:
                acts += [
                    Act(patient, at(i, f"22:{10 + j}"), "order", name),
                    Act(patient, at(i, f"22:{40 + j}"), "result", name, f"4.{(i + j + patient) % 10}", "mmol/L"),
                ]
        if (i + patient) % 2:
            acts.append(Act(patient, at(i, "22:00"), "start", "Heparin"))
            acts.append(Act(patient, at(i + 1, "06:00"), "stop", "Heparin"))
    return [*acts, Act(patient, at(N_DAYS, "10:00"), "discharge")]


def hospital(starts: Callable[[int], str] | None = None, n: int = N_PATIENTS) -> list[Act]:
    """Return the acts of all patients; the dates of admission follow each other unless told otherwise."""
    date_of = starts or (lambda i: str((pd.Timestamp("2026-01-01") + pd.Timedelta(days=i)).date()))
    return [act for i in range(n) for act in patient_acts(i, date_of(i))]


def without(acts: Iterable[Act], patient: int, what: str) -> list[Act]:
    """Leave out what happened to one patient."""
    return [act for act in acts if (act.patient, act.what) != (patient, what)]


def at_time(acts: Iterable[Act], patient: int, what: str, time: str) -> list[Act]:
    """Date what happened to one patient otherwise."""
    return [replace(act, time=time) if (act.patient, act.what) == (patient, what) else act for act in acts]


_CSV = {
    "birth": "BIRTH",
    "sex": "SEX//{item}",
    "death": "DEATH",
    "admit": "ADMISSION//Emergency",
    "discharge": "DISCHARGE",
    "ward": "UNIT//{item}",
    "order": "LAB//ORDER//{item}",
    "result": "LAB//RESULT//{item}//{unit}",
    "start": "MEDICATION//START//{item}",
    "stop": "MEDICATION//STOP//{item}",
    "dose": "MEDICATION//{item}//Administered",
    "word": "MEDICATION//{item}",
}
ITEM_NUMBERS = {"Potassium": "50971", "Creatinine": "50912"}
_MEDS = {
    **_CSV,
    "birth": "MEDS_BIRTH",
    "sex": "GENDER//{item}",
    "death": "MEDS_DEATH",
    "admit": "HOSPITAL_ADMISSION//EMERGENCY",
    "discharge": "HOSPITAL_DISCHARGE//HOME",
    "ward": "TRANSFER_TO//ADMIT//{item}",
    "order": "LAB//SPECIMEN_COLLECTED//{item}",
}


def write(acts: Iterable[Act], format: str, folder: Path) -> Path:  # noqa: A002
    """Write acts as one source, and return where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    writers = {"csv": _write_csv, "meds": _write_meds, "omop": _write_omop, "fhir": _write_fhir}
    return writers[format](list(acts), folder)


def _write_csv(acts: list[Act], folder: Path) -> Path:
    path = folder / "records.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "time", "code", "value", "text", "unit"])
        for act in acts:
            code = _CSV[act.what].format(item=act.item, unit=act.unit)
            writer.writerow([f"P{act.patient:03d}", act.time, code, act.value, "", ""])
    return path


def _write_meds(acts: list[Act], folder: Path) -> Path:
    times = pa.array([None if act.what == "sex" else pd.Timestamp(act.time).as_unit("us") for act in acts])
    table = pa.table(
        {
            "subject_id": pa.array([act.patient for act in acts], pa.int64()),
            "time": times.cast(pa.timestamp("us")),
            "code": [_MEDS[act.what].format(item=ITEM_NUMBERS.get(act.item, act.item), unit=act.unit) for act in acts],
            "numeric_value": pa.array([float(act.value) if act.value else None for act in acts], pa.float32()),
        }
    )
    (folder / "data").mkdir(exist_ok=True)
    pq.write_table(table, folder / "data" / "0.parquet")
    return folder


def _write_omop(acts: list[Act], folder: Path) -> Path:
    def times(patient: int, what: str, item: str = "") -> list[str]:
        return [act.time for act in acts if (act.patient, act.what) == (patient, what) and item in ("", act.item)]

    patients = sorted({act.patient for act in acts})
    tables: dict[str, tuple[str, list[tuple[object, ...]]]] = {
        "person": ("person_id,gender_concept_id,year_of_birth", [(p, 8532, 1957) for p in patients]),
        "visit_occurrence": (
            "visit_occurrence_id,person_id,visit_concept_id,visit_start_datetime,visit_end_datetime",
            [
                (p * 10 + i, p, 9201, start, dict(enumerate(times(p, "discharge"))).get(i, ""))
                for p in patients
                for i, start in enumerate(times(p, "admit"))
            ],
        ),
        "measurement": (
            "person_id,measurement_source_value,measurement_datetime,value_as_number,unit_source_value",
            [(act.patient, act.item, act.time, act.value, act.unit) for act in acts if act.what == "result"],
        ),
        "drug_exposure": (
            "drug_exposure_id,person_id,drug_source_value,drug_exposure_start_datetime,drug_exposure_end_datetime",
            [
                (p * 1000 + i, p, item, start, dict(enumerate(times(p, "stop", item))).get(i, ""))
                for p in patients
                for item in sorted({act.item for act in acts if act.what == "start"})
                for i, start in enumerate(times(p, "start", item))
            ],
        ),
        "death": ("person_id,death_datetime", [(p, time) for p in patients for time in times(p, "death")]),
    }
    for name, (header, rows) in tables.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            file.write(header + "\n")
            csv.writer(file).writerows(rows)
    return folder


_LABORATORY = [coded("laboratory", system="http://terminology.hl7.org/CodeSystem/observation-category")]


def _write_fhir(acts: list[Act], folder: Path) -> Path:
    return write_export(
        folder, *(each for number in sorted({act.patient for act in acts}) for each in _fhir(acts, number))
    )


def _fhir(acts: list[Act], number: int) -> Iterator[Resource]:
    """Return one patient's resources; the i-th start and the i-th stop of a drug, or of a stay, belong together."""
    name = f"P{number:03d}"
    mine = [replace(act, time=_instant(act.time)) for act in acts if act.patient == number]

    def times(what: str, item: str = "") -> list[str]:
        return [act.time for act in mine if act.what == what and item in ("", act.item)]

    def periods(begin: str, end: str, item: str = "") -> Iterator[Resource]:
        ends = dict(enumerate(times(end, item)))
        for i, start in enumerate(times(begin, item)):
            yield {"start": start} | ({"end": ends[i]} if i in ends else {})

    died = times("death")
    yield patient(name, birthDate=times("birth")[0][:10], **({"deceasedDateTime": died[0]} if died else {}))
    for period in periods("admit", "discharge"):
        yield encounter(
            f"{name}-{period['start']}", name, period=period, location=[{"location": {"display": "Ward A"}}]
        )
    for act in mine:
        code, quantity = coded(act.item), {"value": float(act.value) if act.value else None, "unit": act.unit}
        if act.what == "result":
            yield lab(act.time, of=name, code=code, valueQuantity=quantity)
        elif act.what == "order":
            plain = order(act.time, name, code=code, category=_LABORATORY, medicationCodeableConcept=None)
            yield plain | {"resourceType": "ServiceRequest"}
    for drug in dict.fromkeys(act.item for act in mine if act.what == "start"):
        for period in periods("start", "stop", drug):
            bounds = [{"timing": {"repeat": {"boundsPeriod": period}}}]
            yield order(period["start"], name, medicationCodeableConcept=coded(drug), dosageInstruction=bounds)


def _instant(time: str) -> str:
    """Return a time as FHIR spells it; a date stays one."""
    day, _, clock = time.partition(" ")
    return f"{day}T{clock + ':00' * (clock.count(':') < 2)}Z" if clock else day
