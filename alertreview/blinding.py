"""Who may not see results yet: a reader of an open study with cases left to judge."""

from alertreview.review import ReviewService
from core.vocabulary import StudyStatus


def is_blinded(review: ReviewService, slug: str, person_id: int) -> bool:
    """Tell whether results of a study are still hidden from a person.

    A case that others hold counts as left: when their hold lapses, it may become this reader's.

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
    if review.study(slug).status is not StudyStatus.OPEN:
        return False
    queue = review.queue(slug, person_id)
    return queue.is_reader and queue.n_left + queue.n_held_by_others > 0
