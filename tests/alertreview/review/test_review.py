"""The review as a reader meets it: what is said to be saved is saved, once; drafts stay, and undo takes back."""

import sqlite3
from collections import Counter
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from alertreview.review.judging import OutsideVote, record_votes
from alertreview.review.models import DraftView, SavedJudgment
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError, StoreError
from core.vocabulary import Answer, Certainty, SlotState
from db.database import Database
from tests.support.review_acts import at_once, next_case, rows, save, url, withdraw
from tests.support.stored_site import StoredSite, child, killed_after

# Saving


def acts(site: StoredSite) -> int:
    """Rows of the audit trail that somebody caused; the program adds some when it seals what was stored before."""
    with site.database.read() as uow:
        return sum(event["actor"] != "program" for event in uow.audit.all())


def test_a_judgment_is_kept_and_read_back_in_site_time(site: StoredSite) -> None:
    reader = site.study(4, 3)[0]
    case = next_case(site, reader)
    saved = save(site, reader, case, Answer.UNUSUAL, certainty=Certainty.CERTAIN, comment="Müller µmol/L")
    assert (saved.case_id, saved.version, saved.answer, saved.already_saved) == (case.case_id, 1, Answer.UNUSUAL, False)
    assert saved.saved_at.tzinfo == ZoneInfo("Europe/Berlin")
    assert saved.saved_at - site.clock.now < timedelta(seconds=1)
    (mine,) = site.review.my_judgments(reader)
    assert (mine.case_id, mine.answer, mine.certainty, mine.comment, mine.version) == (
        case.case_id,
        Answer.UNUSUAL,
        Certainty.CERTAIN,
        "Müller µmol/L",
        1,
    )
    assert (mine.case_label, mine.saved_at) == (case.case_label, saved.saved_at)


