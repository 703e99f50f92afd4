"""Studies: every study, and how far each one is."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from alertreview.rights import Action
from alertreview.studies.models import ReaderProgress, StudyProgress, StudyView
from core.errors import RefusedError
from core.vocabulary import OPEN_PANEL, CaseState, PersonId, SlotState, StudyStatus
from dashboard import texts
from dashboard.charts.bars import case_states
from dashboard.charts.judgments import judgments_over_time
from dashboard.components import cards
from dashboard.components.studies import acts
from dashboard.components.studies.choice import choose_study, study_asked
from dashboard.context import (
    acting_person,
    application,
    colours,
    is_phone,
    looking_person,
    may,
    people_who_read,
    read_ahead,
    shown_errors,
)

LINKS = (
    (Action.SEE_RESULTS, "Report", "reports", ":material/query_stats:"),
    (Action.EXPORT, "Export", "export", ":material/download:"),
)


def page() -> None:
    """Draw the page."""
    app = application()
    studies = app.studies.all()
    if not studies:
        with cards.header("Studies", "", simulated=app.site.simulated):
            pass
        with cards.empty_state(
            "No study yet",
            "A study is a set of cases that readers judge blinded. A coordinator creates it.",
            ":material/groups:",
        ):
            _new_study()
        return
    slug = st.query_params.get("study") or studies[0].slug
    if study_asked(slug, "Studies") is None:
        return
    study = app.studies.view(slug)
    progress = app.studies.progress(slug) if may(Action.MANAGE_STUDIES) else None
    _head(study, studies, app.site.simulated)
    _tiles(study, progress)
    # Beside the acts of a coordinator the question fills the left side; on a phone it comes after them.
    has_acts = may(Action.MANAGE_STUDIES) and not is_phone()
    left, right = st.columns([7, 5])
    with left:
        with cards.card("Cases by state", f"adds up to {study.n_cases:,}"):
            if study.n_cases:
                cards.figure(case_states(study.case_states, colours()), "case-states", colours())
            else:
                st.markdown(cards.muted("This study has no cases yet."))
        _readers(study, _own_progress(study) if progress is None else progress.readers)
        if has_acts:
            _question(study)
    with right:
        if study.is_open_panel:
            cards.open_panel_limit()
        if progress is not None:
            _over_time(study, progress)
            _strata(study)
        acts.acts(study)
        acts.disagreements(study)
        if not has_acts:
            _question(study)
    if may(Action.SEE_RESULTS) and not study.is_calibration:
        read_ahead(("report", slug), lambda app: app.reports.report(slug))


def _own_progress(study: StudyView) -> Sequence[ReaderProgress]:
    """Return how far whoever looks has come, who may not see the other readers."""
    review = application().review
    mine = ((person, review.queue(study.slug, person.person_id)) for person in people_who_read())
    return [
        ReaderProgress(person.person_id, "", person.name, queue.states, n_mine=queue.n_mine)
        for person, queue in mine
        if queue.n_mine
    ]


def _new_study() -> None:
    if may(Action.MANAGE_STUDIES) and st.button("New study", key="st_new", icon=":material/add:"):
        st.switch_page("views/study_setup.py")


def _head(study: StudyView, studies: tuple[StudyView, ...], simulated: bool) -> None:
    titles = {s.slug: texts.study_name(s) for s in studies}
    line = texts.joined(
        "training with feedback" if study.is_calibration else "",
        OPEN_PANEL if study.is_open_panel else "",
        texts.STATUS_TEXTS[study.status].lower(),
        f"{texts.plural(study.n_cases, 'case')} × {texts.plural(study.n_slots, 'reader')}",
    )
    with cards.header(texts.plain(study.title, 80), line, simulated=simulated):
        choose_study(study.slug, titles, key="st_study")
        _new_study()
        if study.status is StudyStatus.OPEN and (person := acting_person()) is not None:
            if study.is_open_panel and st.button("On alerts", key="st_alerts", icon=":material/visibility:"):
                _to_alerts(study.slug, person.person_id)
            is_reader = application().review.queue(study.slug, person.person_id).is_reader
            if is_reader and st.button("Review", key="st_review", type="primary", icon=":material/rate_review:"):
                st.switch_page("views/review.py", query_params={"study": study.slug})
        for action, label, page_name, icon in LINKS:
            if may(action) and st.button(label, key=f"st_{page_name}", icon=icon):
                st.switch_page(f"views/{page_name}.py", query_params={"study": study.slug})


def _to_alerts(slug: str, person_id: PersonId) -> None:
    """Open the alert of the first case of an open panel that waits for somebody, or say why there is none."""
    with shown_errors():
        alert_id = application().panels.next_alert(slug, person_id)
        if alert_id is not None:
            st.switch_page("views/alert.py", query_params={"alert": str(alert_id)})
        st.info(
            "No case with an alert is waiting for you. Cases without an alert are on the Review page.",
            icon=":material/info:",
        )


def _tiles(study: StudyView, progress: StudyProgress | None) -> None:
    wanted = study.n_cases * study.n_slots
    states = study.case_states
    tiles = (
        (
            "Judgments",
            f"{study.n_judged:,} of {wanted:,}",
            f"{texts.percent(study.n_judged / wanted)} done" if wanted else "no case yet",
        ),
        (
            "Cases with a majority",
            f"{states.get(CaseState.MAJORITY, 0):,}",
            f"of {texts.plural(study.n_cases, 'case')}",
        ),
        ("Disputed", f"{states.get(CaseState.DISPUTED, 0):,}", "as many votes for as against, 2 or more each"),
        ("Undetermined", f"{states.get(CaseState.UNDETERMINED, 0):,}", "too few votes to decide"),
    )
    cards.tiles(tiles if progress is None else (*tiles, _time_tile(progress)))


def _time_tile(progress: StudyProgress) -> tuple[str, str, str]:
    seconds = [second for reader in progress.readers for second in reader.seconds]
    if not seconds:
        return "Median time per case", "–", "no answer with a time yet"
    low, middle, high = (texts.duration(second) for second in np.quantile(seconds, (0.25, 0.5, 0.75)))
    return "Median time per case", middle, f"middle half {low} to {high}" if len(seconds) > 3 else "of few answers"


def _readers(study: StudyView, readers: Sequence[ReaderProgress]) -> None:
    until = "before a panel is locked" if study.is_open_panel else "while a study is blinded"
    with cards.card("Readers", f"counts only; no answer is shown {until}"):
        if not readers:
            nobody = "No reader has a case yet."
            none_of_mine = "You have no case in this study. Only coordinators see all readers."
            st.markdown(cards.muted(nobody if may(Action.MANAGE_STUDIES) else none_of_mine))
            return
        columns: dict[str, list[str | int | float | None]] = {
            "Reader": [texts.shorten(reader.name, 40) for reader in readers],
            # Rounded down: only a reader who is done stands at 100%.
            "Done": [100 * reader.n_judged // max(reader.n_mine, 1) for reader in readers],
            "Cases": [f"{reader.n_judged:,} of {reader.n_mine:,}" for reader in readers],
        }
        if any(reader.last_judged_at for reader in readers):
            columns["Last answer"] = [
                texts.short_time(reader.last_judged_at) if reader.last_judged_at else "none yet" for reader in readers
            ]
        if study.status is StudyStatus.OPEN and any(reader.per_day for reader in readers):
            columns["Per day"] = [reader.per_day for reader in readers]
            columns["Days to go"] = [reader.days_to_go for reader in readers]
        elif any(reader.seconds for reader in readers):  # there is no room for both
            columns["Median time"] = [
                texts.duration(np.median(reader.seconds)) if reader.seconds else "" for reader in readers
            ]
        columns |= {
            "Later": [reader.states[SlotState.LATER] for reader in readers],
            "Drafts": [reader.states[SlotState.DRAFT] for reader in readers],
            "Cannot judge": [reader.states[SlotState.CANNOT_JUDGE] for reader in readers],
        }
        cards.table(
            # In words the second says what the first draws.
            pd.DataFrame(columns).drop(columns="Done" if is_phone() else []),
            key="st_readers",
            columns={
                "Done": st.column_config.ProgressColumn(
                    min_value=0, max_value=100, format="%d%%", color="primary", width=76
                ),
                "Per day": st.column_config.NumberColumn(format="%.1f"),
                "Days to go": st.column_config.NumberColumn(format="%d"),
            },
            alt="Readers with how many of their cases are done, their last answer and pace, and cases put aside",
        )
        if "Per day" in columns:
            pace = "Per day: cases a day from the first answer to today, weekends included. Days to go: at this pace."
            st.markdown(f":small[{cards.muted(pace)}]")


def _over_time(study: StudyView, progress: StudyProgress) -> None:
    chart = judgments_over_time(progress, colours(), is_open=study.status is StudyStatus.OPEN)
    if chart is not None:
        with cards.card("Judgments over time", "by the day of the first answer"):
            cards.figure(chart, "judgments-over-time", colours())


def _strata(study: StudyView) -> None:
    """Draw where the cases of each stratum stand, or why they are not shown to whoever looks."""
    person = looking_person()
    with cards.card("Cases by stratum of score", "highest scores first"):
        try:
            strata = application().study_desk.strata(study.slug, person.person_id if person else None)
        except RefusedError as error:
            st.markdown(cards.muted(texts.plain(str(error), 300)))
            return
        frame = pd.DataFrame(
            {
                "Stratum": [texts.shorten(one.name, 40) for one in strata],
                "Cases": [one.n_cases for one in strata],
                "Decided": [one.n_decided for one in strata],
                "Undecided": [one.n_undecided for one in strata],
                "Open": [one.n_open for one in strata],
            }
        )
        cards.table(frame, key="st_strata", alt="Strata of scores with how many of their cases stand where")


def _question(study: StudyView) -> None:
    with cards.card("Question"):
        st.markdown(texts.plain(study.question, 400))
        st.markdown("\n".join(f"- {texts.plain(text, 80)}" for text in study.answer_texts.values()))
    with cards.card("Guidelines"):
        lines = (study.guidelines or "This study has no written guidelines.")[:6000].splitlines()
        st.markdown("  \n".join(texts.guideline(line) for line in lines))


page()
