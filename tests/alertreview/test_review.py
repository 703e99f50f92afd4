"""The review as a reader meets it: what is said to be saved is saved, once, and nothing gives others' answers away."""

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alertreview.read_models import BlindedCase, DraftView, SavedJudgment
from core.errors import (
    AlertReviewError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StoreError,
)
from core.vocabulary import Answer, CaseState, Certainty, Decision, SlotState
from db.session import Database
from tests.stored_site import StoredSite, child, killed_after


def save(
    site: StoredSite, reader: int, case: BlindedCase, answer: Answer = Answer.RELEVANT, **more: object
) -> SavedJudgment:
    given_fields: dict[str, object] = {"version_seen": case.version_seen, "form_key": case.form_key, "answer": answer}
    return site.review.submit_judgment("demo", reader, case.case_id, **(given_fields | more))  # type: ignore[arg-type]


def url(site: StoredSite) -> str:
    return site.database.engine.url.render_as_string(hide_password=False)


def next_case(site: StoredSite, reader: int, after: int | None = None) -> BlindedCase:
    case = site.review.next_case("demo", reader, after)
    assert case is not None
    return case


def rows(site: StoredSite, table: str) -> int:
    with site.database.engine.connect() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


@contextmanager
def captured(database: Database) -> Iterator[list[str]]:
    statements: list[str] = []

    def capture(_c: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", capture)
    yield statements
    sa.event.remove(database.engine, "before_cursor_execute", capture)


def at_once(*acts: Callable[[], object]) -> list[object]:
    """Run acts in threads that start together; give what each returned or raised."""
    barrier = threading.Barrier(len(acts))
    results: list[object] = [None] * len(acts)

    def run(at: int) -> None:
        barrier.wait()
        try:
            results[at] = acts[at]()
        except AlertReviewError as error:
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


# Saving


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
    assert rows(site, "judgment") == rows(site, "audit_event") - 3 == 1


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
    assert f"the stored answer is {int(saved.answer)}" in str(conflict)
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
    assert rows(site, "audit_event") == 3 + 6


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
    with pytest.raises(RefusedError, match="hold no place in case"):
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
            uow._session.execute(sa.text(statement))
    assert [judgment.answer for judgment in site.review.my_judgments(reader)] == [Answer.RELEVANT]


def test_a_comment_has_a_length_that_a_person_can_read(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    with pytest.raises(InvalidInputError, match="20001 characters"):
        save(site, reader, case, comment="x" * 20_001)
    with pytest.raises(InvalidInputError, match="code 0"):
        save(site, reader, case, comment="a\0b")
    with pytest.raises(InvalidInputError, match="20001 characters"):
        site.review.save_draft("demo", reader, case.case_id, DraftView(None, None, "x" * 20_001))


@pytest.mark.checklist("C4")
def test_a_killed_process_loses_nothing_that_it_had_acknowledged(site: StoredSite) -> None:
    site.study(40, 3)
    acknowledged = killed_after(child("judge", url(site)), 15)
    with site.database.read() as uow:
        votes = uow.judgments.votes(1)
        chain = uow.audit.require_whole()
    stored = {vote.case_id for vote in votes}
    assert {int(case_id) for case_id in acknowledged} <= stored
    assert len(votes) - len(acknowledged) in {0, 1}, "at most the one whose acknowledgement was cut off"
    assert chain.n_events == 3 + len(votes)
    assert site.review.study("demo").n_cases == 40
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
    with pytest.raises(NotFoundError, match="no case 999"):
        site.review.mark_later("demo", reader, 999)


def test_putting_off_a_case_of_others_is_refused(site: StoredSite) -> None:
    readers = site.study(1, 4)
    case_ids = [next_case(site, reader).case_id for reader in readers[:3]]
    with pytest.raises(RefusedError, match="hold no place"):
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


# Slots


def test_six_readers_at_once_give_each_case_exactly_three_different_readers(site: StoredSite) -> None:
    readers = site.study(40, 6)

    def read_all(reader: int) -> int:
        n_read, case = 0, site.review.next_case("demo", reader)
        while case is not None:
            save(site, reader, case)
            n_read += 1
            case = site.review.next_case("demo", reader, case.case_id)
        return n_read

    results = at_once(*[lambda reader=reader: read_all(reader) for reader in readers])  # type: ignore[misc]
    errors = [result for result in results if not isinstance(result, int)]
    assert errors == []
    assert sum(result for result in results if isinstance(result, int)) == 120
    by_case: dict[int, list[int]] = {}
    for vote in site.studies.votes("demo"):
        by_case.setdefault(vote.case_id, []).append(vote.reviewer_id)
    assert len(by_case) == 40
    assert all(len(voters) == len(set(voters)) == 3 for voters in by_case.values())


def test_after_one_reader_a_case_is_still_in_the_others_queues(site: StoredSite) -> None:
    first, second, third = site.study(5, 3)
    for _ in range(5):
        save(site, first, next_case(site, first))
    assert site.review.next_case("demo", first) is None
    for reader in (second, third):
        queue = site.review.queue("demo", reader)
        assert (queue.n_mine, queue.n_left, queue.states[SlotState.FREE]) == (5, 5, 5)


def test_a_hold_lapses_and_the_draft_stays_with_its_owner(site: StoredSite) -> None:
    first, second = site.study(1, 2, n_slots=1)
    case = next_case(site, first)
    site.review.save_draft("demo", first, case.case_id, DraftView(Answer.RELEVANT, None, "mine"))
    waiting = site.review.queue("demo", second)
    assert (waiting.n_mine, waiting.n_held_by_others) == (0, 1)
    assert waiting.next_release_at is not None
    assert site.review.next_case("demo", second) is None
    with pytest.raises(RefusedError, match="no free place"):
        site.review.case("demo", second, case.case_id)

    site.clock.pass_hours(25)
    taken = next_case(site, second)
    assert (taken.case_id, taken.draft) == (case.case_id, DraftView(None, None, ""))
    with pytest.raises(RefusedError, match="hold no place"):
        save(site, first, case)
    with pytest.raises(RefusedError, match="What you typed is kept"):
        site.review.save_draft("demo", first, case.case_id, DraftView(Answer.USUAL, None, "still mine"))
    with site.database.read() as uow:
        draft = uow.drafts.get(case.case_id, first)
    assert draft is not None
    assert draft.comment == "still mine"


def test_a_lapsed_hold_that_nobody_took_is_as_good_as_before(site: StoredSite) -> None:
    first, _ = site.study(1, 2, n_slots=1)
    case = next_case(site, first)
    site.clock.pass_hours(100)
    assert save(site, first, case).version == 1


def test_a_judged_case_never_becomes_free(site: StoredSite) -> None:
    first, second = site.study(1, 2, n_slots=1)
    save(site, first, next_case(site, first))
    site.clock.pass_hours(10_000)
    assert site.review.next_case("demo", second) is None
    queue = site.review.queue("demo", second)
    assert (queue.n_mine, queue.n_held_by_others, queue.next_release_at) == (0, 0, None)


def test_working_on_a_case_holds_it_longer(site: StoredSite) -> None:
    first, second = site.study(1, 2, n_slots=1)
    case = next_case(site, first)
    for _ in range(3):
        site.clock.pass_hours(20)
        site.review.save_draft("demo", first, case.case_id, DraftView(None, None, "thinking"))
        assert site.review.next_case("demo", second) is None
    site.clock.pass_hours(23.5)
    assert site.review.next_case("demo", first) is not None
    site.clock.pass_hours(20)
    assert site.review.next_case("demo", second) is None


def test_a_reader_who_is_none_reads_whom_to_ask(site: StoredSite) -> None:
    site.study(2, 3)
    stranger = site.person("Stranger")
    assert not site.review.queue("demo", stranger).is_reader
    for act in (
        lambda: site.review.next_case("demo", stranger),
        lambda: site.review.case("demo", stranger, 1),
        lambda: site.review.save_draft("demo", stranger, 1, DraftView(None, None, "")),
    ):
        with pytest.raises(RefusedError, match=r"Nothing is assigned to you .* Ask its coordinator"):
            act()


def test_a_deactivated_reader_keeps_the_votes_and_gives_no_more(site: StoredSite) -> None:
    reader = site.study(3, 3)[0]
    save(site, reader, next_case(site, reader))
    with site.database.write() as uow:
        uow.people.change(reader, role=uow.people.get(reader).role, active=False)
        uow.commit()
    with pytest.raises(RefusedError, match="Nothing is assigned"):
        site.review.next_case("demo", reader)
    assert len(site.studies.votes("demo")) == 1


def test_what_a_link_names_and_is_not_there_is_missing(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    for act in (
        lambda: site.review.study("other"),
        lambda: site.review.queue("other", reader),
        lambda: site.review.my_judgments(reader, "other"),
    ):
        with pytest.raises(NotFoundError, match="no study 'other'"):
            act()
    with pytest.raises(NotFoundError, match="no case 999"):
        site.review.case("demo", reader, 999)
    with pytest.raises(NotFoundError, match="no case 999"):
        save(site, reader, next_case(site, reader), form_key="x") and site.review.submit_judgment(
            "demo", reader, 999, answer=Answer.USUAL, version_seen=0, form_key="y"
        )


# Blinding


def test_a_blinded_case_has_no_field_that_could_unblind() -> None:
    names = {field.name for field in fields(BlindedCase)}
    assert not any(re.search("score|rank|stratum|support|soft|peer|vote|scorer|alert", name) for name in names)


def test_the_review_reads_no_score_no_stratum_and_no_other_reader(site: StoredSite) -> None:
    first, second, _ = site.study(3, 3)
    other = next_case(site, first)
    save(site, first, other, Answer.RELEVANT, comment="canary-comment")
    with captured(site.database) as statements:
        site.review.queue("demo", second)
        case = site.review.case("demo", second, other.case_id)
        site.review.save_draft("demo", second, case.case_id, DraftView(Answer.USUAL, None, ""))
        site.review.next_case("demo", second, case.case_id)
        site.review.my_judgments(second)
    text = "\n".join(statements)
    assert "FROM study_case" in text
    for word in ("case_score", "stratum", "inclusion_probability", "alert", "task_result", "adjudication", "reference"):
        assert word not in text, word
    for statement in statements:
        if "FROM judgment" in statement or "JOIN judgment" in statement:
            assert "judgment" in statement
            assert re.search(r"reviewer_id = ", statement), "only a reader's own judgments are read"
    assert "canary-comment" not in repr(case)
    assert case.draft == DraftView(None, None, "")


def test_a_case_shows_its_own_patient_of_its_own_import(site: StoredSite) -> None:
    reader = site.study(6, 3)[0]
    for _ in range(6):
        case = next_case(site, reader)
        with site.database.read() as uow:
            row = next(row for row in uow.cases.in_study(1) if row.id == case.case_id)
        assert case.timeline.decision_name == f"{row.task_key} of row {row.row_index} in {'a' * 64}"
        assert case.last_values[0].hours_old == row.row_index
        assert case.task_name == row.task_name
        save(site, reader, case)


@pytest.mark.parametrize(
    ("task", "decision", "words"),
    [
        (0, Decision.OMISSION, "Troponin I was not ordered"),
        (0, Decision.COMMISSION, "Troponin I was ordered"),
        (1, Decision.OMISSION, "Heparin was not given"),
        (1, Decision.COMMISSION, "Heparin was given"),
    ],
)
def test_the_decision_is_said_in_words(site: StoredSite, task: int, decision: Decision, words: str) -> None:
    run_id = site.publish([])
    site.studies.create_study("demo", "A study", run_id, [site.case(0, task, decision=decision)], n_slots=1)
    reader = site.person("Reader")
    site.studies.add_readers("demo", [reader])
    site.studies.open_study("demo")
    assert next_case(site, reader).decision_words == words


def test_labels_and_positions_are_the_readers_own(site: StoredSite) -> None:
    first, second, _ = site.study(9, 3)
    labels = []
    for reader, letter in ((first, "A"), (second, "B")):
        seen, case = [], site.review.next_case("demo", reader)
        while case is not None:
            seen.append((case.case_label, case.position, case.n_cases))
            save(site, reader, case)
            case = site.review.next_case("demo", reader, case.case_id)
        assert seen == [(f"{letter}{i}", i, 9) for i in range(1, 10)]
        labels.append([judgment.case_id for judgment in site.review.my_judgments(reader)])
    assert labels[0] != labels[1]


def test_an_alert_hides_its_score_from_a_reader_who_has_still_to_judge_it(site: StoredSite) -> None:
    run_id = site.publish([site.alert(0, 0, 1, Decision.OMISSION)])
    site.studies.create_study("demo", "A study", run_id, [site.case(0, 0), site.case(1, 0)], n_slots=1)
    early, late, stranger = site.person("Early"), site.person("Late"), site.person("Stranger")
    assert site.review.may_see_score(early, 1), "the study is not open"
    site.review.note_score_seen(early, 1)
    site.review.note_score_seen(early, 1)
    site.studies.add_readers("demo", [early, late])
    site.studies.open_study("demo")
    assert not site.review.may_see_score(early, 1)
    assert not site.review.may_see_score(late, 1)
    assert site.review.may_see_score(stranger, 1)
    for _ in range(2):
        save(site, early, next_case(site, early))
    assert site.review.may_see_score(early, 1)
    marks = {vote.case_number: vote.saw_score_before for vote in site.studies.votes("demo")}
    assert marks == {1: True, 2: False}


# Counts


ACTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["next", "draft", "later", "save", "cannot", "undo", "change", "wait", "back"]),
    ),
    max_size=12,
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=ACTS)
def test_counts_add_up_whatever_readers_do(site: StoredSite, acts: list[tuple[int, str]]) -> None:
    slug = f"s{site.clock.now.timestamp():.0f}-{next(site.clock.looks)}"
    readers = site.study(4, 4, n_slots=2, slug=slug)
    for at, act in acts:
        _do(site, slug, readers[at], act)
        view, progress = site.review.study(slug), site.studies.progress(slug)
        votes = site.studies.votes(slug)
        assert sum(view.case_states.values()) == view.n_cases == progress.n_cases == 4
        assert view.n_complete == 4 - view.case_states[CaseState.OPEN] == progress.n_complete
        assert sum(progress.slot_states.values()) == progress.n_slots == 8
        n_judged = progress.slot_states[SlotState.SUBMITTED] + progress.slot_states[SlotState.CANNOT_JUDGE]
        queues = [site.review.queue(slug, reader) for reader in readers]
        assert n_judged == len(votes) == sum(queue.n_submitted for queue in queues)
        for queue, counted in zip(queues, progress.readers, strict=True):
            assert sum(queue.states.values()) == queue.n_mine == queue.n_submitted + queue.n_left
            assert {s: n for s, n in queue.states.items() if s is not SlotState.FREE} == {
                s: n for s, n in counted.states.items() if s is not SlotState.FREE
            }


