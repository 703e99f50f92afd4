"""The task catalogue as its page shows and changes it; the commands `alertreview tasks` work on the same rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from alertreview.records.catalogue import (
    CatalogueEntry,
    TaskSetting,
    change_catalogue,
    site_day,
    stored_reasons,
    stored_settings,
    task_catalogue,
)
from alertreview.records.doubts import open_checks
from alertreview.records.snapshots import Snapshot
from alertreview.rights import COMMAND_LINE, Action, Service, requires
from alertreview.settings import Settings
from core.errors import InvalidInputError
from core.events.plausibility import Severity
from db.database import Database


@dataclass(frozen=True)
class CatalogueView:
    """The task catalogue of the last import."""

    entries: tuple[CatalogueEntry, ...]  # in column order
    reasons: dict[str, str]  # reason of the last change, by task key
    units: tuple[str, ...]  # care units of the import
    today: date  # in the zone of the site


@dataclass(frozen=True)
class OpenCheck:
    """A raised check of the last import that nobody has accepted."""

    name: str
    is_red: bool  # nothing is scored until somebody accepts it
    sentence: str
    effect: str  # what it would do to the alerts


class TaskCatalogue(Service):
    """What the next scoring asks about."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        open_snapshot: Callable[[str], Snapshot],
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__(database, clock)
        self._settings = settings
        self._open_snapshot = open_snapshot

    @requires(Action.MANAGE_TASKS)
    def view(self) -> CatalogueView | None:
        """Return the catalogue; None if nothing was imported yet."""
        with self._database.read() as uow:
            stored = uow.snapshots.latest()
            if stored is None:
                return None
            snapshot = self._open_snapshot(stored.content_hash)
            return CatalogueView(
                task_catalogue(snapshot, stored_settings(uow)),
                stored_reasons(uow),
                tuple(sorted(set(snapshot.instances["unit"].astype(str)) - {""})),
                site_day(snapshot.site_timezone),
            )

    @requires(Action.MANAGE_TASKS)
    def open_checks(self) -> tuple[OpenCheck, ...]:
        """Return the checks of the last import that are not as they should be and not accepted, red ones first."""
        with self._database.read() as uow:
            return tuple(
                OpenCheck(check["name"], check["severity"] == Severity.RED, check["sentence"], check["effect"])
                for check in open_checks(uow)
            )

    @requires(Action.MANAGE_TASKS, all_units=True)
    def switch(
        self,
        task_key: str,
        asked: bool | None,
        reason: str,
        *,
        seen: TaskSetting | None = None,
        actor: str = COMMAND_LINE,
    ) -> bool:
        """Switch a task on or off, or with None to what the import says, and return whether anything changed.

        Its mute stays. `seen` is what the person saw before. Raise NotFoundError if the last import has no such task,
        InvalidInputError if there is no reason, ConflictError if the task is no longer as it was seen.
        """
        return self._change(task_key, replace(self._setting(task_key), asked=asked), reason, seen, actor)

    @requires(Action.MANAGE_TASKS, all_units=True)
    def mute(
        self,
        task_key: str,
        until: date | None,
        units: Sequence[str],
        reason: str,
        *,
        seen: TaskSetting | None = None,
        actor: str = COMMAND_LINE,
    ) -> bool:
        """Mute a task until a last day, in some units or all, or with None end its mute.

        Return whether anything changed. Whether it is asked about stays; `seen` is what the person saw before. Raise
        NotFoundError if the last import has no such task, InvalidInputError if there is no reason, a unit does not
        exist, or the last day has passed, ConflictError if the task is no longer as it was seen.
        """
        view = self.view()
        if until is not None and view is not None and until < view.today:
            raise InvalidInputError(f"Nothing was changed: {until} has passed. Choose a last day from today on.")
        setting = replace(self._setting(task_key), muted_until=until, muted_units=tuple(sorted(units)))
        return self._change(task_key, setting, reason, seen, actor)

    @requires(Action.MANAGE_TASKS, all_units=True)
    def rename(
        self,
        task_key: str,
        name: str,
        reason: str,
        *,
        seen: TaskSetting | None = None,
        actor: str = COMMAND_LINE,
    ) -> bool:
        """Give a task another name from the next import on, "" for the import's own; return whether anything changed.

        Renaming a panel renames its order group. `seen` is what the person saw before. Raise NotFoundError if the last
        import has no such task, InvalidInputError if there is no reason or it cannot have the name, ConflictError if
        the task is no longer as it was seen.
        """
        setting = replace(self._setting(task_key), name=" ".join(name.split()))
        return self._change(task_key, setting, reason, seen, actor)

    @requires(Action.MANAGE_TASKS, all_units=True)
    def group(
        self,
        task_key: str,
        group: str | None,
        reason: str,
        *,
        seen: TaskSetting | None = None,
        actor: str = COMMAND_LINE,
    ) -> bool:
        """Put a lab into an order group from the next import on, "" for none, None for what the import finds.

        Labs of one group are one task. Return whether anything changed; `seen` is what the person saw before. Raise
        NotFoundError if the last import has no such task, InvalidInputError if there is no reason or it cannot be
        grouped, ConflictError if the task is no longer as it was seen.
        """
        setting = replace(self._setting(task_key), group=group if group is None else " ".join(group.split()))
        return self._change(task_key, setting, reason, seen, actor)

    def _setting(self, task_key: str) -> TaskSetting:
        with self._database.read() as uow:
            return stored_settings(uow).get(task_key, TaskSetting())

    def _change(self, task_key: str, setting: TaskSetting, reason: str, seen: TaskSetting | None, actor: str) -> bool:
        if not reason.strip():
            raise InvalidInputError("Nothing was changed: a change takes a reason. Write one, for the audit trail.")
        return bool(
            change_catalogue(
                self._settings,
                self._database,
                {task_key: setting},
                reason,
                seen={} if seen is None else {task_key: seen},
                actor=actor,
                now=self._clock(),
            )
        )
