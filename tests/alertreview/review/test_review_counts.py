"""Counts of the review add up whatever readers do, and every saved judgment has one audit row."""

import json
from datetime import UTC

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alertreview.review.models import DraftView
from core.errors import RefusedError
from core.vocabulary import Answer, CaseState, SlotState
from tests.support.review_acts import next_case, save
from tests.support.stored_site import StoredSite

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
        view, progress = site.studies.view(slug), site.studies.progress(slug)
        votes = site.studies.votes(slug)
        assert sum(view.case_states.values()) == view.n_cases == progress.n_cases == 4
        assert view.n_complete == 4 - view.case_states[CaseState.OPEN] == progress.n_complete
        assert sum(progress.slot_states.values()) == progress.n_slots == 8
        n_judged = progress.slot_states[SlotState.SUBMITTED] + progress.slot_states[SlotState.CANNOT_JUDGE]
        queues = [site.review.queue(slug, reader) for reader in readers]
        assert n_judged == view.n_judged == len(votes) == sum(queue.n_submitted for queue in queues)
        for queue, counted in zip(queues, progress.readers, strict=True):
            assert sum(queue.states.values()) == queue.n_mine == queue.n_submitted + queue.n_left
            assert (counted.n_mine, counted.n_judged) == (queue.n_mine, queue.n_submitted)
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
    view = site.studies.view("empty")
    assert (view.n_cases, view.n_complete, sum(view.case_states.values())) == (0, 0, 0)
    assert [study.slug for study in site.studies.all()] == ["empty"]


def test_a_complete_case_with_empty_optional_answers_counts_once(site: StoredSite) -> None:
    readers = site.study(2, 3)
    with site.database.read() as uow:
        first = uow.cases.in_study(1)[0].id
    for reader in readers:
        save(site, reader, site.review.case("demo", reader, first))
    view = site.studies.view("demo")
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
    details = json.loads(events[1].details)
    assert list(details.pop("sealed")) == ["judgment 2"]
    assert details == {
        "after": {"answer": 1, "certainty": None, "version": 2},
        "before": {"answer": 3, "certainty": None, "version": 1},
        "reason": "slip",
    }
    assert not any("canary" in repr(event) for event in events)
    assert all(event.moment.tzinfo is UTC for event in events)
