"""Tasks: the task catalogue, what the next scoring asks about, and the form that changes it."""

import streamlit as st

from alertreview.scoring.task_catalogue import CatalogueView
from dashboard.components import cards
from dashboard.components.runs import task_form, task_table
from dashboard.context import application, command, signed_in


def page() -> None:
    """Draw the page."""
    app = application()
    view = app.catalogue.view()
    line = "What the next scoring asks about, and why it leaves other tasks out."
    with cards.header("Tasks", line, simulated=app.site.simulated):
        pass
    if view is None:
        with cards.empty_state("No tasks yet", "Import records first; an import says what its tasks are."):
            st.code(command("import FOLDER"), language=None, wrap_lines=True)
        return
    st.markdown(
        "This is the catalogue of the last import. Switches and mutes take effect with the next scoring, names and "
        "groups with the next import; lists that are already published stay as they are."
    )
    task_form.said()
    shown = task_table.filtered(view)
    if not shown:
        with cards.empty_state("No task matches", "The filters above hide every task.", ":material/filter_alt_off:"):
            st.button("Show all", key="tasks_all", type="primary", on_click=task_table.clear)
        return
    task_table.draw(shown, view)
    _form(shown, view)


def _form(shown: list[task_table.Row], view: CatalogueView) -> None:
    with cards.card("Change a task", "one row of the audit trail for each change", key="tasks-change"):
        if signed_in().units is not None:
            st.markdown(
                "A change holds for patients of all units, and not all units are yours. Ask a coordinator of all."
            )
            return
        task_form.draw([row.entry for row in shown], view)


page()
