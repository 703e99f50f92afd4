"""Double of the review: a reader's queue and cases, and the rules of saving a judgment."""

import random
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from alertreview.review.models import BlindedCase, DraftView, JudgmentRow, QueueView, SavedJudgment
from alertreview.review.review import ReviewService
from alertreview.rights import Service
from core.errors import ConflictError, NotFoundError, RefusedError
from core.vocabulary import Answer, SlotState, StudyStatus
from tests.dashboard.doubles.records import ZONE, case_view
from tests.dashboard.doubles.sign_in import guarded_as

if TYPE_CHECKING:
    from tests.dashboard.doubles.application import FakeApplication


@dataclass(frozen=True)
class FakeVote:
    """One version of a judgment."""

    answer: Answer
    certainty: Any
    comment: str
    version: int
    saved_at: datetime
    form_key: str
    reason: str


@guarded_as(ReviewService)
@dataclass
class FakeReview(Service):
    """What a reader meets: append-only versions, an idempotency key for each showing of the form, the version seen,
    a reason for a change, refusal without a choice, locked studies.
    """

    app: "FakeApplication"
    n_forms: int = 0

    def queue(self, slug: str, person_id: int) -> QueueView:
        self.app.studies.view(slug)
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
        order = self.app.case_ids()
        random.Random(100 + person_id).shuffle(order)
        return order

    def _slot(self, slug: str, person_id: int, case_id: int) -> SlotState:
        key = (slug, person_id, case_id)
        if self.app.votes.get(key):
            cannot = self.app.votes[key][-1].answer is Answer.CANNOT_JUDGE
            return SlotState.CANNOT_JUDGE if cannot else SlotState.SUBMITTED
        if key in self.app.later:
            return SlotState.LATER
        return SlotState.DRAFT if key in self.app.drafts else SlotState.FREE

    def read_ahead(self, slug: str, person_id: int, after_case_id: int) -> None:
        self.app.ahead.append((slug, person_id, after_case_id))

    def next_case(
        self, slug: str, person_id: int, after_case_id: int | None = None, *, backwards: bool = False
    ) -> BlindedCase | None:
        self.app.studies.view(slug)
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
            todo = [c for c in turned if not self.app.votes.get((slug, person_id, c)) and c != after_case_id]
            now = [c for c in todo if (slug, person_id, c) not in self.app.later]
            found = (now or todo or [None])[0]
        return self.case(slug, person_id, found) if found is not None else None

    def case(self, slug: str, person_id: int, case_id: int) -> BlindedCase:
        self.app.studies.view(slug)
        order = self._order(slug, person_id)
        if case_id not in order:
            raise NotFoundError(
                f"There is no case {case_id} for you in study {slug!r}. Open Review to go on with yours."
            )
        key, position = (slug, person_id, case_id), order.index(case_id) + 1
        row = self.app.rows_made[(case_id * 5) % len(self.app.rows_made)]
        verb = row.decision_words.removeprefix(row.task_name).strip()
        votes = self.app.votes.get(key, [])
        draft = self.app.drafts.get(key) or (
            DraftView(votes[-1].answer, votes[-1].certainty, votes[-1].comment) if votes else DraftView(None, None, "")
        )
        shown = case_view(row.task_name, row.decision, case_id, hostile=self.app.hostile)
        self.n_forms += 1
        return BlindedCase(
            study_slug=slug,
            case_id=case_id,
            case_label=f"A{position}",
            position=position,
            n_cases=self.app.n_cases,
            task_name=row.task_name,
            kind=row.kind,
            decision=row.decision,
            decision_words=f"{row.task_name} {verb}",
            sex=row.sex,
            age_years=row.age_years,
            unit=row.unit,
            day_of_stay=3,
            patient=shown,
            draft=draft,
            version_seen=votes[-1].version if votes else 0,
            form_key=f"form-{self.n_forms}",
            is_judged=bool(votes) and key not in self.app.taken_back,
            gives_feedback=self.app.training,
        )

    def save_draft(self, slug: str, person_id: int, case_id: int, draft: DraftView) -> None:
        self._note("save_draft", slug, person_id, case_id, draft)
        self.app.drafts[slug, person_id, case_id] = draft

    def mark_later(self, slug: str, person_id: int, case_id: int) -> None:
        self._note("mark_later", slug, person_id, case_id)
        self.app.later.add((slug, person_id, case_id))

    def take_up(self, slug: str, person_id: int, case_id: int) -> None:
        self._note("take_up", slug, person_id, case_id)
        self.app.later.discard((slug, person_id, case_id))

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
        if self.app.studies.view(slug).status is StudyStatus.LOCKED:
            raise RefusedError(f"Study {slug!r} is locked and accepts no judgments.")
        if answer is None:
            raise RefusedError("No answer is chosen. Choose one, then save.")
        key = (slug, person_id, case_id)
        votes = self.app.votes.get(key, [])
        for vote in votes:
            if vote.form_key == form_key:
                return SavedJudgment(case_id, vote.version, vote.answer, vote.saved_at, already_saved=True)
        if (votes[-1].version if votes else 0) != version_seen:
            raise ConflictError("This case was changed meanwhile in another window. Load it again and decide.")
        if votes and key not in self.app.taken_back and not reason.strip():
            raise RefusedError("This case has a saved answer. Say why it changes, then save.")
        if answer is Answer.CANNOT_JUDGE and not reason.strip():
            raise RefusedError("'Cannot judge' needs a reason. Say what is missing, then save.")
        vote = FakeVote(
            answer, certainty, comment, version_seen + 1, self.app.clock().astimezone(ZONE), form_key, reason
        )
        self.app.votes[key] = [*votes, vote]
        self.app.drafts.pop(key, None)
        self.app.later.discard(key)
        self.app.taken_back.discard(key)
        return SavedJudgment(case_id, vote.version, vote.answer, vote.saved_at, already_saved=False)

    def undo(self, slug: str, person_id: int, case_id: int, *, version_seen: int, form_key: str) -> BlindedCase:
        self._note("undo", slug, person_id, case_id, version_seen, form_key)
        key = (slug, person_id, case_id)
        if not self.app.votes.get(key) or self.app.votes[key][-1].version != version_seen:
            raise ConflictError("This case was changed meanwhile in another window. Load it again and decide.")
        last = self.app.votes[key][-1]
        self.app.drafts[key] = DraftView(last.answer, last.certainty, last.comment)
        self.app.taken_back.add(key)
        return self.case(slug, person_id, case_id)

    def feedback(self, slug: str, person_id: int, case_id: int) -> tuple[Answer, str] | None:
        self._note("feedback", slug, person_id, case_id)
        return (Answer.RELEVANT, "2 of 3 readers answered so.") if self.app.training else None

    def my_judgments(self, person_id: int, slug: str | None = None) -> tuple[JudgmentRow, ...]:
        if slug is not None:
            self.app.studies.view(slug)
        rows = []
        for (s, person, case_id), votes in self.app.votes.items():
            if person == person_id and votes and slug in {None, s}:
                row, last = self.app.rows_made[(case_id * 5) % len(self.app.rows_made)], votes[-1]
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

    def is_blinded(self, slug: str, person_id: int | None) -> bool:
        if person_id is None or self.app.studies.view(slug).status is not StudyStatus.OPEN:
            return False
        queue = self.queue(slug, person_id)
        return bool(queue.is_reader and queue.n_left)

    def _note(self, name: str, *values: Any) -> None:
        self.app.calls.append((name, values))
        if self.app.fail_with:
            raise self.app.fail_with.pop(0)
