"""Studies: frozen on opening, locked and reopened with a reason, and read out whole for reports."""

import json
from dataclasses import asdict
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from alertreview.review.models import BlindedCase
from alertreview.studies.models import ANSWER_TEXTS, QUESTION, Rubric, ScorerSays
from alertreview.studies.results import case_rows, repeats, votes
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from core.kinds import Kind
from core.vocabulary import Answer, CaseState, Decision, SlotState, StudyStatus
from tests.support.stored_site import EPOCH, StoredSite, new_instances, new_run, new_snapshot, new_tasks


def judge(site: StoredSite, reader: int, case_id: int, answer: Answer, slug: str = "demo") -> BlindedCase:
    case = site.review.case(slug, reader, case_id)
    site.review.submit_judgment(
        slug, reader, case_id, answer=answer, version_seen=0, form_key=case.form_key, reason="because"
    )
    return case


def case_ids(site: StoredSite, slug: str = "demo") -> list[int]:
    with site.database.read() as uow:
        return [case.id for case in uow.cases.in_study(uow.studies.by_slug(slug).id)]


def test_a_study_begins_as_a_draft_with_its_cases_and_design(site: StoredSite) -> None:
    run_id = site.publish([])
    view = site.studies.create_study(
        "demo",
        "Unusual orders",
        run_id,
        [site.case(0), site.case(1, 1)],
        order_seed=7,
        rubric=Rubric(guidelines="Judge what was known at 08:00."),
        selection_design={"strata": {"high": 10}},
    )
    assert (view.status, view.n_cases, view.n_slots, view.simulated) == (StudyStatus.DRAFT, 2, 3, True)
    assert (view.question, view.guidelines) == (QUESTION, "Judge what was known at 08:00.")
    assert view.answer_texts == ANSWER_TEXTS
    assert view == site.studies.view("demo")
    head = site.studies.head("demo")
    assert asdict(head).items() <= asdict(view).items(), "the same without the counts"
    with site.database.read() as uow:
        study = uow.studies.by_slug("demo")
        assert (study.selection_design, study.order_seed) == ({"strata": {"high": 10}}, 7)
        stored = uow.cases.in_study(study.id)[1]
        assert (stored.patient_id, stored.snapshot_at) == ("canary-0", EPOCH + timedelta(days=1))
        assert (stored.stratum, stored.stratum_size, stored.inclusion_probability) == ("high", 10, 0.5)


def test_cases_come_out_with_their_scores_and_site_time(site: StoredSite) -> None:
    site.study(2, 3)
    rows = site.studies.case_rows("demo")
    assert [row.case_number for row in rows] == [1, 2]
    assert rows[0].scores == {"softhad": ScorerSays(1.25, 0.875, -0.3, 0.6), "logistic": ScorerSays(0.5, 0.25)}
    assert rows[0].snapshot_at == EPOCH
    assert rows[0].snapshot_at.tzinfo == ZoneInfo("Europe/Berlin")
    assert (rows[0].task_name, rows[0].kind, rows[0].decision) == ("Troponin I", Kind.LAB_ORDER, Decision.OMISSION)
    assert {row.state for row in rows} == {CaseState.OPEN}


