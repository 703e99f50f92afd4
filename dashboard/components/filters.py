"""The worklist's filters on the page: each is registered here with its parameter of the address, words and widget.

A filter is also a field of `WorklistFilters` and, where it restricts the list, a condition in
`db.repositories.alerts`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from math import ceil, floor
from operator import attrgetter
from typing import Any, TypeAlias

import streamlit as st

from alertreview.alerts.models import FilterChoices, WorklistFilters
from alertreview.alerts.triage_models import Grouping, ListOrder, TriageChoice
from core.kinds import Kind, task_key
from core.vocabulary import Decision
from dashboard.texts import TRIAGE_CHOICES, shorten

BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
"""Alerts per patient-day that the slider offers."""
BLANK = WorklistFilters()
PAGE_DEFAULTS = WorklistFilters(triage=TriageChoice.OPEN, grouping=Grouping.ORDER_GROUP)
"""What the page shows when its address says nothing."""
DEFAULT_BUDGET = PAGE_DEFAULTS.alerts_per_patient_day
ALL = "All"
DECISIONS = {ALL: None, "Omissions": Decision.OMISSION, "Commissions": Decision.COMMISSION}
KINDS = {ALL: None, **{kind.words.items.capitalize(): kind for kind in Kind}}
GROUPINGS = {
    Grouping.ORDER_GROUP: "Order group of a patient-day",
    Grouping.ALERT: "Alert",
    Grouping.PATIENT_DAY: "Patient-day",
    Grouping.EPISODE: "Episode: same decision, same stay",
}
ORDERS = {ListOrder.RANK: "Most unusual first", ListOrder.NEWEST: "Newest day first"}
NEVER_WRITTEN = ""
"""Parameter of a filter that stays in the session."""

Changed: TypeAlias = Callable[[], None]
Read: TypeAlias = Callable[[str, FilterChoices], object]
"""Return the value that a parameter stands for; None for what the page does not offer."""


@dataclass(frozen=True)
class Widget:
    """How a filter is drawn."""

    key: str
    draw: Callable[[str, FilterChoices, Changed], object]
    shown: Callable[[WorklistFilters, FilterChoices], object]  # value of the widget for some filters
    taken: Callable[[Any, FilterChoices], Mapping[str, object]]  # fields that a value of the widget sets
    in_row: bool = False  # in the row of filters; otherwise behind the button "More"


@dataclass(frozen=True)
class PageFilter:
    """A field of `WorklistFilters` as the page and its address know it."""

    name: str
    param: str
    read: Read
    write: Callable[[Any], str] = str
    hides: str = ""  # what hides alerts, inside a sentence; empty for what hides none
    undo: str = ""  # button that clears it
    widget: Widget | None = None  # None if another filter's widget sets it, or it is drawn elsewhere on the page

    @property
    def default(self) -> object:
        """Value that the address leaves out."""
        return getattr(PAGE_DEFAULTS, self.name)

    def is_used(self, filters: WorklistFilters) -> bool:
        """Return whether it hides alerts now."""
        return bool(self.hides) and getattr(filters, self.name) != getattr(BLANK, self.name)


def nearest_budget(text: str | None) -> float:
    """Return the offered budget nearest to what the address says."""
    try:
        wanted = float(text) if text else DEFAULT_BUDGET
    except ValueError:
        wanted = DEFAULT_BUDGET
    return min(BUDGETS, key=lambda offered: abs(offered - wanted)) if wanted == wanted else DEFAULT_BUDGET


def score_ends(choices: FilterChoices) -> tuple[float, float] | None:
    """Return the ends of the slider over the scaled scores, in hundredths; None when there is nothing to choose."""
    if choices.scores is None:
        return None
    low, high = floor(choices.scores[0] * 100) / 100, ceil(choices.scores[1] * 100) / 100
    return (low, high) if low < high else None


def _word(words: type[StrEnum]) -> Read:
    return lambda text, _: words(text) if text in set(words) else None


def _is_kind(value: object, choices: FilterChoices) -> bool:
    """Return whether the kind filter offers a value: labels only where the import has label files."""
    return value is not Kind.LABEL or any(key.startswith(task_key(Kind.LABEL, "")) for key, _ in choices.tasks)


def _kind(text: str, choices: FilterChoices) -> Kind | None:
    kind = next((each for each in Kind if each.value == text), None)
    return kind if _is_kind(kind, choices) else None


def _day(text: str, choices: FilterChoices) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if choices.days and choices.days[0] <= day <= choices.days[1] else None


def _score(text: str, choices: FilterChoices) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    ends = score_ends(choices)
    return value if ends and ends[0] < value < ends[1] else None


def _plain(key: str, name: str, draw: Callable[[str, FilterChoices, Changed], object], **more: Any) -> Widget:
    """Return a widget whose value is the field's."""
    blank = getattr(BLANK, name)
    return Widget(key, draw, lambda f, _: getattr(f, name), lambda value, _: {name: value or blank}, **more)


