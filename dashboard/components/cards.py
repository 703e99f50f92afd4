"""Pieces that all pages share: header, card, tile, badge, figure, empty state."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import pandas as pd
import streamlit as st

from core.vocabulary import OPEN_PANEL_LIMIT, Decision
from dashboard.charts.base import CONFIG, Chart
from dashboard.charts.palette import Palette
from dashboard.charts.raw_figure import RawFigure
from dashboard.context import command, is_phone
from dashboard.texts import DECISION_COLOURS, DECISION_ICONS, DECISION_TEXTS, number, plain

if TYPE_CHECKING:
    from streamlit.elements.lib.column_types import ColumnConfig

_PAUSE_SECONDS = 0.025


def muted(text: str) -> str:
    """Return Markdown for second lines; the text must already be safe."""
    return f":gray[{text}]" if text else ""


@contextmanager
def header(title: str, line: str, *, simulated: bool, key: str = "header") -> Iterator[None]:
    """Draw the title with a muted line, both safe Markdown; the body of the block is on the right, before the badge."""
    if is_phone():
        # Beside buttons a long title would be broken in the middle of a word.
        _title(title, line)
    with st.container(horizontal=True, vertical_alignment="center", key=key):
        if not is_phone():
            _title(title, line)
        yield
        if simulated:
            simulated_badge()


def _title(title: str, line: str) -> None:
    with st.container(gap=None, width="stretch"):
        st.markdown(f"# {title}", anchors=False)
        if line:
            st.markdown(f":small[:gray[{line}]]")


def simulated_badge() -> None:
    """Draw the badge that all data are simulated."""
    st.badge("Simulated data", icon=":material/science:", color="gray")


@contextmanager
def card(
    title: str = "",
    second: str = "",
    *,
    height: Literal["content", "stretch"] | int = "content",
    key: str | None = None,
) -> Iterator[None]:
    """Draw a bordered box with a bold title and a muted second part on the same line (safe Markdown)."""
    with st.container(border=True, gap="xsmall", height=height, key=key):
        if title:
            st.markdown(f"**{title}** {muted(second)}".rstrip())
        yield


def tiles(rows: Sequence[tuple[str, str, str]]) -> None:
    """Draw tiles side by side, two by two on a phone."""
    with st.grid(len(rows), min_column_width=150):
        for label, value, line in rows:
            tile(label, value, line)


def tile(label: str, value: str, line: str) -> None:
    """Draw one figure with its name above and a muted line below (safe Markdown)."""
    with st.container(border=True, gap="xsmall", height="stretch"):
        st.metric(label, value)
        st.markdown(f":small[:gray[{line}]]")


def decision_badge_text(decision: Decision) -> str:
    """Return the same badge for inside a line of Markdown."""
    return f":{DECISION_COLOURS[decision]}-badge[{DECISION_ICONS[decision]} {DECISION_TEXTS[decision]}]"


def open_panel_limit(more: str = "") -> None:
    """Draw the limits of an open panel's figures, and one more sentence."""
    st.warning(f"{plain(OPEN_PANEL_LIMIT, 400)} {plain(more)}".strip(), icon=":material/visibility:")


def check_line(name: str, sentence: str, effect: str, *, is_red: bool) -> None:
    """Draw a check of an import that is not as it should be, and what it would do to the alerts."""
    colour, word = ("red", "red") if is_red else ("orange", "yellow")
    st.markdown(f":{colour}-badge[{word}] **{plain(name, 40)}** {plain(f'{sentence} {effect}', 400)}")


def words_first() -> None:
    """Send what was drawn so far to the browser before figures follow.

    It shows at once everything that comes at once, and takes long for the figures of an alert: without a pause the
    title waits for them. The pause costs nothing, because the figures wait for the browser anyway.
    """
    time.sleep(_PAUSE_SECONDS)


def figure(chart: Chart | None, name: str, colours: Palette, *, otherwise: str = "") -> None:
    """Draw a chart with its sentence for screen readers, or say why there is none."""
    if chart is None:
        st.markdown(muted(plain(otherwise, 400)))
        return
    st.plotly_chart(
        RawFigure(chart.figure), theme=None, config=CONFIG, key=f"{name}-{colours.mode}", alt=chart.alt, width="stretch"
    )


MOST_ROWS = 14
ROW_PIXELS = 33


