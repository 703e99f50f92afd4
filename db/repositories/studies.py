"""Studies: their rules, rubric versions and readers."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import Connection

from core.errors import ConflictError, NotFoundError
from core.vocabulary import StudyStatus
from db.models import Person, Rubric, Study, StudyReader
from db.queries.reading import columns, read_all, read_the, run, values
from db.queries.votes import reader_at_study, study_by_slug
from db.rows import NewStudy, ReaderRow, ReadingTerms, RubricRow, StudyRow


def no_study(slug: str) -> str:
    """Say that there is no study of a short name."""
    return f"There is no study '{slug}'. See the Studies page for those there are."


class Studies:
    """Studies of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, study: NewStudy) -> StudyRow:
        """Add a study as a draft with rubric version 1, to be added by `add_rubric`.

        Raises
        ------
        ConflictError
            If the short name is taken.
        """
        taken = self._connection.execute(select(Study.id).where(Study.slug == study.slug)).scalar_one_or_none()
        if taken is not None:
            raise ConflictError(f"There is a study '{study.slug}' already. Choose another short name.")
        new = values(study) | {"status": StudyStatus.DRAFT, "rubric_version": 1}
        self._connection.execute(insert(Study).values(new))
        return self.by_slug(study.slug)

    def by_slug(self, slug: str) -> StudyRow:
        """Return a study by its short name.

        Raises
        ------
        NotFoundError
            If there is none.
        """
        return read_the(self._connection, StudyRow, study_by_slug(), no_study(slug), slug_=slug)

    def reader_at(self, slug: str, person_id: int) -> ReadingTerms | None:
        """Return somebody as a reader of a study; None when he is none.

        Raises
        ------
        NotFoundError
            If there is no such study.
        """
        row = run(self._connection, reader_at_study(), slug_=slug, person_id_=person_id).one_or_none()
        if row is None:
            raise NotFoundError(no_study(slug))
        terms = ReadingTerms._make(row)
        return None if terms.person_id is None else terms

    def all(self) -> list[StudyRow]:
        """Return every study, newest first."""
        return read_all(self._connection, StudyRow, select(*columns(Study, StudyRow)).order_by(Study.id.desc()))

    def set_status(
        self, study_id: int, status: StudyStatus, *, opened_at: datetime | None, locked_at: datetime | None
    ) -> None:
        """Open, lock or reopen a study."""
        self._connection.execute(
            update(Study).where(Study.id == study_id).values(status=status, opened_at=opened_at, locked_at=locked_at)
        )

    def add_rubric(self, rubric: RubricRow) -> None:
        """Append a version of question, guidelines and answer texts and make it the study's current one."""
        self._connection.execute(insert(Rubric).values(values(rubric)))
        self._connection.execute(update(Study).where(Study.id == rubric.study_id).values(rubric_version=rubric.version))

    def rubric(self, study_id: int, version: int | None = None) -> RubricRow:
        """Return a version of the rubric; None for the current one.

        Raises
        ------
        NotFoundError
            If the study has no such version.
        """
        statement = select(*columns(Rubric, RubricRow)).where(Rubric.study_id == study_id)
        if version is None:
            statement = statement.join(Study, Study.id == Rubric.study_id).where(Rubric.version == Study.rubric_version)
        else:
            statement = statement.where(Rubric.version == version)
        missing = f"Study number {study_id} has no rubric version {version or 'yet'}."
        return read_the(self._connection, RubricRow, statement, missing)

    def add_readers(self, study_id: int, person_ids: Sequence[int]) -> None:
        """Let people take slots; somebody who may already stays as he is."""
        known = {reader.person_id for reader in self.readers(study_id)}
        last = self._connection.execute(
            select(func.coalesce(func.max(StudyReader.number), 0)).where(StudyReader.study_id == study_id)
        ).scalar_one()
        new = [person_id for person_id in dict.fromkeys(person_ids) if person_id not in known]
        for number, person_id in enumerate(new, start=last + 1):
            self._connection.execute(insert(StudyReader).values(study_id=study_id, person_id=person_id, number=number))

    def readers(self, study_id: int) -> list[ReaderRow]:
        """Return the readers of a study in the order of joining."""
        statement = (
            select(StudyReader.person_id, StudyReader.number, Person.name, Person.active)
            .join(Person, Person.id == StudyReader.person_id)
            .where(StudyReader.study_id == study_id)
            .order_by(StudyReader.number)
        )
        return read_all(self._connection, ReaderRow, statement)