def _do(site: StoredSite, slug: str, reader: int, act: str) -> None:
    if act == "wait":
        site.clock.pass_hours(30)
        return
    try:
        case = site.review.next_case(slug, reader, backwards=act in {"undo", "change", "back"})
        if case is None:
            return
        answer = {"cannot": Answer.CANNOT_JUDGE}.get(act, Answer.USUAL)
        if act == "draft":
            site.review.save_draft(slug, reader, case.case_id, DraftView(answer, None, "x"))
        elif act == "later":
            site.review.mark_later(slug, reader, case.case_id)
        elif act == "undo":
            site.review.undo(slug, reader, case.case_id, version_seen=case.version_seen, form_key=case.form_key)
        elif act in {"save", "cannot", "change"}:
            site.review.submit_judgment(
                slug,
                reader,
                case.case_id,
                answer=answer,
                version_seen=case.version_seen,
                form_key=case.form_key,
                reason="because",
            )
    except RefusedError:
        return


def test_a_study_without_cases_says_none_of_none(site: StoredSite) -> None:
    site.studies.create_study("empty", "Empty", site.publish([]), [])
    view = site.review.study("empty")
    assert (view.n_cases, view.n_complete, sum(view.case_states.values())) == (0, 0, 0)
    assert [study.slug for study in site.review.studies()] == ["empty"]


