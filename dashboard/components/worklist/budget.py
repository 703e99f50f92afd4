"""The alert budget of the worklist: the slider, how many alerts that makes, and how many of them prove true."""

import streamlit as st

from alertreview.alerts.models import FilterChoices, WorklistFilters, WorklistPage
from core.studies.texts import why_no_rate
from dashboard import texts
from dashboard.components import cards
from dashboard.components.worklist.filters import draw_budget
from dashboard.context import application, is_phone

_TURNS = "Omissions and commissions share the budget and take turns by rank."


def budget_card(filters: WorklistFilters, choices: FilterChoices, latest_run: int, found: WorklistPage) -> None:
    """Draw slider and sentence."""
    lowest = found.lowest_scaled_score
    reach = f", scaled score {texts.score(lowest)} or more" if lowest is not None else ""
    sentence = (
        f"**{texts.plural(found.n_in_lists, 'alert')}** for "
        f"{texts.plural(found.n_patient_days, 'patient-day')}{reach}. "
    )
    with st.container(border=is_phone(), key="budget-card"):
        if is_phone():
            draw_budget(filters, choices, latest_run)
            st.markdown(sentence + _rate(filters) + _withheld(found))
            return
        slider, words = st.columns([4, 8], vertical_alignment="center", gap="large")
        with slider:
            draw_budget(filters, choices, latest_run)
        about = "" if filters.decision else cards.muted(f" {_TURNS}")
        words.markdown(sentence + _rate(filters) + about + _withheld(found))


def _withheld(found: WorklistPage) -> str:
    """Say how many decisions are hidden until judged blindly, whatever the filters.

    On a separate line it would push the pager of a full list below the fold of a laptop.
    """
    n_hidden = found.n_to_judge_first
    return f" :material/visibility_off: {cards.muted(texts.judge_first(n_hidden))}" if n_hidden else ""


def _rate(filters: WorklistFilters) -> str:
    """Draw the expected share of relevant alerts within the budget, from a judged study of the run."""
    found = application().alert_lists.expected_rate(filters)
    if found is None:
        return cards.muted("The expected true-alert rate appears here once a study of this run is complete or locked.")
    if not found.n_cases:
        none = f"Expected true-alert rate: not known, no decided case of _{texts.plain(found.study, 60)}_ is within it."
        return cards.muted(none)
    rate = found.rate
    study = f"from the {texts.plural(found.n_cases, 'decided case')} inside it of _{texts.plain(found.study, 60)}_"
    if rate.value is None:
        return f"Expected true-alert rate: {texts.plain(rate.reason, 120)} {cards.muted(study)}."
    if why := why_no_rate(rate, found.n_cases):
        study = cards.muted(f"(_{texts.plain(found.study, 60)}_)")
        return f"Expected true-alert rate: cannot be said in one figure, {texts.plain(why, 120)} {study}."
    interval = ""
    if rate.low is not None and rate.high is not None:
        interval = f"95% interval {texts.interval_percent(rate.low, rate.high)}, "
    return f"Expected true-alert rate **{texts.percent(rate.value)}** {cards.muted(f'({interval}{study})')}."
