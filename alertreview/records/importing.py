"""Import: from a health record source to a cohort and a report, whatever the format."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from alertreview.files import preset_paths
from alertreview.records.snapshot_writer import DiskSpill, SnapshotWriter
from alertreview.records.sources.base import Format, Source
from alertreview.records.sources.formats import FORMATS, checked_format
from alertreview.records.sources.label_files import find_label_files, read_labels, with_label_rules
from core.cohort.build import Progress, build, build_parts
from core.cohort.cohort import About, Cohort
from core.errors import MappingError
from core.events.code_book import NO_ROW, recognise
from core.events.facts import digest_of
from core.events.import_report import ImportReport, ReadCounts
from core.events.mapping import SiteMapping, load_mapping, parse_mapping
from core.events.parts import EventStream, MakeSpill, MemorySpill
from core.events.reading import ROWS_PER_PART, StreamBuilder
from core.events.sudden_change import with_sudden_change
from core.kinds import EventKind
from core.number_texts import counted

EditMapping = Callable[[SiteMapping], SiteMapping]

_SHARE_READ = 0.5
"""Share of the progress bar that reading takes."""


def build_cohort(
    source: Path | str,
    *,
    format: str = "meds",  # noqa: A002
    mapping: str | Path | None = None,
    schema: str | None = None,
    min_positive: int | None = None,
    progress: Progress | None = None,
) -> tuple[Cohort, ImportReport]:
    """Read a health record source, a folder, archive, file or URL, into a cohort; nothing is written.

    `format` is a key of `alertreview.records.sources.formats.FORMATS`; `mapping` the name of a preset, the path of a
    YAML file, or None for the preset that recognises most; `schema` that of an OMOP database; `min_positive` stands
    instead of the mapping's. Raise SourceError when the source is not what its format says, MappingError when the
    mapping is malformed, unknown, or recognises nothing.
    """
    tell = progress or _quiet
    read = read_records(source, format=format, mapping=mapping, schema=schema, min_positive=min_positive, progress=tell)
    cohort, report = build(read.stream, read.counts, read.mapping, read.about, second_half(tell))
    digest = digest_of(read.facts(cohort.patients["patient_id"]))
    return replace(cohort, content_hash=digest.onto(cohort.content_hash)), report


@dataclass(frozen=True)
class Imported:
    """A source, imported as a snapshot or added to one."""

    folder: Path
    report: ImportReport  # of an addition, its counts of reading are those of the new records
    # Events that an addition did not know before. 0, with no new fact: nothing has changed, and the folder is the same.
    n_added: int = 0


def import_snapshot(
    source: Path | str,
    home: Path,
    *,
    format: str = "meds",  # noqa: A002
    mapping: str | Path | None = None,
    schema: str | None = None,
    progress: Progress | None = None,
    rows_per_part: int = ROWS_PER_PART,
    labels: Sequence[str] = (),
    former: ImportReport | None = None,
    edit: EditMapping | None = None,
) -> Imported:
    """Read a source into a snapshot below the home folder, all or nothing, in memory that does not grow with it.

    Rows wait in files below the home meanwhile; they take about as much room as the source unpacked. The cohort is that
    of `build_cohort`, and `rows_per_part` events are looked at together. Other parameters as in `read_records`;
    `former` is the report of the last import, to see what changed suddenly. Raise SourceError and MappingError as
    `build_cohort`, or when the home cannot be written.
    """
    tell = progress or _quiet
    with SnapshotWriter(home) as writer:
        chosen = choose_mapping(source, format, mapping, schema)
        read = read_records(
            source,
            format=format,
            mapping=chosen,
            schema=schema,
            min_positive=None,
            progress=tell,
            make_spill=writer.spill,
            rows_per_part=rows_per_part,
            labels=labels,
            edit=edit,
        )
        built, report = build_parts(
            read.stream, read.counts, read.mapping, read.about, second_half(tell), writer, writer.spill
        )
        report = with_sudden_change(report, former, read.mapping.checks)
        digest = writer.facts(read.facts(built.patients["patient_id"]))
        built = replace(built, content_hash=digest.onto(built.content_hash))
        return Imported(writer.finish(built, report, mapping=chosen), report)


@dataclass(frozen=True)
class Records:
    """A source, read and recognised."""

    stream: EventStream
    counts: ReadCounts
    mapping: SiteMapping
    about: About
    # Returns the context facts of some patients in parts, once; see `core.events.facts`.
    facts: Callable[[Collection[str]], Iterator[pd.DataFrame]]


def read_records(
    source: Path | str,
    *,
    format: str,  # noqa: A002
    mapping: str | Path | SiteMapping | None,
    schema: str | None,
    min_positive: int | None,
    progress: Progress,
    units: dict[str, str] | None = None,
    make_spill: MakeSpill = MemorySpill,
    rows_per_part: int = ROWS_PER_PART,
    labels: Sequence[str] = (),
    known: Collection[str] | None = None,
    edit: EditMapping | None = None,
) -> Records:
    """Read a source into an event stream; parameters as in `build_cohort`.

    `units` are those that items are known to have from earlier imports; rows wait where `make_spill` says; `labels` are
    label files, as `alertreview.records.sources.label_files.find_label_files` takes them; `known` are the patients of
    the import that these records are added to, if it has labels; `edit` returns the chosen mapping with what people of
    the site decided.
    """
    progress("looking at the source", 0.0)
    questions = find_label_files(labels)
    site = choose_mapping(source, format, mapping, schema)
    if questions or known is not None:
        site = with_label_rules(site)
    if edit is not None:
        site = edit(site)
    if min_positive is not None:
        site = parse_mapping({**site.model_dump(), "min_positive": min_positive}, f"mapping {site.name}")
    opened, builder = _read_rows(source, site, schema, progress, units, make_spill, rows_per_part)
    for question in questions:
        found = read_labels(question, site, builder.subjects, known or ())
        builder.add(found.rows)
        if found.remark:
            builder.remark(found.remark)
    splits = {_patient(site, subject): split for subject, split in opened.splits.items()}
    without = sum(_patient(site, str(subject)) not in splits for subject in builder.subjects) if splits else 0
    if without:
        builder.remark(
            f"{without:,} of {counted(len(builder.subjects), 'patient')} have no split in subject_splits.parquet: a "
            "split by source leaves them out."
        )
    stream, counts = builder.finish_parts()
    progress("reading", _SHARE_READ)
    about = About(source=opened.name, splits=splits, simulated=opened.simulated)
    return Records(stream, counts, site, about, builder.facts)


def _read_rows(
    source: Path | str,
    site: SiteMapping,
    schema: str | None,
    progress: Progress,
    units: dict[str, str] | None,
    make_spill: MakeSpill,
    rows_per_part: int,
) -> tuple[Source, StreamBuilder]:
    opened = FORMATS[site.format].read(source, site, schema)
    builder = StreamBuilder(
        site, opened.descriptions, units, make_spill=make_spill, rows_per_part=rows_per_part, now=end_of_today(site)
    )
    n_read = 0
    for chunk in opened.chunks:
        builder.add(chunk)
        n_read += len(chunk)
        progress("reading", 0.9 * _SHARE_READ * min(n_read / opened.n_rows, 1.0) if opened.n_rows else 0.0)
    for sentence in opened.remarks:
        builder.remark(sentence)
    for finding in opened.findings:
        builder.find(finding)
    return opened, builder


def count_records(source: Path | str, mapping: SiteMapping, schema: str | None = None) -> ReadCounts:
    """Read a whole source and count as an import does, without keeping anything.

    The mapping may lack what an import needs; then duplicates and doubtful dates are not counted. Raise SourceError
    when the source cannot be read.
    """
    with TemporaryDirectory() as folder:
        _, builder = _read_rows(
            source, mapping, schema, _quiet, None, lambda name: DiskSpill(Path(folder), name), ROWS_PER_PART
        )
        try:
            return builder.finish_parts()[1]
        except MappingError:
            return builder.counts()


def end_of_today(site: SiteMapping) -> pd.Timestamp | None:
    """Return the site time at which the day of the import ends; None where the calendar is shifted."""
    if site.calendar_is_shifted:
        return None
    return pd.Timestamp.now(tz=site.timezone).tz_localize(None).normalize() + pd.Timedelta(days=1)


def second_half(tell: Progress) -> Progress:
    """Return a progress callback for the steps after reading."""
    return lambda what, share: tell(what, _SHARE_READ + share * (1 - _SHARE_READ))


def _quiet(what: str, share: float) -> None:
    """Do nothing."""


def _patient(mapping: SiteMapping, subject: str) -> str:
    return mapping.patient_id(int(subject) if subject.lstrip("-").isdigit() else subject)


def choose_mapping(
    source: Path | str,
    format: str,  # noqa: A002
    mapping: str | Path | SiteMapping | None,
    schema: str | None = None,
) -> SiteMapping:
    """Return the site mapping to use; parameters as in `build_cohort`.

    Raise SourceError when there is no such format, MappingError when there is no such preset or file, the mapping is
    for another format, or no preset recognises anything.
    """
    presets = preset_paths()
    wanted = checked_format(format)
    if mapping is None:
        return _best_preset(source, wanted, schema)
    if isinstance(mapping, SiteMapping):
        chosen = mapping
    elif (path := presets.get(str(mapping), Path(mapping))).exists():
        chosen = load_mapping(path)
    else:
        raise MappingError(
            f"{mapping!s} is neither a file nor one of the mappings that come with the program ({', '.join(presets)})."
        )
    if chosen.format != wanted.name:
        raise MappingError(f"Mapping {chosen.name!r} is for {chosen.format}, not for {wanted.name}. Choose another.")
    return chosen


@cache
def _preset(path: Path) -> SiteMapping:
    """Read a mapping that comes with the program, once in a process."""
    return load_mapping(path)


def _best_preset(source: Path | str, format: Format, schema: str | None) -> SiteMapping:  # noqa: A002
    candidates = [each for each in map(_preset, preset_paths().values()) if each.format == format.name]
    if not candidates:
        raise MappingError(f"No mapping for {format.name} comes with the program. Write one: see data/README.md.")
    counts_of = code_counts_of(source, format, candidates, schema)
    scored = [(*_n_recognised(counts, candidate), candidate, counts) for candidate, counts in counts_of]
    has_stays, n_rows, best, counts = max(scored, key=lambda each: each[:2])
    if not has_stays:
        if not counts:
            raise MappingError(NO_ROW)
        frequent = ", ".join(code for code, _ in counts.most_common(5)) or "none"
        knows = f"{best.name!r} knows the decisions: is a file of stays missing? If not, draft" if n_rows else "Draft"
        raise MappingError(
            f"No mapping that comes with the program finds stays and decisions (most frequent codes: {frequent}). "
            f"{knows} one with: alertreview mapping suggest SOURCE --out own.yaml; then name it with --mapping "
            "(its keys are in data/README.md)."
        )
    return best


def code_counts_of(
    source: Path | str,
    format: Format,  # noqa: A002
    mappings: Sequence[SiteMapping],
    schema: str | None = None,
) -> list[tuple[SiteMapping, Counter[str]]]:
    """Count the codes of a source as each of some mappings spells them; see `Format.code_counts`.

    Mappings that spell codes alike share the counts: looking at the source takes time.
    """
    spelled = [each.model_dump_json(include={"code_prefix", "tables"}) for each in mappings]
    counts: dict[str, Counter[str]] = {}
    for each, key in zip(mappings, spelled, strict=True):
        if key not in counts:
            counts[key] = format.code_counts(source, each, schema)
    return [(each, counts[key]) for each, key in zip(mappings, spelled, strict=True)]


def _n_recognised(counts: Counter[str], mapping: SiteMapping) -> tuple[bool, int]:
    """Return whether there are admissions, and the number of rows that become events or facts."""
    found = {code: recognise(code, mapping) for code in counts}
    has_stays = any(each.kind is EventKind.ADMISSION for each in found.values())
    return has_stays, sum(n for code, n in counts.items() if found[code].kind or found[code].fact)
