"""Saves judgments: one transaction that may be repeated without harm, and a look after the commit at what is stored."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from alertreview.review.models import SavedJudgment
from alertreview.review.rules import (
    check_comment,
    no_place,
    require_judgeable,
    require_offered,
    require_seen,
    was_saved,
)
from core.errors import InvalidInputError, RefusedError, StoreError
from core.vocabulary import Answer, CaseId, Certainty, PersonId
from db.database import Database
from db.models import Draft, FormState, Judgment
from db.unit_of_work import UnitOfWork


@dataclass(frozen=True)
class JudgmentForm:
    """Which showing of which case an act belongs to."""

    slug: str
    person_id: PersonId
    case_id: CaseId
    version_seen: int
    form_key: str


@dataclass(frozen=True)
class AnswerInput:
    """What a reader answered."""

    answer: Answer | None
    certainty: Certainty | None
    comment: str
    reason: str
    active_seconds: float | None


def save(database: Database, now: datetime, form: JudgmentForm, given: AnswerInput) -> SavedJudgment:
    """Save an answer; see `alertreview.review.review.ReviewService.submit_judgment` for the rules."""
    if given.answer is None:
        raise RefusedError("No answer is chosen. Choose one, then save.")
    _require_complete(given.answer, given.comment, given.reason)
    with database.write(case_id=form.case_id) as uow:
        state = form_state(uow, form)
        already_saved = was_saved(state, form.case_id, form.person_id)
        if not already_saved:
            # Before the row of the audit trail: from that on all readers wait for this one.
            uow.drafts.drop(form.case_id, form.person_id)
            append_judgment(uow, now, form, given, state)
            uow.commit()
    return _read_back(database, form, already_saved=already_saved)


def take_back(database: Database, now: datetime, form: JudgmentForm) -> None:
    """Take the current version back; see `alertreview.review.review.ReviewService.undo` for the rules."""
    with database.write(case_id=form.case_id) as uow:
        state = form_state(uow, form)
        if was_saved(state, form.case_id, form.person_id):
            return
        terms = require_judgeable(state, form.slug, form.case_id)
        current = state.current
        require_seen(current, form.case_id, form.version_seen)
        if current is None or current.answer is None:
            raise RefusedError(f"There is no saved answer of case {form.case_id} to take back.")
        former = next(iter(uow.judgments.history(form.case_id, form.person_id)[1:]), None)
        back = _taking_back(current, former, form.form_key, now)
        _keep(uow, form.slug, back, current, "judgment taken back")
        uow.drafts.put(
            Draft(
                case_id=form.case_id,
                reviewer_id=form.person_id,
                answer=current.answer,
                certainty=current.certainty,
                comment=current.comment,
                written_at=now,
            )
        )
        if back.answer is None:
            uow.slots.renew(form.case_id, form.person_id, until=now + timedelta(hours=terms.hold_hours))
        uow.commit()


def form_state(uow: UnitOfWork, form: JudgmentForm) -> FormState:
    """Look at everything that decides about a form, in the unit of work that saves it."""
    if not form.form_key:
        raise InvalidInputError("The form has no key. Reload the case.")
    return uow.judgments.form_state(form.slug, form.person_id, form.case_id, form.form_key)


def _require_complete(answer: Answer, comment: str, reason: str) -> None:
    """Refuse an answer without the reason that it needs, and text that no database keeps as it is."""
    if answer.needs_reason and not reason.strip():
        raise RefusedError(f"'{answer.text}' needs a reason. Say what is missing, then save.")
    check_comment(comment, reason)


def append_judgment(uow: UnitOfWork, now: datetime, form: JudgmentForm, given: AnswerInput, state: FormState) -> None:
    """Append the answer of a form not saved before in a unit of work of the caller's, by the same rules as `save`.

    The state is that of `form_state` in the same unit of work.
    """
    terms = require_judgeable(state, form.slug, form.case_id)
    if given.answer is not None:
        require_offered(given.answer, state.answer_texts, form.slug)
    current = state.current
    require_seen(current, form.case_id, form.version_seen)
    if current is not None and current.answer is not None and not given.reason.strip():
        raise RefusedError("This case has a saved answer. Say why it changes, then save.")
    new = Judgment(
        case_id=form.case_id,
        reviewer_id=form.person_id,
        version=form.version_seen + 1,
        answer=given.answer,
        certainty=given.certainty,
        comment=given.comment,
        reason=given.reason,
        form_key=form.form_key,
        judged_at=now,
        active_seconds=given.active_seconds,
        saw_score_before=state.score_was_seen,
        rubric_version=terms.rubric_version,
    )
    _keep(uow, form.slug, new, current, "judgment saved")


def _keep(uow: UnitOfWork, slug: str, new: Judgment, current: Judgment | None, action: str) -> None:
    """Append a version and its audit row, if the reader holds a slot of the case: one row must change, or nothing."""
    if not uow.slots.settle(new.case_id, new.reviewer_id):
        raise no_place(new.case_id)
    uow.judgments.append(new)
    uow.audit.append(
        new.judged_at,
        f"person {new.reviewer_id}",
        action,
        f"case {new.case_id} of study {slug}",
        {"before": _audited(current), "after": _audited(new), "reason": new.reason},
    )


def _taking_back(current: Judgment, former: Judgment | None, form_key: str, now: datetime) -> Judgment:
    """Make the version that takes the current one back: the one before counts again, or none."""
    return Judgment(
        case_id=current.case_id,
        reviewer_id=current.reviewer_id,
        version=current.version + 1,
        answer=former.answer if former else None,
        certainty=former.certainty if former else None,
        comment=former.comment if former else "",
        reason=f"version {current.version} taken back",
        form_key=form_key,
        judged_at=now,
        active_seconds=None,
        saw_score_before=current.saw_score_before,
        rubric_version=current.rubric_version,
    )


def _audited(judgment: Judgment | None) -> dict[str, object] | None:
    """Return what the audit trail keeps of a version; comments stay in the judgments, they may speak of the patient."""
    if judgment is None:
        return None
    return {
        "version": judgment.version,
        "answer": None if judgment.answer is None else int(judgment.answer),
        "certainty": judgment.certainty and judgment.certainty.value,
    }


def _read_back(database: Database, form: JudgmentForm, *, already_saved: bool) -> SavedJudgment:
    """Read back after the commit, in a separate transaction, what the database holds."""
    with database.read() as uow:
        stored = uow.judgments.saved(form.form_key)
    if stored is None or stored.answer is None:
        raise StoreError("The judgment is not in the database after saving. It is NOT saved; please try again.")
    return SavedJudgment(
        case_id=stored.case_id,
        version=stored.version,
        answer=stored.answer,
        saved_at=stored.judged_at.astimezone(ZoneInfo(stored.site_timezone)),
        already_saved=already_saved,
    )


@dataclass(frozen=True)
class OutsideVote:
    """One reader's answer to one case, given elsewhere."""

    person_id: PersonId
    case_id: CaseId
    answer: Answer
    certainty: Certainty | None = None
    comment: str = ""
    reason: str = ""
    active_seconds: float | None = None


