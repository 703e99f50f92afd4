"""Who may not see results or scores yet: a reader of an open blinded study with cases left, any of an open panel."""

from alertreview.review.review import ReviewService
from core.vocabulary import StudyStatus


def is_blinded(review: ReviewService, slug: str, person_id: int) -> bool:
    """Return whether results of a study are still hidden from a person.

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