def test_three_votes_are_three_rows_with_reader_codes_and_no_names(site: StoredSite) -> None:
    readers = site.study(2, 3)
    first = case_ids(site)[0]
    for reader, answer in zip(readers, (Answer.RELEVANT, Answer.CANNOT_JUDGE, Answer.USUAL), strict=True):
        judge(site, reader, first, answer)
    votes = site.studies.votes("demo")
    assert [(vote.reader_code, vote.answer, vote.version, vote.rubric_version) for vote in votes] == [
        ("R1", Answer.RELEVANT, 1, 1),
        ("R2", Answer.CANNOT_JUDGE, 1, 1),
        ("R3", Answer.USUAL, 1, 1),
    ]
    assert not any("reader 0" in repr(vote) for vote in votes)
    assert votes[0].judged_at.tzinfo == ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ((3, 3, 1), CaseState.MAJORITY),
        ((1, 2, 1), CaseState.MAJORITY),
        ((3, 1, 0), CaseState.UNDETERMINED),
        ((0, 0, 0), CaseState.UNDETERMINED),
        ((3, 3), CaseState.OPEN),
        ((), CaseState.OPEN),
    ],
)
def test_a_case_stands_where_its_votes_put_it(site: StoredSite, answers: tuple[int, ...], state: CaseState) -> None:
    readers = site.study(1, 3)
    (case_id,) = case_ids(site)
    for reader, answer in zip(readers, answers, strict=False):
        judge(site, reader, case_id, Answer(answer))
    assert site.studies.view("demo").case_states[state] == 1
    assert site.studies.case_rows("demo")[0].state is state
    progress = site.studies.progress("demo")
    assert progress.n_complete == (state is not CaseState.OPEN)
    assert progress.slot_states[SlotState.FREE] == 3 - len(answers)


def test_votes_stay_with_patient_time_and_task_when_a_later_import_numbers_rows_anew(site: StoredSite) -> None:
    readers = site.study(2, 3)
    judge(site, readers[0], case_ids(site)[0], Answer.RELEVANT)
    before = (site.studies.votes("demo"), site.studies.case_rows("demo"))
    with site.database.write() as uow:
        uow.snapshots.add(new_snapshot("b" * 64), new_instances(3), new_tasks(2))
        uow.commit()
    site.publish([])
    assert (site.studies.votes("demo"), site.studies.case_rows("demo")) == before
    assert site.review.case("demo", readers[1], case_ids(site)[0]).patient.timeline.decision_name.endswith("a" * 64)


def test_opening_freezes_cases_and_rubric(site: StoredSite) -> None:
    run_id = site.publish([])
    site.studies.create_study("demo", "A study", run_id, [site.case(0)], n_slots=1)
    site.studies.add_readers("demo", [site.person("Reader")])
    site.studies.open_study("demo")
    with pytest.raises(RefusedError, match="frozen"):
        site.studies.open_study("demo")
    view = site.studies.view("demo")
    assert (view.n_cases, view.question) == (1, QUESTION)
    with site.database.read() as uow:
        assert uow.studies.rubric(view.study_id, 1).question == QUESTION
        with pytest.raises(NotFoundError, match="no rubric version 9"):
            uow.studies.rubric(view.study_id, 9)


def test_a_study_opens_only_with_cases_and_enough_readers(site: StoredSite) -> None:
    run_id = site.publish([])
    site.studies.create_study("empty", "Empty", run_id, [])
    with pytest.raises(RefusedError, match=r"has no case\. Choose cases"):
        site.studies.open_study("empty")
    site.studies.create_study("demo", "A study", run_id, [site.case(0)])
    site.studies.add_readers("demo", [site.person("One"), site.person("Two")])
    with pytest.raises(RefusedError, match=r"has 2 readers and wants 3"):
        site.studies.open_study("demo")


def test_nobody_judges_a_draft(site: StoredSite) -> None:
    run_id = site.publish([])
    site.studies.create_study("demo", "A study", run_id, [site.case(0)], n_slots=1)
    reader = site.person("Reader")
    site.studies.add_readers("demo", [reader])
    with pytest.raises(RefusedError, match="not open yet"):
        site.review.next_case("demo", reader)
    assert site.review.queue("demo", reader).n_mine == 0


