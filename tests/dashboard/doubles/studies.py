"""Doubles of the coordinator's services: what the set-up and studies pages read, and a list of what they did."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from alertreview.review.adjudication import AdjudicationCase, AdjudicationService, LetteredVote
from alertreview.rights import Service
from alertreview.scoring.models import Histogram
from alertreview.scoring.run_comparison import ListComparison, MovedAlert, RunComparisons
from alertreview.studies.desk import StudyDesk
from alertreview.studies.models import (
    PlanPreview,
    ReaderProgress,
    Rubric,
    StratumProgress,
    StudyHead,
    StudyPaper,
    StudyPlan,
    StudyProgress,
    StudyView,
)
from alertreview.studies.studies import StudyService
from core.errors import InvalidInputError, NotFoundError, RefusedError
from core.kinds import Kind
from core.statistics.design_planning import Forecast
from core.studies.selection import Stratum
from core.vocabulary import Answer, CaseState, Certainty, Decision, SlotState, StudyStatus
from db.models import Adjudication
from tests.dashboard.doubles.records import HOSTILE, ZONE, case_view
from tests.dashboard.doubles.sign_in import guarded_as

if TYPE_CHECKING:
    from tests.dashboard.doubles.application import FakeApplication

ANSWERS = {answer: answer.short for answer in Answer}
TITLES = {"demo": "ICU pilot 2026", "ward-2025": "Ward pilot 2025", "panel": "Ward round"}


@guarded_as(StudyDesk)
@dataclass
class FakeDesk(Service):
    """The set-up page's service."""

    app: "FakeApplication"
    done: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    n_repeats: int = 0
    open_panels: list[str] = field(default_factory=list)

    def preview(self, plan: StudyPlan) -> PlanPreview:
        if any(b <= a for a, b in zip(plan.edges, plan.edges[1:], strict=False)):
            raise InvalidInputError(f"Stratum edges {plan.edges} must rise.")
        return PlanPreview(
            run_id=2,
            scorer=plan.scorer or "softhad",
            candidates=Histogram((0.0, 0.5, 1.0), (900, 100)),
            strata=(
                Stratum("low, under 0.50", float("-inf"), 0.5, None, 900, 111, 111),
                Stratum("high, 0.50 and over", 0.5, float("inf"), None, 100, 100, 100),
            ),
            n_candidates=1000,
            n_chosen=plan.n_cases,
            n_patients=60,
            n_alerts=31,
            left_out={"not eligible": 12},
            notes=(),
        )

    def plan_pilot(
        self, plan: StudyPlan, auc: float, relevant_share: float, half_width: float
    ) -> tuple[Forecast, tuple[Forecast, ...]]:
        self.done.append(("plan_pilot", (plan.n_cases, auc, relevant_share, half_width)))
        own = Forecast("as planned", 222, (111, 111), None if relevant_share < 0.01 else 0.123, 9.4, 0.6)
        return own, (Forecast("Neyman's, by size and spread", 300, (250, 50), half_width, 20.0, 0.0),)

    def set_up(
        self, slug: str, title: str, plan: StudyPlan, rubric: Rubric, reader_ids: Any, *, is_open_panel: bool = False
    ) -> Any:
        self.open_panels += [slug] if is_open_panel else []
        self.done.append(("set_up", (slug, title, plan, rubric, tuple(reader_ids))))
        return self.app.studies.all()[0]

    def set_up_training(self, slug: str, title: str, from_slug: str, n_cases: int, reader_ids: Any, **_: Any) -> Any:
        self.done.append(("set_up_training", (slug, title, from_slug, n_cases, tuple(reader_ids))))
        return self.app.studies.all()[0]

    def paper(self, slug: str) -> StudyPaper:
        rubric = Rubric("Usual?", {0: "C", 1: "U", 2: "N", 3: "R"})
        return StudyPaper(slug, rubric, 1, 2, 7, {}, (2, 3, 4), self.n_repeats, False, ("2026-11-20: study opened",))

    def strata(self, slug: str, person_id: int | None = None) -> tuple[StratumProgress, ...]:
        if self.app.review.is_blinded(slug, person_id):
            raise RefusedError("Strata are shown once your own cases are judged.")
        study = self.app.studies.view(slug)
        decided = sum(study.case_states[state] for state in (CaseState.MAJORITY, CaseState.ADJUDICATED))
        open_now = study.case_states[CaseState.OPEN]
        return (
            StratumProgress("high, 0.50 and over", 0, 0, open_now),
            StratumProgress("low, under 0.50", decided, study.n_cases - decided - open_now, 0),
        )

    def self_agreement(self, slug: str, person_id: int | None = None) -> tuple[Any, ...]:
        del slug, person_id
        return ()


