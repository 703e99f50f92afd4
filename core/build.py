"""From an event stream to a cohort: stays, instances, features, tasks and order groups, in one pure function."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from core.cohort import Cohort
from core.errors import MappingError
from core.events import EVENT_COLUMNS, LAB_KINDS, PATIENT_KINDS, EventKind, of_kind, seconds
from core.import_report import ImportReport, OutsideStays, ReadCounts, StayCounts
from core.mapping import SiteMapping
from core.order_groups import edited_groups, order_groups
from core.patient_state import patient_state
from core.series import SeriesSet
from core.stays import HOURS_IN_WINDOW, data_end, make_instances, make_patients, pair_stays
from core.tasks import make_tasks
from core.vocabulary import Kind

Progress = Callable[[str, float], None]
"""Called with what is being done and the share that is done, in [0, 1]."""

_MANY_AT_MIDNIGHT = 0.9
_MANY_OUTSIDE = 0.5


@dataclass(frozen=True)
class About:
    """What is known of the source besides its events."""

    source: str
    splits: dict[str, str]
    simulated: bool


def build(
    events: pd.DataFrame, counts: ReadCounts, mapping: SiteMapping, about: About, progress: Progress
) -> tuple[Cohort, ImportReport]:
    """Build the cohort.

    Parameters
    ----------
    events : DataFrame
        An event stream with the column ``stay``.
    counts : ReadCounts
    mapping : SiteMapping
    about : About
    progress : callable

    Returns
    -------
    cohort : Cohort
    report : ImportReport

    Raises
    ------
    MappingError
        When no instance comes of the events.
    """
    progress("stays and instances", 0.0)
    stays = pair_stays(events)
    patients = make_patients(events, about.splits)
    instances, n_merged = make_instances(
        stays.table, patients, mapping.snapshot_hour, data_end(events), shifted=mapping.calendar_is_shifted
    )
    if instances.empty:
        raise MappingError(
            f"Mapping {mapping.name!r} gives {len(stays.table):,} stays and not one patient-state instance: no stay "
            f"includes {mapping.snapshot_hour:02d}:00. Check the rules for ADMISSION and DISCHARGE, or snapshot_hour."
        )
    cohort = _cohort(events, stays.table, patients, instances, mapping, about, progress)
    progress("checks", 0.9)
    without = len(stays.table) - instances["stay_id"].nunique()
    counted = replace(stays.counts, n_instances_merged=n_merged, n_without_instance=without)
    report = _report(cohort, counts, counted, mapping, about)
    progress("checks", 1.0)
    return cohort, replace(report, warnings=_warnings(report))


def _cohort(
    events: pd.DataFrame,
    stays: pd.DataFrame,
    patients: pd.DataFrame,
    instances: pd.DataFrame,
    mapping: SiteMapping,
    about: About,
    progress: Progress,
) -> Cohort:
    progress("features", 0.1)
    state = patient_state(events, stays, instances, calendar_is_shifted=mapping.calendar_is_shifted)
    instances = instances.assign(unit=pd.Series(state.unit, dtype="str"))
    progress("tasks", 0.8)
    tasks = make_tasks(events, instances, mapping.min_positive)
    groups = order_groups(tasks.decisions, list(tasks.table["name"]))
    groups = edited_groups(groups, list(tasks.table["task_key"]), mapping.order_groups)
    cohort = Cohort(
        patients=patients,
        stays=stays,
        instances=instances,
        features=state.features,
        feature_dictionary=state.dictionary,
        tasks=tasks.table.assign(order_group=pd.Series(groups, dtype="str")),
        decisions=tasks.decisions,
        events=events[list(EVENT_COLUMNS)],
        site_timezone=mapping.timezone,
        calendar_is_shifted=mapping.calendar_is_shifted,
        simulated=about.simulated or mapping.simulated,
        content_hash="",
    )
    return replace(cohort, content_hash=content_hash(cohort, mapping))


def _report(cohort: Cohort, counts: ReadCounts, stays: StayCounts, mapping: SiteMapping, about: About) -> ImportReport:
    kinds = cohort.tasks["kind"]
    return ImportReport(
        source=about.source,
        format=mapping.format,
        mapping=mapping.name,
        n_patients=len(cohort.patients),
        n_events=len(cohort.events),
        read=counts,
        stays=stays,
        n_instances=len(cohort.instances),
        n_cut_windows=int((cohort.instances["window_hours"] < HOURS_IN_WINDOW).sum()),
        n_features=len(cohort.feature_dictionary),
        n_lab_tasks=int((kinds == Kind.LAB_ORDER.value).sum()),
        n_medication_tasks=int((kinds == Kind.MEDICATION.value).sum()),
        min_positive=mapping.min_positive,
        outside_stays=_outside_stays(cohort.events, cohort.stays),
        share_midnight=_share_midnight(cohort.events),
        n_results_before_order=_n_results_before_order(cohort.events),
        **_n_outside_life(cohort.events, cohort.patients),
        simulated=cohort.simulated,
    )


def _outside_stays(events: pd.DataFrame, stays: pd.DataFrame) -> tuple[OutsideStays, ...]:
    kinds = [kind for kind in EventKind if kind not in (*PATIENT_KINDS, EventKind.ADMISSION, EventKind.DISCHARGE)]
    patients = events["patient_id"].cat.categories
    who = patients.get_indexer(stays["patient_id"]).astype(np.int64)
    admitted, ended = seconds(stays["admitted_at"]), seconds(stays["discharged_at"])
    ended = np.where(stays["discharged_at"].isna(), np.iinfo(np.int64).max, ended)
    begun = SeriesSet(who, admitted, len(patients))
    # Stays may overlap: compare with the latest end among the patient's stays that have begun.
    latest = pd.Series(ended[begun.order]).groupby(who[begun.order]).cummax().to_numpy()
    patient, time = events["patient_id"].cat.codes.to_numpy().astype(np.int64), seconds(events["time"])
    place = begun.before(patient, time + 1) - 1
    exists = place >= begun.start(patient)
    inside = exists & (latest[np.maximum(place, 0)] >= time) if len(latest) else exists
    out = []
    for kind in kinds:
        of_this = of_kind(events, [kind])
        if of_this.any():
            out.append(OutsideStays(kind.value, int(of_this.sum()), int((of_this & ~inside).sum())))
    return tuple(out)


def _share_midnight(events: pd.DataFrame) -> float:
    time = events.loc[~of_kind(events, PATIENT_KINDS), "time"]
    return float((seconds(time) % 86400 == 0).mean()) if len(time) else 0.0


def _n_results_before_order(events: pd.DataFrame) -> int:
    """Results of items that have orders, known before the patient's first order of the item."""
    labs = events.loc[of_kind(events, LAB_KINDS), ["patient_id", "item", "kind", "time", "known_at"]]
    is_order = (labs["kind"] == EventKind.LAB_ORDER.value).to_numpy()
    if not is_order.any():
        return 0
    keys = ["patient_id", "item"]
    first = labs[is_order].groupby(keys, observed=True)["time"].min().rename("ordered").reset_index()
    results = labs[~is_order].merge(first, on=keys, how="inner")
    return int((results["known_at"] < results["ordered"]).sum())


