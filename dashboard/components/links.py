"""What stands in the address of a page: numbers and fixed words only, never a patient or anything a person typed."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from alertreview.alerts.models import FilterChoices, WorklistFilters
from core.vocabulary import RunId
from dashboard.components.filters import BUDGETS, FILTERS, PAGE_DEFAULTS

N = TypeVar("N", bound=int)


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
    """Return the worklist's filters from an address; what the page does not offer is left out.

    Rows always match the filters that can be seen. The text typed and the patient are those of this session: they never
    stand in an address.
    """
    scorer = params.get("scorer", "")
    found: dict[str, Any] = {}
    for one in FILTERS:
        text = params.get(one.param)
        value = one.read(text, choices) if text else None
        if value is not None:
            found[one.name] = value
    found.setdefault("text", typed)
    return replace(
        PAGE_DEFAULTS, run_id=run_id, scorer=scorer if scorer in scorers else "", patient_id=patient, **found
    )


def params_of(
    filters: WorklistFilters, choices: FilterChoices | None = None, *, latest_run: int | None = None
) -> dict[str, str]:
    """Return filters as parameters of an address, leaving out what is as the page shows it by itself.

    The search text is written only when it is part of a task's name, and more than digits: a person's name or number
    that somebody typed is not. The patient is never written.
    """
    names = [name.lower() for _, name in choices.tasks] if choices else []
    if filters.text.isdigit() or not any(filters.text.lower() in name for name in names):
        filters = replace(filters, text="")
    params = {
        "run": str(filters.run_id) if filters.run_id not in {None, latest_run} else "",
        "scorer": filters.scorer,
    } | {
        one.param: one.write(value)
        for one in FILTERS
        if one.param and (value := getattr(filters, one.name)) != one.default and value is not None
    }
    return {name: value for name, value in params.items() if value}


def next_budget(filters: WorklistFilters) -> float | None:
    """Return the next higher budget, None at the highest."""
    return next((offered for offered in BUDGETS if offered > filters.alerts_per_patient_day), None)


def without(filters: WorklistFilters, name: str) -> WorklistFilters:
    """Return the filters with one of them cleared."""
    return replace(filters, **{name: getattr(WorklistFilters(), name)})
