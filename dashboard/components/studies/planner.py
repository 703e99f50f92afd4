"""How many cases a study needs: from what a report showed, or before a pilot from what is expected."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from alertreview.studies.models import StudyPlan
from core.statistics.design_planning import Forecast
from core.statistics.planning import required_cases, required_cases_to_compare
from core.studies.next_study import plan_next
from core.studies.report import StudyReport
from dashboard import texts
from dashboard.components import cards
from dashboard.context import application, shown_errors

AUC, RELEVANT, UNDECIDED, MINUTES = 0.75, 0.25, 0.05, 2.0
"""What is expected where the report does not say, or may not."""
LOWEST = 0.51
"""Of the AUCs that a plan takes."""


@st.fragment
def expander(report: StudyReport) -> None:
    """Draw the planner at the end of a report; its fields start from the report's figures, unless these are hidden."""
    with st.expander("How many cases would another study need?"):
        auc, relevant, undecided, effect = _expectations(report)
        key = f"pl_{report.slug}_{'hidden' if report.hidden else 'whole'}"
        with st.grid(6, min_column_width=150):
            auc = st.number_input("Expected AUC", LOWEST, 0.99, auc, 0.01, key=f"{key}_auc")
            width = st.number_input("Interval, plus or minus", 0.01, 0.3, 0.07, 0.01, key=f"{key}_width")
            relevant = st.number_input("Relevant, % of cases", 1.0, 99.0, relevant, 1.0, "%.0f", key=f"{key}_relevant")
            undecided = st.number_input("Undecided, %", 0.0, 90.0, undecided, 1.0, "%.0f", key=f"{key}_undecided")
            readers = st.number_input(
                "Readers per case", 1, max(9, report.n_slots), report.n_slots, 1, key=f"{key}_readers"
            )
            effect = st.number_input("Design effect", 1.0, 20.0, effect, 0.1, key=f"{key}_effect")
        plan = required_cases(
            auc,
            relevant / 100,
            width,
            design_effect=effect,
            undecided_share=undecided / 100,
            n_readers=readers,
            minutes_per_judgment=MINUTES,
        )
        st.markdown(
            f"**{texts.plural(plan.n_cases, 'case')}**, of which {plan.n_decided:,} end decided and about "
            f"{plan.n_positive:,} are relevant: {texts.plural(plan.n_judgments, 'judgment')}, about "
            f"{(plan.minutes or 0.0) / 60:,.0f} h of reading at {MINUTES:g} min each. "
            f"The 95% interval of the AUC is then {auc:.2f} ± {plan.half_width:.3f}."
        )
        how = (
            f"By {texts.plain(plan.method, 200)}. The design effect is the squared ratio of the weighted to the naive "
            "interval; mind the highest AUC that disagreement lets one show."
        )
        st.markdown(f":small[{cards.muted(how)}]")
        if not report.hidden:
            _simulated(report, key, width, int(readers), undecided / 100)
            _comparison(key, auc, relevant / 100, effect)


def _simulated(report: StudyReport, key: str, width: float, n_readers: int, undecided: float) -> None:
    """Draw what studies of this report's strata would need, by simulating them."""
    if not st.button("Simulate with the strata of this report", key=f"{key}_simulate", icon=":material/casino:"):
        return
    with shown_errors(), st.spinner("Simulating studies…", show_time=False):
        plans = plan_next(report, width, n_readers=n_readers, undecided_share=undecided)
        _table(plans, f"{key}_plans", "Studies that reach the wanted interval, the recommended one first")


def _table(plans: Sequence[Forecast], key: str, alt: str) -> None:
    cards.table(
        pd.DataFrame(
            {
                "Cases are divided": [plan.allocation for plan in plans],
                "Cases": [plan.n_cases for plan in plans],
                "Low to high": [" + ".join(str(n) for n in plan.by_stratum) for plan in plans],
                "Interval, plus or minus": [plan.half_width for plan in plans],
                "Relevant, about": [round(plan.n_relevant) for plan in plans],
            }
        ),
        key=key,
        columns={"Interval, plus or minus": st.column_config.NumberColumn(format="%.3f")},
        alt=alt,
    )


@st.fragment
def before_a_pilot(plan: StudyPlan) -> None:
    """Draw the planner of a study that nobody has judged a case of; it simulates the strata of the plan."""
    with st.expander("How precise will its AUC be?"):
        with st.grid(3, min_column_width=150):
            auc = st.number_input("Expected AUC", LOWEST, 0.99, AUC, 0.01, key="su_auc")
            relevant = st.number_input("Relevant, % of decisions", 0.1, 90.0, 5.0, 0.5, "%.1f", key="su_relevant")
            width = st.number_input("Interval, plus or minus", 0.01, 0.3, 0.1, 0.01, key="su_width")
        if not st.button("Simulate with these strata", key="su_simulate", icon=":material/casino:"):
            return
        with shown_errors(), st.spinner("Simulating studies…", show_time=False):
            own, plans = application().study_desk.plan_pilot(plan, auc, relevant / 100, width)
            alt = "The study as planned, then studies that reach the wanted interval, the recommended one first"
            _table((own, *plans), "su_plans", alt)
            if own.half_width is None:
                st.markdown(cards.muted("As planned, most studies would see no relevant case, and have no AUC."))


def _comparison(key: str, auc: float, positive_share: float, effect: float) -> None:
    """Draw how many cases tell two scorers apart."""
    other = st.number_input("To tell it from a scorer of AUC", LOWEST, 0.99, rival(auc), 0.01, key=f"{key}_other")
    if other == auc:
        st.markdown(cards.muted("Equal AUCs cannot be told apart."))
        return
    n_cases = required_cases_to_compare(auc, other, positive_share, design_effect=effect)
    st.markdown(
        f"**{texts.plural(n_cases, 'decided case')}** show the difference 8 times in 10 (scores correlated by 0.5)."
    )


def rival(auc: float) -> float:
    """Return an AUC .05 away to compare with: below, unless no better than chance."""
    return round(auc - 0.05 if auc >= LOWEST + 0.05 else auc + 0.05, 2)


def _expectations(report: StudyReport) -> tuple[float, float, float, float]:
    """Return AUC, percent relevant, percent undecided and design effect of this study, within the fields' ranges."""
    scorer = None if report.hidden else report.primary.scorer(report.primary_scorer)
    if scorer is None or not report.primary.n_used:
        return AUC, 100 * RELEVANT, 100 * UNDECIDED, 1.0
    weighted, naive = scorer.auc_weighted, scorer.auc_naive
    auc = round(_within(weighted.value if weighted.value is not None else AUC, 0.55, 0.95), 2)
    effect = 1.0
    if weighted.has_interval and naive.has_interval:
        wide = (weighted.high or 0.0) - (weighted.low or 0.0)
        narrow = (naive.high or 0.0) - (naive.low or 0.0)
        effect = round(_within((wide / narrow) ** 2 if narrow > 0 else 1.0, 1.0, 20.0), 1)
    relevant = round(_within(100 * report.primary.n_positive / report.primary.n_used, 1.0, 99.0))
    undecided = round(_within(100 * (1 - report.primary.n_used / max(report.n_cases, 1)), 0.0, 90.0))
    return auc, float(relevant), float(undecided), effect


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
