"""Read FHIR R4, a bulk export (ndjson) or Bundles, and spell its resources as codes for the site mapping.

==========================================  ====================================================================
code                                        resource
==========================================  ====================================================================
``SEX//female``, ``BIRTH``, ``DEATH``       Patient
``ENCOUNTER//IMP//us-core-encounter//``     Encounter: class, profile, then ``ADMISSION`` or ``DISCHARGE``; ``PART``
                                            if it is part of another, ``ZERO_LENGTH`` if it ends when it begins
``CARE_UNIT//IMP//Ward 3``                  Encounter.location, with the encounter's class
``REASON//IMP//SNOMED//91302008``           Encounter.reasonCode, with the encounter's class
``OBSERVATION//laboratory//LOINC//2160-0``  Observation: category, code, then ``//`` and the unit; components apart
``SERVICE//108252007//LOINC//2160-0``       ServiceRequest: category, code
``MEDICATION//ORDER//RxNorm//1191``         MedicationRequest (``STOP``: the end of its period)
``MEDICATION//GIVEN//RxNorm//1191//``       MedicationAdministration, then the method (``STOP``: as above)
``CONDITION//problem-list-item//ICD10//I``  Condition: category, code
``PROCEDURE//SNOMED//430193006``            Procedure
``ALLERGY//RxNorm//1191``                   AllergyIntolerance
``REPORT//LAB//LOINC//58410-2``             DiagnosticReport: category, code
``NOT_DONE//MedicationRequest//cancelled``  what its status or intent says was not decided or not done
``PANEL//LOINC//24323-8``                   Observation without a value whose members are observations themselves
==========================================  ====================================================================
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from alertreview.records.sources.base import Format, Source, shared_stays, unread
from alertreview.records.sources.cells import Zones
from alertreview.records.sources.fhir_elements import (
    Concept,
    WrongElementError,
    coding,
    concept,
    dose,
    duration,
    ends_in,
    first,
    instant,
    is_true,
    moment,
    name_in,
    number,
    offset_of,
    part,
    parts,
    plain,
    quantity,
    reference,
    text,
    ucum_unit,
    words,
)
from alertreview.records.sources.ndjson import (
    JsonObject,
    entries,
    fhir_files,
    ids,
    is_json,
    is_ndjson,
    more_than_once,
    objects,
    with_ids,
)
from alertreview.records.sources.text_tables import TextFile, unread_files
from core.errors import SourceError
from core.events.code_book import spelled_for
from core.events.mapping import SiteMapping
from core.events.plausibility import Finding
from core.events.spelling import tidy
from core.number_texts import counted

_ROWS_PER_CHUNK = 100_000
_TEXTS = ("code", "text", "unit", "order", "dose", "route", "status")
_LINES_TO_LOOK_AT = 20_000
_MANY = 0.05
_NO_OFFSET = ("", "Z", "+00:00", "-00:00")
_DAY = len("2026-02-28")
_CLOCK = slice(_DAY + 1, _DAY + 6)
_SYNTHEA = "https://github.com/synthetichealth/synthea"
_BUNDLE = "Bundle"
"""Stands for files of entries, of any type each."""
_LOOKED_UP = ("Patient", "Location", "Medication", "Encounter")
"""Resources that others refer to, read before them and in this order."""
_TIMED = {
    **dict.fromkeys(("Observation", "MedicationAdministration"), "effectiveDateTime"),
    **dict.fromkeys(("MedicationRequest", "ServiceRequest"), "authoredOn"),
}
"""Where the time of an act stands."""
_NOT_DONE = frozenset(
    {"cancelled", "draft", "entered-in-error", "not-done", "planned", "preparation", "refuted", "registered", "revoked"}
)
_DONE = frozenset(
    """
    active amended appended arrived completed corrected ended final finished in-progress on-hold onleave partial
    preliminary stopped triaged unknown
    """.split()  # noqa: SIM905
)
"""Statuses of FHIR R4 of what was ordered or done; the mapping says what any other status means."""
_KNOWN = _DONE | _NOT_DONE | {""}
_NO_PATIENT = frozenset({"Device", "Group", "Location", "Organization", "Practitioner", "Substance"})
"""What else the subject of a resource may be."""
_NO_ORDER = frozenset({"proposal", "plan", "option"})
_CATEGORIES = (
    *("laboratory", "vital-signs", "LAB", "MB", "MCB", "108252007", "imaging", "procedure", "survey", "exam"),
    *("therapy", "activity", "social-history", "problem-list-item", "encounter-diagnosis", "health-concern"),
)
"""Categories of HL7, those that decide what a resource is first: sites add their own before or behind them."""
_NAMELESS = Concept("TEXT", "not coded", "")
_NORMAL = Concept("", "normal", "")
_ADVICE = "Correct it, or export the data again."


class Row(NamedTuple):
    """One row of a chunk; see `core.events.reading.StreamBuilder.add`."""

    subject: str
    time: datetime | None
    code: str
    value: float = np.nan
    text: str = ""
    unit: str = ""
    known_at: datetime | None = None
    stay: int = -1
    order: str = ""
    end: datetime | None = None
    dose: str = ""
    route: str = ""
    range_low: float = np.nan
    range_high: float = np.nan
    status: str = ""
    is_date: bool = False


class Place(NamedTuple):
    """Where a resource stands."""

    file: str
    line: int
    unit: str = "line"  # or entry, of Bundles


class _Encounter(NamedTuple):
    kind: str
    start: datetime | None
    end: datetime | None


def read(source: Path, mapping: SiteMapping) -> Source:
    """Open a folder or zip archive of ndjson files, Bundles or both, or one such file; packed or not.

    Raise SourceError, naming file, line or entry, and element, when there is no patient, or a resource that others
    refer to breaks a rule; while chunks are read, when another one does.
    """
    reader = _Reader(source, mapping)
    return Source(
        name=source.name,
        chunks=_chunks(reader.rows(None)),
        descriptions=reader.names,
        simulated=reader.simulated,
        remarks=reader.remarks,
        findings=reader.findings,
    )


def code_counts(source: Path, mapping: SiteMapping) -> Counter[str]:
    """Count codes in the first lines of every file, to find out which mapping fits."""
    return Counter(row.code for _, row in _Reader(source, mapping).rows(_LINES_TO_LOOK_AT))


def _chunks(placed: Iterator[tuple[Place, Row]]) -> Iterator[pd.DataFrame]:
    for file, of_file in groupby(placed, key=lambda each: each[0].file):
        while waiting := list(islice(of_file, _ROWS_PER_CHUNK)):
            lines = np.array([place.line for place, _ in waiting])
            columns = dict(zip(Row._fields, map(list, zip(*(row for _, row in waiting), strict=True)), strict=True))
            times = {name: np.array(columns[name], dtype="datetime64[us]") for name in ("time", "known_at", "end")}
            chunk = pd.DataFrame(columns | times, index=lines - lines[0]).astype(dict.fromkeys(_TEXTS, "category"))
            chunk.attrs = {"file": file, "first_row": int(lines[0])}
            yield chunk


class _Reader:
    """Turns resources into rows, after those that others refer to are known."""

    def __init__(self, source: Path, mapping: SiteMapping) -> None:
        self.names: dict[str, str] = {}
        self.remarks: list[str] = []
        self.simulated = False
        self._mapping = mapping
        self._zone = ZoneInfo(mapping.timezone)
        self._naive = ZoneInfo("UTC") if mapping.naive_times == "utc" else self._zone
        self._patients: dict[str, str] = {}
        self._replaced: dict[str, str] = {}
        self._merged: set[str] = set()
        self._locations: dict[str, str] = {}
        self._medications: dict[str, Concept] = {}
        self._encounters: dict[str, _Encounter] = {}
        self._zones = Zones()
        self._stays: dict[tuple[str, str, datetime | None], int] = {}
        self._foreign: Counter[str] = Counter()
        self._strangers: Counter[str] = Counter()
        self._n_not_done = 0
        self._former: dict[str, set[Place]] = {}
        self._waiting: list[tuple[str, Row]] = []
        self._files = self._by_type(source)
        self._look_up(source.name)

    def _by_type(self, source: Path) -> dict[str, list[TextFile]]:
        """Sort files by the type of their first resource, and say which are not read."""
        out: dict[str, list[TextFile]] = {}
        unused: dict[str, list[str]] = {}
        used = {*_LOOKED_UP, "Specimen", _BUNDLE, *self._converters()}
        files, others = fhir_files(source)
        for file in files:
            head = next((each for _, each in objects(file)), {"resourceType": ""}) if is_ndjson(file.name) else None
            kind = head.get("resourceType") if head is not None else _BUNDLE
            if not isinstance(kind, str):
                raise SourceError(f"{file.name}: line 1 has no resourceType, so it is not a FHIR resource. {_ADVICE}")
            if kind == _BUNDLE and file.name != source.name:
                # It may be called like its patient, whom no report and no error names.
                file = replace(file, name=f"Bundle {len(out.get(kind, ())) + 1:,} by name")
            if kind in used:
                out.setdefault(kind, []).append(file)
            else:
                unused.setdefault(kind, []).append(file.name)
        self.findings = unread(sorted(unread_files(source, is_json) + others), self.remarks)
        self.findings += unread(unused.pop("", []), self.remarks)
        for kind, names in unused.items():
            self.remarks.append(f"Not read, because nothing uses {kind}: {', '.join(names)}.")
        return out

    def _of_type(self, kind: str, n_lines: int | None = None) -> Iterator[tuple[JsonObject, Place]]:
        """Return the resources of a type, or the entries of Bundles, with where they stand.

        What cannot be understood is refused with its place.
        """
        if n_lines is None and kind in self._files and kind not in self._former:
            self._look_for_versions(kind)
        for file in self._files.get(kind, ()):
            for resource, place in islice(_placed(kind, file), n_lines):
                if place in self._former.get(kind, ()):
                    continue
                with _refusing(place):
                    if kind not in (_BUNDLE, resource.get("resourceType")):
                        raise WrongElementError(
                            f"is no {kind}, as the lines before it; a bulk export has one type per file"
                        )
                yield resource, place

    def _look_for_versions(self, kind: str) -> None:
        """Find the former versions of resources of a type; lines and Bundles may hold versions of each other."""
        found, n_unsure = _former_versions(self._files if _BUNDLE in self._files else {kind: self._files[kind]})
        if n_unsure:
            said = "of their patient, other content, and no version: all count"
            self.remarks.append(f"{counted(n_unsure, 'resource')} with the id of another one {said}.")
        for each, former in found.items():
            self._former[each] = former
            if n := len(former):
                what = counted(n, "entry", "entries") if each == _BUNDLE else f"{counted(n, 'line')} of {each}"
                self.remarks.append(f"{what} left out: a later version of the same resource is there.")

    def _look_up(self, name: str) -> None:
        take: dict[str, Callable[[JsonObject], None]] = {
            "Patient": self._take_patient,
            "Location": self._take_location,
            "Medication": self._take_medication,
            "Encounter": self._take_encounter,
        }
        n_simulated, unused = 0, Counter[str]()
        used = {*take, "Specimen", *self._converters()}
        for resource, where in chain.from_iterable(map(self._of_type, (*_LOOKED_UP, _BUNDLE))):
            with _refusing(where):
                kind = text(resource, "resourceType")
                if kind in take:
                    take[kind](resource)
            unused[kind] += kind not in used
            n_simulated += kind == "Patient" and any(
                each.get("system") == _SYNTHEA for each in resource.get("identifier") or ()
            )
        self._merge_patients()
        if not self._patients:
            raise SourceError(f"{name}: holds no Patient resource. Export them too, as ndjson or in Bundles.")
        if +unused:
            said = ", ".join(f"{kind or 'no resource'} ({n:,})" for kind, n in (+unused).most_common())
            self.remarks.append(f"Entries of Bundles not read, because nothing uses them: {said}.")
        self.simulated = n_simulated == len(set(self._patients.values())) > 0

    def rows(self, n_lines: int | None) -> Iterator[tuple[Place, Row]]:
        """Return all rows, with where they come from; of each file those of its first lines."""
        converters = self._converters()
        for of in (*converters, _BUNDLE):
            for resource, where in self._of_type(of, n_lines):
                kind = resource.get("resourceType", "")
                if kind not in converters:
                    continue
                with _refusing(where):
                    if reference(resource, "subject").partition("/")[0] in _NO_PATIENT:
                        self._strangers[kind] += 1
                        continue
                    subject, why = self._subject(resource), _why_not_done(resource)
                    self._n_not_done += bool(why)
                    not_done = Row(subject, None, f"NOT_DONE//{kind}//{why}")
                    made = [not_done] if why else list(converters[kind](resource, subject))
                    status, is_date = _status(resource), len(text(resource, _TIMED.get(kind, ""))) == _DAY
                # A dose that is on hold was begun.
                if kind == "MedicationRequest" or status not in _KNOWN or is_date:
                    made = [row._replace(status=status, is_date=is_date) for row in made]
                yield from ((where, row) for row in made)
        yield from ((Place("", 1), row) for row in self._with_specimens())
        stays = pd.DataFrame(list(self._stays), columns=["patient", "number", "start"])
        self.findings += [*self._zones.findings(), shared_stays(stays), Finding("never_done", self._n_not_done)]
        if self._strangers:
            said = ", ".join(f"{kind} ({n:,})" for kind, n in self._strangers.most_common())
            self.remarks.append(f"Left out, because they are of a device, group or place and no patient: {said}.")
        self._remark_on_zone()

    # What others refer to

    def _take_patient(self, resource: JsonObject) -> None:
        identifier = name_in(resource)
        by_system = {text(each, "system"): name_in(each, "value") for each in parts(resource, "identifier")}
        wanted = self._mapping.patient_identifier
        subject = by_system.get(wanted, "") if wanted else identifier
        if not subject:
            raise WrongElementError(
                f"has no identifier of the system {wanted!r}, which the mapping's patient_identifier names"
                if wanted
                else "id is missing"
            )
        for name in (*_names(resource), *(f"?{key}|{each}" for key, each in by_system.items())):
            if self._patients.setdefault(name, subject) != subject:
                raise WrongElementError("has an id or identifier that another Patient has as well")
        for link in parts(resource, "link"):
            if text(link, "type") == "replaced-by":
                self._replaced |= dict.fromkeys(_names(resource), reference(link, "other"))

    def _merge_patients(self) -> None:
        """Let records that another one replaces be that one's."""
        now_of: dict[str, str] = {}
        for former, target in self._replaced.items():
            passed = {former}
            while target in self._replaced and target not in passed:
                passed.add(target)
                target = self._replaced[target]
            if target in self._patients and target not in passed:
                now_of[self._patients[former]] = self._patients[target]
        self._merged = {name for name in self._replaced if self._patients[name] in now_of}
        self._patients = {name: now_of.get(subject, subject) for name, subject in self._patients.items()}
        if now_of:
            found = counted(len(now_of), "Patient")
            self.remarks.append(f"{found} replaced by another one, whose records theirs are now (Patient.link).")

    def _take_location(self, resource: JsonObject) -> None:
        by_system = [(text(each, "system"), name_in(each, "value")) for each in parts(resource, "identifier")]
        names = (*_names(resource), *(f"Location?{system}|{value}" for system, value in by_system))
        self._locations |= dict.fromkeys(names, text(resource, "name"))

    def _take_medication(self, resource: JsonObject) -> None:
        self._medications |= dict.fromkeys(_names(resource), self._medication_of(resource))

    def _medication_of(self, resource: JsonObject) -> Concept:
        """Return a Medication's code: a name among its identifiers, its own code, its ingredients, any identifier."""
        identifiers = {text(each, "system"): name_in(each, "value") for each in parts(resource, "identifier")}
        named = next((each for system, each in identifiers.items() if system.endswith("medication-name")), "")
        if named:
            return Concept("NAME", " ".join(named.replace("//", "/").split()), named)
        found = concept(resource, "code")
        if found is not None:
            return found
        ingredients = [self._ingredient(each) for each in parts(resource, "ingredient")]
        said = " + ".join(ingredients) or next(filter(None, identifiers.values()), "")
        if not said:
            raise WrongElementError("has neither code, ingredient nor identifier")
        return Concept("NAME", said.replace("//", "/"), said)

    def _ingredient(self, element: JsonObject) -> str:
        found = concept(element, "itemCodeableConcept") or self._medications.get(reference(element, "itemReference"))
        if found is None:
            raise WrongElementError(
                "ingredient.itemReference refers to a Medication that no line before it holds; put ingredients first"
            )
        return found.name or found.code

    def _take_encounter(self, resource: JsonObject) -> None:
        period = part(resource, "period")
        found = _Encounter(_class(resource), self._time(period, "start"), self._time(period, "end"))
        self._encounters |= dict.fromkeys(_names(resource), found)

    # Resources as rows

    def _patient(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        if f"Patient/{name_in(resource)}" in self._merged:
            return
        yield Row(subject, None, f"SEX//{text(resource, 'gender') or 'unknown'}")
        born = text(resource, "birthDate")
        if born:
            # A birth of which only the year or the month is known is put on its first day.
            padded = {4: f"{born}-01-01", 7: f"{born}-01"}.get(len(born), born)
            yield Row(subject, self._read_time(padded, "birthDate"), "BIRTH")
        if text(resource, "deceasedDateTime") or is_true(resource, "deceasedBoolean"):
            yield Row(subject, self._time(resource, "deceasedDateTime"), "DEATH")

    def _encounter(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        profile = next((str(each) for each in part(resource, "meta").get("profile") or ()), "").rpartition("/")[2]
        period = part(resource, "period")
        start, end = self._time(period, "start"), self._time(period, "end")
        of_class = _class(resource)
        code = f"ENCOUNTER//{of_class}//{profile}"
        # A part whose whole the export does not hold is all that is known of the stay.
        if reference(resource, "partOf") in self._encounters:
            yield Row(subject, start, f"{code}//PART")
        elif start is not None and start == end:
            yield Row(subject, start, f"{code}//ZERO_LENGTH")
        else:
            # An encounter that an export holds twice is one stay; one without an id is itself alone.
            name = name_in(resource) or f"\0{len(self._stays)}"
            stay = self._stays.setdefault((subject, name, start), len(self._stays) + 1)
            yield Row(subject, start, f"{code}//ADMISSION", stay=stay)
            if end is not None:
                yield Row(subject, end, f"{code}//DISCHARGE", stay=stay)
        for each in parts(resource, "location"):
            target = part(each, "location")
            name = self._locations.get(reference(each, "location"), "") or text(target, "display")
            if name:
                yield Row(
                    subject,
                    self._time(part(each, "period"), "start") or start,
                    f"CARE_UNIT//{of_class}//{name.replace('//', '/')}",
                )
        for each in parts(resource, "reasonCode"):
            reason = concept({"code": each}, "code")
            if reason is not None:
                yield Row(subject, start, self._named(f"REASON//{of_class}//{reason}", reason))

    def _observation(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        category = _category(resource)
        time, end = self._effective(resource)
        known = max(filter(None, (self._time(resource, "issued"), end)), default=None)
        components = parts(resource, "component")
        for element in (*components, *([] if components and not _has_value(resource) else [resource])):
            code = concept(element, "code") or (concept(resource, "code") if element is not resource else None)
            if code is None:
                raise WrongElementError("code is missing")
            value, said, unit = _value(element)
            if element is resource and resource.get("hasMember") and not _has_value(resource):
                yield Row(subject, time, self._named(f"PANEL//{code}", code))
                continue
            low, high = _range(element)
            row = Row(
                subject,
                time,
                self._named(f"OBSERVATION//{category}//{code}//{unit}", code),
                value,
                said,
                known_at=known,
                range_low=low,
                range_high=high,
            )
            specimen = reference(resource, "specimen")
            if time is None and specimen:
                self._waiting.append((specimen, row))
            else:
                yield row

    def _service(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        code = concept(resource, "code") or _NAMELESS
        time = self._time(resource, "authoredOn") or self._time(resource, "occurrenceDateTime")
        yield Row(subject, time, self._named(f"SERVICE//{_category(resource)}//{code}", code))

    def _request(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        drug = self._drug(resource)
        # Of several instructions the first tells the dose, and any one how long the order lasts.
        instructions = parts(resource, "dosageInstruction")
        repeats = [part(part(each, "timing"), "repeat") for each in instructions]
        periods = [part(each, "boundsPeriod") for each in repeats]
        periods.append(part(part(resource, "dispenseRequest"), "validityPeriod"))
        period = next(filter(None, periods), {})
        start = self._time(resource, "authoredOn") or self._time(period, "start")
        end = self._time(period, "end")
        lasts = max((duration(part(each, "boundsDuration")) for each in repeats), default=timedelta(0))
        if end is None and start is not None and lasts:
            end = start + lasts
        end = end or next(filter(None, (self._time(each, "valueDateTime") for each in ends_in(resource))), None)
        instruction = next(iter(instructions), {})
        amount = dose(part(first(instruction, "doseAndRate"), "doseQuantity"))
        code, order = self._named(f"MEDICATION//ORDER//{drug}", drug), _order(resource, start, subject, drug, end)
        yield Row(subject, start, code, order=order, end=end, dose=amount, route=_name(instruction, "route"))
        if end is not None:
            yield Row(subject, end, self._named(f"MEDICATION//STOP//{drug}", drug), order=order)

    def _administration(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        drug, given = self._drug(resource), part(resource, "dosage")
        start, end = self._effective(resource)
        code = self._named(f"MEDICATION//GIVEN//{drug}//{_name(given, 'method')}", drug)
        order = _order(resource, start, subject, drug, end)
        yield Row(
            subject, start, code, order=order, end=end, dose=dose(part(given, "dose")), route=_name(given, "route")
        )
        if end is not None and end != start:
            yield Row(subject, end, self._named(f"MEDICATION//STOP//{drug}", drug), order=order)

    def _condition(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        code = concept(resource, "code") or _NAMELESS
        recorded = self._time(resource, "recordedDate")
        # A diagnosis without any date was coded for billing: it is known at the end of its encounter.
        start = self._time(resource, "onsetDateTime") or self._time(part(resource, "onsetPeriod"), "start")
        encounter = self._encounters.get(reference(resource, "encounter"))
        start = start or recorded or (encounter.end if encounter else None)
        end = self._time(resource, "abatementDateTime") or self._time(part(resource, "abatementPeriod"), "end")
        spelled = self._named(f"CONDITION//{_category(resource)}//{code}", code)
        yield Row(subject, start, spelled, known_at=recorded, end=end)

    def _procedure(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        code, period = concept(resource, "code") or _NAMELESS, part(resource, "performedPeriod")
        start = self._time(resource, "performedDateTime") or self._time(period, "start")
        yield Row(subject, start, self._named(f"PROCEDURE//{code}", code), end=self._time(period, "end"))

    def _allergy(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        code, known = concept(resource, "code") or _NAMELESS, self._time(resource, "recordedDate")
        start = self._time(resource, "onsetDateTime") or known
        signs = [_name(each, "manifestation") for each in parts(resource, "reaction")]
        spelled = self._named(f"ALLERGY//{code}", code)
        yield Row(subject, start, spelled, text=", ".join(filter(None, signs)), known_at=known)

    def _report(self, resource: JsonObject, subject: str) -> Iterator[Row]:
        code = concept(resource, "code") or _NAMELESS
        time, end = self._effective(resource)
        known = max(filter(None, (self._time(resource, "issued"), end)), default=None)
        spelled = self._named(f"REPORT//{_category(resource)}//{code}", code)
        yield Row(subject, time, spelled, text=text(resource, "conclusion"), known_at=known)

    def _converters(self) -> dict[str, Callable[[JsonObject, str], Iterator[Row]]]:
        return {
            "Patient": self._patient,
            "Encounter": self._encounter,
            "Observation": self._observation,
            "ServiceRequest": self._service,
            "MedicationRequest": self._request,
            "MedicationAdministration": self._administration,
            "Condition": self._condition,
            "Procedure": self._procedure,
            "AllergyIntolerance": self._allergy,
            "DiagnosticReport": self._report,
        }

    # Parts of resources

    def _subject(self, resource: JsonObject) -> str:
        kind = resource["resourceType"]
        key = "patient" if kind == "AllergyIntolerance" else "subject"
        target = f"Patient/{name_in(resource)}" if kind == "Patient" else reference(resource, key)
        if not target:
            raise WrongElementError(f"{key} is missing; every resource belongs to a patient")
        found = self._patients.get(target) or self._patients.get(target.removeprefix("Patient"))
        if found is None:
            raise WrongElementError(f"{key} refers to a patient whom no Patient file holds")
        return found

    def _drug(self, resource: JsonObject) -> Concept:
        own = concept(resource, "medicationCodeableConcept")
        if own is not None:
            return own
        target = reference(resource, "medicationReference")
        shown = text(part(resource, "medicationReference"), "display").replace("//", "/")
        if shown and (not target or (not self._medications and not target.startswith("#"))):
            return Concept("NAME", shown, shown)
        if not target:
            raise WrongElementError("medicationCodeableConcept and medicationReference are both missing or empty")
        for each in parts(resource, "contained"):
            if target == f"#{name_in(each)}":
                return self._medication_of(each)
        if target in self._medications:
            return self._medications[target]
        raise WrongElementError("medicationReference refers to a Medication that neither a file nor contained holds")

    def _effective(self, resource: JsonObject) -> tuple[datetime | None, datetime | None]:
        period = part(resource, "effectivePeriod")
        at = self._time(resource, "effectiveDateTime") or self._time(resource, "effectiveInstant")
        end = self._time(period, "end")
        return at or self._time(period, "start") or end, end

    def _time(self, element: JsonObject, key: str) -> datetime | None:
        said = text(element, key)
        return self._read_time(said, key) if said else None

    def _read_time(self, said: str, key: str) -> datetime | None:
        try:
            found = moment(said, self._zone, self._naive)
        except WrongElementError as error:
            raise WrongElementError(f"{key} {error}") from None
        if found is not None and len(said) > _DAY:
            self._count_zone(said, found)
        return found

    def _count_zone(self, said: str, found: datetime) -> None:
        offset = offset_of(said)
        is_foreign = offset not in _NO_OFFSET and said[_CLOCK] != found.strftime("%H:%M")
        self._zones.count(has_zone=offset != "", is_foreign=is_foreign)
        if is_foreign:
            self._foreign[offset] += 1

    def _remark_on_zone(self) -> None:
        n = self._foreign.total()
        if n > _MANY * self._zones.n_with:
            often = self._foreign.most_common(1)[0][0]
            self.remarks.append(
                f"{n / self._zones.n_with:.0%} of the times have an offset that {self._mapping.timezone} "
                f"did not have then (most often {often}). Set timezone in the mapping to the hospital's: it places the "
                "snapshot hour."
            )

    def _named(self, code: str, found: Concept) -> str:
        if found.name and not self.names.get(code):
            self.names.setdefault(spelled_for(code, self._mapping), tidy(found.name))
        return code

    def _with_specimens(self) -> Iterator[Row]:
        """Return the observations that have no time of their own, at the time of their specimen."""
        wanted = {specimen for specimen, _ in self._waiting}
        times: dict[str, datetime | None] = {}
        for resource, where in chain.from_iterable(map(self._of_type, ("Specimen", _BUNDLE))) if wanted else ():
            with _refusing(where):
                names = wanted.intersection(_names(resource)) if resource.get("resourceType") == "Specimen" else ()
                if names:
                    collected = part(resource, "collection")
                    taken = self._time(collected, "collectedDateTime") or self._time(
                        part(collected, "collectedPeriod"), "start"
                    )
                    times |= dict.fromkeys(names, taken)
        for specimen, row in self._waiting:
            yield row._replace(time=times.get(specimen))
        self._waiting.clear()


def _placed(kind: str, file: TextFile) -> Iterator[tuple[JsonObject, Place]]:
    """Return the resources of a file with where they stand: of ndjson the line, of Bundles the entry."""
    if kind != _BUNDLE:
        for line, resource in objects(file):
            yield resource, Place(file.name, line)
        return
    place = Place(file.name, 1, "entry")
    for entry in entries(file):
        with _refusing(place):
            for resource in _resources(entry):
                yield resource, place
                place = place._replace(line=place.line + 1)


def _resources(entry: Any) -> Iterator[JsonObject]:
    """Return the resource of a Bundle's entry, called as the entry says; of a Bundle inside those of its entries."""
    if not isinstance(entry, dict):
        raise WrongElementError("is not a JSON object")
    resource = part(entry, "resource")
    if text(part(entry, "request"), "method").upper() == "DELETE":
        raise WrongElementError("deletes a resource, and what it deletes is not looked up; export what holds now")
    if resource.get("resourceType") == _BUNDLE:
        for each in parts(resource, "entry"):
            yield from _resources(each)
        return
    if name := name_in(entry, "fullUrl").rpartition("/")[2].rpartition(":")[2]:
        resource = {"id": name} | resource | {"fullUrl": name}
    yield resource


def _names(resource: JsonObject) -> tuple[str, ...]:
    """Return how others refer to a resource: by type and id, and by what a Bundle calls it."""
    name = name_in(resource)
    return f"{resource['resourceType']}/{name}", f"/{name}", f"/{name_in(resource, 'fullUrl') or name}"


def _former_versions(files: Mapping[str, Sequence[TextFile]]) -> tuple[dict[str, set[Place]], int]:
    """Return by type of file where the resources stand of which there is a later version elsewhere.

    Resources that are equal, those without an id, and those of several patients are no versions of each other. Return
    also how many differ under one id without saying which is later.
    """
    versions: dict[str, list[tuple[tuple[int, str, int], int, str, Place]]] = {}
    for kind, resource, place in _repeated(files):
        with _refusing(place):
            meta = part(resource, "meta")
            number, updated, name = text(meta, "versionId"), instant(text(meta, "lastUpdated")), name_in(resource)
            patient = f"{reference(resource, 'subject')} {reference(resource, 'patient')}"
            of = f"{resource.get('resourceType')} {name} {patient}"
        if not name:
            continue
        rank = (int(number) if number.isdecimal() else 0, updated, len(versions.get(of, ())))
        content = {key: each for key, each in resource.items() if key not in ("fullUrl", "meta")}
        versions.setdefault(of, []).append((rank, hash(json.dumps(content, sort_keys=True)), kind, place))
    former: dict[str, set[Place]] = {kind: set() for kind in files}
    n_unsure = 0
    for each in versions.values():
        last = max(each)
        others = [(kind, place) for _, said, kind, place in each if said != last[1]]
        if not all(any(rank[:2]) for rank, *_ in each):
            n_unsure += len(others)
            continue
        for kind, place in others:
            former[kind].add(place)
    return former, n_unsure


def _repeated(files: Mapping[str, Sequence[TextFile]]) -> Iterator[tuple[str, JsonObject, Place]]:
    """Yield the resources whose id others have as well, with the type of their file."""
    lines = [(kind, file) for kind, of_kind in files.items() if kind != _BUNDLE for file in of_kind]
    bundles = files.get(_BUNDLE, ())
    of_entries = (str(each.get("id")) for file in bundles for each, _ in _placed(_BUNDLE, file))
    wanted = more_than_once(map(hash, chain(ids(file for _, file in lines), of_entries)))
    if wanted:
        for kind, file in lines:
            yield from ((kind, each, Place(file.name, line)) for line, each in with_ids(file, wanted))
        for each, place in (found for file in bundles for found in _placed(_BUNDLE, file)):
            if hash(str(each.get("id"))) in wanted:
                yield _BUNDLE, each, place


@contextmanager
def _refusing(place: Place) -> Iterator[None]:
    """Raise an error that names file and line where an element is wrong."""
    try:
        yield
    except WrongElementError as error:
        raise SourceError(f"{place.file}: {place.unit} {place.line:,}: {error}. {_ADVICE}") from None


def _order(resource: JsonObject, start: datetime | None, *said: object) -> str:
    """Return the identity of a drug order, which its beginning and its end share: its id and time, or what it says."""
    return "/".join(map(str, (resource["resourceType"], *((name, start) if (name := name_in(resource)) else said))))


_OF_R5 = ("actualPeriod", "medication")
"""Elements that stand for one of R4 in Encounter, MedicationRequest and MedicationAdministration."""


def _why_not_done(resource: JsonObject) -> str:
    """Return what says that an act was not decided or not done: status, verification, intent; "" if nothing does.

    Raise WrongElementError for a resource of R5.
    """
    for key in _OF_R5:
        if key in resource:
            raise WrongElementError(f"{key} is an element of FHIR R5, which is not read; export FHIR R4")
    verified = concept(resource, "verificationStatus")
    said = {_status(resource), verified.code.lower() if verified else ""} & _NOT_DONE
    if not said and is_true(resource, "doNotPerform"):
        return "doNotPerform"
    intent = text(resource, "intent").lower()
    return next(iter(said), intent if intent in _NO_ORDER else "")


def _status(resource: JsonObject) -> str:
    return text(resource, "status").lower()


def _category(resource: JsonObject) -> str:
    """Return the first of `_CATEGORIES` that a resource has, in code or text and any case, else its first category."""
    said = {each.casefold() for found in parts(resource, "category") for each in words(found)}
    found = concept(resource, "category")
    return next((each for each in _CATEGORIES if each.casefold() in said), found.code if found else "")


def _class(resource: JsonObject) -> str:
    kind = coding(resource, "class")
    return kind.code.upper() if kind else ""


def _name(element: JsonObject, key: str) -> str:
    """Return a CodeableConcept as people read it."""
    found = concept(element, key)
    return (found.name or found.code) if found else ""


def _has_value(element: JsonObject) -> bool:
    return any(key.startswith("value") for key in element)


def _value(element: JsonObject) -> tuple[float, str, str]:
    """Return the value of an Observation or component as number, text and unit."""
    if "valueQuantity" in element:
        value, unit, said = quantity(part(element, "valueQuantity"))
        # R4 has one value; a text beside it may contradict it.
        return value, said or text(element, "valueString"), ucum_unit(part(element, "valueQuantity")) or unit
    if "valueInteger" in element:
        return number(element, "valueInteger"), "", ""
    if "valueBoolean" in element:
        return np.nan, "true" if is_true(element, "valueBoolean") else "false", ""
    if "valueCodeableConcept" in element:
        return np.nan, _name(element, "valueCodeableConcept"), ""
    for key in ("valueString", "valueDateTime", "valueTime"):
        if key in element:
            return np.nan, text(element, key), ""
    for key, ends, mark in (("valueRange", ("low", "high"), "-"), ("valueRatio", ("numerator", "denominator"), ":")):
        if key in element:
            amounts = [quantity(part(part(element, key), end)) for end in ends]
            return (
                np.nan,
                mark.join(said or ("" if np.isnan(value) else plain(value)) for value, _, said in amounts),
                "",
            )
    return np.nan, _name(element, "dataAbsentReason"), ""


def _range(element: JsonObject) -> tuple[float, float]:
    """Return the reference range: the one of type "normal", or without a type, first."""
    ranges = parts(element, "referenceRange")
    plainest = [each for each in ranges if (concept(each, "type") or _NORMAL).code == "normal"]
    found = next(iter(plainest), {})
    return number(part(found, "low"), "value"), number(part(found, "high"), "value")


def _fits(source: Path | str) -> bool:
    try:
        return isinstance(source, Path) and (bool(fhir_files(source)[0]))
    except SourceError:
        # What is wrong with the source, a format that it may be in says better.
        return False


FORMAT = Format(
    name="fhir",
    fits=_fits,
    read=lambda source, mapping, schema: read(Path(source), mapping),
    code_counts=lambda source, mapping, schema: code_counts(Path(source), mapping),
)
