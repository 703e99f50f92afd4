"""Studies: which there are, and how far each one is."""

import pandas as pd
import streamlit as st

from alertreview.review.models import QueueView
from alertreview.rights import Action
from alertreview.studies.models import StudyView
from core.vocabulary import OPEN_PANEL, CaseState, PersonId, SlotState, StudyStatus
from dashboard import texts
from dashboard.charts.bars import case_states
from dashboard.components import cards
from dashboard.components.studies import acts
from dashboard.components.studies.choice import choose_study, study_asked
from dashboard.context import acting_person, application, colours, may, people_who_read, shown_errors


def page() -> None:
    """Draw the page."""
    app = application()
    studies = app.studies.all()
    if not studies:
        with cards.header("Studies", "", simulated=app.site.simulated):
            pass
        with cards.empty_state(
            "No study yet",
            "A study is a set of cases that readers judge blinded. `alertreview demo` creates an example.",
            ":material/groups:",
        ):
            _new_study()
        return
    slug = st.query_params.get("study") or studies[0].slug
    study = study_asked(slug, "Studies")
    if study is None:
        return
    _head(study, studies, app.site.simulated)
    queues = _queues(slug)
    _tiles(study, queues)
    left, right = st.columns([7, 5])
    with left:
        with cards.card("Cases by state", f"adds up to {study.n_cases:,}"):
            if study.n_cases:
                cards.figure(case_states(study.case_states, colours()), "case-states", colours())
            else:
                st.markdown(cards.muted("This study has no cases yet."))
        _readers(study, queues)
    with right:
        if study.is_open_panel:
            cards.open_panel_limit()
        acts.acts(study)
        acts.disagreements(study)
        _question(study)


def _queues(slug: str) -> list[tuple[str, QueueView]]:
    """Return how far readers are: all of them to whoever manages studies, else only the one who looks."""
    app = application()
    if may(Action.MANAGE_STUDIES):
        progress = app.studies.progress(slug)
        return [(reader.name, _as_queue(reader.states, progress.n_cases)) for reader in progress.readers]
    queues = [(person.name, app.review.queue(slug, person.person_id)) for person in people_who_read()]
    return [(name, queue) for name, queue in queues if queue.n_mine]


def _as_queue(states: dict[SlotState, int], n_cases: int) -> QueueView:
    """Count a reader's own places as the reader's page does; free ones are nobody's yet."""
    n_submitted = states[SlotState.SUBMITTED] + states[SlotState.CANNOT_JUDGE]
    n_mine = sum(states.values())
    return QueueView(min(n_mine, n_cases), n_submitted, states[SlotState.LATER], n_mine - n_submitted, states)


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
            if st.button("Review", key="st_review", type="primary", icon=":material/rate_review:"):
                st.switch_page("views/review.py", query_params={"study": study.slug})
        elif st.button("Report", key="st_report", icon=":material/query_stats:"):
            st.switch_page("views/reports.py", query_params={"study": study.slug})


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


def _tiles(study: StudyView, queues: list[tuple[str, QueueView]]) -> None:
    wanted = study.n_cases * study.n_slots
    judged = sum(queue.n_submitted for _, queue in queues)
    states = study.case_states
    tiles = (
        (
            "Judgments",
            f"{judged:,} of {wanted:,}",
            f"{texts.percent(judged / wanted)} done" if wanted else "no case yet",
        ),
        (
            "Cases with a majority",
            f"{states.get(CaseState.MAJORITY, 0):,}",
            f"of {texts.plural(study.n_cases, 'case')}",
        ),
        ("Disputed", f"{states.get(CaseState.DISPUTED, 0):,}", "all readers differ"),
        ("Undetermined", f"{states.get(CaseState.UNDETERMINED, 0):,}", "too few votes that judge"),
    )
    cards.tiles(tiles)


def _readers(study: StudyView, queues: list[tuple[str, QueueView]]) -> None:
    until = "before a panel is locked" if study.is_open_panel else "while a study is blinded"
    with cards.card("Readers", f"counts only; no answer is shown {until}"):
        if not queues:
            st.markdown(cards.muted("No reader has a case yet. The coordinator assigns them."))
            return
        frame = pd.DataFrame(
            {
                "Reader": [texts.shorten(name, 40) for name, _ in queues],
                "Read / opened": [f"{queue.n_submitted:,} of {queue.n_mine:,}" for _, queue in queues],
                "Done": [queue.n_submitted / max(queue.n_mine, 1) for _, queue in queues],
                "Later": [queue.n_later for _, queue in queues],
                "Draft": [queue.states.get(SlotState.DRAFT, 0) for _, queue in queues],
                "Cannot judge": [queue.states.get(SlotState.CANNOT_JUDGE, 0) for _, queue in queues],
            }
        )
        st.dataframe(
            frame,
            key="st_readers",
            hide_index=True,
            height="content",
            column_config={
                "Reader": st.column_config.TextColumn(width=180),
                "Done": st.column_config.ProgressColumn(
                    min_value=0.0, max_value=1.0, format="percent", color="primary", width=130
                ),
                "Later": st.column_config.NumberColumn(width=60),
                "Draft": st.column_config.NumberColumn(width=60),
                "Cannot judge": st.column_config.NumberColumn(width=100),
            },
            alt="Readers with how many of their cases are read, put aside, drafted and not judged",
        )


def _question(study: StudyView) -> None:
    with cards.card("Question"):
        st.markdown(texts.plain(study.question, 400))
        st.markdown("\n".join(f"- {texts.plain(text, 80)}" for text in study.answer_texts.values()))
    with cards.card("Guidelines"):
        lines = (study.guidelines or "This study has no written guidelines.")[:6000].splitlines()
        st.markdown("  \n".join(texts.guideline(line) for line in lines))


page()