def test_a_complete_case_with_empty_optional_answers_counts_once(site: StoredSite) -> None:
    readers = site.study(2, 3)
    with site.database.read() as uow:
        first = uow.cases.in_study(1)[0].id
    for reader in readers:
        save(site, reader, site.review.case("demo", reader, first))
    view = site.review.study("demo")
    assert (view.n_complete, view.case_states[CaseState.MAJORITY]) == (1, 1)


def test_a_locked_study_takes_nothing_and_shows_what_there_is(site: StoredSite) -> None:
    reader = site.study(3, 3)[0]
    case = next_case(site, reader)
    save(site, reader, case)
    open_one = next_case(site, reader)
    site.studies.lock_study("demo", reason="enough")
    for act in (
        lambda: save(site, reader, open_one),
        lambda: site.review.next_case("demo", reader),
        lambda: site.review.save_draft("demo", reader, open_one.case_id, DraftView(None, None, "")),
        lambda: site.review.mark_later("demo", reader, open_one.case_id),
        lambda: site.review.undo("demo", reader, case.case_id, version_seen=1, form_key="u"),
    ):
        with pytest.raises(RefusedError, match="is locked"):
            act()
    assert site.review.case("demo", reader, case.case_id).draft.answer is Answer.RELEVANT
    queue = site.review.queue("demo", reader)
    assert (queue.n_mine, queue.n_submitted) == (2, 1)
    site.studies.reopen_study("demo", reason="one reader was ill")
    assert save(site, reader, open_one).version == 1


# Audit


@pytest.mark.checklist("A1")
def test_every_saved_or_withdrawn_judgment_has_one_audit_row_and_no_comment_in_it(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    case = next_case(site, reader)
    save(site, reader, case, Answer.RELEVANT, comment="canary")
    save(site, reader, site.review.case("demo", reader, case.case_id), Answer.USUAL, reason="slip", comment="canary")
    site.review.undo("demo", reader, case.case_id, version_seen=2, form_key="undo")
    with site.database.read() as uow:
        events = [event for event in reversed(uow.audit.latest()) if event.object.startswith("case")]
        uow.audit.require_whole()
    assert [event.action for event in events] == ["judgment saved", "judgment saved", "judgment taken back"]
    assert {event.actor for event in events} == {f"person {reader}"}
    assert events[1].details == (
        '{"after":{"answer":1,"certainty":null,"version":2},"before":{"answer":3,"certainty":null,"version":1},'
        '"reason":"slip"}'
    )
    assert not any("canary" in repr(event) for event in events)
    assert all(event.at.tzinfo is UTC for event in events)
