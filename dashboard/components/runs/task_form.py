"""The form that switches a task of the catalogue on or off, mutes, renames or groups it."""

from datetime import timedelta
from typing import TYPE_CHECKING

import streamlit as st

from alertreview.records.catalogue import CatalogueEntry, TaskSetting
from alertreview.scoring.task_catalogue import CatalogueView
from core.kinds import Kind
from dashboard import texts
from dashboard.components import cards
from dashboard.components.runs.task_table import from_next_import, mute_words
from dashboard.context import attempt, command

if TYPE_CHECKING:
    from alertreview.application import Services

ON, OFF, DEFAULT, MUTE, UNMUTE, RENAME, GROUP = (
    "Ask about it",
    "Do not ask about it",
    "Follow the import",
    "Mute it",
    "End the mute",
    "Rename it",
    "Group it",
)
OF_IMPORT = (RENAME, GROUP)
"""They take effect with the next import, the others with the next scoring."""
FOUND, ALONE = "as the import finds", "no group"
SWITCHES = {ON: True, OFF: False, DEFAULT: None}
_SAID = "tasks_said"


def said() -> None:
    """Draw what became of the last change, once."""
    done, text = st.session_state.pop(_SAID, (False, ""))
    if text:
        (st.success if done else st.error)(texts.plain(text, 400))


def draw(entries: list[CatalogueEntry], view: CatalogueView) -> None:
    """Draw the form for one of the tasks."""
    by_key = {entry.task_key: entry for entry in entries}
    key = st.selectbox(
        "Task", list(by_key), key="tasks_which", format_func=lambda one: texts.shorten(by_key[one].name, 60)
    )
    entry = by_key[key]
    now = f"Not asked about. {entry.off}" if entry.off else "Asked about."
    muted = mute_words(entry, view.today)
    said = [now, f"Muted: {muted}." if muted else "Not muted.", from_next_import(entry)]
    st.markdown(texts.plain(f"Now: {' '.join(filter(None, said))}", 400))
    is_lab = entry.kind is Kind.LAB_ORDER and not entry.members
    changes = [ON, OFF, DEFAULT, MUTE, UNMUTE, RENAME, *([GROUP] if is_lab else [])]
    what = st.radio("Change", changes, key="tasks_what", horizontal=True)
    with st.form(f"tasks_form_{key}_{what}", border=False):
        if what == MUTE:
            _mute_fields(entry, view)
        elif what == RENAME:
            st.text_input(
                "Name; empty for that of the import",
                entry.next_name,
                key=f"tasks_name_{key}",
                max_chars=120,
            )
        elif what == GROUP:
            _group_field(entry, view)
        st.text_input("Reason, for the audit trail (required)", key=f"tasks_reason_{key}", max_chars=200)
        when, how = ("imports", command("import FOLDER")) if what in OF_IMPORT else ("scores", command("score"))
        st.markdown(cards.muted(f"It takes effect when somebody {when} again:"))
        st.code(how, language=None, wrap_lines=True)
        st.form_submit_button("Save the change", type="primary", on_click=_save, args=(key, what, entry.setting))


def _mute_fields(entry: CatalogueEntry, view: CatalogueView) -> None:
    until, mine = entry.setting.muted_until, entry.setting.muted_units
    still = until if until is not None and until >= view.today else view.today + timedelta(days=30)
    st.date_input(
        "Last day of the mute", still, min_value=view.today, format="YYYY-MM-DD", key=f"tasks_until_{entry.task_key}"
    )
    st.multiselect(
        "Units; none chosen means all",
        sorted({*view.units, *mine}),
        list(mine),
        key=f"tasks_units_{entry.task_key}",
        placeholder="all units",
        format_func=lambda unit: texts.shorten(unit, 60),
    )


def _group_field(entry: CatalogueEntry, view: CatalogueView) -> None:
    panels = [panel.next_name for panel in view.entries if panel.members]
    groups = sorted({*panels, *(each.next_group for each in view.entries if each.setting.group)} - {""})
    current = {None: FOUND, "": ALONE}.get(entry.setting.group, entry.setting.group)
    choices = [FOUND, ALONE, *groups]
    st.selectbox(
        "Group, or a new one; its labs are one task, or one line where the mapping asks about everything",
        choices,
        choices.index(current) if current in choices else 0,
        key=f"tasks_group_{entry.task_key}",
        accept_new_options=True,
        format_func=lambda one: texts.shorten(one, 60),
    )


def _save(key: str, what: str, seen: TaskSetting) -> None:
    state = st.session_state
    reason = state[f"tasks_reason_{key}"]

    def act(app: "Services") -> bool:
        if what == MUTE:
            return app.catalogue.mute(key, state[f"tasks_until_{key}"], state[f"tasks_units_{key}"], reason, seen=seen)
        if what == UNMUTE:
            return app.catalogue.mute(key, None, (), reason, seen=seen)
        if what == RENAME:
            return app.catalogue.rename(key, state[f"tasks_name_{key}"], reason, seen=seen)
        if what == GROUP:
            chosen = state[f"tasks_group_{key}"]
            return app.catalogue.group(key, {FOUND: None, ALONE: ""}.get(chosen, chosen), reason, seen=seen)
        return app.catalogue.switch(key, SWITCHES[what], reason, seen=seen)

    changed, error = attempt(act)
    if changed:
        state[f"tasks_reason_{key}"] = ""
        step, how = ("import", command("import FOLDER")) if what in OF_IMPORT else ("scoring", command("score"))
        state[_SAID] = True, f"Saved. It takes effect with the next {step}: {how}"
    else:
        state[_SAID] = not error, error or "Nothing was changed: the task is already so."
