"""What is the same wherever somebody answers: the keys, and how sure one is."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.vocabulary import Answer, Certainty
from dashboard import texts

ANSWER_KEYS = {Answer.USUAL: "1", Answer.UNUSUAL: "2", Answer.RELEVANT: "3", Answer.CANNOT_JUDGE: "0"}


def certainty(key: str, changed: Callable[..., None], args: tuple[Any, ...]) -> None:
    """Draw the choice of certain and not certain; the session state holds it under the key, `changed` keeps it."""
    st.segmented_control(
        "Certainty",
        list(Certainty),
        key=key,
        format_func=lambda one: texts.CERTAINTY_TEXTS[one],
        label_visibility="collapsed",
        on_change=changed,
        args=args,
    )
