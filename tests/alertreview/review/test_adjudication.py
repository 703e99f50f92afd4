"""Adjudication: by somebody who never read the case, over votes without names, kept apart from them."""

from collections import Counter

import pytest
import sqlalchemy as sa

from alertreview.review.adjudication import AdjudicationService
from alertreview.rights import MATRIX, Action
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from core.vocabulary import Answer, CaseState, Role
from tests.support.review_acts import withdraw
from tests.support.stored_site import Patients, StoredSite


@pytest.fixture
def settling(site: StoredSite) -> AdjudicationService:
    return AdjudicationService(site.database, Patients, site.clock)


@pytest.fixture
def disputed(site: StoredSite) -> list[int]:
    """A study of twelve cases: the first eleven 1, 3 and "cannot judge", the last decided."""
    readers = site.study(12, 3)
    with site.database.read() as uow:
        cases = [case.id for case in uow.cases.in_study(1)]
    for case_id in cases:
        answers = (Answer.USUAL, Answer.RELEVANT, Answer.CANNOT_JUDGE)
        for reader, answer in zip(readers, answers if case_id != cases[-1] else [Answer.RELEVANT] * 3, strict=True):
            case = site.review.case("demo", reader, case_id)
            site.review.submit_judgment(
                "demo", reader, case_id, answer=answer, version_seen=0, form_key=case.form_key, reason="r"
            )
    return cases


def test_what_votes_do_not_decide_waits_for_the_adjudicator(
    site: StoredSite, settling: AdjudicationService, disputed: list[int]
) -> None:
    judge = site.person("Judge", Role.ADJUDICATOR)
    assert settling.disagreements("demo", judge) == tuple(disputed[:-1])
    stored = settling.adjudicate(
        "demo", judge, disputed[0], answer=Answer.RELEVANT, comment="clear", version_seen=0, form_key="a", reason="r"
    )
    assert (stored.answer, stored.version, stored.comment) == (Answer.RELEVANT, 1, "clear")
    assert settling.disagreements("demo", judge) == tuple(disputed[1:-1])
    view = site.studies.view("demo")
    assert (view.case_states[CaseState.ADJUDICATED], view.case_states[CaseState.UNDETERMINED]) == (1, 10)
    row = site.studies.case_rows("demo")[0]
    assert (row.state, row.adjudicated) == (CaseState.ADJUDICATED, Answer.RELEVANT)
    assert len(site.studies.votes("demo")) == 36, "votes stay as they were"


def test_votes_are_letters_that_change_from_case_to_case(
    site: StoredSite, settling: AdjudicationService, disputed: list[int]
) -> None:
    judge = site.person("Judge", Role.ADJUDICATOR)
    shown = [settling.case("demo", judge, case_id) for case_id in disputed[:-1]]
    assert all([vote.letter for vote in case.votes] == ["A", "B", "C"] for case in shown)
    orders = Counter(tuple(vote.answer for vote in case.votes) for case in shown)
    assert len(orders) > 1
    assert shown[0].votes == settling.case("demo", judge, disputed[0]).votes
    assert "reader" not in repr(shown[0])
    assert shown[0].patient.timeline.decision_name.startswith("LAB_ORDER/0 of row 0")


def test_a_reader_of_the_case_never_adjudicates_it(
    site: StoredSite, settling: AdjudicationService, disputed: list[int]
) -> None:
    with site.database.write() as uow:
        reader = uow.people.by_name("demo reader 0")
        assert reader is not None
        uow.people.change(reader.id, role=Role.ADJUDICATOR, active=True)
        uow.commit()
    assert settling.disagreements("demo", reader.id) == ()
    with pytest.raises(RefusedError, match="You were a reader of case"):
        settling.adjudicate(
            "demo", reader.id, disputed[0], answer=Answer.USUAL, version_seen=0, form_key="a", reason="r"
        )


def test_what_is_open_or_decided_needs_no_adjudication(site: StoredSite, settling: AdjudicationService) -> None:
    site.study(1, 3)
    judge = site.person("Judge", Role.ADJUDICATOR)
    with pytest.raises(RefusedError, match="not all in"):
        settling.case("demo", judge, 1)
    with pytest.raises(NotFoundError, match="no case 99"):
        settling.case("demo", judge, 99)


