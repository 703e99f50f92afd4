"""Worklist: the alerts of a run, most unusual first, with a preview of the selected one."""

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from alertreview.read_models import AlertRow, FilterChoices, RunView, WorklistFilters, WorklistPage
from dashboard.components import cards, links, texts
from dashboard.components.charts_histogram import histogram
from dashboard.components.worklist_filters import TRAIL, TYPED, apply, draw_budget, draw_cut_windows, draw_filters
from dashboard.context import application, colours, is_phone, shown_errors

PAGE_SIZE = 13
SHOWN = "worklist_shown"
FILTER_WORDS = {
    "decision": ("the decision", "Show omissions and commissions"),
    "kind": ("the kind", "Show labs and drugs"),
    "unit": ("the unit", "Show all units"),
    "task_key": ("the task", "Show all tasks"),
    "text": ("the search", "Clear the search"),
    "include_cut_windows": ("the switch for cut windows", "Show cut windows"),
}


@dataclass(frozen=True)
class Listing:
    """What the list shows: the run, its filters and what the widgets offer."""

    run: RunView
    latest_run: int
    filters: WorklistFilters
    choices: FilterChoices

    def address(self, **more: object) -> dict[str, str]:
        """Parameters of this list's address, with page and alert kept or replaced."""
        kept = {name: st.query_params[name] for name in ("after", "page", "alert") if name in st.query_params}
        params = {**links.params_of(self.filters, self.choices, latest_run=self.latest_run), **kept}
        params |= {name: str(value) for name, value in more.items() if value not in {None, ""}}
        return {name: value for name, value in params.items() if more.get(name, "kept") not in {None, ""}}


def page() -> None:
    """Draw the page."""
    app = application()
    latest = app.run()
    if latest is None:
        cards.nothing_published(app.simulated)
        return
    run = app.run(links.whole_number(st.query_params.get("run"))) or latest
    choices = app.filter_choices(run.run_id)
    typed = st.session_state.get(TYPED, "")
    filters = links.filters_from(st.query_params.to_dict(), choices, run.run_id, typed)
    listing = Listing(run, latest.run_id, filters, choices)
    line = f"Run of {texts.day_time(run.published_at)} · triage is never used as a study label"
    if is_phone():
        with cards.header("Worklist", line, simulated=app.simulated):
            pass
        with st.expander("Filters"):
            draw_filters(filters, choices, latest.run_id)
            draw_cut_windows(filters, choices, latest.run_id)
    else:
        with cards.header("Worklist", line, simulated=app.simulated):
            draw_cut_windows(filters, choices, latest.run_id)
        draw_filters(filters, choices, latest.run_id)
    _list(listing)


@st.fragment
def _list(listing: Listing) -> None:
    """Draw budget, rows and preview; moving in the list reruns only this part."""
    with shown_errors():
        after = st.query_params.get("after") or None
        found = application().worklist(listing.filters, after=after, limit=PAGE_SIZE)
        _budget_card(listing, found)
        if not found.rows:
            _empty(listing, found)
            return
        if is_phone():
            _grid(listing, found)
            _preview(listing, found)
            return
        left, right = st.columns([9, 4])
        with left:
            _grid(listing, found)
            _pager(listing, found)
        with right:
            _preview(listing, found)


def _budget_card(listing: Listing, found: WorklistPage) -> None:
    lowest = found.lowest_scaled_score
    reach = f", scaled score {texts.score(lowest)} or more" if lowest is not None else ""
    sentence = (
        f"**{texts.plural(found.n_within_budget, 'alert')}** for "
        f"{texts.plural(found.n_patient_days, 'patient-day')}{reach}. "
    )
    about = cards.muted("The budget holds for omissions and for commissions, each; by rank they take turns.")
    with st.container(border=True, key="budget-card"):
        if is_phone():
            draw_budget(listing.filters, listing.choices, listing.latest_run)
            st.markdown(sentence)
            return
        slider, words = st.columns([4, 8], vertical_alignment="center", gap="large")
        with slider:
            draw_budget(listing.filters, listing.choices, listing.latest_run)
        words.markdown(sentence + about)


