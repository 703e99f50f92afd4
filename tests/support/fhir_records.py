"""Made-up records in FHIR R4, as bulk exports in the shape of Synthea and of MIMIC-IV on FHIR, and as Bundles."""

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

Resource = dict[str, Any]

MIMIC = "http://mimic.mit.edu/fhir/mimic"
_OFFSET = pd.Timedelta(2, "h")


def patient(name: str = "p1", **more: Any) -> Resource:
    """A woman born in 1950."""
    return {"resourceType": "Patient", "id": name, "gender": "female", "birthDate": "1950-03-01"} | more


def encounter(name: str = "e1", of: str = "p1", **more: Any) -> Resource:
    """A stay of three days."""
    period = {"start": "2026-01-01T06:00:00Z", "end": "2026-01-04T10:00:00Z"}
    kind = {"system": "http://terminology.hl7.org/CodeSystem/v3-ActCode", "code": "IMP"}
    plain = {"resourceType": "Encounter", "id": name, "status": "finished", "class": kind, "period": period}
    return plain | {"subject": {"reference": f"Patient/{of}"}} | more


def coded(code: str, display: str = "", system: str = "http://loinc.org") -> Resource:
    """A CodeableConcept of one coding."""
    return {"coding": [{"system": system, "code": code, "display": display or code}]}


def lab(time: str = "2026-01-01T09:00:00Z", value: float = 4.1, of: str = "p1", **more: Any) -> Resource:
    """A final potassium."""
    plain = {
        "resourceType": "Observation",
        "status": "final",
        "category": [coded("laboratory", system="http://terminology.hl7.org/CodeSystem/observation-category")],
        "code": coded("2823-3", "Potassium"),
        "subject": {"reference": f"Patient/{of}"},
        "effectiveDateTime": time,
        "valueQuantity": {"value": value, "unit": "mmol/L"},
    }
    return {key: each for key, each in (plain | more).items() if each is not None}


def order(time: str = "2026-01-01T09:00:00Z", of: str = "p1", **more: Any) -> Resource:
    """An order of aspirin."""
    plain = {
        "resourceType": "MedicationRequest",
        "status": "active",
        "intent": "order",
        "medicationCodeableConcept": coded("1191", "Aspirin", "http://www.nlm.nih.gov/research/umls/rxnorm"),
        "subject": {"reference": f"Patient/{of}"},
        "authoredOn": time,
    }
    return {key: each for key, each in (plain | more).items() if each is not None}


