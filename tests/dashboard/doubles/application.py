"""A double of the application for page tests: the same methods and read models, simulated data held in memory.

Read from the bottom up: records, reading, exports, and here the worklist with everything that hangs on the application.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from alertreview.alerts.models import (
    AlertDetail,
    AlertRow,
    FilterChoices,
    Neighbour,
    WorklistFilters,
    WorklistLine,
    WorklistPage,
)
from alertreview.alerts.preview_model import AlertPreview
from alertreview.alerts.triage_models import TriageChoice
from alertreview.scoring.models import RunView
from core.errors import NotFoundError
from core.studies.report import StudyReport
from core.vocabulary import Decision, Kind
from tests.dashboard.doubles.exports import FakeExports
from tests.dashboard.doubles.panels import FakePanels
from tests.dashboard.doubles.records import HOSTILE, SNAPSHOT, TASKS, histogram, timeline
from tests.dashboard.doubles.report import simulated_report
from tests.dashboard.doubles.sign_in import FakeSessions, NoUnits
from tests.dashboard.doubles.studies import FakeAdjudication, FakeDesk, FakeRunComparisons, FakeStudiesService
from tests.dashboard.doubles.tasks import FakeSensitivity, FakeTasks
from tests.dashboard.doubles.triage import FakeLists, FakeTriage, FakeViews


@dataclass
class FakeApplication(FakeExports):
    """The application's interface over simulated data; its parameters are those of reading."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sessions, self.unit_lookup = FakeSessions(), NoUnits()
        self.study_desk = FakeDesk(self.studies)
        self.adjudication = FakeAdjudication(partial(timeline, hostile=self.hostile))
        self.run_comparisons = FakeRunComparisons()
        self.panels = FakePanels(self)
        self.tasks = FakeTasks(self)
        self.sensitivity = FakeSensitivity(self)
        self.studies_service = FakeStudiesService(self.queue, self.people, self.study)
        self.triage, self.saved_views, self.alert_lists = FakeTriage(self.clock), FakeViews(), FakeLists(self)

    def finish_writing(self, _within_seconds: float) -> bool:
        return True

    def runs(self) -> tuple[RunView, ...]:
        return (self._run(2), self._run(1)) if self.published else ()

    def run(self, run_id: int | None = None) -> RunView | None:
        if not self.published:
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
            simulated=self.simulated,
            calendar_is_shifted=False,
            split="time",
            seed=7,
            n_past=2400,
            n_recent=612,
            n_tasks_scored=len(TASKS),
            n_tasks_left_out=3,
            n_alerts=len(self._rows),
            floor=0.4,
            parameters={"n_neighbors": 75, "regularization": 0.3, "label_weight": 0.7, "n_nodes": 1500},
            import_summary={"stays": 410, "instances": 3012, "labs": 48, "drugs": 36, "events": 186_420},
        )

    def filter_choices(self, run_id: int, scorer: str = "") -> FilterChoices:
        self.run(run_id)
        units = tuple(sorted({row.unit for row in self._rows}))
        return FilterChoices(units, tuple(sorted({(r.task_key, r.task_name) for r in self._rows}, key=lambda t: t[1])))

    # ----- alerts -----

    def worklist(self, filters: WorklistFilters, after: str | None = None, limit: int = 13) -> WorklistPage:
        self.run(filters.run_id)
        kept = self.within(filters)
        start = int(after) if after else 0
        rows = tuple(kept[start : start + limit])
        more = start + limit < len(kept)
        hidden = {}
        if not rows:
            blanks = {"decision": None, "kind": None, "unit": "", "task_key": "", "text": "", "patient_id": ""}
            for name, blank in (blanks | {"triage": TriageChoice.ANY}).items():
                if getattr(filters, name) != blank:
                    hidden[name] = len(self.within(replace(filters, **{name: blank})))
        return WorklistPage(
            rows=rows,
            next_cursor=str(start + limit) if more else None,
            n_within_budget=len(kept),
            n_patient_days=612,
            lowest_scaled_score=kept[-1].scaled_score if kept else None,
            n_hidden_by_filter=hidden,
            lines=tuple(WorklistLine((row,), row.decision_words) for row in rows),
            n_in_lists=len(self.within(replace(filters, triage=TriageChoice.ANY))),
        )

    def rows(self) -> list[AlertRow]:
        return [replace(row, standing=self.triage.standing(row.alert_id)) for row in self._rows]

    def within(self, filters: WorklistFilters) -> list[AlertRow]:
        most = round(filters.alerts_per_patient_day * 612)
        return [
            row
            for row in self.rows()
            if row.rank <= most
            and row.standing.state in filters.triage.states
            and filters.patient_id in {"", row.patient_id}
            and filters.decision in {None, row.decision}
            and filters.kind in {None, row.kind}
            and filters.unit in {"", row.unit}
            and filters.task_key in {"", row.task_key}
            and filters.text.lower() in row.task_name.lower()
        ]

    def preview(self, alert_id: int, person_id: int | None = None) -> AlertPreview:
        detail = self.alert(alert_id, None, person_id)
        return AlertPreview(
            detail.run.run_id,
            detail.day_of_stay,
            detail.scaled_histogram,
            detail.n_neighbours,
            detail.n_neighbours_decided,
        )

    def alert(self, alert_id: int, filters: WorklistFilters | None = None, person_id: int | None = None) -> AlertDetail:
        rows = {row.alert_id: row for row in self.rows()}
        if alert_id not in rows:
            raise NotFoundError(f"There is no alert {alert_id} here. Open it from the worklist.")
        row = rows[alert_id]
        order = [r.alert_id for r in (self.within(filters) if filters else self._rows)]
        place = order.index(alert_id) if alert_id in order else None
        given = "given" if row.kind is Kind.MEDICATION else "ordered"
        run = self.run()
        if run is None:
            raise NotFoundError("Nothing is published.")
        return AlertDetail(
            row=row,
            run=run,
            day_of_stay=3,
            window_hours=24.0,
            soft_label=0.94 if row.decision is Decision.OMISSION else -0.91,
            task_positive_share=0.41,
            score_histogram=histogram(2.0, 11),
            scaled_histogram=histogram(1.0, 12),
            timeline=timeline(row.task_name, row.decision, alert_id, hostile=self.hostile),
            n_neighbours=75,
            n_neighbours_decided=71 if row.decision is Decision.OMISSION else 4,
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
            near_features=(
                ("Troponin I, last value", 0.24),
                ("Troponin I, slope over 24 h", 0.19),
                (HOSTILE if self.hostile else "Heparin infusion, stopped in 24 h", 0.14),
                ("Creatinine, last value", 0.11),
                ("Haemoglobin, drop from base", 0.09),
                ("ECG ordered in 24 h", 0.07),
            ),
            record_after=(f"{row.task_name} was {given} 41 h later, on 29 Nov at 01:10.", f"Not {given} within 24 h."),
            lowest_scaled_score=self.worklist(filters, limit=1).lowest_scaled_score if filters else None,
            previous_alert_id=order[place - 1] if place else None,
            next_alert_id=order[place + 1] if place is not None and place + 1 < len(order) else None,
        )

    def report(self, slug: str, person_id: int | None = None) -> StudyReport:
        study = self.study(slug)
        return simulated_report(study)
