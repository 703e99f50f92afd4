"""Tabs of the Admin page about the site itself: its health and its backups."""

from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from alertreview.operations.backup import list_backups
from alertreview.operations.doctor import Finding, Level, examine_site
from alertreview.rights import Action, require
from dashboard import texts
from dashboard.components import cards
from dashboard.context import command, settings, shown_errors, signed_in

_FOUND = "site_health"
WORDS = {Level.PROBLEM: ("red", "problem"), Level.WARNING: ("orange", "warning"), Level.GOOD: ("green", "good")}


def health() -> None:
    """Draw what an examination of the site found; it runs on demand, because it reads every record."""
    require(signed_in(), Action.OPERATE)
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Examine the site", key="admin_examine", icon=":material/health_and_safety:"):
            with shown_errors(), st.spinner("Examining the site…", show_time=False):
                now = datetime.now(UTC)
                st.session_state[_FOUND] = now, tuple(examine_site(settings(), now))
        found: tuple[datetime, tuple[Finding, ...]] | None = st.session_state.get(_FOUND)
        words = "Home, disk, database, audit trail, clocks, imports and backups are examined."
        st.markdown(cards.muted(f"Examined {texts.day_time(found[0])} UTC." if found else words), width="content")
    for finding in sorted(found[1], key=lambda one: list(WORDS).index(one.level)) if found else ():
        colour, word = WORDS[finding.level]
        subject = finding.subject[:1].upper() + finding.subject[1:]
        st.markdown(f":{colour}-badge[{word}] **{texts.plain(subject, 40)}** {texts.plain(finding.text, 600)}")


def backups() -> None:
    """Draw the verified backups of the site, newest first, and how to make one."""
    require(signed_in(), Action.OPERATE)
    found = list_backups(settings().backups)[::-1]
    if found:
        made = [datetime.fromtimestamp(folder.lstat().st_mtime, UTC) for folder in found]
        frame = pd.DataFrame(
            {"Made, UTC": [texts.day_time(when) for when in made], "Folder": [str(folder) for folder in found]}
        )
        cards.table(frame, key=f"admin_backups_{len(found)}", alt=f"{texts.plural(len(found), 'verified backup')}")
    else:
        st.markdown(cards.muted("There is no verified backup in the home of this site."))
    st.markdown(cards.muted("This command makes a backup, restores it in a scratch place and compares every row:"))
    st.code(command("backup create"), language=None, wrap_lines=True)
