"""A reader's own list: fixed random order, repeats after their originals, counts that add up."""

from collections import Counter
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alertreview.review.reader_list import ReaderList, nothing_assigned
from alertreview.studies.models import JUDGED
from core.vocabulary import SlotState
from db.models import ReaderSlot
from tests.support.stored_site import EPOCH

HELD = [state for state in SlotState if state is not SlotState.FREE]


def place(case_id: int, state: SlotState = SlotState.FREE, has_room: bool = True, *, of: int = 0) -> ReaderSlot:
    """One place; `of` names the case that this one repeats."""
    return ReaderSlot(
        case_id=case_id,
        repeat_number=1 if of else 0,
        original_id=of or None,
        holds_slot=state is not SlotState.FREE,
        state=state,
        held_until=None,
        has_room=has_room,
    )


@st.composite
def places(draw: st.DrawFn) -> list[ReaderSlot]:
    numbers = range(1, draw(st.integers(0, 25)) + 1)
    return [place(case_id, draw(st.sampled_from(list(SlotState))), draw(st.booleans())) for case_id in numbers]


LAPSES = st.dictionaries(st.integers(1, 25), st.sampled_from([EPOCH, EPOCH + timedelta(hours=1)]))


@given(places(), st.integers(0, 5), st.booleans(), LAPSES)
def test_counts_add_up_in_any_state(
    rows: list[ReaderSlot], seed: int, takes_new: bool, lapses: dict[int, datetime]
) -> None:
    queue = ReaderList(rows, seed, 1, takes_new=takes_new).counts(lapses)
    assert sum(queue.states.values()) == queue.n_mine
    assert queue.n_submitted == queue.states[SlotState.SUBMITTED] + queue.states[SlotState.CANNOT_JUDGE]
    assert queue.n_submitted + queue.n_left == queue.n_mine
    assert queue.n_left == sum(queue.states[s] for s in SlotState if s not in JUDGED)
    counted = Counter(row.state for row in rows if row.holds_slot)
    assert all(queue.states[state] == counted[state] for state in HELD)
    n_free = sum(not row.holds_slot and row.has_room for row in rows)
    assert queue.states[SlotState.FREE] == (n_free if takes_new else 0)
    assert queue.n_held_by_others <= len(rows) - queue.n_mine
    others = {case_id: at for case_id, at in lapses.items() if case_id in {row.case_id for row in rows}}
    for row in rows:
        if row.holds_slot or (takes_new and row.has_room):
            others.pop(row.case_id, None)
    assert (queue.n_held_by_others, queue.next_release_at) == (len(others), min(others.values(), default=None))


@given(places(), st.integers(0, 5))
def test_what_comes_next_is_never_judged_and_never_out_of_reach(rows: list[ReaderSlot], seed: int) -> None:
    cases = ReaderList(rows, seed, 1, takes_new=True)
    for after in (None, *(row.case_id for row in rows)):
        found = list(cases.candidates(after))
        assert len({row.case_id for row in found}) == len(found)
        assert all(row.state not in JUDGED and row.case_id != after for row in found)
        assert all(row.holds_slot or row.has_room for row in found)
        put_off = [row.state is SlotState.LATER for row in found]
        assert put_off == sorted(put_off), "put-off cases come last"


def test_the_order_hangs_on_seed_and_reader_alone() -> None:
    rows = [place(case_id) for case_id in range(1, 41)]
    order = [row.case_id for row in ReaderList(rows, 7, 1, takes_new=True).mine]
    assert sorted(order) == list(range(1, 41))
    assert order != sorted(order)
    assert [row.case_id for row in ReaderList(rows[::-1], 7, 1, takes_new=True).mine] == order
    assert [row.case_id for row in ReaderList(rows, 7, 2, takes_new=True).mine] != order
    assert [row.case_id for row in ReaderList(rows, 8, 1, takes_new=True).mine] != order


def test_the_order_and_numbers_stay_when_others_finish_cases() -> None:
    rows = [place(case_id) for case_id in range(1, 31)]
    before = ReaderList(rows, 3, 5, takes_new=True)
    fewer = [row._replace(has_room=False) if row.case_id % 3 == 0 else row for row in rows]
    after = ReaderList(fewer, 3, 5, takes_new=True)
    assert [row.case_id for row in after.mine] == [row.case_id for row in before.mine if row.case_id % 3]
    assert all(after.number(row.case_id) == before.number(row.case_id) for row in rows)
    assert [after.position(row.case_id) for row in after.mine] == list(range(1, len(after.mine) + 1))


def test_no_place_in_the_order_is_favoured() -> None:
    """The first of ten cases, over many readers, is each of them about equally often."""
    rows = [place(case_id) for case_id in range(1, 11)]
    first = Counter(ReaderList(rows, 1, person, takes_new=True).mine[0].case_id for person in range(2_000))
    assert sorted(first) == list(range(1, 11))
    assert max(first.values()) - min(first.values()) < 100


@given(st.integers(0, 200))
def test_a_repeat_comes_after_its_original(seed: int) -> None:
    rows = [place(case_id) for case_id in range(1, 11)] + [place(case_id + 20, of=case_id) for case_id in range(1, 6)]
    cases = ReaderList(rows, seed, 1, takes_new=True)
    for case_id in range(1, 6):
        assert cases.number(case_id) < cases.number(case_id + 20)


@pytest.mark.parametrize("state", list(SlotState))
def test_a_repeat_is_to_be_had_only_once_its_original_is_judged(state: SlotState) -> None:
    rows = [place(1, state), place(2, of=1)]
    cases = ReaderList(rows, 1, 1, takes_new=True)
    assert cases.may_claim(rows[1]) == (state in JUDGED)
    assert cases.counts({}).n_mine == 2, "it counts from the beginning, so that the total does not give it away"


def test_a_repeat_of_a_case_that_others_read_is_none() -> None:
    rows = [place(1, has_room=False), place(2, of=1)]
    assert ReaderList(rows, 1, 1, takes_new=True).mine == []


def test_backwards_leads_through_the_readers_own_cases() -> None:
    rows = [place(i, SlotState.SUBMITTED if i % 2 else SlotState.FREE) for i in range(1, 11)]
    cases = ReaderList(rows, 2, 1, takes_new=True)
    own = [row.case_id for row in cases.mine if row.holds_slot]
    assert [row.case_id for row in cases.before(None)] == own[::-1]
    assert [row.case_id for row in cases.before(own[2])] == [own[1], own[0]]
    assert list(cases.before(own[0])) == []


def test_somebody_who_is_no_reader_has_nothing() -> None:
    queue = nothing_assigned()
    assert not queue.is_reader
    assert (queue.n_mine, queue.n_left, sum(queue.states.values())) == (0, 0, 0)
