"""The frame around every page: logo, navigation at the top, the few rules of CSS that no theme key covers."""

from pathlib import Path

import streamlit as st

from dashboard.context import colours, note_arrival, shown_errors

HERE = Path(__file__).resolve().parent

# Side padding has no theme key, and the page must line up with the logo; the answer bar of the review page would
# leave an empty strip; on the light accent of the dark mode, white button text cannot be read.
CSS = """<style>
.stMainBlockContainer{padding-inline:1.25rem}
[data-testid=stBottomBlockContainer]{padding:.5rem 1.25rem .75rem}
%s</style>"""
DARK_CSS = "[data-testid=stBaseButton-primary]{color:#10181C}\n"


def pages() -> dict[str, list[st.Page]]:
    """Return the pages in the order of the navigation; an alert is reached from the lists only."""
    return {
        "": [
            st.Page("views/home.py", title="Home", icon=":material/home:", url_path="home", default=True),
            st.Page("views/worklist.py", title="Worklist", icon=":material/format_list_numbered:", url_path="worklist"),
            st.Page("views/review.py", title="Review", icon=":material/rate_review:", url_path="review"),
            st.Page("views/my_judgments.py", title="My judgments", icon=":material/history:", url_path="my-judgments"),
            st.Page("views/studies.py", title="Studies", icon=":material/groups:", url_path="studies"),
            st.Page("views/reports.py", title="Reports", icon=":material/query_stats:", url_path="reports"),
            st.Page("views/runs.py", title="Runs", icon=":material/play_circle:", url_path="runs"),
            st.Page("views/export.py", title="Export", icon=":material/download:", url_path="export"),
            st.Page("views/alert.py", title="Alert", url_path="alert", visibility="hidden"),
        ]
    }


def draw() -> None:
    """Draw the frame and run the page that the address names."""
    st.set_page_config(page_title="alertreview", page_icon=str(HERE / "theme" / "favicon.svg"), layout="wide")
    st.logo(str(HERE / "theme" / "logo.svg"), size="medium")
    st.html(CSS % (DARK_CSS if colours().mode == "dark" else ""))
    page = st.navigation(pages(), position="top")
    note_arrival(page.url_path)
    with st.container(gap="small"), shown_errors():
        page.run()
