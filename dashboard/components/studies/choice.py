"""The choice of a study at the head of a page; the address says which one is shown."""

from collections.abc import Iterable, Mapping

import streamlit as st

from alertreview.access.site import PersonView
from alertreview.review.models import QueueView
from alertreview.studies.models import StudyHead, StudyView
from core.errors import NotFoundError
from core.vocabulary import StudyStatus
from dashboard import texts
from dashboard.components import cards
from dashboard.context import application


def study_asked(slug: str, head: str) -> StudyHead | None:
    """Return a study; for one that is not there, draw under the page's title why and where the others are."""
    app = application()
    try:
        return app.studies.head(slug)
    except NotFoundError as error:
        with cards.header(head, "", simulated=app.site.simulated):
            pass
        with cards.empty_state("Study not found", texts.plain(str(error), 400), ":material/search_off:"):
            if st.button("Back to studies", key="to_studies", type="primary"):
                st.query_params.clear()
                st.switch_page("views/studies.py")
        return None


def study_to_read(studies: Iterable[StudyView], person: PersonView | None) -> StudyView | None:
    """Return the open study that somebody goes on with when no address names one; None when none is open."""
    return next((study for study, _ in studies_to_read(studies, person)), None)


def studies_to_read(
    studies: Iterable[StudyView], person: PersonView | None
) -> list[tuple[StudyView, QueueView | None]]:
    """Return the open studies with the person's list, in the order in which somebody goes on with them.

    Those in which cases wait for the person come first, then those the person reads: an open study of others must not
    hide a list that is not finished. Blinded ones come before open panels, begun ones before others, newer ones before
    older ones.
    """
    found: list[tuple[StudyView, QueueView | None]] = [
        (study, application().review.queue(study.slug, person.person_id) if person is not None else None)
        for study in studies
        if study.status is StudyStatus.OPEN
    ]

    def order(entry: tuple[StudyView, QueueView | None]) -> tuple[bool, ...]:
        study, queue = entry
        if queue is None:
            return (study.is_open_panel,)
        return queue.n_left == 0, not queue.is_reader, study.is_open_panel, not queue.n_submitted

    return sorted(found, key=order)


def choose_study(shown: str, titles: Mapping[str, str], *, key: str) -> None:
    """Draw the choice of study, where there is more than one; it follows the address when that has changed."""
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
