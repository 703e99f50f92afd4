"""What others do between a reader's look at the list and the hold, and what opening and judging cost in statements."""

from collections.abc import Callable
from typing import Any

import pytest

from alertreview.review.models import BlindedCase, DraftView, SavedJudgment
from core.vocabulary import Answer, SlotState
from db.unit_of_work import UnitOfWork
from tests.support.review_acts import at_once, captured, next_case, save
from tests.support.stored_site import StoredSite

OPENING, REOPENING, SAVING = 4, 3, 8
"""Statements of opening a new case, of opening one that is held, and of saving a judgment, sealing it and reading it
back."""


def meanwhile(site: StoredSite, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[bool]:
    """Do something right before the next unit of work that writes; gives what tells whether that came."""
    write, came = site.database.write, list[bool]()

    def write_after(**options: Any) -> UnitOfWork:
        if not came:
            came.append(True)
            act()
        return write(**options)

    monkeypatch.setattr(site.database, "write", write_after)
    return came


def test_a_case_that_another_reader_took_meanwhile_gives_way_to_the_next_one(
    site: StoredSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = site.study(6, 2, n_slots=1)
    wanted = next_case(site, first).case_id
    site.clock.pass_hours(30)

    came = meanwhile(site, monkeypatch, lambda: site.review.case("demo", second, wanted))
    case = next_case(site, first)
    assert came
    assert case.case_id != wanted
    assert case.form_key != ""
    with site.database.read() as uow:
        row = next(row for row in uow.cases.in_study(1) if row.id == case.case_id)
        holders = {slot.case_id: slot.reviewer_id for slot in uow.slots.of_study(1) if slot.reviewer_id is not None}
    assert case.patient.timeline.decision_name == f"{row.task_key} of row {row.row_index} in {'a' * 64}"
    assert holders == {wanted: second, case.case_id: first}


def test_when_others_take_all_that_is_left_meanwhile_there_is_nothing(
    site: StoredSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = site.study(2, 2, n_slots=1)

    def take_all() -> None:
        for _ in range(2):
            save(site, second, next_case(site, second))

    came = meanwhile(site, monkeypatch, take_all)
    assert site.review.next_case("demo", first) is None
    assert came


def test_a_case_judged_in_another_window_meanwhile_stays_judged_for_good(
    site: StoredSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = site.study(1, 2, n_slots=1)
    case = next_case(site, first)
    site.clock.pass_hours(23.5)
    came = meanwhile(site, monkeypatch, lambda: save(site, first, case))
    next_case(site, first)
    assert came
    site.clock.pass_hours(1_000)
    assert site.review.next_case("demo", second) is None
    assert len(site.studies.votes("demo")) == 1
    assert site.review.queue("demo", first).n_submitted == 1


def test_a_study_locked_meanwhile_gives_no_new_case_and_shows_the_own_one(
    site: StoredSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = site.study(3, 2, n_slots=1)
    own = next_case(site, first)
    site.clock.pass_hours(23.5)
    meanwhile(site, monkeypatch, lambda: site.studies.lock_study("demo", reason="enough"))
    assert site.review.next_case("demo", second) is None
    site.studies.reopen_study("demo", reason="not enough")
    monkeypatch.undo()
    meanwhile(site, monkeypatch, lambda: site.studies.lock_study("demo", reason="enough"))
    assert next_case(site, first).case_id == own.case_id
    with site.database.read() as uow:
        assert [slot.reviewer_id for slot in uow.slots.of_study(1) if slot.reviewer_id] == [first]


def test_a_new_hold_forgets_the_later_of_whoever_had_the_slot_before(site: StoredSite) -> None:
    first, second = site.study(1, 2, n_slots=1)
    case = next_case(site, first)
    site.review.mark_later("demo", first, case.case_id)
    site.clock.pass_hours(23.5)
    next_case(site, first)
    assert site.review.queue("demo", first).states[SlotState.LATER] == 1, "held longer, it is still put off"
    site.clock.pass_hours(30)
    next_case(site, second)
    assert site.review.queue("demo", second).states[SlotState.OPENED] == 1


def test_a_coordinator_who_adds_a_reader_or_locks_is_seen_at_the_next_look(site: StoredSite) -> None:
    (reader,) = site.study(3, 1, n_slots=1)
    assert next_case(site, reader).n_cases == 3
    late = site.person("Late")
    site.studies.add_readers("demo", [late])
    assert next_case(site, late).n_cases == 2, "one is the other reader's"
    site.studies.lock_study("demo", reason="enough")
    assert site.review.queue("demo", late).n_mine == 1, "nothing new, once it is locked"
    site.studies.reopen_study("demo", reason="not enough")
    assert site.review.queue("demo", late).n_mine == 2


def test_a_form_sent_again_under_any_name_is_saved_once(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    save(site, reader, case)
    again = site.review.submit_judgment(
        "no such study", reader, case.case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key
    )
    assert (again.already_saved, again.answer) == (True, Answer.RELEVANT)


def test_looking_at_a_held_case_waits_for_no_writer(site: StoredSite) -> None:
    reader = site.study(3, 3)[0]
    held = next_case(site, reader)
    with site.database.write() as uow, captured(site.database) as statements:
        assert next_case(site, reader).case_id == held.case_id
        uow.commit()
    assert not any("UPDATE" in statement or "pg_advisory" in statement for statement in statements)


def test_many_windows_of_one_reader_at_once_take_one_slot(site: StoredSite) -> None:
    first, second = site.study(3, 2, n_slots=2)
    case_id = next_case(site, second).case_id
    found = at_once(*[lambda: site.review.case("demo", first, case_id)] * 8)
    assert [case.case_id for case in found if isinstance(case, BlindedCase)] == [case_id] * 8, found
    with site.database.read() as uow:
        holders = [slot.reviewer_id for slot in uow.slots.of_case(1, case_id)]
    assert sorted(holder or 0 for holder in holders) == sorted([first, second])


def test_a_lapsed_place_is_either_saved_or_taken_never_both(site: StoredSite) -> None:
    first, second = site.study(12, 2, n_slots=1)
    kept, taken = 0, 0
    for _ in range(12):
        case = next_case(site, first)
        site.clock.pass_hours(30)
        saved, found = at_once(
            lambda case=case: save(site, first, case),  # type: ignore[misc]
            lambda case=case: site.review.case("demo", second, case.case_id),  # type: ignore[misc]
        )
        is_saved, is_taken = isinstance(saved, SavedJudgment), isinstance(found, BlindedCase)
        assert is_saved != is_taken, (saved, found)
        kept, taken = kept + is_saved, taken + is_taken
        if is_taken:
            save(site, second, site.review.case("demo", second, case.case_id))
    assert kept + taken == len(site.studies.votes("demo")) == 12
    assert {vote.reviewer_id for vote in site.studies.votes("demo")} <= {first, second}


def of_the_page(statements: list[str]) -> list[str]:
    """Leave out what begins a transaction of a server."""
    return [statement for statement in statements if "pg_advisory" not in statement and statement != "SELECT 1"]


def test_opening_and_saving_take_few_statements_however_far_a_study_is(site: StoredSite) -> None:
    readers = site.study(8, 3)
    for reader in readers * 3:
        with captured(site.database) as statements:
            case = next_case(site, reader)
        assert len(of_the_page(statements)) <= OPENING, statements
        with captured(site.database) as statements:
            again: BlindedCase = next_case(site, reader)
        assert len(of_the_page(statements)) <= REOPENING, statements
        assert again.case_id == case.case_id
        site.review.save_draft("demo", reader, case.case_id, DraftView(Answer.USUAL, None, "x"))
        with captured(site.database) as statements:
            save(site, reader, case)
        assert len(of_the_page(statements)) <= SAVING, statements
