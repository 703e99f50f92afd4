"""Which alerts a question is about: the lists of one scorer of a run."""

from sqlalchemy import ColumnElement, and_, false, select

from core.vocabulary import RunId
from db.models import Alert, ScoringRun


def of_scorer(run_id: RunId, scorer: str = "") -> ColumnElement[bool]:
    """Restrict alerts to the lists of one scorer of a run; without a name to those of its first."""
    if "\0" in scorer:
        return false()  # no name holds it, and PostgreSQL would not even take the question
    first = select(ScoringRun.scorer).where(ScoringRun.id == run_id).scalar_subquery()
    return and_(Alert.run_id == run_id, Alert.scorer == (scorer or first))
