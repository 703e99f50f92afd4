"""From an event stream to a cohort: stays, instances, features, tasks and order groups, part by part."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.cohort.catalogue import members_of, panels_and_asked, why_no_order, with_catalogue
from core.cohort.cohort import About, Built, Cohort, CohortSink, MemorySink
from core.cohort.content_hash import content_hash
from core.cohort.feature_layout import Layout, names_apart, note_first_texts, with_unit
from core.cohort.instance_blocks import whole_block
from core.cohort.labels import LabelledDays
from core.cohort.patient_state import Background, members, patient_state
from core.cohort.reference_bands import BandCollector
from core.cohort.tasks import TaskCollector, Tasks, edited_groups, order_groups
from core.errors import MappingError
from core.events.code_book import UNKNOWN
from core.events.import_report import ImportReport, ReadCounts, StayCounts, StreamChecks
from core.events.mapping import SiteMapping
from core.events.parts import EventStream, MakeSpill, MemorySpill, gathered
from core.events.plausibility import Finding, judged
from core.events.spelling import look_of
from core.events.stays import (
    HOURS_IN_WINDOW,
    end_counts,
    make_instances,
    make_patients,
    n_contradicted,
    n_emptied,
    pair_stays,
    stay_ends,
)
from core.events.stream import EVENT_COLUMNS
from core.kinds import ACT_WORDS, ITEM_WORDS, EventKind, Kind, in_words, said_of

Progress = Callable[[str, float], None]
"""Called with what is being done and the share that is done, in [0, 1]."""
_CROWD_TIMES = 10
_WEEK, _ENOUGH_A_DAY, _LEAP = 7, 10, 3


def build(
    stream: EventStream, counts: ReadCounts, mapping: SiteMapping, about: About, progress: Progress
) -> tuple[Cohort, ImportReport]:
    """Build the cohort in memory; raise MappingError when no instance comes of the events."""
    sink = MemorySink()
    built, report = build_parts(stream, counts, mapping, about, progress, sink, MemorySpill)
    parts = {each.name: getattr(built, each.name) for each in fields(built)}
    return Cohort(**parts, features=sink.matrix, events=gathered(stream)[list(EVENT_COLUMNS)]), report


def build_parts(
    stream: EventStream,
    counts: ReadCounts,
    mapping: SiteMapping,
    about: About,
    progress: Progress,
    sink: CohortSink,
    make_spill: MakeSpill,
) -> tuple[Built, ImportReport]:
    """Build the cohort with one part of the events in memory at a time; otherwise as `build`.

    Events and features go to the sink; the values from which reference bands are computed wait in a spill.
    """
    progress("stays and instances", 0.0)
    patients = _Patients(stream, mapping, about)
    patients.gather(make_spill, progress)
    progress("features and tasks", 0.3)
    state = _State(stream, patients, sink)
    state.gather(progress)
    progress("order groups", 0.85)
    built = _built(state, patients, mapping, about)
    progress("checks", 0.9)
    sink.keep_columns(np.flatnonzero(state.n_present))
    hashed = content_hash(built, stream, state.used_texts, sink.feature_chunks(), mapping)
    built = replace(built, content_hash=hashed)
    report = _report(built, stream.n_events, state.checks, counts, patients.counts(), mapping, about)
    report = replace(report, words=_words(built.tasks, state.tasks.decided_by, mapping))
    progress("checks", 1.0)
    findings = [*counts.findings, *_findings(report), _crowded(built.instances)]
    # What the source spells as a date need not be guessed from the midnights.
    told = {each.name for each in counts.findings if each.name == "some_dates" and each.count}
    findings += [each for each in state.checks.midnights() if each.name not in told]
    if not mapping.calendar_is_shifted:
        findings.append(uneven_days(built.instances["snapshot_at"]))
    findings += [_unnamed(built.tasks), _alike(built.tasks)]
    checks = judged(findings, mapping.checks)
    said = patients.labels.sentences(mapping.positives_needed(Kind.LABEL))
    read = replace(report.read, remarks=(*report.read.remarks, *said))
    return built, replace(report, read=read, warnings=_warnings(report), checks=checks)


class _Patients:
    """The first walk over the parts: patients, stays, instances, units of items, reference bands."""

    def __init__(self, stream: EventStream, mapping: SiteMapping, about: About) -> None:
        self._stream, self._mapping, self._about = stream, mapping, about
        self._stays = StayCounts()
        self._n_merged = 0
        self.of_part: list[tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]] = []
        """Patients, stays and instances of each part; stays numbered from 0 in each."""
        self.labels = LabelledDays(())

    def gather(self, make_spill: MakeSpill, progress: Progress) -> None:
        """Walk; raise MappingError when there is no instance, or the labels leave none."""
        stream, mapping = self._stream, self._mapping
        items, names = stream.categories["item"], [""] * len(stream.categories["item"])
        units = list(names)
        shifted = mapping.calendar_is_shifted
        bands = BandCollector(len(items), stream.n_events, make_spill("values"), calendar_is_shifted=shifted)
        self.labels = LabelledDays(items)
        n_done = 0
        for events in stream.parts():
            paired = pair_stays(events)
            patients = make_patients(events, self._about.splits)
            ends = stay_ends(events, paired.table, patients, stream.end, shifted=shifted)
            instances, n_merged = make_instances(
                paired.table, patients, mapping.snapshot_hour, stream.end, ends, shifted=shifted
            )
            self._stays += end_counts(paired.table, ends, stream.end, shifted=shifted)
            self.of_part.append((patients, paired.table, instances))
            self._stays += paired.counts
            self._stays += StayCounts(n_contradicted=n_contradicted(events), n_emptied=n_emptied(events, paired.table))
            self._n_merged += n_merged
            self.labels.add(events, instances)
            note_first_texts(events, "name", names)
            note_first_texts(with_unit(events), "unit", units)
            bands.add(events, whole_block(events, paired.table, instances))
            n_done += len(events)
            progress("stays and instances", 0.25 * n_done / stream.n_events)
        self._refuse_none()
        self._keep_labelled()
        bands.finish()
        self.names = names_apart([name or item for name, item in zip(names, items, strict=True)], items, units)
        categories = mapping.categories
        self.background = Background(
            Layout(items, self.names, units, [category.name for category in categories]),
            bands,
            stream.kinds,
            members(items, categories),
        )

    def _refuse_none(self) -> None:
        if not any(len(instances) for _, _, instances in self.of_part):
            mapping = self._mapping
            raise MappingError(
                f"Mapping {mapping.name!r} gives {self._stays.n_stays:,} stays and not one patient-state instance: no "
                f"stay includes {mapping.snapshot_hour:02d}:00. Check the rules for ADMISSION and DISCHARGE, or "
                "snapshot_hour."
            )

    def _keep_labelled(self) -> None:
        if (kept := self.labels.kept()) is not None:
            self.of_part = [
                (patients, stays, instances[mask].reset_index(drop=True))
                for (patients, stays, instances), mask in zip(self.of_part, kept, strict=True)
            ]

    def counts(self) -> StayCounts:
        """Say what came of the stays."""
        n_with = sum(instances["stay_id"].nunique() for _, _, instances in self.of_part)
        return replace(
            self._stays, n_instances_merged=self._n_merged, n_without_instance=self._stays.n_stays - int(n_with)
        )

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Patients, stays and instances of all parts, stays numbered throughout."""
        n_stays = np.cumsum([0, *(len(stays) for _, stays, _ in self.of_part)])
        numbered = [
            (
                patients,
                stays.assign(stay_id=stays["stay_id"] + first),
                instances.assign(stay_id=instances["stay_id"] + first),
            )
            for (patients, stays, instances), first in zip(self.of_part, n_stays[:-1], strict=True)
        ]
        patients, stays, instances = (
            pd.concat([part[i] for part in numbered if len(part[i])] or [numbered[0][i]], ignore_index=True)
            for i in range(3)
        )
        return patients, stays, instances


