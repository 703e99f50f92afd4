"""Slots of the review: exactly so many different readers for each case, holds that lapse, drafts that stay."""

import pytest

from alertreview.review.models import DraftView
from core.errors import NotFoundError, RefusedError
from core.vocabulary import Answer, SlotState
from tests.support.review_acts import at_once, next_case, save
from tests.support.stored_site import StoredSite


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
    with pytest.raises(RefusedError, match="no free slot"):
        site.review.case("demo", second, case.case_id)

    site.clock.pass_hours(25)
    taken = next_case(site, second)
    assert (taken.case_id, taken.draft) == (case.case_id, DraftView(None, None, ""))
    with pytest.raises(RefusedError, match="no longer hold a slot"):
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


def test_a_case_of_another_study_of_the_same_reader_is_no_case_of_this_one(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    site.study(2, 3, slug="other")
    site.studies.add_readers("other", [reader])
    other = site.review.next_case("other", reader)
    given = {"answer": Answer.USUAL, "version_seen": 0}
    site.review.submit_judgment("other", reader, other.case_id, **given, form_key="first")
    later = site.review.next_case("other", reader)
    for case in (other, later):
        for act in (
            lambda number: site.review.case("demo", reader, number),
            lambda number: site.review.save_draft("demo", reader, number, DraftView(Answer.USUAL, None, "")),
            lambda number: site.review.mark_later("demo", reader, number),
            lambda number: site.review.take_up("demo", reader, number),
            lambda number: site.review.feedback("demo", reader, number),
            lambda number: site.review.submit_judgment("demo", reader, number, **given, form_key=f"k{number}"),
        ):
            with pytest.raises(NotFoundError, match=f"Study 'demo' has no case {case.case_id}"):
                act(case.case_id)
    assert site.review.case("other", reader, later.case_id).draft == DraftView(None, None, "")


def test_what_a_link_names_and_is_not_there_is_missing(site: StoredSite) -> None:
    reader = site.study(2, 3)[0]
    for act in (
        lambda: site.studies.view("other"),
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
