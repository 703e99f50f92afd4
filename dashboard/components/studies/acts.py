"""What a coordinator does with a study: start, add readers, lock, reopen with a reason, settle disagreements."""

import pandas as pd
import streamlit as st

from alertreview.rights import Action
from alertreview.studies.models import StudyView
from core.errors import RefusedError
from core.vocabulary import CaseState, PersonId, Role, StudyStatus
from dashboard import texts
from dashboard.components import cards
from dashboard.context import application, looking_person, may, shown_errors

MAY_READ = frozenset({Role.REVIEWER, Role.ADJUDICATOR, Role.COORDINATOR})


def acts(study: StudyView) -> None:
    """Draw the card of acts for whoever may manage studies; nothing for the others."""
    if not may(Action.MANAGE_STUDIES):
        return
    app = application()
    paper = app.study_desk.paper(study.slug)
    with cards.card("Coordination", f"run {paper.run_id}, rubric version {paper.rubric_version}"):
        if study.status is StudyStatus.DRAFT:
            _add_readers(study, paper.reader_ids)
            enough = len(paper.reader_ids) >= study.n_slots and study.n_cases > 0
            if not enough:
                sentence = f"{texts.plural(len(paper.reader_ids), 'reader')} named, each case needs {study.n_slots}."
                st.markdown(cards.muted(sentence if study.n_cases else "This study has no case."))
            if st.button("Start the study", key="sa_start", type="primary", disabled=not enough):
                with shown_errors():
                    app.studies.open_study(study.slug)
                    st.rerun()
            effect = "Starting freezes run, cases, answers, guidelines and seed."
            if not study.is_open_panel:
                readers = texts.plural(len(paper.reader_ids), "reader")
                effect += (
                    f" It hides the alerts of its {texts.plural(study.n_cases, 'case')} from {readers} "
                    "until they have judged them."
                )
            st.markdown(f":small[{cards.muted(effect)}]")
        elif study.status is StudyStatus.OPEN:
            _add_readers(study, paper.reader_ids)
            _with_reason(
                study,
                "Lock the study",
                "sa_lock",
                "A locked study accepts no more judgments, and its report can be signed.",
            )
        else:
            _with_reason(study, "Reopen the study", "sa_reopen", "Signatures under its report then no longer hold.")
        if paper.history:
            with st.expander("History"):
                st.markdown("\n".join(f"- {texts.plain(sentence, 400)}" for sentence in paper.history))
    if paper.n_repeats:
        _self_agreement(study, paper.n_repeats)


def _add_readers(study: StudyView, reader_ids: tuple[PersonId, ...]) -> None:
    people = {
        person.person_id: texts.shorten(person.name, 40)
        for person in application().site.people()
        if person.roles & MAY_READ and person.person_id not in reader_ids
    }
    if not people:
        return
    with st.form(f"sa_readers_{study.slug}", border=False, clear_on_submit=True):
        chosen = st.multiselect(
            "More readers", list(people), format_func=lambda i: people.get(i, "–"), placeholder="Choose"
        )
        if st.form_submit_button("Add readers", icon=":material/person_add:"):
            with shown_errors():
                if not chosen:
                    raise RefusedError("No readers are selected. Select readers, then add them.")
                application().studies.add_readers(study.slug, chosen)
                st.rerun()


def _with_reason(study: StudyView, label: str, key: str, effect: str) -> None:
    n_open = study.n_cases - study.n_complete if study.status is StudyStatus.OPEN else 0
    lost = f"{n_open:,} of {texts.plural(study.n_cases, 'case')} lack answers; the report leaves them out."
    with st.form(f"{key}_{study.slug}", border=False):
        if n_open:
            st.markdown(f":orange[:material/warning: {lost}]")
        reason = st.text_input("Reason", key=f"{key}_reason_{study.slug}", max_chars=300)
        st.markdown(f":small[{cards.muted(effect)}]")
        if st.form_submit_button(label, icon=":material/lock:"):
            service = application().studies
            with shown_errors():
                if study.status is StudyStatus.OPEN:
                    if n_open and not reason.strip():
                        raise RefusedError(f"{lost} Say why you lock the study now.")
                    service.lock_study(study.slug, reason=reason)
                else:
                    service.reopen_study(study.slug, reason=reason)
                st.rerun()


def _self_agreement(study: StudyView, n_repeats: int) -> None:
    person = looking_person()
    with cards.card("Intra-reader agreement", f"{n_repeats} hidden repeats; a repeat is never a vote"):
        try:
            rows = application().study_desk.self_agreement(study.slug, person.person_id if person else None)
        except RefusedError as error:
            st.markdown(cards.muted(texts.plain(str(error), 300)))
            return
        if not rows:
            st.markdown(cards.muted("No reader has judged a case twice yet."))
            return
        cards.table(
            pd.DataFrame(
                {
                    "Reader": [row.reader_code for row in rows],
                    "Pairs": [row.n_pairs for row in rows],
                    "Same answer": [row.n_same for row in rows],
                }
            ),
            key="sa_self",
            alt="Readers with how often they answered the same case the same way twice",
        )


def disagreements(study: StudyView) -> None:
    """Draw how many cases wait for an adjudicator, and the way to them."""
    waiting = study.case_states[CaseState.DISPUTED] + study.case_states[CaseState.UNDETERMINED]
    if not waiting or study.status is not StudyStatus.OPEN or study.is_calibration or not may(Action.ADJUDICATE):
        return
    with cards.card("Disagreements", "complete, and not decided by the votes"):
        st.markdown(f"{texts.plural(waiting, 'case')} wait for someone who was not their reader.")
        if st.button("Settle disagreements", key="sa_adjudicate", icon=":material/balance:"):
            st.switch_page("views/adjudication.py", query_params={"study": study.slug})
