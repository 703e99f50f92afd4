"""What was answered: judgments, adjudications and signatures, which are only ever appended, and drafts."""

from datetime import datetime

from sqlalchemy import delete, func, select, update

from core.vocabulary import CaseId, PersonId, StudyId
from db.models import (
    Adjudication,
    Assignment,
    CastVote,
    Draft,
    DraftAnswer,
    FormState,
    Judgment,
    ReadingTerms,
    ReportSignature,
    SavedForm,
    StudyCase,
    StudyReader,
)
from db.models.base import aliased
from db.queries.reading import Repository, given, make_records, select_records, stored_values
from db.queries.slots import is_current
from db.queries.votes import saved_form, state_of_form

_OF_READER = (
    select_records(Judgment)
    .where(Judgment.case_id == given("case_id"), Judgment.reviewer_id == given("reviewer_id"))
    .order_by(Judgment.version.desc())
)
_CURRENT = _OF_READER.limit(1)
_IN_STUDY = (
    select_records(Judgment)
    .join(StudyCase, StudyCase.id == Judgment.case_id)
    .where(StudyCase.study_id == given("study_id"))
)
_VOTES = (
    select_records(
        Judgment,
        CastVote,
        StudyCase.number.label("case_number"),
        StudyCase.repeat_number,
        StudyReader.number.label("reader_number"),
    )
    .join(StudyCase, StudyCase.id == Judgment.case_id)
    .join(StudyReader, (StudyReader.study_id == StudyCase.study_id) & (StudyReader.person_id == Judgment.reviewer_id))
    .where(StudyCase.study_id == given("study_id"), Judgment.answer.is_not(None), is_current(Judgment))
    .order_by(StudyCase.number, StudyReader.number)
)


class Judgments(Repository):
    """Judgments of cases."""

    def append(self, judgment: Judgment) -> None:
        """Append a version; the database refuses a number or form key that is taken."""
        self._insert(judgment)

    def form_state(self, slug: str, person_id: PersonId, case_id: CaseId, form_key: str) -> FormState:
        """Return what decides about a form that somebody sends for a case of a study."""
        values = {"slug_": slug, "person_id_": person_id, "case_id_": case_id, "form_key_": form_key}
        row = self._run(state_of_form(), **values).one()
        n_terms = len(ReadingTerms._fields)
        terms, (found_case, texts, saved_case, saved_reviewer, seen_by, *version) = row[:n_terms], row[n_terms:]
        current = make_records(Judgment, Judgment.__fields__, [version] if version[0] is not None else [])
        return FormState(
            has_study=terms[0] is not None,
            terms=None if row.person_id is None else ReadingTerms._make(terms),
            has_case=found_case is not None,
            answer_texts=texts or {},
            current=next(current, None),
            saved_for=None if saved_case is None else (saved_case, saved_reviewer),
            score_was_seen=seen_by is not None,
        )

    def saved(self, form_key: str) -> SavedForm | None:
        """Return what a form was saved as, with the time zone of its site; None when it was not."""
        row = self._run(saved_form(), form_key_=form_key).one_or_none()
        return None if row is None else SavedForm._make(row)

    def current(self, case_id: CaseId, reviewer_id: PersonId) -> Judgment | None:
        """Return a reader's highest version of a case, also one that takes the former back; None when there is none."""
        return self._one(Judgment, _CURRENT, case_id_=case_id, reviewer_id_=reviewer_id)

    def history(self, case_id: CaseId, reviewer_id: PersonId) -> list[Judgment]:
        """Return all versions of a reader's judgment of a case, newest first."""
        return self._all(Judgment, _OF_READER, case_id_=case_id, reviewer_id_=reviewer_id)

    def of_person(self, reviewer_id: PersonId, study_id: StudyId) -> list[Judgment]:
        """Return one reader's current judgments in a study, newest first."""
        current = (Judgment.reviewer_id == reviewer_id, Judgment.answer.is_not(None), is_current(Judgment))
        newest_first = (Judgment.judged_at.desc(), Judgment.id.desc())
        return self._all(Judgment, _IN_STUDY.where(*current).order_by(*newest_first), study_id_=study_id)

    def votes(self, study_id: StudyId) -> list[CastVote]:
        """Return the current judgments of a study, by case and reader."""
        return self._all(CastVote, _VOTES, study_id_=study_id)

    def versions(self, study_id: StudyId) -> list[Judgment]:
        """Return every version of every judgment of a study in the order of saving, for the long export."""
        return self._all(Judgment, _IN_STUDY.order_by(Judgment.id), study_id_=study_id)

    def moments(self, study_id: StudyId) -> list[tuple[PersonId, CaseId, datetime, float | None]]:
        """Return reader, case, moment and active seconds of every version of every judgment of a study, by number."""
        statement = (
            select(Judgment.reviewer_id, Judgment.case_id, Judgment.judged_at, Judgment.active_seconds)
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .where(StudyCase.study_id == study_id)
            .order_by(Judgment.id)
        )
        return [(reader_id, case_id, moment, seconds) for reader_id, case_id, moment, seconds in self._run(statement)]

    def stamp(self, study_id: StudyId) -> tuple[int, int]:
        """Return what changes with every judgment of a study: the newest number and how many there are."""
        statement = (
            select(func.coalesce(func.max(Judgment.id), 0), func.count())
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .where(StudyCase.study_id == study_id)
        )
        newest, count = self._run(statement).one()
        return newest, count


