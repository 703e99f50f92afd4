"""Triage of alerts: what the ward did with them, by whom and why; never a label, and nothing is ever overwritten."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from alertreview.alerts.filters import refuse_withheld
from alertreview.alerts.lines import find_run, triage_status
from alertreview.alerts.models import WorklistFilters
from alertreview.alerts.triage_models import NoteEntry, TriageDone, TriageEntry, TriageStory
from alertreview.rights import Action, Service, requires
from core.errors import ConflictError, InvalidInputError, RefusedError, StoreError
from core.vocabulary import AlertId, PersonId, TriageState
from db.models import DecisionKey, SignedAct, Triage, TriageAct, TriageNote
from db.unit_of_work import UnitOfWork

MOST_AT_ONCE = 1_000
"""Alerts in one act."""
LONGEST_REASON = 500
LONGEST_NOTE = 4_000
LONGEST_SNOOZE = timedelta(days=90)
STATE_WORDS = {
    TriageState.NEW: "new",
    TriageState.IN_REVIEW: "in review",
    TriageState.ACTIONED: "actioned",
    TriageState.DISMISSED: "dismissed",
    TriageState.SNOOZED: "snoozed",
}


@dataclass(frozen=True)
class Wanted:
    """Where an act shall lead."""

    state: TriageState
    reason: str
    snoozed_until: datetime | None


class TriageService(Service):
    """Moves alerts between triage states, and keeps what was said about them.

    Triage belongs to patient, instance time and task: it follows the decision into every later run and import.
    """

    @requires(Action.TRIAGE, unit_of="targets")
    def act(
        self,
        person_id: PersonId,
        targets: Mapping[AlertId, int],
        state: TriageState,
        *,
        form_key: str,
        reason: str = "",
        snooze_hours: float | None = None,
    ) -> TriageDone:
        """Move alerts to a state: all of them or none.

        `targets` holds the version of each alert's status that was on the screen; alerts that stand at the state
        already are left alone. The state "new" opens again what was closed. The same `form_key` twice is one act. To
        dismiss needs a reason, to snooze hours in (0, 2160]. Raise ConflictError if somebody has moved one of the
        alerts since it was shown, RefusedError if a reason or an end is missing or nothing would change,
        InvalidInputError if there are too many alerts or a text is too long, NotFoundError if one of the alerts does
        not exist.
        """
        now = self._clock()
        wanted = _check(state, reason, snooze_hours, now)
        if not 1 <= len(targets) <= MOST_AT_ONCE:
            raise InvalidInputError(
                f"{len(targets):,} alerts were chosen; one act takes 1 to {MOST_AT_ONCE:,}. Narrow the filters."
            )
        with self._database.write() as uow:
            if not uow.triage.of_form(form_key):
                acts = _acts(uow, targets, wanted, person_id, form_key, now)
                uow.triage.append(acts)
                uow.audit.append(now, f"person {person_id}", "triage saved", _thing(targets), _audited(acts, targets))
                uow.commit()
        return self._read_back(form_key, state, len(targets))

    @requires(Action.TRIAGE)
    def undo(self, person_id: PersonId, form_key: str) -> TriageDone:
        """Take an act of one's own back; what somebody has moved on since stays as it is.

        Raise RefusedError if there is no such act of this person, or all of it was moved on since.
        """
        now = self._clock()
        undo_key = f"undo {form_key}"
        with self._database.write() as uow:
            done = [act for act in uow.triage.of_form(form_key) if act.person_id == person_id]
            if not done:
                raise RefusedError("You have nothing to undo. Open the alert to see what happened to it.")
            if not uow.triage.of_form(undo_key):
                acts = _undoing(uow, done, undo_key, now)
                if not acts:
                    raise RefusedError("Others have changed all of it meanwhile, so nothing was undone.")
                uow.triage.append(acts)
                details = {"n_alerts": len(acts), "after": "as before"}
                uow.audit.append(now, f"person {person_id}", "triage undone", f"triage act {done[0].id}", details)
                uow.commit()
        return self._read_back(undo_key, None, len(done))

    @requires(Action.TRIAGE, unit_of="alert_id")
    def add_note(self, person_id: PersonId, alert_id: AlertId, text: str, *, form_key: str) -> None:
        """Add a note for everybody who can open the alert; the same form twice is one note.

        Raise RefusedError if there is no text, InvalidInputError if it is too long.
        """
        text = text.strip()
        if not text:
            raise RefusedError("The note is empty. Type something, then add it.")
        _check_text(text, "note", LONGEST_NOTE)
        now = self._clock()
        with self._database.write() as uow:
            key = _key(uow, alert_id)
            if uow.triage.note_of_form(form_key) is not None:
                return
            uow.triage.add_note(
                TriageNote(**key._asdict(), text=text, person_id=person_id, written_at=now, form_key=form_key)
            )
            uow.audit.append(now, f"person {person_id}", "note added", f"alert {alert_id}", {"characters": len(text)})
            uow.commit()
        with self._database.read() as uow:
            if uow.triage.note_of_form(form_key) is None:
                raise StoreError("The note is not in the database after saving. It is NOT saved; please try again.")

    @requires(Action.SEE_ALERTS, unit_of="alert_id")
    def story(self, alert_id: AlertId, person_id: PersonId | None = None) -> TriageStory:
        """Return everything the ward has done with and said about the decision of an alert.

        Raise NotFoundError if there is no such alert, RefusedError if the person has still to judge the decision: what
        others thought of it must not be known before.
        """
        with self._database.read() as uow:
            key = _key(uow, alert_id)
            if person_id is not None:
                refuse_withheld(uow, uow.alerts.get(alert_id), person_id)
            zone = ZoneInfo(uow.triage.site_timezone(key))
            status = triage_status(uow.triage.status([key]).get(key), self._clock(), zone)
            return TriageStory(
                status=status,
                acts=tuple(_entry(act, zone) for act in uow.triage.history(key)),
                notes=tuple(
                    NoteEntry(note.person_name, note.written_at.astimezone(zone), note.text)
                    for note in uow.triage.notes(key)
                ),
            )

    @requires(Action.SEE_ALERTS)
    def moved_by_others(self, since: datetime, filters: WorklistFilters) -> dict[TriageState, int]:
        """Count the decisions of the run's import whose state others changed since a moment, by where they stand.

        Those that the reader of the filters has still to judge blindly are left out.
        """
        with self._database.read() as uow:
            run = find_run(uow, filters.run_id)
            if run is None:
                return {}
            awaited = uow.cases.awaited_of(filters.reader) if filters.reader is not None else set()
            acts = uow.triage.of_moved(run.snapshot_id, since, filters.within)
        histories: dict[DecisionKey, list[SignedAct]] = {}
        for act in acts:
            histories.setdefault(act.key, []).append(act)
        return Counter(
            history[-1].state
            for key, history in histories.items()
            if key not in awaited and history[-1].person_id != filters.reader and _has_moved(history, since)
        )

    def _read_back(self, form_key: str, state: TriageState | None, n_wanted: int) -> TriageDone:
        """Read back after the commit, in a separate transaction, what the database holds."""
        with self._database.read() as uow:
            acts = uow.triage.of_form(form_key)
            if not acts:
                raise StoreError("The triage is not in the database after saving. It is NOT saved; please try again.")
            zone = ZoneInfo(uow.triage.site_timezone(acts[0].key))
        left = n_wanted - len(acts)
        return TriageDone(
            form_key=form_key,
            state=state,
            n_done=len(acts),
            n_already=left if state is not None else 0,
            n_changed_meanwhile=left if state is None else 0,
            done_at=acts[0].acted_at.astimezone(zone),
        )


def _check(state: TriageState, reason: str, snooze_hours: float | None, now: datetime) -> Wanted:
    reason = " ".join(reason.split())
    _check_text(reason, "reason", LONGEST_REASON)
    if state is TriageState.DISMISSED and not reason:
        raise RefusedError("Dismissing needs a reason. Choose or type one, then dismiss.")
    if state is not TriageState.SNOOZED:
        return Wanted(state, reason, None)
    if snooze_hours is None or not 0 < snooze_hours <= LONGEST_SNOOZE / timedelta(hours=1):
        raise RefusedError(f"A snooze ends after more than 0 h and at most {LONGEST_SNOOZE.days} days. Choose an end.")
    return Wanted(state, reason, now + timedelta(hours=snooze_hours))


def _check_text(text: str, what: str, longest: int) -> None:
    if "\0" in text:
        raise InvalidInputError(f"The {what} contains a null character. Type it again.")
    if len(text) > longest:
        raise InvalidInputError(f"The {what} has {len(text):,} characters; at most {longest:,} are kept. Shorten it.")


def _acts(
    uow: UnitOfWork, targets: Mapping[AlertId, int], wanted: Wanted, person_id: PersonId, form_key: str, now: datetime
) -> list[TriageAct]:
    keys = uow.alerts.keys(list(targets))
    status = uow.triage.status(list(keys.values()))
    changed = [
        keys[alert_id]
        for alert_id, version_seen in targets.items()
        if (row := status.get(keys[alert_id])) and row.version != version_seen
    ]
    if changed:
        raise ConflictError(_changed_words(uow, changed, len(targets)))
    acts = [
        _act(key, status.get(key), wanted, person_id, form_key, now)
        for key in dict.fromkeys(keys.values())
        if _moves(status.get(key), wanted.state)
    ]
    if not acts:
        subject = "It is" if len(targets) == 1 else "All are"
        raise RefusedError(f"Nothing changes: {subject.lower()} {STATE_WORDS[wanted.state]} already.")
    return acts


def _moves(row: Triage | None, state: TriageState) -> bool:
    """Whether a state is another one than where a decision stands; a snooze can always be given another end."""
    return state is TriageState.SNOOZED or state is not (row.state if row else TriageState.NEW)


def _act(
    key: DecisionKey, row: Triage | None, wanted: Wanted, person_id: PersonId, form_key: str, now: datetime
) -> TriageAct:
    return TriageAct(
        **key._asdict(),
        version=row.version + 1 if row else 1,
        former_state=row.state if row else TriageState.NEW,
        state=wanted.state,
        snoozed_until=wanted.snoozed_until,
        reason=wanted.reason,
        person_id=person_id,
        acted_at=now,
        form_key=form_key,
    )


def _undoing(uow: UnitOfWork, done: Sequence[SignedAct], form_key: str, now: datetime) -> list[TriageAct]:
    """Make the acts that lead back to where the decisions stood, for those that nobody has moved on since."""
    status = uow.triage.status([act.key for act in done])
    acts = []
    for act in done:
        row = status[act.key]
        if row.version != act.version:
            continue
        earlier = uow.triage.history(act.key) if act.version > 1 else []
        former = next((one for one in earlier if one.version == act.version - 1), None)
        back = Wanted(act.former_state, "taken back", former.snoozed_until if former else None)
        acts.append(_act(act.key, row, back, act.person_id, form_key, now))
    return acts


def _changed_words(uow: UnitOfWork, changed: Sequence[DecisionKey], n_targets: int) -> str:
    """Say who was faster."""
    last = uow.triage.history(changed[0])[0]
    zone = ZoneInfo(uow.triage.site_timezone(changed[0]))
    who = f"{last.person_name} set it to '{STATE_WORDS[last.state]}' at {last.acted_at.astimezone(zone):%H:%M}"
    if n_targets == 1:
        return f"Changed meanwhile: {who}. Nothing was done; look at it again and choose."
    return (
        f"{len(changed):,} of the {n_targets:,} alerts changed meanwhile (one of them: {who}). "
        "Nothing was done; look at the list again and choose."
    )


def _has_moved(history: Sequence[SignedAct], since: datetime) -> bool:
    """Return whether a decision stands elsewhere than at a moment: what was taken back again has not moved."""
    return history[-1].state is not next(act.former_state for act in history if act.acted_at >= since)


def _key(uow: UnitOfWork, alert_id: AlertId) -> DecisionKey:
    return uow.alerts.keys([alert_id])[alert_id]


def _entry(act: SignedAct, zone: ZoneInfo) -> TriageEntry:
    return TriageEntry(
        person=act.person_name,
        acted_at=act.acted_at.astimezone(zone),
        former_state=act.former_state,
        state=act.state,
        snoozed_until=act.snoozed_until.astimezone(zone) if act.snoozed_until else None,
        reason=act.reason,
        version=act.version,
    )


def _thing(targets: Mapping[AlertId, int]) -> str:
    """Name what was acted on, for the audit trail; never a patient."""
    return f"alert {next(iter(targets))}" if len(targets) == 1 else f"{len(targets)} alerts"


def _audited(acts: Sequence[TriageAct], targets: Mapping[AlertId, int]) -> dict[str, object]:
    """Return what the audit trail keeps of an act; the reason stays with the act, it may speak of the patient."""
    return {
        "n_alerts": len(acts),
        "alerts": list(targets),
        "before": dict(Counter(act.former_state.value for act in acts)),
        "after": acts[0].state.value,
        "snoozed_until": acts[0].snoozed_until.isoformat() if acts[0].snoozed_until else None,
    }
