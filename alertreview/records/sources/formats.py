"""Formats of health records that can be imported: this table is the only place that lists them."""

from pathlib import Path

from alertreview.records.sources import csv, fhir, meds, omop, tables
from alertreview.records.sources.base import Format
from core.errors import SourceError

FORMATS: dict[str, Format] = {
    each.name: each for each in (meds.FORMAT, fhir.FORMAT, omop.FORMAT, tables.FORMAT, csv.FORMAT)
}
"""By name. A source is in the first format whose `Format.fits` says so; MEDS, whose reader says best what is missing,
stands for a source that is in none."""


def detect_format(source: Path | str) -> str:
    """Return the name of a source's format, a key of `FORMATS`, told from its type and file names.

    Raise SourceError when there is no such file or folder, or an archive cannot be read.
    """
    return next((name for name, each in FORMATS.items() if each.fits(source)), meds.FORMAT.name)


def checked_format(name: str) -> Format:
    """Return the format of a name; raise SourceError when there is none."""
    if name not in FORMATS:
        raise SourceError(f"{name!r} is not a format of health records; choose one of {', '.join(FORMATS)}.")
    return FORMATS[name]
