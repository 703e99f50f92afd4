"""The task catalogue of a site: tasks and panels of an import, which are asked about, and what people changed in that.

A change is a row of the audit trail; the last one of a task counts, for this import and for later ones. Switches and
mutes hold from the next scoring on; names and groups from the next import on, which makes its tasks of them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from alertreview.records.snapshots import Snapshot, open_import
from alertreview.settings import Settings
from core.cohort.catalogue import PANEL, members_of, panel_key
from core.errors import ConflictError, InvalidInputError, NotFoundError
from core.events.mapping import SiteMapping, parse_mapping
from core.events.spelling import tidy
from core.events.yaml_text import DoubledKeyError, UniqueLoader
from core.kinds import Kind, task_of
from db.database import Database
from db.unit_of_work import UnitOfWork

WHERE = "The task catalogue says what is asked about (alertreview tasks list)."
CHANGED = "task catalogue changed"
_PARAMETER = "task_catalogue"
_AT_MOST = 1_000_000
_INFORMATION = ("kind", "decisions", "share", "members", "why_not")
_CHANGEABLE = ("task", "group", "asked", "muted_until", "muted_units")
_DEFAULT = "default"
_LONGEST = 120


@dataclass(frozen=True)
class TaskSetting:
    """What people decided about a task."""

    asked: bool | None = None  # whether it is asked about; None for the default of the import
    muted_until: date | None = None  # last day on which no alert of the task is listed
    muted_units: tuple[str, ...] = ()  # care units in which it is muted; empty for all
    name: str = ""  # its name; empty for that of the import
    group: str | None = None  # its order group, "" for none; None for what the import finds

    def mute_words(self, today: date) -> str:
        """Return where and until when the task is muted; empty if it is not."""
        until = self.muted_until
        if until is None or today > until:
            return ""
        return f"{', '.join(self.muted_units) or 'all units'}, to the end of {until.day} {until:%b %Y}"

    def as_json(self) -> dict[str, Any]:
        """Return plain values for the audit trail; name and group only where people decided on them."""
        values = {**asdict(self), "muted_until": self.muted_until and self.muted_until.isoformat()}
        of_import = {"name": "", "group": None}
        return {key: value for key, value in values.items() if key not in of_import or value != of_import[key]}

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> "TaskSetting":
        """Return the setting that `as_json` wrote."""
        until = values["muted_until"]
        units, name = tuple(values["muted_units"]), values.get("name", "")
        return cls(values["asked"], until and date.fromisoformat(until), units, name, values.get("group"))


@dataclass(frozen=True)
class CatalogueEntry:
    """A task of an import."""

    column: int  # its column in the decisions of the snapshot
    task_key: str
    name: str
    kind: Kind
    order_group: str
    n_positive: int  # instances with the decision
    n_instances: int
    members: tuple[str, ...]  # task keys of what a panel brings, the commonest first; empty for a single task
    item: str  # name of what the features are of: for a panel, its commonest member
    off: str  # why it is not asked about, as a sentence; empty if it is
    setting: TaskSetting = TaskSetting()  # what people decided

    @property
    def rate(self) -> float:
        """Share of instances with the decision, in [0, 1]."""
        return self.n_positive / self.n_instances

    @property
    def left_out(self) -> str:
        """Why a scoring leaves it out; empty if it does not."""
        return f"Task '{self.name}' is not asked about. {self.off} {WHERE}" if self.off else ""

    @property
    def next_name(self) -> str:
        """Its name from the next import on."""
        return self.setting.name or self.name

    @property
    def next_group(self) -> str:
        """Its order group from the next import on, as far as people decided."""
        return self.order_group if self.setting.group is None else self.setting.group

    def muted_units(self, today: date) -> tuple[str, ...] | None:
        """Return the units in which no alert of it is listed, empty for all; None if it is not muted."""
        until = self.setting.muted_until
        return self.setting.muted_units if until is not None and today <= until else None


def task_catalogue(snapshot: Snapshot, settings: Mapping[str, TaskSetting]) -> tuple[CatalogueEntry, ...]:
    """Return the tasks of an import in column order, with what people decided by task key."""
    rows = snapshot.tasks.to_dict("records")
    names = {str(row["task_key"]): str(row["name"]) for row in rows}
    entries = []
    for column, row in enumerate(rows):
        members = members_of(str(row.get("members", "")))
        entry = CatalogueEntry(
            column=column,
            task_key=str(row["task_key"]),
            name=str(row["name"]),
            kind=Kind(row["kind"]),
            order_group=str(row["order_group"]),
            n_positive=int(row["n_positive"]),
            n_instances=len(snapshot.instances),
            members=members,
            item=names[members[0]] if members else str(row["name"]),
            off=str(row.get("off", "")),
        )
        entries.append(apply_setting(entry, settings.get(entry.task_key)))
    return tuple(entries)


def apply_setting(entry: CatalogueEntry, setting: TaskSetting | None) -> CatalogueEntry:
    """Return a task as people decided about it; as it is if nobody did."""
    if setting is None:
        return entry
    off = {None: entry.off, True: "", False: "It was switched off."}[setting.asked]
    return replace(entry, off=off, setting=setting)


def edited_mapping(site: SiteMapping, settings: Mapping[str, TaskSetting], n_decisions: int) -> SiteMapping:
    """Return a site mapping with the names and order groups that people decided on, before those of its own.

    The number of decisions becomes a part of its title, so that records whose name was changed there and back are
    another import than the first.
    """
    if not n_decisions:
        return site
    # A panel has the name of its group.
    items = {task_of(key)[1]: setting.name for key, setting in settings.items() if setting.name}
    names = {item: name for item, name in items.items() if not item.startswith(PANEL)}
    grouped = {key: setting.group for key, setting in settings.items() if setting.group is not None}
    groups = {name: [key for key in keys if key not in grouped] for name, keys in site.order_groups.items()}
    for key, group in sorted(grouped.items()):
        groups.setdefault(group, []).append(key)
    edits = {
        "title": f"{site.title} ({n_decisions} names and groups of the task catalogue)",
        "names": {**site.names, **names},
        "order_groups": groups,
    }
    return parse_mapping({**site.model_dump(), **edits}, f"mapping {site.name}")


def stored_edit(uow: UnitOfWork) -> Callable[[SiteMapping], SiteMapping]:
    """Return `edited_mapping` with what people decided about names and groups."""
    decisions = [json.loads(event.details) for event in uow.audit.latest(_AT_MOST, action=CHANGED)]
    n = sum(each["before"].get(key) != each["after"].get(key) for each in decisions for key in ("name", "group"))
    return partial(edited_mapping, settings=stored_settings(uow), n_decisions=n)


def stored_settings(uow: UnitOfWork) -> dict[str, TaskSetting]:
    """Return what people decided, by task key."""
    settings: dict[str, TaskSetting] = {}
    for event in reversed(uow.audit.latest(_AT_MOST, action=CHANGED)):
        details = json.loads(event.details)
        settings[details["task_key"]] = TaskSetting.of_json(details["after"])
    return settings


def stored_reasons(uow: UnitOfWork) -> dict[str, str]:
    """Return the reason of the last change, by task key."""
    events = (json.loads(event.details) for event in reversed(uow.audit.latest(_AT_MOST, action=CHANGED)))
    return {details["task_key"]: details["reason"] for details in events}


def current_catalogue(settings: Settings, database: Database) -> tuple[CatalogueEntry, ...]:
    """Return the catalogue of the last import; raise NotFoundError if nothing was imported yet."""
    with database.read() as uow:
        stored = uow.snapshots.latest()
        if stored is None:
            raise NotFoundError("There are no tasks yet: import health records first (alertreview import SOURCE).")
        return task_catalogue(open_import(settings, uow, stored.folder), stored_settings(uow))


def site_day(timezone: str) -> date:
    """Return which day it is in the zone of a site."""
    return datetime.now(ZoneInfo(timezone)).date()


def reasons_left_out(entries: Sequence[CatalogueEntry]) -> dict[int, str]:
    """Return why tasks are not asked about, by column."""
    return {entry.column: entry.left_out for entry in entries if entry.off}


def run_parameters(entries: Sequence[CatalogueEntry], today: date) -> dict[str, str]:
    """Return what a run keeps of its catalogue: a digest of what is left out or muted, where anything is."""
    said = [(entry.task_key, bool(entry.off), entry.muted_units(today)) for entry in entries]
    said = [each for each in said if each[1] or each[2] is not None]
    return {_PARAMETER: hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]} if said else {}


def other_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a run without what it keeps of its catalogue."""
    return {name: value for name, value in parameters.items() if name != _PARAMETER}


