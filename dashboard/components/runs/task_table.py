"""The table of the task catalogue with its filters."""

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from alertreview.records.catalogue import CatalogueEntry
from alertreview.scoring.task_catalogue import CatalogueView
from dashboard import texts
from dashboard.components import cards
from dashboard.context import is_phone

if TYPE_CHECKING:
    from streamlit.elements.lib.column_types import ColumnConfig

ALL, ASKED, OFF = "All", "Asked about", "Off"


@dataclass(frozen=True)
class Row:
    """A task as words: what it is, whether it is asked about and why not, and where it is muted."""

    entry: CatalogueEntry
    kind: str
    group: str  # order group; empty if it is the only task of it
    members: str
    why_not: str
    muted: str


def filtered(view: CatalogueView) -> list[Row]:
    """Draw the filters and return the rows that pass them."""
    with st.container(horizontal=True, vertical_alignment="top"):
        state = st.segmented_control("Show", [ALL, ASKED, OFF], default=ALL, required=True, key="tasks_state")
        find = st.text_input("Search tasks", key="tasks_find", placeholder="for example troponin").strip().lower()
    names = {entry.task_key: entry.name for entry in view.entries}
    n_in_group = _n_in_group(view)
    rows = [_row(entry, names, n_in_group, view) for entry in view.entries]
    return [
        row
        for row in rows
        if state == ALL or (state == OFF) is bool(row.entry.off)
        if find in f"{row.entry.name} {row.kind} {row.group} {row.members} {row.why_not}".lower()
    ]


def clear() -> None:
    """Show every task again."""
    st.session_state["tasks_state"], st.session_state["tasks_find"] = ALL, ""


def draw(rows: list[Row], view: CatalogueView) -> None:
    """Draw the rows, with how many of all they are."""
    n_asked = sum(not entry.off for entry in view.entries)
    shown = texts.plural(len(view.entries), "task")
    words = f"{len(rows)} of {shown} shown; {n_asked} asked about, {len(view.entries) - n_asked} off."
    st.markdown(cards.muted(words))
    frame = pd.DataFrame(
        {
            "Task": [texts.shorten(row.entry.name) for row in rows],
            "Kind": [row.kind for row in rows],
            "Asked about": ["no" if row.entry.off else "yes" for row in rows],
            "Why not": [texts.shorten(row.why_not, 200) for row in rows],
            "Muted": [texts.shorten(row.muted, 200) for row in rows],
            "From the next import on": [texts.shorten(from_next_import(row.entry), 200) for row in rows],
            "Group": [texts.shorten(row.group) for row in rows],
            "Decisions": [row.entry.n_positive for row in rows],
            "Share": [100 * row.entry.rate for row in rows],
            "Members": [texts.shorten(row.members, 200) for row in rows],
            "Last reason": [texts.shorten(view.reasons.get(row.entry.task_key, ""), 200) for row in rows],
        }
    )
    # A column in which no task of the catalogue says anything is left out.
    said = {
        "Why not": any(entry.off for entry in view.entries),
        "Muted": any(mute_words(entry, view.today) for entry in view.entries),
        "From the next import on": any(from_next_import(entry) for entry in view.entries),
        "Group": any(n > 1 for group, n in _n_in_group(view).items() if group),
        "Members": any(entry.members for entry in view.entries),
        "Last reason": bool(view.reasons),
    }
    frame = frame.drop(columns=[name for name, is_said in said.items() if not is_said])
    alt = f"{texts.plural(len(rows), 'task')} of the last import: {words}"
    key = f"tasks_{abs(hash((*frame.columns, *(row.entry.task_key for row in rows))))}"
    columns: dict[str, ColumnConfig] = {"Share": st.column_config.NumberColumn(format="%.1f%%")}
    if is_phone():
        frame["Share"] = [texts.percent(row.entry.rate, 1) for row in rows]
    cards.table(frame, key=key, alt=alt, columns=columns)
    n_instances = view.entries[0].n_instances
    st.markdown(
        cards.muted(
            f"Decisions: in how many of the {n_instances:,} instances of the import, past and recent, it was done. "
            "Share: in what part of them."
        )
    )


def _n_in_group(view: CatalogueView) -> Counter[str]:
    return Counter(entry.order_group for entry in view.entries)


def _row(entry: CatalogueEntry, names: dict[str, str], n_in_group: Counter[str], view: CatalogueView) -> Row:
    members = ", ".join(names[member] for member in entry.members)
    kind = "panel" if entry.members else entry.kind.words.item
    group = entry.order_group if n_in_group[entry.order_group] > 1 else ""
    return Row(entry, kind, group, members, entry.off, mute_words(entry, view.today))


def from_next_import(entry: CatalogueEntry) -> str:
    """Return what people decided about name and group that the import does not follow yet; empty if nothing."""
    name = f"Named {entry.next_name}." if entry.next_name != entry.name else ""
    is_moved = not entry.members and entry.next_group != entry.order_group
    group = f"In the group {entry.next_group}." if entry.next_group else "In no group."
    return f"{name} {group if is_moved else ''}".strip()


def mute_words(entry: CatalogueEntry, today: date) -> str:
    """Return where and until when a task is muted; empty if it is not, and the day on which a mute has ended."""
    until = entry.setting.muted_until
    if until is None:
        return ""
    return entry.setting.mute_words(today) or f"ended on {until.day} {until:%b %Y}"
