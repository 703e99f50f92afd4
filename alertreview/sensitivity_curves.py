"""Stored sensitivity curves of runs, as the Runs page reads them."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from alertreview.worklist_rows import find_run
from core.plain import from_plain
from core.sensitivity import Sensitivity
from db.session import Database


@dataclass(frozen=True)
class StoredSensitivity:
    """The curves of a run and when they were computed."""

    curves: Sensitivity
    computed_at: datetime
    """In the site's zone."""


class SensitivityCurves:
    """Reads curves.

    Parameters
    ----------
    database : Database
        The site's database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_run(self, run_id: int) -> StoredSensitivity | None:
        """Give the curves of a published run, None when none are stored.

        Raises
        ------
        NotFoundError
            If there is no such run.
        """
        with self._database.read() as uow:
            run = find_run(uow, run_id)
            stored = uow.runs.sensitivity(run_id)
            if run is None or stored is None:
                return None
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
        plain, computed_at = stored
        return StoredSensitivity(from_plain(Sensitivity, plain), computed_at.astimezone(zone))
