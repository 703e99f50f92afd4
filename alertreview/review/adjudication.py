"""Settles what votes do not decide: the adjudicator sees the case and the votes as A, B, C, and answers for all.

Letters change from case to case, so that nobody can learn whose votes they are.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from alertreview.alerts.lines import headline
from alertreview.alerts.models import CaseView
from alertreview.alerts.patient import OpenPatientViews
from alertreview.review.rules import check_comment, no_case, require_offered
from alertreview.rights import Action, Service, requires, roles_that_may
from alertreview.settings import Clock
from alertreview.studies.models import state_of_case, states_of_cases
from core.errors import ConflictError, InvalidInputError, RefusedError, StoreError
from core.kinds import Kind
from core.vocabulary import Answer, CaseId, CaseState, Certainty, Decision, PersonId, StudyStatus
from db.database import Database
from db.models import Adjudication, CastVote, Study
from db.unit_of_work import UnitOfWork

UNDECIDED = frozenset({CaseState.DISPUTED, CaseState.UNDETERMINED})


@dataclass(frozen=True)
class LetteredVote:
    """One reader's vote under the letter it has in this case alone."""

    letter: str
    answer: Answer
    certainty: Certainty | None
    comment: str


@dataclass(frozen=True)
class AdjudicationCase:
    """A case as the adjudicator sees it: no score, no names."""

    study_slug: str
    case_id: CaseId
    case_number: int
    task_name: str
    kind: Kind
    decision: Decision
    decision_words: str  # "Troponin I not ordered"
    sex: str
    age_years: float | None
    unit: str
    day_of_stay: int
    votes: tuple[LetteredVote, ...]
    patient: CaseView
    version_seen: int  # number of the current adjudication, 0 when there is none; sent back when saving
    answer: Answer | None
    comment: str


class AdjudicationService(Service):
    """Use cases of adjudicators."""

    def __init__(self, database: Database, open_patient_views: OpenPatientViews, clock: Clock) -> None:
        super().__init__(database, clock)
        self._open_patient_views = open_patient_views

    @requires(Action.ADJUDICATE, unit_of="slug")
    def disagreements(self, slug: str, person_id: PersonId) -> tuple[CaseId, ...]:
        """Return the numbers of the cases that wait for this person: complete, undecided, and never read by him.

        Raise RefusedError if the person is no adjudicator.
        """
        with self._database.read() as uow:
            study = _require_adjudicator(uow, slug, person_id)
            states = states_of_cases(uow, study)
            undecided = [case_id for case_id, state in states.items() if state in UNDECIDED]
            return tuple(case_id for case_id in undecided if not uow.adjudications.was_reader(case_id, person_id))

    @requires(Action.ADJUDICATE, unit_of="case_id")
    def case(self, slug: str, person_id: PersonId, case_id: CaseId) -> AdjudicationCase:
        """Return a case with its votes as A, B, C.

        Raise NotFoundError if the study has no such case, RefusedError if the person is no adjudicator or was a reader
        of the case, or its votes are not all in, or decide.
        """
        with self._database.read() as uow:
            study = _require_adjudicator(uow, slug, person_id)
            _require_undecided(uow, study, case_id, person_id)
            (row,) = uow.cases.blinded(study.id, case_id)
            number = next(case.number for case in uow.cases.in_study(study.id) if case.id == case_id)
            votes = [vote for vote in uow.judgments.votes(study.id) if vote.case_id == case_id]
            current = uow.adjudications.current(case_id)
        patients = self._open_patient_views(row.snapshot_hash)
        return AdjudicationCase(
            study_slug=slug,
            case_id=case_id,
            case_number=number,
            task_name=row.task_name,
            kind=row.kind,
            decision=row.decision,
            decision_words=headline(row.task_name, row.words, row.decision),
            sex=row.sex,
            age_years=row.age_years,
            unit=row.unit,
            day_of_stay=row.day_of_stay,
            votes=_lettered(votes, study.order_seed),
            patient=patients.case(row.row_index, row.task_key),
            version_seen=current.version if current else 0,
            answer=current.answer if current else None,
            comment=current.comment if current else "",
        )

    @requires(Action.ADJUDICATE, unit_of="case_id")
    def adjudicate(
        self,
        slug: str,
        person_id: PersonId,
        case_id: CaseId,
        *,
        answer: Answer | None,
        comment: str = "",
        reason: str = "",
        version_seen: int,
        form_key: str,
    ) -> Adjudication:
        """Save the consensus on a case, apart from the votes, and read it back; the same form is saved once.

        Raise RefusedError if answer or reason is missing, the study does not offer the answer, or the person may not
        adjudicate the case, ConflictError if somebody adjudicated the case meanwhile.
        """
        if answer is None:
            raise RefusedError("No answer is chosen. Choose one, then save.")
        if not reason.strip():
            raise RefusedError("An adjudication needs a reason. Say what decided, then save.")
        if not form_key:
            raise InvalidInputError("The form has no key. Reload the case.")
        check_comment(comment)
        with self._database.write() as uow:
            if uow.adjudications.by_form_key(form_key) is None:
                study = _require_adjudicator(uow, slug, person_id)
                _require_undecided(uow, study, case_id, person_id)
                require_offered(answer, uow.studies.rubric(study.id).answer_texts, slug)
                new = Adjudication(
                    case_id=case_id,
                    version=version_seen + 1,
                    adjudicator_id=person_id,
                    answer=answer,
                    comment=comment,
                    reason=reason,
                    form_key=form_key,
                    adjudicated_at=self._clock(),
                )
                _append(uow, slug, new)
                uow.commit()
        with self._database.read() as uow:
            stored = uow.adjudications.by_form_key(form_key)
        if stored is None:
            raise StoreError("The adjudication is not in the database after saving. It is NOT saved; please try again.")
        if (stored.case_id, stored.adjudicator_id) != (case_id, person_id):
            raise ConflictError("This form belongs to another case or person. Reload the case and answer it again.")
        return stored


