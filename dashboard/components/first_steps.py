"""First steps in the demonstration: for each role three things to try, until the visitor puts the card away."""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from dashboard.components import cards
from dashboard.context import is_phone, signed_in

_HIDDEN = "first_steps_hidden"
_ROLE = "first_steps_role"


@dataclass(frozen=True)
class Step:
    """One thing to try: a page, and what to do there."""

    page: str
    link: str
    title: str
    what: str


STEPS: Mapping[str, tuple[Step, ...]] = {
    "Panel reader": (
        Step("review", "Review", "Judge a case", "Press the number of an answer, then S to save it and go on."),
        Step("review", "Review", "Change your mind", "Z undoes the last answer; L puts a case aside for later."),
        Step(
            "my_judgments",
            "My judgments",
            "Find your answers",
            "Only your own; while the study is open you can change one.",
        ),
    ),
    "Ward clinician": (
        Step(
            "worklist",
            "Worklist",
            "See today's unusual decisions",
            "The most unusual decisions come first. Move the alert budget.",
        ),
        Step("worklist", "Worklist", "Ask why", "Select a line for its reason; O opens the alert with all of them."),
        Step(
            "worklist",
            "Worklist",
            "Record what was done",
            "On an alert: A actioned, D dismiss, S snooze, Z undo. Never a label.",
        ),
    ),
    "Coordinator": (
        Step("studies", "Studies", "Follow the readers' progress", "Counts of each reader and case; nobody's votes."),
        Step("study_setup", "New study", "Set up a study", "Preview the cases before anything is created."),
        Step(
            "studies",
            "Studies",
            "Resolve disagreements",
            "An adjudicator sees the votes under letters.",
        ),
    ),
    "Researcher": (
        Step(
            "reports",
            "Reports",
            "Read how good the alerts are",
            "Look as the researcher: readers of an open study see counts.",
        ),
        Step("task", "Task", "Compare two tasks", "One score means the same for both only after scaling."),
        Step("export", "Export", "Export the labels", "CSV, Excel, Parquet, JSON lines or MEDS, with a dictionary."),
    ),
    "Data manager": (
        Step("runs", "Runs", "See what was imported and scored", "What was read, what was left out, and why."),
        Step("runs", "Runs", "Compare two runs", "After a new import or another method: what moved?"),
        Step(
            "admin", "Admin", "Give people access", "The first account ends the demonstration: everybody signs in then."
        ),
    ),
}


def draw() -> None:
    """Draw the card on a demonstration site; nowhere else, and not again once it was closed."""
    if not signed_in().is_demo or st.session_state.get(_HIDDEN):
        return
    with cards.card("First steps", "what brings you here?", key="first-steps"):
        with st.container(horizontal=not is_phone(), vertical_alignment="center"):
            role = st.pills(
                "Role", list(STEPS), default=next(iter(STEPS)), required=True, key=_ROLE, label_visibility="collapsed"
            )
            if not is_phone():
                st.space("stretch")
            st.button("Dismiss", key="first_steps_hide", type="tertiary", icon=":material/close:", on_click=_hide)
        steps = STEPS.get(role or "", ())
        # Columns are never as narrow as a phone; there the steps stand below one another.
        places = [st.container(gap="xxsmall") for _ in steps] if is_phone() else st.columns(len(steps), gap="medium")
        for place, step, number in zip(places, steps, range(1, len(steps) + 1), strict=True):
            with place.container(gap="xxsmall"):
                st.markdown(f"**{number}. {step.title}** {cards.muted(step.what)}")
                st.page_link(f"views/{step.page}.py", label=f":primary[{step.link}]", icon=":material/arrow_forward:")


def _hide() -> None:
    st.session_state[_HIDDEN] = True
