"""Cases of a study: for coordinators with everything, for blinded readers without."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select

from core.vocabulary import Answer, CaseId, PersonId, StudyId
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
    ReferenceAnswer,
    ScoreSeen,
    ShownCase,
    StudyCase,
    Task,
)
from db.queries.reading import Repository, given, make_records, select_records
from db.queries.slots import awaited_decision, awaited_decisions, is_of_decision, panel_slots
from db.queries.votes import blinded_cases, shown_case

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
        case_ids: list[CaseId] = [
            self._insert(replace(case, study_id=study_id, number=number))
            for number, case in enumerate(cases, start=first_number)
        ]
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

        Nothing if it has no such case.
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
