"""A double of the task catalogue over tasks held in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from alertreview.records.catalogue import CatalogueEntry, TaskSetting, apply_setting
from alertreview.rights import Service
from alertreview.scoring.task_catalogue import CatalogueView, OpenCheck, TaskCatalogue
from core.errors import ConflictError, InvalidInputError
from core.kinds import Kind
from tests.dashboard.doubles.records import HOSTILE, UNITS
from tests.dashboard.doubles.sign_in import guarded_as

if TYPE_CHECKING:
    from tests.dashboard.doubles.application import FakeApplication

TODAY = date(2026, 11, 27)
PANEL = "LAB_ORDER/panel:basic-metabolic-panel"


def _entry(column: int, key: str, name: str, off: str = "", members: tuple[str, ...] = ()) -> CatalogueEntry:
    kind = Kind(key.split("/")[0])
    group = "Basic metabolic panel" if name == "Sodium" or members else ""
    return CatalogueEntry(column, key, name, kind, group, 120 * (column + 1), 2400, members, name, off)


@guarded_as(TaskCatalogue)
@dataclass
class FakeCatalogue(Service):
    """Five tasks: a member and its panel, a lab, a note on a specimen, a drug."""

    app: "FakeApplication"
    settings: dict[str, TaskSetting] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    changes: list[tuple[str, TaskSetting, str, str]] = field(default_factory=list)
    checks: tuple[OpenCheck, ...] = ()

    def open_checks(self) -> tuple[OpenCheck, ...]:
        return self.checks

    def view(self) -> CatalogueView | None:
        if not self.app.published:
            return None
        unit = HOSTILE if self.app.hostile else ""
        entries = (
            _entry(0, "LAB_ORDER/Sodium", "Sodium", "It is asked about as part of Basic metabolic panel."),
            _entry(1, "LAB_ORDER/Lipase", HOSTILE if self.app.hostile else "Lipase"),
            _entry(2, "LAB_ORDER/Blue Top Hold", "Blue Top Hold", "It is a note on the specimen."),
            _entry(3, "MEDICATION/heparin", "Heparin"),
            _entry(4, PANEL, "Basic metabolic panel", members=("LAB_ORDER/Sodium",)),
            *(_entry(5 + i, f"LAB_ORDER/{i}", f"Lab {i}") for i in range(self.app.n_more_tasks)),
        )
        decided = tuple(apply_setting(entry, self.settings.get(entry.task_key)) for entry in entries)
        return CatalogueView(decided, dict(self.reasons), (*UNITS, *([unit] if unit else [])), TODAY)

    def switch(
        self,
        task_key: str,
        asked: bool | None,
        reason: str,
        *,
        seen: TaskSetting | None = None,
        actor: str = "command line",
    ) -> bool:
        return self._change(task_key, replace(self._setting(task_key), asked=asked), reason, seen, actor)

    def mute(
        self,
        task_key: str,
        until: date | None,
        units: Sequence[str],
        reason: str,
        *,
        seen: TaskSetting | None = None,
        actor: str = "command line",
    ) -> bool:
        new = replace(self._setting(task_key), muted_until=until, muted_units=tuple(units))
        return self._change(task_key, new, reason, seen, actor)

    def rename(
        self,
        task_key: str,
        name: str,
        reason: str,
        *,
        seen: TaskSetting | None = None,
        actor: str = "command line",
    ) -> bool:
        return self._change(task_key, replace(self._setting(task_key), name=name), reason, seen, actor)

    def group(
        self,
        task_key: str,
        group: str | None,
        reason: str,
        *,
        seen: TaskSetting | None = None,
        actor: str = "command line",
    ) -> bool:
        return self._change(task_key, replace(self._setting(task_key), group=group), reason, seen, actor)

    def _setting(self, task_key: str) -> TaskSetting:
        return self.settings.get(task_key, TaskSetting())

    def _change(self, task_key: str, setting: TaskSetting, reason: str, seen: TaskSetting | None, actor: str) -> bool:
        if seen not in {None, self._setting(task_key)}:
            raise ConflictError(f"Nothing was changed: somebody else has changed {task_key} since you looked.")
        if not reason.strip():
            raise InvalidInputError("Nothing was changed: a change takes a reason. Write one, for the audit trail.")
        if setting == self._setting(task_key):
            return False
        self.settings[task_key], self.reasons[task_key] = setting, reason
        self.changes.append((task_key, setting, reason, actor))
        return True
