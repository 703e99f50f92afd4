"""Slots: who reads which case, claimed by single updates whose row counts are checked."""

from datetime import datetime

from sqlalchemy.engine import Connection

from core.vocabulary import SlotState
from db.queries.json_rows import moment, unpacked
from db.queries.reading import change, run
from db.queries.slots import hold_slot, holds_of_others, reader_places, slots_with_state
from db.queries.votes import change_own_slot
from db.rows import ReaderSlotRow, SlotRow

_STATES = {state.value: state for state in SlotState}
_ORIGINAL: tuple[int, None] = (0, None)
_NO_SLOT: tuple[bool, SlotState, None] = (False, SlotState.FREE, None)


class Slots:
    """Slots of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def hold(self, study_id: int, case_id: int, reviewer_id: int, *, now: datetime, until: datetime) -> bool:
        """Hold the reader's own slot of a case longer, or take one that can be had, while the study is open.

        Returns
        -------
        bool
            False when there is none, or the study is not open. A judged slot stays judged, and is held; there is never
            a second one for the same reader, which the database refuses.
        """
        given = {"study_id_": study_id, "case_id_": case_id, "reviewer": reviewer_id}
        return change(self._connection, hold_slot(), **given, now=now, until=until) == 1

    def renew(self, case_id: int, reviewer_id: int, *, until: datetime) -> bool:
        """Hold a slot longer, because its reader came back to it; False when the reader holds none."""
        return self._change_own(case_id, reviewer_id, held_until=until)

    def put_off(self, case_id: int, reviewer_id: int, *, until: datetime, at: datetime) -> bool:
        """Mark a slot as "later" and hold it longer; False when the reader holds none."""
        return self._change_own(case_id, reviewer_id, held_until=until, put_off_at=at)

    def settle(self, case_id: int, reviewer_id: int) -> bool:
        """Keep a judged slot for good; False when the reader holds none."""
        return self._change_own(case_id, reviewer_id, held_until=None, put_off_at=None)

    def places(self, study_id: int, person_id: int, now: datetime) -> list[ReaderSlotRow]:
        """Return one reader's place in each case of a study, in no order; reads no other reader's judgments."""
        packed = run(self._connection, reader_places(), study_id=study_id, person_id=person_id, now=now).one()
        slots, with_room, cases, repeats = map(unpacked, packed)
        own = {case_id: (True, _STATES[state], moment(held_until)) for case_id, state, held_until in slots}
        originals = {case_id: (number, original_id) for case_id, original_id, number in repeats}
        room = frozenset(with_room)
        # Made for hundreds of cases whenever somebody opens one: by position takes half the time of by name.
        make = ReaderSlotRow._make
        return [
            make((case_id, *originals.get(case_id, _ORIGINAL), *own.get(case_id, _NO_SLOT), case_id in room))
            for case_id in cases
        ]

    def holds_of_others(self, study_id: int, person_id: int, now: datetime) -> dict[int, datetime]:
        """Return when the first hold of somebody else lapses, for each case of a study that has one."""
        text = run(self._connection, holds_of_others(), study_id=study_id, person_id=person_id, now=now).scalar_one()
        return {case_id: lapse for case_id, lapses in unpacked(text) if (lapse := moment(lapses)) is not None}

    def of_study(self, study_id: int) -> list[SlotRow]:
        """Return every slot of a study with its state and answer, for coordinators."""
        return self._slots({"study_id": study_id, "case_id": None})

    def of_case(self, study_id: int, case_id: int) -> list[SlotRow]:
        """Return every slot of one case with its state and answer."""
        return self._slots({"study_id": study_id, "case_id": case_id})

    def _change_own(self, case_id: int, reviewer_id: int, **changes: datetime | None) -> bool:
        given = {f"{name}_": value for name, value in changes.items()}
        statement = change_own_slot(*sorted(changes))
        return change(self._connection, statement, case_id_=case_id, reviewer_id_=reviewer_id, **given) == 1

    def _slots(self, values: dict[str, int | None]) -> list[SlotRow]:
        return [
            SlotRow(**{**row, "state": SlotState(row["state"])})
            for row in self._connection.execute(slots_with_state(), values).mappings()
        ]
