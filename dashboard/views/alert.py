"""Alert: one decision in question and everything that explains why it is unusual."""

from dataclasses import dataclass

import streamlit as st

from alertreview.alerts.models import AlertDetail
from core.errors import NotFoundError, RefusedError
from core.vocabulary import AlertId, Decision
from dashboard import texts
from dashboard.charts.histogram import histogram
from dashboard.components import cards, case_view, links
from dashboard.components.alerts.neighbours import neighbours
from dashboard.components.alerts.reasons import reasons
from dashboard.components.alerts.story import story_card
from dashboard.components.alerts.triage_bar import draw_bar, draw_said, forget, is_asking
from dashboard.components.keys import keys_of
from dashboard.components.review.panel_card import draw_panels
from dashboard.components.runs.shown_run import shown_run
from dashboard.components.runs.task_link import task_link
from dashboard.components.worklist.state import PATIENT, filters_now
from dashboard.context import Acting, acting, application, colours, go, has_arrived, is_phone, read_ahead

_WORKLIST = "views/worklist.py"
BAR = "alert"  # the triage bar of this page
_SCORE = "histogram_score"
# Pixels, measured at 1280: the card of the histogram, that of the notes, and what is always in the two columns.
_HISTOGRAM, _NOTES, _LEFT, _RIGHT = 296, 220, 786, 560
_LETTERS = 30  # of a finding on one line
MENTIONED_SURPRISE = 1.5  # odds by the state over odds in general


def page() -> None:
    """Draw the page."""
    if has_arrived():
        forget()
    app = application()
    shown = shown_run(app)
    if shown is None:
        return
    me = acting()
    filters = filters_now(shown.run, app.worklist.filter_choices(shown.run.run_id, shown.scorer), me)
    alert_id = links.whole_number(st.query_params.get("alert"), AlertId)
    if alert_id is None:
        _no_alert("No alert selected", "Open one from the worklist.")
        return
    try:
        detail = app.worklist.alert(alert_id, filters, me.person_id)
    except NotFoundError as error:
        _no_alert("Alert not found", texts.plain(str(error), 400))
        return
    except RefusedError as error:
        _no_alert("Judge it first", texts.plain(str(error), 400))
        return
    row = detail.row
    with st.container(gap="xsmall", key="alert-head"):
        _bar(detail, detail.run.simulated)
        if st.query_params.get("run") not in {None, str(detail.run.run_id)}:
            asked = texts.plain(st.query_params["run"], 20)
            st.info(
                f"This alert belongs to run {detail.run.run_id}, not to run {asked} named in the address.",
                icon=":material/info:",
            )
        _title(detail)
        bar = st.container()
        asks = is_asking({row.alert_id: row.triage.version}, name=BAR)
        # Before the bar: a digit that answers its question must not find the panel's keys still there.
        draw_panels(row.alert_id, me, keys=not asks, go_to=_open)
        with bar:
            _triage(detail, me)
        case_view.background(detail.patient)
    cards.words_first()
    _cards(detail, me)
    following = detail.next_alert_id
    if following is not None:
        read_ahead(following, lambda app: app.worklist.read_ahead(following))


