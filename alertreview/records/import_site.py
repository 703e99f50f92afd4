"""Bring health records into a site: build the cohort, write its snapshot, register it in the database."""

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict
from zoneinfo import ZoneInfo

import pandas as pd

from alertreview.files import preset_paths, write_checksums
from alertreview.records.catalogue import stored_edit
from alertreview.records.importing import (
    EditMapping,
    Imported,
    choose_mapping,
    end_of_today,
    import_snapshot,
    read_records,
    second_half,
)
from alertreview.records.snapshot_writer import SnapshotWriter
from alertreview.records.snapshots import Snapshot, open_import, read_snapshot
from alertreview.settings import Progress, Settings
from core.cohort.build import Progress as StepProgress
from core.cohort.build import build_parts
from core.cohort.cohort import About
from core.errors import InvalidInputError, MappingError, NotFoundError, SourceError
from core.events.append import Known, Merging
from core.events.facts import empty_facts, sorted_facts
from core.events.import_report import ImportReport
from core.events.mapping import SiteMapping, load_mapping, parse_mapping
from core.events.parts import gathered
from core.events.reading import ROWS_PER_PART
from core.kinds import Kind
from db.audit import CHECKSUM
from db.database import Database
from db.models import CohortSnapshot, Instance, Task


def extend_snapshot(
    snapshot: Snapshot,
    source: Path | str,
    home: Path,
    *,
    format: str = "meds",  # noqa: A002
    mapping: str | Path | None = None,
    schema: str | None = None,
    min_positive: int | None = None,
    progress: StepProgress | None = None,
    rows_per_part: int = ROWS_PER_PART,
    labels: Sequence[str] = (),
    edit: EditMapping | None = None,
) -> Imported:
    """Write a snapshot below the home with the records of a source added to those of another.

    Memory holds the new records and a part of the former ones; parameters as in
    `alertreview.records.importing.read_records`. Events that are known already change nothing. A result of the same
    patient, time and item with another value is a correction: the new value counts, and both are kept in the trail,
    after earlier corrections. Where the snapshot has labels, days that have none stay out. Raise SourceError or
    MappingError if source or mapping cannot be used, or the mapping is not the snapshot's.
    """
    tell: StepProgress = progress or (lambda what, share: None)
    kept = _kept_mapping(snapshot)
    wanted = mapping if mapping is not None else kept or _preset_of(snapshot)
    chosen = choose_mapping(source, format, wanted, schema)
    if kept is not None:
        _refuse_change(chosen, kept)
    elif chosen.name != snapshot.manifest["mapping"]:
        raise MappingError(
            f"The snapshot was imported with the mapping {snapshot.manifest['mapping']!r}, not with {chosen.name!r}. "
            "Use the same one, or import everything again."
        )
    known = Known.of(snapshot.event_groups(["kind", "item", "name", "text", "unit"]))
    patients = snapshot.patients
    with SnapshotWriter(home) as writer:
        read = read_records(
            source,
            format=format,
            mapping=chosen,
            schema=schema,
            min_positive=min_positive,
            progress=tell,
            units=known.main_units,
            make_spill=writer.spill,
            rows_per_part=rows_per_part,
            labels=labels,
            known=frozenset(patients["patient_id"]) if labels or known.has_labels else None,
            edit=edit,
        )
        counts = replace(read.counts, remarks=(*read.counts.remarks, *_changed_since(chosen)))
        new, now = gathered(read.stream), end_of_today(read.mapping)
        merging = Merging(known, new, read.mapping, writer.spill("merged"), now)
        for part in merging.dealt(snapshot.n_events_of, rows_per_part):
            stays = snapshot.stays[snapshot.stays["patient_id"].isin(part)]
            merging.add(part, snapshot.events_of(*part), stays)
        stream, trail = merging.finish()
        splits = patients.dropna(subset="source_split").set_index("patient_id")["source_split"].to_dict()
        about = About(read.about.source, {**splits, **read.about.splits}, snapshot.simulated or read.about.simulated)
        built, report = build_parts(stream, counts, read.mapping, about, second_half(tell), writer, writer.spill)
        digest = writer.facts(_facts(snapshot, pd.concat([empty_facts(), *read.facts(built.patients["patient_id"])])))
        built = replace(built, content_hash=digest.onto(built.content_hash))
        trail = pd.concat([snapshot.trail, trail], ignore_index=True)
        folder = writer.finish(built, report, trail=trail, mapping=chosen)
        return Imported(folder, report, merging.n_added)


