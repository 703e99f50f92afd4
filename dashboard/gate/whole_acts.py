"""Let no act be broken off by the next key or click."""

import functools
from typing import Any

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.session_state import SessionState


def finish_every_act() -> None:
    """Have Streamlit finish the callback of a key or click before it turns to the next one.

    Left to itself it looks for the next one whenever a callback reads or writes the session's state, and drops the
    rest of the callback: of an answer and a save pressed in one go, the answer could be lost. Called again, this
    changes nothing.
    """
    run_callback = SessionState._run_callback_and_record_rerun  # noqa: SLF001 - Streamlit has no public way
    run_callback = getattr(run_callback, "__wrapped__", run_callback)

    @functools.wraps(run_callback)
    def finish(*given: Any) -> None:
        context: Any = get_script_run_ctx()
        runner = context.session_state._yield_callback.__self__  # noqa: SLF001 - as above
        runner._execing = False  # noqa: SLF001 - as above; only while it is set does the runner look
        try:
            run_callback(*given)
        finally:
            runner._execing = True  # noqa: SLF001 - as above

    SessionState._run_callback_and_record_rerun = finish  # type: ignore[method-assign, assignment]  # noqa: SLF001 - as above
