"""Doubles of triage, saved views and parts of the list, with the rules that a page can meet."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from alertreview.alerts.alert_lists import AlertLists
from alertreview.alerts.models import AlertRow, Timeline, WorklistFilters, WorklistLine
from alertreview.alerts.triage import TriageService
from alertreview.alerts.triage_models import (
    NoteEntry,
    SavedViewEntry,
    SavedViewService,
    TriageDone,
    TriageEntry,
    TriageStatus,
    TriageStory,
)
from alertreview.rights import Service
from core.errors import ConflictError, NotFoundError, RefusedError
from core.vocabulary import Decision, TriageState
from tests.dashboard.doubles.sign_in import guarded_as

if TYPE_CHECKING:
    from tests.dashboard.doubles.application import FakeApplication


@guarded_as(TriageService)
@dataclass
class FakeTriage(Service):
    """Triage held in memory."""

    clock: Callable[[], datetime]
    acts: dict[int, list[TriageEntry]] = field(default_factory=dict)
    forms: dict[str, list[int]] = field(default_factory=dict)
    said: dict[int, list[NoteEntry]] = field(default_factory=dict)
    fail_with: list[BaseException] = field(default_factory=list)

    def status(self, alert_id: int) -> TriageStatus:
        last = self.acts[alert_id][-1] if self.acts.get(alert_id) else None
        return TriageStatus() if last is None else TriageStatus(last.state, last.version, last.snoozed_until)

    def moved_by_others(self, since: datetime, filters: WorklistFilters) -> dict[TriageState, int]:
        del filters
        last = [acts[-1] for acts in self.acts.values()]
        return Counter(act.state for act in last if act.acted_at >= since)

    def act(
        self,
        person_id: int,
        targets: Mapping[int, int],
        state: TriageState,
        *,
        form_key: str,
        reason: str = "",
        snooze_hours: float | None = None,
    ) -> TriageDone:
        if self.fail_with:
            raise self.fail_with.pop()
        if state is TriageState.DISMISSED and not reason:
            raise RefusedError("Dismissing needs a reason.")
        if form_key not in self.forms:
            if any(self.status(alert_id).version != seen for alert_id, seen in targets.items()):
                raise ConflictError("Changed meanwhile: somebody was faster. Nothing was done.")
            until = self.clock() + timedelta(hours=snooze_hours) if snooze_hours else None
            for alert_id in targets:
                self.move(alert_id, state, until, reason, f"person {person_id}")
            self.forms[form_key] = list(targets)
        return TriageDone(form_key, state, len(self.forms[form_key]), 0, 0, self.clock())

    def move(
        self, alert_id: int, state: TriageState, until: datetime | None = None, reason: str = "", person: str = "other"
    ) -> None:
        former = self.status(alert_id)
        entry = TriageEntry(person, self.clock(), former.state, state, until, reason, former.version + 1)
        self.acts.setdefault(alert_id, []).append(entry)

    def undo(self, person_id: int, form_key: str) -> TriageDone:
        ids = self.forms.get(form_key, [])
        for alert_id in ids:
            self.move(alert_id, self.acts[alert_id][-1].former_state, None, "taken back", f"person {person_id}")
        return TriageDone(f"undo {form_key}", None, len(ids), 0, 0, self.clock())

    def add_note(self, person_id: int, alert_id: int, text: str, *, form_key: str) -> None:
        if not text.strip():
            raise RefusedError("The note is empty.")
        self.said.setdefault(alert_id, []).append(NoteEntry(f"person {person_id}", self.clock(), text))

    def story(self, alert_id: int, person_id: int | None = None) -> TriageStory:
        acts = tuple(reversed(self.acts.get(alert_id, [])))
        return TriageStory(self.status(alert_id), acts, tuple(self.said.get(alert_id, [])))


@guarded_as(SavedViewService)
@dataclass
class FakeViews(Service):
    """Saved views held in memory."""

    views: dict[tuple[int, str], SavedViewEntry] = field(default_factory=dict)

    def offered_to(self, person_id: int) -> tuple[SavedViewEntry, ...]:
        return tuple(
            replace(view, is_mine=owner == person_id)
            for (owner, _), view in self.views.items()
            if owner == person_id or view.is_shared
        )

    def save(
        self, person_id: int, name: str, address: dict[str, str], *, shared: bool = False, replace: bool = False
    ) -> None:
        if not name.strip():
            raise RefusedError("The view has no name.")
        if (person_id, name) in self.views and not replace:
            raise ConflictError(f"You have a view named '{name}'.")
        self.views[person_id, name] = SavedViewEntry(name, f"person {person_id}", True, shared, dict(address))

    def delete(self, person_id: int, name: str) -> None:
        if self.views.pop((person_id, name), None) is None:
            raise NotFoundError("You have no view of this name.")


@guarded_as(AlertLists)
@dataclass
class FakeLists(Service):
    """Parts of the double's list."""

    app: "FakeApplication"

    def line(self, alert_id: int, filters: WorklistFilters) -> WorklistLine:
        row = next((row for row in self.app.rows() if row.alert_id == alert_id), None)
        if row is None:
            raise NotFoundError(f"There is no alert {alert_id} here.")
        return WorklistLine((row,), row.decision_words)

    def targets(self, filters: WorklistFilters) -> dict[int, int]:
        return {row.alert_id: row.triage.version for row in self.app.within(filters)}

    def units(self, filters: WorklistFilters) -> tuple[tuple[str, int, int], ...]:
        counts: dict[str, list[AlertRow]] = {}
        for row in self.app.within(filters):
            counts.setdefault(row.unit, []).append(row)
        return tuple(
            (unit, *(sum(row.decision is decision for row in rows) for decision in Decision))  # type: ignore[misc]
            for unit, rows in sorted(counts.items(), key=lambda item: -len(item[1]))
        )

    def past_instance(self, alert_id: int, position: int, person_id: int | None = None) -> Timeline:
        return self.app.worklist.alert(alert_id).patient.timeline

    def expected_rate(self, filters: WorklistFilters) -> None:
        return None
