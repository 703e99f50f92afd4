"""Adding a day to a cohort: as if all had come at once, corrections in the trail."""

from types import SimpleNamespace

from core.events.append import Known, Merging
from core.events.parts import MemorySpill, gathered
from core.events.stays import pair_stays
from tests.support.frames import assert_same_frame
from tests.support.records import site, stream

DAY_1 = [
    (1, "2026-01-01 10:00", "IN"),
    (1, "2026-01-02 07:00", "LAB//K//mmol/L", 4.1),
    (1, "2026-01-02 09:00", "START//Heparin"),
    (2, "2026-01-01 09:00", "IN"),
    (2, "2026-01-02 12:00", "OUT"),
]
DAY_2 = [(1, "2026-01-03 07:00", "LAB//K//mmol/L", 4.4), (1, "2026-01-04 12:00", "OUT"), (2, "2026-01-02 12:00", "IN")]


def merged(old_rows, new_rows):
    old, _ = stream(old_rows)
    # The next day alone would be refused when nobody is admitted in it; an admission known before is no harm.
    new, _ = stream([*new_rows, old_rows[0]])
    stays = pair_stays(old).table
    merging = Merging(Known.of([old]), new, site(), MemorySpill())
    for patients in merging.dealt(old["patient_id"].value_counts().to_dict(), 1):
        mine = old[old["patient_id"].isin(patients)]
        mine = mine.assign(patient_id=mine["patient_id"].cat.remove_unused_categories())
        merging.add(patients, mine, stays[stays["patient_id"].isin(patients)])
    merged_stream, trail = merging.finish()
    return SimpleNamespace(events=gathered(merged_stream), trail=trail, n_added=merging.n_added)


def test_next_day_s_events_are_added_as_if_all_had_come_at_once():
    out = merged(DAY_1, DAY_2)
    whole, _ = stream([*DAY_1, *DAY_2])
    assert out.n_added == 3
    assert_same_frame(out.events.drop(columns="stay"), whole.drop(columns="stay"))


def test_a_new_discharge_closes_the_open_stay_and_closed_ones_stay_as_they_were():
    stays = pair_stays(merged(DAY_1, DAY_2).events).table
    shown = list(
        zip(stays["patient_id"], stays["admitted_at"].dt.day, stays["discharged_at"].dt.day.fillna(0), strict=True)
    )
    assert shown == [("1", 1, 4), ("2", 1, 2), ("2", 2, 0)]


def test_the_same_again_changes_nothing():
    out = merged(DAY_1, DAY_1)
    whole, _ = stream(DAY_1)
    assert out.n_added == 0
    assert out.trail.empty
    assert_same_frame(out.events.drop(columns="stay"), whole.drop(columns="stay"))


def test_a_corrected_result_replaces_its_value_and_both_are_in_the_trail():
    out = merged(DAY_1, [(1, "2026-01-02 07:00", "LAB//K//mmol/L", 4.7)])
    labs = out.events[out.events["kind"] == "LAB_RESULT"]
    assert labs["value"].tolist() == [4.7]
    assert out.trail[["old_value", "new_value"]].to_numpy().tolist() == [[4.1, 4.7]]
    assert out.trail["patient_id"].tolist() == ["1"]


def test_two_results_that_were_always_there_are_no_correction():
    twice = [*DAY_1, (1, "2026-01-02 07:00", "LAB//K//mmol/L", 4.2)]
    out = merged(twice, twice)
    assert out.trail.empty
    assert (out.events["kind"] == "LAB_RESULT").sum() == 2
