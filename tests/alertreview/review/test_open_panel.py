"""Open panels: judged beside the score and marked as such, while every blinded study stays exactly as blind."""

import re
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path

import pytest

from alertreview.alerts.alert_lists import judged_study
from alertreview.alerts.filters import JUDGE_FIRST, refuse_withheld, show_score
from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application
from alertreview.review.models import DraftView, SavedJudgment
from alertreview.review.panels import PanelCase, PanelService
from alertreview.settings import Settings
from core.errors import InvalidInputError, NotFoundError, RefusedError
from core.vocabulary import Answer, Certainty, Decision, Role
from tests.support.review_acts import captured, rows
from tests.support.sign_in_desk import SignInDesk
from tests.support.stored_site import StoredSite

ALERT, OTHER = 1, 2
"""Alerts on the decisions of the first two instances."""
EVERYTHING = WorklistFilters(alerts_per_patient_day=float("inf"), include_cut_windows=True)


@pytest.fixture
def run_id(site: StoredSite) -> int:
    return site.publish([site.alert(0, 0, 1, Decision.OMISSION), site.alert(1, 0, 2, Decision.OMISSION)])


def make(
    site: StoredSite, run_id: int, slug: str, readers: list[int], *, case_rows: tuple[int, ...] = (0,), **more: object
) -> None:
    """Make and open a study, an open panel unless something else is said."""
    chosen = [site.case(row) for row in case_rows]
    options: dict[str, object] = {"n_slots": 1, "is_open_panel": True} | more
    site.studies.create_study(slug, f"Title of {slug}", run_id, chosen, **options)  # type: ignore[arg-type]
    site.studies.add_readers(slug, readers)
    site.studies.open_study(slug)


def panels(site: StoredSite) -> PanelService:
    return PanelService(site.database, site.clock)


def only(site: StoredSite, reader: int, alert: int = ALERT) -> PanelCase:
    (case,) = panels(site).cases(alert, reader)
    return case


def vote(
    site: StoredSite, reader: int, case: PanelCase, answer: Answer = Answer.USUAL, **more: object
) -> SavedJudgment:
    """Judge as the alert page does: take a place with the draft, then save."""
    draft = DraftView(answer, None, "")
    site.review.save_draft(case.study_slug, reader, case.case_id, draft)
    given: dict[str, object] = {"version_seen": case.version_seen, "form_key": case.form_key, "answer": answer}
    return site.review.submit_judgment(case.study_slug, reader, case.case_id, **(given | more))  # type: ignore[arg-type]


def is_withheld(site: StoredSite, reader: int, alert: int = ALERT) -> bool:
    """Ask every road to an alert; they must agree."""
    with site.database.read() as uow:
        record = uow.alerts.get(alert)
        decision = uow.alerts.keys([alert])[alert]
        listed = decision in uow.cases.awaited_of(reader)
        with pytest.raises(RefusedError, match=re.escape(JUDGE_FIRST)) if listed else nullcontext():
            refuse_withheld(uow, record, reader)
    assert show_score(site.database, site.clock, reader, alert) is not listed
    return listed


def test_a_study_is_blinded_unless_it_is_made_an_open_panel(site: StoredSite, run_id: int) -> None:
    site.studies.create_study("blind", "Blind", run_id, [site.case(0)])
    site.studies.create_study("panel", "Panel", run_id, [site.case(0)], is_open_panel=True)
    assert not site.studies.view("blind").is_open_panel
    assert site.studies.view("panel").is_open_panel
    made = {case.inclusion_probability for slug in ("blind", "panel") for case in site.studies.case_rows(slug)}
    assert made == {0.5}, "chances are stored in the same way"


def test_an_open_panel_is_not_for_training_and_hides_no_repeat(site: StoredSite, run_id: int) -> None:
    with pytest.raises(InvalidInputError, match="cannot be for training and an open panel"):
        site.studies.create_study("x", "X", run_id, [], is_open_panel=True, is_calibration=True)
    twice = [site.case(0), site.case(0, repeat_number=1)]
    with pytest.raises(InvalidInputError, match="leave hidden repeats out"):
        site.studies.create_study("x", "X", run_id, twice, is_open_panel=True)