def counts(frame: pd.DataFrame) -> "dict[str, ColumnConfig]":
    """Return column settings that format integers as on all pages: 11,901."""
    whole = [str(name) for name in frame.columns if pd.api.types.is_integer_dtype(frame[name])]
    return {name: st.column_config.NumberColumn(format="%,d") for name in whole}


def table(
    frame: pd.DataFrame,
    *,
    key: str,
    alt: str,
    columns: "Mapping[str, ColumnConfig] | None" = None,
) -> None:
    """Draw a table, in full up to a screenful and scrolled beyond it.

    `alt` is for screen readers, which cannot read it. A phone has no room for the columns: there each row is lines of
    text, as in the worklist.
    """
    if is_phone():
        _rows_in_words(frame, key)
        return
    st.dataframe(
        frame,
        key=key,
        hide_index=True,
        height="content" if len(frame) <= MOST_ROWS else (MOST_ROWS + 1) * ROW_PIXELS + 2,
        column_config={**counts(frame), **(columns or {})},
        alt=alt,
    )
    if len(frame) > MOST_ROWS:  # its scroll bar shows only where one points
        st.markdown(f":small[{muted(f'{len(frame):,} rows; the table scrolls')}]")


def _rows_in_words(frame: pd.DataFrame, key: str) -> None:
    """Draw rows as the value of their first column, and below it the others with their names."""
    lines = [f"**{first}**  \n:small[{muted(others)}]" for first, others in _words_of(frame)]
    with st.container(key=key, gap="xsmall"):
        # One piece of text: of hundreds of tasks each would take its time.
        st.markdown("\n\n".join(lines[:MOST_ROWS]))
        if len(lines) > MOST_ROWS:  # no box to scroll in: keys do not reach text
            with st.expander(f"{len(lines) - MOST_ROWS} more"):
                st.markdown("\n\n".join(lines[MOST_ROWS:]))


def choice(frame: pd.DataFrame, *, key: str, label: str, on_change: Callable[[], None] | None = None) -> int | None:
    """Draw on a phone rows of which one may be chosen, with every column, and return the position of the chosen one."""
    words = _words_of(frame)
    height: Literal["content"] | int = "content" if len(words) <= MOST_ROWS else (MOST_ROWS + 1) * ROW_PIXELS
    with st.container(key=f"{key}-rows", gap="xsmall", height=height, border=False):
        return st.radio(
            label,
            range(len(words)),
            index=None,
            key=key,
            format_func=lambda place: words[place][0],
            captions=[others for _, others in words],
            label_visibility="collapsed",
            on_change=on_change,
        )


def _words_of(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return of each row the value of its first column, and the others with their names, as safe Markdown."""
    words = []
    for first, *others in frame.itertuples(index=False):
        named = ((str(name).strip(), _in_words(value)) for name, value in zip(frame.columns[1:], others, strict=True))
        said = " · ".join(f"{plain(name)} {plain(value, 300)}".strip() for name, value in named if value)
        words.append((plain(_in_words(first), 300), said))
    return words


def _in_words(value: object) -> str:
    if value is None or value is pd.NA:
        return ""
    if isinstance(value, float):
        return number(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).strip()


def facts(rows: Mapping[str, str], otherwise: str = "") -> None:
    """Draw names and values as two columns with thin lines (plain text, not Markdown)."""
    if not rows:
        st.markdown(muted(otherwise))
        return
    frame = pd.DataFrame(
        {"name": [plain(name) for name in rows], "value": [plain(value, 200) for value in rows.values()]}
    )
    st.table(frame, border="horizontal", hide_index=True, hide_header=True)


@contextmanager
def empty_state(title: str, sentence: str, icon: str = ":material/inbox:") -> Iterator[None]:
    """Draw a box that says what is missing and what to do; buttons drawn inside stand below the sentence."""
    with st.container(border=True, horizontal_alignment="center", key="empty-state"):
        st.space("medium")
        st.markdown(icon, width="content")
        st.markdown(f"**{title}**", width="content", text_alignment="center")
        st.markdown(muted(sentence), width="content", text_alignment="center")
        with st.container(horizontal=True, horizontal_alignment="center"):
            yield
        st.space("medium")


def nothing_published(simulated: bool = False) -> None:
    """Draw how a site gets its first alerts."""
    with header("Nothing is scored yet", "This site has no published scoring run.", simulated=simulated):
        pass
    with empty_state(
        "No alerts yet",
        "Import records and score them; the pages fill by themselves.",
        ":material/inbox:",
    ):
        st.code(f"{command('import FOLDER')}\n{command('score')}", language=None, wrap_lines=True)
