"""Reading of the double: its people and studies, who has judged what, and the rules of saving a judgment."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from alertreview.access.roles import PersonView
from alertreview.alerts.models import LastValue
from alertreview.review.models import BlindedCase, DraftView, JudgmentRow, QueueView, SavedJudgment
from alertreview.studies.models import StudyView
from core.errors import ConflictError, NotFoundError, RefusedError
from core.vocabulary import Answer, CaseState, Role, SlotState, StudyStatus
from tests.dashboard.doubles.records import HOSTILE, PEOPLE, SNAPSHOT, ZONE, alert_rows, timeline

ANSWERS = {1: "Usual", 2: "Unusual, not relevant", 3: "Unusual and relevant", 0: "Cannot judge"}

TITLES = {"demo": "ICU pilot 2026", "ward-2025": "Ward pilot 2025", "panel": "Ward round"}


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
class FakeReading:
    """What a reader meets: append-only versions, an idempotency key for each showing of the form, the version seen,
    a reason for a change, refusal without a choice, locked studies.

    Parameters
    ----------
    n_alerts
        Length of the worklist from which the cases come; 0 gives a published run without alerts.
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
    with_panel: bool = False
    """A third study, an open panel that takes judgments."""
    taken_back: set[tuple[str, int, int]] = field(default_factory=set)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __post_init__(self) -> None:
        self._forms = 0
        self._rows = alert_rows(self.n_alerts, hostile=self.hostile)
        if self.with_studies:
            self._simulated_votes()

    def people(self) -> tuple[PersonView, ...]:
        if not self.with_people:
            return ()
        if self.hostile:
            return (PersonView(1, HOSTILE, Role.REVIEWER, simulated=False), *PEOPLE[1:])
        return PEOPLE

    def studies(self) -> tuple[StudyView, ...]:
        slugs = (*(("panel",) if self.with_panel else ()), "demo", "ward-2025")
        return tuple(self._study(slug) for slug in slugs) if self.with_studies and self.published else ()

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
            study_id=("demo", "ward-2025", "panel").index(slug) + 1,
            slug=slug,
            title=HOSTILE if self.hostile else TITLES[slug],
            status=StudyStatus.LOCKED if slug == "ward-2025" else StudyStatus.OPEN,
            simulated=self.simulated,
            question="Was this decision unusual for this patient, and clinically relevant?",
            guidelines="Judge by what was known at 08:00.\n\n- **Usual**: expected.\n- **Relevant**: you would call.",
            answer_texts=dict(ANSWERS),
            n_slots=3,
            n_cases=self.n_cases,
            n_complete=sum(len(self._case_votes(slug, c)) >= 3 for c in self._case_ids()),
            case_states=states,
            is_calibration=self.training,
            is_open_panel=slug == "panel",
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
        shown = timeline(row.task_name, row.decision, case_id, hostile=self.hostile)
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
            timeline=shown,
            last_values=tuple(
                LastValue(
                    lab.name,
                    lab.values[-1],
                    lab.unit,
                    "high" if lab.values[-1] > (lab.high or 0) else "low" if lab.values[-1] < (lab.low or 0) else "",
                    (SNAPSHOT - lab.times[-1]).total_seconds() / 3600,
                )
                for lab in shown.labs
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

    def _note(self, name: str, *values: Any) -> None:
        self.calls.append((name, values))
        if self.fail_with:
            raise self.fail_with.pop(0)
