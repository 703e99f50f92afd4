"""Runs: what was scored, when, with which parameters, on which records."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from alertreview.alerts.models import WorklistFilters
from alertreview.records.doubts import raised_checks
from alertreview.rights import Action
from alertreview.scoring.models import RunView
from core.errors import InvalidInputError
from core.events.import_report import ImportReport
from core.scoring.scorers import label_of_scorer
from core.vocabulary import RunId
from dashboard import texts
from dashboard.components import cards, links
from dashboard.components.runs import compare
from dashboard.components.runs.drift import drift_card
from dashboard.components.runs.parameters import parameters_in_words
from dashboard.components.runs.sensitivity import sensitivity_card
from dashboard.context import acting_id, application, is_phone, may

SPLITS = {
    "time": "everything before a date is past",
    "patient": "a random share of the patients is past",
    "folds": "every patient is recent once, against all other patients",
    "source": "the split that came with the records",
}


def page() -> None:
    """Draw the page."""
    app = application()
    runs = app.worklist.runs()
    if not runs:
        cards.nothing_published(app.site.simulated)
        return
    run = app.worklist.run(links.whole_number(st.query_params.get("run"), RunId)) or runs[0]
    line = "A run is one scoring of all recent instances; readers only ever see finished ones."
    with cards.header("Scoring runs", line, simulated=app.site.simulated):
        if may(Action.SEE_ALERTS) and st.button(
            "Worklist of this run", key="runs_worklist", icon=":material/format_list_numbered:"
        ):
            st.switch_page("views/worklist.py", query_params={"run": str(run.run_id)})
    _table(runs, run)
    left, right = st.columns(2)
    with left, cards.card(f"Run {run.run_id}", texts.plain(label_of_scorer(run.scorer), 60)):
        cards.facts(
            {
                "Finished": texts.day_time(run.published_at),
                "Time zone of the site": run.site_timezone,
                "Calendar": "shifted by the source; dates have no meaning across patients"
                if run.calendar_is_shifted
                else "as recorded",
                "Past and recent": SPLITS.get(run.split, run.split),
                "Past instances": f"{run.n_past:,}",
                "Recent instances": f"{run.n_recent:,}",
                "Tasks scored": f"{run.n_tasks_scored:,}",
                "Tasks not scored": f"{run.n_tasks_left_out:,}",
                "Alerts listed": f"{run.n_alerts:,}, scaled score {texts.score(run.floor)} or more",
                "Seed": f"{run.seed}",
            }
        )
        parameters = parameters_in_words(run.parameters)
        with st.expander(f"Parameters ({len(parameters)})"):
            cards.facts(parameters, "This run stored no parameters.")
    with right:
        with cards.card("Checks of the import", "red ones stop scoring until somebody accepts them"):
            _checks(run.import_summary)
        with cards.card("Import", "counts of what was read"):
            _import(run.import_summary)
    compare.comparison(runs, run)
    sensitivity_card(run)
    drift_card(app.tasks.drift(WorklistFilters(run_id=run.run_id, reader=acting_id())), "runs")


def _checks(import_summary: Mapping[str, object]) -> None:
    """List the checks that are not as they should be, with what they would do to the alerts."""
    if "checks" not in import_summary:
        st.caption("This import predates the checks.")
        return
    raised = raised_checks(import_summary)
    if not raised:
        st.caption("All checks passed.")
    for check in raised:
        cards.check_line(check["name"], check["sentence"], check["effect"], is_red=check["severity"] == "red")


def _table(runs: tuple[RunView, ...], shown: RunView) -> None:
    key = f"runs_{len(runs)}"
    ids = [run.run_id for run in runs]
    place = ids.index(shown.run_id) if shown.run_id in ids else 0
    st.session_state[key] = {"selection": {"rows": [place], "columns": [], "cells": []}}

    def clicked() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows and rows[0] < len(ids):
            st.query_params["run"] = str(ids[rows[0]])

    frame = pd.DataFrame(
        {
            "Run": ids,
            "Finished": [texts.day_time(run.published_at) for run in runs],
            "Scorer": [texts.shorten(label_of_scorer(run.scorer), 60) for run in runs],
            "Recent instances": [run.n_recent for run in runs],
            "Tasks": [run.n_tasks_scored for run in runs],
            "Alerts": [run.n_alerts for run in runs],
        }
    )
    if is_phone():
        _choose_on_phone(frame, ids, place)
        return
    st.dataframe(
        frame,
        key=key,
        column_config=cards.counts(frame),
        hide_index=True,
        height="content" if len(runs) <= 10 else 390,
        on_select=clicked,
        selection_mode="single-row-required",
        alt=f"{texts.plural(len(runs), 'scoring run')}, newest first",
    )


def _choose_on_phone(frame: pd.DataFrame, ids: list[RunId], place: int) -> None:
    key = f"runs_phone_{len(ids)}"
    st.session_state[key] = place

    def chosen() -> None:
        st.query_params["run"] = str(ids[st.session_state[key]])

    frame["Run"] = [f"Run {run_id}" for run_id in ids]
    cards.choice(frame, key=key, label="Run", on_change=chosen)


def _import(import_summary: Mapping[str, object]) -> None:
    """Draw the report of the import, its overview open and the rest folded."""
    if not import_summary:
        st.markdown(cards.muted("This run stored no import report."))
        return
    try:
        overview, *others = ImportReport.from_dict(import_summary).sections()
    except InvalidInputError as error:
        st.markdown(cards.muted(texts.plain(str(error), 200)))
        return
    cards.facts({_sentence(label): value for label, value in overview[1]})
    for title, rows in others:
        if title != "Checks":
            with st.expander(f"{title} ({len(rows)})"):
                cards.facts({_sentence(label): value for label, value in rows})


def _sentence(label: str) -> str:
    return label[:1].upper() + label[1:]


page()
