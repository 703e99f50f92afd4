"""Worklist: the alerts of a run, most unusual first, with a preview of the selected one."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pandas as pd
import streamlit as st

from alertreview.alerts.models import FilterChoices, WorklistFilters, WorklistLine, WorklistPage
from alertreview.alerts.triage_models import Grouping
from alertreview.scoring.models import RunView
from core.errors import NotFoundError, RefusedError
from core.vocabulary import Decision
from dashboard import texts
from dashboard.components import cards, links
from dashboard.components.alerts.triage_bar import draw_bar, draw_said, forget
from dashboard.components.filters import FILTERS
from dashboard.components.keys import keys_of
from dashboard.components.runs.shown_run import shown_run
from dashboard.components.worklist.budget import budget_card
from dashboard.components.worklist.bulk import bulk_bar, bulk_button
from dashboard.components.worklist.filters import draw_filters
from dashboard.components.worklist.header import header_tools
from dashboard.components.worklist.preview import preview
from dashboard.components.worklist.state import TRAIL, Place, apply, filters_now, kept_place, move, place
from dashboard.context import Acting, acting, application, go, has_arrived, is_phone, leave, read_ahead, shown_errors

if TYPE_CHECKING:
    from streamlit.elements.lib.column_types import ColumnConfig

PAGE_SIZE = 13
# Pixels: with their head and the buttons below them, the rows of a page fit on a screen of 800.
ROW_HEIGHT = 30
_LETTERS = 30  # of a decision, in its column
SHOWN = "worklist_shown"
# Session key of the first alert of the selected line, by which the grid knows it (a bare text here would be shown).
SELECTED = "worklist_selected"
FILTERS_BY_NAME = {one.name: one for one in FILTERS if one.hides}


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
    if has_arrived():
        forget()
    app = application()
    shown = shown_run(app)
    if shown is None:
        return
    run, me = shown.run, acting()
    choices = app.worklist.filter_choices(run.run_id, shown.scorer)
    filters = filters_now(run, choices, me)
    listing = Listing(run, shown.latest_id, filters, choices)
    line = f"Run of {texts.day_time(run.published_at)} · triage is never used as a study label"
    with cards.header("Worklist", line, simulated=app.site.simulated):
        header_tools(run, filters, choices, shown.latest_id)
        keys_of("worklist")
    if is_phone():
        with st.expander("Filters"):
            draw_filters(filters, choices, shown.latest_id)
    else:
        draw_filters(filters, choices, shown.latest_id)
    _patient_line(filters, choices, shown.latest_id)
    found = app.worklist.page(filters, after=place().after or None, limit=PAGE_SIZE)
    budget_card(filters, choices, shown.latest_id, found)
    _list(listing, [found])
    selected = st.session_state.get(SELECTED)
    if selected is not None:
        read_ahead(selected, lambda app: app.worklist.read_ahead(selected))


@st.fragment
def _list(listing: Listing, drawn: list[WorklistPage]) -> None:
    """Draw rows and preview; moving and triage rerun only this part, everything that filters reruns the page.

    `drawn` holds the page's own answer for the first run; after that the list is asked for again, because somebody may
    have moved in it or triaged.
    """
    with shown_errors():
        leave()
        at, me = place(), acting()
        found = drawn.pop() if drawn else application().worklist.page(listing.filters, at.after or None, PAGE_SIZE)
        if not found.lines and at.alert is None:
            draw_said()
            _empty(listing, found)
            return
        if is_phone():
            draw_said()
            _cards(listing, found, at)
            _pager(listing, found, None, at, me)
            bulk_bar(listing.filters, me)
            return
        line = _selected(listing, found, at)
        left, right = st.columns([9, 4])
        # The words of the selected alert are what a press is for: they go out first, the heavy table after them. A
        # click in between waits for the table, see page.js.
        with right:
            _preview(listing, found, line, at, me)
        with left:
            _grid(found, line, at, listing.filters.decision)
            _pager(listing, found, line, at, me)
            bulk_bar(listing.filters, me)


def _open(address: dict[str, str]) -> None:
    go("views/alert.py", address)


def _selected(listing: Listing, found: WorklistPage, at: Place) -> WorklistLine | None:
    """Return the line of the selected alert, on the page or not: that alert or none, never another one."""
    if at.alert is None:
        return found.lines[0]
    for line in found.lines:
        if any(member.alert_id == at.alert for member in line.members):
            return line
    try:
        return application().alert_lists.line(at.alert, listing.filters)
    except NotFoundError:
        return None


def _patient_line(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw that the list is one patient's, which no address shows."""
    if not filters.patient_id:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="patient-line"):
        st.markdown(f"Only patient **{texts.plain(filters.patient_id, 24)}**", width="content")
        st.button(
            "Show all patients",
            key="wl_all_patients",
            type="tertiary",
            on_click=apply,
            args=(links.without(filters, "patient_id"), choices, latest_run),
        )


