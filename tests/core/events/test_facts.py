"""Context facts: kept beside the event stream, each once, and never a feature, a task or an event."""

import numpy as np
import pandas as pd
import pytest

from core.events.facts import FACT_COLUMNS, FactKind, FactsDigest, digest_of, empty_facts, sorted_facts
from core.events.parts import gathered
from core.events.reading import StreamBuilder
from core.kinds import EventKind
from tests.support.records import RULES, frame, site

FACT_RULES = [
    {"code": "DX//(?P<item>.+)", "kind": "DIAGNOSIS"},
    {"code": "ALLERGY//(?P<item>.+)", "kind": "ALLERGY"},
]
ROWS = [
    (1, "2026-01-01 06:00", "IN"),
    (1, "2026-01-01 07:00", "START//Heparin"),
    (1, "2026-01-01 07:30", "LAB//K//mmol/L", 5.9),
    (1, "2026-01-01 09:00", "DX//I50"),
    (1, "2026-01-01 09:00", "DX//I50"),
    (1, None, "ALLERGY//Penicillin"),
    (1, "2026-01-02 09:00", "OUT"),
    (2, "2026-01-01 06:00", "DX//J18"),
]
DETAILS = {
    "dose": ["", "5000 units", *[""] * 6],
    "route": [None, "SC", *[None] * 6],
    "range_low": [np.nan, np.nan, 3.5, *[np.nan] * 5],
    "range_high": [np.nan, np.nan, 5.0, *[np.nan] * 5],
    "end": pd.to_datetime([None, "2026-01-01 20:00", *[None] * 6]).astype("datetime64[us]"),
}


def built(chunks, descriptions=None):
    builder = StreamBuilder(site(rules=[*FACT_RULES, *RULES], patient_prefix="P"), descriptions or {})
    for chunk in chunks:
        builder.add(chunk)
    stream, counts = builder.finish_parts()
    return gathered(stream), counts, list(builder.facts({"P1"}))


def plain_rows(facts):
    return facts.astype("object").where(facts.notna(), None).to_dict("records")


def test_facts_are_kept_once_beside_the_stream_and_those_of_patients_without_events_are_not():
    events, counts, parts = built([frame(ROWS).assign(**DETAILS)], {"DX//I50": "Heart  failure"})
    facts = pd.concat(parts)
    assert list(facts.columns) == list(FACT_COLUMNS)
    told = [(row["kind"], row["item"], row["name"], row["start"]) for row in plain_rows(facts)]
    assert told == [
        ("ALLERGY", "Penicillin", "Penicillin", None),
        ("MEDICATION_ORDER", "heparin", "Heparin", pd.Timestamp("2026-01-01 07:00")),
        ("LAB_RESULT", "K", "K", pd.Timestamp("2026-01-01 07:30")),
        ("DIAGNOSIS", "I50", "Heart failure", pd.Timestamp("2026-01-01 09:00")),
    ]
    order, result = facts.iloc[1], facts.iloc[2]
    assert (order["dose"], order["route"], order["end"]) == ("5000 units", "SC", pd.Timestamp("2026-01-01 20:00"))
    assert (result["value"], result["unit"], result["range_low"], result["range_high"]) == (5.9, "mmol/L", 3.5, 5.0)
    assert set(facts["patient_id"]) == {"P1"}
    assert [(count.kind, count.n_rows) for count in counts.facts] == [("DIAGNOSIS", 3), ("ALLERGY", 1)]
    assert not counts.dropped
    assert set(events["patient_id"]) == {"P1"}


def test_the_stream_is_the_same_with_and_without_facts():
    rows = [row for row in ROWS if not row[2].startswith(("DX", "ALLERGY"))]
    with_facts, _, _ = built([frame(ROWS).assign(**DETAILS)])
    without, _, nothing = built([frame(rows)])
    pd.testing.assert_frame_equal(with_facts, without)
    assert nothing == []


def test_chunks_and_their_order_do_not_matter():
    chunk = frame(ROWS).assign(**DETAILS)
    whole = pd.concat(built([chunk])[2])
    pieces = pd.concat(built([chunk[i : i + 1] for i in reversed(range(len(chunk)))])[2])
    pd.testing.assert_frame_equal(whole, pieces)
    assert digest_of([whole]) == digest_of([pieces[:2], pieces[2:]])


