"""Alerts on the command line: the top of the list as a table, CSV or JSON."""

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
    records = alert_records(rows, simulated=simulated)
    if output_format == "table":
        return _table(rows, records, simulated)
    return as_text(records, list(_record(0, None, simulated)), output_format)


def alert_records(rows: tuple[AlertRow, ...], *, simulated: bool) -> list[dict[str, object]]:
    """Return alerts as records of texts and numbers, in their order; ``rank`` is the position in it."""
    return [_record(position, row, simulated) for position, row in enumerate(rows, start=1)]


def _record(position: int, row: AlertRow | None, simulated: bool) -> dict[str, object]:
    return {
        "rank": position,
        "alert_id": row and row.alert_id,
        "task": row and row.task_name,
        "task_key": row and row.task_key,
        "kind": row and row.kind.value,
        "decision": row and row.decision.value,
        "patient_id": row and row.patient_id,
        "snapshot_at": row and row.snapshot_at.isoformat(),
        "unit": row and row.unit,
        "score": row and round(row.score, 6),
        "scaled_score": row and round(row.scaled_score, 6),
        "support": row and round(row.support, 6),
        "rank_in_list": row and row.rank,
        "simulated": simulated,
    }


def _table(rows: tuple[AlertRow, ...], records: list[dict[str, object]], simulated: bool) -> str:
    if not records:
        return "No alerts. Score the site first (alertreview score), or leave out a filter.\n"
    columns = {
        "#": [str(record["rank"]) for record in records],
        "alert": [str(record["alert_id"]) for record in records],
        "decision in question": [row.decision_words for row in rows],
        "type": [str(record["decision"]) for record in records],
        "scaled": [f"{record['scaled_score']:.3f}" for record in records],
        "support": [f"{record['support']:.2f}" for record in records],
        "patient": [str(record["patient_id"]) for record in records],
        "at": [str(record["snapshot_at"])[:16].replace("T", " ") for record in records],
        "unit": [str(record["unit"]) for record in records],
    }
    heading = "Simulated data: no real patient stands behind these alerts.\n" if simulated else ""
    return heading + aligned(columns, right={"#", "alert", "scaled", "support"})
