"""Let no act be broken off by the next key or click."""

import functools
from typing import Any

from streamlit.runtime.state.safe_session_state import SafeSessionState


def finish_every_act() -> None:
    """Have Streamlit finish the callback of a key or click before it turns to the next one.

    Left to itself it looks for the next one before a callback and whenever one reads or writes the session's state,
    and drops the rest: of an answer and a save pressed in one go, the answer could be lost. Called again, this changes
    nothing.
    """
    call_back = getattr(SafeSessionState.on_script_will_rerun, "__wrapped__", SafeSessionState.on_script_will_rerun)

    @functools.wraps(call_back)
    def finish(state: SafeSessionState, *given: Any, **named: Any) -> None:
        runner: Any = getattr(state._yield_callback, "__self__")  # noqa: B009, SLF001 - Streamlit has no public way
        runner._execing = False  # noqa: SLF001 - as above; only while it is set does the runner look
        try:
            call_back(state, *given, **named)
        finally:
            runner._execing = True  # noqa: SLF001 - as above

    SafeSessionState.on_script_will_rerun = finish  # type: ignore[method-assign, assignment]
