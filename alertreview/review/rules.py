"""Rules that every act of a reader keeps: a reader of an open study, a case of it, and the version that was seen."""

from collections.abc import Mapping
from typing import Any

from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from core.vocabulary import Answer, CaseId, PersonId, StudyStatus
from db.models import FormState, Judgment, ReaderSlot, ReadingTerms
from db.repositories.studies import no_study
from db.unit_of_work import UnitOfWork

LONGEST_COMMENT = 20_000


def require_reader(uow: UnitOfWork, slug: str, person_id: PersonId) -> ReadingTerms:
    """Return somebody as a reader of a study.

    Raise NotFoundError if there is no such study, RefusedError if the person is no active reader of it.
    """
    return require_active(uow.studies.reader_at(slug, person_id), slug)


def require_active(terms: ReadingTerms | None, slug: str) -> ReadingTerms:
    """Return the terms of a reader; raise RefusedError if they are None, or the reader is not active."""
    if terms is None or not terms.active:
        raise RefusedError(f"Nothing is assigned to you in study '{slug}' yet. Ask its coordinator to add you.")
    return terms


def require_open(study: ReadingTerms) -> None:
    """Refuse a study that is not yet or no longer open."""
    if study.status is StudyStatus.DRAFT:
        raise RefusedError(f"Study '{study.slug}' is not open yet. Its coordinator opens it.")
    if study.status is StudyStatus.LOCKED:
        raise RefusedError(f"Study '{study.slug}' is locked and accepts no judgments. Its coordinator can reopen it.")


def require_case(uow: UnitOfWork, study: ReadingTerms, case_id: CaseId) -> None:
    """Refuse a case that is not the study's."""
    if not uow.cases.belongs(study.study_id, case_id):
        raise no_case(study.slug, case_id)


def require_judgeable(state: FormState, slug: str, case_id: CaseId) -> ReadingTerms:
    """Return the reader's terms, if the reader may judge a case of a study now.

    Raise NotFoundError if there is no such study, or it has no such case, RefusedError if the person is no active
    reader of the study, or it is not open.
    """
    if not state.has_study:
        raise NotFoundError(no_study(slug))
    terms = require_active(state.terms, slug)
    require_open(terms)
    if not state.has_case:
        raise no_case(slug, case_id)
    return terms


def require_offered(answer: Answer, answer_texts: Mapping[str, Any], slug: str) -> None:
    """Raise RefusedError, which names those offered, for an answer that the rubric of a study does not offer."""
    if answer.key not in answer_texts:
        offered = ", ".join(f"'{text}'" for text in answer_texts.values())
        raise RefusedError(
            f"Study '{slug}' does not offer the answer '{answer.text}'. Nothing was saved. Choose one of {offered}."
        )


def require_seen(current: Judgment | None, case_id: CaseId, version_seen: int) -> None:
    """Raise ConflictError for a form that showed another version than the reader's current one."""
    if version_seen != (current.version if current else 0):
        answer = current.answer if current else None
        stored = f"the stored answer is '{answer.text}'" if answer else "it has no stored answer now"
        raise ConflictError(
            f"This case was changed meanwhile, in another window of yours: {stored}. "
            "Nothing was overwritten. Reload the case, look at both and save again."
        )


def was_saved(state: FormState, case_id: CaseId, person_id: PersonId) -> bool:
    """Return whether a form was saved before; raise ConflictError if it was, as another case's or reader's."""
    if state.saved_for is None:
        return False
    if state.saved_for != (case_id, person_id):
        raise ConflictError("This form belongs to another case or reader. Reload the case and answer it again.")
    return True


def check_comment(*comments: str) -> None:
    """Refuse a comment that is too long to be one, or that no database keeps as it is."""
    for comment in comments:
        if "\0" in comment:
            raise InvalidInputError("The comment contains a null character. Type it again.")
        if len(comment) > LONGEST_COMMENT:
            raise InvalidInputError(
                f"The comment has {len(comment)} characters; at most {LONGEST_COMMENT} can be kept. Shorten it."
            )


def no_case(slug: str, case_id: CaseId) -> NotFoundError:
    """Return the error for a case that a study does not have."""
    return NotFoundError(f"Study '{slug}' has no case {case_id}.")


def taken(case_id: CaseId) -> str:
    """Return the words for a case of which others have every slot."""
    return f"Case {case_id} has no free slot: other readers hold or have judged it. Go on with another case."


def no_place(case_id: CaseId) -> RefusedError:
    """Return the error for a reader without a slot of a case."""
    return RefusedError(
        f"You no longer hold a slot in case {case_id}, so nothing was saved. Open the case again, or go on."
    )


def within_units(uow: UnitOfWork, reader: ReadingTerms, slots: list[ReaderSlot]) -> list[ReaderSlot]:
    """Return the reader's slots of the cases whose patients lie in units that the reader may see."""
    units = None if reader.all_units else uow.units.of_person(reader.person_id)
    if units is None:
        return slots
    mine = uow.units.cases_within(reader.study_id, units)
    return [slot for slot in slots if slot.case_id in mine]
