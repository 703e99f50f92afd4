"""Triage with two keys: what to do, and why or until when; what was done, with the key that takes it back."""

import uuid
from collections.abc import Callable, Mapping

import streamlit as st

from alertreview.alerts.triage_models import TriageDone
from core.errors import AlertReviewError
from core.vocabulary import AlertId, TriageState
from dashboard.components import cards
from dashboard.context import Acting, acting_person, application, is_phone
from dashboard.texts import TRIAGE_TEXTS, plain, plural

REASONS = ("Fits this patient", "Done elsewhere or already", "The data are wrong")
SNOOZES = {"1 day": 24.0, "3 days": 72.0, "7 days": 168.0}
CLOSED = frozenset({TriageState.ACTIONED, TriageState.DISMISSED, TriageState.SNOOZED})
_ASKS = "triage_asks"
_SAID = "triage_said"
_REASON = "triage_reason"

Targets = Mapping[AlertId, int]
"""Alert -> version of its status that is on the screen."""


def shown_as(name: str, targets: Targets) -> str:
    """Return a key for a bar from what it acts on, so that a late press reaches no other alert."""
    alert_id, version = next(iter(targets.items()))
    return f"{name}-{alert_id}-{version}-{len(targets)}"


def is_asking(targets: Targets, *, name: str) -> bool:
    """Return whether a bar asks its second question, which the keys 1, 2 and 3 then answer."""
    asked = st.session_state.get(_ASKS)
    return asked is not None and asked[0] == shown_as(name, targets) and asked[1] == tuple(targets)


def draw_bar(
    targets: Targets,
    state: TriageState,
    me: Acting,
    *,
    name: str,
    then: Callable[[], None] | None = None,
    keys: bool = True,
    narrow: bool = False,
) -> None:
    """Draw the buttons of triage, or the second question once one was pressed; nothing for somebody who may not triage.

    They act on exactly the alerts that are on the screen, at the versions that are on it; what is closed is offered to
    be opened again. `then` is called after an act was kept, to move on. Single keys press the buttons of one bar of a
    page only. In a narrow card four buttons in a row would leave one alone in a second row.
    """
    if not me.may_triage:
        return
    if is_asking(targets, name=name):
        _second_question(st.session_state[_ASKS][2], targets, shown_as(name, targets), then, keys=keys)
        return
    name = shown_as(name, targets)
    key = f"{name}-triage"
    with (
        st.grid(2, min_column_width=110, gap="xsmall", key=key)
        if narrow
        else st.container(horizontal=True, gap="small", key=key)
    ):
        if state in CLOSED:
            _button("Open again", "N" if keys else "", name, _acting(targets, TriageState.NEW, then), wide=narrow)
        elif state is TriageState.NEW:
            taken = _acting(targets, TriageState.IN_REVIEW, then, moves_on=not keys)
            _button("In review", "V" if keys else "", name, taken, wide=narrow)
        if state is not TriageState.ACTIONED:
            _button("Actioned", "A" if keys else "", name, _acting(targets, TriageState.ACTIONED, then), wide=narrow)
        if state is not TriageState.DISMISSED:
            asking = _asking(name, targets, TriageState.DISMISSED)
            _button("Dismiss", "D" if keys else "", name, asking, wide=narrow)
        _button("Snooze", "S" if keys else "", name, _asking(name, targets, TriageState.SNOOZED), wide=narrow)


def draw_said() -> None:
    """Draw what the last act did, with an undo button, until the next one."""
    said = st.session_state.get(_SAID)
    if said is None:
        return
    kind, sentence, form_key = said
    if kind == "error":
        st.error(plain(sentence, 600), icon=":material/error:")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="triage-said"):
        st.markdown(f":material/check: {plain(sentence, 200)}", width="content")
        if form_key:
            st.button(
                "Undo",
                key="triage_undo",
                type="tertiary",
                shortcut=None if is_phone() else "Z",
                on_click=_undo,
                args=(form_key,),
            )


def forget() -> None:
    """Clear the second question and the message: the reader went elsewhere."""
    for key in (_ASKS, _SAID):
        st.session_state.pop(key, None)


