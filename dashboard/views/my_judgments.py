"""My judgments: a reader's own answers, to find one again and to change it while the study is open."""

import pandas as pd
import streamlit as st

from alertreview.review.models import JudgmentRow
from alertreview.studies.models import StudyView
from core.vocabulary import Answer, StudyStatus
from dashboard import texts
from dashboard.components import cards
from dashboard.components.acting import reading_as
from dashboard.components.studies.choice import studies_to_read
from dashboard.context import application, is_phone

ALL = "All"


def page() -> None:
    """Draw the page."""
    app = application()
    with cards.header(
        "My judgments", "Only your own answers; nobody else's are shown here.", simulated=app.site.simulated
    ):
        person = reading_as()
    if person is None:
        with cards.empty_state("No reviewers yet", "An administrator adds reviewers."):
            pass
        return
    studies = {study.slug: study for study in app.studies.all()}
    rows = app.review.my_judgments(person.person_id)
    if not rows:
        with cards.empty_state(
            "No judgment yet", "Your answers appear here as soon as one is saved.", ":material/history:"
        ):
            waiting = any(queue and queue.n_left for _, queue in studies_to_read(studies.values(), person))
            if waiting and st.button("Start reviewing", key="mj_start", type="primary"):
                st.switch_page("views/review.py")
        return
    shown = _filtered(rows, studies)
    if not shown:
        with cards.empty_state(
            "No judgment matches",
            f"{texts.plural(len(rows), 'judgment')} are hidden by the filters above.",
            ":material/filter_alt_off:",
        ):
            st.button("Show all", key="mj_all", type="primary", on_click=_clear)
        return
    _table(shown, studies)


def _clear() -> None:
    for key, blank in (("mj_answer", ALL), ("mj_study", ""), ("mj_find", "")):
        st.session_state[key] = blank


def _filtered(rows: tuple[JudgmentRow, ...], studies: dict[str, StudyView]) -> list[JudgmentRow]:
    """Draw the filters and return the rows that pass them."""
    words = {ALL: None} | {answer.short: answer for answer in Answer}
    with st.container(horizontal=True, vertical_alignment="top"):
        word = st.segmented_control("Answer", list(words), default=ALL, required=True, key="mj_answer")
        slug = st.selectbox(
            "Study",
            ["", *studies],
            key="mj_study",
            width=230,
            format_func=lambda s: texts.shorten(texts.study_name(studies[s]), 40) if s else "All studies",
        )
        find = st.text_input("Decision or comment", key="mj_find", placeholder="for example troponin").strip().lower()
    answer = words[word or ALL]
    return [
        row
        for row in rows
        if answer in {None, row.answer}
        and slug in {"", row.study_slug}
        and find in f"{row.decision_words} {row.comment} {row.case_label}".lower()
    ]


def _table(rows: list[JudgmentRow], studies: dict[str, StudyView]) -> None:
    """Draw the rows; a selected one can be opened again while its study is open."""
    key = f"mj_rows_{abs(hash(tuple((row.study_slug, row.case_id) for row in rows)))}"
    frame = pd.DataFrame(
        {
            "case": [row.case_label for row in rows],
            "decision": [texts.shorten(row.decision_words) for row in rows],
            "answer": [_answer(row, studies) for row in rows],
            "certainty": [texts.CERTAINTY_TEXTS[row.certainty] if row.certainty else "" for row in rows],
            "comment": [texts.shorten(row.comment, 300) for row in rows],
            "study": [texts.shorten(_title(row, studies), 40) for row in rows],
            "saved": [texts.day_time(row.saved_at) for row in rows],
            "version": [row.version for row in rows],
        }
    )
    chosen = _chosen(frame, key)
    with st.container(horizontal=True, vertical_alignment="center"):
        if chosen is None:
            st.markdown(
                cards.muted(f"{texts.plural(len(rows), 'judgment')}. Select one to look at it again or change it.")
            )
            return
        row = rows[chosen]
        study = studies.get(row.study_slug)
        if study is None or study.status is not StudyStatus.OPEN:
            st.markdown(
                cards.muted(f"Case {texts.plain(row.case_label)}: its study is locked, so the answer cannot change.")
            )
        elif st.button(f"Open case {texts.plain(row.case_label, 12)}", key="mj_open", type="primary"):
            st.switch_page("views/review.py", query_params={"study": row.study_slug, "case": str(row.case_id)})


def _chosen(frame: pd.DataFrame, key: str) -> int | None:
    """Draw the rows and return the position of the selected one."""
    alt = f"{texts.plural(len(frame), 'judgment')} of yours"
    if is_phone():
        return cards.choice(frame.rename(columns=str.capitalize), key=f"{key}-phone", label=alt)
    event = st.dataframe(
        frame,
        key=key,
        hide_index=True,
        height="content" if len(frame) <= 15 else 560,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "case": st.column_config.TextColumn("Case", width=60),
            "decision": st.column_config.TextColumn("Decision in question", width=240),
            "answer": st.column_config.TextColumn("Answer", width=160),
            "certainty": st.column_config.TextColumn("Certainty", width=90),
            "comment": st.column_config.TextColumn("Comment", width=240),
            "study": st.column_config.TextColumn("Study", width=130),
            "saved": st.column_config.TextColumn("Saved", width=130),
            "version": st.column_config.NumberColumn("Version", width=60),
        },
        alt=alt,
    )
    return event.selection.rows[0] if event.selection.rows else None


def _answer(row: JudgmentRow, studies: dict[str, StudyView]) -> str:
    study = studies.get(row.study_slug)
    return texts.answer_text(row.answer, study.answer_texts if study else None)


def _title(row: JudgmentRow, studies: dict[str, StudyView]) -> str:
    return texts.study_name(studies[row.study_slug]) if row.study_slug in studies else row.study_slug


page()
