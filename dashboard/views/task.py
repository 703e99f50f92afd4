"""Task: how one task scores beside another, what the alert budget means for it, and its drift."""

from dataclasses import replace

import streamlit as st

from alertreview.alerts.models import WorklistFilters
from alertreview.alerts.task_views import JudgedTask, TaskChoice, TaskView
from alertreview.scoring.models import RunView
from core.errors import NotFoundError
from core.scoring.scorers import label_of_scorer
from core.vocabulary import Decision, TriageState
from dashboard import texts
from dashboard.charts.task import task_histogram
from dashboard.components import cards, links
from dashboard.components.filters import BUDGETS, PAGE_DEFAULTS, nearest_budget
from dashboard.components.runs.drift import drift_card
from dashboard.components.runs.shown_run import shown_run
from dashboard.components.worklist.state import show
from dashboard.context import acting_id, application, colours


def page() -> None:
    """Draw the page."""
    app = application()
    shown = shown_run(app)
    if shown is None:
        return
    run = shown.run
    filters = WorklistFilters(
        run_id=run.run_id,
        scorer=shown.scorer,
        alerts_per_patient_day=nearest_budget(st.query_params.get("budget")),
        reader=acting_id(),
    )
    choices = {choice.task_key: choice for choice in app.tasks.choices(run.run_id, filters.scorer)}
    if not choices:
        with cards.header("Task", "", simulated=app.site.simulated):
            pass
        with cards.empty_state("This run has no task", "There is no scored task to show."):
            pass
        return
    asked = st.query_params.get("task", "")
    if asked and asked not in choices:
        _unknown(run, app.site.simulated)
        return
    filters = replace(filters, task_key=asked or _first(choices))
    try:
        task = app.tasks.view(filters)
    except NotFoundError:
        _unknown(run, app.site.simulated)
        return
    other = _beside(task, choices)
    _header(task, other, run, filters, choices, shown.latest_id, simulated=app.site.simulated)
    judged = app.tasks.judged(filters)
    _tiles(task, judged)
    _threshold(task, filters)
    left, right = st.columns(2)
    with left:
        _histograms(task, "task")
    with right:
        _other(other, filters)
    drift_card(app.tasks.drift(filters), "task", task.words)


def _first(choices: dict[str, TaskChoice]) -> str:
    """Return the task that is shown when the address names none: the first one that was scored."""
    return next((key for key, choice in choices.items() if choice.is_scored), next(iter(choices)))


def _beside(task: TaskView, choices: dict[str, TaskChoice]) -> str:
    """Return the task that stands beside the shown one: the address's, or the first other one; empty for none."""
    others = {key: choice for key, choice in choices.items() if key != task.task_key}
    asked = st.query_params.get("other", "")
    return asked if asked in others else _first(others) if others else ""


def _unknown(run: RunView, simulated: bool) -> None:
    with cards.header("Task", f"run {run.run_id}", simulated=simulated):
        pass
    with cards.empty_state(
        "Task not found",
        f"Run {run.run_id} has no such task. The link may come from another site or import.",
        ":material/search_off:",
    ):
        if st.button("First task of this run", key="task_first", type="primary"):
            st.query_params.from_dict({"run": str(run.run_id)})
            st.rerun()


def _header(
    task: TaskView,
    other: str,
    run: RunView,
    filters: WorklistFilters,
    choices: dict[str, TaskChoice],
    latest_run: int,
    *,
    simulated: bool,
) -> None:
    # Most tasks are a group of their own.
    group = f"order group {texts.plain(task.order_group, 40)}" if task.order_group not in {"", task.name} else ""
    line = texts.joined(
        task.words.noun,
        group,
        f"run {run.run_id} of {texts.day_time(run.published_at)}",
        texts.plain(label_of_scorer(task.scorer), 60),
    )
    with cards.header(texts.plain(task.name, 60), line, simulated=simulated):
        # Both choices stand up here: above one of the figures, it would push that one below the other.
        _chooser("Task", "task", task.task_key, choices)
        if other:
            _chooser("Compare with", "other", other, {key: one for key, one in choices.items() if key != task.task_key})
        if st.button("Alerts of this task", key="task_worklist", icon=":material/format_list_numbered:"):
            listed = replace(
                PAGE_DEFAULTS,
                run_id=run.run_id,
                scorer=filters.scorer,
                task_key=task.task_key,
                alerts_per_patient_day=filters.alerts_per_patient_day,
            )
            st.switch_page("views/worklist.py", query_params=links.params_of(listed, latest_run=latest_run))


