"""Review: one blinded case, one key per answer."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from alertreview.review.models import BlindedCase, QueueView
from alertreview.studies.models import StudyHead
from core.vocabulary import CaseId, StudyStatus
from dashboard import texts
from dashboard.charts.timeline import REVIEW
from dashboard.components import cards, case_view, links
from dashboard.components.acting import reading_as
from dashboard.components.keys import keys_of
from dashboard.components.review import answers, session
from dashboard.components.review.session import Showing
from dashboard.components.studies.choice import study_asked, study_to_read
from dashboard.context import acting_person, application, has_arrived, is_phone, read_ahead


def page() -> None:
    """Draw the page."""
    app = application()
    slug = st.query_params.get("study")
    if not slug and (waiting := study_to_read(app.studies.all(), acting_person())) is not None:
        slug = waiting.slug
    if not slug:
        _message("No study is open", "A coordinator opens a study; then its cases appear here.", app.site.simulated)
        return
    study = study_asked(slug, "Review")
    if study is None:
        return
    if study.status is not StudyStatus.OPEN:
        word = texts.STATUS_TEXTS[study.status].lower()
        _message(texts.plain(study.title), f"This study is {word} and accepts no judgments.", app.site.simulated)
        return
    head = st.container(gap="xsmall", key="review-head")
    bar = head.container(
        horizontal=True, vertical_alignment="center", gap="xsmall" if is_phone() else "small", key="review-bar"
    )
    with bar:
        place = st.empty()
        # On a phone the first screen belongs to the case; who is reading stands at the end of the page.
        person = acting_person() if is_phone() else reading_as()
    if person is None:
        _message("No reviewers yet", "An administrator adds reviewers.", app.site.simulated)
        return
    queue = app.review.queue(slug, person.person_id)
    if not queue.is_reader:
        with head:
            _bar(bar, place, study, Showing(slug, person.person_id, None), app.site.simulated)
            _finished(study, queue, Showing(slug, person.person_id, None))
        return
    case_id = links.whole_number(st.query_params.get("case"), CaseId)
    showing = session.current(slug, person.person_id, case_id, arrived=has_arrived())
    _bar(bar, place, study, showing, app.site.simulated)
    with head:
        if showing.case is not None:
            st.progress(min(queue.n_submitted / max(queue.n_mine, 1), 1.0))
        if showing.feedback:
            st.info(texts.plain(showing.feedback, 600), icon=":material/school:")
        if showing.notice:
            st.info(texts.plain(showing.notice, 300), icon=":material/info:")
        if showing.case is None:
            _finished(study, queue, showing)
            return
        case_view.title(showing.case, showing.case.case_label)
        case_view.background(showing.case.patient)
    # Words and answers before the figure, which takes the browser longer than all the rest.
    with st.bottom:
        _answers(study, showing, showing.case)
    cards.words_first()
    _case(showing.case)
    if is_phone():
        with st.container(horizontal=True, vertical_alignment="center"):
            reading_as()
            if app.site.simulated:
                cards.simulated_badge()
    here = showing.case.case_id
    read_ahead((slug, here), lambda app: app.review.read_ahead(slug, person.person_id, here))


def _message(title: str, sentence: str, simulated: bool) -> None:
    with cards.header("Review", "", simulated=simulated):
        pass
    with cards.empty_state(title, sentence, ":material/rate_review:"):
        pass


def _bar(bar: DeltaGenerator, place: DeltaGenerator, study: StudyHead, showing: Showing, simulated: bool) -> None:
    """Fill the line above the case: where, saved mark, arrows, keys, guidelines."""
    case, phone = showing.case, is_phone()
    where = f"**Case {case.position} of {case.n_cases}**" if case else "**Review**"
    way = "open panel, here without score" if study.is_open_panel else "blinded"
    title = texts.joined(texts.plain(study.title, 40), way)
    place.markdown(
        f"{where} {cards.muted(('simulated' if simulated else '') if phone else title)}".strip(), width="stretch"
    )
    with bar:
        if showing.saved is not None:
            st.markdown(cards.muted(f":material/check: Saved {showing.saved.saved_at:%H:%M}"), width="content")
        if case is not None:
            for label, key, icon, backwards in (
                ("Previous case", "Left", ":material/chevron_left:", True),
                ("Next case", "Right", ":material/chevron_right:", False),
            ):
                st.button(
                    "",
                    key=f"rv_{key.lower()}",
                    icon=icon,
                    type="tertiary",
                    shortcut=None if phone else key,
                    help=label,
                    on_click=session.step,
                    args=(case.case_id,),
                    kwargs={"backwards": backwards},
                )
        keys_of("review")
        with st.popover("Guidelines", type="tertiary"):
            st.markdown(f"**{texts.plain(study.question, 300)}**")
            st.markdown(_guidelines(study.guidelines))
        if simulated and not phone:
            cards.simulated_badge()


def _guidelines(text: str) -> str:
    """Show the coordinator's text line by line, with its bold words and lists but no link, image or formula."""
    lines = (text or "This study has no written guidelines.")[:6000].splitlines()
    return "  \n".join(texts.guideline(line) for line in lines)


def _error(showing: Showing) -> None:
    st.error(texts.plain(showing.error, 600) + " Your choice and comment are kept here.", icon=":material/error:")
    if showing.case is not None and "meanwhile" in showing.error:
        st.button(
            "Load the saved version",
            key=f"rv_reload_{showing.case.case_id}",
            on_click=session.reload,
            args=(showing.case.case_id,),
        )


