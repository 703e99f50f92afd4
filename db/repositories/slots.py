"""Slots: who reads which case, claimed by single updates whose row counts are checked."""

from datetime import datetime

from core.vocabulary import CaseId, PersonId, SlotState, StudyId
from db.models import ReaderSlot, Slot
from db.queries.json_rows import moment, rows_of_json
from db.queries.reading import Repository
from db.queries.slots import hold_slot, holds_of_others, reader_slots, slots_with_state
from db.queries.votes import change_own_slot

_STATES = {state.value: state for state in SlotState}
_ORIGINAL: tuple[int, None] = (0, None)
_NO_SLOT: tuple[bool, SlotState, None] = (False, SlotState.FREE, None)


class Slots(Repository):
    """Slots of cases."""

    def hold(
        self, study_id: StudyId, case_id: CaseId, reviewer_id: PersonId, *, now: datetime, until: datetime
    ) -> bool:
        """Hold the reader's own slot of a case longer, or take one that can be had; return whether that worked.

        It does not while the study is not open. A judged slot stays judged, and is held; there is never a second one
        for the same reader, which the database refuses.
        """
        values = {"study_id_": study_id, "case_id_": case_id, "reviewer": reviewer_id}
        return self._change(hold_slot(), **values, now=now, until=until) == 1

    def renew(self, case_id: CaseId, reviewer_id: PersonId, *, until: datetime) -> bool:
        """Hold a slot longer, because its reader came back to it; False when the reader holds none."""
        return self._change_own(case_id, reviewer_id, held_until=until)

    def put_off(self, case_id: CaseId, reviewer_id: PersonId, *, until: datetime, at: datetime) -> bool:
        """Mark a slot as "later" and hold it longer; False when the reader holds none."""
        return self._change_own(case_id, reviewer_id, held_until=until, put_off_at=at)

    def take_up(self, case_id: CaseId, reviewer_id: PersonId, *, until: datetime) -> bool:
        """Take back the mark "later"; False when the reader holds no slot."""
        return self._change_own(case_id, reviewer_id, held_until=until, put_off_at=None)

    def settle(self, case_id: CaseId, reviewer_id: PersonId) -> bool:
        """Keep a judged slot for good; False when the reader holds none."""
        return self._change_own(case_id, reviewer_id, held_until=None, put_off_at=None)

    def of_reader(self, study_id: StudyId, person_id: PersonId, now: datetime) -> list[ReaderSlot]:
        """Return one reader's slot in each case of a study, in no order; reads no other reader's judgments."""
        texts = self._run(reader_slots(), study_id=study_id, person_id=person_id, now=now).one()
        slots, with_room, cases, repeats = map(rows_of_json, texts)
        own = {case_id: (True, _STATES[state], moment(held_until)) for case_id, state, held_until in slots}
        originals = {case_id: (number, original_id) for case_id, original_id, number in repeats}
        room = frozenset(with_room)
        # Made for hundreds of cases whenever somebody opens one: by position takes half the time of by name.
        make = ReaderSlot._make
        return [
            make((case_id, *originals.get(case_id, _ORIGINAL), *own.get(case_id, _NO_SLOT), case_id in room))
            for case_id in cases
        ]

    def holds_of_others(self, study_id: StudyId, person_id: PersonId, now: datetime) -> dict[CaseId, datetime]:
        """Return when the first hold of somebody else lapses, for each case of a study that has one."""
        text = self._run(holds_of_others(), study_id=study_id, person_id=person_id, now=now).scalar_one()
        return {case_id: lapse for case_id, lapses in rows_of_json(text) if (lapse := moment(lapses)) is not None}

    def of_study(self, study_id: StudyId) -> list[Slot]:
        """Return every slot of a study with its state and answer, for coordinators."""
        return self._all(Slot, slots_with_state(), study_id=study_id, case_id=None)

    def of_case(self, study_id: StudyId, case_id: CaseId) -> list[Slot]:
        """Return every slot of one case with its state and answer."""
        return self._all(Slot, slots_with_state(), study_id=study_id, case_id=case_id)

    def _change_own(self, case_id: CaseId, reviewer_id: PersonId, **changes: datetime | None) -> bool:
        values = {f"{name}_": value for name, value in changes.items()}
        return (
            self._change(change_own_slot(*sorted(changes)), case_id_=case_id, reviewer_id_=reviewer_id, **values) == 1
        )
