"""The state of one reader's review in one browser session, and what its keys do; drawing is done by the page.

Everything that must outlive the session is in the database: drafts, later marks, judgments. Kept here is only which
case is shown, in which showing (version seen and idempotency key), and what was last saved.
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from alertreview.review.models import BlindedCase, DraftView, SavedJudgment
from core.vocabulary import Answer, CaseId, Certainty, PersonId
from dashboard.context import application, attempt

if TYPE_CHECKING:
    from alertreview.application import Services

_KEY = "review"
FRESH_SECONDS = 2.0
"""So soon after a case came up, an address that names another one is an old one; later, the reader went back."""
IDLE_SECONDS = 60.0
"""A pause longer than this between two acts counts as this long: the reader was away."""


@dataclass(frozen=True)
class Showing:
    """One case as it is shown now, and what the page says about the last act."""

    slug: str
    person_id: PersonId
    case: BlindedCase | None
    error: str = ""
    notice: str = ""
    saved: SavedJudgment | None = None
    reason: str = ""  # prefilled reason for the change of a saved answer
    feedback: str = ""  # what the panel answered to the training case saved last
    active_seconds: float = 0.0
    last_act: float = 0.0
    shown_at: float = 0.0
    put_off: CaseId | None = None  # the case put aside last, while nothing was done since

    def touched(self) -> "Showing":
        """Count the time since the last act, without idle time."""
        now = time.monotonic()
        passed = min(max(now - self.last_act, 0.0), IDLE_SECONDS) if self.last_act else 0.0
        return replace(self, active_seconds=self.active_seconds + passed, last_act=now)


def current(slug: str, person_id: PersonId, case_id: CaseId | None, *, arrived: bool) -> Showing:
    """Return what is shown: the case that the address names, also after Back, else the one of this session or the next.

    Raises
    ------
    core.errors.NotFoundError
        If the address names a study or case that is not here or not this person's.
    """
    kept: Showing | None = st.session_state.get(_KEY)
    if kept is not None and (kept.slug, kept.person_id) != (slug, person_id):
        kept = None
    if kept is not None and kept.case is not None and case_id in {None, kept.case.case_id}:
        return _show(kept) if arrived else kept
    if kept is not None and not arrived and time.monotonic() - kept.shown_at < FRESH_SECONDS:
        # A key pressed right after the last one came with the address of the case before.
        return _show_address(kept)
    app = application()
    if case_id is not None:
        case: BlindedCase | None = app.review.case(slug, person_id, case_id)
    else:
        case = app.review.next_case(slug, person_id)
    return _show(Showing(slug, person_id, case, saved=kept.saved if kept else None))


def _show(showing: Showing) -> Showing:
    """Keep a showing; the address names its case, so that a reload comes back to it."""
    now = time.monotonic()
    showing = replace(showing, last_act=now, shown_at=now)
    st.session_state[_KEY] = showing
    return _show_address(showing)


def _show_address(showing: Showing) -> Showing:
    st.query_params["study"] = showing.slug
    if showing.case is not None:
        st.query_params["case"] = str(showing.case.case_id)
    else:
        st.query_params.pop("case", None)
    return showing


def _put(showing: Showing) -> None:
    st.session_state[_KEY] = showing


def _of(case_id: CaseId) -> Showing | None:
    """Return the showing if it is still of this case; a key pressed twice arrives when the case has moved on."""
    showing: Showing | None = st.session_state.get(_KEY)
    if showing is None or showing.case is None:
        return None
    if showing.case.case_id != case_id:
        # The second press brought the address of the first one's case with it.
        st.query_params["case"] = str(showing.case.case_id)
        return None
    return showing.touched()


def _draft(showing: Showing, draft: DraftView) -> None:
    """Keep a draft in the database and in the showing; the showing keeps it even if the database cannot."""
    case = showing.case
    if case is None or draft == case.draft:
        return
    _, error = attempt(lambda app: app.review.save_draft(showing.slug, showing.person_id, case.case_id, draft))
    _put(replace(showing, case=replace(case, draft=draft), error=error, notice=""))


def choose(case_id: CaseId, answer: Answer) -> None:
    """Choose an answer; undo clears it, a second press of the same key does not."""
    showing = _of(case_id)
    if showing is not None and showing.case is not None:
        _draft(showing, replace(showing.case.draft, answer=answer))


def set_certainty(case_id: CaseId, key: str) -> None:
    """Take certainty from its widget."""
    showing = _of(case_id)
    if showing is not None and showing.case is not None:
        chosen: Certainty | None = st.session_state.get(key)
        _draft(showing, replace(showing.case.draft, certainty=chosen))


def next_certainty(case_id: CaseId) -> None:
    """Go on from neither to certain, not certain and back to neither."""
    showing = _of(case_id)
    if showing is not None and showing.case is not None:
        choices = [None, *Certainty]
        place = choices.index(showing.case.draft.certainty)
        _draft(showing, replace(showing.case.draft, certainty=choices[(place + 1) % len(choices)]))


def set_comment(case_id: CaseId, key: str) -> None:
    """Take the comment from its widget."""
    showing = _of(case_id)
    if showing is not None and showing.case is not None:
        _draft(showing, replace(showing.case.draft, comment=st.session_state.get(key) or ""))


def save(case_id: CaseId, comment_key: str, reason_key: str) -> None:
    """Save the answer and go on; on any error stay at the case with everything kept."""
    showing = _of(case_id)
    if showing is None or showing.case is None:
        return
    case = showing.case
    comment = st.session_state.get(comment_key, case.draft.comment) or ""
    case = replace(case, draft=replace(case.draft, comment=comment))
    showing = replace(showing, case=case, notice="")
    reason = (st.session_state.get(reason_key) or showing.reason).strip()
    answer = case.draft.answer
    needs_reason = answer is not None and answer.needs_reason
    saved, error = attempt(
        lambda app: app.review.submit_judgment(
            showing.slug,
            showing.person_id,
            case.case_id,
            answer=answer,
            certainty=case.draft.certainty,
            comment=comment,
            version_seen=case.version_seen,
            form_key=case.form_key,
            reason=reason or (comment.strip() if needs_reason else ""),
            active_seconds=round(showing.active_seconds, 1),
        ),
    )
    if error:
        _put(replace(showing, error=error))
        return
    _advance(replace(showing, saved=saved), case.case_id)


def _advance(showing: Showing, case_id: CaseId) -> None:
    """Show the next case to read; the saved mark stays."""
    following, error = attempt(lambda app: app.review.next_case(showing.slug, showing.person_id, case_id))
    feedback = _feedback(showing, case_id)
    _show(Showing(showing.slug, showing.person_id, following, error=error, saved=showing.saved, feedback=feedback))


def _feedback(showing: Showing, case_id: CaseId) -> str:
    """Say after a training case what the panel answered; a study that counts says nothing."""
    case, saved = showing.case, showing.saved
    if case is None or not case.gives_feedback or saved is None or saved.case_id != case_id:
        return ""
    study, _ = attempt(lambda app: app.studies.head(showing.slug))
    found, _ = attempt(lambda app: app.review.feedback(showing.slug, showing.person_id, case_id))
    if study is None or found is None:
        return ""
    reference, comment = found
    mine = study.answer_texts[saved.answer]
    panel = study.answer_texts[reference]
    same = "As the panel" if reference is saved.answer else f"The panel answered: {panel}"
    return f"{same}. You answered: {mine}. {comment}".strip()


def later(case_id: CaseId) -> None:
    """Put the case aside and go on."""
    showing = _of(case_id)
    if showing is None:
        return
    _, error = attempt(lambda app: app.review.mark_later(showing.slug, showing.person_id, case_id))
    if error:
        _put(replace(showing, error=error))
    else:
        _advance(showing, case_id)
        _put(replace(st.session_state[_KEY], put_off=case_id))


def step(case_id: CaseId, *, backwards: bool) -> None:
    """Look at the next or previous case without saving; the draft stays where it is."""
    showing = _of(case_id)
    if showing is None:
        return
    found, error = attempt(
        lambda app: app.review.next_case(showing.slug, showing.person_id, case_id, backwards=backwards)
    )
    if error or found is None:
        edge = "first" if backwards else "last"
        _put(replace(showing, error=error, notice="" if error else f"This is the {edge} case of your list."))
    else:
        _show(Showing(showing.slug, showing.person_id, found, saved=showing.saved))


def undo(case_id: CaseId | None) -> None:
    """Take back the choice; with nothing chosen, go back to the answer saved last to change it."""
    showing: Showing | None = st.session_state.get(_KEY)
    if showing is None or (showing.case.case_id if showing.case else None) != case_id:
        return
    showing = showing.touched()
    case = showing.case
    if case is not None and case.draft.answer is not None and not case.is_judged:
        _draft(showing, replace(case.draft, answer=None))
    elif showing.put_off is not None:
        _take_up(showing, showing.put_off)
    elif showing.saved is None or (case is not None and case.case_id == showing.saved.case_id):
        _put(replace(showing, notice="There is nothing to undo."))
    else:
        _take_back(showing, showing.saved)


def _take_up(showing: Showing, case_id: CaseId) -> None:
    """Come back to the case put aside last; it waits among the others again."""

    def again(app: "Services") -> BlindedCase:
        case = app.review.case(showing.slug, showing.person_id, case_id)
        app.review.take_up(showing.slug, showing.person_id, case_id)
        return case

    back, error = attempt(again)
    if error:
        _put(replace(showing, error=error))
    else:
        notice = "Back in your list. The case waits for your answer."
        _show(Showing(showing.slug, showing.person_id, back, saved=showing.saved, notice=notice))


def _take_back(showing: Showing, saved: SavedJudgment) -> None:
    """Take the answer saved last back; it is a separate version, and the choice is a draft again."""
    back, error = attempt(
        lambda app: app.review.undo(
            showing.slug,
            showing.person_id,
            saved.case_id,
            version_seen=saved.version,
            # One key for one saved version: a second press of Z takes nothing more back.
            form_key=f"undo-{saved.case_id}-{showing.person_id}-{saved.version}",
        ),
    )
    if error:
        _put(replace(showing, error=error))
    else:
        _show(Showing(showing.slug, showing.person_id, back, notice="Undone. The case waits for your answer."))


def reload(case_id: CaseId) -> None:
    """Load the case again with what is stored now."""
    showing = _of(case_id)
    if showing is None:
        return
    case, error = attempt(lambda app: app.review.case(showing.slug, showing.person_id, case_id))
    if error:
        _put(replace(showing, error=error))
    else:
        _show(Showing(showing.slug, showing.person_id, case, saved=showing.saved))
