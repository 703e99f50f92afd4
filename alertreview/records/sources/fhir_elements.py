"""Elements of a FHIR R4 resource, each checked for its type: codes, times, quantities and references."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from alertreview.records.sources.ndjson import JsonObject
from core.events.spelling import is_common_unit, tidy

SYSTEMS = {
    "http://loinc.org": "LOINC",
    "http://snomed.info/sct": "SNOMED",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "RxNorm",
    "http://hl7.org/fhir/sid/ndc": "NDC",
    "http://hl7.org/fhir/sid/cvx": "CVX",
    "http://hl7.org/fhir/sid/icd-10": "ICD10",
    "http://hl7.org/fhir/sid/icd-10-cm": "ICD10CM",
    "http://hl7.org/fhir/sid/icd-9-cm": "ICD9CM",
    "http://www.whocc.no/atc": "ATC",
}
"""Short names of code systems; others are named after the last part of their address."""

_PREFERRED = ("LOINC", "RxNorm", "SNOMED", "ATC")
_TIME = re.compile(
    r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
"""The dateTime of FHIR R4; a blank for its T, small letters and an offset without a colon are read as well."""
_AROUND_PARTS = re.compile(r" ?([/|]) ?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LAST_SECOND = 59
_UCUM = "http://unitsofmeasure.org"
_SECONDS = {"s": 1, "min": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400, "wk": 604_800, "week": 604_800}
_LONGEST = 366 * 86_400


class WrongElementError(Exception):
    """An element is missing or not what FHIR R4 says; the reader adds file and line."""


class Concept(NamedTuple):
    """A code as the site mapping sees it, and its name for people."""

    system: str
    code: str
    name: str

    def __str__(self) -> str:
        """Return the part of an event's code."""
        return f"{self.system}//{self.code}"


def part(element: JsonObject, key: str) -> JsonObject:
    """Return a part of an element; empty if it is missing."""
    found = element.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise WrongElementError(f"{key} is {_kind(found)}; FHIR R4 has an object there")
    return found


def parts(element: JsonObject, key: str) -> list[JsonObject]:
    """Return the parts of a repeated element; a single object stands for a list of one."""
    found = element.get(key)
    if found is None:
        return []
    listed = found if isinstance(found, list) else [found]
    if not all(isinstance(each, dict) for each in listed):
        raise WrongElementError(f"{key} is {_kind(found)}; FHIR R4 has a list of objects there")
    return listed


def first(element: JsonObject, key: str) -> JsonObject:
    """Return the first of a repeated element; empty if it is missing."""
    return next(iter(parts(element, key)), {})


def text(element: JsonObject, key: str) -> str:
    """Return a text; "" if it is missing."""
    found = element.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise WrongElementError(f"{key} is {_kind(found)}; FHIR R4 has a text there")
    if not found.isascii() and _SURROGATE.search(found):
        raise WrongElementError(f"{key} holds half of a character (a lone surrogate)")
    return found.strip()


def name_in(element: JsonObject, key: str = "id") -> str:
    """Return a text that others refer to, in its one spelling."""
    return tidy(text(element, key))


def number(element: JsonObject, key: str) -> float:
    """Return a number; NaN if it is missing."""
    found = element.get(key)
    if found is None:
        return math.nan
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise WrongElementError(f"{key} is {_kind(found)}; FHIR R4 has a number there")
    try:
        return float(found)
    except OverflowError:
        return math.inf


def is_true(element: JsonObject, key: str) -> bool:
    """Return whether a Boolean is there and true."""
    found = element.get(key)
    if found is not None and not isinstance(found, bool):
        raise WrongElementError(f"{key} is {_kind(found)}; FHIR R4 has true or false there")
    return bool(found)