def change_catalogue(
    settings: Settings,
    database: Database,
    changes: Mapping[str, TaskSetting],
    reason: str,
    *,
    seen: Mapping[str, TaskSetting] = MappingProxyType({}),
    actor: str,
    now: datetime,
) -> tuple[str, ...]:
    """Decide about tasks of the last import, all or nothing, with a row of the audit trail for each that changes.

    Return the names of those that changed, members of a renamed panel and tasks of a group that another joined among
    them; `seen` is what the person saw before. Raise NotFoundError if there is no such task, InvalidInputError if there
    is no reason, a unit does not exist, units are muted without a last day, or a name or group cannot be, ConflictError
    if a task is no longer as it was seen.
    """
    entries = {entry.task_key: entry for entry in current_catalogue(settings, database)}
    units = _units(settings, database) if any(setting.muted_units for setting in changes.values()) else set()
    for key, setting in changes.items():
        if key not in entries:
            raise NotFoundError(f"The last import has no task {key!r}. alertreview tasks list prints the keys.")
        if setting.muted_units and setting.muted_until is None:
            raise InvalidInputError(f"Task {key!r}: muted_units needs muted_until, the last day of the mute.")
        if unknown := sorted(set(setting.muted_units) - units):
            known_units = ", ".join(sorted(units)) or "none"
            raise InvalidInputError(
                f"Task {key!r}: {unknown[0]!r} is not a care unit of the last import ({known_units})."
            )
        _refuse_name_or_group(entries, key, setting)
    with database.write() as uow:
        known = stored_settings(uow)
        for key, setting in seen.items():
            if known.get(key, TaskSetting()) != setting:
                raise ConflictError(
                    f"Nothing was changed: somebody else has changed {entries[key].name} since you looked. "
                    "See how it is now, then save again."
                )
        wanted = _with_followers(changes, entries, known)
        changed = {key: after for key, after in wanted.items() if known.get(key, TaskSetting()) != after}
        if changed and not reason.strip():
            raise InvalidInputError("Changing the task catalogue needs a reason. Give it with --reason.")
        for key, after in changed.items():
            before = known.get(key, TaskSetting()).as_json()
            details = {"task_key": key, "before": before, "after": after.as_json(), "reason": reason.strip()}
            uow.audit.append(now, actor, CHANGED, f"task {key}", details)
        uow.commit()
    return tuple(entries[key].name for key in changed if key in entries)


