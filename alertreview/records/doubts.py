"""Red checks of the last import: they stop scoring until somebody accepts them, by name and with a reason."""

import getpass
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from core.errors import AlertReviewError, InvalidInputError
from core.events.plausibility import Severity
from db.database import Database
from db.models import CohortSnapshot
from db.unit_of_work import UnitOfWork

ACCEPTED = "check accepted"
EXIT_DOUBT = 3


class ImportDoubtError(AlertReviewError):
    """Checks of the last import are red, and nobody has accepted them: its alerts cannot be trusted yet."""

    exit_code = EXIT_DOUBT


def raised_checks(import_summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the checks of an import report that are not as they should be, red ones first."""
    checks = [check for check in import_summary.get("checks", ()) if check["severity"] != Severity.OK]
    return sorted(checks, key=lambda check: check["severity"] != Severity.RED)


def open_checks(uow: UnitOfWork) -> list[dict[str, Any]]:
    """Return the raised checks of the last import that nobody has accepted, red ones first.

    An acceptance holds for later imports as long as they do not count more.
    """
    stored = uow.snapshots.latest()
    if stored is None:
        return []
    accepted = dict(_accepted(uow))
    return [check for check in raised_checks(stored.import_summary) if check["count"] > accepted.get(check["name"], -1)]


def require_trusted(database: Database, accept: Collection[str] = (), reason: str = "") -> None:
    """Refuse to go on while a red check of the last import is not accepted.

    Checks to accept now, and why, go into the audit trail. Raise ImportDoubtError, which lists the red checks with what
    they would do to the alerts, and InvalidInputError if a check to accept is not raised, or there is no reason.
    """
    if accept and not reason.strip():
        raise InvalidInputError("Accepting a check needs a reason. Give it with --reason.")
    with database.write() if accept else database.read() as uow:
        stored = uow.snapshots.latest()
        if stored is None:
            return
        raised = {check["name"]: check for check in raised_checks(stored.import_summary)}
        for name in accept:
            if name not in raised:
                known = ", ".join(raised) or "none"
                raise InvalidInputError(f"There is no raised check '{name}' in the last import; raised are: {known}.")
            _accept(uow, stored, raised[name], reason)
        if accept:
            uow.commit()
        doubts = [check for check in open_checks(uow) if check["severity"] == Severity.RED]
    if doubts:
        lines = [f"  {check['name']}: {check['sentence']} {check['effect']}" for check in doubts]
        names = " ".join(f"--accept {check['name']}" for check in doubts)
        raise ImportDoubtError(
            "Checks of the last import failed, so nothing was scored:\n"
            + "\n".join(lines)
            + f'\nCorrect the source or the mapping and import again, or accept: {names} --reason "WHY".'
        )


def _accept(uow: UnitOfWork, stored: CohortSnapshot, check: Mapping[str, Any], reason: str) -> None:
    details = {"check": check["name"], "count": check["count"], "reason": reason, "by": getpass.getuser()}
    uow.audit.append(datetime.now(UTC), "command line", ACCEPTED, f"import {stored.folder}", details)


def _accepted(uow: UnitOfWork) -> Iterator[tuple[str, int]]:
    """Yield name and count of each acceptance, oldest first: the newest of a check counts."""
    for event in reversed(uow.audit.latest(10_000, action=ACCEPTED)):
        details = json.loads(event.details)
        yield str(details["check"]), int(details["count"])