def _kind(found: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return kinds.get(type(found), "a number")


def reference(element: JsonObject, key: str) -> str:
    """Return what an element refers to: "Patient/1", "#contained", "Patient?system|value"; "" if to nothing.

    Absolute addresses, versions (``/_history/2``) and ``urn:uuid:`` are taken off.
    """
    found = part(element, key)
    target = _AROUND_PARTS.sub(r"\1", tidy(text(found, "reference")))
    if "?identifier=" in target:
        kind, _, identifier = target.partition("?identifier=")
        return f"{kind}?{identifier}"
    if not target and found.get("identifier") is not None:
        return f"?{text(part(found, 'identifier'), 'system')}|{name_in(part(found, 'identifier'), 'value')}"
    if target.startswith(("#", "urn:")):
        return target if target.startswith("#") else f"/{target.rpartition(':')[2]}"
    return "/".join(target.partition("/_history/")[0].split("/")[-2:])


def concept(element: JsonObject, key: str) -> Concept | None:
    """Return the code of a CodeableConcept, LOINC, RxNorm, SNOMED CT and ATC first; what it says if it has none."""
    found = first(element, key)
    codings = [_coded(each) for each in parts(found, "coding")]
    known = [each for each in codings if each.code]
    said = _flat(text(found, "text"))
    if not known:
        said = said or next((each.name for each in codings if each.name), "")
        return Concept("TEXT", said, said) if said else None
    best = min(known, key=lambda each: _PREFERRED.index(each.system) if each.system in _PREFERRED else len(_PREFERRED))
    return Concept(best.system, best.code, best.name or said or next((each.name for each in known if each.name), ""))


def coding(element: JsonObject, key: str) -> Concept | None:
    """Return the code of a Coding."""
    found = _coded(part(element, key))
    return found if found.code else None


def _coded(found: JsonObject) -> Concept:
    return Concept(system_name(text(found, "system")), _flat(text(found, "code")), _flat(text(found, "display")))


def system_name(address: str) -> str:
    """Return the short name of a code system.

    Examples
    --------
    >>> system_name("http://loinc.org"), system_name("http://mimic.mit.edu/fhir/mimic/CodeSystem/mimic-d-labitems")
    ('LOINC', 'mimic-d-labitems')
    """
    return SYSTEMS.get(address) or re.split(r"[/:]", address.rstrip("/"))[-1] or "LOCAL"


def _flat(said: str) -> str:
    """Take out what separates the parts of a code."""
    return " ".join(said.replace("//", "/").split())


def plain(found: float) -> str:
    """Return a number as people write it.

    Examples
    --------
    >>> plain(5.0), plain(0.25)
    ('5', '0.25')
    """
    return f"{found:.12g}"


def quantity(found: JsonObject) -> tuple[float, str, str]:
    """Return value, unit, and the text that stands for the value where it has a comparator ("<0.5")."""
    value, comparator = number(found, "value"), text(found, "comparator")
    unit = _flat(text(found, "unit") or text(found, "code"))
    if comparator and not math.isnan(value):
        return math.nan, unit, f"{comparator}{plain(value)}"
    return value, unit, ""


def ucum_unit(found: JsonObject) -> str:
    """Return the UCUM code of a common unit; "" without one. It is one code where sites show several words."""
    code = text(found, "code") if text(found, "system") == _UCUM else ""
    return code if is_common_unit(code) else ""


def duration(found: JsonObject) -> timedelta:
    """Return a Duration, zero if it has no value or no unit of UCUM that is as long on every day."""
    value, unit = number(found, "value"), text(found, "code") or text(found, "unit")
    seconds = _SECONDS.get(unit.lower().removesuffix("s") if len(unit) > 1 else unit, 0)
    return timedelta(seconds=value * seconds) if 0 < value * seconds < _LONGEST else timedelta(0)


_END = re.compile(
    r"status-?change(d|-?date)|(stop|end|discontinu(ed|ation))-?(date|time|date-?time)|date-?(stopped|ended)"
)


def ends_in(order: JsonObject) -> Iterator[JsonObject]:
    """Yield the extensions that date the end of an order which has ended by its status, such as R5's statusChanged."""
    if text(order, "status").lower() in ("stopped", "completed"):
        for element in (order, part(order, "_status"), part(order, "statusReason")):
            for each in _extensions(element):
                if _END.fullmatch(re.split(r"[/.]", text(each, "url").lower())[-1]):
                    yield each


def _extensions(element: JsonObject) -> Iterator[JsonObject]:
    for each in parts(element, "extension"):
        yield each
        yield from _extensions(each)


def words(found: JsonObject) -> list[str]:
    """Return the codes of a CodeableConcept, and its text."""
    said = [*(each.code for each in map(_coded, parts(found, "coding"))), _flat(text(found, "text"))]
    return [each for each in said if each]


def dose(found: JsonObject) -> str:
    """Return a quantity as a text, "" if it has no value."""
    value, unit, said = quantity(found)
    shown = said or ("" if math.isnan(value) else plain(value))
    return f"{shown} {unit}".strip() if shown else ""


@lru_cache(maxsize=100_000)
def moment(said: str, zone: ZoneInfo, naive_zone: ZoneInfo) -> datetime | None:
    """Return a FHIR dateTime as site time without a zone; None if it has no day.

    Times without an offset are of the naive zone. Raise WrongElementError if it is no dateTime, or no such time exists.
    """
    match = _TIME.fullmatch(said)
    if match is None:
        raise WrongElementError("is not a time such as 2026-02-28T06:15:00+01:00")
    year, month, day, hour, minute, second, offset = match.groups()
    if day is None:
        return None
    clock = (int(hour or 0), int(minute or 0), min(int(second or 0), _LAST_SECOND))
    try:
        found = datetime(int(year), int(month), int(day), *clock, tzinfo=UTC)
        plain_time = found.replace(tzinfo=None)
        if hour is None or (not offset and naive_zone == zone):
            return plain_time
        if offset and offset not in "Zz":
            found = datetime.fromisoformat(f"{plain_time.isoformat()}{offset}")
        elif not offset:
            found = found.replace(tzinfo=naive_zone)
        return found.astimezone(zone).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise WrongElementError("is not a time of the calendar") from None


def instant(said: str) -> str:
    """Return an instant as a text in UTC: the order of such texts is that of time; "" if it is none."""
    try:
        found = datetime.fromisoformat(said)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):
        return ""


def offset_of(said: str) -> str:
    """Return the offset that a dateTime carries, "" if none."""
    match = _TIME.fullmatch(said)
    return (match.group(7) or "").upper() if match else ""
