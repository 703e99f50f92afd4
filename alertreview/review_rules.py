"""Rules that every act of a reader keeps: a reader of an open study, a case of it, and the version that was seen."""

from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from core.vocabulary import StudyStatus
from db.rows import JudgmentVersion, ReaderRow, StudyRow
from db.unit_of_work import UnitOfWork

LONGEST_COMMENT = 20_000


def require_reader(uow: UnitOfWork, slug: str, person_id: int) -> tuple[StudyRow, ReaderRow]:
    """Give a study and the reader in it.

    Raises
    ------
    NotFoundError
        If there is no such study.
    RefusedError
        If the person is no active reader of it.
    """
    study = uow.studies.by_slug(slug)
    reader = uow.studies.reader(study.id, person_id)
    if reader is None or not reader.active:
        raise RefusedError(f"Nothing is assigned to you in study '{slug}' yet. Ask its coordinator to add you.")
    return study, reader


def require_open(study: StudyRow) -> None:
    """Refuse a study that is not yet or no longer open."""
    if study.status is StudyStatus.DRAFT:
        raise RefusedError(f"Study '{study.slug}' is not open yet. Its coordinator opens it.")
    if study.status is StudyStatus.LOCKED:
        raise RefusedError(f"Study '{study.slug}' is locked and takes no judgment. Its coordinator can reopen it.")


def require_case(uow: UnitOfWork, study: StudyRow, case_id: int) -> None:
    """Refuse a case that is not the study's."""
    if not uow.cases.belongs(study.id, case_id):
        raise no_case(study.slug, case_id)


def require_seen(uow: UnitOfWork, case_id: int, person_id: int, version_seen: int) -> JudgmentVersion | None:
    """Give the reader's current version, None when there is none.

    Raises
    ------
    ConflictError
        If it is not the one that the form showed.
    """
    current = uow.judgments.current(case_id, person_id)
    if version_seen != (current.version if current else 0):
        stored = "none" if current is None or current.answer is None else str(int(current.answer))
        raise ConflictError(
            f"Case {case_id} was changed meanwhile, in another window of yours: the stored answer is {stored}. "
            "Nothing was overwritten. Reload the case, look at both and save again."
        )
    return current


def same_form(uow: UnitOfWork, form_key: str, case_id: int, person_id: int) -> JudgmentVersion | None:
    """Give the version that this form was saved as before, None when it was not.

    Raises
    ------
    ConflictError
        If the form was another case's or reader's.
    """
    if not form_key:
        raise InvalidInputError("The form has no key. Reload the case.")
    earlier = uow.judgments.by_form_key(form_key)
    if earlier is not None and (earlier.case_id, earlier.reviewer_id) != (case_id, person_id):
        raise ConflictError("This form belongs to another case or reader. Reload the case and answer it again.")
    return earlier


def check_comment(comment: str) -> None:
    """Refuse a comment that is too long to be one, or that no database keeps as it is."""
    if "\0" in comment:
        raise InvalidInputError("The comment holds a character that no text has (code 0). Type it anew.")
    if len(comment) > LONGEST_COMMENT:
        raise InvalidInputError(
            f"The comment has {len(comment)} characters; at most {LONGEST_COMMENT} can be kept. Shorten it."
        )


def no_case(slug: str, case_id: int) -> NotFoundError:
    """Say that a study has no such case."""
    return NotFoundError(f"Study '{slug}' has no case {case_id}.")


def taken(case_id: int) -> str:
    """Say that others have all places of a case."""
    return f"Case {case_id} has no free place: other readers hold or have judged it. Go on with another case."


def no_place(case_id: int) -> RefusedError:
    """Say that the reader has no place in a case."""
    return RefusedError(
        f"You hold no place in case {case_id} any more, so nothing was saved. Open the case again, or go on."
    )