def test_its_cases_are_withheld_from_nobody_and_those_of_a_blinded_study_from_its_readers(
    site: StoredSite, run_id: int
) -> None:
    reader, other = site.person("Reader"), site.person("Other")
    make(site, run_id, "panel", [reader], case_rows=(0, 1))
    assert not is_withheld(site, reader)
    make(site, run_id, "blind", [reader], case_rows=(1,), is_open_panel=False)
    assert not is_withheld(site, reader, ALERT)
    assert is_withheld(site, reader, OTHER)
    assert not is_withheld(site, other, OTHER)


def test_a_decision_of_both_kinds_stays_closed_until_the_blinded_judgment(site: StoredSite, run_id: int) -> None:
    reader = site.person("Reader")
    make(site, run_id, "panel", [reader])
    make(site, run_id, "blind", [reader], is_open_panel=False)
    assert is_withheld(site, reader)
    assert panels(site).cases(ALERT, reader) == ()
    blind = site.review.next_case("blind", reader)
    assert blind is not None
    site.review.submit_judgment(
        "blind", reader, blind.case_id, answer=Answer.USUAL, version_seen=0, form_key=blind.form_key
    )
    assert not is_withheld(site, reader)
    case = only(site, reader)
    assert (case.study_slug, case.answer, case.version_seen) == ("panel", None, 0), "the blinded answer is not its"
    assert not site.studies.votes("blind")[0].saw_score_before


def test_a_judgment_beside_the_score_carries_the_mark(site: StoredSite, run_id: int) -> None:
    reader = site.person("Reader")
    make(site, run_id, "panel", [reader])
    assert show_score(site.database, site.clock, reader, ALERT)
    vote(site, reader, only(site, reader), Answer.RELEVANT)
    (kept,) = site.studies.votes("panel")
    assert (kept.answer, kept.saw_score_before) == (Answer.RELEVANT, True)


def test_the_review_page_shows_its_cases_without_score_and_the_mark_says_who_had_not_seen_it(
    site: StoredSite, run_id: int
) -> None:
    reader = site.person("Reader")
    make(site, run_id, "panel", [reader])
    case = site.review.next_case("panel", reader)
    assert case is not None
    site.review.submit_judgment(
        "panel", reader, case.case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key
    )
    assert not site.studies.votes("panel")[0].saw_score_before


def test_looking_takes_no_place_and_judging_takes_one(site: StoredSite, run_id: int) -> None:
    first, second = site.person("First"), site.person("Second")
    make(site, run_id, "panel", [first, second])
    seen = only(site, first)
    assert only(site, second).case_id == seen.case_id
    with site.database.read() as uow:
        assert [slot.reviewer_id for slot in uow.slots.of_study(1)] == [None]
    late = only(site, second)
    vote(site, first, seen)
    assert panels(site).cases(ALERT, second) == (), "the only place is taken"
    assert only(site, first).answer is Answer.USUAL
    with pytest.raises(RefusedError, match="no free slot"):
        vote(site, second, late)
    assert rows(site, "judgment") == 1


def test_a_place_that_lapsed_is_offered_again(site: StoredSite, run_id: int) -> None:
    first, second = site.person("First"), site.person("Second")
    make(site, run_id, "panel", [first, second])
    case = only(site, first)
    site.review.save_draft("panel", first, case.case_id, DraftView(None, Certainty.UNCERTAIN, "begun"))
    assert panels(site).cases(ALERT, second) == ()
    assert only(site, first).draft == DraftView(None, Certainty.UNCERTAIN, "begun")
    site.clock.pass_hours(25)
    assert only(site, second).draft == DraftView(None, None, "")


