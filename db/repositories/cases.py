"""Cases of a study: for coordinators with everything, for blinded readers without."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.engine import Connection

from core.vocabulary import Answer
from db.models import Assignment, CaseScore, Instance, ReferenceAnswer, ScoreSeen, StudyCase, Task
from db.queries.reading import columns, read_all, run, values
from db.queries.runs import score_seen_of_decision
from db.queries.slots import awaited_decision, awaited_decisions, panel_places
from db.queries.votes import blinded_cases, case_of_study, shown_case
from db.rows import BlindedRow, CaseRow, CaseScoreRow, DecisionKey, DraftRow, NewCase, OwnAnswer, PanelPlace, ShownRow

_BLINDED_FIELDS = tuple(BlindedRow.__dataclass_fields__)


class Cases:
    """Cases of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, study_id: int, first_number: int, cases: Iterable[NewCase], n_slots: int) -> list[int]:
        """Add cases with their free slots.

        Returns
        -------
        list of int
            Numbers of the cases, in the given order.
        """
        case_ids: list[int] = []
        for number, case in enumerate(cases, start=first_number):
            new = {"study_id": study_id, "number": number, **values(case)}
            case_ids.append(
                self._connection.execute(insert(StudyCase).values(new).returning(StudyCase.id)).scalar_one()
            )
        slots = [{"case_id": case_id, "slot": slot} for case_id in case_ids for slot in range(1, n_slots + 1)]
        if slots:
            self._connection.execute(insert(Assignment), slots)
        return case_ids

    def add_scores(self, scores: Iterable[CaseScoreRow]) -> None:
        """Add what scorers said of cases."""
        prepared = [values(score) for score in scores]
        if prepared:
            self._connection.execute(insert(CaseScore), prepared)

    def add_references(self, references: Mapping[int, tuple[Answer, str]]) -> None:
        """Add the answers and comments that a calibration study shows after the own judgment, by case number."""
        prepared = [
            {"case_id": case_id, "answer": answer, "comment": comment}
            for case_id, (answer, comment) in references.items()
        ]
        if prepared:
            self._connection.execute(insert(ReferenceAnswer), prepared)

    def in_study(self, study_id: int) -> list[CaseRow]:
        """Return the cases of a study with how they were chosen, by number."""
        joined = {"task_name": Task.name, "kind": Task.kind, "unit": Instance.unit, "row_index": Instance.row_index}
        own = [getattr(StudyCase, name) for name in CaseRow.__dataclass_fields__ if name not in joined]
        statement = (
            select(*own, *(column.label(name) for name, column in joined.items()))
            .join(Task, Task.id == StudyCase.task_id)
            .join(Instance, Instance.id == StudyCase.instance_id)
            .where(StudyCase.study_id == study_id)
            .order_by(StudyCase.number)
        )
        return read_all(self._connection, CaseRow, statement)

    def scores(self, study_id: int) -> list[CaseScoreRow]:
        """Return what scorers said of the cases of a study."""
        statement = (
            select(*columns(CaseScore, CaseScoreRow))
            .join(StudyCase, StudyCase.id == CaseScore.case_id)
            .where(StudyCase.study_id == study_id)
            .order_by(CaseScore.case_id, CaseScore.scorer)
        )
        return read_all(self._connection, CaseScoreRow, statement)

    def blinded(self, study_id: int, case_id: int | None = None) -> list[BlindedRow]:
        """Return all that a blinded reader may know of the cases of a study, or of one of them.

        Parameters
        ----------
        study_id : int
            Number of the study.
        case_id : int or None
            Only this case; an empty list when the study has no such case.
        """
        given = {"study_id_": study_id} | ({} if case_id is None else {"case_id_": case_id})
        return read_all(self._connection, BlindedRow, blinded_cases(one=case_id is not None), **given)

    def shown(self, study_id: int, case_id: int, person_id: int) -> ShownRow | None:
        """Return a case as its blinded reader sees it, with the own answer and draft; None if not in the study."""
        given = {"study_id_": study_id, "case_id_": case_id, "person_id_": person_id}
        row = run(self._connection, shown_case(), **given).one_or_none()
        if row is None:
            return None
        found: Sequence[Any] = tuple(row)
        own, draft_of, draft, case = found[:4], found[4], found[5:8], found[8:]
        return ShownRow(
            BlindedRow(**dict(zip(_BLINDED_FIELDS, case, strict=True))),
            None if own[0] is None else OwnAnswer._make(own),
            None if draft_of is None else DraftRow(*draft),
        )

    def awaits_judgment_of(self, person_id: int, patient_id: str, snapshot_at: datetime, task_key: str) -> bool:
        """Return whether an instance x task is among `awaited_of` somebody."""
        given = {"reader": person_id, "patient": patient_id, "at": snapshot_at, "task": task_key}
        return run(self._connection, awaited_decision(), **given).first() is not None

    def awaited_of(self, person_id: int) -> set[DecisionKey]:
        """Return the decisions that somebody has still to judge blindly as a reader of open studies.

        One that all slots of its case have a judgment of, all by others, is no longer to be judged.
        """
        return {DecisionKey._make(row) for row in run(self._connection, awaited_decisions(), reader=person_id)}

    def in_panels(self, person_id: int, decision: DecisionKey, now: datetime) -> list[PanelPlace]:
        """Return the cases of a decision in open panels of a reader who has a place in them or can get one."""
        given = {"patient": decision.patient_id, "at": decision.snapshot_at, "task": decision.task_key}
        return [
            PanelPlace._make(row) for row in run(self._connection, panel_places(), reader=person_id, now=now, **given)
        ]

    def belongs(self, study_id: int, case_id: int) -> bool:
        """Return whether a case is one of the study."""
        return run(self._connection, case_of_study(), case_id_=case_id, study_id_=study_id).first() is not None

    def reference(self, case_id: int) -> tuple[Answer, str] | None:
        """Return the reference answer and comment of a calibration case, None when it has none."""
        row = self._connection.execute(
            select(ReferenceAnswer.answer, ReferenceAnswer.comment).where(ReferenceAnswer.case_id == case_id)
        ).one_or_none()
        return None if row is None else (row.answer, row.comment)

    def score_of_decision_was_seen(self, person_id: int, decision: DecisionKey) -> bool:
        """Return whether somebody saw the score or votes of an instance x task before."""
        given = {"patient": decision.patient_id, "at": decision.snapshot_at, "task": decision.task_key}
        return run(self._connection, score_seen_of_decision(), person_id_=person_id, **given).first() is not None

    def note_score_seen(
        self, person_id: int, patient_id: str, snapshot_at: datetime, task_key: str, seen_at: datetime
    ) -> None:
        """Remember that somebody saw the score or votes of an instance x task; the first time counts."""
        seen = {
            "person_id": person_id,
            "patient_id": patient_id,
            "snapshot_at": snapshot_at,
            "task_key": task_key,
        }
        if self._connection.execute(select(ScoreSeen.person_id).filter_by(**seen)).first() is None:
            self._connection.execute(insert(ScoreSeen).values(**seen, first_seen_at=seen_at))
