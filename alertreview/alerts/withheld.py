"""Who may not see results or scores yet: a reader of an open blinded study with cases left, any of an open panel."""

from core.errors import RefusedError
from db.rows import AlertRecord
from db.unit_of_work import UnitOfWork

JUDGE_FIRST = (
    "You have still to judge this decision in a study, without knowing its score. The alert opens once you have."
)


def refuse_withheld(uow: UnitOfWork, alert: AlertRecord, person_id: int | None) -> None:
    """Refuse an alert to a reader who has still to judge its decision; None is nobody's reader.

    Raises
    ------
    RefusedError
        It says what to do first.
    """
    if person_id is not None and uow.cases.awaits_judgment_of(
        person_id, alert.patient_id, alert.snapshot_at, alert.task_key
    ):
        raise RefusedError(JUDGE_FIRST)
