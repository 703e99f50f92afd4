"""Alert: one decision in question and everything that explains why it is unusual."""

import pandas as pd
import streamlit as st

from alertreview.read_models import AlertDetail
from core.errors import NotFoundError, RefusedError
from core.vocabulary import Decision, Kind
from dashboard.components import cards, links, texts
from dashboard.components.charts_bars import features
from dashboard.components.charts_histogram import histogram
from dashboard.components.charts_timeline import DESKTOP, PHONE, timeline
from dashboard.context import acting_person, application, colours, is_phone


def page() -> None:
    """Draw the page."""
    app = application()
    latest = app.run()
    if latest is None:
        cards.nothing_published(app.simulated)
        return
    run = app.run(links.whole_number(st.query_params.get("run"))) or latest
    filters = links.filters_from(st.query_params.to_dict(), app.filter_choices(run.run_id), run.run_id)
    alert_id = links.whole_number(st.query_params.get("alert"))
    if alert_id is None:
        _no_alert("No alert is named in this address", "Open one from the worklist.")
        return
    try:
        person = acting_person()
        detail = app.alert(alert_id, filters, person.person_id if person else None)
    except NotFoundError as error:
        _no_alert("This alert is not here", texts.plain(str(error), 400))
        return
    except RefusedError as error:
        _no_alert("Judge it first", texts.plain(str(error), 400))
        return
    with st.container(gap="xsmall"):
        _bar(detail, app.simulated)
        _title(detail)
    left, right = st.columns([8, 5])
    with left:
        _timeline_card(detail)
    with right:
        _scores(detail)
        _histograms(detail, app.worklist(filters, limit=1).lowest_scaled_score)
    left, right = st.columns([8, 5])
    with left, cards.card("Nearest past instances", texts.plain(_neighbour_line(detail)), height="stretch"):
        _neighbours(detail)
    with right, cards.card("Features that made them near", "share of the similarity", height="stretch"):
        if detail.near_features:
            cards.figure(features(detail.near_features, colours()), "features", colours())
        else:
            st.markdown(cards.muted("No feature stands out."))
    with cards.card("What the record shows afterwards", "up to 72 h after the snapshot"):
        sentences = detail.record_after or ("Nothing about this decision is in the record after the snapshot.",)
        st.markdown("  \n".join(texts.plain(sentence, 300) for sentence in sentences))


def _no_alert(title: str, sentence: str) -> None:
    with cards.empty_state(title, sentence, ":material/search_off:"):
        st.button("To the worklist", key="to_worklist", type="primary", on_click=_go_to_worklist)
    if st.session_state.pop("go_to_worklist", False):
        st.switch_page("views/worklist.py")


def _go_to_worklist() -> None:
    st.session_state["go_to_worklist"] = True


def _bar(detail: AlertDetail, simulated: bool) -> None:
    """Draw the way back, the place in the list and the keys to its neighbours."""
    row, phone = detail.row, is_phone()
    with st.container(horizontal=True, vertical_alignment="center", key="alert-bar"):
        if st.button(
            "Worklist", key="al_back", type="tertiary", icon=":material/arrow_back:", shortcut=None if phone else "B"
        ):
            st.switch_page("views/worklist.py", query_params=st.query_params.to_dict())
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
        if simulated:
            cards.simulated_badge()


def _open(alert_id: int) -> None:
    st.query_params["alert"] = str(alert_id)
    for name in ("after", "page"):
        # The page of the list may be another one now; the list finds the alert from its first page.
        st.query_params.pop(name, None)


def _title(detail: AlertDetail) -> None:
    row = detail.row
    about = texts.joined(
        texts.plain(row.patient_id, 24),
        texts.plain(texts.person(row.sex, row.age_years)),
        texts.plain(row.unit, 40),
        f"day {detail.day_of_stay} of stay",
        texts.day_time(row.snapshot_at),
    )
    with st.container(gap=None):
        st.markdown(
            f"# {texts.plain(row.decision_words)} :small[{cards.decision_badge_text(row.decision)}]", anchors=False
        )
        reason = texts.plain(texts.reason(detail.n_neighbours_decided, detail.n_neighbours, row.kind))
        st.markdown(f"{reason} {cards.muted(about)}")


