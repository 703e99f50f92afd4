"""Study set-up: question and answers, cases over the range of scores with a preview, readers; made as a draft."""

import re
from dataclasses import replace

import pandas as pd
import streamlit as st

from alertreview.access.site import PersonView
from alertreview.rights import Action
from alertreview.scoring.models import RunView
from alertreview.studies.models import OWN_CHOICE, PRESETS, QUESTION, PlanPreview, Rubric, StudyPlan, StudyView
from core.errors import AlertReviewError
from core.scoring.scorers import label_of_scorer
from core.vocabulary import Answer, PersonId, Role, StudyStatus
from dashboard import texts
from dashboard.charts.strata import strata
from dashboard.components import cards
from dashboard.components.studies import planner
from dashboard.context import application, colours, command, may, shown_errors

NEVER_CHANGED = "How a study is read cannot be changed later."
MAY_READ = frozenset({Role.REVIEWER, Role.ADJUDICATOR, Role.COORDINATOR})


def page() -> None:
    """Draw the page."""
    app = application()
    line = "Creates a draft; nothing is frozen until you start it."
    with cards.header("New study", line, simulated=app.site.simulated):
        if st.button("All studies", key="su_back", icon=":material/arrow_back:"):
            st.switch_page("views/studies.py")
    if not may(Action.MANAGE_STUDIES):
        with cards.empty_state("Coordinators set up studies", "Ask one of them, or an administrator for the role."):
            pass
        return
    run = app.worklist.run()
    if run is None:
        with cards.empty_state("Nothing is scored yet", "Cases are chosen from scores. Score the site first."):
            st.code(command("score"), language=None, wrap_lines=True)
        return
    locked = [study for study in app.studies.all() if study.status is StudyStatus.LOCKED and not study.is_calibration]
    kinds = ["Study", "Open panel", "Training with feedback"]
    kind = st.segmented_control("Kind", kinds, default=kinds[0], required=True, key="su_kind")
    people = [person for person in app.site.people() if person.roles & MAY_READ]
    if kind == kinds[2]:
        _training(locked, people)
    else:
        _study(run, people, is_open_panel=kind == kinds[1])


def _study(run: RunView, people: list[PersonView], *, is_open_panel: bool) -> None:
    if is_open_panel:
        cards.open_panel_limit(NEVER_CHANGED)
    left, right = st.columns([5, 7])
    with left:
        title, slug = _names()
        rubric = _rubric(run.snapshot_hour)
    with right:
        with cards.card("Cases", f"from run {run.run_id}; every decision it scored can be chosen"):
            plan = _plan(run, is_open_panel=is_open_panel)
            preview = _preview(plan)
            if preview is not None:
                planner.before_a_pilot(plan)
        reader_ids = _readers(people, plan.n_readers)
        if preview is not None and not is_open_panel:
            _hidden(preview, run, len(reader_ids))
    if st.button("Create draft", key="su_make", type="primary", icon=":material/note_add:", disabled=preview is None):
        with shown_errors():
            made = application().study_desk.set_up(slug, title, plan, rubric, reader_ids, is_open_panel=is_open_panel)
            st.switch_page("views/studies.py", query_params={"study": made.slug})


def _training(locked: list[StudyView], people: list[PersonView]) -> None:
    """Draw the form of a training study; its cases are decided ones of a study that is over."""
    if not locked:
        with cards.empty_state(
            "No study to train on",
            "Training uses the decided cases of a locked study, because it reveals their answers. Lock a study first.",
            ":material/school:",
        ):
            pass
        return
    titles = {study.slug: study.title for study in locked}
    left, right = st.columns([5, 7])
    with left:
        title, slug = _names("Training")
    with right:
        with cards.card("Cases", "the panel's answer is shown after the reader's own; votes never enter a report"):
            source = st.selectbox(
                "Decided cases of", list(titles), key="su_source", format_func=lambda s: texts.shorten(titles[s], 60)
            )
            n_cases = int(st.number_input("Cases", 1, 500, 20, key="su_training_cases"))
        reader_ids = _readers(people, 1)
    if st.button("Create draft", key="su_make_training", type="primary", icon=":material/note_add:"):
        with shown_errors():
            made = application().study_desk.set_up_training(slug, title, source, n_cases, reader_ids)
            st.switch_page("views/studies.py", query_params={"study": made.slug})


def _names(title: str = "") -> tuple[str, str]:
    with cards.card("Name"):
        title = st.text_input("Title", title, key="su_title", placeholder="ICU panel, spring", max_chars=200)
        proposed = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].strip("-")
        slug = st.text_input(
            "Short name for links and files", key="su_slug", placeholder=proposed or "icu-panel-spring", max_chars=60
        )
    return title, slug.strip() or proposed


def _rubric(snapshot_hour: str) -> Rubric:
    with cards.card("Question", "frozen when the study starts; each earlier change is a version"):
        question = st.text_input("Question", QUESTION, key="su_question", max_chars=400)
        answer_texts = {
            answer: st.text_input(f"Answer {answer:d}", answer.text, key=f"su_answer_{answer:d}", max_chars=80)
            for answer in Answer
        }
        guidelines = st.text_area(
            "Guidelines",
            key="su_guidelines",
            height=110,
            placeholder=f"Judge by what was known at {snapshot_hour} …",
        )
    return Rubric(question, answer_texts, guidelines)


