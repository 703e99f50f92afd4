"""Parts of the ranked lists that pages ask for: one line, everything that filters leave, counts by unit."""

from dataclasses import replace
from zoneinfo import ZoneInfo

from alertreview.blinding import refuse_withheld
from alertreview.callbacks import Clock
from alertreview.expected_rate import ExpectedRate, expected_rate, judged_study
from alertreview.explanations import Explanations, Past
from alertreview.read_models import Timeline, WorklistFilters, WorklistLine
from alertreview.triage import MOST_AT_ONCE
from alertreview.worklist_lines import members_of
from alertreview.worklist_restriction import restriction_of
from alertreview.worklist_rows import decision_of, find_run, lines_in_words
from core.errors import NotFoundError, RefusedError
from core.vocabulary import Decision
from db.session import Database


class AlertLists:
    """Reads parts of the ranked lists.

    Parameters
    ----------
    database : Database
        The site's database.
    explanations : Explanations
        Opens snapshots for the time lines of past instances.
    clock : callable
        Gives the time, aware: a snooze that is over is new again.
    """

    def __init__(self, database: Database, explanations: Explanations, clock: Clock) -> None:
        self._database = database
        self._explanations = explanations
        self._clock = clock

    def targets(self, filters: WorklistFilters) -> dict[int, int]:
        """Give all alerts that the filters let through, for one act on all of them.

        Returns
        -------
        dict of int to int
            Alert -> version of where it stands, to be passed back with the act.

        Raises
        ------
        RefusedError
            If there are more than one act takes.
        """
        now = self._clock()
        with self._database.read() as uow:
            run = find_run(uow, filters.run_id)
            if run is None:
                return {}
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
            restriction = restriction_of(uow, run, filters, zone, now)
            page = uow.alerts.page(run.id, limit=MOST_AT_ONCE, **restriction)
            if page.next_cursor is not None:
                raise RefusedError(
                    f"These filters leave more than {MOST_AT_ONCE:,} alerts. Narrow them for a common act."
                )
            keys = {row.id: decision_of(row) for row in page.rows}
            standing = uow.triage.standing(list(keys.values()))
            return {alert_id: standing[key].version if key in standing else 0 for alert_id, key in keys.items()}

    def line(self, alert_id: int, filters: WorklistFilters) -> WorklistLine:
        """Give the line of an alert, whether the filters let it through or not; then it is the alert alone.

        Raises
        ------
        NotFoundError
            If there is no such alert.
        RefusedError
            If the reader of the filters has still to judge the decision without knowing its score.
        """
        now = self._clock()
        with self._database.read() as uow:
            record = uow.alerts.get(alert_id)
            refuse_withheld(uow, record, filters.reader)
            run = uow.runs.get(record.run_id)
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
            listed = replace(filters, run_id=run.id, scorer=record.scorer)
            restriction = restriction_of(uow, run, listed, zone, now)
            line = members_of(uow, run.id, listed.grouping, listed.order, record, restriction)
            return lines_in_words(uow, [line], listed.grouping, zone, now)[0]

    def past_instance(self, alert_id: int, position: int, person_id: int | None = None) -> Timeline:
        """Give the time line of one of the nearest past instances that an alert page lists.

        Parameters
        ----------
        alert_id : int
        position : int
            In `AlertDetail.neighbours`.
        person_id : int or None
            Who looks.

        Raises
        ------
        NotFoundError
            If there is no such alert or past instance.
        RefusedError
            If the person has still to judge the decision without knowing its score.
        """
        with self._database.read() as uow:
            record = uow.alerts.get(alert_id)
            refuse_withheld(uow, record, person_id)
            run = uow.runs.get(record.run_id)
            snapshot = uow.snapshots.get(run.snapshot_id)
            result = uow.runs.past_of_task(run, record.task_id, record.scorer)
            past = Past(run, result, uow.runs.kept_folds(run))
        found = self._explanations.past_timeline(snapshot.content_hash, record, past, position)
        if found is None:
            raise NotFoundError(f"Alert {alert_id} has no past instance {position + 1}. Reload its page.")
        return found

    def expected_rate(self, filters: WorklistFilters) -> ExpectedRate | None:
        """Give the expected true-alert rate inside the budget; None until a study of the run is judged.

        Parameters
        ----------
        filters : WorklistFilters
            Their run, scorer, decision and budget count.
        """
        with self._database.read() as uow:
            run = find_run(uow, filters.run_id)
            study = judged_study(uow, run.id) if run is not None else None
            if run is None or study is None:
                return None
            return expected_rate(uow, run, study, filters)

    def units(self, filters: WorklistFilters) -> tuple[tuple[str, int, int], ...]:
        """Count the alerts that the filters let through by unit: name, omissions, commissions; most alerts first."""
        with self._database.read() as uow:
            run = find_run(uow, filters.run_id)
            if run is None:
                return ()
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
            counts = uow.alerts.units(run.id, **restriction_of(uow, run, filters, zone, self._clock()))
        rows = [(unit, n.get(Decision.OMISSION, 0), n.get(Decision.COMMISSION, 0)) for unit, n in counts.items()]
        return tuple(sorted(rows, key=lambda row: (-row[1] - row[2], row[0])))