def _refuse_name_or_group(entries: Mapping[str, CatalogueEntry], key: str, setting: TaskSetting) -> None:
    """Raise InvalidInputError for a name or group that is new and cannot be."""
    entry = entries[key]
    before = entry.setting
    name = setting.name if setting.name != before.name else ""
    group = setting.group if setting.group != before.group else None
    for said in filter(None, (name, group)):
        if said != tidy(said) or len(said) > _LONGEST or not any(each.isalpha() for each in said):
            raise InvalidInputError(
                f"Task {key!r}: {said[:_LONGEST]!r} is not a name: a name has a letter, at most {_LONGEST} characters, "
                "and no blanks around it. Choose another."
            )
    if name and entry.kind is Kind.LABEL:
        raise InvalidInputError(f"Task {key!r} is named by its label file. Rename the file.")
    if name and any(
        name.casefold() == other.next_name.casefold() for other in entries.values() if other.task_key != key
    ):
        raise InvalidInputError(f"Task {key!r}: another task is called {name!r} already. Choose another name.")
    if group is not None and (entry.members or entry.kind is not Kind.LAB_ORDER):
        raise InvalidInputError(f"Task {key!r}: only single labs are grouped; each drug is a separate decision.")


def _with_followers(
    changes: Mapping[str, TaskSetting], entries: Mapping[str, CatalogueEntry], known: Mapping[str, TaskSetting]
) -> dict[str, TaskSetting]:
    """Return changes and what follows from them: a group is what its members say, and a panel is a group."""
    out = dict(changes)

    def put(keys: Iterable[str], group: str) -> None:
        for each in keys:
            if each in changes and changes[each].group != known.get(each, TaskSetting()).group:
                continue
            out[each] = replace(out.get(each, known.get(each, TaskSetting())), group=group)

    panels = [entry for entry in entries.values() if entry.members]
    labs = [entry for entry in entries.values() if entry.kind is Kind.LAB_ORDER and not entry.members]
    for key, setting in changes.items():
        entry, before = entries[key], known.get(key, TaskSetting())
        if entry.members and setting.name != before.name:
            name = setting.name or entry.name
            put(entry.members, name)
            # The key of a panel is made of its name: what was decided about it goes with it.
            if panel_key(name) != key:
                out[panel_key(name)] = replace(setting, name="")
        if setting.group and setting.group != before.group:
            named = {member for panel in panels if panel.name == setting.group for member in panel.members}
            joined = [lab for lab in labs if lab.task_key in named or lab.order_group == setting.group]
            put([lab.task_key for lab in joined if lab.setting.group is None], setting.group)
    return out