def _plan(run: RunView, *, is_open_panel: bool) -> StudyPlan:
    """Draw the design; a preset fills everything, the own choice opens the fields. An open panel hides no repeats."""
    presets = {preset.preset: preset for preset in PRESETS}
    name = st.selectbox("Design", [*presets, OWN_CHOICE], key="su_preset", format_func=lambda n: n[:1].upper() + n[1:])
    fixed = presets.get(name)
    start = fixed or PRESETS[0]
    scorers = list(run.scorers or (run.scorer,))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        scorer = st.selectbox(
            "Strata over the scaled score of", scorers, key="su_scorer", format_func=label_of_scorer, width=260
        )
        seed = int(st.number_input("Seed", 0, 2**31 - 1, 1, key="su_seed", width=110))
    if fixed is not None:
        return StudyPlan(
            scorer,
            start.n_cases,
            start.n_readers,
            start.edges,
            start.balance_decisions,
            0 if is_open_panel else start.n_repeats,
            seed,
            start.preset,
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_cases = int(st.number_input("Cases", 1, 20_000, start.n_cases, key="su_cases", width=120))
        n_readers = int(st.number_input("Readers per case", 1, 20, start.n_readers, key="su_slots", width=150))
        n_repeats = int(
            st.number_input(
                "Hidden repeats",
                0,
                0 if is_open_panel else n_cases,
                0,
                key="su_repeats",
                disabled=is_open_panel,
                width=140,
                help="Cases shown twice to the same readers, to measure intra-reader agreement. Never a vote.",
            )
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        written = st.text_input("Strata boundaries", "0.33, 0.67", key="su_edges", help="Rising numbers.")
        by_share = st.toggle(
            "as shares of the candidates",
            key="su_quantiles",
            help="0.5, 0.9 then divides at the median score and at the top tenth; else borders are scaled scores.",
        )
    balance = st.toggle("As many omissions as commissions", key="su_balance")
    half = st.toggle(
        "Half of the cases from the largest stratum",
        key="su_half",
        help="Else every stratum gives the same number. The largest stratum decides most about the AUC.",
    )
    borders = _edges(written)
    own = StudyPlan(
        scorer, n_cases, n_readers, balance_decisions=balance, n_repeats=n_repeats, seed=seed, half_in_largest=half
    )
    return replace(own, quantiles=borders) if by_share else replace(own, edges=borders)


def _edges(written: str) -> tuple[float, ...]:
    """Read numbers between commas or semicolons; what is none is left to the rules to refuse."""
    found = re.findall(r"-?\d+(?:\.\d+)?", written)
    return tuple(float(number) for number in found)


def _preview(plan: StudyPlan) -> PlanPreview | None:
    """Draw what the plan would choose; None and a sentence when it breaks a rule."""
    try:
        preview = application().study_desk.preview(plan)
    except AlertReviewError as error:
        st.error(texts.plain(str(error), 600), icon=":material/error:")
        return None
    cards.figure(strata(preview, colours()), "strata", colours())
    cards.table(
        pd.DataFrame(
            {
                "Stratum": [texts.shorten(s.name, 60) for s in preview.strata],
                "Candidates": [s.n_population for s in preview.strata],
                "Chosen": [s.n_chosen for s in preview.strata],
                "Inclusion probability": [s.inclusion_probability for s in preview.strata],
            }
        ),
        key="su_strata",
        columns={"Inclusion probability": st.column_config.NumberColumn(format="%.2g")},
        alt="Strata with candidates, chosen cases and the chance of each candidate, which is stored with the case",
    )
    parts = [f"{texts.plural(preview.n_chosen, 'case')} of {texts.plural(preview.n_patients, 'patient')}"]
    if preview.left_out:
        parts.append("left out: " + ", ".join(f"{n:,} {why}" for why, n in preview.left_out.items()))
    st.markdown(f":small[{cards.muted(texts.plain(texts.joined(*parts), 400))}]")
    for sentence in preview.notes:
        st.markdown(f":small[:material/info: {cards.muted(texts.plain(sentence, 400))}]")
    return preview


def _hidden(preview: PlanPreview, run: RunView, n_readers: int) -> None:
    """Draw how many alerts the study will hide, and from whom."""
    whom = f"its {texts.plural(n_readers, 'reader')}" if n_readers else "its readers"
    sentence = (
        f"Once started, it hides {preview.n_alerts:,} of the {texts.plural(run.n_alerts, 'alert')} of run {run.run_id} "
        f"from {whom}. A case returns to a reader's lists when that reader has judged it or others have completed it."
    )
    st.markdown(f":small[:material/visibility_off: {cards.muted(texts.plain(sentence, 400))}]")


def _readers(people: list[PersonView], n_slots: int) -> list[PersonId]:
    names = {person.person_id: texts.shorten(person.name, 40) for person in people}
    with cards.card(
        "Readers", f"each case goes to {texts.plural(n_slots, 'different reader')}, whoever opens it first"
    ):
        if not names:
            st.markdown(cards.muted("No reviewers yet. An administrator adds reviewers."))
            return []
        chosen = st.multiselect(
            "Readers", list(names), key="su_readers", format_func=lambda i: names.get(i, "–"), placeholder="Choose"
        )
        if len(chosen) < n_slots:
            st.markdown(cards.muted(f"{len(chosen)} of at least {n_slots} chosen; more can be added to the draft."))
    return list(chosen)


page()
