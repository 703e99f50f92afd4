"""The keys of each page: the one table from which the list behind the key `?` is drawn."""

import streamlit as st

from core.vocabulary import Answer
from dashboard.context import is_phone

_ANSWERS = tuple(
    ((one.key,), f"{one.words}; say why in the comment" if one.needs_reason else one.words) for one in Answer
)
_RANGE = (("T",), "range of the time line: 24 h, 72 h, 7 days, the stay")
_TRIAGE = (
    (("V",), "in review"),
    (("A",), "actioned"),
    (("D",), "dismiss; then 1, 2 or 3 for the reason, Esc to go back"),
    (("S",), "snooze; then 1, 2 or 3 for how long, Esc to go back"),
    (("N",), "open again"),
    (("1", "2", "3"), ""),
    (("Escape",), ""),
    (("Z",), "undo the last act"),
)
KEYS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "review": (
        *_ANSWERS,
        (("S", "Ctrl+Enter"), "save and go on; Ctrl+Enter also from the comment"),
        (("E",), "certain, not certain, or neither"),
        (("Z",), "undo: take back the choice, the case put aside last, or the answer saved last"),
        (("L",), "put aside for later"),
        _RANGE,
        (("Left", "Right"), "previous and next case, without saving"),
    ),
    "alert": (
        (("B",), "back to the worklist"),
        (("K", "J"), "previous and next alert"),
        *_TRIAGE,
        _RANGE,
        (("0",), "on an open panel 1, 2, 3 and 0 answer the first card, unless a triage question is open"),
        (("U",), "undo the answer of an open panel"),
        (("P",), "next case of the panel"),
    ),
    "worklist": (
        (("K", "J"), "previous and next line"),
        (("O",), "open the selected alert"),
        *_TRIAGE,
    ),
    "adjudication": (
        *_ANSWERS,
        (("S",), "settle and go on; needs a reason"),
        _RANGE,
    ),
}
"""By page: shortcuts of buttons as Streamlit spells them, and what they do; without words where another row says it."""
_JUDGING = frozenset({"review", "adjudication"})
"""Pages that the key `/` does not leave, see page.js."""
_SPELLED = {"Left": "←", "Right": "→"}


def keys_of(page: str) -> None:
    """Draw the list of a page's keys; `?` opens it, see page.js."""
    if is_phone():
        return
    rows = [
        f"- **{' '.join(_SPELLED.get(one, one) for one in shortcuts)}** {words}"
        for shortcuts, words in KEYS[page]
        if words
    ]
    with st.popover("Keys", type="tertiary", key="page-keys", help="Press ? to open"):
        search = [] if page in _JUDGING else ["- **/** search labs, drugs and patients in the worklist"]
        st.markdown("\n".join([*rows, *search, "- **?** this list"]))
