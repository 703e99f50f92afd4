"""A reader's places, packed by the database, against the same told from the plain tables."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from alertreview.review.models import DraftView
from core.errors import RefusedError
from core.vocabulary import Answer, SlotState
from db.database import Database
from db.models import Assignment, Draft, Judgment, ReaderSlot, StudyCase
from db.queries.json_rows import moment
from tests.support.stored_site import EPOCH, StoredSite


def error_lines(
    database: Database, study_id: int, reader: int, now: datetime
) -> tuple[list[ReaderSlot], dict[int, Any]]:
    """Return places and holds of others from whole tables, row by row."""
    with database.read() as uow:

        def table(model: Any) -> Sequence[sa.Row[Any]]:
            return uow._connection.execute(sa.select(model.__table__)).all()

        cases = [row for row in table(StudyCase) if row.study_id == study_id]
        slots, judgments, drafts = table(Assignment), table(Judgment), table(Draft)
    drafted = {(draft.case_id, draft.reviewer_id) for draft in drafts}
    places, lapses = [], {}
    for case in cases:
        of_case = [slot for slot in slots if slot.case_id == case.id]
        own = next((slot for slot in of_case if slot.reviewer_id == reader), None)
        versions = [j for j in judgments if (j.case_id, j.reviewer_id) == (case.id, reader)]
        answer = max(versions, key=lambda version: version.version).answer if versions else None
        if own is None:
            state = SlotState.FREE
        elif answer is not None:
            state = SlotState.CANNOT_JUDGE if answer is Answer.CANNOT_JUDGE else SlotState.SUBMITTED
        elif own.put_off_at is not None:
            state = SlotState.LATER
        else:
            state = SlotState.DRAFT if (case.id, reader) in drafted else SlotState.OPENED
        others = [slot for slot in of_case if slot is not own]
        held = [slot.held_until for slot in others if slot.held_until is not None and slot.held_until >= now]
        if held:
            lapses[case.id] = min(held)
        original = next(
            row.id
            for row in cases
            if (row.instance_id, row.task_id, row.repeat_number) == (case.instance_id, case.task_id, 0)
        )
        places.append(
            ReaderSlot(
                case_id=case.id,
                repeat_number=case.repeat_number,
                original_id=original if case.repeat_number else None,
                holds_slot=own is not None,
                state=state,
                held_until=None if own is None else own.held_until,
                has_room=any(
                    slot.reviewer_id is None or (slot.held_until is not None and slot.held_until < now)
                    for slot in others
                ),
            )
        )
    return places, lapses


def act(site: StoredSite, slug: str, reader: int, chance: random.Random) -> None:
    what = chance.choice(["open", "draft", "later", "save", "cannot", "undo", "wait"])
    if what == "wait":
        site.clock.pass_hours(chance.choice([1, 23.5, 30]))
        return
    try:
        case = site.review.next_case(slug, reader, backwards=what == "undo")
        if case is None or what == "open":
            return
        form: dict[str, Any] = {"version_seen": case.version_seen, "form_key": case.form_key}
        if what == "draft":
            site.review.save_draft(slug, reader, case.case_id, DraftView(Answer.USUAL, None, "x"))
        elif what == "later":
            site.review.mark_later(slug, reader, case.case_id)
        elif what == "undo":
            site.review.undo(slug, reader, case.case_id, **form)
        else:
            answer = Answer.CANNOT_JUDGE if what == "cannot" else Answer.UNUSUAL
            site.review.submit_judgment(slug, reader, case.case_id, answer=answer, reason="because", **form)
    except RefusedError:
        return


def test_slots_are_what_the_tables_say_whatever_readers_do(database: Database) -> None:
    site, chance = StoredSite(database), random.Random(20)
    site.study(4, 3, slug="other")
    chosen = [*(site.case(row) for row in range(4)), *(site.case(row, repeat_number=1) for row in range(2))]
    site.studies.create_study("demo", "A study", site.publish([]), chosen, n_slots=2)
    readers = [site.person(f"reader {number}") for number in range(3)]
    site.studies.add_readers("demo", readers)
    site.studies.add_readers("other", readers)
    site.studies.open_study("demo")
    with database.read() as uow:
        study_id = uow.studies.by_slug("demo").id
    met: set[Any] = set()
    for _ in range(90):
        act(site, chance.choice(["demo", "demo", "demo", "other"]), chance.choice(readers), chance)
        now = site.clock()
        reader = chance.choice(readers)
        places, lapses = error_lines(database, study_id, reader, now)
        with database.read() as uow:
            assert sorted(uow.slots.of_reader(study_id, reader, now)) == sorted(places)
            assert uow.slots.holds_of_others(study_id, reader, now) == lapses
        met |= {place.state for place in places} | {place.has_room for place in places} | {bool(lapses)}
    assert met == {*SlotState, True, False}, "all there is was met"


def test_a_study_without_cases_has_no_slots(database: Database) -> None:
    site = StoredSite(database)
    site.studies.create_study("empty", "Empty", site.publish([]), [])
    with database.read() as uow:
        study_id = uow.studies.by_slug("empty").id
        assert uow.slots.of_reader(study_id, site.person("reader"), EPOCH) == []
        assert uow.slots.holds_of_others(study_id, 1, EPOCH) == {}


@pytest.mark.parametrize(
    "text", ["2026-03-02 08:00:00.000250", "2026-03-02T08:00:00.00025+00:00", "2026-03-02T13:30:00.00025+05:30"]
)
def test_a_packed_moment_is_the_same_from_every_database_and_zone(text: str) -> None:
    found = moment(text)
    assert found == datetime(2026, 3, 2, 8, tzinfo=UTC) + timedelta(microseconds=250)
    assert found.tzinfo is UTC
    assert moment(None) is None
