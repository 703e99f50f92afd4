"""Who may not see results or scores yet: a reader of an open blinded study with cases left, any of an open panel."""

from alertreview.settings import Clock
from core.errors import RefusedError
from core.vocabulary import AlertId, PersonId
from db.database import Database
from db.models import ListedAlert
from db.unit_of_work import UnitOfWork

JUDGE_FIRST = (
    "You have still to judge this decision in a study, without knowing its score. The alert opens once you have."
)


def refuse_withheld(uow: UnitOfWork, alert: ListedAlert, person_id: PersonId | None) -> None:
    """Refuse an alert to a reader who has still to judge its decision; None is nobody's reader.

    Raises
    ------
    RefusedError
        It says what to do first.
    """
    if person_id is not None and uow.cases.awaits_judgment_of(person_id, alert.key):
        raise RefusedError(JUDGE_FIRST)


def show_score(database: Database, clock: Clock, person_id: PersonId, alert_id: AlertId) -> bool:
    """Return whether an alert may show score and votes, and if so remember that the person saw them.

    Not to a reader who has still to judge the decision blindly. To everybody else it may, and a later judgment of the
    same decision carries the mark.

    Raises
    ------
    NotFoundError
        If there is no such alert.
    """
    with database.read() as uow:
        decision = uow.alerts.keys([alert_id])[alert_id]
        if uow.cases.awaits_judgment_of(person_id, decision):
            return False
        was_seen = uow.cases.score_of_decision_was_seen(person_id, decision)
    if not was_seen:
        with database.write() as uow:
            # Checked again inside the transaction: the reader's case may have come up meanwhile.
            if uow.cases.awaits_judgment_of(person_id, decision):
                return False
            uow.cases.note_score_seen(person_id, decision, clock())
            uow.commit()
    return True
