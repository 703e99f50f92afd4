"""What the worklist shows of an alert beside its row."""

from dataclasses import dataclass

from alertreview.alerts.models import Comparison
from alertreview.scoring.models import Histogram
from core.vocabulary import RunId


@dataclass(frozen=True)
class AlertPreview:
    """What the card beside the worklist shows of an alert, on top of its row; nothing of it needs a time line."""

    run_id: RunId
    day_of_stay: int
    scaled_histogram: Histogram
    compared: Comparison