def _facts(snapshot: Snapshot, new: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Return the facts of a snapshot with new ones, in parts of whole patients."""
    new = new.astype(empty_facts().dtypes.to_dict())
    for known in snapshot.fact_groups():
        is_theirs = new["patient_id"].isin(known["patient_id"])
        yield sorted_facts(pd.concat([known, new[is_theirs]], ignore_index=True))
        new = new[~is_theirs]
    yield sorted_facts(new)


def _kept_mapping(snapshot: Snapshot) -> SiteMapping | None:
    """Return the mapping that the snapshot was imported with; None if a former version wrote it."""
    says = snapshot.manifest.get("mapping_says")
    return parse_mapping(says, f"{snapshot.folder / 'manifest.json'}") if says else None


def _refuse_change(mapping: SiteMapping, kept: SiteMapping) -> None:
    """Raise an error for a mapping with which new records would mean something else than the known ones."""
    changed = mapping.changed_from(kept)
    if changed:
        raise MappingError(
            f"The last import was read with the mapping {kept.name!r}; {mapping.name!r} now says something else under "
            f"{', '.join(changed)}, so that what is known already would not be found again. Leave out --mapping to "
            "read these records as the last import was read, or import everything again, without --add."
        )


def _changed_since(mapping: SiteMapping) -> Iterator[str]:
    """Say that a mapping is no longer what comes with the program under its name."""
    path = preset_paths().get(mapping.name)
    changed = load_mapping(path).changed_from(mapping) if path else ()
    if changed:
        yield (
            f"These records were read as the last import was. The mapping {mapping.name!r} that comes with the program "
            f"now says something else under {', '.join(changed)}; to use that, import everything again, without --add."
        )


def _preset_of(snapshot: Snapshot) -> str:
    """Name of the snapshot's mapping, which must be one of the program's when nobody names a file again."""
    name = str(snapshot.manifest["mapping"])
    if name not in preset_paths():
        raise MappingError(
            f"The last import used the mapping {name!r} from a file of your own. Name that file again with --mapping."
        )
    return name


_PROGRESS_STEPS = 1000
_ROWS_AT_ONCE = 10_000
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Import of {title}</title>
<style>body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2rem }}
th {{ text-align: left; padding-right: 1rem }}</style>
</head><body>{body}</body></html>
"""


@dataclass(frozen=True)
class ImportOutcome:
    """What an import came to."""

    folder: Path
    report: ImportReport
    unchanged: bool  # True when the same records had been imported before
    keeps_words: bool = False  # True when the earlier import of these records words decisions otherwise; its words stay


class _Reading(TypedDict):
    """How a source is read; as in `import_snapshot`."""

    format: str
    mapping: str | None
    schema: str | None
    progress: StepProgress
    labels: Sequence[str]
    edit: EditMapping


def import_records(
    settings: Settings,
    database: Database,
    source: Path | str,
    source_format: str,
    mapping: str | None = None,
    progress: Progress | None = None,
    *,
    schema: str | None = None,
    add: bool = False,
    labels: Sequence[str] = (),
) -> ImportOutcome:
    """Import health records: all of them, or nothing; parameters as in `alertreview.records.importing.import_snapshot`.

    `add` adds the records, another day's, to those of the last import; corrected results are replaced and kept in a
    trail. Labels (``PATH`` or ``NAME=PATH``) are each a task beside labs and drugs. Raise SourceError or MappingError
    if source or mapping cannot be used, NotFoundError if there is no import to add to; then nothing was kept.
    """
    with database.read() as uow:
        edit = stored_edit(uow)
    read_as = _Reading(
        format=source_format, mapping=mapping, schema=schema, progress=_in_steps(progress), labels=labels, edit=edit
    )
    if add:
        found = extend_snapshot(_last_import(settings, database), source, settings.home, **read_as)
    else:
        found = import_snapshot(source, settings.home, former=_last_report(database), **read_as)
    return _register(database, found.folder, found.report, source_format, added=add)


def _in_steps(progress: Progress | None) -> StepProgress:
    """Return a callback of shares that calls one of counts."""

    def tell(what: str, share: float) -> None:
        if progress is not None:
            progress(round(share * _PROGRESS_STEPS), _PROGRESS_STEPS)

    return tell


def _register(
    database: Database, folder: Path, report: ImportReport, source_format: str, *, added: bool
) -> ImportOutcome:
    """Enter a written snapshot into the database, unless the same records are there."""
    snapshot = read_snapshot(folder)
    checksum = write_checksums(folder)
    with database.write() as uow:
        known = uow.snapshots.by_hash(snapshot.content_hash)
        if known is not None:
            keeps_words = known.import_summary.get("words", {}) != report.to_dict()["words"]
            return ImportOutcome(folder, report, unchanged=True, keeps_words=keeps_words)
        uow.snapshots.add(
            CohortSnapshot(
                content_hash=snapshot.content_hash,
                folder=folder.name,
                source_format=source_format,
                mapping_name=str(report.mapping),
                site_timezone=snapshot.site_timezone,
                calendar_is_shifted=snapshot.calendar_is_shifted,
                simulated=snapshot.simulated,
                import_summary=report.to_dict(),
                created_at=datetime.now(UTC),
            ),
            _instances(snapshot),
            _tasks(snapshot),
        )
        details = {"format": source_format, "added": added, CHECKSUM: checksum}
        uow.audit.append(datetime.now(UTC), "command line", "records imported", f"import {folder.name}", details)
        uow.commit()
    return ImportOutcome(folder, report, unchanged=False)


def _last_report(database: Database) -> ImportReport | None:
    """Return the report of the last import; None without one, or when a former version wrote it and counted less."""
    with database.read() as uow:
        last = uow.snapshots.latest()
    if last is None:
        return None
    try:
        return ImportReport.from_dict(last.import_summary)
    except InvalidInputError:
        return None


def _last_import(settings: Settings, database: Database) -> Snapshot:
    with database.read() as uow:
        last = uow.snapshots.latest()
        if last is None:
            raise NotFoundError("There is no import to add to. Import the first records without --add.")
        return open_import(settings, uow, last.folder, whole=True)


def seal_former_imports(settings: Settings, database: Database) -> None:
    """Write the checksums of imports that a former version wrote without."""
    with database.read() as uow:
        former = [one.folder for one in uow.snapshots.all() if uow.audit.checksum(f"import {one.folder}") is None]
    sealed = {
        name: write_checksums(settings.snapshots / name) for name in former if (settings.snapshots / name).is_dir()
    }
    with database.write() as uow:
        for name, checksum in sealed.items():
            uow.audit.append(datetime.now(UTC), "program", "files sealed", f"import {name}", {CHECKSUM: checksum})
        uow.commit()


def _instances(snapshot: Snapshot) -> Iterator[Instance]:
    zone = ZoneInfo(snapshot.site_timezone)
    table = snapshot.instances
    for first in range(0, len(table), _ROWS_AT_ONCE):
        for i, row in enumerate(table.iloc[first : first + _ROWS_AT_ONCE].to_dict("records")):
            yield Instance(
                row_index=first + i,
                patient_id=str(row["patient_id"]),
                stay_id=int(row["stay_id"]),
                snapshot_at=row["snapshot_at"].to_pydatetime(warn=False).replace(tzinfo=zone),
                day_of_stay=int(row["day_of_stay"]),
                unit=str(row["unit"]),
                age_years=None if pd.isna(row["age_years"]) else float(row["age_years"]),
                sex="" if pd.isna(row["sex"]) else str(row["sex"]),
                window_hours=float(row["window_hours"]),
            )


def _tasks(snapshot: Snapshot) -> list[Task]:
    return [
        Task(
            column_index=column,
            task_key=str(row["task_key"]),
            name=str(row["name"]),
            kind=Kind(row["kind"]),
            order_group=str(row["order_group"]),
        )
        for column, row in enumerate(snapshot.tasks.to_dict("records"))
    ]


def write_import_report(report: ImportReport, path: Path) -> None:
    """Write an import report as JSON or as a page that stands alone, by the file's ending.

    Raise InvalidInputError if that is neither .json nor .html, SourceError if the file cannot be written.
    """
    if path.suffix == ".json":
        text = json.dumps(report.to_dict(), indent=1, ensure_ascii=False)
    elif path.suffix == ".html":
        text = _PAGE.format(title=html.escape(report.source), body=report.to_html())
    else:
        raise InvalidInputError(f"An import report is written as .json or .html, not as {path.name}.")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({error.strerror}). Name another file.") from error


def write_simulated_source(size: str, seed: int, out: Path, **switches: float) -> tuple[str, ...]:
    """Write a simulated hospital as a MEDS data set, and say in lines what it holds.

    The size is "small", "medium" or "paper", about as large as the data of the method's paper; the switches are those
    of `core.simulation.hospital.simulate_cohort`. Raise InvalidInputError if the folder exists, SourceError if it
    cannot be written.
    """
    from core.simulation.hospital import simulate, write_meds

    if out.exists():
        raise InvalidInputError(f"{out} exists already. Name a new folder, so that nothing is overwritten.")
    cohort = simulate(size, seed=seed, **switches)
    try:
        write_meds(cohort, out)
    except OSError as error:
        raise SourceError(f"{out}: cannot be written ({error.strerror}). Name another folder.") from error
    truth = cohort.truth
    n_instances = len(truth) // truth["task_key"].nunique()
    found = (
        f"Simulated hospital (no real patient), seed {seed}: {cohort.events['subject_id'].nunique()} patients, "
        f"{len(cohort.events)} events, {n_instances} patient-state instances, {truth['task_key'].nunique()} tasks, "
        f"{int(truth['planted'].sum())} planted unusual decisions."
    )
    return (
        found,
        f"Written to {out}; the truth behind each decision is in metadata/truth.parquet.",
        f"Next: alertreview import {out} --format meds --home SITE",
    )