def _chooser(label: str, name: str, chosen: str, choices: dict[str, TaskChoice]) -> None:
    """Draw the choice of a task; what is chosen stands in the address under its name."""
    key = f"task_choice_{name}"
    show({key: chosen})

    def changed() -> None:
        st.query_params[name] = st.session_state[key]

    def words(task_key: str) -> str:
        choice = choices.get(task_key)
        if choice is None:
            return "–"
        return texts.shorten(choice.name, 50) + ("" if choice.is_scored else " (not scored)")

    st.selectbox(label, list(choices), key=key, format_func=words, on_change=changed, width=220)


def _tiles(task: TaskView, judged: JudgedTask) -> None:
    share = texts.percent(task.n_past_positive / task.n_past) if task.n_past else "–"
    n_alerts = sum(task.n_alerts.values())
    parts = ", ".join(texts.plural(task.n_alerts.get(one, 0), one.value) for one in Decision)
    n_new = task.triage.get(TriageState.NEW, 0)
    others = [
        f"{n:,} {texts.TRIAGE_TEXTS[one].lower()}" for one, n in task.triage.items() if n and one is not TriageState.NEW
    ]
    cards.tiles(
        (
            ("Instances scored", f"{task.n_scored:,}", f"against {texts.plural(task.n_past, 'past one')}"),
            (
                f"{task.words.done.capitalize()} in the past",
                share,
                f"{task.n_past_positive:,} of {task.n_past:,} past instances",
            ),
            ("Alerts within the budget", f"{n_alerts:,}", parts),
            ("Not yet triaged", f"{n_new:,}", ", ".join(others) or "none acted on"),
            texts.estimate_tile("AUC of the scaled score", judged.auc, _judged_words(judged)),
        )
    )


def _judged_words(judged: JudgedTask) -> str:
    n = f"{judged.auc.n:,} judged cases of this task" if judged.auc.n else ""
    return texts.joined(n, texts.shorten(judged.study, 40))


def _threshold(task: TaskView, filters: WorklistFilters) -> None:
    """Say in words what the alert budget means for this task, with the slider that changes it."""
    with st.container(border=True, key="task-budget"):
        slider, words = st.columns([4, 8], vertical_alignment="center", gap="large")
        with slider:
            show({"task_budget": filters.alerts_per_patient_day})

            def changed() -> None:
                st.query_params["budget"] = f"{st.session_state.task_budget:g}"

            st.select_slider(
                "Alert budget, alerts per patient-day",
                BUDGETS,
                key="task_budget",
                on_change=changed,
                format_func=lambda budget: f"{budget:g}",
                help="Of the whole run, omissions and commissions together; scaled scores make tasks comparable.",
            )
        words.markdown(_budget_sentence(task))


def _budget_sentence(task: TaskView) -> str:
    if task.reason:
        return f"This task was not scored: {texts.plain(task.reason, 300)}"
    parts = []
    for one in Decision:
        n, least = task.n_alerts.get(one, 0), task.thresholds.get(one)
        reach = " (the whole list)" if n else ""
        if least is not None:
            reach = f" (scaled score {texts.score(least)} or more)"
        parts.append(f"**{texts.plural(n, one.value)}**{reach}")
    total = sum(task.n_alerts.values())
    rate = f"one in every {round(task.n_patient_days / total):,} patient-days" if total else "none"
    muted = (
        f" Muted in {texts.plain(task.muted, 200)}: runs scored in that time list no alert of it there."
        if task.muted
        else ""
    )
    return f"For this task the budget means {' and '.join(parts)}: {rate}.{muted}"


def _histograms(task: TaskView, name: str) -> None:
    total = sum(task.scaled_histogram.counts)
    with cards.card(texts.plain(task.name, 60), f"{total:,} past and recent instances by score", height="stretch"):
        if task.reason:
            st.markdown(cards.muted(f"Not scored: {texts.plain(task.reason, 300)}"))
            return
        for data, marks, title, thresholds in (
            (task.scaled_histogram, task.scaled_marks, "Scaled score", task.thresholds),
            (task.score_histogram, task.score_marks, "Raw score", None),
        ):
            chart = task_histogram(data, marks, colours(), title=title, task_name=task.name, thresholds=thresholds)
            cards.figure(chart, f"{name}-{title.split()[0].lower()}", colours())
        st.markdown(
            f":small[{cards.muted('▼ bins with omission alerts, ◇ with commission alerts, within the budget')}]"
        )


def _other(other: str, filters: WorklistFilters) -> None:
    """Draw the task that stands beside this one."""
    if other:
        _histograms(application().tasks.view(replace(filters, task_key=other)), "other")
        return
    with cards.card("Compare with", height="stretch"):
        st.markdown(cards.muted("This is the only task of the run; two or more tasks are compared here."))


page()