def write_export(folder: Path, *resources: Resource, packed: bool = False) -> Path:
    """Write one file for each type of resource, named as Synthea or, packed, as MIMIC-IV on FHIR names them."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds: dict[str, list[Resource]] = {}
    for each in resources:
        kinds.setdefault(each["resourceType"], []).append(each)
    for kind, members in kinds.items():
        text = "".join(json.dumps(each) + "\n" for each in members)
        if packed:
            (folder / f"Mimic{kind}.ndjson.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"{kind}.000.ndjson").write_text(text, encoding="utf-8")
    return folder


def bundle(*resources: Resource, kind: str = "transaction") -> Resource:
    """A Bundle whose resources have no ids of their own: entries name them, and references give these names."""
    entries = []
    for each in json.loads(re.sub(r'"reference": "\w+/', '"reference": "urn:uuid:', json.dumps(resources))):
        name = {"fullUrl": f"urn:uuid:{each.pop('id')}"} if "id" in each else {}
        entries.append(name | {"resource": each, "request": {"method": "POST", "url": each["resourceType"]}})
    return {"resourceType": "Bundle", "type": kind, "total": len(entries), "entry": entries}


def write_bundles(folder: Path, *resources: Resource) -> Path:
    """Write a Bundle for each patient, as Synthea does; what belongs to none goes to ndjson beside them."""
    kept: dict[str, list[Resource]] = {}
    for each in resources:
        own = f"Patient/{each.get('id')}" if each["resourceType"] == "Patient" else ""
        kept.setdefault(each.get("subject", {"reference": own})["reference"], []).append(each)
    write_export(folder, *kept.pop("", []), packed=True)
    for number, members in enumerate(kept.values()):
        # The patient comes last: nothing relies on the order of entries.
        text = json.dumps(bundle(*members[::-1], kind=("transaction", "collection")[number % 2]), indent=2)
        (folder / f"Ada_Lovelace_{number}.json").write_text(text, encoding="utf-8")
    return folder


def said(time: pd.Timestamp) -> str:
    """A time of the records, which are in UTC, as a clock two hours ahead tells it."""
    return f"{(time + _OFFSET).strftime('%Y-%m-%dT%H:%M:%S')}+02:00"


def _period(start: pd.Timestamp, end: pd.Timestamp) -> Resource:
    return {"start": said(start)} | ({} if pd.isna(end) else {"end": said(end)})


class Cohort:
    """A cohort as tables, to be written in either shape.

    Parameters
    ----------
    tables : mapping
        ``people`` (subject, sex, born, died), ``stays`` (subject, start, end), ``moves`` (subject, time, unit),
        ``labs`` (subject, time, item, unit, value, text), ``drugs`` (subject, drug, given, start, end).
    is_mimic : bool
    """

    def __init__(self, tables: Mapping[str, pd.DataFrame], *, is_mimic: bool) -> None:
        self._tables, self._is_mimic = tables, is_mimic

    def write(self, folder: Path, *, in_bundles: bool = False) -> Path:
        """Write the export."""
        made = [*self._people(), *self._stays(), *self._labs(), *self._drugs(), *self._medications()]
        return write_bundles(folder, *made) if in_bundles else write_export(folder, *made, packed=self._is_mimic)

    def _id(self, subject: str) -> str:
        """In MIMIC, ids are long and the number of the patient is an identifier."""
        return f"0a8eebfd-a352-{subject}" if self._is_mimic else subject

    def _rows(self, table: str) -> Iterable[Any]:
        return self._tables[table].itertuples()

    def _subject(self, row: Any) -> Resource:
        return {"reference": f"Patient/{self._id(row.subject)}"}

    def _people(self) -> Iterable[Resource]:
        for row in self._rows("people"):
            gender = {"F": "female", "M": "male"}[row.sex]
            plain = patient(self._id(row.subject), gender=gender, birthDate=row.born.strftime("%Y-%m-%d"))
            if not pd.isna(row.died):
                plain["deceasedDateTime"] = said(row.died)
            if self._is_mimic:
                plain["identifier"] = [{"system": f"{MIMIC}/identifier/patient", "value": row.subject}]
            yield plain

    def _stays(self) -> Iterable[Resource]:
        moves = self._tables["moves"]
        profile = f"{MIMIC}/StructureDefinition/mimic-encounter"
        for row in self._rows("stays"):
            end = pd.Timestamp.max if pd.isna(row.end) else row.end
            mine = moves[(moves["subject"] == row.subject) & (moves["time"] >= row.start) & (moves["time"] < end)]
            places = [
                {"location": {"display": unit}, "period": {"start": said(time)}}
                for unit, time in zip(mine["unit"], mine["time"], strict=True)
            ]
            more: Resource = {"period": _period(row.start, row.end), "location": places, "subject": self._subject(row)}
            if self._is_mimic:
                more |= {"class": {"code": "EMER"}, "meta": {"profile": [profile]}}
            yield encounter(f"e{row.Index}", **more)

    def _labs(self) -> Iterable[Resource]:
        system = f"{MIMIC}/CodeSystem/mimic-d-labitems" if self._is_mimic else "http://loinc.org"
        for row in self._rows("labs"):
            more: Resource = {"code": coded(row.item, system=system), "subject": self._subject(row)}
            if pd.isna(row.value):
                more |= {"valueQuantity": None, "valueString": row.text}
                # Only a quantity has a unit in FHIR; the code of a text carries none.
            else:
                more["valueQuantity"] = {"value": row.value, "unit": row.unit}
            yield lab(said(row.time), **more)

    def _drugs(self) -> Iterable[Resource]:
        for row in self._rows("drugs"):
            what: Resource = {"medicationReference": {"reference": f"Medication/{_slug(row.drug)}"}}
            what = what if self._is_mimic else {"medicationCodeableConcept": coded(row.drug)}
            plain = {"subject": self._subject(row), **what}
            if row.given:
                yield plain | {
                    "resourceType": "MedicationAdministration",
                    "status": "completed",
                    "effectiveDateTime": said(row.start),
                    "dosage": {"method": coded("Administered")} if self._is_mimic else {},
                }
            elif self._is_mimic:
                period = {"dispenseRequest": {"validityPeriod": _period(row.start, row.end)}}
                yield order(None, **plain, **period, medicationCodeableConcept=None)  # type: ignore[arg-type]
            else:
                bounds = {"timing": {"repeat": {"boundsPeriod": _period(row.start, row.end)}}}
                yield order(said(row.start), **plain, dosageInstruction=[bounds])

    def _medications(self) -> Iterable[Resource]:
        if self._is_mimic:
            for drug in sorted(set(self._tables["drugs"]["drug"])):
                names = [{"system": f"{MIMIC}/CodeSystem/mimic-medication-name", "value": drug}]
                yield {"resourceType": "Medication", "id": _slug(drug), "identifier": names}


def _slug(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name)
