"""The card of an open panel on the alert page: the answers beside the score, each saved by one press.

What is typed or chosen is a draft in the database; saving, holding a place and taking back are those of the review.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from alertreview.review.models import DraftView
from alertreview.review.panels import PanelCase
from core.vocabulary import AlertId, Answer, CaseId, PersonId
from dashboard import texts
from dashboard.components import cards
from dashboard.components.review import answers
from dashboard.context import Acting, application, attempt, is_phone

_SAID = "panel_said"
_TITLE_LIMIT = 60


@dataclass(frozen=True)
class _Said:
    """What the last act on a case came to."""

    case_id: CaseId
    sentence: str
    is_error: bool


def draw_panels(alert_id: AlertId, me: Acting, *, keys: bool, go_to: Callable[[AlertId], None]) -> None:
    """Draw a card for each open panel in which the one who looks may judge the alert's decision; else nothing.

    The page has marked the alert's score as seen. Single keys press the buttons of the first card; `go_to` opens
    another alert on this page.
    """
    if me.person_id is None:
        return
    for number, case in enumerate(application().panels.cases(alert_id, me.person_id)):
        _card(case, me.person_id, keys=keys and number == 0 and not is_phone(), go_to=go_to)


def _card(case: PanelCase, person_id: PersonId, *, keys: bool, go_to: Callable[[AlertId], None]) -> None:
    with st.container(border=True, gap="xsmall", key=f"panel-{case.case_id}"):
        _head(case)
        _said(case)
        # A press on a form that is gone meanwhile must reach no other one, so the version is part of the keys.
        form = f"{case.case_id}_{case.version_seen}"
        line_key, certainty_key = f"pn_line_{form}", f"pn_certainty_{form}"
        with st.grid(len(case.answer_texts), min_column_width=150, gap="xsmall"):
            for answer in case.answer_texts:
                stands = case.answer is answer
                st.button(
                    texts.answer_text(answer, case.answer_texts),
                    key=f"pn_answer_{int(answer)}_{form}",
                    type="primary" if stands else "secondary",
                    # On a phone it would cut the words; there the saved mark says which answer stands.
                    icon=":material/check:" if stands and not is_phone() else None,
                    shortcut=answer.key if keys else None,
                    width="stretch",
                    on_click=_answer,
                    args=(case, person_id, answer, line_key, certainty_key),
                )
        if is_phone():
            _line(case, person_id, line_key, certainty_key)
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key=f"panel-bar-{case.case_id}"):
            _certainty(case, person_id, line_key, certainty_key)
            if not is_phone():
                _line(case, person_id, line_key, certainty_key)
            _acts(case, person_id, form, keys=keys, go_to=go_to)


def _head(case: PanelCase) -> None:
    """Draw what is asked, and the saved mark: it stands only for what was read from the database."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        title = texts.plain(case.study_title, _TITLE_LIMIT)
        st.markdown(f"**Panel {title}** {cards.muted('· open: you see the score')}", width="stretch")
        if case.saved_at is not None and case.answer is not None:
            answer = texts.plain(texts.answer_text(case.answer, case.answer_texts), 40) if is_phone() else ""
            mark = texts.joined(f":material/check: Saved {_when(case.saved_at)}", answer)
            st.markdown(cards.muted(mark), width="content")
    st.markdown(f":small[{cards.muted(texts.plain(case.question, 300))}]")


def _when(saved_at: datetime) -> str:
    """14:02; with its day, if that is not today's."""
    today = datetime.now(saved_at.tzinfo).date()
    return f"{saved_at:%H:%M}" if saved_at.date() == today else texts.short_time(saved_at)


def _said(case: PanelCase) -> None:
    said: _Said | None = st.session_state.get(_SAID)
    if said is not None and said.case_id == case.case_id:
        if said.is_error:
            st.error(texts.plain(said.sentence, 600), icon=":material/error:")
        else:
            st.markdown(f":material/info: {texts.plain(said.sentence, 300)}")
    if case.answer is None and case.draft.answer is not None:
        chosen = texts.plain(texts.answer_text(case.draft.answer, case.answer_texts), 40)
        st.markdown(cards.muted(f"Not saved: **{chosen}**. Press an answer to save it."))


def _certainty(case: PanelCase, person_id: PersonId, line_key: str, key: str) -> None:
    if key not in st.session_state:
        st.session_state[key] = case.draft.certainty if case.answer is None else case.certainty
    answers.certainty(key, _keep, (case, person_id, line_key, key))