def _grid(found: WorklistPage, selected: WorklistLine | None, at: Place, decision: Decision | None) -> None:
    """Draw the rows; the selected alert is known by its id, never by its position alone."""
    ids = [line.first.alert_id for line in found.lines]
    # Another list is another grid: a kept grid would keep its selected position and mean another alert by it.
    key = f"grid-{abs(hash(tuple(ids)))}"
    rows = [ids.index(selected.first.alert_id)] if selected and selected.first.alert_id in ids else []
    st.session_state[SHOWN] = (key, ids, found.next_cursor)
    if not ids:
        st.markdown(cards.muted("No alerts left in this list."))
        return
    st.session_state[key] = {"selection": {"rows": rows, "columns": [], "cells": []}}
    columns = _columns(found.lines, [decision] if decision else list(Decision))
    st.dataframe(
        _frame(found.lines, _first_line(at)),
        key=key,
        hide_index=True,
        height="content",
        row_height=ROW_HEIGHT,
        column_order=list(columns),
        column_config=columns,
        on_select=_clicked,
        # A click on any cell selects its row, and one on the mark in front of the row as well.
        selection_mode=("single-row-required" if rows else "single-row", "single-cell"),
        selection_default={"selection": {"rows": rows}},
        alt=f"Worklist, {texts.plural(len(ids), 'line')} on this page",
    )


def _cards(listing: Listing, found: WorklistPage, at: Place) -> None:
    """Draw the lines of a phone: two lines of text each, which a tap opens."""
    ids = [line.first.alert_id for line in found.lines]
    st.session_state[SHOWN] = ("", ids, found.next_cursor)
    digits = texts.score_digits(line.first.scaled_score for line in found.lines)
    if not ids:
        st.markdown(cards.muted("No alerts left in this list."))
    with st.container(gap="xxsmall"):
        for line in found.lines:
            row = line.first
            who = texts.joined(texts.plain(texts.patient_cell(row), 40), texts.plain(row.unit, 40))
            st.button(
                f"**{texts.score(row.scaled_score, digits)} {texts.plain(line.words)}**  \n{who}",
                key=f"wl-card-{row.alert_id}",
                icon=texts.DECISION_ICONS[row.decision],
                width="stretch",
                on_click=_open,
                args=(listing.address(replace(at, alert=row.alert_id)),),
            )


def _columns(lines: tuple[WorklistLine, ...], decisions: list[Decision]) -> "dict[str, ColumnConfig]":
    """Return the columns; each decision has its own column of scores, since they take turns and each falls alone."""
    digits = texts.score_digits(line.first.scaled_score for line in lines)
    highest = max(1.0, *(line.first.scaled_score for line in lines))
    config = st.column_config
    return {
        "place": config.NumberColumn("#", width=36, help="Position in this list; the alert page shows its rank"),
        "decision": config.TextColumn("Decision in question", width=196),
        **{
            one.value: config.ProgressColumn(
                texts.DECISION_TEXTS[one],
                width=98,
                min_value=0.0,
                max_value=highest,
                format=f"%.{digits}f",
                color=texts.DECISION_COLOURS[one],
                help=f"Scaled score of {one.value}s",
            )
            for one in decisions
        },
        "patient": config.TextColumn("Patient", width=112),
        "unit": config.TextColumn("Unit", width=114),
        "day": config.TextColumn("Snapshot", width=90),
        "triage": config.TextColumn("Triage", width=74),
    }


