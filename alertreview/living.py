"""Living data: import the records of another day onto a snapshot."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from alertreview.data_files import preset_paths
from alertreview.importing import read_records, second_half
from alertreview.snapshots import Snapshot
from core.build import About, Progress, build
from core.cohort import Cohort
from core.errors import MappingError
from core.event_parts import gathered
from core.events import EventKind, of_kind
from core.import_report import ImportReport
from core.living import merge_events


@dataclass(frozen=True)
class Extended:
    """A snapshot with new records on it; nothing is written yet.

    Parameters
    ----------
    cohort : Cohort
    report : ImportReport
        Its counts of reading are those of the new records.
    trail : DataFrame
        Results that were corrected, with both values; earlier corrections first.
    n_added : int
        Events that were not known before. 0: nothing has changed, and the cohort has the content hash of the snapshot.
    """

    cohort: Cohort
    report: ImportReport
    trail: pd.DataFrame
    n_added: int


def extend_snapshot(
    snapshot: Snapshot,
    source: Path | str,
    *,
    format: str = "meds",  # noqa: A002
    mapping: str | Path | None = None,
    schema: str | None = None,
    min_positive: int | None = None,
    progress: Progress | None = None,
) -> Extended:
    """Add the records of a source to those of a snapshot.

    Events that are known already change nothing. A result of the same patient, time and item with another value is a
    correction: the new value counts, and both are kept in the trail.

    Parameters
    ----------
    snapshot : Snapshot
    source, format, mapping, schema, min_positive, progress
        As in `alertreview.importing.build_cohort`; the mapping must be that of the snapshot.

    Returns
    -------
    Extended

    Raises
    ------
    SourceError, MappingError
        When the source or the mapping cannot be used, or the mapping is another one than the snapshot's.
    """
    tell: Progress = progress or (lambda what, share: None)
    chosen = mapping if mapping is not None else _preset_of(snapshot)
    old = snapshot.cohort
    read = read_records(
        source,
        format=format,
        mapping=chosen,
        schema=schema,
        min_positive=min_positive,
        progress=tell,
        units=_units(old.events),
    )
    if read.mapping.name != snapshot.manifest["mapping"]:
        raise MappingError(
            f"The snapshot was imported with the mapping {snapshot.manifest['mapping']!r}, not with "
            f"{read.mapping.name!r}. Use the same one, or import everything anew."
        )
    merged = merge_events(old.events, old.stays, gathered(read.stream), read.mapping)
    known = old.patients.dropna(subset="source_split").set_index("patient_id")["source_split"].to_dict()
    about = About(read.about.source, {**known, **read.about.splits}, old.simulated or read.about.simulated)
    cohort, report = build(merged.events, read.counts, read.mapping, about, second_half(tell))
    trail = pd.concat([snapshot.trail, merged.trail], ignore_index=True)
    return Extended(cohort, report, trail, merged.n_added)


def _preset_of(snapshot: Snapshot) -> str:
    """Name of the snapshot's mapping, which must be one of the program's when nobody names a file again."""
    name = str(snapshot.manifest["mapping"])
    if name not in preset_paths():
        raise MappingError(
            f"The last import used the mapping {name!r} from a file of your own. Name that file again with --mapping."
        )
    return name


def _units(events: pd.DataFrame) -> dict[str, str]:
    """Units that items already have: the next day's records must not change them."""
    rows = events[of_kind(events, [EventKind.LAB_RESULT, EventKind.OBSERVATION]) & (events["unit"] != "").to_numpy()]
    first = rows[["item", "unit"]].drop_duplicates("item").astype("str")
    return dict(zip(first["item"], first["unit"], strict=True))