def _finished(study: StudyHead, queue: QueueView, showing: Showing) -> None:
    """Say that the list is done, or that there was never anything on it."""
    if queue.n_mine == 0:
        if queue.n_held_by_others:
            title, sentence = "All cases are held by others", _held_sentence(queue)
        else:
            title = "Nothing assigned yet"
            sentence = (
                f"No case of {texts.plain(study.title, 60)} is yours. Ask the coordinator of the study for cases."
            )
        with cards.empty_state(title, sentence, ":material/inbox:"):
            pass
        return
    with cards.empty_state(
        "All read",
        f"You have read {queue.n_submitted:,} of {texts.plural(queue.n_mine, 'case')} "
        f"of {texts.plain(study.title, 60)}. Thank you.",
        ":material/task_alt:",
    ):
        if showing.saved is not None:
            st.button(
                "Undo the last answer", key="rv_undo", shortcut=None if is_phone() else "Z",
                on_click=session.undo, args=(None,),
            )  # fmt: skip


def _held_sentence(queue: QueueView) -> str:
    when = f" The first comes back on {texts.day_time(queue.next_release_at)}." if queue.next_release_at else ""
    return f"Other readers hold {texts.plural(queue.n_held_by_others, 'case')} that nobody has judged.{when}"


def _case(case: BlindedCase) -> None:
    """Draw the patient's state: time line, last values, drugs."""
    name = f"case-{case.case_id}"
    left, right = st.columns(case_view.COLUMN_RATIO)

    def tables() -> None:
        with right:
            case_view.last_values(case.patient, name, case_view.FEW_ROWS)
            case_view.drugs_now(case.patient, name, case_view.FEW_ROWS)

    def figure() -> None:
        with left:
            case_view.timeline_card(case.patient.timeline, case.kind, name, REVIEW)

    # The figure last, but on a phone, where it stands above the tables and would push them down.
    for draw in (figure, tables) if is_phone() else (tables, figure):
        draw()


def _answers(study: StudyHead, showing: Showing, case: BlindedCase) -> None:
    """Draw the answer bar: the answers, then certainty, comment, undo, later, save."""
    phone = is_phone()
    if showing.error:
        _error(showing)
    with st.grid(len(study.answer_texts), min_column_width=150, gap="xsmall"):
        for answer in study.answer_texts:
            chosen = case.draft.answer == answer
            st.button(
                texts.answer_text(answer, study.answer_texts),
                key=f"rv_answer_{int(answer)}_{case.case_id}",
                type="primary" if chosen else "secondary",
                icon=":material/check:" if chosen else None,
                shortcut=None if phone else answer.key,
                width="stretch",
                on_click=session.choose,
                args=(case.case_id, answer),
            )
    comment_key, reason_key = f"rv_comment_{case.case_id}", f"rv_reason_{case.case_id}"
    if case.is_judged:
        st.text_input(
            "Reason for the change",
            value=showing.reason,
            key=reason_key,
            placeholder="Why are you changing the saved answer? (required)",
            label_visibility="collapsed",
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="save-bar"):
        if phone:
            with st.popover("Comment"):
                _certainty(case)
                _comment(case, comment_key)
        else:
            _certainty(case)
            st.button(
                "",
                key=f"rv_certainty_key_{case.case_id}",
                type="tertiary",
                shortcut="E",
                help="Certain, not certain, or neither",
                on_click=session.next_certainty,
                args=(case.case_id,),
            )
            _comment(case, comment_key)
        _acts(showing, case, comment_key, reason_key)


def _certainty(case: BlindedCase) -> None:
    key = f"rv_certainty_{case.case_id}"
    st.session_state[key] = case.draft.certainty
    answers.certainty(key, session.set_certainty, (case.case_id, key))


def _comment(case: BlindedCase, key: str) -> None:
    needs_reason = case.draft.answer is not None and case.draft.answer.needs_reason
    if key not in st.session_state:
        st.session_state[key] = case.draft.comment
    st.text_input(
        "Comment",
        key=key,
        placeholder="Why can this case not be judged? (required)" if needs_reason else "Comment, optional",
        label_visibility="collapsed",
        on_change=session.set_comment,
        args=(case.case_id, key),
    )


def _acts(showing: Showing, case: BlindedCase, comment_key: str, reason_key: str) -> None:
    phone = is_phone()
    nothing = case.draft.answer is None
    # Never disabled: a reader who presses 3 and S in one go is faster than the browser that would enable it.
    given = (case.case_id, comment_key, reason_key)
    st.button(
        "Undo",
        key=f"rv_undo_{case.case_id}",
        type="tertiary",
        shortcut=None if phone else "Z",
        on_click=session.undo,
        args=(case.case_id,),
    )
    st.button(
        "Later",
        key=f"rv_later_{case.case_id}",
        shortcut=None if phone else "L",
        on_click=session.later,
        args=(case.case_id,),
    )
    st.button(
        "Save" if phone else "Save and next",
        key=f"rv_save_{case.case_id}",
        type="secondary" if nothing else "primary",
        width="stretch" if phone else "content",
        shortcut=None if phone else "S",
        on_click=session.save,
        args=given,
    )
    if not phone:
        # A button has one shortcut; this one works from inside the comment, where single keys are letters.
        st.button(
            "or",
            key=f"rv_save_enter_{case.case_id}",
            type="tertiary",
            shortcut="Ctrl+Enter",
            on_click=session.save,
            args=given,
        )


page()
