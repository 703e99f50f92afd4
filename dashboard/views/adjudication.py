"""Adjudication: a case that the votes left open, its votes as A, B and C, and the answer that stands for all."""

import uuid

import streamlit as st

from alertreview.access.site import PersonView
from alertreview.review.adjudication import AdjudicationCase
from alertreview.review.rules import LONGEST_COMMENT
from alertreview.rights import Action, roles_that_may
from alertreview.studies.models import StudyHead
from core.errors import AlertReviewError
from core.vocabulary import Answer, CaseId, PersonId
from dashboard import texts
from dashboard.charts.timeline import REVIEW
from dashboard.components import cards, case_view, links
from dashboard.components.keys import keys_of
from dashboard.components.studies.choice import study_asked
from dashboard.context import application, is_phone, signed_in

_FORM = "adj_form"
_FIRST_LETTERS = 400


def page() -> None:
    """Draw the page."""
    app = application()
    studies = [study for study in app.studies.all() if not study.is_calibration]
    slug = st.query_params.get("study") or (studies[0].slug if studies else "")
    if not slug:
        _nothing("No study yet", "Disagreements come from the cases of a study.", app.site.simulated)
        return
    study = study_asked(slug, "Disagreements")
    if study is None:
        return
    line = texts.joined(texts.plain(study.title, 60), "votes appear under letters, which change from case to case")
    with cards.header("Disagreements", line, simulated=app.site.simulated):
        person = _acting()
        if st.button("Study", key="adj_back", icon=":material/arrow_back:"):
            st.switch_page("views/studies.py", query_params={"study": slug})
    if person is None:
        _nothing("No adjudicator yet", "An administrator appoints an adjudicator.", app.site.simulated, "")
        return
    waiting = app.adjudication.disagreements(slug, person.person_id)
    if notice := st.session_state.pop("adj_notice", ""):
        st.success(notice, icon=":material/check:")
    if not waiting:
        sentence = "No complete case is undecided, or you were a reader of those that are."
        _nothing("Nothing to settle", sentence, app.site.simulated, "")
        return
    asked = links.whole_number(st.query_params.get("case"), CaseId)
    case = app.adjudication.case(slug, person.person_id, asked if asked in waiting else waiting[0])
    _case(study, case, person, waiting)


def _nothing(title: str, sentence: str, simulated: bool, head: str = "Disagreements") -> None:
    if head:
        with cards.header(head, "", simulated=simulated):
            pass
    with cards.empty_state(title, sentence, ":material/balance:"):
        pass


def _acting() -> PersonView | None:
    """Return who is signed in; in a demonstration a chooser among those whose role allows it."""
    me = signed_in()
    if not me.is_demo:
        return PersonView(me.person_id, me.name, me.role, simulated=False, further_roles=me.further_roles)
    people = {
        person.person_id: person
        for person in application().site.people()
        if person.roles & roles_that_may(Action.ADJUDICATE)
    }
    if not people:
        return None
    chosen = st.selectbox(
        "Settling as",
        list(people),
        key="adj_person",
        width=230,
        label_visibility="collapsed",
        format_func=lambda i: texts.shorten(people[i].name, 40) if i in people else "–",
    )
    return people.get(chosen)


def _case(study: StudyHead, case: AdjudicationCase, person: PersonView, waiting: tuple[int, ...]) -> None:
    place = waiting.index(case.case_id) + 1
    with st.container(gap="xsmall", key="adjudication-head"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            words = f"{place} of {texts.plural(len(waiting), 'case')} waiting for you"
            st.markdown(cards.muted(words), width="content")
            keys_of("adjudication")
        case_view.title(case)
        case_view.background(case.patient)
    left, right = st.columns(case_view.COLUMN_RATIO)
    name = f"adj-{case.case_id}"
    with left:
        case_view.timeline_card(case.patient.timeline, case.kind, name, REVIEW)
        case_view.drugs_now(case.patient, name)
    with right:
        _votes(study, case)
        case_view.last_values(case.patient, name, case_view.FEW_ROWS)
    with st.bottom:
        _answers(study, case, person)


def _votes(study: StudyHead, case: AdjudicationCase) -> None:
    with cards.card("Votes", "readers are not shown"):
        for vote in case.votes:
            certainty = texts.CERTAINTY_TEXTS[vote.certainty].lower() if vote.certainty else ""
            answer = texts.plain(texts.answer_text(vote.answer, study.answer_texts, 80))
            st.markdown(f"**{vote.letter}** {answer} {cards.muted(certainty)}".rstrip())
            if vote.comment:
                st.markdown(f":small[{texts.plain(vote.comment, _FIRST_LETTERS)}]")
            if len(vote.comment) > _FIRST_LETTERS:  # whole, three of them would push the values off the screen
                with st.expander(f"The whole comment of {vote.letter}"):
                    st.markdown(f":small[{texts.plain(vote.comment, LONGEST_COMMENT)}]")


def _answers(study: StudyHead, case: AdjudicationCase, person: PersonView) -> None:
    chosen_key = f"adj_choice_{case.case_id}"
    chosen: Answer | None = st.session_state.get(chosen_key)
    with st.grid(len(study.answer_texts), min_column_width=150, gap="xsmall"):
        for answer in study.answer_texts:
            st.button(
                texts.answer_text(answer, study.answer_texts),
                key=f"adj_answer_{int(answer)}_{case.case_id}",
                type="primary" if chosen is answer else "secondary",
                icon=":material/check:" if chosen is answer else None,
                shortcut=None if is_phone() else answer.key,
                width="stretch",
                on_click=st.session_state.__setitem__,
                args=(chosen_key, answer),
            )
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="adj-bar"):
        st.text_input(
            "Reason",
            key=f"adj_reason_{case.case_id}",
            placeholder="Reason (required)" if is_phone() else "Reason, stored with the answer (required)",
            label_visibility="collapsed",
        )
        st.button(
            "Settle and next",
            key=f"adj_save_{case.case_id}",
            type="secondary" if chosen is None else "primary",
            shortcut=None if is_phone() else "S",
            on_click=_settle,
            args=(study, case, person.person_id),
        )
    if error := st.session_state.pop("adj_error", ""):
        st.error(f"{texts.plain(error, 600)} Your choice and reason are kept here.", icon=":material/error:")


def _settle(study: StudyHead, case: AdjudicationCase, person_id: PersonId) -> None:
    """Save once for each showing; on an error everything stays as it is."""
    form = st.session_state.setdefault(_FORM, {})
    form_key = form.setdefault((case.case_id, case.version_seen, person_id), uuid.uuid4().hex)
    reason = st.session_state.get(f"adj_reason_{case.case_id}", "")
    try:
        stored = application().adjudication.adjudicate(
            case.study_slug,
            person_id,
            case.case_id,
            answer=st.session_state.get(f"adj_choice_{case.case_id}"),
            comment=reason,
            reason=reason,
            version_seen=case.version_seen,
            form_key=form_key,
        )
    except AlertReviewError as error:
        st.session_state["adj_error"] = str(error)
        return
    st.session_state["adj_notice"] = f"Saved: {texts.plain(texts.answer_text(stored.answer, study.answer_texts))}."
    st.query_params.pop("case", None)


page()
