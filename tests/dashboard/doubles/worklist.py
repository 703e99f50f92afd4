"""Double of the worklist: two runs over the double's list of alerts."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from alertreview.alerts.filters import relaxed_one_by_one
from alertreview.alerts.models import (
    AlertDetail,
    Comparison,
    FilterChoices,
    Neighbour,
    WorklistFilters,
    WorklistLine,
    WorklistPage,
)
from alertreview.alerts.preview_model import AlertPreview
from alertreview.alerts.reasons import ReasonLine, ReasonWords
from alertreview.alerts.triage_models import TriageChoice
from alertreview.alerts.worklist import Worklist
from alertreview.rights import Service
from alertreview.scoring.models import RunView
from core.errors import NotFoundError
from core.events.import_report import ImportReport, KindCount, ReadCounts, StayCounts
from core.kinds import Kind
from core.vocabulary import Decision
from tests.dashboard.doubles.records import HOSTILE, SNAPSHOT, TASKS, case_view, histogram
from tests.dashboard.doubles.sign_in import guarded_as

if TYPE_CHECKING:
    from tests.dashboard.doubles.application import FakeApplication


IMPORT = ImportReport(
    source="wards",
    format="meds",
    mapping="simulated",
    n_patients=180,
    n_events=186_420,
    read=ReadCounts(n_rows=190_000, kinds=(KindCount("LAB_ORDER", 90_000, 48, 50, 48),)),
    stays=StayCounts(n_stays=410, n_open=3),
    n_instances=3012,
    n_cut_windows=225,
    n_features=1079,
    n_tasks={"LAB_ORDER": 48, "MEDICATION": 36},
    min_positive={"LAB_ORDER": 20, "MEDICATION": 20},
)


@guarded_as(Worklist)
@dataclass
class FakeWorklist(Service):
    """Runs, ranked alerts and what stands behind one of them."""

    app: "FakeApplication"

    def runs(self, most: int | None = None) -> tuple[RunView, ...]:
        return (self._run(2), self._run(1))[:most] if self.app.published else ()

    def run(self, run_id: int | None = None) -> RunView | None:
        if not self.app.published:
            return None
        if run_id not in {None, 1, 2}:
            raise NotFoundError(f"There is no run {run_id} here. Open Runs to see which there are.")
        return self._run(run_id or 2)

    def _run(self, run_id: int) -> RunView:
        return RunView(
            run_id=run_id,
            scorer="softhad",
            published_at=SNAPSHOT + timedelta(minutes=6) - timedelta(days=2 - run_id),
            site_timezone="Europe/Vienna",
            simulated=self.app.simulated,
            calendar_is_shifted=False,
            split="time",
            seed=7,
            n_past=2400,
            n_recent=612,
            n_tasks_scored=len(TASKS),
            n_tasks_left_out=3,
            n_alerts=len(self.app.rows_made),
            floor=0.4,
            parameters={"n_neighbors": 75, "regularization": 0.3, "label_weight": 0.7, "n_nodes": 1500},
            import_summary=IMPORT.to_dict(),
        )

    def filter_choices(self, run_id: int, scorer: str = "") -> FilterChoices:
        self.run(run_id)
        units = tuple(sorted({row.unit for row in self.app.rows_made}))
        days = [row.snapshot_at.date() for row in self.app.rows_made]
        return FilterChoices(
            units,
            tuple(sorted({(r.task_key, r.task_name) for r in self.app.rows_made}, key=lambda t: t[1])),
            days=(min(days), max(days)) if days else None,
        )

    def page(self, filters: WorklistFilters, after: str | None = None, limit: int = 13) -> WorklistPage:
        self.run(filters.run_id)
        kept = self.app.within(filters)
        start = int(after) if after else 0
        rows = tuple(kept[start : start + limit])
        more = start + limit < len(kept)
        hidden = {}
        if not rows:
            for name, relaxed in relaxed_one_by_one(filters):
                hidden[name] = len(self.app.within(relaxed))
        return WorklistPage(
            rows=rows,
            next_cursor=str(start + limit) if more else None,
            n_within_budget=len(kept),
            n_patient_days=612,
            lowest_scores={
                decision: min(row.scaled_score for row in kept if row.decision is decision)
                for decision in {row.decision for row in kept}
            },
            n_hidden_by_filter=hidden,
            lines=tuple(WorklistLine((row,), row.decision_words) for row in rows),
            n_in_lists=len(self.app.within(replace(filters, triage=TriageChoice.ANY))),
            n_to_judge_first=20 if self.app.rows_made else 0,
        )

    def read_ahead(self, alert_id: int) -> None:
        self.app.ahead.append(alert_id)

    def preview(self, alert_id: int, person_id: int | None = None) -> AlertPreview:
        detail = self.alert(alert_id, None, person_id)
        return AlertPreview(
            detail.run.run_id,
            detail.day_of_stay,
            detail.scaled_histogram,
            detail.compared,
        )

    def alert(self, alert_id: int, filters: WorklistFilters | None = None, person_id: int | None = None) -> AlertDetail:
        rows = {row.alert_id: row for row in self.app.rows()}
        if alert_id not in rows:
            raise NotFoundError(f"There is no alert {alert_id} here. Open it from the worklist.")
        row = rows[alert_id]
        order = [r.alert_id for r in (self.app.within(filters) if filters else self.app.rows_made)]
        place = order.index(alert_id) if alert_id in order else None
        given = "given" if row.kind is Kind.MEDICATION else "ordered"
        run = self.run()
        if run is None:
            raise NotFoundError("Nothing is published.")
        return AlertDetail(
            row=row,
            run=run,
            day_of_stay=3,
            soft_label=0.94 if row.decision is Decision.OMISSION else -0.91,
            task_positive_share=0.41,
            score_histogram=histogram(2.0, 11),
            scaled_histogram=histogram(1.0, 12),
            patient=case_view(row.task_name, row.decision, alert_id, hostile=self.app.hostile),
            compared=Comparison(75, 71 if row.decision is Decision.OMISSION else 4, 61, 3, 1),
            neighbours=tuple(
                Neighbour(
                    f"SIM-{187 + 91 * i:04d}",
                    SNAPSHOT - timedelta(days=40 + 37 * i),
                    0.93 - 0.012 * i,
                    decided=i % 4 != 3,
                    hours_to_decision=None if i % 4 == 3 else 2.0 + i,
                )
                for i in range(6)
            ),
            reasons=ReasonWords(
                (
                    ReasonLine("Troponin I above 0.04 ng/mL", "0.41 ng/mL", 0.81, 0.06),
                    ReasonLine(HOSTILE if self.app.hostile else "On Heparin", "yes", 0.64, 0.11),
                    ReasonLine("Admitted for: Chest pain", "yes", 0.47, 0.12),
                ),
                "Without “Troponin I above 0.04 ng/mL” it would not have been expected, by these findings alone.",
            ),
            record_after=(f"{row.task_name} {given} 41 h later, on 29 Nov at 01:10.", f"Not {given} within 24 h."),
            surprise=12.4,
            lowest_scaled_score=self.page(filters, limit=1).lowest_scores.get(row.decision) if filters else None,
            previous_alert_id=order[place - 1] if place else None,
            next_alert_id=order[place + 1] if place is not None and place + 1 < len(order) else None,
        )
