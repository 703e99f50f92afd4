"""Reasons of an alert in words: findings, whether they hold here, and how often each goes with the decision."""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.number_texts import measured_text
from core.scoring.reasons import Finding, Reason, Reasons
from core.vocabulary import Decision


@dataclass(frozen=True)
class ReasonLine:
    """One finding that speaks for what was expected."""

    finding: str  # "Troponin I above 0.04 ng/mL", "on heparin"
    here: str  # of this patient: the value, "yes" or "no"
    share_with: float  # share of past days with the decision, among those with the finding
    share_without: float  # the same among those without it


@dataclass(frozen=True)
class ReasonWords:
    """The reasons of one alert."""

    lines: tuple[ReasonLine, ...] = ()  # strongest first; empty when no finding tells the decisions apart
    counterfactual: str = ""  # the one change that would turn what was expected; empty when no single one does


def reasons_in_words(reasons: Reasons, dictionary: pd.DataFrame, decision: Decision, in_stay: Set[str]) -> ReasonWords:
    """Return reasons in words; an omission was expected, a commission was not.

    `in_stay` names what was measured in the stay: a value of another lab is an older one, which its line says.
    """
    lines = tuple(_line(reason, dictionary, decision, in_stay) for reason in reasons.reasons)
    return ReasonWords(lines, _counterfactual(reasons, dictionary, decision))


def _line(reason: Reason, dictionary: pd.DataFrame, decision: Decision, in_stay: Set[str]) -> ReasonLine:
    here = _here(reason.finding, reason.here, reason.value, dictionary)
    row = dictionary.iloc[reason.finding.column]
    if str(row["aspect"]) in {"last_value", "change"} and not np.isnan(reason.value) and row["source"] not in in_stay:
        here += ", before this stay"
    words = _finding(reason.finding, dictionary)
    if decision is Decision.COMMISSION or reason.here or reason.finding.threshold is None or np.isnan(reason.value):
        return ReasonLine(words, here, reason.share_with, reason.share_without)
    # What was expected is explained by what holds: at most 32 h, instead of not above 32 h.
    side = "above" if not reason.finding.below else "below"
    opposite = words.replace(f" {side} ", " at most " if side == "above" else " at least ")
    return ReasonLine(opposite, here, reason.share_without, reason.share_with)


def _counterfactual(reasons: Reasons, dictionary: pd.DataFrame, decision: Decision) -> str:
    if reasons.counterfactual is None:
        return ""
    turned = "would not have been expected" if decision is Decision.OMISSION else "would have been expected"
    change = "Without" if reasons.counterfactual_here else "With"
    finding = _finding(reasons.counterfactual, dictionary)
    return f"{change} “{finding}” it {turned}, by these findings alone."


def _finding(finding: Finding, dictionary: pd.DataFrame) -> str:
    row = dictionary.iloc[finding.column]
    source, aspect, unit = str(row["source"]), str(row["aspect"]), str(row["unit"])
    if finding.threshold is None:
        return {
            "on_now": f"On {source}",
            "measured_24h": f"{source} measured in the last 24 h",
            "pending": f"{source} pending",
            "ever": f"Had {source} before",
            "is_female": "Female",
            "previous_stays": "Was in this hospital before",
        }.get(aspect, str(row["name"]))
    side = "below" if finding.below else "above"
    limit = f"{side} {_measured(finding.threshold, unit)}"
    what = {
        "last_value": source,
        "change": f"{source}, last change",
        "age_years": "Age",
        "day_of_stay": "Day of stay",
        "hours_since_admission": "Time since admission",
        "hours_on_unit": "Time on the unit",
    }.get(aspect, str(row["name"]))
    return f"{what} {limit}"


def _here(finding: Finding, holds: bool, value: float, dictionary: pd.DataFrame) -> str:
    if finding.threshold is None:
        return "yes" if holds else "no"
    if np.isnan(value):
        return "no value"  # it may have been measured, with a result in words, or once and so without a change
    return _measured(value, str(dictionary["unit"].iloc[finding.column]))


def _measured(value: float, unit: str) -> str:
    """Write results as precisely as labs report them, and counted hours as the page does."""
    return f"{measured_text(value, 3 if unit == 'h' else 4)} {unit}".strip()
