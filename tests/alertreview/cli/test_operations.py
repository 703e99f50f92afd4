"""The commands for whoever looks after a site, as a person runs them: prints, exit codes, never a traceback."""

import json
from pathlib import Path

import pytest

from alertreview.cli.main import main
from db import schema
from db.database import Database
from tests.support.faults import damage, run_limited


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


def head_of(home: Path) -> str:
    with Database(f"sqlite:///{home / 'alertreview.db'}") as database, database.read() as uow:
        return uow.audit.head()


@pytest.mark.checklist("C6", "A3")
def test_a_backup_is_made_tried_and_restored(
    capsys: pytest.CaptureFixture[str], own_home: Path, tmp_path: Path
) -> None:
    head = head_of(own_home)
    code, out, _ = run(capsys, "backup", "create", "--home", own_home, "--to", tmp_path / "backups", "--keep", 3)
    assert code == 0
    assert f"head {head}" in out
    folder = next((tmp_path / "backups").iterdir())
    code, out, _ = run(capsys, "backup", "verify", folder, "--home", tmp_path / "nowhere")
    assert code == 0
    assert "Report of study demo: " in out
    assert f"head {head}" in out
    code, out, _ = run(capsys, "backup", "restore", folder, "--home", tmp_path / "new")
    assert code == 0
    assert "Everybody has to sign in again." in out
    code, out, _ = run(capsys, "doctor", "--home", tmp_path / "new")
    assert code == 0
    assert "0 problems" in out
    code, _, err = run(capsys, "backup", "restore", folder, "--home", tmp_path / "new")
    assert code == 2
    assert "is not empty" in err


@pytest.mark.checklist("A3")
def test_the_trail_is_checked_against_a_head_and_written(
    capsys: pytest.CaptureFixture[str], own_home: Path, tmp_path: Path
) -> None:
    head = head_of(own_home)
    code, out, _ = run(capsys, "audit", "export", tmp_path / "trail.jsonl", "--home", own_home)
    assert code == 0
    assert f"head {head}" in out
    rows = [json.loads(line) for line in (tmp_path / "trail.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[-1]["hash"] == head
    code, out, _ = run(capsys, "audit", "verify", "--head", head, "--home", own_home)
    assert code == 0
    assert "The audit trail is intact." in out
    code, _, err = run(capsys, "audit", "verify", "--head", "f" * 64, "--home", own_home)
    assert code == 2
    assert "was cut" in err
    assert run(capsys, "audit", "verify", "--head", f" {head.upper()}", "--home", own_home)[0] == 0
    for mistyped in ("", head[:-1], f"{head}0", f"{head[:-1]}g"):
        code, _, err = run(capsys, "audit", "verify", "--head", mistyped, "--home", own_home)
        assert code == 2
        assert "is no head" in err


def test_the_schema_goes_down_and_up(capsys: pytest.CaptureFixture[str], own_home: Path) -> None:
    code, out, _ = run(capsys, "db", "status", "--home", own_home)
    assert code == 0
    assert f"Schema: {schema.head()}, this version needs {schema.head()}" in out
    code, out, _ = run(capsys, "db", "downgrade", "0007", "--home", own_home, "--discard")
    assert code == 0
    assert "Schema 0007." in out
    code, _, err = run(capsys, "db", "status", "--home", own_home)
    assert code == 2
    assert "has schema 0007" in err
    code, out, _ = run(capsys, "db", "upgrade", "--home", own_home)
    assert code == 0
    assert "Copied first: " in out
    assert f"Schema {schema.head()}." in out
    code, _, err = run(capsys, "db", "downgrade", "0815", "--home", own_home)
    assert code == 2
    assert "cannot go back to '0815'" in err
    code, _, err = run(capsys, "db", "grant", "anna", "--home", own_home)
    assert code == 2
    assert "of a PostgreSQL server" in err


@pytest.mark.checklist("C5")
def test_the_doctor_ends_with_one_when_something_has_to_be_done(
    capsys: pytest.CaptureFixture[str], own_home: Path
) -> None:
    for log in own_home.glob("alertreview.db-*"):
        log.unlink()
    damage(own_home / "alertreview.db", at=0, n_bytes=100)
    code, out, _ = run(capsys, "doctor", "--home", own_home)
    assert code == 1
    assert "not an SQLite database" in out


@pytest.mark.checklist("C5")
@pytest.mark.parametrize(
    "arguments",
    [["backup", "create"], ["audit", "export", "OUT/trail.jsonl"], ["init"], ["db", "downgrade", "0007", "--discard"]],
)
def test_a_disk_without_room_ends_in_a_plain_message_and_leaves_the_site_as_it_was(
    own_home: Path, tmp_path: Path, arguments: list[str]
) -> None:
    """No file may grow beyond a few bytes, in a process of its own."""
    with Database(f"sqlite:///{own_home / 'alertreview.db'}") as database:
        if arguments == ["init"]:
            database.downgrade("0007", discard=True)
        before = database.state()
    out = tmp_path / "out"
    out.mkdir()
    words = [word.replace("OUT", str(out)) for word in arguments]
    ended = run_limited([*words, "--home", str(own_home)], file_bytes=2048)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith("alertreview: ")
    assert ended.stderr.count("\n") == 1
    assert "Traceback" not in ended.stderr
    assert list(out.iterdir()) == []
    with Database(f"sqlite:///{own_home / 'alertreview.db'}") as database:
        assert database.state() == before
        with database.engine.connect() as connection, connection.begin():
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    assert [path.name for path in own_home.rglob("*") if path.name.startswith(".")] == []