@dataclass(frozen=True)
class Filled:
    """How the right column is filled so that it ends about where the left one does."""

    n_values: int  # rows of the last values without scrolling
    n_drugs: int  # the same of the drugs
    moves_notes: bool  # the notes stand on the right
    moves_histogram: bool

    @classmethod
    def of(cls, detail: AlertDetail) -> "Filled":
        """Weigh the cards by their heights on a laptop: tables get rows, and what they leave the last cards fill."""
        if is_phone():
            return cls(case_view.MOST_ROWS, case_view.MOST_ROWS, moves_notes=False, moves_histogram=False)
        n_values, n_drugs = len(detail.patient.last_values), len(detail.patient.drugs_now)
        lines = [1 + len(line.finding) // _LETTERS for line in detail.reasons.lines]
        left = _LEFT + 24 * len(detail.record_after) + 33 * len(detail.neighbours) + _HISTOGRAM + _NOTES
        right = _RIGHT + sum(18 + 23 * n for n in lines)
        n_rows = (left - right) // case_view.ROW_PIXELS
        few = case_view.FEW_ROWS
        drugs = min(n_drugs, max(n_rows // 2, n_rows - n_values, few))
        values = min(n_values, max(n_rows - drugs, few))
        empty = (n_rows - values - drugs) * case_view.ROW_PIXELS
        # A card that changes sides shortens one column and fills the other.
        moves_notes = empty > _NOTES
        moves_histogram = moves_notes and empty - 2 * _NOTES > _HISTOGRAM
        return cls(values, drugs, moves_notes=moves_notes, moves_histogram=moves_histogram)


def _cards(detail: AlertDetail, me: Acting) -> None:
    """Draw what is known of the patient and why the decision is unusual, in two columns that end level."""
    row = detail.row
    name = f"alert-{row.alert_id}"
    if is_phone():
        # What there was to know, then why: similar days and notes can wait.
        top, right, left = st.container(), st.container(), st.container()
    else:
        left, right = st.columns(case_view.COLUMN_RATIO)
        top = left
    with top:
        case_view.timeline_card(detail.patient.timeline, row.kind, name)
        if detail.record_after:
            with cards.card("What the record shows afterwards", "up to 72 h after the snapshot", key="record-after"):
                st.markdown("  \n".join(texts.plain(sentence, 300) for sentence in detail.record_after))
    filled = Filled.of(detail)
    with left:
        neighbours(detail)
    with right:
        reasons(detail)
        _scores(detail)
        case_view.last_values(detail.patient, name, filled.n_values)
        case_view.drugs_now(detail.patient, name, filled.n_drugs)
    with right if filled.moves_histogram else left:
        _histograms(detail, detail.lowest_scaled_score)
    with right if filled.moves_notes else left:
        story_card(row.alert_id, me)


def _no_alert(title: str, sentence: str) -> None:
    with cards.header("Alert", "", simulated=application().site.simulated):
        pass
    with cards.empty_state(title, sentence, ":material/search_off:"):
        st.button("Back to worklist", key="to_worklist", type="primary", on_click=go, args=(_WORKLIST, {}))


def _bar(detail: AlertDetail, simulated: bool) -> None:
    """Draw the way back, the place in the list and the keys to its neighbours."""
    row, phone = detail.row, is_phone()
    with st.container(horizontal=True, vertical_alignment="center", key="alert-bar"):
        st.button(
            "Worklist",
            key="al_back",
            type="tertiary",
            icon=":material/arrow_back:",
            shortcut=None if phone else "B",
            on_click=_go_back,
        )
        st.markdown(
            cards.muted(f"rank {row.rank:,} among {texts.DECISION_TEXTS[row.decision].lower()}s"), width="content"
        )
        for label, key, other in (("Previous", "K", detail.previous_alert_id), ("Next", "J", detail.next_alert_id)):
            st.button(
                label,
                key=f"al_{label.lower()}",
                type="tertiary",
                shortcut=None if phone else key,
                disabled=other is None,
                on_click=_open,
                args=(other,),
            )
        st.space("stretch")
        st.button(
            "All alerts of this patient",
            key="al_patient",
            type="tertiary",
            on_click=_only_patient,
            args=(row.patient_id,),
        )
        keys_of("alert")
        if simulated:
            cards.simulated_badge()


def _go_back() -> None:
    go(_WORKLIST, st.query_params.to_dict())


def _open(alert_id: AlertId) -> None:
    forget()
    st.query_params["alert"] = str(alert_id)
    for name in ("after", "page"):
        # The page of the list may be another one now; the list finds the alert from its first page.
        st.query_params.pop(name, None)


def _title(detail: AlertDetail) -> None:
    row = detail.row
    about = texts.joined(
        texts.plain(row.patient_id, 24),
        texts.plain(texts.person(row.sex, row.age_years)),
        texts.plain(row.unit, 60),
        f"day {detail.day_of_stay} of stay",
        texts.day_time(row.snapshot_at),
    )
    with st.container(gap=None, key="alert-title"):
        st.markdown(
            f"# {texts.plain(row.decision_words)} :small[{cards.decision_badge_text(row.decision)}]", anchors=False
        )
        others, own = texts.reason(detail.compared, row.words, row.sex)
        st.markdown(f"**{texts.plain(others, 400)}** {cards.muted(texts.plain(own, 400))}  \n{cards.muted(about)}")


def _triage(detail: AlertDetail, me: Acting) -> None:
    """Draw where the decision stands and what can be done about it."""
    row = detail.row
    state = row.triage.state
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="alert-triage"):
        st.badge(texts.triage_status(row.triage), icon=texts.TRIAGE_ICONS[state], color=texts.TRIAGE_COLOURS[state])
        with st.container(gap="xsmall", width="content"):
            draw_bar({row.alert_id: row.triage.version}, state, me, name=BAR)
    draw_said()


def _only_patient(patient_id: str) -> None:
    """Narrow the worklist to a patient: in this session, never in an address."""
    st.session_state[PATIENT] = patient_id
    go(_WORKLIST, {"triage": "any"})


def _scores(detail: AlertDetail) -> None:
    row = detail.row
    with st.container(border=True, gap="xsmall", key="scores"):
        with st.container(horizontal=True, horizontal_alignment="distribute"):
            st.metric(
                "Scaled score",
                texts.score(row.scaled_score),
                help="The score made comparable between tasks by the task's past. Lists are ranked by it.",
                width="content",
            )
            st.metric(
                "Raw score",
                texts.score(row.score),
                help="Distance between what was done and what was expected, from 0 to about 2."
                if detail.surprise is None
                else "Chance of the other decision, by days scored like this one.",
                width="content",
            )
            st.metric(
                "Soft label",
                texts.score(detail.soft_label),
                help="What was expected: 1 = surely yes, −1 = surely no, 0 = nothing can be said.",
                width="content",
            )
            st.metric(
                "Support",
                texts.score(row.support),
                help="How strongly the patient's state is tied to past ones; 0 = isolated.",
                width="content",
            )
        st.markdown(f":small[{cards.muted(_score_sentence(detail))}]")


def _score_sentence(detail: AlertDetail) -> str:
    """Say in words how the score came about."""
    asked = detail.row.words.done
    share = texts.percent(detail.task_positive_share)
    expected = asked if detail.row.decision is Decision.OMISSION else f"not {asked}"
    how = ""
    if detail.disagreement is not None:
        score, support = texts.score(detail.row.score), texts.score(detail.row.support)
        how = f"Raw score {score} = disagreement {texts.score(detail.disagreement)} × support {support}. "
    elif detail.surprise is not None:
        days = 100 * detail.row.score
        # Nothing is certain: 99.6 is not 100, nor .4 none.
        about = "over 99" if days > 99 else "under 1" if days < 1 else f"about {days:.0f}"
        how = f"Of 100 days scored like this one, {about} had the other decision"
        times = f": {detail.surprise:,.0f} times the odds among all patients"
        how += f"{times if detail.surprise >= MENTIONED_SURPRISE else ''}. "
    usual = f"Expected: {expected}. On all past days together: {asked} on {share}."
    cut = " The decision window was cut short." if detail.row.window_cut else ""
    return texts.plain(how + usual + cut, 300)


@st.fragment
def _histograms(detail: AlertDetail, budget: float | None) -> None:
    """Draw where the alert stands among all instances of its task, by one of the scores where they differ."""
    row = detail.row
    total = sum(detail.scaled_histogram.counts)
    with cards.card(
        f"All {texts.plain(row.task_name, 40)} instances",
        f"{total:,}, counted by score (square-root scale)",
        key="histogram-card",
    ):
        shown = {"Scaled score": (detail.scaled_histogram, row.scaled_score, budget)}
        if detail.score_histogram != detail.scaled_histogram:
            shown["Raw score"] = (detail.score_histogram, row.score, None)
            st.segmented_control(
                "Score", list(shown), default="Scaled score", required=True, key=_SCORE, label_visibility="collapsed"
            )
        name = st.session_state.get(_SCORE)
        name = name if name in shown else "Scaled score"
        data, value, limit = shown[name]
        chart = histogram(data, value, row.decision, colours(), title=name, task_name=row.task_name, budget=limit)
        cards.figure(chart, f"histogram-{name.split()[0].lower()}", colours())
        task_link(row, detail.run.run_id)


page()
