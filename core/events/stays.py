"""Hospital stays from admissions and discharges, and the patient-state instances inside them."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.import_report import StayCounts
from core.events.series import SeriesSet
from core.events.stream import of_kind, seconds
from core.kinds import LABEL_EVENTS, PATIENT_EVENTS, EventKind

HOURS_IN_WINDOW = 24
DAY = 24 * 3600
"""Seconds of a day of site time; on the two days of a clock change it is 23 or 25 hours long."""
_HOUR = 3600
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Stays:
    """Stays and what had to be left out."""

    # ``stay_id``, ``patient_id``, ``admitted_at``, ``discharged_at`` (missing while open), sorted by patient and
    # admission.
    table: pd.DataFrame
    counts: StayCounts


def pair_stays(events: pd.DataFrame) -> Stays:
    """Pair admissions with discharges; the events have the column ``stay`` where the source knows it.

    Where the source names the stay of both, they are paired by it. Otherwise a patient's i-th admission belongs to the
    i-th discharge, which also settles a readmission in the minute of a discharge. Only when that would end a stay
    before it began, or when a discharge is missing, each discharge closes the latest open admission before it; an
    admission without a discharge is an open stay if nothing follows it or nothing happens for two days before the next
    admission, and is left out and counted otherwise. A discharge right before an open admission, from nothing (the
    patient has no event before it), is that admission's: the stay is reversed, left out and counted.
    """
    is_admission, is_discharge = of_kind(events, [EventKind.ADMISSION]), of_kind(events, [EventKind.DISCHARGE])
    columns = ["patient_id", "time"]
    named = events["stay"].to_numpy() >= 0 if "stay" in events else np.zeros(len(events), dtype=bool)
    parts: list[pd.DataFrame] = []
    if (named & is_admission).any():
        parts.append(_by_name(events, named & is_admission, named & is_discharge))
    n_lost, n_differing = _odd_names(events, named & is_admission, named & is_discharge)
    admissions = events.loc[is_admission & ~named, columns]
    discharges = events.loc[is_discharge & ~named, columns]
    regular, left_admissions, left_discharges = _by_order(admissions, discharges)
    irregular, n_admissions, n_discharges, n_turned = _by_walking(left_admissions, left_discharges, events)
    table = pd.concat([*parts, regular, irregular], ignore_index=True)
    table["patient_id"] = table["patient_id"].astype(str)
    reversed_stay = (table["discharged_at"] < table["admitted_at"]).to_numpy()
    table = table[~reversed_stay].sort_values(["patient_id", "admitted_at", "discharged_at"], kind="stable")
    table = table.reset_index(drop=True)
    table.insert(0, "stay_id", np.arange(len(table)))
    n_reversed = n_turned + int(reversed_stay.sum())
    counts = _count(table, n_admissions + n_reversed, n_discharges + n_reversed + n_lost, n_reversed)
    return Stays(table, replace(counts, n_differing=n_differing))


def _count(table: pd.DataFrame, n_admissions: int, n_discharges: int, n_reversed: int) -> StayCounts:
    is_open = table["discharged_at"].isna()
    end = table["discharged_at"].to_numpy().copy()
    end[is_open.to_numpy()] = table["admitted_at"].to_numpy()[is_open.to_numpy()]
    latest = pd.Series(end).groupby(table["patient_id"].to_numpy()).cummax().to_numpy()
    same = table["patient_id"].to_numpy()[1:] == table["patient_id"].to_numpy()[:-1]
    return StayCounts(
        n_stays=len(table),
        n_open=int(is_open.sum()),
        n_zero_length=int((table["discharged_at"] == table["admitted_at"]).sum()),
        n_overlapping=int((same & (table["admitted_at"].to_numpy()[1:] < latest[:-1])).sum()),
        n_unpaired_admissions=n_admissions,
        n_unpaired_discharges=n_discharges,
        n_reversed=n_reversed,
    )


def _by_name(
    events: pd.DataFrame, is_admission: npt.NDArray[np.bool_], is_discharge: npt.NDArray[np.bool_]
) -> pd.DataFrame:
    keys = ["patient_id", "stay"]
    admissions = events.loc[is_admission, [*keys, "time"]].rename(columns={"time": "admitted_at"})
    discharges = events.loc[is_discharge, [*keys, "time"]].rename(columns={"time": "discharged_at"})
    admissions = admissions.drop_duplicates(keys)
    paired = admissions.merge(discharges.drop_duplicates(keys, keep="last"), on=keys, how="left")
    return paired[["patient_id", "admitted_at", "discharged_at"]].astype({"patient_id": "str"})


def _odd_names(
    events: pd.DataFrame, is_admission: npt.NDArray[np.bool_], is_discharge: npt.NDArray[np.bool_]
) -> tuple[int, int]:
    """Count the named discharges of a stay without an admission, and the stays with two of either at other times."""
    stays = events.loc[is_admission | is_discharge, ["patient_id", "stay", "time"]].astype({"patient_id": "str"})
    begins = is_admission[is_admission | is_discharge]
    found = stays.groupby(["patient_id", "stay", begins])["time"].agg(["min", "max"]).reset_index(names=[*_NAMES, "in"])
    differs = found["max"] - found["min"] > _SAME_TIME
    alone = found.groupby(_NAMES)["in"].transform("any").to_numpy()
    return int((~alone).sum()), len(found.loc[differs, _NAMES].drop_duplicates())


_NAMES = ["patient_id", "stay"]
_SAME_TIME = pd.Timedelta(hours=1)
"""Tables that round their times otherwise differ by minutes."""


def _by_order(admissions: pd.DataFrame, discharges: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Pair the i-th with the i-th for patients for whom that is right; return the rest of both as well."""
    ids = admissions["patient_id"].cat.categories
    begins, ends = (rows["patient_id"].cat.codes.to_numpy() for rows in (admissions, discharges))
    is_odd = np.bincount(begins, minlength=len(ids)) != np.bincount(ends, minlength=len(ids))
    first, last = (np.argsort(who, kind="stable") for who in (begins, ends))
    first, last = first[~is_odd[begins[first]]], last[~is_odd[ends[last]]]
    admitted, discharged = admissions["time"].to_numpy()[first], discharges["time"].to_numpy()[last]
    who = begins[first]
    is_odd[who[~(discharged >= admitted)]] = True
    keep = ~is_odd[who]
    columns = {"admitted_at": admitted[keep], "discharged_at": discharged[keep]}
    table = pd.DataFrame({"patient_id": pd.Series(ids.take(who[keep]), dtype="str"), **columns})
    return table, admissions[is_odd[begins]], discharges[is_odd[ends]]


