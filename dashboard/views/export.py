"""Export: expert labels as files, with the number of rows before they are written, and a list of past exports."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from alertreview.access.site import PersonView
from alertreview.studies.models import ExportPreview, StudyView
from core.vocabulary import OPEN_PANEL, CaseState
from dashboard import texts
from dashboard.components import cards
from dashboard.components.acting import looking_as
from dashboard.components.studies.choice import choose_study, study_asked
from dashboard.context import application, is_phone, looking_person

if TYPE_CHECKING:
    from alertreview.application import Services

LAYOUTS = {"long": "One row per version", "wide": "One row per case"}
FORMATS = {
    "csv": "CSV, byte-exact",
    "csv-excel": "CSV for Excel",
    "xlsx": "Excel workbook",
    "parquet": "Parquet",
    "jsonl": "JSON lines",
    "meds": "MEDS labels, majority (zip)",
}
MIME = {
    "csv": "text/csv",
    "csv-excel": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/jsonl",
    "meds": "application/zip",
}
MEDS = "meds"
Choice = tuple[object, ...]


@dataclass(frozen=True)
class Prepared:
    """A file made in this session, and the choices that it was made for: other choices never offer it."""

    choice: Choice
    name: str
    content: bytes
    made_at: datetime


def page() -> None:
    """Draw the page."""
    app = application()
    studies = {study.slug: study for study in app.studies.all()}
    if not studies:
        with cards.header("Export", "", simulated=app.site.simulated):
            pass
        with cards.empty_state("No study yet", "Labels to export come from a judged study.", ":material/download:"):
            pass
        return
    slug = st.query_params.get("study") or next(iter(studies))
    if study_asked(slug, "Export") is None:
        return
    study = app.studies.view(slug)
    _head(app, study, studies)
    if study.is_open_panel:
        cards.open_panel_limit()
    person = looking_person()
    if person is not None and app.review.is_blinded(study.slug, person.person_id):
        _blinded(study, person)
    else:
        left, right = st.columns([7, 5])
        with left, cards.card("One table", "judgments or labels of the study", height="stretch"):
            _one_table(app, study, person)
        with right, cards.card("Everything for a paper", "one zip", height="stretch"):
            _everything(app, study, person)
    _past(app, study)


def _head(app: "Services", study: StudyView, studies: dict[str, StudyView]) -> None:
    line = texts.joined(
        texts.plain(study.title, 60),
        OPEN_PANEL if study.is_open_panel else "",
        texts.STATUS_TEXTS[study.status].lower(),
        texts.plural(study.n_cases, "case"),
    )
    with cards.header("Export", line, simulated=app.site.simulated):
        choose_study(study.slug, {slug: texts.study_name(one) for slug, one in studies.items()}, key="ex_study")
        looking_as()


def _blinded(study: StudyView, person: PersonView) -> None:
    """Draw why a reader of the open study gets no file, with a link to the cases."""
    still = "is a reader of this panel" if study.is_open_panel else "still judges cases of this study"
    until = "" if study.is_open_panel else "the last case is judged, or "
    with cards.empty_state(
        "Not available to you yet",
        f"{texts.plain(person.name, 40)} {still}, and a file would show the others' answers. "
        f"It opens when {until}the study is locked.",
        ":material/visibility_off:",
    ):
        if st.button("Continue judging", key="ex_review", icon=":material/rate_review:"):
            st.switch_page("views/review.py", query_params={"study": study.slug})


def _one_table(app: "Services", study: StudyView, person: PersonView | None) -> None:
    person_id = person.person_id if person else None
    # Side by side on a phone, the second layout would be cut off.
    first, second = (st.container(), st.container()) if is_phone() else st.columns(2)
    file_format = first.selectbox("Format", list(FORMATS), key="ex_format", format_func=FORMATS.__getitem__)
    with second:
        layout = st.segmented_control(
            "Layout",
            list(LAYOUTS),
            default="long",
            required=True,
            key="ex_layout",
            format_func=LAYOUTS.__getitem__,
            disabled=file_format == MEDS,
        )
    layout = layout or "long"
    states = st.multiselect(
        "Only cases that are",
        list(texts.CASE_TEXTS),
        key="ex_states",
        format_func=texts.CASE_TEXTS.__getitem__,
        placeholder="all",
    )
    preview = app.exports.preview(study.slug, file_format, layout, person_id=person_id)
    n_rows = _counts(preview, states, is_long=layout == "long" and file_format != MEDS)
    choice: Choice = (study.slug, person_id, file_format, layout, *sorted(states))

    def make() -> tuple[str, bytes]:
        return app.exports.labels_download(study.slug, file_format, layout, states=tuple(states), person_id=person_id)

    _prepare_and_offer("table", choice, MIME[file_format], make, disabled=not n_rows)


def _counts(preview: ExportPreview, states: list[CaseState], *, is_long: bool) -> int:
    """Draw how many rows there are and how many the filter lets through; give the latter."""
    n_rows, n_all = preview.chosen(states), preview.chosen(())
    found = ", ".join(f"{n:,} {texts.CASE_TEXTS[state].lower()}" for state, n in preview.n_rows.items() if n)
    if n_rows:
        versions = "A changed judgment has a row for each version. " if is_long else ""
        said = cards.muted(f"{versions}By state of the case: {found}.")
        st.markdown(f"**{texts.plural(n_rows, 'row')}** of {n_all:,}. {said}")
    elif n_all:
        st.warning(
            f"No row matches. Rows by case state: {found}. Choose other states.",
            icon=":material/filter_alt_off:",
        )
    else:
        st.markdown(cards.muted("This study has no such rows yet."))
    return n_rows


def _everything(app: "Services", study: StudyView, person: PersonView | None) -> None:
    person_id = person.person_id if person else None
    st.markdown(
        cards.muted(
            "Judgments, cases, labels, scores, strata, agreement, rows for multi-reader software, the data dictionary, "
            "the report as HTML, PDF and JSON, a manifest and checksums. The report can be recomputed from it."
        )
    )
    formats = st.multiselect(
        "Table formats",
        [one for one in FORMATS if one != MEDS],
        default=["csv"],
        key="ex_formats",
        format_func=FORMATS.__getitem__,
    )
    choice: Choice = (study.slug, person_id, *formats)

    def make() -> tuple[str, bytes]:
        return app.exports.study_download(study.slug, tuple(formats), person_id=person_id)

    _prepare_and_offer("study", choice, "application/zip", make, disabled=not formats)


def _prepare_and_offer(
    what: str, choice: Choice, mime: str, make: Callable[[], tuple[str, bytes]], *, disabled: bool
) -> None:
    """Draw the button that makes a file and, once made for these very choices, the one that hands it out."""
    key = f"ex_ready_{what}"
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Prepare", key=f"ex_prepare_{what}", icon=":material/build:", disabled=disabled):
            with st.spinner("Writing…", show_time=False):
                name, content = make()
            st.session_state[key] = Prepared(choice, name, content, datetime.now(UTC))
        ready = st.session_state.get(key)
        if not isinstance(ready, Prepared):
            return
        if ready.choice != choice:
            # The file of other choices, or of another person, must not wait in memory.
            del st.session_state[key]
            return
        st.download_button(
            f"Download {ready.name}",
            data=ready.content,
            file_name=ready.name,
            mime=mime,
            icon=":material/download:",
            type="primary",
            key=f"ex_download_{what}",
            on_click="ignore",
        )
    size = texts.plural(len(ready.content), "byte")
    digest = hashlib.sha256(ready.content).hexdigest()
    st.markdown(f":small[{cards.muted(f'Made {ready.made_at:%H:%M} UTC, {size}, SHA-256 {digest}')}]")


def _past(app: "Services", study: StudyView) -> None:
    with cards.card("Past exports of this study", "from the audit trail, newest first"):
        past = app.exports.past(study.slug)
        if not past:
            st.markdown(cards.muted("Nothing was exported yet."))
            return
        names = {f"person {person.person_id}": person.name for person in app.site.people()}
        cards.table(
            pd.DataFrame(
                {
                    "When (UTC)": [texts.day_time(one.exported_at) for one in past],
                    "Who": [texts.shorten(names.get(one.actor, one.actor), 40) for one in past],
                    "What": [one.what for one in past],
                    "File": [one.file_name for one in past],
                    "Rows": pd.array([one.n_rows for one in past], dtype="Int64"),
                    "SHA-256": [one.sha256 for one in past],
                }
            ),
            key="ex_past",
            alt=f"{texts.plural(len(past), 'past export')}, newest first, with checksums",
        )


page()