class _State:
    """The second walk over the parts: features and decisions, events on their way to the sink, checks."""

    def __init__(self, stream: EventStream, patients: _Patients, sink: CohortSink) -> None:
        self._stream, self._patients, self._sink = stream, patients, sink
        self.tasks = TaskCollector(stream.categories["item"], patients.names)
        self.checks = StreamChecks()
        self.n_present = np.zeros(patients.background.layout.n_columns, dtype=np.int64)
        self.units: list[npt.NDArray[np.object_]] = []
        self.used_texts = {name: np.zeros(len(texts), dtype=bool) for name, texts in stream.categories.items()}

    def gather(self, progress: Progress) -> None:
        """Walk."""
        n_done = 0
        for events, (patients, stays, instances) in zip(self._stream.parts(), self._patients.of_part, strict=True):
            for name, used in self.used_texts.items():
                used[events[name].cat.codes.to_numpy()] = True
            state = patient_state(events, stays, instances, self._patients.background)
            self.n_present += np.bincount(state.features.indices, minlength=len(self.n_present))
            self.units.append(state.unit)
            self.tasks.add(events, instances)
            self.checks.add(events, stays, patients)
            self._sink.features(state.features)
            self._sink.events(events[list(EVENT_COLUMNS)])
            n_done += len(events)
            progress("features and tasks", 0.3 + 0.55 * n_done / self._stream.n_events)