def _n_outside_life(events: pd.DataFrame, patients: pd.DataFrame) -> dict[str, Any]:
    numbers = events["patient_id"].cat.codes.to_numpy()
    by_patient = patients.set_index("patient_id").loc[events["patient_id"].cat.categories]
    own = ~of_kind(events, PATIENT_KINDS)
    time = events["time"].to_numpy()
    birth = by_patient["birth_time"].to_numpy().astype("datetime64[us]")[numbers]
    death = by_patient["death_time"].to_numpy().astype("datetime64[us]")[numbers]
    # A death is often a date without a time of day: only what happened on a later day is after it.
    after = time.astype("datetime64[D]") > death.astype("datetime64[D]")
    return {"n_before_birth": int((own & (time < birth)).sum()), "n_after_death": int((own & after).sum())}


def _warnings(report: ImportReport) -> tuple[str, ...]:
    out = []
    if report.share_midnight > _MANY_AT_MIDNIGHT:
        out.append(
            f"{report.share_midnight:.0%} of all times are midnight: the source has dates without times of day, and "
            "what was known at the snapshot hour cannot be told from what came later. Do not trust the scores."
        )
    for part in report.outside_stays:
        if part.n_events and part.n_outside / part.n_events > _MANY_OUTSIDE:
            share = part.n_outside / part.n_events
            out.append(
                f"{share:.0%} of the events of kind {part.kind} lie outside any stay; check what counts as a stay."
            )
    if report.n_lab_tasks + report.n_medication_tasks == 0:
        out.append(
            f"No lab and no drug has {report.min_positive} positive instances among {report.n_instances:,}: there is "
            "nothing to score. Lower min_positive, or check the rules for labs and drugs."
        )
    n_unknown = sum(drop.n_rows for drop in report.read.dropped if "no rule" in drop.reason)
    if n_unknown > report.read.n_rows / 2:
        out.append(f"{n_unknown:,} of {report.read.n_rows:,} rows have a code that the mapping does not know.")
    return tuple(out)


def content_hash(cohort: Cohort, mapping: SiteMapping) -> str:
    """Hash everything in a cohort and the mapping that made it.

    Parameters
    ----------
    cohort : Cohort
        Its own ``content_hash`` is not looked at.
    mapping : SiteMapping

    Returns
    -------
    str
        64 hex digits; the same on every machine and in every run.
    """
    digest = hashlib.sha256(json.dumps(mapping.model_dump(mode="json"), sort_keys=True).encode())
    for name in ("patients", "stays", "instances", "feature_dictionary", "tasks", "events"):
        table: pd.DataFrame = getattr(cohort, name)
        for column in table.columns:
            digest.update(f"{name}.{column}".encode())
            _hash_column(digest, table[column])
    for matrix in (cohort.features, cohort.decisions):
        for part, kind in ((matrix.indptr, np.int64), (matrix.indices, np.int64), (matrix.data, None)):
            digest.update(np.ascontiguousarray(part, dtype=kind).tobytes())
    digest.update(f"{cohort.site_timezone} {cohort.calendar_is_shifted} {cohort.simulated}".encode())
    return digest.hexdigest()


def _hash_column(digest: "hashlib._Hash", column: pd.Series) -> None:
    if isinstance(column.dtype, pd.CategoricalDtype):
        digest.update("\0".join(str(each) for each in column.cat.categories).encode())
        digest.update(column.cat.codes.to_numpy(dtype=np.int64).tobytes())
    elif pd.api.types.is_numeric_dtype(column.dtype):
        digest.update(column.to_numpy().astype("float64" if column.dtype.kind == "f" else "int64").tobytes())
    elif pd.api.types.is_datetime64_any_dtype(column.dtype):
        digest.update(column.to_numpy().astype("datetime64[us]").astype("int64").tobytes())
    else:
        digest.update(
            "\0".join(
                "\1" if missing else str(each) for each, missing in zip(column, column.isna(), strict=True)
            ).encode()
        )
