"""The frame around every page: logo, navigation at the top, the few rules of CSS that no theme key covers."""

import html
from pathlib import Path

import streamlit as st

from alertreview.access import Action, Actor
from dashboard.context import colours, keep_apart, note_arrival, shown_errors, signed_in
from dashboard.gate import base_path

HERE = Path(__file__).resolve().parent

# Side padding has no theme key, and the page must line up with the logo; the answer bar of the review page would
# leave an empty strip; on the light accent of the dark mode, white button text cannot be read.
CSS = """<style>
.stMainBlockContainer{padding-inline:1.25rem}
[data-testid=stBottomBlockContainer]{padding:.5rem 1.25rem .75rem}
[data-testid=stElementContainer]:has(.ar-who){position:fixed;top:1.15rem;right:1rem;width:auto;z-index:1000000}
.ar-who{display:flex;gap:.6rem;font-size:.8rem;line-height:1.3}.ar-who a{color:inherit;white-space:nowrap}
.ar-who span{max-width:15rem;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
@media(max-width:1000px){.ar-who span{display:none}}
%s</style>"""
DARK_CSS = "[data-testid=stBaseButton-primary]{color:#10181C}\n"


def pages(me: Actor) -> dict[str, list[st.Page]]:
    """Return the pages in the order of the navigation; an alert is reached from the lists only.

    A page that a role has no use for is not offered; whoever goes there all the same is told so by the use cases.
    """

    def shown(action: Action) -> str:
        return "visible" if me.may(action) else "hidden"

    return {
        "": [
            st.Page("views/home.py", title="Home", icon=":material/home:", url_path="home", default=True),
            st.Page(
                "views/worklist.py",
                title="Worklist",
                icon=":material/format_list_numbered:",
                url_path="worklist",
                visibility=shown(Action.SEE_ALERTS),
            ),
            st.Page(
                "views/review.py",
                title="Review",
                icon=":material/rate_review:",
                url_path="review",
                visibility=shown(Action.JUDGE),
            ),
            st.Page(
                "views/my_judgments.py",
                title="My judgments",
                icon=":material/history:",
                url_path="my-judgments",
                visibility=shown(Action.JUDGE),
            ),
            st.Page(
                "views/studies.py",
                title="Studies",
                icon=":material/groups:",
                url_path="studies",
                visibility=shown(Action.SEE_STUDIES),
            ),
            st.Page(
                "views/reports.py",
                title="Reports",
                icon=":material/query_stats:",
                url_path="reports",
                visibility=shown(Action.SEE_RESULTS),
            ),
            st.Page(
                "views/runs.py",
                title="Runs",
                icon=":material/play_circle:",
                url_path="runs",
                visibility=shown(Action.SEE_RUNS),
            ),
            st.Page(
                "views/export.py",
                title="Export",
                icon=":material/download:",
                url_path="export",
                visibility=shown(Action.EXPORT),
            ),
            st.Page(
                "views/admin.py",
                title="Admin",
                icon=":material/admin_panel_settings:",
                url_path="admin",
                visibility=shown(Action.MANAGE_PEOPLE),
            ),
            st.Page("views/alert.py", title="Alert", url_path="alert", visibility="hidden"),
            st.Page("views/task.py", title="Task", url_path="task", visibility="hidden"),
            st.Page("views/study_setup.py", title="New study", url_path="study-setup", visibility="hidden"),
            st.Page("views/adjudication.py", title="Disagreements", url_path="adjudication", visibility="hidden"),
        ]
    }


def draw() -> None:
    """Draw the frame and run the page that the address names."""
    st.set_page_config(page_title="alertreview", page_icon=str(HERE / "theme" / "favicon.svg"), layout="wide")
    st.logo(str(HERE / "theme" / "logo.svg"), size="medium")
    st.html(CSS % (DARK_CSS if colours().mode == "dark" else ""))
    with shown_errors():
        me = signed_in()
        keep_apart()
        offered = pages(me)
        page = st.navigation(offered, position="top")
        note_arrival(page.url_path)
        _who(me)
        with st.container(gap="small"):
            _run(page, offered, me)


def _run(page: st.Page, offered: dict[str, list[st.Page]], me: Actor) -> None:
    """Run a page; somebody who may see no patient has nothing on the first one and begins on the Admin page."""
    if page.url_path == "" and me.may(Action.MANAGE_PEOPLE) and not me.may(Action.SEE_ALERTS):
        st.switch_page(next(one for one in offered[""] if one.url_path == "admin"))
    page.run()


def _who(me: Actor) -> None:
    """Say who is signed in, for whom, and where to sign out; in a demonstration nobody is."""
    if me.is_demo:
        return
    units = "all units" if me.units is None else ", ".join(sorted(me.units)) or "no unit"
    words = html.escape(f"{me.name} · {me.role.value} · {units}")
    leave = f"{base_path()}/logout"
    st.html(
        f'<div class="ar-who"><span title="{words}">{words}</span> <a href="{leave}" target="_self">Sign out</a></div>'
    )