def _grid(listing: Listing, found: WorklistPage) -> None:
    """Draw the rows; the selected alert is known by its id, never by its position alone."""
    key = f"grid-{abs(hash((listing.filters, st.query_params.get('after'))))}-{len(found.rows)}"
    ids = [row.alert_id for row in found.rows]
    st.session_state[SHOWN] = (key, ids)
    place = ids.index(_selected(found).alert_id)
    st.session_state[key] = {"selection": {"rows": [place], "columns": [], "cells": []}}
    digits = texts.score_digits(row.scaled_score for row in found.rows)
    columns = {
        "rank": st.column_config.NumberColumn("#", width=36, help="Rank within omissions or commissions"),
        "decision": st.column_config.TextColumn("Decision in question", width=208),
        "type": st.column_config.MultiselectColumn(
            "Type", width=100, options=list(texts.DECISION_TEXTS.values()), color=["blue", "orange"]
        ),
        "score": st.column_config.ProgressColumn(
            "Scaled score",
            width=116,
            min_value=0.0,
            max_value=max(1.0, found.rows[0].scaled_score),
            format=f"%.{digits}f",
            color="gray",
        ),
        "patient": st.column_config.TextColumn("Patient", width=122),
        "unit": st.column_config.TextColumn("Unit", width=124),
        "day": st.column_config.TextColumn("Snapshot"),
    }
    shown = list(columns)
    if is_phone():
        shown = ["rank", "decision", "score"]
        columns["decision"] = st.column_config.TextColumn("Decision in question", width=196)
        columns["score"] = st.column_config.NumberColumn("Score", width=58, format=f"%.{digits}f")
    st.dataframe(
        _frame(found.rows),
        key=key,
        hide_index=True,
        height="content",
        column_order=shown,
        column_config=columns,
        on_select=_clicked,
        selection_mode="single-row-required",
        selection_default={"selection": {"rows": [place]}},
        alt=f"Worklist, {texts.plural(len(found.rows), 'alert')} on this page",
    )


def _frame(rows: tuple[AlertRow, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rank": [row.rank for row in rows],
            "decision": [texts.shorten(row.decision_words) for row in rows],
            "type": [[texts.DECISION_TEXTS[row.decision]] for row in rows],
            "score": [row.scaled_score for row in rows],
            "patient": [texts.patient_cell(row) for row in rows],
            "unit": [texts.shorten(row.unit, 40) for row in rows],
            "day": [texts.short_time(row.snapshot_at) for row in rows],
        }
    )


def _selected(found: WorklistPage) -> AlertRow:
    """Return the alert that the address names if it is on this page, else the first one."""
    wanted = links.whole_number(st.query_params.get("alert"))
    return next((row for row in found.rows if row.alert_id == wanted), found.rows[0])


def _clicked() -> None:
    """Read which alert was clicked from the very rows that were shown."""
    key, ids = st.session_state[SHOWN]
    rows = st.session_state[key]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        st.query_params["alert"] = str(ids[rows[0]])


def _pager(listing: Listing, found: WorklistPage) -> None:
    page_number = links.whole_number(st.query_params.get("page")) or 1
    first = (page_number - 1) * PAGE_SIZE + 1
    ids = [row.alert_id for row in found.rows]
    place = ids.index(_selected(found).alert_id)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="pager"):
        st.markdown(cards.muted(f"{first:,}–{first + len(ids) - 1:,} of {found.n_within_budget:,}"), width="content")
        with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
            start = place == 0 and page_number == 1
            end = place + 1 == len(ids) and found.next_cursor is None
            st.button(
                "Previous",
                key="wl_previous",
                type="tertiary",
                shortcut="K",
                disabled=start,
                on_click=_previous,
                args=(ids, place),
            )
            st.button(
                "Next", key="wl_next", type="tertiary", shortcut="J", disabled=end, on_click=_next,
                args=(ids, place, found.next_cursor),
            )  # fmt: skip


