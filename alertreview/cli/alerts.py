"""Alerts on the command line: the top of the list as a table, CSV or JSON."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.cli.tables import aligned, as_text
from core.kinds import Kind
from core.vocabulary import Decision

if TYPE_CHECKING:
    from alertreview.application import Services

# Everything in the run's list: the command line shows the top, not what fits an alert budget.
NO_BUDGET = float("inf")


def list_alerts(
    application: "Services",
    top: int,
    *,
    decision: str | None = None,
    kind: str | None = None,
    order: str = "score",
    include_cut_windows: bool = False,
    scorer: str = "",
) -> tuple[AlertRow, ...]:
    """Take the `top` most unusual decisions of the last published run, of one decision ("omission") or kind, or of all.

    Order "score" has the highest scaled score first; "turns" takes omissions and commissions in turn, by rank within
    each. Omissions whose decision window was cut short are left out unless included. The scorer is the one shown first
    when empty.
    """
    filters = WorklistFilters(
        decision=Decision(decision) if decision else None,
        kind=Kind(kind) if kind else None,
        alerts_per_patient_day=NO_BUDGET,
        include_cut_windows=include_cut_windows,
        scorer=scorer,
    )
    if filters.decision is not None or order == "turns":
        return application.worklist.page(filters, limit=top).rows
    lists = [application.worklist.page(replace(filters, decision=one), limit=top).rows for one in Decision]
    merged = sorted((row for rows in lists for row in rows), key=lambda row: (-row.scaled_score, row.alert_id))
    return tuple(merged[:top])


def render_alerts(rows: tuple[AlertRow, ...], output_format: str, *, simulated: bool) -> str:
    """Write alerts as a table, "csv" or "json" with the same fields, in the order given, which is their ``rank``."""
    if output_format == "table":
        return _table(rows, simulated)
    return as_text(alert_records(rows, simulated=simulated), ("rank", *_FIELDS, "simulated"), output_format)


def alert_records(rows: tuple[AlertRow, ...], *, simulated: bool) -> list[dict[str, object]]:
    """Return alerts as records of texts and numbers, in their order; ``rank`` is the position in it."""
    return [
        {"rank": position, **{name: found(row) for name, found in _FIELDS.items()}, "simulated": simulated}
        for position, row in enumerate(rows, start=1)
    ]


_FIELDS: Mapping[str, Callable[[AlertRow], object]] = {
    "alert_id": lambda row: row.alert_id,
    "task": lambda row: row.task_name,
    "task_key": lambda row: row.task_key,
    "kind": lambda row: row.kind.value,
    "decision": lambda row: row.decision.value,
    "patient_id": lambda row: row.patient_id,
    "snapshot_at": lambda row: row.snapshot_at.isoformat(),
    "unit": lambda row: row.unit,
    "score": lambda row: round(row.score, 6),
    "scaled_score": lambda row: round(row.scaled_score, 6),
    "support": lambda row: round(row.support, 6),
    "rank_in_list": lambda row: row.rank,
}


def _table(rows: tuple[AlertRow, ...], simulated: bool) -> str:
    if not rows:
        return "No alerts. Score the site first (alertreview score), or leave out a filter.\n"
    columns = {
        "#": [str(position) for position in range(1, len(rows) + 1)],
        "alert": [str(row.alert_id) for row in rows],
        "decision in question": [row.decision_words for row in rows],
        "type": [row.decision.value for row in rows],
        "scaled": [f"{row.scaled_score:.3f}" for row in rows],
        "support": [f"{row.support:.2f}" for row in rows],
        "patient": [row.patient_id for row in rows],
        "at": [f"{row.snapshot_at:%Y-%m-%d %H:%M}" for row in rows],
        "unit": [str(row.unit) for row in rows],
    }
    heading = "Simulated data: no real patient stands behind these alerts.\n" if simulated else ""
    return heading + aligned(columns, right={"#", "alert", "scaled", "support"})
