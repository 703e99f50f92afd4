"""Exports that were written, read from the audit trail: nothing else keeps a list of them."""

import json
from dataclasses import dataclass
from datetime import datetime

from db.audit import AuditRow
from db.unit_of_work import UnitOfWork

EXPORTED = "exported"
"""What the audit trail calls an export."""


@dataclass(frozen=True)
class PastExport:
    """One export that was written, from the audit trail."""

    exported_at: datetime
    """Aware, in UTC."""
    actor: str
    """ "person 3", "command line"."""
    study_slug: str
    what: str
    file_name: str
    n_rows: int | None
    sha256: str
    """Of the file; empty where an older version did not keep it."""


def past_exports(uow: UnitOfWork, slug: str, limit: int) -> tuple[PastExport, ...]:
    """Return the exports of a study, newest first.

    Parameters
    ----------
    uow : UnitOfWork
        Open.
    slug : str
        Short name of the study.
    limit : int
        At most so many.
    """
    rows = uow.audit.latest(limit, action=EXPORTED, thing=f"study {slug}")
    return tuple(_past_export(row, slug) for row in rows)


def _past_export(row: AuditRow, slug: str) -> PastExport:
    details = json.loads(row.details)
    formats = details.get("formats") or [details.get("format", "")]
    n_rows = details.get("rows")
    return PastExport(
        exported_at=row.at,
        actor=row.actor,
        study_slug=slug,
        what=", ".join(str(part) for part in (details.get("what", "labels"), details.get("layout"), *formats) if part),
        file_name=str(details.get("file", "")),
        n_rows=None if n_rows is None else int(n_rows),
        sha256=str(details.get("sha256", "")),
    )