@guarded_as(StudyService)
@dataclass
class FakeStudies(Service):
    """Studies, acts on them, and how far their readers are."""

    app: "FakeApplication"
    done: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def all(self) -> tuple[StudyView, ...]:
        slugs = (*(("panel",) if self.app.with_panel else ()), "demo", "ward-2025")
        return tuple(self._study(slug) for slug in slugs) if self.app.with_studies and self.app.published else ()

    def view(self, slug: str) -> StudyView:
        known = {study.slug: study for study in self.all()}
        if slug not in known:
            raise NotFoundError(f"There is no study {slug!r} here. Open Studies to see which there are.")
        return known[slug]

    def head(self, slug: str) -> StudyHead:
        return self.view(slug)

    def progress(self, slug: str) -> StudyProgress:
        study = self.view(slug)
        readers = tuple(
            ReaderProgress(
                person.person_id,
                f"R{n}",
                person.name,
                {**queue.states, SlotState.FREE: 0},
                n_mine=queue.n_mine,
                last_judged_at=datetime(2026, 11, 20, 9, 0, tzinfo=ZONE) if queue.n_submitted else None,
                per_day=queue.n_submitted / 4 if queue.n_submitted else None,
                seconds=tuple(60.0 + case for case in range(queue.n_submitted)),
            )
            for n, person in enumerate(self.app.site.people(), start=1)
            for queue in [self.app.review.queue(slug, person.person_id)]
            if person.person_id != 5
        )
        # The last day's answers make up the number.
        days = (date(2026, 11, 17), date(2026, 11, 18), date(2026, 11, 20))
        return StudyProgress(
            study.n_cases,
            study.n_complete,
            study.case_states,
            study.n_cases * study.n_slots,
            dict.fromkeys(SlotState, 0),
            readers,
            tuple((day, study.n_judged * n // 3) for n, day in enumerate(days, 1)) if study.n_judged else (),
            today=date(2026, 11, 20),
        )

    def lock_study(self, slug: str, *, reason: str = "", **_: Any) -> None:
        self.done.append(("lock_study", (slug, reason)))

    def reopen_study(self, slug: str, *, reason: str, **_: Any) -> None:
        self.done.append(("reopen_study", (slug, reason)))

    def open_study(self, slug: str, **_: Any) -> None:
        self.done.append(("open_study", (slug,)))

    def add_readers(self, slug: str, person_ids: Any, **_: Any) -> None:
        self.done.append(("add_readers", (slug, tuple(person_ids))))

    def _study(self, slug: str) -> StudyView:
        states = dict.fromkeys(CaseState, 0)
        for case_id in self.app.case_ids():
            states[self._case_state(slug, case_id)] += 1
        return StudyView(
            study_id=("demo", "ward-2025", "panel").index(slug) + 1,
            slug=slug,
            title=HOSTILE if self.app.hostile else TITLES[slug],
            status=StudyStatus.LOCKED if slug == "ward-2025" else StudyStatus.OPEN,
            simulated=self.app.simulated,
            question="Was this decision unusual for this patient, and clinically relevant?",
            guidelines="Judge by what was known at 08:00.\n\n- **Usual**: expected.\n- **Relevant**: you would call.",
            answer_texts=dict(ANSWERS),
            n_slots=3,
            n_cases=self.app.n_cases,
            n_complete=sum(len(self._case_votes(slug, c)) >= 3 for c in self.app.case_ids()),
            case_states=states,
            n_judged=sum(len(self._case_votes(slug, c)) for c in self.app.case_ids()),
            is_calibration=self.app.training,
            is_open_panel=slug == "panel",
        )

    def _case_votes(self, slug: str, case_id: int) -> list[Answer]:
        return [v[-1].answer for (s, _, c), v in self.app.votes.items() if s == slug and c == case_id and v]

    def _case_state(self, slug: str, case_id: int) -> CaseState:
        votes = self._case_votes(slug, case_id)
        real = [vote for vote in votes if vote is not Answer.CANNOT_JUDGE]
        if any(real.count(answer) >= 2 for answer in Answer):
            return CaseState.MAJORITY
        if len(votes) < 3:
            return CaseState.OPEN
        return CaseState.DISPUTED if len(real) >= 3 else CaseState.UNDETERMINED


@guarded_as(RunComparisons)
@dataclass
class FakeRunComparisons(Service):
    """Two lists of which one alert entered the first."""

    def compare(
        self, before_id: int, after_id: int, n_first: int = 100, person_id: int | None = None
    ) -> tuple[ListComparison, ...]:
        del before_id, after_id
        new = MovedAlert("Troponin I", Kind.LAB_ORDER, Decision.OMISSION, 1000, None, 3, None, 0.9)
        first = ListComparison(Decision.OMISSION, n_first, n_first, n_first - 1, (new,), (), (), 0.5)
        return first, ListComparison(Decision.COMMISSION, 2, 2, 2, (), (), (), None)


@guarded_as(AdjudicationService)
@dataclass
class FakeAdjudication(Service):
    """Two cases that wait; what is settled waits no more."""

    app: "FakeApplication"
    settled: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    fail_with: list[Exception] = field(default_factory=list)

    def disagreements(self, slug: str, person_id: int) -> tuple[int, ...]:
        del slug, person_id
        return tuple(case_id for case_id in (1, 2) if case_id not in self.settled)

    def case(self, slug: str, person_id: int, case_id: int) -> AdjudicationCase:
        del person_id
        votes = (
            LetteredVote("A", Answer.USUAL, None, "A was not sure"),
            LetteredVote("B", Answer.RELEVANT, Certainty.CERTAIN, ""),
            LetteredVote("C", Answer.CANNOT_JUDGE, None, ""),
        )
        line = case_view("Troponin I", Decision.OMISSION, case_id, hostile=self.app.hostile)
        return AdjudicationCase(
            slug, case_id, case_id, "Troponin I", Kind.LAB_ORDER, Decision.OMISSION, "Troponin I not ordered",
            "F", 71.0, "Medical ICU", 4, votes, line, 0, None, "",
        )  # fmt: skip

    def adjudicate(self, slug: str, person_id: int, case_id: int, *, answer: Any, **given: Any) -> Adjudication:
        del slug
        if self.fail_with:
            raise self.fail_with.pop(0)
        if answer is None:
            raise RefusedError("No answer is chosen. Choose one, then save.")
        self.settled[case_id] = (answer, given["reason"], given["form_key"])
        now = datetime.now(UTC)
        return Adjudication(
            case_id=case_id, version=1, adjudicator_id=person_id, answer=answer, comment=given["comment"],
            reason=given["reason"], form_key=given["form_key"], adjudicated_at=now,
        )  # fmt: skip