def test_a_decided_case_is_refused(site: StoredSite, settling: AdjudicationService, disputed: list[int]) -> None:
    judge = site.person("Judge", Role.ADJUDICATOR)
    with pytest.raises(RefusedError, match="its votes decide"):
        settling.case("demo", judge, disputed[-1])


def test_an_adjudication_is_saved_once_and_changed_with_a_reason(
    site: StoredSite, settling: AdjudicationService, disputed: list[int]
) -> None:
    judge, other = site.person("Judge", Role.ADJUDICATOR), site.person("Other", Role.ADJUDICATOR)
    case_id = disputed[0]
    first = settling.adjudicate("demo", judge, case_id, answer=Answer.USUAL, version_seen=0, form_key="a", reason="r")
    again = settling.adjudicate(
        "demo", judge, case_id, answer=Answer.RELEVANT, version_seen=0, form_key="a", reason="r"
    )
    assert again == first
    with pytest.raises(ConflictError, match="adjudicated meanwhile"):
        settling.adjudicate("demo", other, case_id, answer=Answer.RELEVANT, version_seen=0, form_key="b", reason="r")
    with pytest.raises(ConflictError, match="another case or person"):
        settling.adjudicate("demo", other, case_id, answer=Answer.RELEVANT, version_seen=0, form_key="a", reason="r")
    with pytest.raises(RefusedError, match="needs a reason"):
        settling.adjudicate("demo", other, case_id, answer=Answer.RELEVANT, version_seen=1, form_key="c")
    changed = settling.adjudicate(
        "demo", other, case_id, answer=Answer.RELEVANT, version_seen=1, form_key="c", reason="new literature"
    )
    assert changed.version == 2
    assert settling.case("demo", judge, case_id).answer is Answer.RELEVANT
    with pytest.raises(RefusedError, match="never changed"), site.database.write() as uow:
        uow._connection.execute(sa.text("UPDATE adjudication SET answer = 0"))
    with site.database.read() as uow:
        actions = [event.action for event in uow.audit.latest(limit=2)]
        uow.audit.require_whole()
    assert actions == ["case adjudicated"] * 2


@pytest.mark.parametrize("role", [role for role in Role if Action.ADJUDICATE not in MATRIX[role]])
def test_other_roles_settle_nothing(site: StoredSite, settling: AdjudicationService, role: Role) -> None:
    site.study(1, 3)
    with pytest.raises(RefusedError, match="settled by an active adjudicator"):
        settling.disagreements("demo", site.person("Somebody", role))


def test_a_form_without_answer_reason_or_key_is_refused(
    site: StoredSite, settling: AdjudicationService, disputed: list[int]
) -> None:
    judge = site.person("Judge", Role.ADJUDICATOR)
    with pytest.raises(RefusedError, match="No answer is chosen"):
        settling.adjudicate("demo", judge, disputed[0], answer=None, version_seen=0, form_key="a", reason="r")
    with pytest.raises(RefusedError, match="needs a reason"):
        settling.adjudicate("demo", judge, disputed[0], answer=Answer.USUAL, version_seen=0, form_key="a")
    with pytest.raises(InvalidInputError, match="no key"):
        settling.adjudicate("demo", judge, disputed[0], answer=Answer.USUAL, version_seen=0, form_key="", reason="r")
    site.studies.lock_study("demo")
    with pytest.raises(RefusedError, match="is locked"):
        settling.adjudicate("demo", judge, disputed[0], answer=Answer.USUAL, version_seen=0, form_key="a", reason="r")


def test_an_answer_that_the_study_does_not_offer_is_refused(
    site: StoredSite, settling: AdjudicationService, disputed: list[int]
) -> None:
    judge = site.person("Judge", Role.ADJUDICATOR)
    withdraw(site, Answer.UNUSUAL)
    with pytest.raises(RefusedError, match="does not offer the answer"):
        settling.adjudicate("demo", judge, disputed[0], answer=Answer.UNUSUAL, version_seen=0, form_key="a", reason="r")
    assert disputed[0] in settling.disagreements("demo", judge)