def test_the_same_form_twice_is_one_vote_and_a_change_needs_a_reason_and_can_be_taken_back(
    site: StoredSite, run_id: int
) -> None:
    reader = site.person("Reader")
    make(site, run_id, "panel", [reader])
    case = only(site, reader)
    assert not vote(site, reader, case, comment="first").already_saved
    assert vote(site, reader, case, comment="first").already_saved
    again = only(site, reader)
    assert (again.answer, again.comment, again.version_seen) == (Answer.USUAL, "first", 1)
    assert again.saved_at is not None
    assert again.saved_at.utcoffset() == again.saved_at.astimezone(again.saved_at.tzinfo).utcoffset()
    assert str(again.saved_at.tzinfo) == "Europe/Berlin"
    with pytest.raises(RefusedError, match="Say why it changes"):
        vote(site, reader, again, Answer.RELEVANT)
    vote(site, reader, again, Answer.RELEVANT, reason="read again")
    assert only(site, reader).answer is Answer.RELEVANT
    site.review.undo("panel", reader, case.case_id, version_seen=2, form_key="back")
    back = only(site, reader)
    assert (back.answer, back.version_seen) == (Answer.USUAL, 3)
    assert rows(site, "judgment") == 3


def test_the_next_alert_passes_over_what_has_none_is_judged_or_is_to_be_judged_blindly(
    site: StoredSite, run_id: int
) -> None:
    reader, stranger = site.person("Reader"), site.person("Stranger")
    make(site, run_id, "panel", [reader], case_rows=(0, 1, 2, 3))
    make(site, run_id, "blind", [reader], case_rows=(1,), is_open_panel=False)
    service = panels(site)
    assert service.next_alert("panel", reader) == ALERT
    assert rows(site, "judgment") == 0
    vote(site, reader, only(site, reader))
    assert service.next_alert("panel", reader) is None
    blind = site.review.next_case("blind", reader)
    assert blind is not None
    site.review.submit_judgment(
        "blind", reader, blind.case_id, answer=Answer.USUAL, version_seen=0, form_key=blind.form_key
    )
    assert service.next_alert("panel", reader) == OTHER
    assert service.next_alert("panel", reader, only(site, reader, OTHER).case_id) is None
    with pytest.raises(RefusedError, match="is blinded: its cases are judged on the page Review"):
        service.next_alert("blind", reader)
    with pytest.raises(RefusedError, match="Nothing is assigned to you"):
        service.next_alert("panel", stranger)
    site.studies.lock_study("panel")
    with pytest.raises(RefusedError, match="is locked"):
        service.next_alert("panel", reader)


def test_nobody_gets_a_card_who_is_no_reader_or_whose_study_is_not_open(site: StoredSite, run_id: int) -> None:
    reader, stranger = site.person("Reader"), site.person("Stranger")
    site.studies.create_study("panel", "Panel", run_id, [site.case(0)], n_slots=1, is_open_panel=True)
    site.studies.add_readers("panel", [reader])
    assert panels(site).cases(ALERT, reader) == ()
    site.studies.open_study("panel")
    assert panels(site).cases(ALERT, stranger) == ()
    assert panels(site).cases(OTHER, reader) == ()
    assert only(site, reader).study_title == "Panel"
    site.studies.lock_study("panel")
    assert panels(site).cases(ALERT, reader) == ()
    with pytest.raises(NotFoundError, match="alert 99"):
        panels(site).cases(99, reader)


def test_a_blinded_study_is_no_card(site: StoredSite, run_id: int) -> None:
    reader = site.person("Reader")
    make(site, run_id, "blind", [reader], is_open_panel=False, case_rows=(0, 1))
    while (case := site.review.next_case("blind", reader)) is not None:
        site.review.submit_judgment(
            "blind", reader, case.case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key
        )
    assert panels(site).cases(ALERT, reader) == ()


@pytest.mark.checklist("B6")
def test_the_card_reads_nothing_of_other_readers_scores_or_strata(site: StoredSite, run_id: int) -> None:
    names = {field.name for field in fields(PanelCase)}
    assert not any(re.search("score|rank|stratum|support|soft|peer|vote|reader|state", name) for name in names)
    first, second = site.person("First"), site.person("Second")
    make(site, run_id, "panel", [first, second], n_slots=2)
    vote(site, first, only(site, first), Answer.RELEVANT, comment="canary-comment")
    site.review.save_draft("panel", first, 1, DraftView(Answer.UNUSUAL, None, "canary-draft"))
    with captured(site.database) as statements:
        case = only(site, second)
    text = "\n".join(statements)
    for word in ("case_score", "stratum", "inclusion_probability", "adjudication"):
        assert word not in text, word
    for statement in statements:
        if "FROM judgment" in statement and "study_case" not in statement:
            assert re.search(r"reviewer_id = ", statement), "only a reader's own judgments are read"
    assert "canary" not in repr(case)
    assert (case.answer, case.version_seen, case.draft) == (None, 0, DraftView(None, None, ""))


