"""Cleaning events: duplicates, times, numbers and delays, however the source is cut into chunks."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import MappingError
from core.events.reading import StreamBuilder
from tests.support.frames import assert_same_frame
from tests.support.records import finished, frame, site, stream

STAY = [(1, "2026-01-01 10:00", "IN"), (1, "2026-01-05 12:00", "OUT")]


def dropped(counts):
    return {drop.reason: drop.n_rows for drop in counts.dropped}


def test_exact_duplicates_are_counted_and_taken_out_once():
    row = (1, "2026-01-02 07:00", "LAB//K//mmol/L", 4.1)
    bill = (1, "2026-01-02 07:00", "BILL//1")
    events, counts = stream([*STAY, row, row, row, bill, bill])
    assert (events["kind"] == "LAB_RESULT").sum() == 1
    assert (counts.n_duplicate_rows, counts.n_duplicates_dropped) == (3, 2)


def test_duplicates_are_found_across_chunks():
    row = (1, "2026-01-02 07:00", "LAB//K", 4.1)
    builder = StreamBuilder(site(), {})
    for rows in ([*STAY, row], [row], [(2, *row[1:])]):
        builder.add(frame(rows))
    events, counts = finished(builder)
    assert (events["kind"] == "LAB_RESULT").sum() == 2
    assert counts.n_duplicate_rows == 1


@pytest.mark.parametrize(
    "change",
    [
        (2, "2026-01-02 07:00", "LAB//K", 4.1),
        (1, "2026-01-02 07:01", "LAB//K", 4.1),
        (1, "2026-01-02 07:00", "LAB//K2", 4.1),
        (1, "2026-01-02 07:00", "LAB//K", 4.2),
        (1, "2026-01-02 07:00", "LAB//K", 4.1, "x"),
    ],
)
def test_rows_that_differ_in_any_column_are_no_duplicates(change):
    _, counts = stream([*STAY, (1, "2026-01-02 07:00", "LAB//K", 4.1), change])
    assert counts.n_duplicate_rows == 0


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_how_the_source_is_cut_into_chunks_does_not_matter(cuts, random):
    rows = [*STAY, *((1, f"2026-01-02 0{i}:00", f"LAB//{random.choice('KNP')}//g/L", float(i)) for i in range(8))]
    whole, _ = stream(rows)
    builder, rest = StreamBuilder(site(), {}), list(rows)
    while rest:
        n = cuts[len(rest) % len(cuts)]
        builder.add(frame(rest[:n]))
        rest = rest[n:]
    assert_same_frame(finished(builder)[0], whole)


def test_rows_without_code_or_time_are_left_out_and_counted():
    events, counts = stream(
        [
            *STAY,
            (1, None, "LAB//K", 4.1),
            (1, "2026-01-02", None, 4.1),
            (1, None, "SEX//F"),
            (1, "2026-01-02", "LAB//K", 1.0),
        ]
    )
    assert dropped(counts) == {"event without a time": 1, "row without a code": 1}
    assert "SEX" in set(events["kind"])


def test_infinite_numbers_are_no_numbers():
    events, counts = stream([*STAY, (1, "2026-01-02", "LAB//K", np.inf), (1, "2026-01-03", "LAB//K", 4.0)])
    assert counts.n_not_finite == 1
    assert events.loc[events["kind"] == "LAB_RESULT", "value"].isna().tolist() == [True, False]


def test_numbers_in_texts_count_as_results():
    events, counts = stream(
        [*STAY, (1, "2026-01-02", "LAB//K", np.nan, "<0.01"), (1, "2026-01-03", "LAB//K", np.nan, "HOLD")]
    )
    assert counts.n_numbers_from_text == 1
    assert events.loc[events["kind"] == "LAB_RESULT", "value"].tolist()[0] == 0.01


def test_unknown_codes_are_listed_by_frequency():
    _, counts = stream(
        [
            *STAY,
            (1, "2026-01-02", "LAB//K", 1.0),
            *[(1, "2026-01-02", "HUH//1", float(i)) for i in range(3)],
            (1, "2026-01-02", "HUH//2"),
        ]
    )
    (unknown,) = [drop for drop in counts.dropped if "no rule" in drop.reason]
    assert unknown.examples == (("HUH//1", 3), ("HUH//2", 1))


def test_a_result_is_never_known_before_it_happened():
    rows = frame([*STAY, (1, "2026-01-02 07:00", "LAB//K", 4.1), (1, "2026-01-02 08:00", "LAB//K", 4.2)])
    told = pd.to_datetime(["2026-01-01 10:00", "2026-01-05 12:00", "2026-01-02 06:00", "2026-01-02 09:30"])
    builder = StreamBuilder(site(), {})
    builder.add(rows.assign(known_at=told.astype("datetime64[us]")))
    events, _ = finished(builder)
    labs = events[events["kind"] == "LAB_RESULT"]
    assert labs["known_at"].dt.strftime("%H:%M").tolist() == ["07:00", "09:30"]


def test_the_assumed_delay_moves_results_and_nothing_else():
    events, _ = stream(
        [*STAY, (1, "2026-01-02 07:00", "LAB//K", 4.1), (1, "2026-01-02 07:00", "START//Aspirin")],
        site(result_delay_minutes=90),
    )
    delay = (events["known_at"] - events["time"]).dt.total_seconds() / 60
    assert dict(zip(events["kind"], delay, strict=True))["LAB_RESULT"] == 90
    assert delay[events["kind"] != "LAB_RESULT"].eq(0).all()


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("order", {"MEDICATION_ORDER"}),
        ("administration", {"ADMINISTRATION"}),
        ("auto", {"MEDICATION_ORDER", "ADMINISTRATION"}),
    ],
)
def test_the_mapping_says_what_counts_as_a_drug_decision(source, kinds):
    rows = [*STAY, (1, "2026-01-02", "START//A"), (1, "2026-01-02", "GIVE//A"), (1, "2026-01-02", "GIVE//B")]
    events, _ = stream(rows, site(medication_tasks_from=source))
    assert set(events.loc[events["is_decision"], "kind"]) == kinds
    assert "a" in set(events.loc[events["is_decision"], "item"])


def test_identifiers_beyond_2_to_the_53_stay_apart():
    big = 2**53
    rows = [(subject, *rest) for subject in (big, big + 1, -(2**63) + 1) for _, *rest in STAY]
    events, _ = stream([*rows, (big, "2026-01-02", "LAB//K", 1.0)])
    assert set(events["patient_id"]) == {str(big), str(big + 1), str(-(2**63) + 1)}


def test_a_source_without_anything_useful_is_refused():
    builder = StreamBuilder(site(), {})
    builder.add(frame([(1, "2026-01-02", "HUH")]))
    with pytest.raises(MappingError, match="recognises no admission"):
        finished(builder)


def test_an_empty_chunk_is_no_harm():
    builder = StreamBuilder(site(), {})
    builder.add(frame([]))
    builder.add(frame([*STAY, (1, "2026-01-02", "LAB//K", 1.0)]))
    assert finished(builder)[1].n_rows == 3
