"""Judging in another tool: round trips of Label Studio and REDCap, and files that are refused with nothing recorded."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from alertreview.application import Application, open_application
from alertreview.cli.main import main
from alertreview.review.labelling_tools import Tool, ToolCase, ToolVote, from_tool, to_tool
from core.errors import InvalidInputError, NotFoundError, RefusedError, SourceError
from core.vocabulary import Answer, Certainty

TOOLS = list(Tool)
RECORDS = {Tool.LABEL_STUDIO: "tasks.json", Tool.REDCAP: "records.csv"}
HOSTILE = 'a "quoted"; comma, <b>bold</b>\nsecond line =1+1 é µ'
ODD = (
    "1-2",
    "007",
    "1234567890123456789",
    "1e5",
    "=1+1",
    "@SUM(A1)",
    '"',
    "'",
    "NA",
    "two\r\nlines\rand\nmore",
    " spaces ",
    "\ttab",
    "🫀 \u202ert\ufeff",
    ",;|",
    "<View/>",
    '{"a": 1}',
    HOSTILE,
)


@pytest.fixture
def judged(own_home: Path) -> Application:
    return open_application(own_home)


@pytest.fixture
def unjudged(built_demo: Path, tmp_path: Path) -> Application:
    """The same site before its votes."""
    return open_application(Path(shutil.copytree(built_demo / "before-the-votes", tmp_path / "unjudged")))


@pytest.fixture(scope="module")
def exported(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Tool, str]:
    """What each tool gets of the judged study."""
    folder = tmp_path_factory.mktemp("exported")
    application = open_application(Path(shutil.copytree(demo_home, folder / "home")))
    return {tool: application.exchange.cases("demo", tool)[RECORDS[tool]] for tool in TOOLS}


@pytest.fixture(scope="module")
def untouched(built_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """The site before its votes, for files of which nothing may be recorded."""
    return open_application(
        Path(shutil.copytree(built_demo / "before-the-votes", tmp_path_factory.mktemp("untouched") / "home"))
    )


def votes_of(application: Application) -> set[tuple[object, ...]]:
    with application.database.read() as uow:
        study = uow.studies.by_slug("demo")
        names = {reader.person_id: reader.name for reader in uow.studies.readers(study.id)}
        return {
            (vote.case_id, names[vote.reviewer_id], vote.answer, vote.certainty, vote.comment)
            for vote in uow.judgments.votes(study.id)
        }


@pytest.mark.parametrize("tool", TOOLS)
def test_votes_go_out_and_come_back_equal(judged: Application, unjudged: Application, tool: Tool) -> None:
    text = judged.exchange.cases("demo", tool)[RECORDS[tool]]
    assert votes_of(unjudged) == set()
    n_votes, n_new = unjudged.exchange.read("demo", tool, text, {})
    assert votes_of(unjudged) == votes_of(judged)
    assert n_votes == n_new == len(votes_of(judged)) > 50
    assert unjudged.exchange.read("demo", tool, text, {}) == (n_votes, 0)
    with unjudged.database.read() as uow:
        assert uow.audit.latest(2)[-1].action == "votes read"
        uow.audit.require_whole()


@pytest.mark.parametrize("tool", TOOLS)
def test_the_files_say_that_the_data_are_simulated_and_hold_no_score(
    exported: dict[Tool, str], judged: Application, tool: Tool
) -> None:
    text = exported[tool]
    assert text.count("simulated, no real patient") >= judged.studies.view("demo").n_cases
    for word in ("score", "rank", "stratum", "SIM-"):
        assert word not in text
    scores = {f"{says.score:.3f}" for case in judged.studies.case_rows("demo") for says in case.scores.values()}
    assert not [score for score in scores if score in text and score not in ("0.000", "1.000")][3:]


def test_the_set_up_of_label_studio_offers_the_answers_of_the_study(judged: Application) -> None:
    root = ET.fromstring(judged.exchange.cases("demo", Tool.LABEL_STUDIO)["label_config.xml"])
    choices = root.find("Choices[@name='answer']")
    assert choices is not None
    assert [choice.get("alias") for choice in choices] == [a.key for a in judged.studies.view("demo").answer_texts]


def test_the_dictionary_of_redcap_names_every_column_of_its_records(judged: Application) -> None:
    files = judged.exchange.cases("demo", Tool.REDCAP)
    named = [row["Variable / Field Name"] for row in csv.DictReader(io.StringIO(files["data_dictionary.csv"]))]
    assert [*named, "judgment_complete"] == csv.DictReader(io.StringIO(files["records.csv"])).fieldnames


@pytest.mark.parametrize("tool", TOOLS)
def test_a_reader_may_have_another_name_in_the_tool(
    exported: dict[Tool, str], judged: Application, unjudged: Application, tool: Tool
) -> None:
    name = min(who for _, who, *_ in votes_of(judged))  # type: ignore[type-var]
    text = exported[tool].replace(str(name), "17")
    with pytest.raises(NotFoundError, match="--reader") as error:
        unjudged.exchange.read("demo", tool, text, {})
    assert str(name) not in str(error.value)
    assert votes_of(unjudged) == set()
    unjudged.exchange.read("demo", tool, text, {"17": str(name)})
    assert votes_of(unjudged) == votes_of(judged)


def tasks_with(change: Callable[[list[dict]], object]) -> Callable[[str], str]:  # type: ignore[type-arg]
    def changed(text: str) -> str:
        tasks = json.loads(text)
        change(tasks)
        return json.dumps(tasks)

    return changed


def rows_with(change: Callable[[list[dict]], object]) -> Callable[[str], str]:  # type: ignore[type-arg]
    def changed(text: str) -> str:
        rows = sorted(csv.DictReader(io.StringIO(text)), key=lambda row: row["answer"] == "")
        change(rows)
        out = io.StringIO()
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    return changed


def comment_result(text: str) -> dict[str, object]:
    return {"from_name": "comment", "type": "textarea", "value": {"text": [text]}}


WRONG = [
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t.append(t[0])), SourceError, "has the id .* of task 1"),
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t[1].update(id=t[0]["id"])), SourceError, "Task 2 .* the id .* of task 1"),
    (
        Tool.LABEL_STUDIO,
        tasks_with(lambda t: t[1]["data"].update(case_id=t[0]["data"]["case_id"])),
        SourceError,
        "an earlier task is as well",
    ),
    (
        Tool.LABEL_STUDIO,
        tasks_with(lambda t: t[0]["annotations"].append(t[0]["annotations"][0])),
        SourceError,
        "two votes",
    ),
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t[0]["data"].update(study="other")), SourceError, "not a case of study"),
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t[0]["data"].update(case_id=10**9)), NotFoundError, "has no case"),
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t[0]["data"].update(case_id="x")), SourceError, "is not a case number"),
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t[0]["data"].update(case_id=True)), SourceError, "is not a case number"),
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t[0].pop("annotations")), SourceError, "no annotations"),
    (
        Tool.LABEL_STUDIO,
        tasks_with(lambda t: t[0]["annotations"][0].update(result=[{"x": 1}])),
        SourceError,
        "is not an answer",
    ),
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t[0]["annotations"][0].pop("completed_by")), SourceError, "of nobody"),
    (Tool.LABEL_STUDIO, tasks_with(lambda t: t[0].update(annotations=[3])), SourceError, "none of Label Studio"),
    (Tool.LABEL_STUDIO, lambda _: "[" * 100_000, SourceError, "not JSON"),
    (Tool.LABEL_STUDIO, lambda _: "{}", SourceError, "is not a list of tasks"),
    (Tool.LABEL_STUDIO, lambda _: "", SourceError, "not JSON"),
    (Tool.REDCAP, rows_with(lambda r: r.append(r[0])), SourceError, "two votes"),
    (Tool.REDCAP, rows_with(lambda r: r[0].update(answer="9")), SourceError, "Row 1: '9' is not an answer"),
    (Tool.REDCAP, rows_with(lambda r: r[0].update(answer="Usual")), SourceError, "Export raw values"),
    (Tool.REDCAP, rows_with(lambda r: r[0].update(certainty="7")), SourceError, "is not a certainty"),
    (Tool.REDCAP, rows_with(lambda r: r[0].update(study="other")), SourceError, "not of study 'demo'"),
    (Tool.REDCAP, rows_with(lambda r: r[0].update(case_id="1e3")), SourceError, "is not a case number"),
    (Tool.REDCAP, rows_with(lambda r: r[0].update(case_id="9" * 5000)), SourceError, "is not a case number"),
    (Tool.REDCAP, rows_with(lambda r: r[0].update(answer="0", reason=" ")), RefusedError, "Case .* needs a reason"),
    (
        Tool.REDCAP,
        rows_with(lambda r: r[0].update(comment="c" * 20_001)),
        InvalidInputError,
        "Case .* 20001 characters",
    ),
    (
        Tool.LABEL_STUDIO,
        tasks_with(lambda t: t[0]["annotations"][0]["result"].append(comment_result("a\0b"))),
        InvalidInputError,
        "Case .* a null character",
    ),
    (Tool.REDCAP, lambda text: text.replace("answer", "reply", 1), SourceError, "no column 'answer'"),
    (Tool.REDCAP, lambda text: text + "1,2,3\r\n", SourceError, "more or fewer cells"),
    (Tool.REDCAP, lambda _: "", SourceError, "no column"),
]


@pytest.mark.parametrize(
    ("tool", "change", "error", "words"), WRONG, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_wrong_file_is_refused_and_nothing_of_it_is_recorded(
    exported: dict[Tool, str],
    untouched: Application,
    tool: Tool,
    change: Callable[[str], str],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        untouched.exchange.read("demo", tool, change(exported[tool]), {})
    assert votes_of(untouched) == set()


def test_another_answer_than_the_one_here_is_refused(exported: dict[Tool, str], judged: Application) -> None:
    before = votes_of(judged)
    other = rows_with(lambda rows: rows[0].update(answer="1" if rows[0]["answer"] != "1" else "2"))
    with pytest.raises(RefusedError, match="has another answer"):
        judged.exchange.read("demo", Tool.REDCAP, other(exported[Tool.REDCAP]), {})
    assert votes_of(judged) == before


def comments_of(application: Application) -> dict[tuple[int, int], str]:
    with application.database.read() as uow:
        study = uow.studies.by_slug("demo")
        return {(vote.case_id, vote.reviewer_id): vote.comment for vote in uow.judgments.votes(study.id)}


@pytest.mark.parametrize("tool", TOOLS)
def test_odd_comments_come_through_the_files_of_the_commands_as_they_are(
    exported: dict[Tool, str], unjudged: Application, tmp_path: Path, tool: Tool
) -> None:
    """Out of the tool, into a site, out of the site and into the tool again."""
    odd = iter(ODD)

    def comment(task: dict) -> None:  # type: ignore[type-arg]
        for annotation in task["annotations"]:
            kept = [one for one in annotation["result"] if one["from_name"] != "comment"]
            annotation["result"] = [*kept, comment_result(next(odd, "usual"))]

    if tool is Tool.LABEL_STUDIO:
        text = tasks_with(lambda tasks: [comment(task) for task in tasks])(exported[tool])
    else:
        text = rows_with(lambda rows: [row.update(comment=next(odd, "")) for row in rows])(exported[tool])
    (tmp_path / "votes").write_bytes(text.encode())
    given = ["--study", "demo", "--tool", tool.value, "--home", str(unjudged.settings.home)]
    assert main(["study", "votes", str(tmp_path / "votes"), *given]) == 0
    found = comments_of(unjudged)
    assert set(ODD) <= set(found.values())
    assert main(["study", "cases", *given, "--out", str(tmp_path / "out")]) == 0
    again = (tmp_path / "out" / RECORDS[tool]).read_bytes().decode()
    key = {(vote.case_id, vote.reader): vote for vote in from_tool(tool, text, "demo")}
    assert {(vote.case_id, vote.reader): vote for vote in from_tool(tool, again, "demo")} == key


def test_no_record_of_redcap_is_named_like_a_date_or_a_number(exported: dict[Tool, str]) -> None:
    for row in csv.DictReader(io.StringIO(exported[Tool.REDCAP])):
        assert row["record_id"].startswith(f"case-{row['case_id']}-")


@pytest.mark.parametrize("tool", TOOLS)
def test_any_text_survives(tool: Tool) -> None:
    case = ToolCase(7, "C001", HOSTILE, HOSTILE)  # type: ignore[arg-type]
    votes = [
        ToolVote(7, f"Reader {HOSTILE}", Answer.CANNOT_JUDGE, Certainty.UNCERTAIN, HOSTILE, HOSTILE),  # type: ignore[arg-type]
        ToolVote(7, "B", Answer.RELEVANT),  # type: ignore[arg-type]
    ]
    files = to_tool(
        tool,
        study="a",
        simulated=True,
        answers=dict.fromkeys(Answer, HOSTILE),
        readers=[vote.reader for vote in votes],
        cases=[case],
        votes=votes,
    )
    assert from_tool(tool, "\ufeff" * (tool is Tool.REDCAP) + files[RECORDS[tool]], "a") == votes


def test_what_was_skipped_in_label_studio_is_no_vote() -> None:
    task = {"data": {"study": "a", "case_id": 7}, "annotations": [{"was_cancelled": True, "result": [{"x": 1}]}]}
    assert from_tool(Tool.LABEL_STUDIO, json.dumps([task]), "a") == []


def test_the_commands_write_a_folder_once_and_read_it_again(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--study", "demo", "--tool", "redcap", "--home", str(own_home)]
    assert main(["study", "cases", *given, "--out", str(tmp_path / "out")]) == 0
    assert main(["study", "cases", *given, "--out", str(tmp_path / "out")]) == 2
    assert "there already" in capsys.readouterr().err
    assert main(["study", "votes", str(tmp_path / "out" / "records.csv"), *given]) == 0
    assert "0 of them new" in capsys.readouterr().out
    assert main(["study", "votes", str(tmp_path / "nothing.csv"), *given]) == 2
    (tmp_path / "latin.csv").write_bytes(b"\xff\xfe\x00")
    assert main(["study", "votes", str(tmp_path / "latin.csv"), *given]) == 2
    assert "it is not UTF-8" in capsys.readouterr().err
    assert main(["study", "votes", str(tmp_path / "out" / "records.csv"), *given, "--reader", "ada"]) == 2
