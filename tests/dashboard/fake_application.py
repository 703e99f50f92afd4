"""A double of the application for page tests: the same methods and read models, simulated data held in memory.

It keeps the rules a page can meet: append-only versions, an idempotency key for each showing of the form, the version
seen, a reason for a change, refusal without a choice, locked studies, unknown links.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from alertreview.read_models import (
    AlertDetail,
    AlertRow,
    BlindedCase,
    DraftView,
    FilterChoices,
    Histogram,
    JudgmentRow,
    LastValue,
    Neighbour,
    PersonView,
    QueueView,
    RunView,
    SavedJudgment,
    StudyView,
    Timeline,
    TimelineDrug,
    TimelineLab,
    WorklistFilters,
    WorklistLine,
    WorklistPage,
)
from alertreview.triage_models import TriageChoice
from core.errors import ConflictError, NotFoundError, RefusedError
from core.study_report import StudyReport
from core.vocabulary import Answer, CaseState, Decision, Kind, Role, SlotState, StudyStatus
from tests.dashboard.fake_exports import FakeExports
from tests.dashboard.fake_report import simulated_report
from tests.dashboard.fake_sign_in import FakeSessions, NoUnits
from tests.dashboard.fake_studies import FakeAdjudication, FakeDesk, FakeRunComparisons, FakeStudiesService
from tests.dashboard.fake_tasks import FakeSensitivity, FakeTasks
from tests.dashboard.fake_triage import FakeLists, FakeTriage, FakeViews

ZONE = ZoneInfo("Europe/Vienna")
SNAPSHOT = datetime(2026, 11, 27, 8, 0, tzinfo=ZONE)
UNITS = ("Medical ICU", "Surgical ICU", "Cardiothoracic ICU", "Neuro ICU", "Step-down 7A")
TASKS: tuple[tuple[str, str, Kind], ...] = (
    ("lab:troponin-i", "Troponin I", Kind.LAB_ORDER),
    ("lab:vancomycin", "Vancomycin trough", Kind.LAB_ORDER),
    ("med:insulin-iv", "Insulin, IV", Kind.MEDICATION),
    ("lab:amylase", "Amylase", Kind.LAB_ORDER),
    ("lab:tacrolimus", "Tacrolimus level", Kind.LAB_ORDER),
    ("lab:magnesium", "Magnesium", Kind.LAB_ORDER),
    ("med:potassium-iv", "Potassium chloride, IV", Kind.MEDICATION),
    ("lab:platelets", "Platelet count", Kind.LAB_ORDER),
    ("med:heparin-iv", "Heparin, IV infusion", Kind.MEDICATION),
    ("lab:blood-culture", "Blood culture", Kind.LAB_ORDER),
    ("lab:digoxin", "Digoxin level", Kind.LAB_ORDER),
    ("med:furosemide-iv", "Furosemide, IV", Kind.MEDICATION),
)
LABS: tuple[tuple[str, str, float, float, float], ...] = (
    ("Troponin I", "ng/mL", 0.0, 0.04, 0.62),
    ("Creatinine", "mg/dL", 0.6, 1.2, 1.9),
    ("Potassium", "mmol/L", 3.5, 5.1, 5.2),
    ("Haemoglobin", "g/dL", 12.0, 16.0, 9.2),
    ("Lactate", "mmol/L", 0.5, 2.0, 1.7),
    ("Platelets", "10⁹/L", 150.0, 400.0, 188.0),
    ("INR", "", 0.9, 1.2, 1.1),
    ("Glucose", "mg/dL", 70.0, 140.0, 138.0),
)
PEOPLE = (
    PersonView(1, "Demonstration reviewer", Role.REVIEWER, simulated=False),
    PersonView(2, "Reader 1 (simulated)", Role.REVIEWER, simulated=True),
    PersonView(3, "Reader 2 (simulated)", Role.REVIEWER, simulated=True),
    PersonView(4, "Reader 3 (simulated)", Role.REVIEWER, simulated=True),
    PersonView(5, "Coordinator", Role.COORDINATOR, simulated=False),
    PersonView(6, "Adjudicator", Role.ADJUDICATOR, simulated=False),
)
ANSWERS = {1: "Usual", 2: "Unusual, not relevant", 3: "Unusual and relevant", 0: "Cannot judge"}
HOSTILE = '<img src=x onerror="window.pwned=1"> **bold** [link](http://example.org) $x^2$ :red[red] ' + "ä" * 500
RIGHT_TO_LEFT = "تروبونين I בדיקה"


@dataclass(frozen=True)
class _Vote:
    answer: Answer
    certainty: Any
    comment: str
    version: int
    saved_at: datetime
    form_key: str
    reason: str


@dataclass
class FakeApplication(FakeExports):
    """The application's interface over simulated data.

    Parameters
    ----------
    n_alerts
        Length of the worklist before filters; 0 gives a published run without alerts.
    published
        False gives a site where nothing was scored yet.
    hostile
        Puts markup, 500-character and right-to-left names everywhere.
    fail_with
        Raised by the next saves, each call taking one; tests put errors in.
    """

    n_alerts: int = 62
    n_cases: int = 24
    published: bool = True
    simulated: bool = True
    hostile: bool = False
    with_people: bool = True
    with_studies: bool = True
    fail_with: list[BaseException] = field(default_factory=list)
    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    votes: dict[tuple[str, int, int], list[_Vote]] = field(default_factory=dict)
    drafts: dict[tuple[str, int, int], DraftView] = field(default_factory=dict)
    later: set[tuple[str, int, int]] = field(default_factory=set)
    training: bool = False
    taken_back: set[tuple[str, int, int]] = field(default_factory=set)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __post_init__(self) -> None:
        self.sessions, self.unit_lookup = FakeSessions(), NoUnits()
        self._forms = 0
        self.study_desk = FakeDesk(self.studies)
        self.adjudication = FakeAdjudication(self._timeline)
        self.run_comparisons = FakeRunComparisons()
        self.tasks = FakeTasks(self)
        self.sensitivity = FakeSensitivity(self)
        self.studies_service = FakeStudiesService(self.queue, self.people, self.study)
        self._rows = self._alert_rows()
        self.triage, self.saved_views, self.alert_lists = FakeTriage(self.clock), FakeViews(), FakeLists(self)
        if self.with_studies:
            self._simulated_votes()

    # ----- people and runs -----

    def people(self) -> tuple[PersonView, ...]:
        if not self.with_people:
            return ()
        if self.hostile:
            return (PersonView(1, HOSTILE, Role.REVIEWER, simulated=False), *PEOPLE[1:])
        return PEOPLE

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

    def _alert_rows(self) -> list[AlertRow]:
        random_ = random.Random(7)
        rows: list[AlertRow] = []
        ranks = {Decision.OMISSION: 0, Decision.COMMISSION: 0}
        for position in range(self.n_alerts):
            key, name, kind = TASKS[position % len(TASKS)]
            decision = Decision.COMMISSION if position % 4 == 3 else Decision.OMISSION
            ranks[decision] += 1
            scaled = 0.97 - 0.55 * position / max(self.n_alerts, 40)
            if self.hostile:
                name = HOSTILE if position % 2 else RIGHT_TO_LEFT
            verb = {
                (Decision.OMISSION, Kind.LAB_ORDER): "not ordered",
                (Decision.OMISSION, Kind.MEDICATION): "not given",
                (Decision.COMMISSION, Kind.LAB_ORDER): "ordered",
                (Decision.COMMISSION, Kind.MEDICATION): "given",
            }[decision, kind]
            rows.append(
                AlertRow(
                    alert_id=1000 + position,
                    rank=ranks[decision],
                    task_key=key,
                    task_name=name,
                    kind=kind,
                    decision=decision,
                    decision_words=f"{name} {verb}",
                    patient_id=f"SIM-{random_.randrange(1000):04d}",
                    sex=random_.choice("FM"),
                    age_years=float(random_.randrange(38, 86)),
                    unit=HOSTILE if self.hostile and position == 2 else UNITS[random_.randrange(len(UNITS))],
                    snapshot_at=SNAPSHOT - timedelta(days=position % 5),
                    score=scaled * 1.4,
                    scaled_score=round(scaled, 4),
                    support=0.9,
                )
            )
        return rows

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
            score_histogram=_histogram(2.0, 11),
            scaled_histogram=_histogram(1.0, 12),
            timeline=self._timeline(row.task_name, row.decision, alert_id),
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
            previous_alert_id=order[place - 1] if place else None,
            next_alert_id=order[place + 1] if place is not None and place + 1 < len(order) else None,
        )

    def _timeline(self, name: str, decision: Decision, seed: int) -> Timeline:
        random_ = random.Random(seed)
        labs = []
        for position, (lab, unit, low, high, last) in enumerate(LABS):
            n_values = 6 - position % 3
            start = (low + high) / 2
            values = [
                round(
                    start + (last - start) * (i / (n_values - 1)) ** 1.5 + random_.uniform(-0.04, 0.04) * (high - low),
                    2,
                )
                for i in range(n_values)
            ]
            times = [SNAPSHOT - timedelta(hours=62 - 60 * i / (n_values - 1) - 0.2 * position) for i in range(n_values)]
            labs.append(
                TimelineLab(
                    HOSTILE if self.hostile and position == 1 else lab, unit, tuple(times), tuple(values), low, high
                )
            )
        ordered = (SNAPSHOT + timedelta(hours=6, minutes=30),) if decision is Decision.COMMISSION else ()
        hours_ago = (50, 38, 27, 19)
        return Timeline(
            snapshot_at=SNAPSHOT,
            window_end=SNAPSHOT + timedelta(hours=24),
            decision_name=name,
            past_orders=tuple(SNAPSHOT - timedelta(hours=h) for h in hours_ago),
            orders_in_window=ordered,
            labs=tuple(labs),
            drugs=(
                TimelineDrug("Heparin, IV infusion", (_ago(44, 20),)),
                TimelineDrug("Metoprolol, oral", (_ago(62, 50), _ago(38, 26), _ago(24, 0))),
                TimelineDrug("Aspirin, oral", (_ago(60, 0),)),
                TimelineDrug("Furosemide, IV", (_ago(30, 30), _ago(18, 18), _ago(6, 6))),
            ),
        )

    # ----- studies -----

    def studies(self) -> tuple[StudyView, ...]:
        return (
            tuple(self._study(slug) for slug in ("demo", "ward-2025")) if self.with_studies and self.published else ()
        )

    def study(self, slug: str) -> StudyView:
        known = {study.slug: study for study in self.studies()}
        if slug not in known:
            raise NotFoundError(f"There is no study {slug!r} here. Open Studies to see which there are.")
        return known[slug]

    def _study(self, slug: str) -> StudyView:
        states = dict.fromkeys(CaseState, 0)
        for case_id in self._case_ids():
            states[self._case_state(slug, case_id)] += 1
        return StudyView(
            study_id=1 if slug == "demo" else 2,
            slug=slug,
            title=HOSTILE if self.hostile else "ICU pilot 2026" if slug == "demo" else "Ward pilot 2025",
            status=StudyStatus.OPEN if slug == "demo" else StudyStatus.LOCKED,
            simulated=self.simulated,
            question="Was this decision unusual for this patient, and clinically relevant?",
            guidelines="Judge by what was known at 08:00.\n\n- **Usual**: expected.\n- **Relevant**: you would call.",
            answer_texts=dict(ANSWERS),
            n_slots=3,
            n_cases=self.n_cases,
            n_complete=sum(len(self._case_votes(slug, c)) >= 3 for c in self._case_ids()),
            case_states=states,
            is_calibration=self.training,
        )

    def _case_ids(self) -> list[int]:
        return list(range(1, self.n_cases + 1))

    def _case_votes(self, slug: str, case_id: int) -> list[Answer]:
        return [v[-1].answer for (s, _, c), v in self.votes.items() if s == slug and c == case_id and v]

    def _case_state(self, slug: str, case_id: int) -> CaseState:
        votes = self._case_votes(slug, case_id)
        real = [vote for vote in votes if vote is not Answer.CANNOT_JUDGE]
        if any(real.count(answer) >= 2 for answer in Answer):
            return CaseState.MAJORITY
        if len(votes) < 3:
            return CaseState.OPEN
        return CaseState.DISPUTED if len(real) >= 3 else CaseState.UNDETERMINED

    def _simulated_votes(self) -> None:
        random_ = random.Random(3)
        for slug, readers, share in (("demo", (2, 3), 0.8), ("ward-2025", (2, 3, 4), 1.1)):
            for case_id in self._case_ids():
                for person in readers:
                    if random_.random() < share:
                        answer = random_.choice((Answer.USUAL, Answer.UNUSUAL, Answer.RELEVANT, Answer.RELEVANT))
                        saved = datetime(2026, 11, 20, 9, 0, tzinfo=ZONE)
                        vote = _Vote(
                            answer, None, f"peer-comment-{person}-{case_id}", 1, saved, f"sim{person}-{case_id}", ""
                        )
                        self.votes[slug, person, case_id] = [vote]

    def queue(self, slug: str, person_id: int) -> QueueView:
        self.study(slug)
        states = dict.fromkeys(SlotState, 0)
        for case_id in self._order(slug, person_id):
            states[self._slot(slug, person_id, case_id)] += 1
        n_submitted = states[SlotState.SUBMITTED] + states[SlotState.CANNOT_JUDGE]
        n_mine = sum(states.values())
        return QueueView(
            n_mine, n_submitted, states[SlotState.LATER], n_mine - n_submitted, states, is_reader=person_id != 5
        )

    def _order(self, slug: str, person_id: int) -> list[int]:
        if person_id == 5:
            return []
        order = self._case_ids()
        random.Random(100 + person_id).shuffle(order)
        return order

    def _slot(self, slug: str, person_id: int, case_id: int) -> SlotState:
        key = (slug, person_id, case_id)
        if self.votes.get(key):
            cannot = self.votes[key][-1].answer is Answer.CANNOT_JUDGE
            return SlotState.CANNOT_JUDGE if cannot else SlotState.SUBMITTED
        if key in self.later:
            return SlotState.LATER
        return SlotState.DRAFT if key in self.drafts else SlotState.FREE

    def next_case(
        self, slug: str, person_id: int, after_case_id: int | None = None, *, backwards: bool = False
    ) -> BlindedCase | None:
        self.study(slug)
        order = self._order(slug, person_id)
        if person_id == 5:
            raise RefusedError(f"Nothing is assigned to you in study {slug!r} yet. Ask its coordinator to add you.")
        if after_case_id is not None and after_case_id not in order:
            raise NotFoundError(f"Case {after_case_id} is not one of yours.")
        place = order.index(after_case_id) if after_case_id is not None else -1
        if backwards:
            found = order[place - 1] if place > 0 else None
        else:
            turned = order[place + 1 :] + order[: place + 1]
            todo = [c for c in turned if not self.votes.get((slug, person_id, c)) and c != after_case_id]
            now = [c for c in todo if (slug, person_id, c) not in self.later]
            found = (now or todo or [None])[0]
        return self.case(slug, person_id, found) if found is not None else None

    def case(self, slug: str, person_id: int, case_id: int) -> BlindedCase:
        self.study(slug)
        order = self._order(slug, person_id)
        if case_id not in order:
            raise NotFoundError(
                f"There is no case {case_id} for you in study {slug!r}. Open Review to go on with yours."
            )
        key, position = (slug, person_id, case_id), order.index(case_id) + 1
        row = self._rows[(case_id * 5) % len(self._rows)]
        verb = row.decision_words.removeprefix(row.task_name).strip()
        votes = self.votes.get(key, [])
        draft = self.drafts.get(key) or (
            DraftView(votes[-1].answer, votes[-1].certainty, votes[-1].comment) if votes else DraftView(None, None, "")
        )
        timeline = self._timeline(row.task_name, row.decision, case_id)
        self._forms += 1
        return BlindedCase(
            study_slug=slug,
            case_id=case_id,
            case_label=f"A{position}",
            position=position,
            n_cases=self.n_cases,
            task_name=row.task_name,
            kind=row.kind,
            decision=row.decision,
            decision_words=f"{row.task_name} was {verb}",
            sex=row.sex,
            age_years=row.age_years,
            unit=row.unit,
            day_of_stay=3,
            window_hours=24.0,
            timeline=timeline,
            last_values=tuple(
                LastValue(
                    lab.name,
                    lab.values[-1],
                    lab.unit,
                    "high" if lab.values[-1] > (lab.high or 0) else "low" if lab.values[-1] < (lab.low or 0) else "",
                    (SNAPSHOT - lab.times[-1]).total_seconds() / 3600,
                )
                for lab in timeline.labs
            ),
            draft=draft,
            version_seen=votes[-1].version if votes else 0,
            form_key=f"form-{self._forms}",
            is_judged=bool(votes) and key not in self.taken_back,
        )

    def save_draft(self, slug: str, person_id: int, case_id: int, draft: DraftView) -> None:
        self._note("save_draft", slug, person_id, case_id, draft)
        self.drafts[slug, person_id, case_id] = draft

    def mark_later(self, slug: str, person_id: int, case_id: int) -> None:
        self._note("mark_later", slug, person_id, case_id)
        self.later.add((slug, person_id, case_id))

    def submit_judgment(
        self,
        slug: str,
        person_id: int,
        case_id: int,
        *,
        answer: Answer | None,
        certainty: Any = None,
        comment: str = "",
        version_seen: int,
        form_key: str,
        reason: str = "",
        active_seconds: float | None = None,
    ) -> SavedJudgment:
        self._note("submit_judgment", slug, person_id, case_id, answer, form_key, reason, active_seconds)
        if self.study(slug).status is StudyStatus.LOCKED:
            raise RefusedError(f"Study {slug!r} is locked and takes no judgment.")
        if answer is None:
            raise RefusedError("No answer is chosen. Press 1, 2, 3 or 0 first.")
        key = (slug, person_id, case_id)
        votes = self.votes.get(key, [])
        for vote in votes:
            if vote.form_key == form_key:
                return SavedJudgment(case_id, vote.version, vote.answer, vote.saved_at, already_saved=True)
        if (votes[-1].version if votes else 0) != version_seen:
            raise ConflictError("This case was changed meanwhile in another window. Load it again and decide.")
        if votes and key not in self.taken_back and not reason.strip():
            raise RefusedError("This case has a saved answer. Say why it changes, then save.")
        if answer is Answer.CANNOT_JUDGE and not reason.strip():
            raise RefusedError("'Cannot judge' needs a reason. Say what is missing, then save.")
        vote = _Vote(answer, certainty, comment, version_seen + 1, self.clock().astimezone(ZONE), form_key, reason)
        self.votes[key] = [*votes, vote]
        self.drafts.pop(key, None)
        self.later.discard(key)
        self.taken_back.discard(key)
        return SavedJudgment(case_id, vote.version, vote.answer, vote.saved_at, already_saved=False)

    def undo(self, slug: str, person_id: int, case_id: int, *, version_seen: int, form_key: str) -> BlindedCase:
        self._note("undo", slug, person_id, case_id, version_seen, form_key)
        key = (slug, person_id, case_id)
        if not self.votes.get(key) or self.votes[key][-1].version != version_seen:
            raise ConflictError("This case was changed meanwhile in another window. Load it again and decide.")
        last = self.votes[key][-1]
        self.drafts[key] = DraftView(last.answer, last.certainty, last.comment)
        self.taken_back.add(key)
        return self.case(slug, person_id, case_id)

    def feedback(self, slug: str, person_id: int, case_id: int) -> tuple[Answer, str] | None:
        self._note("feedback", slug, person_id, case_id)
        return (Answer.RELEVANT, "2 of 3 readers answered so.") if self.training else None

    def my_judgments(self, person_id: int, slug: str | None = None) -> tuple[JudgmentRow, ...]:
        if slug is not None:
            self.study(slug)
        rows = []
        for (s, person, case_id), votes in self.votes.items():
            if person == person_id and votes and slug in {None, s}:
                row, last = self._rows[(case_id * 5) % len(self._rows)], votes[-1]
                label = f"A{self._order(s, person).index(case_id) + 1}"
                rows.append(
                    JudgmentRow(
                        s,
                        case_id,
                        label,
                        row.decision_words,
                        last.answer,
                        last.certainty,
                        last.comment,
                        last.saved_at,
                        last.version,
                    )
                )
        return tuple(sorted(rows, key=lambda r: r.saved_at, reverse=True))

    def report(self, slug: str, person_id: int | None = None) -> StudyReport:
        study = self.study(slug)
        return simulated_report(study)

    def _note(self, name: str, *values: Any) -> None:
        self.calls.append((name, values))
        if self.fail_with:
            raise self.fail_with.pop(0)


def _ago(start: float, end: float) -> tuple[datetime, datetime]:
    return SNAPSHOT - timedelta(hours=start), SNAPSHOT - timedelta(hours=end)


def _histogram(high: float, seed: int) -> Histogram:
    random_ = random.Random(seed)
    edges = tuple(round(high * i / 40, 5) for i in range(41))
    counts = [
        int(300 * 2.718 ** (-(((i - 6) / 3.2) ** 2)) + random_.randrange(4, 30) * 2.718 ** (-i / 22)) for i in range(40)
    ]
    return Histogram(edges, tuple(counts))
