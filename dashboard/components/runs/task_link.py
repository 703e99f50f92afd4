"""The link from an alert to the page of its task."""

import streamlit as st

from alertreview.alerts.models import AlertRow
from core.vocabulary import RunId
from dashboard.texts import plain


def task_link(row: AlertRow, run_id: RunId) -> None:
    """Draw the link; the scorer whose list the alert stands in goes with it."""
    params = {"run": str(run_id), "task": row.task_key} | ({"scorer": row.scorer} if row.scorer else {})
    st.page_link("views/task.py", label=f":primary[All about {plain(row.task_name, 40)}]", query_params=params)