def _units(settings: Settings, database: Database) -> set[str]:
    with database.read() as uow:
        stored = uow.snapshots.latest()
        folder = stored.folder if stored is not None else ""
        return set(open_import(settings, uow, folder).instances["unit"].astype(str)) - {""}


def catalogue_text(entries: Sequence[CatalogueEntry]) -> str:
    """Write a catalogue as YAML, for `read_catalogue` to read once it was edited."""
    head = (
        "# Task catalogue. Change asked (true, false, default), muted_until (a day), muted_units, task (the name,\n"
        "# or default) and group (labs of one group are one task; '' for none, or default), then:\n"
        "#   alertreview tasks apply FILE --reason WHY\n"
        "# Names and groups hold from the next import on, everything else from the next scoring on.\n"
    )
    content = {
        entry.task_key: {
            "task": entry.next_name,
            "kind": entry.kind.value,
            "decisions": entry.n_positive,
            "share": round(entry.rate, 4),
            "members": list(entry.members),
            "group": entry.next_group,
            "why_not": entry.off,
            "asked": "default" if entry.setting.asked is None else entry.setting.asked,
            "muted_until": entry.setting.muted_until,
            "muted_units": list(entry.setting.muted_units),
        }
        for entry in entries
    }
    return head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


def read_catalogue(path: Path, entries: Sequence[CatalogueEntry]) -> dict[str, TaskSetting]:
    """Read an edited catalogue; tasks that it does not name stay as they are.

    Raise InvalidInputError, naming file, task, key and value, if it cannot be read, or says something that it cannot.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8-sig"), UniqueLoader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror}). Name a task catalogue.") from None
    except DoubledKeyError as error:
        raise InvalidInputError(f"{path}, {error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise InvalidInputError(f"{path}: is not YAML in UTF-8. Correct the file.") from None
    if not isinstance(content, dict):
        raise InvalidInputError(f"{path}: names no task. Write one with alertreview tasks export --out {path}.")
    known = {entry.task_key: entry for entry in entries}
    exported = yaml.safe_load(catalogue_text(entries)) or {}
    return {
        str(key): _setting(f"{path}, task {key!r}", values, known.get(str(key)), exported.get(str(key), {}))
        for key, values in content.items()
    }


def _setting(where: str, values: object, entry: CatalogueEntry | None, exported: Mapping[str, object]) -> TaskSetting:
    if entry is None:
        raise InvalidInputError(f"{where}: the last import has no such task. alertreview tasks list prints the keys.")
    if not isinstance(values, dict):
        raise InvalidInputError(f"{where} = {values!r}: expected keys such as asked. Correct the file.")
    for key, value in values.items():
        if key not in (*_INFORMATION, *_CHANGEABLE):
            raise InvalidInputError(
                f"{where}: {key!r} is not a key of a catalogue; {', '.join(_CHANGEABLE)} are changed."
            )
        if key in ("members", "kind") and value != exported[key]:
            raise InvalidInputError(f"{where}: {key} = {value!r} cannot be changed; labs join a panel by their group.")
        if key in ("task", "group") and not isinstance(value, str):
            raise InvalidInputError(f"{where}: {key} = {value!r}; expected a text.")
    asked = values.get("asked", "default" if entry.setting.asked is None else entry.setting.asked)
    if asked not in (True, False, "default"):
        raise InvalidInputError(f"{where}: asked = {asked!r}; expected true, false or default.")
    until = values.get("muted_until", entry.setting.muted_until)
    if isinstance(until, datetime) or not isinstance(until, date | None):
        raise InvalidInputError(f"{where}: muted_until = {until!r}; expected a day such as 2026-12-31, or nothing.")
    units = values.get("muted_units", entry.setting.muted_units)
    if not isinstance(units, list | tuple) or not all(isinstance(unit, str) for unit in units):
        raise InvalidInputError(f"{where}: muted_units = {units!r}; expected a list of care units.")
    name, group = entry.setting.name, entry.setting.group
    if values.get("task", exported["task"]) != exported["task"]:
        name = "" if values["task"] == _DEFAULT else values["task"]
    if values.get("group", exported["group"]) != exported["group"]:
        group = None if values["group"] == _DEFAULT else values["group"]
    return TaskSetting(None if asked == _DEFAULT else bool(asked), until, tuple(units), name, group)
