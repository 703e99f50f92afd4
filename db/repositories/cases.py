"""Cases of a study, blinded or with everything, and their slots, claimed by single updates whose row counts count."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select

from core.vocabulary import Answer, CaseId, PersonId, SlotState, StudyId
from db.models import (
    Assignment,
    BlindedRow,
    CaseScore,
    DecisionKey,
    DraftAnswer,
    Instance,
    ListedCase,
    OwnAnswer,
    PanelSlot,
    ReaderSlot,
    ReferenceAnswer,
    ScoreSeen,
    ShownCase,
    Slot,
    StudyCase,
    Task,
)
from db.queries.json_rows import moment, rows_of_json
from db.queries.reading import Repository, given, make_records, select_records
from db.queries.slots import (
    awaited_decision,
    awaited_decisions,
    hold_slot,
    holds_of_others,
    is_of_decision,
    panel_slots,
    reader_slots,
    slots_with_state,
)
from db.queries.votes import blinded_cases, change_own_slot, shown_case

_LISTED = (
    select_records(StudyCase, ListedCase, Task.name.label("task_name"), Task.kind, Instance.unit, Instance.row_index)
    .join(Task, Task.id == StudyCase.task_id)
    .join(Instance, Instance.id == StudyCase.instance_id)
    .where(StudyCase.study_id == given("study_id"))
    .order_by(StudyCase.number)
)
_IN_STUDY = select(StudyCase.id).where(StudyCase.id == given("case_id"), StudyCase.study_id == given("study_id"))
_SCORE_SEEN = select(ScoreSeen.person_id).where(ScoreSeen.person_id == given("person_id"), is_of_decision(ScoreSeen))


class Cases(Repository):
    """Cases of studies."""

    def add(self, study_id: StudyId, first_number: int, cases: Iterable[StudyCase], n_slots: int) -> list[CaseId]:
        """Add cases with their free slots; return their ids in the given order."""
        self._insert_all(
            replace(case, study_id=study_id, number=number) for number, case in enumerate(cases, start=first_number)
        )
        added = select(StudyCase.id).where(StudyCase.study_id == study_id, StudyCase.number >= first_number)
        case_ids = list(self._run(added.order_by(StudyCase.number)).scalars())
        slots = [{"case_id": case_id, "slot": slot} for case_id in case_ids for slot in range(1, n_slots + 1)]
        if slots:
            self._connection.execute(insert(Assignment), slots)
        return case_ids

    def add_scores(self, scores: Iterable[CaseScore]) -> None:
        """Add what scorers said of cases."""
        self._insert_all(scores)

    def add_references(self, references: Iterable[ReferenceAnswer]) -> None:
        """Add what a calibration study shows after the own judgment."""
        self._insert_all(references)

    def in_study(self, study_id: StudyId) -> list[ListedCase]:
        """Return the cases of a study with how they were chosen, by number."""
        return self._all(ListedCase, _LISTED, study_id_=study_id)

    def scores(self, study_id: StudyId) -> list[CaseScore]:
        """Return what scorers said of the cases of a study."""
        statement = (
            select_records(CaseScore)
            .join(StudyCase, StudyCase.id == CaseScore.case_id)
            .where(StudyCase.study_id == study_id)
            .order_by(CaseScore.case_id, CaseScore.scorer)
        )
        return self._all(CaseScore, statement)

    def blinded(self, study_id: StudyId, case_id: CaseId | None = None) -> list[BlindedRow]:
        """Return all that a blinded reader may know of the cases of a study, or of one of them.

        The list is empty if the study has no such case.
        """
        if case_id is None:
            return self._all(BlindedRow, blinded_cases(one=False), study_id_=study_id)
        return self._all(BlindedRow, blinded_cases(one=True), study_id_=study_id, case_id_=case_id)

    def shown(self, study_id: StudyId, case_id: CaseId, person_id: PersonId) -> ShownCase | None:
        """Return a case as its blinded reader sees it, with the own answer and draft; None if not in the study."""
        row = self._run(shown_case(), study_id_=study_id, case_id_=case_id, person_id_=person_id).one_or_none()
        if row is None:
            return None
        own, draft_of, draft, case = row[:4], row[4], row[5:8], row[8:]
        return ShownCase(
            next(make_records(BlindedRow, BlindedRow.__fields__, [case])),
            None if own[0] is None else OwnAnswer._make(own),
            None if draft_of is None else DraftAnswer._make(draft),
        )

    def awaits_judgment_of(self, person_id: PersonId, decision: DecisionKey) -> bool:
        """Return whether an instance x task is among `awaited_of` somebody."""
        return self._run(awaited_decision(), reader=person_id, **_given(decision)).first() is not None

    def awaited_of(self, person_id: PersonId) -> set[DecisionKey]:
        """Return the decisions that somebody has still to judge blindly as a reader of open studies.

        One that all slots of its case have a judgment of, all by others, is no longer to be judged.
        """
        return {DecisionKey._make(row) for row in self._run(awaited_decisions(), reader=person_id)}

    def in_panels(self, person_id: PersonId, decision: DecisionKey, now: datetime) -> list[PanelSlot]:
        """Return the cases of a decision in open panels of a reader who has a slot in them or can get one."""
        rows = self._run(panel_slots(), reader=person_id, now=now, **_given(decision))
        return [PanelSlot._make(row) for row in rows]

    def belongs(self, study_id: StudyId, case_id: CaseId) -> bool:
        """Return whether a case is one of the study."""
        return self._run(_IN_STUDY, case_id_=case_id, study_id_=study_id).first() is not None

    def reference(self, case_id: CaseId) -> tuple[Answer, str] | None:
        """Return the reference answer and comment of a calibration case, None when it has none."""
        row = self._run(
            select(ReferenceAnswer.answer, ReferenceAnswer.comment).where(ReferenceAnswer.case_id == case_id)
        ).one_or_none()
        return None if row is None else (row.answer, row.comment)

    def score_of_decision_was_seen(self, person_id: PersonId, decision: DecisionKey) -> bool:
        """Return whether somebody saw the score or votes of an instance x task before."""
        return self._run(_SCORE_SEEN, person_id_=person_id, **_given(decision)).first() is not None

    def note_score_seen(self, person_id: PersonId, decision: DecisionKey, seen_at: datetime) -> None:
        """Remember that somebody saw the score or votes of an instance x task; the first time counts."""
        if not self.score_of_decision_was_seen(person_id, decision):
            self._insert(ScoreSeen(person_id=person_id, **decision._asdict(), first_seen_at=seen_at))


def _given(decision: DecisionKey) -> dict[str, Any]:
    return {"patient": decision.patient_id, "at": decision.snapshot_at, "task": decision.task_key}


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
