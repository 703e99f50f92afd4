"""Let no act be broken off by the next key or click, nor be done after it."""

import functools
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner_utils import script_requests
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


def keep_acts_in_order() -> None:
    """Have Streamlit do the acts that come while it is busy in the order in which they came.

    It merges what waits into one message, the newest first: of ``3`` and ``S`` pressed in one go, S would come first,
    and find no answer to save. What is pressed twice counts where it was pressed last. Called again, this changes
    nothing.
    """
    merge = script_requests._coalesce_widget_states  # noqa: SLF001 - Streamlit has no public way
    merge = getattr(merge, "__wrapped__", merge)

    @functools.wraps(merge)
    def merge_in_order(old: WidgetStates | None, new: WidgetStates | None) -> WidgetStates | None:
        merged = merge(old, new)
        if merged is None:
            return None
        last = {pressed: i for i, pressed in enumerate([*_pressed(old), *_pressed(new)])}
        return WidgetStates(widgets=sorted(merged.widgets, key=lambda widget: last.get(widget.id, -1)))

    script_requests._coalesce_widget_states = merge_in_order  # type: ignore[assignment]  # noqa: SLF001 - as above


def _pressed(states: WidgetStates | None) -> list[str]:
    return [widget.id for widget in states.widgets if widget.trigger_value] if states else []
