"""The command line as a person uses it: every command by name, and one line with a code when something is wrong."""

import contextlib
import csv
import io
import json
import re
import shutil
import sqlite3
from pathlib import Path

import click
import pandas as pd
import pytest
from click.testing import CliRunner

from alertreview.cli import main as cli_module
from alertreview.cli.console import progress_bar
from alertreview.cli.main import cli, main
from tests.support.demo_site import SMALL


def run(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def commands(group: click.Group, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, command in group.commands.items():
        found.append((*before, name))
        if isinstance(command, click.Group):
            found += commands(command, (*before, name))
    return found


@pytest.mark.parametrize("path", commands(cli), ids=" ".join)
def test_every_command_has_help(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*path, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    assert command.help
    assert len(command.help) > 40
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            described = parameter.help or parameter.name in {"output_format", "split"}
            assert described or parameter.type.name == "choice", parameter.name


def test_the_issue_of_a_first_look_is_answered_without_a_site(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert "alertreview" in capsys.readouterr().out
    assert run("score", "--list-scorers") == 0
    assert "softhad" in capsys.readouterr().out


def test_alerts_as_json_have_the_promised_fields(demo_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("alerts", "--top", "20", "--format", "json", "--home", demo_home) == 0
    alerts = json.loads(capsys.readouterr().out)
    assert len(alerts) == 20
    promised = {
        "rank",
        "alert_id",
        "task",
        "kind",
        "decision",
        "patient_id",
        "snapshot_at",
        "score",
        "scaled_score",
        "support",
    }
    assert all(promised <= alert.keys() for alert in alerts)
    assert [alert["rank"] for alert in alerts] == list(range(1, 21))
    scores = [alert["scaled_score"] for alert in alerts]
    assert scores == sorted(scores, reverse=True)
    assert all(alert["simulated"] for alert in alerts)


def test_alerts_of_another_scorer_are_its_own_list_and_an_unknown_one_is_named(
    demo_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ids(*options: object) -> list[int]:
        assert run("alerts", "--top", "20", "--format", "json", "--home", demo_home, *options) == 0
        return [alert["alert_id"] for alert in json.loads(capsys.readouterr().out)]

    assert ids("--scorer", "shared") == ids()
    assert not set(ids("--scorer", "logistic")) & set(ids())
    assert run("alerts", "--scorer", "svm", "--home", demo_home) == 2
    assert "has no scorer 'svm'; it has shared, " in capsys.readouterr().err


def test_alerts_by_turns_alternate_between_the_lists(demo_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*options: object) -> list[tuple[str, int]]:
        assert run("alerts", "--top", "6", "--format", "json", "--home", demo_home, *options) == 0
        return [(alert["decision"], alert["alert_id"]) for alert in json.loads(capsys.readouterr().out)]

    turns = listed("--order", "turns")
    for decision in ("commission", "omission"):
        mine = [one for one in turns if one[0] == decision]
        # Not always every second one: an alert whose window was cut short leaves its turn to the other list.
        assert len(mine) >= 2
        assert mine == listed("--decision", decision)[: len(mine)]
    assert {decision for decision, _ in turns[:2]} == {"commission", "omission"}


def test_alerts_as_csv_and_table_hold_the_same_alerts(demo_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("alerts", "--top", "5", "--format", "csv", "--decision", "omission", "--home", demo_home) == 0
    table = capsys.readouterr().out
    assert run("alerts", "--top", "5", "--decision", "omission", "--home", demo_home) == 0
    text = capsys.readouterr().out
    assert text.startswith("Simulated data")
    rows = table.strip().splitlines()[1:]
    assert len(rows) == 5
    for row in rows:
        assert row.split(",")[1] in text


def test_the_report_is_written_as_json_html_and_pdf(
    demo_home: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    formats = {
        "report.json": ((), b"{"),
        "report.PDF": ((), b"%PDF"),
        "report": (("--format", "html"), b"<!DOCTYPE html>"),
    }
    for name, (asked, beginning) in formats.items():
        out = tmp_path / name
        assert run("report", "--study", "demo", *asked, "--out", out, "--home", demo_home) == 0
        assert out.read_bytes()[: len(beginning)].lower() == beginning.lower()
    capsysbinary.readouterr()
    assert run("report", "--study", "demo", "--home", demo_home) == 0
    assert json.loads(capsysbinary.readouterr().out)["n_cases"] == SMALL.n_cases


def test_exports_and_recompute_go_round(own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", "labels", "--study", "demo", "--out", tmp_path / "labels.csv", "--home", own_home) == 0
    assert f"{3 * SMALL.n_cases - SMALL.n_waiting} rows" in capsys.readouterr().out
    assert run("export", "labels", "--study", "demo", "--out", tmp_path / "labels.parquet", "--home", own_home) == 0
    assert (tmp_path / "labels.parquet").read_bytes().startswith(b"PAR1")
    capsys.readouterr()
    assert run("export", "labels", "--study", "demo", "--out", "-", "--home", own_home) == 0
    assert capsys.readouterr().out == (tmp_path / "labels.csv").read_bytes().decode()
    assert not Path("-").exists()
    assert run("export", "labels", "--study", "demo", "--out", "-", "--format", "meds", "--home", own_home) == 2
    assert "name a folder" in capsys.readouterr().err
    assert run("export", "study", "--study", "demo", "--out", tmp_path / "study", "--home", own_home) == 0
    assert run("report", "--study", "demo", "--out", tmp_path / "stored.json", "--home", own_home) == 0
    capsys.readouterr()
    assert run("recompute", tmp_path / "study", "--out", "-") == 0
    assert json.loads(capsys.readouterr().out)
    assert run("recompute", tmp_path / "study", "--out", tmp_path / "again.json") == 0
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "stored.json").read_bytes()


def plan_before_a_pilot(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plan without a judged study: what is refused, and the cases to tell two scorers apart, in each format."""
    before = ("study", "plan", "--home", home, "--cases", "12", "--half-width", "0.3", "--format", "csv")
    assert run(*before, "--auc", "0.8") == 2
    assert run(*before, "--study", "ward", "--auc", "0.8", "--relevant", "0.2") == 2
    assert "Name a judged study with --study, or give --auc and --relevant" in capsys.readouterr().err
    assert run(*before, "--auc", "0.8", "--relevant", "20") == 2
    assert "share of relevant candidates 20 is not above 0 and below 1" in capsys.readouterr().err
    assert run(*before, "--auc", "0.8", "--relevant", "0.2", "--compare", "0.8", "0.7") == 0
    found = capsys.readouterr().out.splitlines()
    assert found[1].startswith("as planned,12,4 + 4 + 4,")
    assert len(found) == 5
    number = found[-1].rpartition(",")[2]
    assert {line.rpartition(",")[2] for line in found} == {"cases_to_compare", number}
    assert run(*before, "--auc", "0.8", "--relevant", "0.2", "--compare", "0.8", "0.7", "--format", "table") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"{number} decided cases tell an AUC of 0.8 from one of 0.7, 8 times in 10."


def test_from_simulated_records_to_alerts_command_by_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], demo_home: Path
) -> None:
    home, source = tmp_path / "home", demo_home / "simulated-source"
    assert run("init", "--home", home) == 0
    assert run("import", source, "--home", home, "--report", tmp_path / "import.html") == 0
    first = capsys.readouterr().out
    assert "patient-state instances" in first
    assert "<html" in (tmp_path / "import.html").read_text(encoding="utf-8").lower()
    assert run("import", source, "--home", home) == 0
    again = capsys.readouterr().out
    assert "Already imported; nothing changed." in again
    assert "keep the words" not in again
    with contextlib.closing(sqlite3.connect(home / "alertreview.db")) as former:
        former.execute("UPDATE cohort_snapshot SET import_summary = json_remove(import_summary, '$.words')")
        former.commit()
    assert run("import", source, "--home", home) == 0
    assert "Decisions keep the words of that import" in capsys.readouterr().out
    assert run("import", source, "--home", home, "--report", "-") == 0
    assert json.loads(capsys.readouterr().out)["source"]
    assert run("mapping", "suggest", source, "--out", "-") == 0
    assert "rules:" in capsys.readouterr().out
    assert run("score", "--home", home, "--nodes", "40", "--graphs", "1") == 0
    assert "Run 1 is published" in capsys.readouterr().out
    assert run("score", "--home", home, "--nodes", "40", "--graphs", "1") == 0
    assert "nothing was scored. --again scores once more." in capsys.readouterr().out
    assert run("score", "--home", home, "--nodes", "40", "--graphs", "1", "--again") == 0
    assert "Run 2 is published" in capsys.readouterr().out
    assert run("score", "--home", home, "--nodes", "40", "--graphs", "1", "--seed", "2") == 0
    assert run("run", "list", "--format", "json", "--home", home) == 0
    *_, listed = capsys.readouterr().out.partition("[")
    assert [one["run"] for one in json.loads("[" + listed)] == [3, 2, 1]
    assert run("alerts", "--home", home, "--top", "3") == 0
    study = ["study", "create", "--study", "ward", "--title", "Ward", "--cases", "12", "--home", home]
    assert run(*study, "--reader", "A", "--reader", "B") == 2
    assert "each case needs 3" in capsys.readouterr().err
    assert run(*study, "--reader", "A", "--reader", "B", "--reader", "A") == 2
    assert run(*study, "--reader", "A", "--reader", "B", "--reader", "C") == 0
    assert "12 cases, 3 readers each" in capsys.readouterr().out
    assert run("study", "list", "--format", "csv", "--home", home) == 0
    assert next(csv.DictReader(io.StringIO(capsys.readouterr().out)))["study"] == "ward"
    assert run("study", "list", "--home", home) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[:3] == ["study", "title", "status"]
    assert run("report", "--study", "ward", "--home", home) == 0
    assert run("study", "lock", "--study", "ward", "--home", home) == 0
    assert run("study", "lock", "--study", "ward", "--home", home) == 2
    assert run("study", "plan", "--study", "ward", "--home", home) == 2
    assert "Judge a pilot of 30 cases first." in capsys.readouterr().err
    plan_before_a_pilot(home, capsys)
    other = ["study", "create", "--study", "tops", "--title", "Tops", "--cases", "12", "--home", home, "--repeats", "2"]
    team = ("--reader", "A", "--reader", "B", "--reader", "C")
    assert run(*other, *team, "--quantiles", "half") == 2
    assert "--quantiles is 'half'" in capsys.readouterr().err
    assert run(*other, *team, "--quantiles", "0.5,0.9", "--half-in-largest") == 0
    assert "12 cases" in capsys.readouterr().out


def test_simulate_writes_a_data_set_and_never_over_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.simulation import hospital

    monkeypatch.setitem(hospital.SIZES, "small", {"n_patients": 12, "n_days": 12})
    assert run("simulate", "--out", tmp_path / "meds") == 0
    assert "no real patient" in capsys.readouterr().out
    assert (tmp_path / "meds" / "metadata" / "codes.parquet").exists()
    noisy = ("--unit-noise", "0.5", "--drift", "1", "--missing-rate", "0.2", "--planted-rate", "0.1")
    assert run("simulate", *noisy, "--out", tmp_path / "noisy") == 0
    assert "no real patient" in capsys.readouterr().out
    codes = set(pd.read_parquet(tmp_path / "noisy" / "data")["code"])
    assert "LAB//RESULT//Glucose//mmol/L" in codes
    assert run("simulate", "--out", tmp_path / "meds") == 2
    assert "exists already" in capsys.readouterr().err


def only_line(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def meds_like(folder: Path, frame: pd.DataFrame | None) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "metadata").mkdir()
    if frame is not None:
        frame.to_parquet(folder / "data" / "0.parquet")
    return folder


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda folder: folder / "missing", ["missing"]),
        (lambda folder: folder, ["data"]),
        (lambda folder: meds_like(folder / "m", None), ["parquet"]),
        (lambda folder: meds_like(folder / "m", pd.DataFrame({"subject_id": [1]})), ["0.parquet", "code"]),
        (
            lambda folder: meds_like(
                folder / "m",
                pd.DataFrame({"subject_id": [], "time": [], "code": [], "numeric_value": []}).astype(
                    {"subject_id": "int64", "time": "datetime64[us]", "code": "str", "numeric_value": "float32"}
                ),
            ),
            ["no"],
        ),
        (
            lambda folder: meds_like(
                folder / "m",
                pd.DataFrame(
                    {
                        "subject_id": [1],
                        "time": pd.to_datetime(["2026-01-01"]).astype("datetime64[us]"),
                        "code": ["UNHEARD//OF"],
                        "numeric_value": [1.0],
                    }
                ),
            ),
            ["UNHEARD//OF", "--mapping"],
        ),
    ],
    ids=["missing", "no data set", "no shard", "no columns", "empty", "nothing recognised"],
)
def test_a_source_that_cannot_be_read_is_one_line_and_code_2(
    make: object, parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make(tmp_path / "source" if (tmp_path / "source").mkdir() is None else tmp_path)  # type: ignore[operator]
    home = tmp_path / "home"
    assert run("import", source, "--home", home) == 2
    line = only_line(capsys)
    assert all(part.lower() in line.lower() for part in parts), line
    assert not list((home / "snapshots").glob("*")) if (home / "snapshots").exists() else True


def test_a_database_of_another_program_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE bookmarks (id INTEGER)")
    connection.close()
    before = other.read_bytes()
    for command in (["init"], ["alerts"], ["score"]):
        (tmp_path / "home").mkdir(exist_ok=True)
        assert run(*command, "--home", tmp_path / "home", "--database", f"sqlite:///{other}") == 2
        assert "other.db" in only_line(capsys)
    assert other.read_bytes() == before


@pytest.mark.parametrize("command", ["alerts", "score", "dashboard"])
def test_a_home_that_is_not_there_is_named(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--home", tmp_path / "nowhere") == 2
    assert "alertreview init" in only_line(capsys)


def test_an_unknown_study_is_one_line(demo_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", "--study", "nothing", "--home", demo_home) == 2
    assert "no study 'nothing'" in only_line(capsys)


def test_a_wrong_option_is_explained_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("alerts", "--top", "many") == 2
    assert "Invalid value for '--top'" in capsys.readouterr().err


def test_the_unforeseen_is_one_line_and_its_place_in_the_log_without_the_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("Canary Patient 4711")

    monkeypatch.setattr("alertreview.cli.options.load_settings", broken)
    assert run("init", "--home", tmp_path) == 1
    line = only_line(capsys)
    assert "unexpected error (KeyError)" in line
    assert "alertreview.log" in line
    log = (tmp_path / "alertreview.log").read_text(encoding="utf-8")
    assert "in broken" in log
    assert "Canary" not in line + log


@pytest.mark.parametrize("path", commands(cli), ids=" ".join)
def test_every_number_has_bounds_and_no_file_an_empty_name(path: tuple[str, ...]) -> None:
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    for parameter in command.params:
        kind = parameter.type
        assert not isinstance(kind, click.types.IntParamType) or isinstance(kind, click.IntRange), parameter.name
        if isinstance(kind, click.IntRange):
            assert kind.max is not None, parameter.name
        if isinstance(kind, click.Path):
            with pytest.raises(click.BadParameter, match="is empty"):
                kind.convert("", parameter, None)
            if not kind.allow_dash:
                with pytest.raises(click.BadParameter, match="'-' means standard output"):
                    kind.convert("-", parameter, None)


DASHES = {
    ("import",): None,
    ("report",): ("--study", "demo"),
    ("export", "labels"): ("--study", "demo"),
    ("recompute",): None,
    ("mapping", "suggest"): None,
    ("tasks", "export"): (),
    ("metrics",): (),
}
"""Commands for which `-` is standard output, with what else they need on the demonstration, or None where a test of
their own writes there.
"""


def test_a_dash_is_standard_output_and_no_file(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    found = {path for path in commands(cli) if any(getattr(one.type, "allow_dash", False) for one in found_in(path))}
    assert found == DASHES.keys()
    monkeypatch.chdir(tmp_path)
    for path, needed in DASHES.items():
        if needed is not None:
            assert run(*path, *needed, "--out", "-", "--home", own_home) == 0
            assert len(capsysbinary.readouterr().out) > 100
    assert list(tmp_path.iterdir()) == [own_home]


def found_in(path: tuple[str, ...]) -> list[click.Parameter]:
    command: click.Command = cli
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    return command.params


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "--study", "\udcff"), "'?' is not text in UTF-8"),
        (("import", ""), "SOURCE is empty"),
        (("import", "x" * 500), "File name too long: xxx"),
        (("tasks", "export", "--out", "/"), "/: cannot be written"),
        (("score", "--seed", str(2**32)), "is not in the range"),
        (("sensitivity", "--run", str(2**63)), "is not in the range"),
    ],
)
def test_what_the_system_cannot_take_is_said(
    arguments: tuple[str, ...], words: str, demo_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, "--home", demo_home) == 2
    assert words in capsys.readouterr().err


def test_an_interruption_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("alertreview.cli.options.load_settings", interrupted)
    assert run("init", "--home", tmp_path) == 130
    assert "goes on from here" in only_line(capsys)


def test_the_dashboard_is_started_as_a_program_of_its_own(demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: dict[str, object] = {}

    def record(program: str, arguments: list[str], environment: dict[str, str]) -> None:
        started.update(arguments=arguments, home=environment["ALERTREVIEW_HOME"], path=environment["PYTHONPATH"])

    monkeypatch.setattr("os.execve", record)
    assert run("dashboard", "--home", demo_home, "--port", "8765", "--no-browser") == 0
    assert started["home"] == str(demo_home)
    assert list(started["arguments"])[1:] == ["-P", "-m", "dashboard", "--port", "8765"]  # type: ignore[call-overload]
    assert str(started["path"]).split(":")[0] == str(Path(cli_module.__file__).parents[2])
    assert run("dashboard", "--home", demo_home, "--browser") == 0
    assert "--browser" in started["arguments"]  # type: ignore[operator]


def test_pages_name_the_database_in_commands_only_where_the_home_does_not_lead_to_it(
    demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, str]] = []
    monkeypatch.setattr("os.execve", lambda _program, _arguments, environment: started.append(environment))
    monkeypatch.delenv("ALERTREVIEW_DATABASE", raising=False)
    own = f"sqlite:///{demo_home / 'alertreview.db'}"
    other = f"sqlite:///{tmp_path / 'other.db'}"
    shutil.copy(demo_home / "alertreview.db", tmp_path / "other.db")
    assert run("dashboard", "--home", demo_home, "--no-browser") == 0
    assert run("dashboard", "--home", demo_home, "--database", own, "--no-browser") == 0
    assert run("dashboard", "--home", demo_home, "--database", other, "--no-browser") == 0
    assert [environment.get("ALERTREVIEW_DATABASE") for environment in started] == [None, None, other]


def test_a_site_without_a_task_is_told_why_there_is_nothing_to_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")
    (tmp_path / "mini.csv").write_text(guide.split("```csv\n")[1].split("```")[0])
    assert run("import", tmp_path / "mini.csv", "--home", tmp_path / "site") == 0
    capsys.readouterr()
    assert run("score", "--home", tmp_path / "site") != 0
    said = capsys.readouterr().err
    assert "The import has no task to score" in said
    assert "alertreview tasks list" in said
    assert run("tasks", "list", "--home", tmp_path / "site") == 0


def read_as_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> dict[str, object]:
    assert run(*arguments) == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


SPEAKS_ONLY = {
    ("demo",): "builds a site and serves it",
    ("dashboard",): "serves",
    ("init",): "makes a folder",
    ("import",): "--report - prints the import report as JSON",
    ("study", "cases"): "writes files of another tool",
    ("sign-report",): "report writes the signatures",
    ("recompute",): "always writes JSON",
    ("mapping", "check"): "--format names the format of the source",
    ("mapping", "groups"): "writes YAML",
    ("mapping", "suggest"): "writes YAML",
    ("tasks", "export"): "writes YAML",
    ("simulate",): "writes a data set",
    ("metrics",): "writes what Prometheus reads",
    ("audit", "export"): "writes JSON lines",
}
"""Commands without JSON, and where a program finds instead what they did."""


def test_every_command_that_answers_a_question_answers_a_program_too() -> None:
    without = set()
    for path in commands(cli):
        command: click.Command = cli
        for name in path:
            command = command.commands[name]  # type: ignore[attr-defined]
        formats = {choice for one in command.params for choice in getattr(one.type, "choices", ())}
        if not isinstance(command, click.Group) and not formats & {"json", "jsonl"} and path[0] != "reproduce":
            without.add(path)
    assert without == SPEAKS_ONLY.keys()


def test_what_is_said_of_a_site_is_said_in_json_too(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ("--format", "json", "--home", own_home)
    schema = read_as_json(capsys, "db", "status", *home)
    trail = read_as_json(capsys, "audit", "verify", *home)
    assert schema["schema"] == schema["needed"]
    assert (schema["audit_rows"], schema["audit_head"]) == (trail["audit_rows"], trail["audit_head"])
    findings = read_as_json(capsys, "doctor", *home)
    levels = [finding["level"] for finding in findings["findings"]]  # type: ignore[attr-defined]
    assert (levels.count("problem"), levels.count("warning")) == (findings["problems"], findings["warnings"])
    assert "softhad" in read_as_json(capsys, "score", "--list-scorers", *home)
    assert "people" in read_as_json(capsys, "digest", "--dry-run", *home)
    assert isinstance(read_as_json(capsys, "account", "list", *home), list)
    assert read_as_json(capsys, "score", "--scorer", "softhad", *home)["is_new"] in (True, False)


def test_what_is_done_to_people_studies_and_tasks_is_said_in_json_too(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = ("--format", "json", "--home", own_home)
    made = read_as_json(capsys, "-q", "account", "create", "Eve", "--role", "reviewer", *home)
    assert made["login"] == "eve"
    changed = read_as_json(capsys, "account", "role", "eve", "reviewer", "coordinator", "--unit", "A", *home)
    assert (changed["roles"], changed["units"]) == (["reviewer", "coordinator"], ["A"])
    code = read_as_json(capsys, "account", "reset", "eve", *home)["code"]
    assert code
    assert code != made["code"]
    token = read_as_json(capsys, "account", "token", "create", "eve", "--purpose", "test", *home)
    assert token["token"]
    number = read_as_json(capsys, "account", "token", "list", *home)[0]["token"]  # type: ignore[index]
    assert read_as_json(capsys, "account", "token", "revoke", str(number), *home)["state"] == "revoked"
    assert read_as_json(capsys, "account", "disable", "eve", *home)["active"] is False
    study = ("study", "create", "--study", "ward", "--title", "Ward", "--reader", "Ann", "--readers-per-case", "1")
    created = read_as_json(capsys, *study, "--cases", "12", "--seed", "1", *home)
    assert created == {"study": "ward", "cases": 12, "readers_per_case": 1, "readers": 1}
    assert read_as_json(capsys, "study", "lock", "--study", "ward", *home)["status"] == "locked"
    assert run("tasks", "export", "--out", tmp_path / "tasks.yaml", "--home", own_home) == 0
    capsys.readouterr()
    assert read_as_json(capsys, "tasks", "apply", tmp_path / "tasks.yaml", *home) == {"changed": []}
    assert read_as_json(capsys, "db", "upgrade", *home)["copy"] is None


def test_quiet_prints_what_was_asked_for_and_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ("--home", tmp_path / "site")
    assert run("-q", "init", *home) == 0
    assert capsys.readouterr() == ("", "")
    assert run("--quiet", "account", "create", "Ada", "--role", "administrator", *home) == 0
    said = capsys.readouterr()
    assert said.out.startswith("One-time code")
    assert said.err == ""
    assert run("-q", "account", "list", *home) == 0
    assert "Ada" in capsys.readouterr().out
    assert run("-q", "account", "disable", "nobody", *home) == 2
    assert "nobody" in capsys.readouterr().err
    assert run("-q", "-v", "account", "list", *home) == 2
    assert "mutually exclusive" in capsys.readouterr().err


def test_verbose_adds_home_progress_and_time_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("account", "list", "--home", tmp_path) != 0
    assert run("init", "--home", tmp_path / "site") == 0
    capsys.readouterr()
    assert run("account", "list", "--home", tmp_path / "site") == 0
    plain = capsys.readouterr()
    assert run("-v", "account", "list", "--home", tmp_path / "site") == 0
    verbose = capsys.readouterr()
    assert verbose.out == plain.out
    assert plain.err == ""
    assert re.fullmatch(rf"Home: {tmp_path}/site\nalertreview \S+ account took \d+\.\d s\.\n", verbose.err)


@pytest.mark.parametrize(("flags", "shown"), [([], []), (["-v"], [10, 50, 100]), (["-q"], [])])
def test_progress_without_a_terminal_is_told_in_lines_when_asked_for(flags: list[str], shown: list[int]) -> None:
    @click.command()
    def count() -> None:
        with progress_bar("Counting") as progress:
            for done in (0, 10, 19, 50, 51, 100):
                progress(done, 100)

    group = click.Group("alertreview", params=cli.params, callback=None)
    group.add_command(count, "count")
    result = CliRunner().invoke(group, [*flags, "count"])
    assert result.stderr == "".join(f"Counting: {tenth} %\n" for tenth in shown)
