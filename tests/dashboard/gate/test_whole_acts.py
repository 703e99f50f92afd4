"""An act under way is finished when the next key is pressed, and that one's act follows."""

import pytest
from streamlit.runtime.state.session_state import SessionState
from streamlit.testing.v1 import AppTest

from dashboard.gate.whole_acts import finish_every_act


def page() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

    def act() -> None:
        context = get_script_run_ctx()
        assert context is not None
        assert context.script_requests is not None
        context.script_requests.request_rerun(RerunData())
        st.session_state["acts"] = [*st.session_state.get("acts", []), "begun"]
        st.query_params["place"] = "next"
        st.session_state["acts"] = [*st.session_state["acts"], "ended"]

    st.button("Act", on_click=act)
    st.write("drawn")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit as it is, whatever ran in this process before."""
    run = SessionState._run_callback_and_record_rerun
    monkeypatch.setattr(SessionState, "_run_callback_and_record_rerun", getattr(run, "__wrapped__", run))


def acts_after_a_click() -> list[str]:
    ran = AppTest.from_function(page).run().button[0].click().run()
    assert not ran.exception
    assert ran.markdown[0].value == "drawn", "the next run follows"
    return list(ran.session_state.get("acts", []))


@pytest.mark.usefixtures("plain")
def test_an_act_is_finished_though_the_next_key_is_pressed() -> None:
    finish_every_act()
    finish_every_act()
    assert acts_after_a_click() == ["begun", "ended"]


@pytest.mark.usefixtures("plain")
def test_streamlit_alone_would_break_it_off() -> None:
    assert "ended" not in acts_after_a_click(), "nothing to guard against any more: delete dashboard.gate.whole_acts"
