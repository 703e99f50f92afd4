"""The audit trail: read by pages, verified as a whole, exported with its head."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from alertreview.exports.schema import excel_text
from alertreview.files import replacing
from alertreview.rights import COMMAND_LINE, Action, Service, operator_only, requires
from core.errors import InvalidInputError
from db.audit import ChainReport
from db.models import AuditEvent

_FIELDS = ("sequence", "at", "actor", "action", "object", "details", "previous_hash", "hash")


@dataclass(frozen=True)
class AuditEntry:
    """One act as people read it."""

    sequence: int  # number without gaps
    at: datetime  # aware, in UTC
    actor: str  # "person 3"; `name` says who that is
    name: str  # name of the person, as it is now; empty for acts of the program
    # `action` and `object`: what was done, and on what.
    action: str
    object: str
    details: dict[str, Any]  # before, after, reason
    hash: str  # seal of the row


@dataclass(frozen=True)
class AuditPage:
    """A page of the trail, newest first; `before` asks for the next page and is None on the last."""

    entries: tuple[AuditEntry, ...]
    before: int | None

    def __iter__(self) -> Iterator[AuditEntry]:
        return iter(self.entries)


class AuditTrailService(Service):
    """The audit trail of one site."""

    @requires(Action.SEE_AUDIT)
    def page(
        self, before: int | None = None, limit: int = 50, *, action: str = "", person: str = "", thing: str = ""
    ) -> AuditPage:
        """Return the newest rows before a place, `AuditPage.before` of the page before.

        At most `limit`, from 1 to 1000. Only rows with exactly this action, actor ("person 3", or a person's name) and
        object; empty means all.
        """
        if not 1 <= limit <= 1000:
            raise InvalidInputError(f"A page of the audit trail has 1 to 1000 rows, not {limit}.")
        with self._database.read() as uow:
            names = {f"person {row.id}": row.name for row in uow.people.all()}
            actor = next((actor for actor, name in names.items() if name == person), person)
            rows = uow.audit.latest(limit + 1, before, action=action, thing=thing, actor=actor)
        shown = rows[:limit]
        return AuditPage(
            tuple(_entry(row, names) for row in shown), shown[-1].sequence if len(rows) > limit and shown else None
        )

    @requires(Action.SEE_AUDIT)
    def actions(self) -> tuple[str, ...]:
        """Return every kind of act in the trail, in alphabetical order."""
        with self._database.read() as uow:
            return tuple(uow.audit.actions())

    @requires(Action.SEE_AUDIT)
    def verify(self, known_head: str | None = None) -> ChainReport:
        """Verify the whole chain; `known_head` is a head from a backup or an export."""
        with self._database.read() as uow:
            return uow.audit.verify(known_head)

    @operator_only
    def export(self, path: Path, *, actor: str = COMMAND_LINE) -> ChainReport:
        """Verify the trail and write it to a file.

        The export is itself an act in the trail. Keep the head apart from the file. The file ends in .jsonl (exactly
        what is hashed) or .csv (for a spreadsheet; no cell becomes a formula). Raise InvalidInputError for another
        ending, SourceError if the file cannot be written, StoreError if the chain is broken.
        """
        if path.suffix not in {".jsonl", ".csv"}:
            raise InvalidInputError(f"An audit trail is written as .jsonl or .csv, not as {path.name}.")
        with replacing(path) as temporary:
            with self._database.read() as uow:
                report = uow.audit.require_whole()
                with temporary.open("w", encoding="utf-8", newline="") as out:
                    temporary.chmod(0o600)
                    _write(out, path.suffix, uow.audit.all())
            # First the audit row: a file without one must never be seen.
            with self._database.write() as uow:
                details = {"file": path.name, "rows": report.n_events, "head": report.head}
                uow.audit.append(self._clock(), actor, "audit trail exported", "audit trail", details)
                uow.commit()
        return report


def _entry(row: AuditEvent, names: dict[str, str]) -> AuditEntry:
    return AuditEntry(
        row.sequence,
        row.moment,
        row.actor,
        names.get(row.actor, ""),
        row.action,
        row.object,
        json.loads(row.details),
        row.hash,
    )


def _write(out: Any, suffix: str, rows: Iterator[dict[str, Any]]) -> None:
    if suffix == ".jsonl":
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
        return
    writer = csv.writer(out)
    writer.writerow(_FIELDS)
    for row in rows:
        writer.writerow([row["sequence"], *(excel_text(row[name]) for name in _FIELDS[1:])])
