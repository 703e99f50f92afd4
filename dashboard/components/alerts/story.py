"""What the ward has done with and said about an alert: acts, newest first, and notes."""

import uuid

import streamlit as st

from alertreview.alerts.triage import LONGEST_REASON
from alertreview.alerts.triage_models import TriageEntry
from core.errors import AlertReviewError
from core.vocabulary import AlertId
from dashboard import texts
from dashboard.components import cards
from dashboard.context import Acting, acting_person, application

MOST_ACTS = 6
_PROBLEM = "note_problem"


def story_card(alert_id: AlertId, me: Acting) -> None:
    """Draw notes and history of an alert, and the field for another note."""
    story = application().triage.story(alert_id, me.person_id)
    with cards.card("Notes and history", "visible to everyone who can open this alert", key="story"):
        for note in story.notes:
            who = texts.joined(texts.plain(note.person, 40), texts.short_time(note.written_at))
            st.markdown(f"{texts.plain(note.text, 4_000)}  \n:small[{cards.muted(who)}]")
        for act in story.acts[:MOST_ACTS]:
            st.markdown(f":small[{cards.muted(_act(act))}]")
        if not story.notes and not story.acts:
            st.markdown(cards.muted("No activity yet."))
        if me.may_triage:
            _field(alert_id)


def _act(act: TriageEntry) -> str:
    until = f" to {texts.short_time(act.snoozed_until)}" if act.snoozed_until else ""
    moved = f"{texts.TRIAGE_TEXTS[act.former_state]} → {texts.TRIAGE_TEXTS[act.state]}{until}"
    why = f": {texts.plain(act.reason, LONGEST_REASON)}" if act.reason else ""
    return texts.joined(moved + why, texts.plain(act.person, 40), texts.short_time(act.acted_at))


def _field(alert_id: AlertId) -> None:
    key = f"note-{alert_id}"
    problem = st.session_state.pop(_PROBLEM, None)
    if problem:
        st.error(texts.plain(problem, 400), icon=":material/error:")
    st.text_area("Note", key=key, max_chars=4_000, height=68, label_visibility="collapsed", placeholder="Add a note")
    st.button("Add note", key="note_add", on_click=_add, args=(alert_id, key, uuid.uuid4().hex))


def _add(alert_id: AlertId, key: str, form_key: str) -> None:
    """Keep the note; what was typed stays in the field until it is stored."""
    person = acting_person()
    try:
        application().triage.add_note(
            person.person_id if person else None,  # type: ignore[arg-type]
            alert_id,
            st.session_state.get(key, ""),
            form_key=form_key,
        )
    except AlertReviewError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    st.session_state[key] = ""