def _typed(key: str, name: str, draw: Callable[[str, FilterChoices, Changed], object], **more: Any) -> Widget:
    """Return a widget for a typed text."""
    return Widget(key, draw, lambda f, _: getattr(f, name), lambda text, _: {name: (text or "").strip()}, **more)


def _segments(
    key: str,
    name: str,
    label: str,
    words: Mapping[str, object],
    offered: Callable[[object, FilterChoices], bool] = lambda value, choices: True,
) -> Widget:
    """Return a widget that offers words for the field's values."""
    word_of = {value: word for word, value in words.items()}
    return Widget(
        key,
        lambda key, choices, changed: st.segmented_control(
            label,
            [word for word, value in words.items() if offered(value, choices)],
            key=key,
            on_change=changed,
            required=True,
        ),
        lambda filters, _: word_of[getattr(filters, name)],
        lambda word, _: {name: words[word or ALL]},
        in_row=True,
    )


def _draw_unit(key: str, choices: FilterChoices, changed: Changed) -> None:
    def word(unit: str) -> str:
        return shorten(unit, 40) or "All units"

    st.selectbox("Unit", ["", *choices.units], key=key, on_change=changed, width=148, format_func=word)


def _draw_triage(key: str, _: FilterChoices, changed: Changed) -> None:
    word = TRIAGE_CHOICES.__getitem__
    st.selectbox("Triage", list(TriageChoice), key=key, on_change=changed, width=118, format_func=word)


def _draw_find(key: str, _: FilterChoices, changed: Changed) -> None:
    st.text_input(
        "Search labs, drugs, patients",
        key=key,
        on_change=changed,
        placeholder="Heparin, patient ID",
        max_chars=60,
        help="Part of a lab or drug name, or a full patient identifier. Identifiers never enter addresses or links.",
    )


def _draw_task(key: str, choices: FilterChoices, changed: Changed) -> None:
    names = dict(choices.tasks)

    def word(task_key: str) -> str:
        return shorten(names.get(task_key, ""), 60) or "All tasks"

    st.selectbox("Task", ["", *names], key=key, on_change=changed, format_func=word)


def _draw_days(key: str, choices: FilterChoices, changed: Changed) -> None:
    if choices.days:
        st.date_input(
            "Days",
            key=key,
            min_value=choices.days[0],
            max_value=choices.days[1],
            on_change=changed,
            format="DD.MM.YYYY",
            width=222,
            help="First and last day of the patient states; empty shows all days.",
        )


def _days_shown(filters: WorklistFilters, choices: FilterChoices) -> tuple[date, ...]:
    if choices.days is None or (filters.first_day is None and filters.last_day is None):
        return ()
    return (filters.first_day or choices.days[0], filters.last_day or choices.days[1])


def _days_taken(days: tuple[date, ...] | None, choices: FilterChoices) -> dict[str, object]:
    """Return the days; a range that covers everything is no restriction, half a range is not one yet."""
    if choices.days is None or (days is not None and len(days) == 1):
        return {}
    first, last = (None, None) if not days or tuple(days) == choices.days else days
    return {"first_day": first, "last_day": last}


def _draw_scores(key: str, choices: FilterChoices, changed: Changed) -> None:
    if ends := score_ends(choices):
        st.slider("Scaled score", *ends, key=key, step=0.01, on_change=changed)


def _scores_shown(filters: WorklistFilters, choices: FilterChoices) -> tuple[float, float]:
    low_end, high_end = score_ends(choices) or (0.0, 0.0)
    low = filters.lowest_score if filters.lowest_score is not None else low_end
    high = filters.highest_score if filters.highest_score is not None else high_end
    return (low, high) if low <= high else (low_end, high_end)


