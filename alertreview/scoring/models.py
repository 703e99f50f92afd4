"""What pages read: frozen answers of the application, without database objects; see `alertreview.alerts.models`."""

from dataclasses import dataclass, field
from datetime import datetime

from core.vocabulary import RunId


@dataclass(frozen=True)
class RunView:
    """One published scoring run, for the header of pages and the Runs page."""

    run_id: RunId
    scorer: str
    published_at: datetime
    site_timezone: str
    simulated: bool
    calendar_is_shifted: bool
    split: str
    seed: int
    n_past: int
    n_recent: int
    n_tasks_scored: int
    n_tasks_left_out: int
    n_alerts: int
    floor: float  # alerts below this scaled score are not listed one by one; their scores stay in the stored vectors
    parameters: dict[str, object] = field(default_factory=dict)
    import_summary: dict[str, object] = field(default_factory=dict)
    scorers: tuple[str, ...] = ()
    """All scorers of the run, each with its own lists; `scorer`, whose lists are shown first, is the first."""
    retrospective_scorers: tuple[str, ...] = ()
    """Those of them that also look at the other decisions of the window: they look back and cannot warn."""
    base_run_id: RunId | None = None
    """The run whose stored past the instances were scored against; None for a run that learned its own past."""

    @property
    def snapshot_hour(self) -> str:
        """Time of day of the instances in words: "06:00"; an import of an older version does not tell it."""
        hour = self.import_summary.get("snapshot_hour")
        return f"{hour:02d}:00" if isinstance(hour, int) else "the snapshot hour"


@dataclass(frozen=True)
class Histogram:
    """Counts of a task's scores in bins of equal width."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