def _frame(lines: tuple[WorklistLine, ...], first: int) -> pd.DataFrame:
    """Return the cells, lines numbered as they stand here.

    Ranks have gaps wherever an alert is withheld, triaged or inside another line, and two lists in turns have each
    rank twice.
    """
    return pd.DataFrame(
        {
            "place": list(range(first, first + len(lines))),
            "decision": [texts.decision_line(line.words, _LETTERS) for line in lines],
            **{one.value: [_highest(line, one) for line in lines] for one in Decision},
            "score": [line.first.scaled_score for line in lines],
            "patient": [texts.patient_cell(line.first) for line in lines],
            "unit": [texts.shorten(line.first.unit, 18) for line in lines],
            "day": [texts.short_time(line.first.snapshot_at) for line in lines],
            "triage": [_standing(line) for line in lines],
        }
    )


def _highest(line: WorklistLine, decision: Decision) -> float | None:
    """Return the score of a line's first alert of a decision."""
    return next((one.scaled_score for one in line.members if one.decision is decision), None)


def _standing(line: WorklistLine) -> str:
    states = {member.triage.state for member in line.members}
    return texts.triage_status(line.first.triage) if len(states) == 1 else "Several states"


def _clicked() -> None:
    """Read which alert was clicked from the very rows that were shown."""
    key, ids, _ = st.session_state[SHOWN]
    chosen = st.session_state[key]["selection"]
    # A cell comes with the row that was selected before.
    rows = [row for row, _ in chosen["cells"]] or chosen["rows"]
    if rows and rows[0] < len(ids):
        forget()
        move(replace(kept_place(), alert=ids[rows[0]]))


def _first_line(at: Place) -> int:
    """Return the number of the first line on a page."""
    return (at.page - 1) * PAGE_SIZE + 1


def _pager(listing: Listing, found: WorklistPage, selected: WorklistLine | None, at: Place, me: Acting) -> None:
    first = _first_line(at)
    ids = [line.first.alert_id for line in found.lines]
    here = selected.first.alert_id if selected else None
    # On a phone nothing is selected, and the buttons turn pages.
    start = at.page == 1 and (is_phone() or (bool(ids) and here == ids[0]))
    end = not ids or (found.next_cursor is None and (is_phone() or here == ids[-1]))
    last = first + len(ids) - 1
    words = f"Lines {first:,}–{last:,}, {texts.plural(found.n_within_budget, 'alert')}"
    if listing.filters.grouping is Grouping.ALERT:
        words = f"{first:,}–{last:,} of {found.n_within_budget:,}"
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="pager"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
            st.markdown(cards.muted(words if ids else "No line"), width="content")
            bulk_button(listing.filters, found.n_within_budget, me)
        with st.container(horizontal=True, horizontal_alignment="right", gap="small", width="content"):
            back, on = (None, None) if is_phone() else ("K", "J")
            st.button("Previous", key="wl_previous", type="tertiary", shortcut=back, disabled=start, on_click=_previous)
            st.button("Next", key="wl_next", type="tertiary", shortcut=on, disabled=end, on_click=_next)


def _position(ids: list[int]) -> int:
    """Return the position of the selected line among those that were shown; -1 for an alert that is not among them."""
    alert = kept_place().alert
    if alert is None:
        return 0
    selected = st.session_state.get(SELECTED, alert)
    return ids.index(selected) if selected in ids else -1


