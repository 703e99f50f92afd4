"""Which run a page shows, and whose list of it: what the address names, else the newest run and its first scorer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from alertreview.scoring.models import RunView
from core.vocabulary import RunId
from dashboard.components import cards, links

if TYPE_CHECKING:
    from alertreview.application import Services


@dataclass(frozen=True)
class ShownRun:
    """The run of a page."""

    run: RunView
    latest_id: RunId  # the newest published run
    scorer: str  # as the address names it; empty for the run's first


def shown_run(app: "Services") -> ShownRun | None:
    """Read the run from the address; where nothing is published yet, say so on the page and return None.

    Raise NotFoundError if the address names a run that is not here.
    """
    latest = app.worklist.run()
    if latest is None:
        cards.nothing_published(app.site.simulated)
        return None
    named = links.whole_number(st.query_params.get("run"), RunId)
    run = latest if named is None else app.worklist.run(named) or latest
    scorer = st.query_params.get("scorer", "")
    return ShownRun(run, latest.run_id, scorer if scorer in run.scorers else "")
