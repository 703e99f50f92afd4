"""What the alert page shows of an open panel: the reader's own place in a case, and nothing of anybody else."""

from dataclasses import dataclass
from datetime import datetime

from alertreview.read_models import DraftView
from core.vocabulary import Answer, Certainty


@dataclass(frozen=True)
class PanelCase:
    """A decision that somebody may judge beside its score, as that reader's own rows tell it."""

    study_slug: str
    study_title: str
    case_id: int
    question: str
    answer_texts: dict[int, str]
    answer: Answer | None
    """The reader's saved answer; None while there is none, or once it was taken back."""
    certainty: Certainty | None
    """Of the saved answer."""
    comment: str
    """Of the saved answer."""
    saved_at: datetime | None
    """When the saved answer was saved, in the site's zone."""
    draft: DraftView
    """What was chosen or typed and not saved."""
    version_seen: int
    """Number of the reader's current judgment of this case, 0 when there is none; sent back when saving."""
    form_key: str
    """Idempotency key of this showing of the form."""
