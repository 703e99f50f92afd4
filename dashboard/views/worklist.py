"""Worklist: the alerts of a run, most unusual first, with a preview of the selected one."""

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from alertreview.read_models import AlertRow, FilterChoices, RunView, WorklistFilters, WorklistPage
from core.errors import RefusedError
from dashboard.components import cards, links, texts
from dashboard.components.charts_histogram import histogram
from dashboard.components.worklist_filters import (
    TRAIL,
    TYPED,
    Place,
    apply,
    draw_budget,
    draw_cut_windows,
    draw_filters,
    kept_place,
    move,
    place,
)
from dashboard.context import acting_person, application, colours, is_phone, shown_errors

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

    def address(self, at: Place) -> dict[str, str]:
        """Return the parameters of this list's address at a place in it."""
        return {**links.params_of(self.filters, self.choices, latest_run=self.latest_run), **at.params()}


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
    at = place()
    found = app.worklist(filters, after=at.after or None, limit=PAGE_SIZE)
    _budget_card(listing, found)
    if found.rows:
        _list(listing, found, at)
    else:
        _empty(listing, found)


@st.fragment
def _list(listing: Listing, found: WorklistPage, at: Place) -> None:
    """Draw rows and preview; moving in the list reruns only this part, everything that filters reruns the page."""
    with shown_errors():
        shown_after = at.after
        at = place()
        if at.after != shown_after:
            found = application().worklist(listing.filters, after=at.after or None, limit=PAGE_SIZE)
        row = next((row for row in found.rows if row.alert_id == at.alert), found.rows[0])
        if is_phone():
            _grid(found, row)
            _preview(listing, found, row, at)
            return
        left, right = st.columns([9, 4])
        with left:
            _grid(found, row)
            _pager(found, row, at)
        with right:
            _preview(listing, found, row, at)


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


def _grid(found: WorklistPage, selected: AlertRow) -> None:
    """Draw the rows; the selected alert is known by its id, never by its position alone."""
    ids = [row.alert_id for row in found.rows]
    # Another list is another grid: a kept grid would keep its selected position and mean another alert by it.
    key = f"grid-{abs(hash(tuple(ids)))}"
    position = ids.index(selected.alert_id)
    st.session_state[SHOWN] = (key, ids, found.next_cursor)
    st.session_state[key] = {"selection": {"rows": [position], "columns": [], "cells": []}}
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
        selection_default={"selection": {"rows": [position]}},
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


def _clicked() -> None:
    """Read which alert was clicked from the very rows that were shown."""
    key, ids, _ = st.session_state[SHOWN]
    rows = st.session_state[key]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        move(replace(kept_place(), alert=ids[rows[0]]))


def _pager(found: WorklistPage, selected: AlertRow, at: Place) -> None:
    first = (at.page - 1) * PAGE_SIZE + 1
    ids = [row.alert_id for row in found.rows]
    start = selected.alert_id == ids[0] and at.page == 1
    end = selected.alert_id == ids[-1] and found.next_cursor is None
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="pager"):
        st.markdown(cards.muted(f"{first:,}–{first + len(ids) - 1:,} of {found.n_within_budget:,}"), width="content")
        with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
            st.button("Previous", key="wl_previous", type="tertiary", shortcut="K", disabled=start, on_click=_previous)
            st.button("Next", key="wl_next", type="tertiary", shortcut="J", disabled=end, on_click=_next)


def _position(ids: list[int]) -> int:
    """Position of the selected alert among the rows that were shown."""
    alert = kept_place().alert
    return ids.index(alert) if alert in ids else 0


def _next() -> None:
    """Select the next alert, on the next page after the last row."""
    _, ids, cursor = st.session_state[SHOWN]
    at, position = kept_place(), _position(ids)
    if position + 1 < len(ids):
        move(replace(at, alert=ids[position + 1]))
    elif cursor is not None and cursor != at.after:
        st.session_state.setdefault(TRAIL, []).append((at.after, ids[-1]))
        move(Place(after=cursor, page=at.page + 1))


def _previous() -> None:
    """Select the alert before, on the page before ahead of the first row."""
    _, ids, _ = st.session_state[SHOWN]
    at, position = kept_place(), _position(ids)
    if position > 0:
        move(replace(at, alert=ids[position - 1]))
    elif at.page > 1:
        trail = st.session_state.get(TRAIL) or [("", None)]
        after, last_id = trail.pop()
        move(Place(after=after, page=at.page - 1 if after else 1, alert=last_id))


def _preview(listing: Listing, found: WorklistPage, row: AlertRow, at: Place) -> None:
    """Draw the card of the selected alert."""
    person = acting_person()
    try:
        detail = application().alert(row.alert_id, listing.filters, person.person_id if person else None)
    except RefusedError as error:
        st.info(texts.plain(str(error), 400), icon=":material/visibility_off:")
        return
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
            st.switch_page("views/alert.py", query_params=listing.address(replace(at, alert=row.alert_id)))


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
