"""Pairing admissions with discharges, and the mornings that lie inside a stay."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events.reading import StreamBuilder
from core.events.stays import make_instances, make_patients, n_contradicted, pair_stays
from core.events.stream import seconds
from tests.support.records import finished, frame, site, stream
from tests.support.records import instances_of as instances_of_stays

LAB = (1, "2026-01-02 07:00", "LAB//K", 4.1)


def stays_of(rows):
    events, _ = stream([*rows, (99, "2026-01-01", "LAB//K", 1.0)])
    found = pair_stays(events)
    table = found.table
    shown = [
        (a.strftime("%d %H:%M"), "open" if pd.isna(d) else d.strftime("%d %H:%M"))
        for a, d in zip(table["admitted_at"], table["discharged_at"], strict=True)
    ]
    return shown, found.counts


def instances_of(rows, hour=8, shifted=False):
    events, _ = stream([*rows, LAB])
    stays = pair_stays(events).table
    return instances_of_stays(events, stays, hour, shifted=shifted)


def inout(*times, patient=1):
    return [(patient, f"2026-01-{time}", "IN" if i % 2 == 0 else "OUT") for i, time in enumerate(times)]


def test_the_ith_admission_belongs_to_the_ith_discharge():
    shown, counts = stays_of(inout("01 10:00", "03 12:00", "05 09:00", "06 11:00"))
    assert shown == [("01 10:00", "03 12:00"), ("05 09:00", "06 11:00")]
    assert counts.n_stays == 2


def test_a_readmission_in_the_minute_of_a_discharge_makes_two_stays():
    shown, counts = stays_of(inout("01 10:00", "03 12:00", "03 12:00", "06 11:00"))
    assert shown == [("01 10:00", "03 12:00"), ("03 12:00", "06 11:00")]
    assert counts.n_overlapping == 0


def test_overlapping_stays_stay_and_are_counted():
    rows = [
        (1, "2026-01-01 10:00", "IN"),
        (1, "2026-01-02 10:00", "IN"),
        (1, "2026-01-04 10:00", "OUT"),
        (1, "2026-01-06 10:00", "OUT"),
    ]
    shown, counts = stays_of(rows)
    assert shown == [("01 10:00", "04 10:00"), ("02 10:00", "06 10:00")]
    assert counts.n_overlapping == 1


def test_a_stay_without_a_discharge_at_the_end_is_open():
    shown, counts = stays_of(inout("01 10:00", "03 12:00", "05 09:00"))
    assert shown == [("01 10:00", "03 12:00"), ("05 09:00", "open")]
    assert counts.n_open == 1


def test_a_stay_with_a_missing_discharge_in_the_middle_is_open():
    rows = [(1, "2026-01-01 10:00", "IN"), *inout("05 09:00", "06 11:00")]
    shown, counts = stays_of(rows)
    assert shown == [("01 10:00", "open"), ("05 09:00", "06 11:00")]
    assert (counts.n_open, counts.n_unpaired_admissions, counts.n_overlapping) == (1, 0, 0)


def test_an_admission_that_is_entered_again_within_a_day_is_one_stay():
    rows = [(1, "2026-01-01 10:00", "IN"), *inout("01 19:00", "06 11:00")]
    shown, counts = stays_of(rows)
    assert shown == [("01 19:00", "06 11:00")]
    assert (counts.n_open, counts.n_unpaired_admissions) == (0, 1)


def test_a_discharge_before_every_admission_is_counted_and_left_out():
    rows = [(1, "2026-01-01 10:00", "OUT"), *inout("05 09:00", "06 11:00")]
    shown, counts = stays_of(rows)
    assert shown == [("05 09:00", "06 11:00")]
    assert counts.n_unpaired_discharges == 1


def test_a_reversed_stay_is_no_stay():
    rows = [(1, "2026-01-05 10:00", "IN"), (1, "2026-01-03 10:00", "OUT")]
    shown, counts = stays_of(rows)
    assert shown == []
    assert (counts.n_reversed, counts.n_unpaired_discharges) == (1, 1)


def test_a_discharge_that_the_data_begin_with_makes_no_reversed_stay():
    rows = [(1, "2026-01-02 10:00", "LAB//K"), (1, "2026-01-03 10:00", "OUT"), (1, "2026-01-05 10:00", "IN")]
    shown, counts = stays_of(rows)
    assert shown == [("05 10:00", "open")]
    assert (counts.n_reversed, counts.n_unpaired_discharges) == (0, 1)


def test_stays_with_names_are_paired_by_name_even_when_nested():
    rows = [
        (1, "2026-01-01 10:00", "IN"),
        (1, "2026-01-02 10:00", "IN"),
        (1, "2026-01-03 10:00", "OUT"),
        (1, "2026-01-06 10:00", "OUT"),
        LAB,
    ]
    builder = StreamBuilder(site(), {})
    builder.add(frame(rows).assign(stay=[7, 8, 8, 7, -1]))
    table = pair_stays(finished(builder)[0]).table
    assert (table["discharged_at"].dt.day).tolist() == [6, 3]


def test_a_reversed_stay_with_a_name_is_left_out_and_counted():
    builder = StreamBuilder(site(), {})
    builder.add(frame([(1, "2026-01-05", "IN"), (1, "2026-01-03", "OUT"), LAB]).assign(stay=[7, 7, -1]))
    found = pair_stays(finished(builder)[0])
    assert len(found.table) == 0
    assert (found.counts.n_unpaired_admissions, found.counts.n_reversed) == (1, 1)


@pytest.mark.parametrize(
    ("discharged", "n_alone", "n_differing"), [(None, 1, 0), ("09 10:00", 0, 1), ("06 10:20", 0, 0)]
)
def test_named_discharges_without_an_admission_or_at_two_times_are_counted(discharged, n_alone, n_differing):
    """A stay is what its name says; what contradicts the name is never dropped without a word."""
    rows = [(1, "2026-01-05 10:00", "IN"), (1, "2026-01-06 10:00", "OUT"), LAB]
    rows.append((1, f"2026-01-{discharged or '02 10:00'}", "OUT"))
    builder = StreamBuilder(site(), {})
    builder.add(frame(rows).assign(stay=[7, 7, -1, 7 if discharged else 6]))
    found = pair_stays(finished(builder)[0])
    assert (found.counts.n_unpaired_discharges, found.counts.n_differing) == (n_alone, n_differing)


@pytest.mark.parametrize("code", ["DEATH", "dead"])
def test_a_death_at_a_time_goes_before_a_date_alone_of_its_day(code):
    """Tables of patients tell the day, tables of stays the time; another day is a contradiction."""
    deaths = [(1, "2026-01-03", "DEATH"), (1, "2026-01-03 11:00", "DEATH")]
    rows = [(1, "2026-01-01 10:00", "IN"), *deaths, (1, "2026-01-06 10:00", "OUT"), LAB]
    if code == "dead":
        rows.append((1, "2026-01-04", "DEATH"))
    events, _ = stream(rows)
    assert make_patients(events, {})["death_time"][0] == pd.Timestamp("2026-01-03 11:00")
    assert n_contradicted(events) == (code == "dead")
    found, _ = instances_of_stays(events, pair_stays(events).table, shifted=True)
    assert list(found["window_hours"]) == [24.0, 3.0]


def slow_mornings(admitted, discharged, hour):
    """Every hour of the stay, one by one."""
    out, time = [], admitted.replace(minute=0, second=0)
    while time < discharged:
        if time >= admitted and time.hour == hour:
            out.append(time)
        time += pd.Timedelta(hours=1)
    return out


@settings(max_examples=60, deadline=None)
@given(
    start=st.datetimes(min_value=pd.Timestamp("1970-01-01"), max_value=pd.Timestamp("2150-01-01")),
    minutes=st.integers(0, 60 * 24 * 6),
    hour=st.integers(0, 23),
)
def test_instances_are_every_snapshot_hour_inside_admission_and_discharge(start, minutes, hour):
    admitted = pd.Timestamp(start).floor("min")
    discharged = admitted + pd.Timedelta(minutes=minutes)
    times = {"admitted_at": [admitted], "discharged_at": [discharged]}
    stays = pd.DataFrame({"stay_id": [0], "patient_id": ["1"], **times})
    nothing = pd.Series([pd.NaT], dtype="datetime64[us]")
    patients = pd.DataFrame({"patient_id": ["1"], "sex": ["F"], "birth_time": nothing, "death_time": nothing})
    found, _ = make_instances(stays, patients, hour, discharged, seconds(stays["discharged_at"]), shifted=True)
    assert found["snapshot_at"].tolist() == slow_mornings(admitted, discharged, hour)


@pytest.mark.parametrize(
    ("admitted", "discharged", "n"), [("08:00", "08:00", 1), ("08:01", "08:00", 0), ("07:59", "08:01", 2)]
)
def test_admission_at_the_snapshot_counts_and_discharge_at_it_does_not(admitted, discharged, n):
    found, _ = instances_of(inout(f"03 {admitted}", f"04 {discharged}"))
    assert len(found) == n


def test_overlapping_stays_share_a_morning_only_once():
    rows = [
        (1, "2026-01-01 10:00", "IN"),
        (1, "2026-01-02 10:00", "IN"),
        (1, "2026-01-04 10:00", "OUT"),
        (1, "2026-01-05 10:00", "OUT"),
    ]
    found, n_merged = instances_of(rows)
    assert not found.duplicated(["patient_id", "snapshot_at"]).any()
    assert (len(found), n_merged) == (4, 2)


def test_day_of_stay_counts_calendar_days():
    found, _ = instances_of(inout("01 23:00", "04 12:00"))
    assert found["day_of_stay"].tolist() == [2, 3, 4]


def test_windows_are_cut_by_discharge_death_and_the_end_of_the_data():
    rows = [*inout("01 10:00", "04 12:00"), (1, "2026-01-03 20:00", "DEATH")]
    found, _ = instances_of(rows)
    assert found["window_hours"].tolist() == [24, 12]
    open_stay, _ = instances_of([(1, "2026-01-01 10:00", "IN"), (1, "2026-01-03 14:00", "WARD//A")])
    assert open_stay["window_hours"].tolist() == [24, 6]


@pytest.mark.parametrize("fact", ["SEX//F", "LABEL_TRUE:a"])
def test_what_is_known_of_a_patient_keeps_nobody_in_hospital(fact):
    rows = [(1, "2026-01-01 10:00", "IN"), (1, "2026-01-03 14:00", "WARD//A"), (1, "2026-01-04 09:00", fact)]
    assert instances_of(rows, shifted=True)[0]["window_hours"].round(2).tolist() == [24, 6]


def test_a_shifted_calendar_has_no_common_end():
    rows = [*inout("01 10:00", "04 07:00"), (2, "2026-01-01", "IN"), (2, "2026-01-05 08:00", "LAB//K")]
    assert instances_of(rows, shifted=True)[0]["window_hours"].iloc[1] == 23
    windows = instances_of(rows, shifted=True)[0].query("patient_id == '2'")["window_hours"].round(2)
    assert windows.tolist() == [24, 24, 24, 24, 0]


def test_ages_before_birth_are_missing():
    found, _ = instances_of([*inout("01 10:00", "03 12:00"), (1, "1956-01-02 08:00", "BIRTH")])
    assert found["age_years"].iloc[0] == pytest.approx(70, abs=0.01)
    late, _ = instances_of([*inout("01 10:00", "03 12:00"), (1, "2027-01-02", "BIRTH")])
    assert late["age_years"].isna().all()


def test_patients_carry_sex_birth_death_and_split():
    events, _ = stream(
        [*inout("01 10:00", "03 12:00"), LAB, (1, None, "SEX//F"), (2, None, "SEX//?"), (1, "1950-05-01", "BIRTH")]
    )
    table = make_patients(events, {"1": "train"}).set_index("patient_id")
    assert table.loc["1", "sex"] == "F"
    assert table.loc["1", "source_split"] == "train"
    assert table.loc["2"].isna().all()
    assert table.loc["1", "birth_time"] == pd.Timestamp("1950-05-01")
    assert np.isnat(table.loc["1", "death_time"].to_datetime64())


@pytest.mark.parametrize("night", ["2026-03-28", "2026-10-24"])
def test_each_morning_of_a_clock_change_has_one_instance_at_08_site_time(night):
    """Times in UTC around both changes of Zurich's clocks become site time by the source; instances stay at 08:00."""
    day = pd.Timestamp(night)
    events, _ = stream(
        [(1, day, "IN"), (1, day + pd.Timedelta(days=3), "OUT"), (1, day, "LAB//K", 1.0)],
        site(timezone="Europe/Zurich"),
    )
    found, _ = instances_of_stays(events, pair_stays(events).table, shifted=False)
    assert found["snapshot_at"].dt.hour.eq(8).all()
    assert len(found) == 3