def test_a_new_session_reads_the_same_single_judgment(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    save(site, reader, next_case(site, reader))
    with Database(url(site)) as other:
        assert StoredSite.reopen(other).review.my_judgments(reader) == site.review.my_judgments(reader)
        assert rows(site, "judgment") == 1


def test_nothing_is_preselected_and_saving_without_a_choice_is_refused(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    assert case.draft == DraftView(None, None, "")
    with pytest.raises(RefusedError, match="No answer is chosen"):
        site.review.submit_judgment("demo", reader, case.case_id, answer=None, version_seen=0, form_key="k")
    assert rows(site, "judgment") == 0


def test_cannot_judge_needs_a_reason(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    with pytest.raises(RefusedError, match="needs a reason"):
        save(site, reader, case, Answer.CANNOT_JUDGE, reason="  ")
    save(site, reader, case, Answer.CANNOT_JUDGE, reason="No results in the record")
    assert site.review.queue("demo", reader).states[SlotState.CANNOT_JUDGE] == 1


@pytest.mark.checklist("A4")
@pytest.mark.parametrize("answer", Answer)
def test_every_answer_is_saved_and_counted_as_registered(site: StoredSite, answer: Answer) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    saved = save(site, reader, case, answer, reason="said" if answer.needs_reason else "")
    state = SlotState.SUBMITTED if answer.is_vote else SlotState.CANNOT_JUDGE
    assert (saved.answer, site.review.queue("demo", reader).states[state]) == (answer, 1)


@pytest.mark.parametrize("answer", Answer)
def test_an_answer_that_the_study_does_not_offer_is_refused(site: StoredSite, answer: Answer) -> None:
    reader = site.study(2, 3)[0]
    withdraw(site, answer)
    case = next_case(site, reader)
    refused = f"does not offer the answer '{answer.text}'.*Choose one of '(?!{answer.text})"
    with pytest.raises(RefusedError, match=refused):
        save(site, reader, case, answer, reason="r")
    with pytest.raises(RefusedError, match=refused):
        record_votes(site.database, site.clock(), "demo", [OutsideVote(reader, case.case_id, answer, reason="r")])
    assert rows(site, "judgment") == 0
    for other in set(Answer) - {answer}:
        case = site.review.case("demo", reader, case.case_id)
        save(site, reader, case, other, reason="r")
    assert rows(site, "judgment") == len(Answer) - 1


def test_a_change_stores_the_new_answer_and_keeps_the_old_as_history(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    save(site, reader, case, Answer.RELEVANT)
    again = site.review.case("demo", reader, case.case_id)
    assert (again.version_seen, again.draft.answer) == (1, Answer.RELEVANT)
    with pytest.raises(RefusedError, match="Say why it changes"):
        save(site, reader, again, Answer.USUAL)
    assert save(site, reader, again, Answer.USUAL, reason="Overlooked the dialysis").version == 2
    with site.database.read() as uow:
        history = uow.judgments.history(case.case_id, reader)
    assert [(version.version, version.answer) for version in history] == [(2, Answer.USUAL), (1, Answer.RELEVANT)]
    assert [judgment.answer for judgment in site.review.my_judgments(reader)] == [Answer.USUAL]


@pytest.mark.checklist("C2")
def test_the_same_form_is_saved_once_however_often_it_is_sent(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    first = save(site, reader, case)
    again = save(site, reader, case, Answer.USUAL)
    assert again.already_saved
    assert (again.version, again.answer, again.saved_at) == (first.version, first.answer, first.saved_at)
    assert rows(site, "judgment") == 1


@pytest.mark.checklist("C2")
def test_twenty_presses_at_once_are_one_judgment_and_no_error(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    results = at_once(*[lambda: save(site, reader, case)] * 20)
    assert all(isinstance(result, SavedJudgment) for result in results)
    assert Counter(result.already_saved for result in results if isinstance(result, SavedJudgment)) == {
        False: 1,
        True: 19,
    }
    assert rows(site, "judgment") == acts(site) - 3 == 1


@pytest.mark.checklist("C3")
def test_the_second_of_two_windows_hears_of_the_first_and_nothing_is_lost(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    first, second = (site.review.case("demo", reader, next_case(site, reader).case_id) for _ in range(2))
    assert first.form_key != second.form_key
    results = at_once(
        lambda: save(site, reader, first, Answer.RELEVANT), lambda: save(site, reader, second, Answer.USUAL)
    )
    (conflict,) = [result for result in results if isinstance(result, ConflictError)]
    (saved,) = [result for result in results if isinstance(result, SavedJudgment)]
    assert f"the stored answer is '{saved.answer.text}'" in str(conflict)
    assert "Nothing was overwritten" in str(conflict)
    assert rows(site, "judgment") == 1


def test_when_every_second_commit_fails_there_are_as_many_saved_marks_as_rows(site: StoredSite) -> None:
    reader = site.study(12, 3)[0]
    writes = iter(range(1_000))

    def break_every_second(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get("readonly") and judging and next(writes) % 2:
            raise sqlite3.OperationalError("database or disk is full")

    sa.event.listen(site.database.engine, "commit", break_every_second)
    judging, results = False, []
    for _ in range(12):
        case = next_case(site, reader)
        judging = True
        results += at_once(lambda case=case: save(site, reader, case, comment="kept"))  # type: ignore[misc]
        judging = False
        if isinstance(results[-1], StoreError):
            assert "disk of the database is full" in str(results[-1])
            assert site.review.case("demo", reader, case.case_id).version_seen == 0, "the failed case stays open"
    n_saved = sum(isinstance(result, SavedJudgment) for result in results)
    assert n_saved == rows(site, "judgment") == 6
    assert acts(site) == 3 + 6


@pytest.mark.checklist("C2")
def test_a_failed_save_may_be_sent_again(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)

    def lost_answer(connection: sa.Connection) -> None:
        connection.connection.driver_connection.execute("COMMIT")  # type: ignore[union-attr]
        raise sqlite3.OperationalError("disk I/O error")

    sa.event.listen(site.database.engine, "commit", lost_answer)
    with pytest.raises(StoreError, match="reported an error"):
        save(site, reader, case)
    sa.event.remove(site.database.engine, "commit", lost_answer)
    assert save(site, reader, case).already_saved, "it had been kept after all"
    assert rows(site, "judgment") == 1


def test_somebody_without_a_slot_is_refused_and_told(site: StoredSite) -> None:
    readers = site.study(1, 4)
    for reader in readers[:3]:
        save(site, reader, next_case(site, reader))
    with site.database.read() as uow:
        (case_id,) = [case.id for case in uow.cases.in_study(1)]
    with pytest.raises(RefusedError, match="no longer hold a slot in case"):
        site.review.submit_judgment("demo", readers[3], case_id, answer=Answer.USUAL, version_seen=0, form_key="forged")
    assert rows(site, "judgment") == 3


def test_a_form_belongs_to_one_reader_and_one_case(site: StoredSite) -> None:
    first, second, _ = site.study(3, 3)
    case = next_case(site, first)
    save(site, first, case)
    other = next_case(site, second)
    with pytest.raises(ConflictError, match="another case or reader"):
        save(site, second, other, form_key=case.form_key)
    with pytest.raises(InvalidInputError, match="form has no key"):
        save(site, second, other, form_key="")


@pytest.mark.checklist("A4")
def test_a_judgment_cannot_be_changed_or_deleted_behind_the_versions(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    save(site, reader, next_case(site, reader))
    for statement in ("UPDATE judgment SET answer = 1", "DELETE FROM judgment"):
        with pytest.raises(RefusedError, match="never changed"), site.database.write() as uow:
            uow._connection.execute(sa.text(statement))
    assert [judgment.answer for judgment in site.review.my_judgments(reader)] == [Answer.RELEVANT]


def test_a_comment_has_a_length_that_a_person_can_read(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    with pytest.raises(InvalidInputError, match="20001 characters"):
        save(site, reader, case, comment="x" * 20_001)
    with pytest.raises(InvalidInputError, match="null character"):
        save(site, reader, case, comment="a\0b")
    with pytest.raises(InvalidInputError, match="20001 characters"):
        site.review.save_draft("demo", reader, case.case_id, DraftView(None, None, "x" * 20_001))


@pytest.mark.checklist("C4")
def test_a_killed_process_loses_nothing_that_it_had_acknowledged(site: StoredSite) -> None:
    site.study(40, 3)
    acknowledged = killed_after(child("judge", url(site)), 15)
    with site.database.read() as uow:
        votes = uow.judgments.votes(1)
        uow.audit.require_whole()
    stored = {vote.case_id for vote in votes}
    assert {int(case_id) for case_id in acknowledged} <= stored
    assert len(votes) - len(acknowledged) in {0, 1}, "at most the one whose acknowledgement was cut off"
    assert acts(site) == 3 + len(votes)
    assert site.studies.view("demo").n_cases == 40
    if site.database.engine.dialect.name == "sqlite":
        with site.database.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


# Drafts, later, undo


def test_a_draft_survives_everything_but_saving(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    draft = DraftView(Answer.UNUSUAL, Certainty.UNCERTAIN, "half a thought")
    site.review.save_draft("demo", reader, case.case_id, DraftView(None, None, "half"))
    site.review.save_draft("demo", reader, case.case_id, draft)
    with Database(url(site)) as after_restart:
        shown = StoredSite.reopen(after_restart).review.next_case("demo", reader)
    assert shown is not None
    assert (shown.case_id, shown.draft) == (case.case_id, draft)
    assert site.review.queue("demo", reader).states[SlotState.DRAFT] == 1
    save(site, reader, shown)
    assert rows(site, "draft") == 0


def test_the_next_case_never_shows_the_former_cases_draft(site: StoredSite) -> None:
    reader = site.study(3, 3)[0]
    case = next_case(site, reader)
    site.review.save_draft("demo", reader, case.case_id, DraftView(Answer.USUAL, None, "about this one"))
    following = next_case(site, reader, case.case_id)
    assert following.case_id != case.case_id
    assert following.draft == DraftView(None, None, "")


def test_a_case_put_off_comes_last_and_is_counted(site: StoredSite) -> None:
    reader = site.study(4, 3)[0]
    case = next_case(site, reader)
    site.review.mark_later("demo", reader, case.case_id)
    assert site.review.queue("demo", reader).n_later == 1
    seen = []
    following = site.review.next_case("demo", reader, case.case_id)
    while following is not None:
        seen.append(following.case_id)
        save(site, reader, following)
        following = site.review.next_case("demo", reader, following.case_id)
    assert seen[-1] == case.case_id
    assert len(seen) == 4
    with pytest.raises(RefusedError, match="judged already"):
        site.review.mark_later("demo", reader, case.case_id)
    with pytest.raises(RefusedError, match="judged already"):
        site.review.take_up("demo", reader, case.case_id)
    with pytest.raises(NotFoundError, match="no case 999"):
        site.review.mark_later("demo", reader, 999)


def test_putting_off_a_case_of_others_is_refused(site: StoredSite) -> None:
    readers = site.study(1, 4)
    case_ids = [next_case(site, reader).case_id for reader in readers[:3]]
    with pytest.raises(RefusedError, match="no longer hold a slot"):
        site.review.mark_later("demo", readers[3], case_ids[0])


def test_undo_takes_the_answer_back_and_shows_it_again_as_a_choice(site: StoredSite) -> None:
    reader = site.study(3, 3)[0]
    case = next_case(site, reader)
    save(site, reader, case, Answer.RELEVANT, comment="hm")
    shown = site.review.undo("demo", reader, case.case_id, version_seen=1, form_key="undo-1")
    assert (shown.case_id, shown.version_seen) == (case.case_id, 2)
    assert shown.draft == DraftView(Answer.RELEVANT, None, "hm")
    queue = site.review.queue("demo", reader)
    assert (queue.n_submitted, queue.states[SlotState.DRAFT]) == (0, 1)
    assert site.review.my_judgments(reader) == ()
    again = site.review.undo("demo", reader, case.case_id, version_seen=1, form_key="undo-1")
    assert again.version_seen == 2, "the same press once more does nothing"
    with pytest.raises(RefusedError, match="no saved answer"):
        site.review.undo("demo", reader, case.case_id, version_seen=2, form_key="undo-2")
    assert save(site, reader, shown, Answer.USUAL).version == 3
    assert rows(site, "judgment") == 3


@pytest.mark.checklist("A4")
def test_undo_of_a_change_brings_the_former_answer_back(site: StoredSite) -> None:
    reader = site.study(3, 3)[0]
    case = next_case(site, reader)
    save(site, reader, case, Answer.RELEVANT)
    save(site, reader, site.review.case("demo", reader, case.case_id), Answer.USUAL, reason="slip")
    site.review.undo("demo", reader, case.case_id, version_seen=2, form_key="undo")
    (mine,) = site.review.my_judgments(reader)
    assert (mine.answer, mine.version) == (Answer.RELEVANT, 3)
    assert site.review.queue("demo", reader).n_submitted == 1


def test_backwards_leads_to_the_readers_own_cases(site: StoredSite) -> None:
    reader = site.study(4, 3)[0]
    first = next_case(site, reader)
    save(site, reader, first)
    second = next_case(site, reader, first.case_id)
    back = site.review.next_case("demo", reader, second.case_id, backwards=True)
    assert back is not None
    assert (back.case_id, back.draft.answer) == (first.case_id, Answer.RELEVANT)
    assert site.review.next_case("demo", reader, first.case_id, backwards=True) is None