def _line(case: PanelCase, person_id: PersonId, key: str, certainty_key: str) -> None:
    """Draw the one line: a comment on a first answer, the reason for a change of a saved one."""
    if key not in st.session_state:
        st.session_state[key] = case.draft.comment if case.answer is None else ""
    st.text_input(
        "Comment or reason",
        key=key,
        placeholder=(
            f"Comment; required for “{answers.WITH_REASON}”"
            if case.answer is None
            else "Why are you changing the saved answer? (required), then the answer"
        ),
        label_visibility="collapsed",
        max_chars=2000,
        on_change=_keep,
        args=(case, person_id, key, certainty_key),
    )


def _acts(case: PanelCase, person_id: PersonId, form: str, *, keys: bool, go_to: Callable[[AlertId], None]) -> None:
    if case.answer is not None:
        st.button(
            "Undo",
            key=f"pn_undo_{form}",
            type="tertiary",
            shortcut="U" if keys else None,
            on_click=_undo,
            args=(case, person_id),
        )
    st.button(
        "Next of the panel",
        key=f"pn_next_{form}",
        shortcut="P" if keys else None,
        on_click=_next,
        args=(case, person_id, go_to),
    )


def _say(case: PanelCase, sentence: str, *, is_error: bool) -> None:
    st.session_state[_SAID] = _Said(case.case_id, sentence, is_error)


def _typed(case: PanelCase, answer: Answer | None, line_key: str, certainty_key: str) -> DraftView:
    """Return what is in the widgets as a draft; what is typed for a change is its reason, and the comment stays."""
    line = (st.session_state.get(line_key) or "").strip()
    comment = line if case.answer is None else case.comment
    return DraftView(answer, st.session_state.get(certainty_key), comment)


def _keep(case: PanelCase, person_id: PersonId, line_key: str, certainty_key: str) -> None:
    """Keep what was chosen or typed before a first answer; it takes a place in the case."""
    if case.answer is not None:
        return
    draft = _typed(case, case.draft.answer, line_key, certainty_key)
    _, error = attempt(lambda app: app.review.save_draft(case.study_slug, person_id, case.case_id, draft))
    if error:
        _say(case, error, is_error=True)


def _answer(case: PanelCase, person_id: PersonId, answer: Answer, line_key: str, certainty_key: str) -> None:
    """Save an answer: take a place with the draft, then judge; on any error everything typed stays."""
    st.session_state.pop(_SAID, None)
    line = (st.session_state.get(line_key) or "").strip()
    typed = _typed(case, answer, line_key, certainty_key)
    is_change = case.answer is not None
    if case.answer is answer and typed.certainty == case.certainty and not line:
        _say(case, "This is your saved answer already.", is_error=False)
        return
    if not is_change:
        _, error = attempt(lambda app: app.review.save_draft(case.study_slug, person_id, case.case_id, typed))
        if error:
            _say(case, error, is_error=True)
            return
    _, error = attempt(
        lambda app: app.review.submit_judgment(
            case.study_slug,
            person_id,
            case.case_id,
            answer=answer,
            certainty=typed.certainty,
            comment=typed.comment,
            version_seen=case.version_seen,
            form_key=case.form_key,
            reason=line if is_change or answer.needs_reason else "",
        )
    )
    if error:
        _say(case, error, is_error=True)


def _undo(case: PanelCase, person_id: PersonId) -> None:
    """Take the saved answer back; the one before counts again, or none."""
    _, error = attempt(
        lambda app: app.review.undo(
            case.study_slug,
            person_id,
            case.case_id,
            version_seen=case.version_seen,
            # One key for one saved version: a second press takes nothing more back.
            form_key=f"undo-{case.case_id}-{person_id}-{case.version_seen}",
        )
    )
    _say(case, error or "Undone.", is_error=bool(error))


def _next(case: PanelCase, person_id: PersonId, go_to: Callable[[AlertId], None]) -> None:
    """Open the alert of the reader's next case of this panel."""
    alert_id, error = attempt(lambda app: app.panels.next_alert(case.study_slug, person_id, case.case_id))
    if alert_id is not None:
        st.session_state.pop(_SAID, None)
        go_to(alert_id)
        return
    none_left = (
        "No other case of this panel with an alert is waiting for you. Cases without an alert are on the Review page."
    )
    _say(case, error or none_left, is_error=bool(error))