def test_lock_and_reopening_follow_each_other_and_keep_the_reason(site: StoredSite) -> None:
    readers = site.study(1, 3)
    with pytest.raises(RefusedError, match="needs a reason"):
        site.studies.reopen_study("demo", reason=" ")
    with pytest.raises(RefusedError, match="is open; only a locked study"):
        site.studies.reopen_study("demo", reason="x")
    site.studies.lock_study("demo", actor="person 1", reason="done")
    with pytest.raises(RefusedError, match="is locked; only an open study"):
        site.studies.lock_study("demo")
    with pytest.raises(RefusedError, match="Reopen it before adding readers"):
        site.studies.add_readers("demo", readers)
    with site.database.read() as uow:
        locked = uow.studies.by_slug("demo")
    site.studies.reopen_study("demo", reason="one reader was ill")
    with site.database.read() as uow:
        study = uow.studies.by_slug("demo")
        events = uow.audit.latest(limit=2)
    assert locked.locked_at is not None
    assert (study.status, study.locked_at, study.opened_at) == (StudyStatus.OPEN, None, locked.opened_at)
    assert [event.action for event in events] == ["study reopened", "study locked"]
    details = json.loads(events[0].details)
    assert list(details.pop("sealed")) == ["study 1"]
    assert details == {"after": "open", "before": "locked", "reason": "one reader was ill"}
    assert events[1].actor == "person 1"


def test_pace_and_forecast_come_from_the_second_day_of_work_on(site: StoredSite) -> None:
    readers = site.study(4, 3)
    cases = case_ids(site)
    began = site.clock.now.astimezone(ZoneInfo("Europe/Berlin")).date()
    judge(site, readers[0], cases[0], Answer.USUAL)
    first, other, _ = site.studies.progress("demo").readers
    assert (first.n_judged, first.n_mine, first.per_day, first.days_to_go) == (1, 4, None, None)
    assert first.last_judged_at is not None
    assert first.last_judged_at.date() == began
    assert (other.n_judged, other.n_mine, other.last_judged_at, other.per_day) == (0, 4, None, None)
    site.clock.pass_hours(72)
    judge(site, readers[0], cases[1], Answer.USUAL)
    first, *_ = site.studies.progress("demo").readers
    assert (first.per_day, first.days_to_go) == (0.5, 4), "2 cases in 4 calendar days, 2 cases left"
    site.clock.pass_hours(24 * 4)
    first, *_ = site.studies.progress("demo").readers
    assert (first.per_day, first.days_to_go) == (0.25, 8), "who rests gets slower"
    assert first.last_judged_at is not None
    assert (first.last_judged_at.date() - began).days == 3


def test_answers_that_stand_are_counted_by_the_day_on_which_they_were_first_given(site: StoredSite) -> None:
    readers, cases = site.study(4, 3), case_ids(site)
    began = site.clock.now.astimezone(ZoneInfo("Europe/Berlin")).date()
    assert site.studies.progress("demo").judged_by == ()
    judge(site, readers[0], cases[0], Answer.USUAL)
    judge(site, readers[1], cases[0], Answer.USUAL)
    judge(site, readers[2], cases[0], Answer.CANNOT_JUDGE)
    progress = site.studies.progress("demo")
    assert (progress.judged_by, progress.done_on) == (((began, 3),), None)
    site.clock.pass_hours(48)
    judge(site, readers[0], cases[1], Answer.USUAL)
    site.review.submit_judgment(
        "demo", readers[0], cases[0], answer=Answer.RELEVANT, version_seen=1, form_key="again", reason="read again"
    )
    site.review.undo("demo", readers[1], cases[0], version_seen=1, form_key="undo")
    progress = site.studies.progress("demo")
    assert progress.judged_by == ((began, 2), (began + timedelta(days=2), 3)), "what was taken back stands no more"
    assert progress.done_on == began + timedelta(days=2 + 9), "3 answers in 3 days, 9 of 12 left"
    states = progress.slot_states
    assert progress.judged_by[-1][1] == states[SlotState.SUBMITTED] + states[SlotState.CANNOT_JUDGE]