def _times_by_patient(rows: pd.DataFrame) -> dict[str, npt.NDArray[np.datetime64]]:
    codes = rows["patient_id"].cat.codes.to_numpy()
    order = np.argsort(codes, kind="stable")
    found, first = np.unique(codes[order], return_index=True)
    ids = rows["patient_id"].cat.categories.take(found).tolist()
    return dict(zip(map(str, ids), np.split(rows["time"].to_numpy()[order], first[1:]), strict=False))


def _by_walking(
    admissions: pd.DataFrame, discharges: pd.DataFrame, events: pd.DataFrame
) -> tuple[pd.DataFrame, int, int, int]:
    """Walk through the times of each irregular patient; there are few of them."""
    rows: list[tuple[str, np.datetime64, np.datetime64]] = []
    n_admissions = n_discharges = n_reversed = 0
    if admissions.empty and discharges.empty:
        return _stays_of(rows), 0, 0, 0
    by_patient, starts = _times_by_patient(discharges), _times_by_patient(admissions)
    own = events.loc[
        ~of_kind(events, (*PATIENT_EVENTS, *LABEL_EVENTS)) & events["patient_id"].isin([*starts]).to_numpy(),
        ["patient_id", "time"],
    ]
    times = _times_by_patient(own)
    for patient in sorted({*by_patient, *starts}):
        mine, ends = list(starts.get(patient, [])), list(by_patient.get(patient, []))
        open_admissions: list[np.datetime64] = []
        from_nothing = None
        for i, end in enumerate(ends):
            while mine and mine[0] <= end:
                open_admissions.append(mine.pop(0))
            if open_admissions:
                rows.append((patient, open_admissions.pop(), end))
            else:
                n_discharges += 1
                from_nothing = (end, ends[i - 1] if i else None) if i == len(ends) - 1 else None
        if from_nothing and len(mine) == 1 and not open_admissions and _nothing_between(events, patient, *from_nothing):
            n_discharges, n_reversed, mine = n_discharges - 1, n_reversed + 1, []
        open_admissions += mine
        last_end = ends[-1] if ends else None
        for i, start in enumerate(open_admissions):
            is_last = i == len(open_admissions) - 1 and (last_end is None or start >= last_end)
            if is_last or _has_left(times.get(patient, _NO_TIMES), starts[patient], start):
                rows.append((patient, start, np.datetime64("NaT", "us")))
            else:
                n_admissions += 1
    return _stays_of(rows), n_admissions, n_discharges, n_reversed