def act(
    targets: Targets, state: TriageState, form_key: str, reason: str = "", snooze_hours: float | None = None
) -> bool:
    """Triage alerts and set the message; False if nothing was done."""
    st.session_state.pop(_ASKS, None)
    person = acting_person()
    try:
        done = application().triage.act(
            person.person_id if person else None,  # type: ignore[arg-type]
            targets,
            state,
            form_key=form_key,
            reason=reason,
            snooze_hours=snooze_hours,
        )
    except AlertReviewError as error:
        st.session_state[_SAID] = ("error", str(error), "")
        return False
    st.session_state[_SAID] = ("done", _sentence(done), form_key)
    return True


def _second_question(
    state: TriageState, targets: Targets, name: str, then: Callable[[], None] | None, *, keys: bool
) -> None:
    what = plural(len(targets), "alert") if len(targets) > 1 else "it"
    if state is TriageState.SNOOZED:
        st.markdown(cards.muted(f"Snooze {what} for"))
        with st.container(horizontal=True, gap="small", key=f"{name}-until"):
            for number, (words, hours) in enumerate(SNOOZES.items(), start=1):
                _button(words, str(number) if keys else "", name, _acting(targets, state, then, snooze_hours=hours))
            _button("Back", "Escape" if keys else "", name, _unasking())
        return
    st.markdown(cards.muted(f"Dismiss {what} because"))
    with st.container(horizontal=True, gap="small", key=f"{name}-why"):
        for number, reason in enumerate(REASONS, start=1):
            _button(reason, str(number) if keys else "", name, _acting(targets, state, then, reason=reason))
        _button("Back", "Escape" if keys else "", name, _unasking())
    form_key = uuid.uuid4().hex

    def typed() -> None:
        if act(targets, state, form_key, st.session_state.get(f"{name}_{_REASON}", "")) and then:
            then()

    st.text_input(
        "Another reason, then Enter",
        key=f"{name}_{_REASON}",
        max_chars=500,
        placeholder="Type a reason",
        on_change=typed,
    )


def _button(words: str, key: str, name: str, press: Callable[[], None], *, wide: bool = False) -> None:
    st.button(
        words,
        key=f"{name}-{words.lower().replace(' ', '-')}",
        shortcut=key if key and not is_phone() else None,
        width="stretch" if wide else "content",
        on_click=press,
    )


def _acting(
    targets: Targets,
    state: TriageState,
    then: Callable[[], None] | None,
    *,
    reason: str = "",
    snooze_hours: float | None = None,
    moves_on: bool = True,
) -> Callable[[], None]:
    """Make what a button does; its form key is of this showing, so that two fast presses are one act."""
    form_key = uuid.uuid4().hex

    def press() -> None:
        if act(targets, state, form_key, reason, snooze_hours) and then and moves_on:
            then()

    return press


def _asking(name: str, targets: Targets, state: TriageState) -> Callable[[], None]:
    def press() -> None:
        st.session_state[_ASKS] = (name, tuple(targets), state)
        st.session_state.pop(_SAID, None)

    return press


def _unasking() -> Callable[[], None]:
    def press() -> None:
        st.session_state.pop(_ASKS, None)

    return press


def _undo(form_key: str) -> None:
    person = acting_person()
    try:
        done = application().triage.undo(person.person_id if person else None, form_key)  # type: ignore[arg-type]
    except AlertReviewError as error:
        st.session_state[_SAID] = ("error", str(error), "")
        return
    st.session_state[_SAID] = ("done", _sentence(done), "")


def _sentence(done: TriageDone) -> str:
    what = plural(done.n_done, "alert")
    at = f"{done.done_at:%H:%M}"
    if done.state is None:
        left = f", {done.n_changed_meanwhile:,} changed meanwhile and skipped" if done.n_changed_meanwhile else ""
        return f"Undone: {what}{left}."
    already = f", {done.n_already:,} already in this state" if done.n_already else ""
    return f"{TRIAGE_TEXTS[done.state]} {at}: {what}{already}."