def test_the_time_of_a_case_is_that_of_the_first_answer_that_still_counts(site: StoredSite) -> None:
    (reader, other), cases = site.study(4, 2, n_slots=2), case_ids(site)
    assert [one.seconds for one in site.studies.progress("demo").readers] == [(), ()]
    for case_id, seconds in zip(cases, (30.0, 90.5, None, 12.0), strict=True):
        case = site.review.case("demo", reader, case_id)
        site.review.submit_judgment(
            "demo", reader, case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key, active_seconds=seconds
        )
    site.review.submit_judgment(
        "demo", reader, cases[0], answer=Answer.RELEVANT, version_seen=1, form_key="2", reason="x", active_seconds=500.0
    )
    site.review.undo("demo", reader, cases[3], version_seen=1, form_key="undo")
    first, second = site.studies.progress("demo").readers
    assert (sorted(first.seconds), second.seconds) == ([30.0, 90.5], ())
    assert other == second.person_id


def test_readers_are_added_once_and_keep_their_codes(site: StoredSite) -> None:
    readers = site.study(1, 3)
    late = site.person("Late")
    site.studies.add_readers("demo", [readers[1], late, late])
    progress = site.studies.progress("demo")
    assert [(reader.person_id, reader.reader_code) for reader in progress.readers] == [
        (readers[0], "R1"),
        (readers[1], "R2"),
        (readers[2], "R3"),
        (late, "R4"),
    ]
    with pytest.raises(NotFoundError, match="no person 99"):
        site.studies.add_readers("demo", [99])
    with site.database.write() as uow:
        gone = uow.people.change(late, role=uow.people.get(late).role, active=False)
        uow.commit()
    with pytest.raises(RefusedError, match=f"Person {gone.id} was deactivated"):
        site.studies.add_readers("demo", [gone.id])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slug": "No Spaces"}, "short name 'No Spaces' cannot be used"),
        ({"slug": "x" * 61}, "at most 60"),
        ({"slug": "-x"}, "cannot be used"),
        ({"title": " "}, "no title"),
        ({"n_slots": 0}, "wants 0 readers"),
        ({"rubric": Rubric(answer_texts={Answer.USUAL: "fine"})}, "Every answer code"),
    ],
)
def test_a_study_that_breaks_a_rule_is_refused_whole(site: StoredSite, changes: dict[str, object], words: str) -> None:
    fields: dict[str, object] = {"slug": "demo", "title": "A study", "run_id": site.publish([]), "cases": []}
    with pytest.raises(InvalidInputError, match=words):
        site.studies.create_study(**(fields | changes))  # type: ignore[arg-type]
    assert site.studies.all() == ()


