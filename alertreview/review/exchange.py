"""Judging in another labelling tool: cases and votes of a study out, votes back in."""

from collections.abc import Mapping

from alertreview.alerts.lines import headline
from alertreview.alerts.models import CaseView
from alertreview.alerts.patient import OpenPatientViews
from alertreview.review.judging import OutsideVote, record_votes
from alertreview.review.labelling_tools import Tool, ToolCase, ToolVote, from_tool, to_tool
from alertreview.rights import Service, operator_only
from alertreview.settings import Clock
from core.errors import NotFoundError, RefusedError
from core.number_texts import measured_text
from core.vocabulary import PersonId
from db.database import Database
from db.models import BlindedRow, Study
from db.unit_of_work import UnitOfWork


class VoteExchange(Service):
    """Use cases of operators whose panel judges in another tool."""

    def __init__(self, database: Database, open_patient_views: OpenPatientViews, clock: Clock) -> None:
        super().__init__(database, clock)
        self._open_patient_views = open_patient_views

    @operator_only
    def cases(self, slug: str, tool: Tool, *, actor: str = "command line") -> dict[str, str]:
        """Return the files of a tool with the cases of a study and the votes so far, content by file name.

        They hold patient data, as the review page shows it: no score, rank or stratum.
        """
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            answers = uow.studies.rubric(study.id).answers
            names = {reader.person_id: reader.name for reader in uow.studies.readers(study.id)}
            rows = [row for row in uow.cases.blinded(study.id) if row.case_id in _without_repeats(uow, study)]
            votes = [
                ToolVote(v.case_id, names[v.reviewer_id], v.answer, v.certainty, v.comment, v.reason)
                for v in uow.judgments.votes(study.id)
                if not v.repeat_number
            ]
        files = to_tool(
            tool,
            study=slug,
            simulated=study.simulated,
            answers=answers,
            readers=list(names.values()),
            cases=[self._case(at, row) for at, row in enumerate(rows, start=1)],
            votes=votes,
        )
        self._note(slug, actor, "exported", {"what": "cases", "tool": tool.value, "cases": len(rows)})
        return files

    @operator_only
    def read(
        self, slug: str, tool: Tool, text: str, readers: Mapping[str, str], *, actor: str = "command line"
    ) -> tuple[int, int]:
        """Record the votes of a file together or not at all, and return how many are in it and how many were new.

        `readers` maps what the tool calls a person to the name of a reader; who is not listed goes by the own name.
        Raise SourceError if the file is not the tool's, NotFoundError if a case or a reader is none of the study,
        RefusedError if a reader has another answer to a case than the file, or a rule of judging is broken.
        """
        votes = from_tool(tool, text, slug)
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            cases = _without_repeats(uow, study)
            people = {reader.name: reader.person_id for reader in uow.studies.readers(study.id)}
            given = {(vote.case_id, vote.reviewer_id): vote.answer for vote in uow.judgments.votes(study.id)}
        new = []
        for vote in votes:
            if vote.case_id not in cases:
                raise NotFoundError(f"Study '{slug}' has no case {vote.case_id}. Nothing was recorded.")
            person_id = _person(vote.reader, readers, people)
            before = given.get((vote.case_id, person_id))
            if before is not None and before is not vote.answer:
                raise RefusedError(
                    f"Case {vote.case_id} has another answer of person {person_id} here. Change it on the Review page, "
                    "with a reason, or remove it from the file. Nothing was recorded."
                )
            if before is None:
                new.append(OutsideVote(person_id, vote.case_id, vote.answer, vote.certainty, vote.comment, vote.reason))
        n_new = record_votes(self._database, self._clock(), slug, new)
        self._note(slug, actor, "votes read", {"tool": tool.value, "votes": len(votes), "new": n_new})
        return len(votes), n_new

    def _case(self, number: int, row: BlindedRow) -> ToolCase:
        patient = self._open_patient_views(row.snapshot_hash).case(row.row_index, row.task_key)
        question = headline(row.task_name, row.words, row.decision)
        return ToolCase(row.case_id, f"C{number:03}", question, "\n".join(_lines(row, patient)))

    def _note(self, slug: str, actor: str, action: str, details: dict[str, object]) -> None:
        with self._database.write() as uow:
            uow.audit.append(self._clock(), actor, action, f"study {slug}", details)
            uow.commit()


def _without_repeats(uow: UnitOfWork, study: Study) -> set[int]:
    return {case.id for case in uow.cases.in_study(study.id) if not case.repeat_number}


def _person(name: str, readers: Mapping[str, str], people: Mapping[str, PersonId]) -> PersonId:
    person_id = people.get(readers.get(name, name))
    if person_id is None:
        raise NotFoundError(
            "A person in the tool is not a reader of the study. Say who it is: "
            '--reader "IN THE TOOL=READER". '
            f"The study has {len(people)} readers. Nothing was recorded."
        )
    return person_id


def _lines(row: BlindedRow, patient: CaseView) -> list[str]:
    age = "age unknown" if row.age_years is None else f"{int(row.age_years)} years"
    at = f"{patient.timeline.snapshot_at:%H:%M}"
    lines = [
        f"{age}, {row.sex or 'sex unknown'}, {row.unit or 'unit unknown'}, day {row.day_of_stay} of the stay, {at}"
    ]
    lines += [f"{what}: {words}" for what, words in patient.background]
    for value in patient.last_values:
        if value.hours_old is None:
            lines.append(f"{value.name}: not measured")
            continue
        result = value.text if value.value is None else f"{measured_text(value.value)} {value.unit}".strip()
        lines.append(f"{value.name}: {result}{f' ({value.flag})' if value.flag else ''}, {value.hours_old:.0f} h ago")
    lines += [f"Running: {' '.join(filter(None, (d.name, d.dose, d.route)))}" for d in patient.drugs_now]
    return lines
