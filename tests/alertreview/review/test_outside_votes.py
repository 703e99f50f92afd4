"""Votes that were given elsewhere enter a study together or not at all, by the same rules as on the page."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from alertreview.application import Application, open_application
from alertreview.review.judging import OutsideVote, record_votes
from core.errors import RefusedError
from core.vocabulary import Answer

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def own(own_home: Path) -> Application:
    return open_application(own_home)


def open_cases(own: Application) -> list[int]:
    """Cases that have a slot left."""
    with own.database.read() as uow:
        slots = uow.slots.of_study(uow.studies.by_slug("demo").id)
    return sorted({slot.case_id for slot in slots if slot.reviewer_id is None})


def visitor(own: Application) -> int:
    return next(person.person_id for person in own.site.people() if not person.simulated)


def test_votes_are_recorded_once(own: Application) -> None:
    votes = [OutsideVote(visitor(own), case, Answer.USUAL) for case in open_cases(own)]
    assert record_votes(own.database, NOW, "demo", votes) == len(votes) == 6
    assert record_votes(own.database, NOW, "demo", votes) == 0
    assert own.studies.view("demo").n_complete == own.studies.view("demo").n_cases
    assert {row.answer for row in own.review.my_judgments(visitor(own))} == {Answer.USUAL}


def test_one_case_without_a_slot_and_no_vote_is_kept(own: Application) -> None:
    free = open_cases(own)
    full = next(case.case_id for case in own.studies.case_rows("demo") if case.case_id not in free)
    votes = [OutsideVote(visitor(own), case, Answer.USUAL) for case in (*free, full)]
    with pytest.raises(RefusedError, match=f"Case {full} of study 'demo' has no slot left"):
        record_votes(own.database, NOW, "demo", votes)
    assert own.review.my_judgments(visitor(own)) == ()


def test_somebody_who_is_no_reader_votes_nowhere(own: Application) -> None:
    from core.vocabulary import Role

    with own.database.write() as uow:
        stranger = uow.people.add("Stranger", Role.REVIEWER, created_at=NOW)
        uow.commit()
    with pytest.raises(RefusedError):
        record_votes(own.database, NOW, "demo", [OutsideVote(stranger.id, open_cases(own)[0], Answer.USUAL)])


def test_a_case_that_its_reader_has_begun_on_the_page_takes_the_vote_as_well(own: Application) -> None:
    begun = own.review.next_case("demo", visitor(own))
    assert begun is not None
    assert record_votes(own.database, NOW, "demo", [OutsideVote(visitor(own), begun.case_id, Answer.RELEVANT)]) == 1
    assert [row.answer for row in own.review.my_judgments(visitor(own))] == [Answer.RELEVANT]
