"""What stands in the address of a page: numbers and fixed words only, never a patient or anything a person typed."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import date
from enum import StrEnum
from math import ceil, floor
from typing import TypeVar

from alertreview.alerts.models import FilterChoices, WorklistFilters
from alertreview.alerts.triage_models import Grouping, ListOrder, TriageChoice
from core.kinds import Kind
from core.vocabulary import Decision, RunId

BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
"""Alerts per patient-day that the slider offers."""
PAGE_DEFAULTS = WorklistFilters(triage=TriageChoice.OPEN, grouping=Grouping.ORDER_GROUP)
"""What the page shows when its address says nothing."""
DEFAULT_BUDGET = PAGE_DEFAULTS.alerts_per_patient_day

N = TypeVar("N", bound=int)
_Word = TypeVar("_Word", bound=StrEnum)


def whole_number(text: str | None, kind: Callable[[int], N]) -> N | None:
    """Return an id of a kind, such as `RunId`, from the text of an address; None for anything that is not one."""
    return kind(int(text)) if text and text.isascii() and text.isdigit() and len(text) < 16 else None


def filters_from(
    params: Mapping[str, str],
    choices: FilterChoices,
    run_id: RunId,
    typed: str = "",
    *,
    patient: str = "",
    scorers: Collection[str] = (),
) -> WorklistFilters:
    """Read the worklist's filters from an address; what the page does not offer is left out.

    Parameters
    ----------
    params
        Parameters of the address.
    choices
        What the widgets offer, so that rows always match the filters that can be seen.
    run_id
        The run that is shown.
    typed
        Search text of this session that must not stand in the address.
    patient
        The patient of this session, who never stands in an address.
    scorers
        Whose lists the run has.
    """
    unit, task_key, scorer = params.get("unit", ""), params.get("task", ""), params.get("scorer", "")
    return WorklistFilters(
        run_id=run_id,
        decision=_word(params.get("decision"), Decision),
        kind=_word(params.get("kind"), Kind),
        unit=unit if unit in choices.units else "",
        task_key=task_key if task_key in {key for key, _ in choices.tasks} else "",
        text=params.get("find", "") or typed,
        alerts_per_patient_day=nearest_budget(params.get("budget")),
        include_cut_windows=params.get("cut") == "1",
        scorer=scorer if scorer in scorers else "",
        triage=_word(params.get("triage"), TriageChoice) or PAGE_DEFAULTS.triage,
        first_day=_day(params.get("from"), choices),
        last_day=_day(params.get("to"), choices),
        lowest_score=_score(params.get("least"), choices),
        highest_score=_score(params.get("most"), choices),
        patient_id=patient,
        grouping=_word(params.get("group"), Grouping) or PAGE_DEFAULTS.grouping,
        order=_word(params.get("order"), ListOrder) or PAGE_DEFAULTS.order,
    )


def params_of(
    filters: WorklistFilters, choices: FilterChoices | None = None, *, latest_run: int | None = None
) -> dict[str, str]:
    """Write filters as parameters of an address, leaving out what is as the page shows it by itself.

    The search text is written only when it is part of a task's name: a person's name that somebody typed is not. The
    patient is never written.
    """
    names = [name.lower() for _, name in choices.tasks] if choices else []
    known = bool(filters.text) and any(filters.text.lower() in name for name in names)
    params = {
        "run": str(filters.run_id) if filters.run_id not in {None, latest_run} else "",
        "scorer": filters.scorer,
        "decision": filters.decision.value if filters.decision else "",
        "kind": filters.kind.value if filters.kind else "",
        "unit": filters.unit,
        "task": filters.task_key,
        "find": filters.text if known else "",
        "budget": f"{filters.alerts_per_patient_day:g}" if filters.alerts_per_patient_day != DEFAULT_BUDGET else "",
        "cut": "1" if filters.include_cut_windows else "",
        "triage": filters.triage.value if filters.triage is not PAGE_DEFAULTS.triage else "",
        "from": filters.first_day.isoformat() if filters.first_day else "",
        "to": filters.last_day.isoformat() if filters.last_day else "",
        "least": f"{filters.lowest_score:g}" if filters.lowest_score is not None else "",
        "most": f"{filters.highest_score:g}" if filters.highest_score is not None else "",
        "group": filters.grouping.value if filters.grouping is not PAGE_DEFAULTS.grouping else "",
        "order": filters.order.value if filters.order is not PAGE_DEFAULTS.order else "",
    }
    return {name: value for name, value in params.items() if value}


def nearest_budget(text: str | None) -> float:
    """Return the offered budget nearest to what the address says."""
    try:
        wanted = float(text) if text else DEFAULT_BUDGET
    except ValueError:
        wanted = DEFAULT_BUDGET
    return min(BUDGETS, key=lambda offered: abs(offered - wanted)) if wanted == wanted else DEFAULT_BUDGET


def next_budget(filters: WorklistFilters) -> float | None:
    """Return the next higher budget, None at the highest."""
    return next((offered for offered in BUDGETS if offered > filters.alerts_per_patient_day), None)


def without(filters: WorklistFilters, name: str) -> WorklistFilters:
    """Return the filters with one of them cleared."""
    blank = WorklistFilters()
    return replace(filters, **{name: getattr(blank, name)})


def _day(text: str | None, choices: FilterChoices) -> date | None:
    """Read a day that the import has; None for anything else."""
    try:
        day = date.fromisoformat(text) if text else None
    except ValueError:
        return None
    return day if day and choices.days and choices.days[0] <= day <= choices.days[1] else None


def _score(text: str | None, choices: FilterChoices) -> float | None:
    """Read a scaled score that the lists have; None for anything else."""
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    ends = score_ends(choices)
    return value if value is not None and ends and ends[0] < value < ends[1] else None


def score_ends(choices: FilterChoices) -> tuple[float, float] | None:
    """Return the ends of the slider over the scaled scores, in hundredths; None when there is nothing to choose."""
    if choices.scores is None:
        return None
    low, high = floor(choices.scores[0] * 100) / 100, ceil(choices.scores[1] * 100) / 100
    return (low, high) if low < high else None


def _word(text: str | None, words: type[_Word]) -> _Word | None:
    try:
        return words(text) if text else None
    except ValueError:
        return None
