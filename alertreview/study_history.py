"""The life of a study in sentences, from the audit trail: who opened, locked and reopened it, when and why."""

import json
from zoneinfo import ZoneInfo

from db.rows import StudyRow
from db.unit_of_work import UnitOfWork

ACTIONS = ("study created", "rubric revised", "readers added", "study opened", "study locked", "study reopened")
KEPT = 50


def history_of(uow: UnitOfWork, study: StudyRow) -> tuple[str, ...]:
    """Give one sentence for each act on a study, oldest first, with its reason; names of readers stay out of it."""
    zone = ZoneInfo(uow.snapshots.get(uow.runs.get(study.run_id).snapshot_id).site_timezone)
    rows = [row for action in ACTIONS for row in uow.audit.latest(KEPT, action=action, thing=f"study {study.slug}")]
    sentences = []
    for row in sorted(rows, key=lambda row: row.sequence):
        reason = str(json.loads(row.details).get("reason", "") or "")
        when = f"{row.at.astimezone(zone):%Y-%m-%d %H:%M}"
        sentences.append(f"{when}: {row.action} by {row.actor}" + (f", because: {reason}" if reason else ""))
    return tuple(sentences)
