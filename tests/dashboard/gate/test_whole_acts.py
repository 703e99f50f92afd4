"""An act is finished though the next key is pressed before or during it, and that one's run follows, in their order."""

from types import SimpleNamespace

import pytest
from streamlit import config
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner_utils import script_requests
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.testing.v1 import AppTest

from dashboard.gate.gate import SETTINGS
from dashboard.gate.whole_acts import finish_every_act, keep_acts_in_order

MOMENTS = ("before it begins", "while it is under way")


def page(moment: str) -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

    def act() -> None:
        context = get_script_run_ctx()
        assert context is not None
        assert context.script_requests is not None
        if moment == "while it is under way":
            context.script_requests.request_rerun(RerunData())
        st.session_state["acts"] = [*st.session_state.get("acts", []), "begun"]
        st.query_params["place"] = "next"
        st.session_state["acts"] = [*st.session_state["acts"], "ended"]

    st.button("Act", on_click=act)
    st.write("drawn")


@pytest.fixture
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit as it is, whatever ran in this process before."""
    call_back = SafeSessionState.on_script_will_rerun
    monkeypatch.setattr(SafeSessionState, "on_script_will_rerun", getattr(call_back, "__wrapped__", call_back))
    merge = script_requests._coalesce_widget_states
    monkeypatch.setattr(script_requests, "_coalesce_widget_states", getattr(merge, "__wrapped__", merge))


def acts_after_a_click(moment: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    shown = AppTest.from_function(page, args=(moment,)).run()
    read, waiting = ScriptCache.get_bytecode, [moment == "before it begins"]

    def read_and_wait(cache: ScriptCache, path: str) -> object:
        context = get_script_run_ctx()
        assert context is not None
        assert context.script_requests is not None
        if waiting.pop() if waiting else False:
            context.script_requests.request_rerun(RerunData())
        return read(cache, path)

    monkeypatch.setattr(ScriptCache, "get_bytecode", read_and_wait)
    ran = shown.button[0].click().run()
    assert not ran.exception
    assert ran.markdown[0].value == "drawn", "the next run follows"
    return list(ran.session_state.get("acts", []))


@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_act_is_finished_though_the_next_key_is_pressed(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    finish_every_act()
    finish_every_act()
    assert acts_after_a_click(moment, monkeypatch) == ["begun", "ended"]


@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize("moment", MOMENTS)
def test_streamlit_alone_would_drop_it(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ended" not in acts_after_a_click(moment, monkeypatch), "delete dashboard.gate.whole_acts: it guards nothing"


def acts_of_keys(keys: str) -> str:
    """Return the buttons in the order in which a busy server takes them, after a comment was changed too."""
    waiting = ScriptRequests()
    for key in keys:
        pressed = WidgetState(id=key, trigger_value=True)
        comment = WidgetState(id="comment", string_value=f"before {key}")
        waiting.request_rerun(RerunData(widget_states=WidgetStates(widgets=[pressed, comment])))
    taken = waiting.on_scriptrunner_yield()
    assert taken is not None
    states = taken.rerun_data.widget_states
    assert states is not None
    assert [one.string_value for one in states.widgets if one.id == "comment"] == [f"before {keys[-1]}"]
    return "".join(one.id for one in states.widgets if one.trigger_value)


@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize(
    ("keys", "acts"), [("3", "3"), ("3S", "3S"), ("13S", "13S"), ("313S", "13S"), ("3SS", "3S"), ("E3SL", "E3SL")]
)
def test_keys_that_wait_are_taken_in_the_order_in_which_they_were_pressed(keys: str, acts: str) -> None:
    keep_acts_in_order()
    keep_acts_in_order()
    assert acts_of_keys(keys) == acts


@pytest.mark.usefixtures("_plain")
def test_streamlit_alone_would_save_before_it_chose() -> None:
    assert acts_of_keys("3S") == "S3", "delete keep_acts_in_order: Streamlit keeps the order now"


class WaitingRunner:
    """A run that has not begun: stopped now, it would never do the act for which it was started."""

    def __init__(self) -> None:
        self.acts: list[str] = []

    def request_rerun(self, data: RerunData) -> bool:
        self.acts.append(data.query_string)
        return True

    def request_stop(self) -> None:
        self.acts.append("dropped")


@pytest.mark.parametrize(("fast", "acts"), [(SETTINGS["runner.fastReruns"], ["?next"]), (True, ["dropped"])])
def test_a_key_drops_no_act_that_has_not_begun(fast: bool, acts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "get_option", {"runner.fastReruns": fast}.get)
    runner = WaitingRunner()
    session = SimpleNamespace(
        _state=AppSessionState.APP_IS_RUNNING, _scriptrunner=runner, _create_scriptrunner=lambda _data: None
    )
    AppSession.request_rerun(session, ClientState(query_string="?next"))  # type: ignore[arg-type]
    assert runner.acts == acts, "with fast reruns, Streamlit would drop it: if not, delete the setting"