def _next(ids: list[int], place: int, cursor: str | None) -> None:
    """Select the next alert, on the next page after the last row."""
    if place + 1 < len(ids):
        st.query_params["alert"] = str(ids[place + 1])
    elif cursor is not None:
        trail = st.session_state.setdefault(TRAIL, [])
        trail.append((st.query_params.get("after", ""), ids[-1]))
        page_number = links.whole_number(st.query_params.get("page")) or 1
        st.query_params["after"] = cursor
        st.query_params["page"] = str(page_number + 1)
        st.query_params.pop("alert", None)


def _previous(ids: list[int], place: int) -> None:
    """Select the alert before, on the page before ahead of the first row."""
    if place > 0:
        st.query_params["alert"] = str(ids[place - 1])
        return
    trail = st.session_state.get(TRAIL) or [("", None)]
    after, last_id = trail.pop()
    page_number = links.whole_number(st.query_params.get("page")) or 2
    for name, value in (
        ("after", after),
        ("alert", str(last_id or "")),
        ("page", str(page_number - 1) if after else ""),
    ):
        if value:
            st.query_params[name] = value
        else:
            st.query_params.pop(name, None)


def _preview(listing: Listing, found: WorklistPage) -> None:
    """Draw the card of the selected alert."""
    row = _selected(found)
    detail = application().alert(row.alert_id, listing.filters)
    with st.container(border=True, gap="xsmall", key="preview"):
        st.markdown(cards.decision_badge_text(row.decision))
        st.markdown(f"### {texts.plain(row.decision_words)}", anchors=False)
        st.markdown(
            texts.plain(texts.reason(detail.n_neighbours_decided, detail.n_neighbours, row.kind))
            + "  \n"
            + cards.muted(
                texts.joined(
                    texts.plain(row.patient_id, 24),
                    texts.plain(texts.person(row.sex, row.age_years)),
                    texts.plain(row.unit, 40),
                    f"day {detail.day_of_stay} of stay",
                )
            )
        )
        chart = histogram(
            detail.scaled_histogram,
            row.scaled_score,
            row.decision,
            colours(),
            title="Scaled score",
            task_name=row.task_name,
            budget=found.lowest_scaled_score,
            height=200,
        )
        cards.figure(chart, "preview-histogram", colours())
        if st.button("Open alert", key="wl_open", type="primary", shortcut=None if is_phone() else "O"):
            st.switch_page("views/alert.py", query_params=listing.address(alert=row.alert_id))


def _empty(listing: Listing, found: WorklistPage) -> None:
    """Say which filter hides how many, with the button that undoes it."""
    hidden = {name: count for name, count in found.n_hidden_by_filter.items() if count and name in FILTER_WORDS}
    higher = links.next_budget(listing.filters)
    sentence = " ".join(
        f"Without {FILTER_WORDS[name][0]} {texts.plural(count, 'alert')} would be listed."
        for name, count in hidden.items()
    )
    with cards.empty_state(
        "No alert matches these filters" if hidden else "No alert within this budget",
        sentence or "No alert of this run lies within the budget.",
        ":material/filter_alt_off:",
    ):
        for position, name in enumerate(hidden):
            st.button(
                FILTER_WORDS[name][1],
                key=f"undo_{name}",
                type="primary" if position == 0 else "secondary",
                on_click=apply,
                args=(links.without(listing.filters, name), listing.choices, listing.latest_run),
            )
        if higher is not None and listing.run.n_alerts:
            st.button(
                f"Raise the budget to {higher:g}",
                key="raise_budget",
                on_click=apply,
                args=(replace(listing.filters, alerts_per_patient_day=higher), listing.choices, listing.latest_run),
            )


page()
