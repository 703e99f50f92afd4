"""A double of the Task page's use cases over the double's list of alerts."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alertreview.alerts.models import WorklistFilters
from alertreview.alerts.task_views import AlertMarks, JudgedTask, RunPoint, TaskChoice, TaskPages, TaskView
from alertreview.alerts.triage_models import TriageChoice
from alertreview.reports.sensitivity import SensitivityCurves, StoredSensitivity
from alertreview.rights import Service
from alertreview.scoring.models import Histogram
from core.errors import NotFoundError
from core.kinds import Kind
from core.scoring.sensitivity import Sensitivity, SensitivityPoint, Varied
from core.statistics.estimate import Estimate, not_computable
from core.vocabulary import Decision, TriageState
from tests.dashboard.doubles.sign_in import guarded_as

if TYPE_CHECKING:
    from tests.dashboard.doubles.application import FakeApplication

LEFT_OUT = TaskChoice("lab:rare", "Rare assay", Kind.LAB_ORDER, is_scored=False)


@guarded_as(TaskPages)
@dataclass
class FakeTasks(Service):
    """Tasks held in memory."""

    app: "FakeApplication"
    is_judged: bool = True
    n_runs: int = 2

    def choices(self, run_id: int, scorer: str = "") -> tuple[TaskChoice, ...]:
        self.app.worklist.run(run_id)
        named = {row.task_key: TaskChoice(row.task_key, row.task_name, row.kind, True) for row in self.app.rows()}
        return (*named.values(), LEFT_OUT) if named else ()

    def view(self, filters: WorklistFilters) -> TaskView:
        choice = next((one for one in self.choices(filters.run_id or 2) if one.task_key == filters.task_key), None)
        if choice is None:
            raise NotFoundError("The run has no such task.")
        rows = self.app.within(replace(filters, triage=TriageChoice.ANY)) if choice.is_scored else []
        n_alerts = {one: sum(row.decision is one for row in rows) for one in Decision}
        marks = AlertMarks(*((0, 0, 0, n_alerts[one]) for one in Decision))
        counts = (400, 150, 50, 12) if choice.is_scored else (0, 0, 0, 0)
        return TaskView(
            task_key=choice.task_key,
            name=choice.name,
            kind=choice.kind,
            order_group="Basic metabolic panel",
            scorer="softhad",
            reason="" if choice.is_scored else "3 past decisions of one kind; each task needs 20 of both.",
            n_past=2400,
            n_past_positive=984,
            n_scored=sum(counts),
            n_patient_days=612,
            scaled_histogram=Histogram((0.0, 0.25, 0.5, 0.75, 1.0), counts),
            score_histogram=Histogram((0.0, 0.5, 1.0, 1.5, 2.0), counts),
            scaled_marks=marks,
            score_marks=marks,
            thresholds={Decision.OMISSION: 0.64, Decision.COMMISSION: 0.71} if choice.is_scored else {},
            n_alerts=n_alerts,
            triage={one: sum(row.triage.state is one for row in rows) for one in TriageState},
        )

    def judged(self, filters: WorklistFilters) -> JudgedTask:
        if not self.is_judged:
            return JudgedTask(not_computable("no study of this run is complete or locked yet"))
        return JudgedTask(Estimate(0.81, 0.66, 0.91, n=23), "Ward panel")

    def drift(self, filters: WorklistFilters) -> tuple[RunPoint, ...]:
        names = ("median", "9 in 10 lie below") if filters.task_key else ("omissions", "commissions")
        return tuple(
            RunPoint(
                run.run_id,
                run.published_at,
                612,
                0.41,
                0.40 + 0.01 * place,
                {Decision.OMISSION: 5 + place, Decision.COMMISSION: 2},
                dict.fromkeys(names, 0.3 + 0.1 * place),
            )
            for place, run in enumerate(reversed(self.app.worklist.runs()[: self.n_runs]))
        )


@guarded_as(SensitivityCurves)
@dataclass
class FakeSensitivity(Service):
    """Curves of the newest run only."""

    app: "FakeApplication"
    is_judged: bool = True

    def of_run(self, run_id: int) -> StoredSensitivity | None:
        run = self.app.worklist.run(run_id)
        if run is None or run_id != 2:
            return None
        points = tuple(
            SensitivityPoint(
                varied,
                setting,
                "softhad",
                0.6 + 0.05 * place,
                Estimate(0.7 + 0.02 * place, 0.6, 0.9, n=60) if self.is_judged else not_computable("no study"),
            )
            for varied, settings in ((Varied.GRAPH_SIZE, (50.0, 200.0)), (Varied.REGULARIZATION, (0.0, 1.0, 10.0)))
            for place, setting in enumerate(settings)
        )
        return StoredSensitivity(Sensitivity(points, 50, 8, "Ward panel", 200.0, 0.0), run.published_at)