def _timeline_card(detail: AlertDetail) -> None:
    phone = is_phone()
    second = "band = usual range here" if phone else "band = central 90% of past values here, ▲ above, ▼ below"
    with cards.card("Patient time line", second, height="stretch"):
        chart = timeline(
            detail.timeline, detail.row.decision, detail.row.kind, colours(), size=PHONE if phone else DESKTOP
        )
        cards.figure(chart, "timeline", colours())


def _scores(detail: AlertDetail) -> None:
    row = detail.row
    with st.container(border=True, gap="xsmall", key="scores"):
        with st.container(horizontal=True, horizontal_alignment="distribute"):
            st.metric(
                "Scaled score",
                texts.score(row.scaled_score),
                help="The score made comparable between tasks by what the past instances of this task scored.",
                width="content",
            )
            st.metric(
                "Raw score",
                texts.score(row.score),
                help="Distance between what was done and what was expected, from 0 to about 2.",
                width="content",
            )
            st.metric(
                "Soft label",
                texts.score(detail.soft_label).replace("-", "−"),
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
    asked = "ordered" if detail.row.kind is Kind.LAB_ORDER else "given"
    share = texts.percent(detail.task_positive_share)
    expected = asked if detail.row.decision is Decision.OMISSION else f"not {asked}"
    return texts.plain(f"Expected: {expected}. In all past instances of this task it was {asked} in {share}.", 200)


def _histograms(detail: AlertDetail, budget: float | None) -> None:
    row = detail.row
    total = sum(detail.scaled_histogram.counts)
    with cards.card(
        f"All {texts.plain(row.task_name, 40)} instances", f"{total:,}, counted by score", height="stretch"
    ):
        for data, value, name, limit in (
            (detail.scaled_histogram, row.scaled_score, "Scaled score", budget),
            (detail.score_histogram, row.score, "Raw score", None),
        ):
            chart = histogram(data, value, row.decision, colours(), title=name, task_name=row.task_name, budget=limit)
            cards.figure(chart, f"histogram-{name.split()[0].lower()}", colours())


def _neighbour_line(detail: AlertDetail) -> str:
    if not detail.neighbours:
        return ""
    verb = "had the order" if detail.row.kind is Kind.LAB_ORDER else "were given it"
    return (
        f"{detail.n_neighbours_decided:,} of {detail.n_neighbours:,} {verb}, the nearest {len(detail.neighbours)} shown"
    )


def _neighbours(detail: AlertDetail) -> None:
    if not detail.neighbours:
        st.markdown(cards.muted("No similar past instance is stored for this alert."))
        return
    verb = "Ordered" if detail.row.kind is Kind.LAB_ORDER else "Given"
    rows = [
        {
            "Patient": texts.shorten(neighbour.patient_id, 24),
            "Day": texts.day(neighbour.snapshot_at),
            "Similarity": neighbour.similarity,
            "After": _after(verb, neighbour.decided, neighbour.hours_to_decision),
        }
        for neighbour in detail.neighbours
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height="content",
        key="neighbours",
        column_config={
            "Similarity": st.column_config.ProgressColumn(min_value=0.0, max_value=1.0, format="%.2f", color="gray"),
            "After": st.column_config.TextColumn(f"In the next {detail.window_hours:.0f} h"),
        },
        alt="Nearest past instances with their similarity and what was decided",
    )


def _after(verb: str, decided: bool, hours: float | None) -> str:
    if not decided:
        return f"Not {verb.lower()}"
    return f"{verb}, {texts.hours(hours)} later" if hours is not None else verb


page()
