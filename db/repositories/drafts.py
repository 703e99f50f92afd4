"""Drafts: what readers have chosen and typed but not saved, in the database so that it survives everything."""

from sqlalchemy import delete, select, update

from core.vocabulary import CaseId, PersonId
from db.models import Draft, DraftAnswer
from db.queries.reading import Repository, given, stored_values

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
