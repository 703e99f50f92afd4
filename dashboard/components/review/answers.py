"""Widgets that every page with answers shares."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.vocabulary import Answer, Certainty
from dashboard import texts

WITH_REASON = "” or “".join(answer.words for answer in Answer if answer.needs_reason)


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
