"""Studies: their rules, rubric versions and readers."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select, update

from core.errors import ConflictError, NotFoundError
from core.vocabulary import PersonId, StudyId, StudyStatus
from db.models import NamedReader, Person, ReadingTerms, Rubric, Study, StudyReader
from db.queries.reading import Repository, given, select_records
from db.queries.seals import mark
from db.queries.votes import reader_at_study

_BY_SLUG = select_records(Study).where(Study.slug == given("slug"))
_READERS = (
    select_records(StudyReader, NamedReader, Person.name, Person.active)
    .join(Person, Person.id == StudyReader.person_id)
    .where(StudyReader.study_id == given("study_id"))
    .order_by(StudyReader.number)
)


def no_study(slug: str) -> str:
    """Return what to say when there is no study of a short name."""
    return f"There is no study '{slug}'. See the Studies page for those there are."


class Studies(Repository):
    """Studies with their rubrics and readers."""

    def add(self, study: Study) -> Study:
        """Add a study; `add_rubric` then adds version 1 of its rubric.

        Raise ConflictError if the short name is taken.
        """
        if self._one(Study, _BY_SLUG, slug_=study.slug) is not None:
            raise ConflictError(f"There is a study '{study.slug}' already. Choose another short name.")
        self._insert(study)
        return self.by_slug(study.slug)

    def by_slug(self, slug: str) -> Study:
        """Return a study by its short name; raise NotFoundError if there is none."""
        return self._the(Study, _BY_SLUG, no_study(slug), slug_=slug)

    def reader_at(self, slug: str, person_id: PersonId) -> ReadingTerms | None:
        """Return somebody as a reader of a study, None when he is none.

        Raise NotFoundError if there is no such study.
        """
        row = self._run(reader_at_study(), slug_=slug, person_id_=person_id).one_or_none()
        if row is None:
            raise NotFoundError(no_study(slug))
        return None if row.person_id is None else ReadingTerms._make(row)

    def all(self) -> list[Study]:
        """Return every study, newest first."""
        return self._all(Study, select_records(Study).order_by(Study.id.desc()))

    def set_status(
        self, study_id: StudyId, status: StudyStatus, *, opened_at: datetime | None, locked_at: datetime | None
    ) -> None:
        """Open, lock or reopen a study."""
        own = update(Study).where(Study.id == study_id)
        self._run(own.values(status=status, opened_at=opened_at, locked_at=locked_at))
        mark(self._connection, "study", study_id)

    def add_rubric(self, rubric: Rubric) -> None:
        """Append a version of question, guidelines and answer texts and make it the study's current one."""
        self._insert(rubric)
        self._run(update(Study).where(Study.id == rubric.study_id).values(rubric_version=rubric.version))

    def rubric(self, study_id: StudyId, version: int | None = None) -> Rubric:
        """Return a version of the rubric, by default the current one.

        Raise NotFoundError if the study has no such version.
        """
        statement = select_records(Rubric).where(Rubric.study_id == study_id)
        if version is None:
            statement = statement.join(Study, Study.id == Rubric.study_id).where(Rubric.version == Study.rubric_version)
        else:
            statement = statement.where(Rubric.version == version)
        return self._the(Rubric, statement, f"Study number {study_id} has no rubric version {version or 'yet'}.")

    def add_readers(self, study_id: StudyId, person_ids: Sequence[PersonId]) -> None:
        """Let people take slots; somebody who may already stays as he is."""
        known = {reader.person_id for reader in self.readers(study_id)}
        last = self._run(select(func.max(StudyReader.number)).where(StudyReader.study_id == study_id)).scalar_one()
        new = [person_id for person_id in dict.fromkeys(person_ids) if person_id not in known]
        for number, person_id in enumerate(new, start=(last or 0) + 1):
            self._insert(StudyReader(study_id=study_id, person_id=person_id, number=number))

    def readers(self, study_id: StudyId) -> list[NamedReader]:
        """Return the readers of a study in the order of joining."""
        return self._all(NamedReader, _READERS, study_id_=study_id)
