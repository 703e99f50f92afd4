"""Cases and votes as other labelling tools write them: Label Studio (JSON) and REDCap (CSV)."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from xml.sax.saxutils import quoteattr

from core.errors import SourceError
from core.vocabulary import Answer, CaseId, Certainty

LONGEST = 100_000_000
"""Most characters of a file that is read."""
_LONGEST_NUMBER = 18


class Tool(StrEnum):
    """A labelling tool."""

    LABEL_STUDIO = "label-studio"
    REDCAP = "redcap"


@dataclass(frozen=True)
class ToolCase:
    """One case as a reader in another tool sees it; nothing that a blinded reader may not see."""

    case_id: CaseId
    label: str
    question: str
    patient: str  # the patient as of the snapshot, one line for each fact


@dataclass(frozen=True)
class ToolVote:
    """One answer of one reader to one case."""

    case_id: CaseId
    reader: str  # name of the reader, or what the tool calls the person
    answer: Answer
    certainty: Certainty | None = None
    comment: str = ""
    reason: str = ""


def to_tool(
    tool: Tool,
    *,
    study: str,
    simulated: bool,
    answers: Mapping[Answer, str],
    readers: Sequence[str],
    cases: Sequence[ToolCase],
    votes: Iterable[ToolVote],
) -> dict[str, str]:
    """Write a study for a tool: return the content of its set-up and of its records by file name.

    The answers are those that the study offers, with its words. Every record of simulated cases is marked as such.
    """
    given = {(vote.case_id, vote.reader): vote for vote in votes}
    data = "simulated, no real patient" if simulated else "real patients"
    if tool is Tool.LABEL_STUDIO:
        tasks = [_task(study, data, case, [v for v in given.values() if v.case_id == case.case_id]) for case in cases]
        return {
            "label_config.xml": _label_config(answers),
            "tasks.json": json.dumps(tasks, ensure_ascii=False, indent=1) + "\n",
        }
    records = [
        _record(study, data, case, reader, at, given.get((case.case_id, reader)))
        for case in cases
        for at, reader in enumerate(readers, start=1)
    ]
    return {"data_dictionary.csv": _dictionary(answers), "records.csv": _as_csv(_RECORD, records)}


def from_tool(tool: Tool, text: str, study: str) -> list[ToolVote]:
    """Read votes from the text that a tool exported.

    Raise SourceError if the file is not one of that tool or of that study, names a case or a case's reader twice, or
    holds an answer that there is not; it names the task or row, the value and what to do.
    """
    if len(text) > LONGEST:
        raise SourceError(f"The file has more than {LONGEST:,} characters. Export the study in parts.")
    votes = _from_label_studio(text, study) if tool is Tool.LABEL_STUDIO else _from_redcap(text, study)
    twice = [key for key, n in Counter((vote.case_id, vote.reader) for vote in votes).items() if n > 1]
    if twice:
        raise SourceError(f"Case {twice[0][0]} has two votes of one reader. Keep one of them and read the file again.")
    return votes


def _label_config(answers: Mapping[Answer, str]) -> str:
    choices = "\n".join(
        f'    <Choice value={quoteattr(words)} alias="{answer.key}" hotkey="{answer.key}"/>'
        for answer, words in answers.items()
    )
    sure = "\n".join(f'    <Choice value="{one.value}"/>' for one in Certainty)
    return (
        "<View>\n"
        '  <Header value="$question"/>\n'
        '  <Text name="patient" value="$patient"/>\n'
        f'  <Choices name="answer" toName="patient" choice="single-radio" required="true">\n{choices}\n  </Choices>\n'
        f'  <Choices name="certainty" toName="patient" choice="single-radio">\n{sure}\n  </Choices>\n'
        '  <TextArea name="comment" toName="patient" placeholder="Comment"/>\n'
        '  <TextArea name="reason" toName="patient" placeholder="What is missing, where you cannot judge"/>\n'
        "</View>\n"
    )


def _task(study: str, data: str, case: ToolCase, votes: Sequence[ToolVote]) -> dict[str, Any]:
    return {
        "id": case.case_id,
        "data": {
            "study": study,
            "case_id": case.case_id,
            "case_label": case.label,
            "question": case.question,
            "patient": case.patient,
            "data": data,
        },
        "annotations": [
            {"completed_by": {"email": vote.reader}, "was_cancelled": False, "result": _results(vote)} for vote in votes
        ],
    }


def _results(vote: ToolVote) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [_result("answer", "choices", [vote.answer.key])]
    if vote.certainty is not None:
        found.append(_result("certainty", "choices", [vote.certainty.value]))
    for name, text in (("comment", vote.comment), ("reason", vote.reason)):
        if text:
            found.append(_result(name, "textarea", [text]))
    return found


def _result(name: str, kind: str, values: list[str]) -> dict[str, Any]:
    key = "text" if kind == "textarea" else kind
    return {"from_name": name, "to_name": "patient", "type": kind, "value": {key: values}}


def _from_label_studio(text: str, study: str) -> list[ToolVote]:
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError):
        raise SourceError("The file is not JSON. Export the project from Label Studio as JSON.") from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise SourceError(
            "The file is not a list of tasks. Export the project from Label Studio as JSON, not JSON-MIN."
        )
    votes, seen = [], set()
    first_of: dict[str, int] = {}
    for at, task in enumerate(tasks, start=1):
        where = f"Task {at} of the file"
        if "id" in task and (earlier := first_of.setdefault(str(task["id"]), at)) != at:
            raise SourceError(
                f"{where} has the id {str(task['id'])[:40]} of task {earlier}: files of two projects were joined. Read "
                "each file by itself."
            )
        data = task.get("data")
        if not isinstance(data, dict) or data.get("study") != study or "case_id" not in data:
            raise SourceError(f"{where} is not a case of study '{study}'. Name the study that the tasks were made for.")
        case_id = _case_id(data["case_id"], where)
        if case_id in seen:
            raise SourceError(f"{where} is case {case_id}, which an earlier task is as well. Remove one of them.")
        seen.add(case_id)
        annotations = task.get("annotations")
        if not isinstance(annotations, list):
            raise SourceError(f"{where} has no annotations. Export the project as JSON, with annotations.")
        for annotation in annotations:
            if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
                raise SourceError(f"{where} has an annotation that is none of Label Studio. Export the project again.")
            if not annotation.get("was_cancelled") and annotation["result"]:
                votes.append(_annotated(case_id, annotation, where))
    return votes


def _annotated(case_id: CaseId, annotation: Mapping[str, Any], where: str) -> ToolVote:
    values: dict[str, str] = {}
    for result in annotation["result"]:
        value = result.get("value") if isinstance(result, dict) else None
        if isinstance(value, dict):
            given = value.get("choices") or value.get("text") or []
            values[str(result.get("from_name"))] = "\n".join(map(str, given)) if isinstance(given, list) else str(given)
    who = annotation.get("completed_by")
    who = who.get("email") or who.get("id") if isinstance(who, dict) else who
    if who is None:
        raise SourceError(f"{where} has an annotation of nobody. Export the project with 'completed by'.")
    return ToolVote(
        case_id,
        str(who),
        _answer(values.get("answer", ""), where),
        _certainty(values.get("certainty", ""), where),
        values.get("comment", ""),
        values.get("reason", ""),
    )


_RECORD = (
    "record_id", "study", "case_id", "case_label", "question", "patient", "data", "reader", "answer", "certainty",
    "comment", "reason", "judgment_complete",
)  # fmt: skip
_CERTAINTIES = {one: str(code) for code, one in enumerate(Certainty, start=1)}


def _record(study: str, data: str, case: ToolCase, reader: str, at: int, vote: ToolVote | None) -> dict[str, str]:
    return {
        "record_id": f"case-{case.case_id}-{at}",  # "1-2" would be a date to a spreadsheet
        "study": study,
        "case_id": str(case.case_id),
        "case_label": case.label,
        "question": case.question,
        "patient": case.patient,
        "data": data,
        "reader": reader,
        "answer": vote.answer.key if vote else "",
        "certainty": _CERTAINTIES[vote.certainty] if vote and vote.certainty else "",
        "comment": vote.comment if vote else "",
        "reason": vote.reason if vote else "",
        "judgment_complete": "2" if vote else "0",
    }


def _dictionary(answers: Mapping[Answer, str]) -> str:
    """Return the data dictionary that REDCap makes the project from."""
    columns = (
        "Variable / Field Name", "Form Name", "Field Type", "Field Label", "Choices, Calculations, OR Slider Labels",
        "Required Field?", "Field Annotation",
    )  # fmt: skip
    choices = {
        "answer": " | ".join(f"{answer.key}, {words}" for answer, words in answers.items()),
        "certainty": " | ".join(f"{code}, {one.value}" for one, code in _CERTAINTIES.items()),
    }
    kinds = {"answer": "radio", "certainty": "radio", "comment": "notes", "reason": "notes", "patient": "notes"}
    rows = []
    for name in _RECORD[:-1]:
        asked = name in ("answer", "certainty", "comment", "reason")
        values = (name, "judgment", kinds.get(name, "text"), name.replace("_", " ").capitalize(), choices.get(name, ""))
        marks = ("y" if name == "answer" else "", "" if asked else "@READONLY")
        rows.append(dict(zip(columns, values + marks, strict=True)))
    return _as_csv(columns, rows)


def _from_redcap(text: str, study: str) -> list[ToolVote]:
    csv.field_size_limit(2**31 - 1)
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    needed = {"study", "case_id", "reader", "answer", "certainty", "comment", "reason"}
    try:
        missing = sorted(needed - set(reader.fieldnames or ()))
        if missing:
            raise SourceError(
                f"The file has no column '{missing[0]}'. Export all fields from REDCap as CSV, with raw data."
            )
        rows = list(reader)
    except csv.Error as error:
        raise SourceError(f"The file is not CSV: {error}. Export it from REDCap again.") from None
    votes = []
    for number, row in enumerate(rows, start=1):
        where = f"Row {number}"
        if None in row or None in row.values():
            raise SourceError(f"{where} has more or fewer cells than the header. Export it from REDCap again.")
        if row["study"] != study:
            raise SourceError(f"{where} is not of study '{study}'. Name the study that the records were made for.")
        if row["answer"].strip():
            code = row["certainty"].strip()
            sure = next((one for one, known in _CERTAINTIES.items() if known == code), None)
            if code and sure is None:
                raise SourceError(f"{where}: '{code[:40]}' is not a certainty. Export raw data, not labels.")
            case_id, answer = _case_id(row["case_id"], where), _answer(row["answer"], where)
            votes.append(ToolVote(case_id, row["reader"], answer, sure, row["comment"], row["reason"]))
    return votes


def _case_id(value: object, where: str) -> CaseId:
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise SourceError(f"{where}: '{text[:40]}' is not a case number. Leave the column as it was written.")
    return CaseId(int(text))


def _answer(text: str, where: str) -> Answer:
    found = next((answer for answer in Answer if text.strip() == answer.key), None)
    if found is None:
        known = ", ".join(answer.key for answer in Answer)
        raise SourceError(f"{where}: '{text.strip()[:40]}' is not an answer; answers are {known}. Export raw values.")
    return found


def _certainty(text: str, where: str) -> Certainty | None:
    if not text:
        return None
    if text not in set(Certainty):
        raise SourceError(f"{where}: '{text[:40]}' is not a certainty; these are {', '.join(Certainty)}.")
    return Certainty(text)


def _as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=columns, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