def _next() -> None:
    """Select the next line, on the next page after the last row."""
    forget()
    _, ids, cursor = st.session_state[SHOWN]
    at, position = kept_place(), len(ids) - 1 if is_phone() else _position(ids)
    if position + 1 < len(ids):
        move(replace(at, alert=ids[position + 1]))
    elif cursor is not None and cursor != at.after:
        st.session_state.setdefault(TRAIL, []).append((at.after, ids[-1]))
        move(Place(after=cursor, page=at.page + 1))


def _previous() -> None:
    """Select the line before, on the page before ahead of the first row."""
    forget()
    _, ids, _ = st.session_state[SHOWN]
    at, position = kept_place(), 0 if is_phone() else _position(ids)
    if position > 0:
        move(replace(at, alert=ids[position - 1]))
    elif at.page > 1:
        trail = st.session_state.get(TRAIL) or [("", None)]
        after, last_id = trail.pop()
        move(Place(after=after, page=at.page - 1 if after else 1, alert=last_id))


def _after_triage() -> None:
    """Select the line after the triaged one; at the end of the page, the one before."""
    _, ids, cursor = st.session_state[SHOWN]
    at, position = kept_place(), _position(ids)
    if position + 1 < len(ids):
        move(replace(at, alert=ids[position + 1]))
    elif cursor is None and position > 0:
        move(replace(at, alert=ids[position - 1]))
    else:
        move(replace(at, alert=None))


def _preview(listing: Listing, found: WorklistPage, line: WorklistLine | None, at: Place, me: Acting) -> None:
    """Draw the card of the selected alert."""
    draw_said()
    if line is None:
        st.info("Alert not found. Choose another one.", icon=":material/search_off:")
        return
    st.session_state[SELECTED] = line.first.alert_id
    row = next((one for one in line.members if one.alert_id == at.alert), line.first)
    try:
        detail = application().worklist.preview(row.alert_id, me.person_id)
    except RefusedError as error:
        st.info(texts.plain(str(error), 400), icon=":material/visibility_off:")
        return
    if (
        line.first.alert_id not in {one.first.alert_id for one in found.lines}
        and at.page == 1
        and not found.next_cursor
    ):
        st.info("Not in this list: the filters hide this alert.", icon=":material/filter_alt:")
    preview(
        line,
        row,
        detail,
        found.lowest_scores.get(row.decision),
        lambda alert: listing.address(replace(at, alert=alert)),
        _open,
        lambda: draw_bar(
            {member.alert_id: member.triage.version for member in line.members},
            row.triage.state,
            me,
            name="preview",
            then=_after_triage,
            narrow=True,
        ),
    )


def _empty(listing: Listing, found: WorklistPage) -> None:
    """Draw which filter hides how many, with a button that undoes it."""
    hidden = {name: count for name, count in found.n_hidden_by_filter.items() if count and name in FILTERS_BY_NAME}
    higher = links.next_budget(listing.filters)
    sentence = " ".join(
        f"Without {FILTERS_BY_NAME[name].hides} {texts.plural(count, 'alert')} would be listed."
        for name, count in hidden.items()
    )
    with cards.empty_state(
        "No alert matches these filters" if hidden else "No alert within this budget",
        sentence or "No alert of this run lies within the budget.",
        ":material/filter_alt_off:",
    ):
        # Pressed inside the fragment, a button reruns the fragment alone; the filter row above must follow as well.
        for position, name in enumerate(hidden):
            kind: Literal["primary", "secondary"] = "primary" if position == 0 else "secondary"
            if st.button(FILTERS_BY_NAME[name].undo, key=f"undo_{name}", type=kind):
                apply(links.without(listing.filters, name), listing.choices, listing.latest_run)
                st.rerun()
        if (
            higher is not None
            and listing.run.n_alerts
            and st.button(f"Raise the budget to {higher:g}", key="raise_budget")
        ):
            wider = replace(listing.filters, alerts_per_patient_day=higher)
            apply(wider, listing.choices, listing.latest_run)
            st.rerun()


page()
