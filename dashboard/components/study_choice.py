"""The choice of a study at the head of a page; the address says which one is shown."""

from collections.abc import Mapping

import streamlit as st

from alertreview.read_models import StudyView
from core.errors import NotFoundError
from dashboard.components import cards, texts
from dashboard.context import application


def study_asked(slug: str, head: str) -> StudyView | None:
    """Return a study; for one that is not there, draw under the page's title why and where the others are."""
    app = application()
    try:
        return app.study(slug)
    except NotFoundError as error:
        with cards.header(head, "", simulated=app.simulated):
            pass
        with cards.empty_state("This study is not here", texts.plain(str(error), 400), ":material/search_off:"):
            if st.button("To the studies", key="to_studies", type="primary"):
                st.query_params.clear()
                st.switch_page("views/studies.py")
        return None


def choose_study(shown: str, titles: Mapping[str, str], *, key: str) -> None:
    """Draw the choice, where there is more than one study to choose from.

    Parameters
    ----------
    shown
        Short name of the study on the page; the widget follows it when the address has changed.
    titles
        Titles of the studies by short name.
    key
        Of the widget, one for each page.
    """
    if len(titles) < 2:
        return
    if st.session_state.get(key) != shown:
        st.session_state[key] = shown
    st.selectbox(
        "Study",
        list(titles),
        key=key,
        width=220,
        label_visibility="collapsed",
        format_func=lambda slug: texts.shorten(titles.get(slug, slug), 40),
        on_change=_open,
        args=(key,),
    )


def _open(key: str) -> None:
    st.query_params["study"] = st.session_state[key]
