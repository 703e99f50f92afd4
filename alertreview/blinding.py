"""Who may not see results or scores yet: a reader of an open blinded study with cases left, any of an open panel."""

from alertreview.review import ReviewService
from core.errors import RefusedError
from core.vocabulary import StudyStatus
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


def is_blinded(review: ReviewService, slug: str, person_id: int) -> bool:
    """Tell whether results of a study are still hidden from a person.

    A case that others hold counts as left: when their hold lapses, it may become this reader's. From readers of an
    open panel they are hidden until it is locked, so that no answer is given or changed with the others' in view.

    Parameters
    ----------
    review : ReviewService
        Knows studies and queues.
    slug : str
        Short name of the study.
    person_id : int
        Who asks.

    Raises
    ------
    NotFoundError
        If there is no such study.
    """
    study = review.study(slug)
    if study.status is not StudyStatus.OPEN:
        return False
    queue = review.queue(slug, person_id)
    if study.is_open_panel:
        return queue.is_reader
    return queue.is_reader and queue.n_left + queue.n_held_by_others > 0
