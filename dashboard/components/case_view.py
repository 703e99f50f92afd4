"""The view of a case that Review, the alert page and adjudication share: background, time line, last values, drugs."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from alertreview.alerts.models import CaseView, LastValue, Timeline
from alertreview.review.adjudication import AdjudicationCase
from alertreview.review.models import BlindedCase
from core.kinds import Kind
from dashboard import texts
from dashboard.charts.timeline import DESKTOP, PHONE, RANGES, USUAL_RANGE, Size, timeline
from dashboard.components import cards
from dashboard.context import colours, is_phone

_RANGE = "case_range"
_MISSING_WORDS = {"Admitted for": "reason for admission"}
MOST_ROWS = 12
FEW_ROWS = 7
"""Where the answers leave less room: both tables are to be seen at once."""
ROW_PIXELS = 29
_UNBROKEN = 12  # letters
LONGEST_EARLIER = 11
"""Letters that the column of earlier values holds on a laptop."""
COLUMN_RATIO = (7, 5)
"""Of the time line and the tables beside it."""


def title(case: BlindedCase | AdjudicationCase, label: str = "") -> None:
    """Draw the decision in question as a sentence in past tense, and of whom it is."""
    with st.container(gap=None):
        st.markdown(f"# {texts.plain(case.decision_words)}", anchors=False)
        about = texts.joined(
            f"Case {texts.plain(label, 12)}" if label else "",
            texts.plain(texts.person(case.sex, case.age_years)),
            texts.plain(case.unit, 60),
        )
        at, window = case.patient.timeline.snapshot_at, case.patient.timeline.window_hours
        st.markdown(
            f"in the {texts.hours(window)} after {at:%H:%M} on {texts.plain(texts.short_day(at))}, "
            f"day {case.day_of_stay} of stay. {cards.muted(about)}"
        )


def background(patient: CaseView) -> None:
    """Draw in one line why the patient is here and what else is known, and in words what is not."""
    parts = [f"**{texts.plain(what)}** {texts.plain(words, 300)}" for what, words in patient.background]
    for what, missing in (("None known", patient.unknown), ("Not in the source", patient.absent)):
        if missing:
            named = ", ".join(_MISSING_WORDS.get(each, each.lower()) for each in missing)
            parts.append(cards.muted(f"{what}: {named}"))
    if parts:
        with st.container(key="case-background"):
            st.markdown(":small[" + texts.joined(*parts) + "]")


@st.fragment
def timeline_card(data: Timeline, kind: Kind, name: str, size: Size = DESKTOP, *, is_keyed: bool = True) -> None:
    """Draw the time line with its range, which stays as it is chosen from case to case.

    The name is another one for each patient on the page; the key T changes the range of one time line on a page.
    """
    phone = is_phone()
    # On a phone two words share the row with the range; in a narrow window the title has the bands too and takes a row.
    head = "case-title" if phone else "case-head"
    with st.container(border=True, gap="xsmall", height="stretch", key=f"case-{name}"):
        chosen = st.session_state.get(_RANGE, USUAL_RANGE)
        # The range stands beside the title: a row of its own would push the chart under the answers.
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key=f"{head}-{name}"):
            bands = cards.muted(bands_in_words(data))
            st.markdown("**Time line**" if phone else f"**Time line** {bands}", width="stretch")
            key = f"range-{name}"
            st.session_state[key] = chosen
            st.segmented_control(
                "Range", list(RANGES), key=key, label_visibility="collapsed", on_change=_choose, args=(key,)
            )
            if is_keyed and not phone:
                st.button("Range", key=f"next-{key}", type="tertiary", shortcut="T", on_click=_next_range)
        chart = timeline(data, kind, colours(), size=PHONE if phone else size, back=chosen)
        cards.figure(chart, f"timeline-{name}", colours())
        if phone and bands:
            st.markdown(f":small[{bands}]")


def _choose(key: str) -> None:
    # A second click on the chosen range would choose none.
    st.session_state[_RANGE] = st.session_state[key] or st.session_state.get(_RANGE, USUAL_RANGE)


def _next_range() -> None:
    ranges = list(RANGES)
    place = ranges.index(st.session_state.get(_RANGE, USUAL_RANGE))
    st.session_state[_RANGE] = ranges[(place + 1) % len(ranges)]


def bands_in_words(data: Timeline) -> str:
    """Return what the bands of a time line mean, of those that it has."""
    has_range = any(lab.low is not None or lab.high is not None for lab in data.labs)
    has_usual = any(lab.usual_low is not None for lab in data.labs)
    bands = ", ".join(["green: reference range"] * has_range + ["grey: central 90% here"] * has_usual)
    return "; ".join(filter(None, (bands, "no reference range, no flags" if data.labs and not has_range else "")))


def last_values(patient: CaseView, name: str, most_rows: int = MOST_ROWS) -> None:
    """Draw the card of all last values: a screenful of rows, the others by scrolling, or a tap on a phone."""
    with cards.card("Last values", f"before {patient.timeline.snapshot_at:%H:%M}", key=f"values-{name}"):
        if not patient.last_values:
            st.markdown(cards.muted("Nothing was measured before the snapshot."))
            return
        frame = pd.DataFrame([_row(value) for value in patient.last_values])
        if is_phone():
            _phone_tables(frame[["Lab", "Value"]], most_rows)
            return
        more = [each for each in ("Reference", "Earlier") if frame[each].any()]
        st.dataframe(
            frame,
            hide_index=True,
            height="content" if len(frame) <= most_rows else _height(most_rows),
            row_height=ROW_PIXELS,
            key=f"last-values-{name}",
            column_order=["Lab", "Value", "Age", *more],
            column_config={column: st.column_config.TextColumn(width=width) for column, width in _widths(more)},
            alt=f"Last values of {texts.plural(len(frame), 'lab or vital sign', 'labs and vital signs')} "
            "with unit, flag, age, reference range and the values before",
        )


def _row(value: LastValue) -> dict[str, object]:
    if value.value is not None:
        flag = {"high": "↑ high", "low": "↓ low"}.get(value.flag, "")
        words = " ".join(part for part in (texts.number(value.value), texts.unit(value.unit), flag) if part)
    else:
        words = texts.shorten(value.text, 40 if is_phone() else 20) or "not in this stay"
    before = value.trend[:-1] if value.value is not None else value.trend
    age = "" if value.hours_old is None else texts.hours(value.hours_old)
    if is_phone() and age:
        words = f"{words}, {age.replace(' ', texts.NO_BREAK)}"  # A third column would not fit.
    return {
        "Lab": texts.shorten(value.name, 30),
        "Value": words,
        "Earlier": _earlier(before),
        "Reference": _reference(value.low, value.high),
        "Age": age,
    }


def _phone_tables(frame: pd.DataFrame, most_rows: int) -> None:
    _phone_table(frame[:most_rows])
    if len(frame) > most_rows:
        with st.expander(f"{len(frame) - most_rows} more"):
            _phone_table(frame[most_rows:])


def _phone_table(frame: pd.DataFrame) -> None:
    """Draw a table of which a phone cuts nothing: cells take several lines, but of two columns a time takes one."""
    longest = _UNBROKEN if len(frame.columns) == 2 else 0

    def cell(text: str) -> str:
        words = texts.plain(text)
        return words.replace(" ", texts.NO_BREAK) if len(text) <= longest else words

    st.table(frame.map(cell), hide_index=True)


def _earlier(values: Sequence[float]) -> str:
    """Return the last two values, or the last one where two would be cut at the end of the column."""
    words = " → ".join(texts.number(each) for each in values[-2:])
    return words if len(words) <= LONGEST_EARLIER else texts.number(values[-1])


def _widths(more: list[str]) -> list[tuple[str, int]]:
    """Return the widths of the columns but the last, which takes what is left: no name of a usual lab is cut."""
    lab = 145 if "Reference" in more else 217  # without ranges, names have their room
    return list({"Lab": lab, "Value": 124, "Age": 58, "Reference": 72}.items())[: 2 + len(more)]


def _height(n_rows: int) -> int:
    # Half a row more: it shows that there are others.
    return round((n_rows + 1.5) * ROW_PIXELS)


def _reference(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{texts.number(low)}–{texts.number(high)}"
    if low is not None:
        return f"from {texts.number(low)}"
    return "" if high is None else f"to {texts.number(high)}"


def drugs_now(patient: CaseView, name: str, most_rows: int = MOST_ROWS) -> None:
    """Draw the card of the drugs that run at the snapshot, with dose, route and how long."""
    at = patient.timeline.snapshot_at
    running = patient.drugs_now
    missing = " and ".join(what for what in ("dose", "route") if not any(getattr(one, what) for one in running))
    line = f"running at {at:%H:%M}" + (f", {missing} not recorded" if running and missing else "")
    with cards.card("Drugs now", line, height="stretch", key=f"drugs-{name}"):
        if not patient.drugs_now:
            st.markdown(cards.muted("No drug order runs at the snapshot."))
            return
        # Beside a dose there is less room for the name, and the start must not be pushed out of sight.
        longest = 26 if any(drug.dose for drug in running) else 40
        rows = [
            {
                "Drug": texts.shorten(drug.name, 40 if is_phone() else longest),
                "Dose": texts.shorten(texts.unit(drug.dose), 24 if is_phone() else 20),
                "Route": texts.shorten(drug.route, 16),
                "Since": texts.short_time(drug.periods[-1][0]),
            }
            for drug in patient.drugs_now
        ]
        frame = pd.DataFrame(rows)
        if is_phone():
            _phone_tables(frame[[each for each in frame if frame[each].any()]], most_rows)
            return
        st.dataframe(
            frame,
            hide_index=True,
            height="content" if len(frame) <= most_rows else _height(most_rows),
            row_height=ROW_PIXELS,
            key=f"drugs-now-{name}",
            column_order=["Drug", *(each for each in ("Dose", "Route") if frame[each].any()), "Since"],
            alt=f"{texts.plural(len(rows), 'drug')} running at the snapshot with dose, route and start",
        )
