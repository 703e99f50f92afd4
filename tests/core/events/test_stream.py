"""The cleaned stream of events: its columns and order, and what counts as a decision."""

import numpy as np
import pandas as pd

from core.events.stream import EVENT_COLUMNS, decision_events, of_kind, seconds
from core.kinds import EventKind, Kind, task_key
from tests.support.frames import assert_same_frame
from tests.support.records import stream

ROWS = [
    (1, "2026-01-01 10:00", "IN"),
    (1, "2026-01-02 06:00", "ASK//K"),
    (1, "2026-01-02 07:00", "LAB//K//mmol/L", 4.1),
    (1, "2026-01-02 07:00", "LAB//Na//mmol/L", 140.0),
    (1, "2026-01-02 09:00", "START//Heparin"),
    (1, "2026-01-03 12:00", "OUT"),
]


def test_the_order_of_the_rows_does_not_matter():
    forward, _ = stream(ROWS)
    backward, _ = stream(ROWS[::-1])
    assert_same_frame(forward, backward)


def test_the_stream_has_the_promised_columns_and_types():
    events, _ = stream(ROWS)
    assert tuple(events.columns[: len(EVENT_COLUMNS)]) == EVENT_COLUMNS
    assert list(events["kind"].cat.categories) == [kind.value for kind in EventKind]
    assert events["time"].dtype == "datetime64[us]"


def test_decisions_are_orders_where_a_lab_has_orders_and_results_else():
    events, _ = stream(ROWS)
    potassium = decision_events(events, task_key(Kind.LAB_ORDER, "K"))
    sodium = decision_events(events, task_key(Kind.LAB_ORDER, "Na"))
    assert potassium["kind"].tolist() == ["LAB_ORDER"]
    assert sodium["kind"].tolist() == ["LAB_RESULT"]


def test_decisions_of_a_drug_never_mix_with_a_lab_of_the_same_name():
    events, _ = stream([*ROWS, (1, "2026-01-02 10:00", "LAB//heparin", 0.3)])
    assert decision_events(events, task_key(Kind.MEDICATION, "heparin"))["kind"].tolist() == ["MEDICATION_ORDER"]


def test_of_kind_agrees_with_comparing_texts():
    events, _ = stream(ROWS)
    wanted = [EventKind.LAB_RESULT, EventKind.ADMISSION]
    assert np.array_equal(of_kind(events, wanted), events["kind"].isin([kind.value for kind in wanted]))


def test_seconds_round_down_also_before_1970():
    times = pd.Series(pd.to_datetime(["1969-12-31 23:59:58.5", "2026-01-01 00:00:00.9"]))
    assert seconds(times)[0] == -2
    assert seconds(times)[1] == pd.Timestamp("2026-01-01").timestamp()