def _built(state: _State, patients: _Patients, mapping: SiteMapping, about: About) -> Built:
    tables = patients.tables()
    instances = tables[2].assign(unit=pd.Series(np.concatenate(state.units), dtype="str"))
    used = np.flatnonzero(state.n_present)
    dictionary = patients.background.layout.dictionary(used)
    dictionary["share_present"] = state.n_present[used] / max(len(instances), 1)
    tasks = state.tasks.tasks(mapping.positives_needed)
    keys, names = list(tasks.table["task_key"]), list(tasks.table["name"])
    orders = [not why_no_order(name, key) for name, key in zip(names, keys, strict=True)]
    groups = edited_groups(_order_groups(tasks, orders), keys, mapping.order_groups)
    tasks = replace(tasks, table=tasks.table.assign(order_group=pd.Series(groups, dtype="str")))
    if mapping.ask_about == "orders":
        tasks = with_catalogue(tasks, mapping.order_groups)
    return Built(
        patients=tables[0],
        stays=tables[1],
        instances=instances,
        feature_dictionary=dictionary,
        tasks=tasks.table,
        decisions=tasks.decisions,
        site_timezone=mapping.timezone,
        calendar_is_shifted=mapping.calendar_is_shifted,
        simulated=about.simulated or mapping.simulated,
        content_hash="",
    )


def _order_groups(tasks: Tasks, orders: list[bool]) -> npt.NDArray[np.object_]:
    """Group the tasks; a label is ordered with nothing."""
    ordered = np.flatnonzero(tasks.table["kind"] != Kind.LABEL)
    groups = np.full(len(tasks.table), "", dtype=object)
    names = tasks.table["name"].iloc[ordered].tolist()
    groups[ordered] = order_groups(tasks.decisions[:, ordered], names, orders=[orders[i] for i in ordered])
    return groups


def _words(
    tasks: pd.DataFrame, decided_by: Mapping[str, Collection[EventKind]], mapping: SiteMapping
) -> dict[str, str]:
    """Return what it is called that a task was done, of a panel from its members."""
    done = {}
    members = tasks.reindex(columns=["members"], fill_value="")["members"]
    for key, text in zip(tasks["task_key"], members, strict=True):
        events = {event for each in members_of(text) or (key,) for event in decided_by[each]}
        if events <= set(ACT_WORDS):
            done[key] = in_words(map(mapping.act_word, events))
    return said_of(done)


def _report(
    built: Built,
    n_events: int,
    checks: StreamChecks,
    counts: ReadCounts,
    stays: StayCounts,
    mapping: SiteMapping,
    about: About,
) -> ImportReport:
    is_panel, is_asked = panels_and_asked(built.tasks)
    of_task = built.tasks["kind"][~is_panel]
    kinds = [kind for kind in Kind if any(rule.kind in kind.events for rule in mapping.rules)]
    return ImportReport(
        source=about.source,
        format=mapping.format,
        mapping=mapping.name,
        n_patients=len(built.patients),
        n_events=n_events,
        read=counts,
        stays=stays,
        n_instances=len(built.instances),
        n_cut_windows=int((built.instances["window_hours"] < HOURS_IN_WINDOW).sum()),
        n_features=len(built.feature_dictionary),
        n_tasks={kind.value: int((of_task == kind.value).sum()) for kind in kinds},
        n_panels=int(is_panel.sum()),
        n_asked=int(is_asked.sum()),
        min_positive={kind.value: mapping.positives_needed(kind) for kind in kinds},
        outside_stays=checks.outside_stays,
        share_midnight=checks.share_midnight,
        n_results_before_order=checks.n_results_before_order,
        n_before_birth=checks.n_before_birth,
        n_after_death=checks.n_after_death,
        simulated=built.simulated,
        snapshot_hour=mapping.snapshot_hour,
    )