def _require_adjudicator(uow: UnitOfWork, slug: str, person_id: PersonId) -> Study:
    person = uow.people.get(person_id)
    roles = roles_that_may(Action.ADJUDICATE)
    if not person.active or person.roles.isdisjoint(roles):
        who = " or ".join(sorted(role.value for role in roles))
        raise RefusedError(f"Disagreements are settled by an active {who}. Ask an administrator to name one.")
    return uow.studies.by_slug(slug)


def _require_undecided(uow: UnitOfWork, study: Study, case_id: CaseId, person_id: PersonId) -> None:
    if not uow.cases.belongs(study.id, case_id):
        raise no_case(study.slug, case_id)
    if study.status is StudyStatus.LOCKED:
        raise RefusedError(f"Study '{study.slug}' is locked. Its coordinator can reopen it.")
    if uow.adjudications.was_reader(case_id, person_id):
        raise RefusedError(f"You were a reader of case {case_id}; somebody else must settle it.")
    state = state_of_case(uow.slots.of_case(study.id, case_id), adjudicated=False)
    if state not in UNDECIDED:
        words = "its votes are not all in" if state is CaseState.OPEN else "its votes decide"
        raise RefusedError(f"Case {case_id} needs no adjudication: {words}.")


def _append(uow: UnitOfWork, slug: str, new: Adjudication) -> None:
    current = uow.adjudications.current(new.case_id)
    if new.version != (current.version if current else 0) + 1:
        raise ConflictError(f"Case {new.case_id} was adjudicated meanwhile. Reload it and look at both answers.")
    uow.adjudications.append(new)
    uow.audit.append(
        new.adjudicated_at,
        f"person {new.adjudicator_id}",
        "case adjudicated",
        f"case {new.case_id} of study {slug}",
        {"before": current and int(current.answer), "after": int(new.answer), "reason": new.reason},
    )


def _lettered(votes: Sequence[CastVote], order_seed: int) -> tuple[LetteredVote, ...]:
    """Shuffle the votes of a case the same way each time, and another way in the next case."""

    def draw(vote: CastVote) -> bytes:
        return hashlib.sha256(f"{order_seed}/letters/{vote.case_id}/{vote.reviewer_id}".encode()).digest()

    return tuple(
        LetteredVote(chr(ord("A") + at), vote.answer, vote.certainty, vote.comment)
        for at, vote in enumerate(sorted(votes, key=draw))
    )