def _scores_taken(scores: tuple[float, float], choices: FilterChoices) -> dict[str, object]:
    low_end, high_end = score_ends(choices) or (0.0, 0.0)
    low, high = scores
    return {"lowest_score": low if low > low_end else None, "highest_score": high if high < high_end else None}


def _draw_patient(key: str, _: FilterChoices, changed: Changed) -> None:
    st.text_input(
        "Patient identifier",
        key=key,
        max_chars=80,
        on_change=changed,
        help="Stays in this window: it is never part of the address, a link or a saved view.",
    )


def _draw_grouping(key: str, _: FilterChoices, changed: Changed) -> None:
    st.selectbox("One line per", list(GROUPINGS), key=key, on_change=changed, format_func=GROUPINGS.__getitem__)


def _draw_order(key: str, _: FilterChoices, changed: Changed) -> None:
    st.selectbox("Order", list(ORDERS), key=key, on_change=changed, format_func=ORDERS.__getitem__)


def _draw_cut(key: str, _: FilterChoices, changed: Changed) -> None:
    st.toggle(
        "Include incomplete windows",
        key=key,
        on_change=changed,
        help="Decision windows that discharge, death or the end of the data cut short.",
    )


_VALUE = attrgetter("value")
FILTERS = (
    PageFilter(
        "decision",
        "decision",
        _word(Decision),
        _VALUE,
        "the decision",
        "Show omissions and commissions",
        _segments("f_decision", "decision", "Decision", DECISIONS),
    ),
    PageFilter(
        "kind",
        "kind",
        _kind,
        _VALUE,
        "the kind",
        "Show all kinds",
        _segments("f_kind", "kind", "Kind", KINDS, _is_kind),
    ),
    PageFilter(
        "unit",
        "unit",
        lambda text, choices: text if text in choices.units else None,
        hides="the unit",
        undo="Show all units",
        widget=_plain("f_unit", "unit", _draw_unit, in_row=True),
    ),
    PageFilter(
        "triage",
        "triage",
        _word(TriageChoice),
        _VALUE,
        "the triage state",
        "Show any triage state",
        _plain("f_triage", "triage", _draw_triage, in_row=True),
    ),
    PageFilter(
        "first_day",
        "from",
        _day,
        date.isoformat,
        "the first day",
        "Show earlier days",
        Widget("f_days", _draw_days, _days_shown, _days_taken, in_row=True),
    ),
    PageFilter("last_day", "to", _day, date.isoformat, "the last day", "Show later days"),
    PageFilter(
        "text",
        "find",
        lambda text, _: text,
        hides="the search",
        undo="Clear the search",
        widget=_typed("f_find", "text", _draw_find, in_row=True),
    ),
    PageFilter("alerts_per_patient_day", "budget", lambda text, _: nearest_budget(text), "{:g}".format),
    PageFilter(
        "task_key",
        "task",
        lambda text, choices: text if text in dict(choices.tasks) else None,
        hides="the task",
        undo="Show all tasks",
        widget=_plain("f_task", "task_key", _draw_task),
    ),
    PageFilter(
        "lowest_score",
        "least",
        _score,
        "{:g}".format,
        "the lowest score",
        "Show lower scores",
        Widget("f_scores", _draw_scores, _scores_shown, _scores_taken),
    ),
    PageFilter("highest_score", "most", _score, "{:g}".format, "the highest score", "Show higher scores"),
    PageFilter(
        "patient_id",
        NEVER_WRITTEN,
        lambda _, __: None,
        hides="the patient",
        undo="Show all patients",
        widget=_typed("f_patient", "patient_id", _draw_patient),
    ),
    PageFilter("grouping", "group", _word(Grouping), _VALUE, widget=_plain("f_group", "grouping", _draw_grouping)),
    PageFilter("order", "order", _word(ListOrder), _VALUE, widget=_plain("f_order", "order", _draw_order)),
    PageFilter(
        "include_cut_windows",
        "cut",
        lambda text, _: text == "1",
        lambda _: "1",
        "the filter on incomplete windows",
        "Show incomplete windows",
        _plain("f_cut", "include_cut_windows", _draw_cut),
    ),
)
"""In the order of the page."""