def _findings(report: ImportReport) -> list[Finding]:
    """Return the findings that are counts of the report."""
    n_events = report.n_events
    unknown = [drop for drop in report.read.dropped if drop.reason == UNKNOWN]
    return [
        Finding("open_stays", report.stays.n_left, report.stays.n_stays),
        Finding("reversed_stays", report.stays.n_reversed, report.stays.n_stays + report.stays.n_reversed),
        Finding("emptied_stays", report.stays.n_emptied, report.stays.n_stays),
        Finding("long_stays", report.stays.n_long, report.stays.n_stays),
        Finding("unpaired_stays", report.stays.n_unpaired, report.stays.n_stays + report.stays.n_unpaired),
        Finding("overlapping_stays", report.stays.n_overlapping, report.stays.n_stays),
        Finding("contradicted_patients", report.stays.n_contradicted, report.n_patients),
        Finding("contradicted_stays", report.stays.n_differing, report.stays.n_stays),
        Finding("repeated_rows", report.read.n_duplicate_rows, report.read.n_rows),
        Finding("events_after_death", report.n_after_death, n_events),
        Finding("events_before_birth", report.n_before_birth, n_events),
        *(
            Finding("events_outside_stays", part.n_outside, part.n_events, (part.kind,))
            for part in report.outside_stays
        ),
        Finding(
            "unknown_codes",
            sum(drop.n_rows for drop in unknown),
            report.read.n_rows,
            tuple(code for drop in unknown for code, _ in drop.examples),
        ),
    ]


def _crowded(instances: pd.DataFrame) -> Finding:
    """Count the instances of the patient with most, where they are many times those of the median patient."""
    n = instances["patient_id"].value_counts().to_numpy()
    return Finding("crowded_patients", int(n[0]) if n[0] > _CROWD_TIMES * np.median(n) else 0, int(n.sum()))


def uneven_days(snapshots: pd.Series) -> Finding:
    """Count the days whose number of instances leaps out of the two weeks around; a shifted calendar has no such days.

    The first and the last two weeks, in which a record set fills and empties, and wards with few patients tell nothing.
    """
    days = snapshots.to_numpy().astype("datetime64[D]")
    n = np.bincount((days - days.min()).astype(np.int64))
    around = pd.Series(n).rolling(2 * _WEEK + 1, center=True).median().to_numpy()
    is_told = np.zeros(len(n), dtype=bool)
    is_told[2 * _WEEK : -2 * _WEEK] = around[2 * _WEEK : -2 * _WEEK] >= _ENOUGH_A_DAY
    uneven = np.flatnonzero(is_told & ((n > _LEAP * around) | (_LEAP * n < around)))
    return Finding("uneven_days", len(uneven), int(is_told.sum()), tuple(np.datetime_as_string(days.min() + uneven)))


def _unnamed(tasks: pd.DataFrame) -> Finding:
    """Count the tasks whose name is their code."""
    unnamed = [
        key
        for key, name in zip(tasks["task_key"], tasks["name"], strict=True)
        if name == key.partition("/")[2] and not any(each.isalpha() for each in name)
    ]
    return Finding("unnamed_tasks", len(unnamed), len(tasks), tuple(unnamed))


def _alike(tasks: pd.DataFrame) -> Finding:
    """Count the tasks of a kind whose names people take for one."""
    # A unit may stand behind one of two names to tell them apart: their items are compared too.
    looks = [
        {f"{kind}/{look_of(each) if any(map(str.isalpha, each)) else each}" for each in (name, key.partition("/")[2])}
        for kind, name, key in zip(tasks["kind"].astype("str"), tasks["name"], tasks["task_key"], strict=True)
    ]
    times = Counter(look for each in looks for look in each)
    names = [name for name, each in zip(tasks["name"], looks, strict=True) if max(map(times.__getitem__, each)) > 1]
    return Finding("alike_tasks", len(names), len(tasks), tuple(names))


def _warnings(report: ImportReport) -> tuple[str, ...]:
    """Say that there is nothing to score; every other doubt is a check."""
    if any(report.n_tasks.values()):
        return ()
    least = min(report.min_positive.values(), default=1)
    said = f"No {ITEM_WORDS} has {least} positive instances among {report.n_instances:,}: there is nothing to score."
    return (f"{said} Lower min_positive, or check the rules.",)