def test_texts_and_categories_have_the_same_digest():
    facts = pd.concat(built([frame(ROWS).assign(**DETAILS)])[2], ignore_index=True)
    texts = facts.astype(empty_facts().dtypes.to_dict())
    assert isinstance(facts["item"].dtype, pd.CategoricalDtype)
    assert digest_of([texts]) == digest_of([facts])
    pd.testing.assert_frame_equal(sorted_facts(texts.sample(frac=1, random_state=0)), texts)


def test_facts_that_differ_in_what_nobody_sorts_by_are_kept_and_doubled_ones_dropped():
    facts = pd.concat(built([frame(ROWS).assign(**DETAILS)])[2], ignore_index=True).astype(
        empty_facts().dtypes.to_dict()
    )
    renamed = facts.assign(name="another name")
    plain = pd.concat([facts, renamed, facts]).drop_duplicates()
    plain = plain.sort_values(
        ["patient_id", "start", "kind", "item", "end", "known_at", "value", "text", "dose", "route", "range_low"],
        kind="stable",
        na_position="first",
        ignore_index=True,
    )
    pd.testing.assert_frame_equal(sorted_facts(pd.concat([facts, renamed, facts])), plain)


@pytest.mark.parametrize("column", FACT_COLUMNS)
def test_every_column_counts_in_the_digest(column):
    facts = pd.concat(built([frame(ROWS).assign(**DETAILS)])[2], ignore_index=True).astype(
        empty_facts().dtypes.to_dict()
    )
    changed = facts.copy()
    value = facts[column].iloc[2]
    other = value + pd.Timedelta(1, "h") if isinstance(value, pd.Timestamp) else f"{value}x"
    other = pd.Timestamp("2026-05-05") if value is pd.NaT else other
    changed.loc[2, column] = 7.5 if isinstance(value, float) else other
    assert digest_of([changed]) != digest_of([facts])
    assert digest_of([changed]).onto("a") != digest_of([facts]).onto("a") != "a"


def test_no_fact_leaves_a_hash_as_it_is():
    assert digest_of([empty_facts()]) == FactsDigest()
    assert FactsDigest().onto("a") == "a"
    assert list(sorted_facts(empty_facts()).columns) == list(FACT_COLUMNS)


def test_kinds_of_facts_are_no_kinds_of_events():
    assert not {kind.value for kind in FactKind} & {kind.value for kind in EventKind}


@pytest.mark.parametrize(
    ("kind", "at", "known"),
    [
        ("DIAGNOSIS", "2026-01-02 00:00", "2026-01-03 00:00"),
        ("PROBLEM", "2026-01-02 00:00", "2026-01-03 00:00"),
        ("PROCEDURE", "2026-01-02 00:00", "2026-01-03 00:00"),
        ("ALLERGY", "2026-01-02 00:00", "2026-01-03 00:00"),
        ("MICROBIOLOGY", "2026-01-02 00:00", "2026-01-03 00:00"),
        ("REPORT", "2026-01-02 00:00", "2026-01-03 00:00"),
        ("REASON", "2026-01-02 00:00", "2026-01-02 00:00"),
        ("VITAL_SIGN", "2026-01-02 00:00", "2026-01-02 00:00"),
        ("PROCEDURE", "2026-01-02 00:01", "2026-01-02 00:01"),
    ],
)
def test_a_fact_with_a_date_alone_is_known_when_the_day_is_over(kind: str, at: str, known: str) -> None:
    rules = [{"code": "FACT//(?P<item>.+)", "kind": kind}, *RULES]
    builder = StreamBuilder(site(rules=rules, patient_prefix="P"), {})
    builder.add(frame([*ROWS[:3], (1, at, "FACT//X"), (1, "2026-01-05 09:00", "OUT")]))
    builder.finish_parts()
    facts = pd.concat(list(builder.facts({"P1"})))
    (fact,) = facts[facts["item"] == "X"].to_dict("records")
    assert (str(fact["start"]), str(fact["known_at"])) == (f"{at}:00", f"{known}:00")
