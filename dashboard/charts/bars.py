"""Bars: alerts by unit, states of cases."""

from collections.abc import Sequence

from core.vocabulary import CaseState
from dashboard.charts.base import Chart, Json, axis, bare_axis, layout, note, safe
from dashboard.charts.palette import Palette
from dashboard.texts import CASE_TEXTS, plural, shorten


def alerts_by_unit(rows: Sequence[tuple[str, int, int]], colours: Palette) -> Chart:
    """Return stacked bars of (unit, omissions, commissions), most alerts first."""
    units = [safe(unit, 28) for unit, _, _ in rows]
    longest = max((a + b for _, a, b in rows), default=1)
    figure: Json = {
        "data": [
            _stack(units, [a for _, a, _ in rows], "Omissions", colours.omission, colours.page, longest),
            {
                **_stack(units, [b for _, _, b in rows], "Commissions", colours.commission, colours.page, longest),
            },
        ],
        "layout": layout(
            colours,
            34 + 32 * len(rows),
            margin={"t": 30},
            barmode="stack",
            bargap=0.42,
            xaxis=bare_axis(range=[0, longest * 1.02]),
            yaxis=_axis_of_names(colours),
            # From the right edge, which is always there: on a phone the names of the units take half of the width.
            annotations=[
                _key("■ Omission", colours.omission_text, -96),
                _key("▨ Commission", colours.commission_text, 0),
            ],
        ),
    }
    figure["data"][1]["marker"]["pattern"] = {  # type: ignore[index]
        "shape": "/",
        "fillmode": "overlay",
        "fgcolor": colours.page,
        "size": 7,
        "solidity": 0.12,
    }
    parts = [f"{shorten(unit, 40)}: {plural(a, 'omission')}, {plural(b, 'commission')}" for unit, a, b in rows]
    return Chart(figure, "Alerts by unit. " + "; ".join(parts) + ".")


def _key(words: str, colour: str, shift: int) -> Json:
    return note(words, 1, 1, colour, xref="paper", yref="paper", xanchor="right", yanchor="bottom", xshift=shift)


def _stack(units: list[str], values: list[int], name: str, colour: str, inside: str, longest: int) -> Json:
    """Return one colour of the stack; a number that would not fit in its bar is left to the hover text."""
    return {
        "type": "bar",
        "orientation": "h",
        "y": units,
        "x": values,
        "name": name,
        "text": [f"{value:,}" if value >= 0.04 * longest else "" for value in values],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"size": 12, "color": inside},
        "marker": {"color": colour, "line": {"color": inside, "width": 1}},
        "hovertemplate": f"%{{y}}: %{{x:,}} {name.lower()}<extra></extra>",
    }


def case_states(states: dict[CaseState, int], colours: Palette) -> Chart:
    """Return one stacked bar with the states of a study's cases."""
    paints = {
        CaseState.MAJORITY: (colours.accent, colours.page),
        CaseState.ADJUDICATED: (colours.ink, colours.page),
        CaseState.DISPUTED: (colours.attention, colours.page),
        CaseState.UNDETERMINED: (colours.bars_strong, colours.page),
        CaseState.OPEN: (colours.bars_faint, colours.text),
    }
    total = sum(states.values()) or 1
    shown = [state for state in paints if states.get(state)]
    data: list[Json] = [
        {
            "type": "bar",
            "orientation": "h",
            "y": [""],
            "x": [states[state]],
            "name": CASE_TEXTS[state],
            "text": [f"{states[state]:,}" if states[state] >= 0.03 * total else ""],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "textfont": {"size": 13, "color": paints[state][1]},
            "marker": {"color": paints[state][0], "line": {"color": colours.page, "width": 2}},
            "hovertemplate": f"{CASE_TEXTS[state]}: %{{x:,}}<extra></extra>",
        }
        for state in shown
    ]
    figure: Json = {
        "data": data,
        "layout": layout(
            colours,
            64,
            margin={"l": 0, "r": 0, "t": 0, "b": 30},
            barmode="stack",
            bargap=0.05,
            xaxis=bare_axis(range=[0, total]),
            yaxis=bare_axis(),
            showlegend=True,
            legend={
                "orientation": "h",
                "x": 0,
                "y": -0.1,
                "yanchor": "top",
                "traceorder": "normal",
                "itemclick": False,
                "itemdoubleclick": False,
                "font": {"size": 13, "color": colours.text},
            },
        ),
    }
    parts = ", ".join(f"{CASE_TEXTS[state].lower()} {states[state]:,}" for state in shown)
    return Chart(figure, f"Cases by state, {total if shown else 0:,} in all: {parts or 'none'}.")


def _axis_of_names(colours: Palette) -> Json:
    """Return the axis of lines that have names, the first one at the top."""
    font = {"size": 13, "color": colours.text}
    return axis(colours, autorange="reversed", showline=False, ticks="", ticklabelstandoff=6, tickfont=font)