def _stays_of(rows: list[tuple[str, np.datetime64, np.datetime64]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["patient_id", "admitted_at", "discharged_at"])
    times = {"admitted_at": "datetime64[us]", "discharged_at": "datetime64[us]"}
    return table.astype({"patient_id": "str", **times})


_STILL_HERE = 2 * DAY
_NO_TIMES = np.zeros(0, dtype="datetime64[us]")


def _has_left(own: npt.NDArray[np.datetime64], admissions: npt.NDArray[np.datetime64], start: np.datetime64) -> bool:
    """Return whether the patient has no event for two days before the next admission, and so was discharged."""
    later = admissions[admissions > start]
    return bool(len(later)) and bool(
        later[0] - own[own < later[0]].max(initial=start) > np.timedelta64(_STILL_HERE, "s")
    )


def _nothing_between(events: pd.DataFrame, patient: str, end: np.datetime64, former: np.datetime64 | None) -> bool:
    """Return whether the patient has no event before a discharge, and after the former one."""
    mine = events.loc[
        ~of_kind(events, (*PATIENT_EVENTS, *LABEL_EVENTS)) & (events["patient_id"] == patient).to_numpy(), "time"
    ].to_numpy()
    return not ((mine < end) & ((mine > former) if former is not None else True)).any()


GAP = 30 * DAY
"""A patient without an event for longer has left the hospital."""


def stay_ends(
    events: pd.DataFrame, stays: pd.DataFrame, patients: pd.DataFrame, end_of_data: pd.Timestamp, *, shifted: bool
) -> npt.NDArray[np.int64]:
    """Return when each stay is over, in seconds: the first second that is no longer part of it.

    That is its discharge; where the stay is open, the patient's last own event before `GAP` without any, or the next
    admission. Death ends a stay. Where the calendar is not shifted, no stay that has begun goes on after the end of the
    data; one whose discharge is dated later is open.
    """
    ids = events["patient_id"].cat.categories
    who = ids.get_indexer(stays["patient_id"]).astype(np.int64)
    own = ~of_kind(events, (*PATIENT_EVENTS, *LABEL_EVENTS))
    patient, time = events["patient_id"].cat.codes.to_numpy().astype(np.int64), seconds(events["time"])
    shown = SeriesSet(patient[own], time[own], len(ids))
    limit = seconds(np.array([end_of_data], dtype="datetime64[us]"))[0]
    admitted, end = seconds(stays["admitted_at"]), seconds(stays["discharged_at"])
    is_open = _is_open(stays, end_of_data, shifted=shifted)
    if is_open.any():
        begun = SeriesSet(who, admitted, len(ids))
        place = begun.before(who, admitted + 1)
        following = np.append(begun.time, _NEVER)[place]
        following[place >= begun.start(who + 1)] = _NEVER
        known = own & ~(of_kind(events, [EventKind.DISCHARGE]) & (time > limit))
        lived = SeriesSet(patient[known], time[known], len(ids))
        end = np.where(is_open, np.minimum(_end_of_run(lived)[lived.before(who, admitted)] + 1, following), end)
    died = seconds(patients.set_index("patient_id")["death_time"].reindex(stays["patient_id"]))
    # A death at midnight is a date without a time of day.
    over = np.where(died % DAY == 0, died + DAY, died)
    end = np.where((died != np.iinfo(np.int64).min) & (over > admitted), np.minimum(end, over), end)
    if not shifted:
        last = shown.time[np.maximum(shown.start(who + 1) - 1, 0)]
        end = np.minimum(end, np.where(admitted > limit, np.maximum(last, limit), limit) + 1)
    return end


def _is_open(stays: pd.DataFrame, end_of_data: pd.Timestamp, *, shifted: bool) -> npt.NDArray[np.bool_]:
    """Mark the stays without a discharge, or with one that nobody can know yet."""
    discharged = stays["discharged_at"]
    planned = (discharged > end_of_data) & (stays["admitted_at"] <= end_of_data) & (not shifted)
    return np.asarray((discharged.isna() | planned).to_numpy(), dtype=bool)


_YEAR = 366 * DAY


def end_counts(
    stays: pd.DataFrame, ends: npt.NDArray[np.int64], end_of_data: pd.Timestamp, *, shifted: bool
) -> StayCounts:
    """Count the open stays whose patient has left the data, and the stays longer than a year.

    With a shifted calendar nobody is still in hospital.
    """
    is_open = _is_open(stays, end_of_data, shifted=shifted)
    limit = seconds(np.array([end_of_data], dtype="datetime64[us]"))[0] - _STILL_HERE
    left = is_open & ((ends < limit) | shifted)
    return StayCounts(n_left=int(left.sum()), n_long=int((ends - seconds(stays["admitted_at"]) > _YEAR).sum()))


def n_emptied(events: pd.DataFrame, stays: pd.DataFrame) -> int:
    """Count the stays that end when they begin, although their patient has events around them and no other stay."""
    empty = stays[stays["discharged_at"] == stays["admitted_at"]]
    if empty.empty:
        return 0
    ids = events["patient_id"].cat.categories
    own = ~of_kind(events, (*PATIENT_EVENTS, *LABEL_EVENTS))
    lived = SeriesSet(
        events["patient_id"].cat.codes.to_numpy()[own].astype(np.int64), seconds(events["time"])[own], len(ids)
    )
    who, at = ids.get_indexer(empty["patient_id"]).astype(np.int64), seconds(empty["admitted_at"])
    is_here = (lived.before(who, at + DAY) > lived.before(who, at + _HOUR)) | (
        lived.before(who, at - _HOUR) > lived.before(who, at - DAY)
    )
    others = empty[is_here].merge(stays, on="patient_id", suffixes=("", "_of"))
    day = pd.Timedelta(DAY, "s")
    begun, over = others["admitted_at_of"] < others["admitted_at"] + day, others["discharged_at_of"]
    covers = begun & ~(over <= others["admitted_at"] - day) & (others["stay_id"] != others["stay_id_of"])
    return int(is_here.sum() - others.loc[covers, "stay_id"].nunique())


def _end_of_run(shown: SeriesSet) -> npt.NDArray[np.int64]:
    """Return, for each event in the order of the series, the time of the last one before a long gap."""
    breaks = np.append(np.diff(shown.time) > GAP, True) | np.isin(
        np.arange(1, len(shown.time) + 1), shown.start(np.arange(1, shown.n_series + 1))
    )
    last = np.flatnonzero(breaks)
    return shown.time[last[np.searchsorted(last, np.arange(len(shown.time)))]]


def make_instances(
    stays: pd.DataFrame,
    patients: pd.DataFrame,
    snapshot_hour: int,
    end_of_data: pd.Timestamp,
    ends: npt.NDArray[np.int64],
    *,
    shifted: bool,
) -> tuple[pd.DataFrame, int]:
    """Place a patient-state instance at every snapshot hour of site time inside [admission, discharge).

    Return the instances, with ``unit`` still empty, and the number of mornings on which overlapping stays of a patient
    had one each; the later admission keeps it. With a shifted calendar the end of the data cuts no window: dates mean
    nothing between patients.
    """
    admitted = seconds(stays["admitted_at"])
    first = -((snapshot_hour * 3600 - admitted) // DAY) * DAY + snapshot_hour * 3600
    n = np.maximum(0, -((first - ends) // DAY))
    stay = np.repeat(np.arange(len(stays)), n)
    day = np.arange(len(stay)) - np.repeat(np.cumsum(n) - n, n)
    snapshot = first[stay] + day * DAY
    table = pd.DataFrame(
        {
            "patient_id": stays["patient_id"].to_numpy()[stay],
            "stay_id": stays["stay_id"].to_numpy()[stay],
            "snapshot_at": snapshot.astype("datetime64[s]").astype("datetime64[us]"),
            "day_of_stay": snapshot // DAY - admitted[stay] // DAY + 1,
        }
    )
    table = table.sort_values(["patient_id", "snapshot_at", "stay_id"], kind="stable")
    table = table.drop_duplicates(["patient_id", "snapshot_at"], keep="last").reset_index(drop=True)
    table["unit"] = pd.Series("", index=table.index, dtype="str")
    who = patients.set_index("patient_id").loc[table["patient_id"]]
    age_days = (table["snapshot_at"].to_numpy() - who["birth_time"].to_numpy()) / np.timedelta64(1, "D")
    table["age_years"] = np.where(age_days >= 0, age_days / 365.25, np.nan)
    table["sex"] = who["sex"].to_numpy()
    cut_at = np.full(1, _NEVER) if shifted else seconds(np.array([end_of_data], dtype="datetime64[us]"))
    over = np.where(stays["discharged_at"].isna(), ends if shifted else _NEVER, seconds(stays["discharged_at"]))
    table["window_hours"] = _window_hours(table, over, who["death_time"], int(cut_at[0]))
    return table, len(stay) - len(table)


def _window_hours(
    instances: pd.DataFrame, ends: npt.NDArray[np.int64], death: pd.Series, end_of_data: int
) -> pd.Series:
    """Hours of the decision window that lie inside the stay, before death and before the end of the data."""
    snapshot = seconds(instances["snapshot_at"])
    end = ends[instances["stay_id"].to_numpy()]
    died = seconds(death)
    # A death on the day's midnight is a date without a time of day; only one after the snapshot can cut the window.
    for each in (end, died):
        each[(each == np.iinfo(np.int64).min) | (each <= snapshot)] = _NEVER
    left = np.minimum(np.minimum(end, died), end_of_data) - snapshot
    return pd.Series(np.clip(left / 3600, 0.0, HOURS_IN_WINDOW), index=instances.index)


def n_contradicted(events: pd.DataFrame) -> int:
    """Count the patients with two sexes, or two dates of birth or days of death."""
    patients: set[object] = set()
    for kind, column in ((EventKind.SEX, "item"), (EventKind.BIRTH, "time"), (EventKind.DEATH, "time")):
        rows = events.loc[of_kind(events, [kind]), ["patient_id", column]].astype({"patient_id": "str"})
        if kind is EventKind.DEATH:
            rows["time"] = rows["time"].dt.normalize()
        different = rows.drop_duplicates()["patient_id"]
        patients.update(different[different.duplicated()])
    return len(patients)


def make_patients(events: pd.DataFrame, splits: dict[str, str]) -> pd.DataFrame:
    """Gather what is known of each patient who has an event, sorted, with the split that came with the data, if any."""
    ids = pd.Index(events["patient_id"].cat.categories.astype("str"), name="patient_id")
    table = pd.DataFrame(index=ids)
    for kind, column, name in (
        (EventKind.SEX, "item", "sex"),
        (EventKind.BIRTH, "time", "birth_time"),
        (EventKind.DEATH, "time", "death_time"),
    ):
        rows = events[of_kind(events, [kind])]
        if kind is EventKind.DEATH:
            # A date without a time of day gives way to a time on that day.
            is_date = rows["time"] == rows["time"].dt.normalize()
            rows = rows.assign(day=rows["time"].dt.normalize(), is_date=is_date).sort_values(["day", "is_date"])
        found = rows.drop_duplicates("patient_id").set_index("patient_id")[column]
        found.index = found.index.astype("str")
        table[name] = found.reindex(ids)
    sex = table["sex"].astype("object")
    table["sex"] = sex.where(sex.isin(["F", "M"]), None).astype("str")
    table["source_split"] = pd.Series([splits.get(each) for each in ids], index=ids, dtype="str")
    return table.sort_index().reset_index()