def test_cases_that_break_a_rule_are_named_and_nothing_is_stored(site: StoredSite) -> None:
    run_id = site.publish([])
    for cases, words in (
        ([site.case(0), site.case(99)], "no instance in row 99"),
        ([site.case(0, task_key="LAB_ORDER/none")], "no task 'LAB_ORDER/none'"),
        ([site.case(0, inclusion_probability=0.0)], r"probability 0\.0"),
        ([site.case(0, inclusion_probability=1.5)], r"probability 1\.5"),
        ([site.case(0), site.case(0)], "chosen twice"),
        ([site.case(0, repeat_number=1)], "no first showing"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            site.studies.create_study("demo", "A study", run_id, cases)
    assert site.studies.all() == ()


def test_a_short_name_is_taken_once(site: StoredSite) -> None:
    site.studies.create_study("demo", "A study", site.publish([]), [])
    with pytest.raises(ConflictError, match="study 'demo' already"):
        site.studies.create_study("demo", "Another", 1, [])


def test_a_study_needs_a_published_run(site: StoredSite) -> None:
    with site.database.write() as uow:
        run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
        uow.commit()
    with pytest.raises(RefusedError, match="is running; a study needs a published run"):
        site.studies.create_study("demo", "A study", run_id, [])
    with pytest.raises(NotFoundError, match="no scoring run 99"):
        site.studies.create_study("demo", "A study", 99, [])


def test_what_a_study_stands_on_cannot_be_deleted(site: StoredSite) -> None:
    readers = site.study(1, 3)
    judge(site, readers[0], case_ids(site)[0], Answer.USUAL)
    for table in ("study_case", "study", "scoring_run", "instance", "task", "cohort_snapshot"):
        with pytest.raises(ConflictError), site.database.write() as uow:
            uow._connection.execute(sa.text(f"DELETE FROM {table}"))


def test_every_act_on_a_study_leaves_one_audit_row(site: StoredSite) -> None:
    site.study(2, 3)
    site.studies.lock_study("demo")
    site.studies.reopen_study("demo", reason="r")
    with site.database.read() as uow:
        events = list(reversed(uow.audit.latest()))
        uow.audit.require_whole()
    assert [(event.action, event.object) for event in events if event.actor != "program"] == [
        ("study created", "study demo"),
        ("readers added", "study demo"),
        ("study opened", "study demo"),
        ("study locked", "study demo"),
        ("study reopened", "study demo"),
    ]
    assert "canary" not in repr(events)


# Hidden repeats and calibration


def test_a_hidden_repeat_goes_to_its_own_readers_and_is_no_vote(site: StoredSite) -> None:
    run_id = site.publish([])
    chosen = [*(site.case(row) for row in range(5)), site.case(2, repeat_number=1)]
    site.studies.create_study("demo", "A study", run_id, chosen, n_slots=2)
    readers = [site.person(f"Reader {i}") for i in range(2)]
    site.studies.add_readers("demo", readers)
    site.studies.open_study("demo")
    original, repeat = case_ids(site)[2], case_ids(site)[5]
    with pytest.raises(RefusedError, match="no free slot"):
        site.review.case("demo", readers[0], repeat)
    for reader in readers:
        order: list[int] = []
        while (case := site.review.next_case("demo", reader)) is not None:
            assert case.n_cases == 6
            order.append(case.case_id)
            answer = Answer.USUAL if case.case_id == repeat else Answer.RELEVANT
            judge(site, reader, case.case_id, answer)
        assert order.index(original) < order.index(repeat)
    assert site.studies.view("demo").n_cases == 5
    assert len(site.studies.votes("demo")) == 10
    assert len(site.studies.case_rows("demo")) == 5
    assert site.studies.progress("demo").n_slots == 10
    with site.database.read() as uow:
        pairs = repeats(uow, "demo")
    assert [(one.case_id, one.answer, two.case_id, two.answer) for one, two in pairs] == [
        (original, Answer.RELEVANT, repeat, Answer.USUAL)
    ] * 2
    assert all(one.reviewer_id == two.reviewer_id for one, two in pairs)


def test_calibration_gives_feedback_after_the_own_judgment_and_never_enters_a_report(site: StoredSite) -> None:
    run_id = site.publish([])
    chosen = [site.case(0, reference=(Answer.RELEVANT, "Chest pain: troponin belongs here.")), site.case(1)]
    site.studies.create_study("train", "Training", run_id, chosen, n_slots=1, is_calibration=True)
    reader = site.person("Reader")
    site.studies.add_readers("train", [reader])
    site.studies.open_study("train")
    first, second = case_ids(site, "train")
    with pytest.raises(RefusedError, match="first your own judgment"):
        site.review.feedback("train", reader, first)
    judge(site, reader, first, Answer.USUAL, "train")
    judge(site, reader, second, Answer.USUAL, "train")
    assert site.review.feedback("train", reader, first) == (Answer.RELEVANT, "Chest pain: troponin belongs here.")
    assert site.review.feedback("train", reader, second) is None
    with site.database.read() as uow:
        for read in (votes, case_rows, repeats):
            with pytest.raises(RefusedError, match="never enter a report"):
                read(uow, "train")
    assert site.studies.progress("train").n_complete == 2


def test_a_study_that_counts_gives_no_feedback(site: StoredSite) -> None:
    readers = site.study(1, 3)
    judge(site, readers[0], case_ids(site)[0], Answer.USUAL)
    with pytest.raises(RefusedError, match="not a calibration study"):
        site.review.feedback("demo", readers[0], case_ids(site)[0])