def record_votes(database: Database, now: datetime, slug: str, votes: Iterable[OutsideVote]) -> int:
    """Record votes in one transaction, by the rules of the review page, and return how many were new.

    Others stay as they are. Raise RefusedError if a case has no slot left, a reader is none of the study, an answer
    lacks its reason, or the study is not open, InvalidInputError if a comment is too long or holds what no database
    keeps; then nothing was kept.
    """
    n_new = 0
    with database.write() as uow:
        study = uow.studies.by_slug(slug)
        for vote in votes:
            form_key = f"outside-{study.id}-{vote.case_id}-{vote.person_id}"
            form = JudgmentForm(slug, vote.person_id, vote.case_id, 0, form_key)
            state = form_state(uow, form)
            if was_saved(state, vote.case_id, vote.person_id):
                continue
            terms = require_judgeable(state, slug, vote.case_id)
            try:
                _require_complete(vote.answer, vote.comment, vote.reason)
            except (RefusedError, InvalidInputError) as error:
                raise type(error)(f"Case {vote.case_id}, person {vote.person_id}: {error}") from None
            until = now + timedelta(hours=terms.hold_hours)
            if not uow.slots.hold(terms.study_id, vote.case_id, vote.person_id, now=now, until=until):
                raise RefusedError(
                    f"Case {vote.case_id} of study '{slug}' has no slot left for person {vote.person_id}."
                )
            given = AnswerInput(vote.answer, vote.certainty, vote.comment, vote.reason, vote.active_seconds)
            append_judgment(uow, now, form, given, state)
            n_new += 1
        uow.commit()
    return n_new
