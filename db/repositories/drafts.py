"""Drafts: what readers have chosen and typed but not saved, in the database so that it survives everything."""

from datetime import datetime

from sqlalchemy import insert, update
from sqlalchemy.engine import Connection

from db.models import Draft
from db.queries.reading import change, read_one
from db.queries.votes import draft_of_reader, drop_draft
from db.rows import DraftRow


class Drafts:
    """Drafts of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, case_id: int, reviewer_id: int) -> DraftRow | None:
        """Return a reader's draft of a case, None when there is none."""
        return read_one(self._connection, DraftRow, draft_of_reader(), case_id_=case_id, reviewer_id_=reviewer_id)

    def put(self, case_id: int, reviewer_id: int, draft: DraftRow, written_at: datetime) -> None:
        """Write a draft over the former one."""
        new = {
            "answer": draft.answer,
            "certainty": draft.certainty,
            "comment": draft.comment,
            "written_at": written_at,
        }
        changed = change(
            self._connection,
            update(Draft).where(Draft.case_id == case_id, Draft.reviewer_id == reviewer_id).values(new),
        )
        if changed == 0:
            self._connection.execute(insert(Draft).values(case_id=case_id, reviewer_id=reviewer_id, **new))

    def drop(self, case_id: int, reviewer_id: int) -> None:
        """Forget a draft."""
        change(self._connection, drop_draft(), case_id_=case_id, reviewer_id_=reviewer_id)