_IS_OWN = (Draft.case_id == given("case_id"), Draft.reviewer_id == given("reviewer_id"))
_ANSWER = select(Draft.answer, Draft.certainty, Draft.comment).where(*_IS_OWN)
_DROP = delete(Draft).where(*_IS_OWN)


class Drafts(Repository):
    """Drafts of readers."""

    def get(self, case_id: CaseId, reviewer_id: PersonId) -> DraftAnswer | None:
        """Return a reader's draft of a case, None when there is none."""
        row = self._run(_ANSWER, case_id_=case_id, reviewer_id_=reviewer_id).one_or_none()
        return None if row is None else DraftAnswer._make(row)

    def put(self, draft: Draft) -> None:
        """Write a draft over the former one of its case and reader."""
        own = update(Draft).where(Draft.case_id == draft.case_id, Draft.reviewer_id == draft.reviewer_id)
        if self._change(own.values(stored_values(draft))) == 0:
            self._insert(draft)

    def drop(self, case_id: CaseId, reviewer_id: PersonId) -> None:
        """Forget a draft."""
        self._change(_DROP, case_id_=case_id, reviewer_id_=reviewer_id)


class Adjudications(Repository):
    """Adjudications of cases."""

    def append(self, adjudication: Adjudication) -> None:
        """Append a version."""
        self._insert(adjudication)

    def by_form_key(self, form_key: str) -> Adjudication | None:
        """Return the version that a form was saved as, None when it was not."""
        return self._one(Adjudication, select_records(Adjudication).where(Adjudication.form_key == form_key))

    def current(self, case_id: CaseId) -> Adjudication | None:
        """Return the highest version for a case, None when there is none."""
        of_case = select_records(Adjudication).where(Adjudication.case_id == case_id)
        return self._one(Adjudication, of_case.order_by(Adjudication.version.desc()).limit(1))

    def in_study(self, study_id: StudyId) -> list[Adjudication]:
        """Return the current adjudication of each case of a study that has one."""
        later = aliased(Adjudication)
        newest = select(func.max(later.version)).where(later.case_id == Adjudication.case_id).scalar_subquery()
        statement = (
            select_records(Adjudication)
            .join(StudyCase, StudyCase.id == Adjudication.case_id)
            .where(StudyCase.study_id == study_id, Adjudication.version == newest)
            .order_by(StudyCase.number)
        )
        return self._all(Adjudication, statement)

    def count(self, study_id: StudyId) -> int:
        """Count the versions of all adjudications of a study; it changes with every one."""
        statement = (
            select(func.count())
            .select_from(Adjudication)
            .join(StudyCase, StudyCase.id == Adjudication.case_id)
            .where(StudyCase.study_id == study_id)
        )
        return int(self._run(statement).scalar_one())

    def was_reader(self, case_id: CaseId, person_id: PersonId) -> bool:
        """Return whether somebody holds a slot of the case or ever judged it."""
        holds = select(Assignment.slot).where(Assignment.case_id == case_id, Assignment.reviewer_id == person_id)
        judged = select(Judgment.id).where(Judgment.case_id == case_id, Judgment.reviewer_id == person_id)
        return any(self._run(statement).first() is not None for statement in (holds, judged))


class Signatures(Repository):
    """Signatures under reports."""

    def append(self, signature: ReportSignature) -> None:
        """Append a signature."""
        self._insert(signature)

    def of_study(self, study_id: StudyId) -> list[ReportSignature]:
        """Return the signatures under a study's reports, oldest first, superseded ones among them."""
        of_study = select_records(ReportSignature).where(ReportSignature.study_id == study_id)
        return self._all(ReportSignature, of_study.order_by(ReportSignature.id))

    def supersede(self, study_id: StudyId, at: datetime, *, but_hash: str = "") -> int:
        """Mark what stands as superseded, except signatures of one content, and return their number."""
        standing = update(ReportSignature).where(
            ReportSignature.study_id == study_id,
            ReportSignature.superseded_at.is_(None),
            ReportSignature.content_hash != but_hash,
        )
        return self._change(standing.values(superseded_at=at))