def test_results_are_hidden_from_its_readers_until_it_is_locked(site: StoredSite, run_id: int) -> None:
    reader, other, outsider = (site.person(name) for name in ("Reader", "Other", "Outsider"))
    make(site, run_id, "panel", [reader, other], n_slots=2)
    make(site, run_id, "blind", [reader], case_rows=(1,), is_open_panel=False)
    vote(site, reader, only(site, reader))
    assert site.review.is_blinded("panel", reader), "also with nothing left: an answer can still be changed"
    assert not site.review.is_blinded("panel", outsider)
    case = site.review.next_case("blind", reader)
    assert case is not None
    site.review.submit_judgment(
        "blind", reader, case.case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key
    )
    assert not site.review.is_blinded("blind", reader), "as ever"
    site.studies.lock_study("panel")
    assert not site.review.is_blinded("panel", reader)


def test_its_votes_feed_no_expected_rate_and_no_auc_of_a_task(site: StoredSite, run_id: int) -> None:
    reader = site.person("Reader")
    make(site, run_id, "blind", [reader], is_open_panel=False)
    make(site, run_id, "panel", [reader], case_rows=(1,))
    vote(site, reader, only(site, reader, OTHER))
    site.studies.lock_study("panel")
    with site.database.read() as uow:
        assert judged_study(uow, run_id) is None
    site.studies.lock_study("blind")
    with site.database.read() as uow:
        found = judged_study(uow, run_id)
    assert found is not None
    assert found.slug == "blind"


def test_of_several_judged_studies_the_largest_speaks_for_the_run(site: StoredSite, run_id: int) -> None:
    reader = site.person("Reader")
    for slug, case_rows in (("large", (0, 1)), ("newer", (1,))):
        make(site, run_id, slug, [reader], is_open_panel=False, case_rows=case_rows)
        site.studies.lock_study(slug)
    with site.database.read() as uow:
        found = judged_study(uow, run_id)
    assert found is not None
    assert found.slug == "large"


@pytest.mark.checklist("B1")
def test_a_page_gets_cards_of_ones_own_units_and_only_who_may_judge(
    site: StoredSite, run_id: int, tmp_path: Path
) -> None:
    desk = SignInDesk(site.database, site.clock)
    reader = site.person("Rita")
    make(site, run_id, "panel", [reader], case_rows=(0, 1))
    desk.accounts.create("Rita", Role.REVIEWER, login="rita", units=["Ward A"])
    token = desk.sign_in.with_code("rita", desk.accounts.reset(reader), "four boats in winter")
    application = Application(Settings(tmp_path, "sqlite://"), site.database)
    for name in ("sessions", "accounts", "sign_in"):
        setattr(application, name, getattr(desk, name))
    application.panels = panels(site)
    application.review = site.review
    opened = application.for_session(token)
    listed = opened.worklist.page(replace(EVERYTHING, run_id=run_id))
    assert [row.alert_id for row in listed.rows] == [ALERT]
    assert listed.n_to_judge_first == 0
    (case,) = opened.panels.cases(ALERT, reader)
    with pytest.raises(NotFoundError, match="unit that is not yours"):
        opened.panels.cases(OTHER, reader)
    assert opened.panels.next_alert("panel", reader) == ALERT
    with site.database.read() as uow:
        mine = uow.units.cases_within(uow.studies.by_slug("panel").id, ["Ward A"])
    assert opened.panels.next_alert("panel", reader, min(mine)) is None, "the other case is of another unit"
    with pytest.raises(RefusedError, match="cannot act as person"):
        opened.panels.cases(ALERT, reader + 1)
    desk.accounts.set_role(reader, Role.VIEWER)
    with pytest.raises(RefusedError, match="may not judge cases"):
        opened.panels.cases(ALERT, reader)
    assert case.study_slug == "panel"
