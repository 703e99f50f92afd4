"""Runs: what was scored, when, with which parameters, on which records."""

from collections.abc import Iterator, Mapping

import pandas as pd
import streamlit as st

from alertreview.alerts.models import WorklistFilters
from alertreview.records.doubts import raised_checks
from alertreview.scoring.models import RunView
from core.vocabulary import RunId
from dashboard import texts
from dashboard.components import cards, links
from dashboard.components.runs import compare
from dashboard.components.runs.drift import drift_card
from dashboard.components.runs.sensitivity import sensitivity_card
from dashboard.context import acting_id, application

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
        if st.button("Worklist of this run", key="runs_worklist", icon=":material/format_list_numbered:"):
            st.switch_page("views/worklist.py", query_params={"run": str(run.run_id)})
    _table(runs, run)
    left, right = st.columns(2)
    with left:
        with cards.card(f"Run {run.run_id}", texts.plain(run.scorer, 40)):
            _facts(
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
                    "Tasks left out": f"{run.n_tasks_left_out:,}",
                    "Alerts listed": f"{run.n_alerts:,}, scaled score {texts.score(run.floor)} or more",
                    "Seed": f"{run.seed}",
                }
            )
        with cards.card("Parameters"):
            _facts(run.parameters, "This run stored no parameters.")
    with right:
        with cards.card("Checks of the import", "red ones stop scoring until somebody accepts them"):
            _checks(run.import_summary)
        with cards.card("Import", "counts of what was read"):
            counted = {name: value for name, value in run.import_summary.items() if name != "checks"}
            _facts(counted, "This run stored no import summary.")
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
            "Scorer": [texts.shorten(run.scorer, 40) for run in runs],
            "Recent instances": [run.n_recent for run in runs],
            "Tasks": [run.n_tasks_scored for run in runs],
            "Alerts": [run.n_alerts for run in runs],
        }
    )
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


def _facts(stored: Mapping[str, object], otherwise: str = "") -> None:
    """Draw what a run stored, in words."""
    cards.facts(dict(_flat(stored)), otherwise)


def _flat(stored: Mapping[str, object], within: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and value line by line; groups become lines of their own, long lists their length."""
    for name, value in stored.items():
        label = f"{within}: {_name(name).lower()}" if within else _name(name)
        if isinstance(value, Mapping):
            yield from _flat(value, label)
        elif isinstance(value, list | tuple):
            if all(isinstance(item, str) for item in value):
                yield from ([(label, "; ".join(value))] if value else [])
            else:
                yield label, texts.plural(len(value), "entry", "entries")
        else:
            yield label, _value(value)


def _name(name: str) -> str:
    """Write a stored name in words: "n_neighbors" counts neighbors."""
    words = name.removeprefix("n_").replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return "–" if value is None else str(value)


page()
