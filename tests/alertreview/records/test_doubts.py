"""A red check of the last import stops scoring until somebody accepts it by name, with a reason."""

import json
from pathlib import Path

import pytest

from alertreview.cli.main import main
from alertreview.records.doubts import EXIT_DOUBT, ImportDoubtError, open_checks, raised_checks, require_trusted
from alertreview.settings import load_settings
from core.errors import InvalidInputError
from db.database import Database
from tests.support.lying_records import at_time, hospital, write


@pytest.fixture
def doubted(tmp_path: Path) -> Database:
    """A site whose import has one discharge that stands for none."""
    source = write(at_time(hospital(), 3, "discharge", "9999-12-31 23:59:59"), "csv", tmp_path / "source")
    home = tmp_path / "home"
    assert main(["import", str(source), "--format", "csv", "--home", str(home)]) == 0
    return Database(load_settings(home).database_url)


def names(database: Database) -> list[str]:
    with database.read() as uow:
        stored = uow.snapshots.latest()
        assert stored is not None
        return [check["name"] for check in raised_checks(stored.import_summary) if check["severity"] == "red"]


def open_names(database: Database) -> set[str]:
    with database.read() as uow:
        return {check["name"] for check in open_checks(uow)}


def test_a_red_check_stops_scoring_and_is_told_with_what_to_do(
    doubted: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "sentinel_dates" in names(doubted)
    assert main(["score", "--home", str(tmp_path / "home")]) == EXIT_DOUBT
    said = capsys.readouterr().err
    for name in names(doubted):
        assert f"--accept {name}" in said
    assert "P3" not in said
    with doubted.read() as uow:
        assert uow.runs.published() == []


def test_accepting_needs_a_reason_and_a_check_that_is_raised(doubted: Database) -> None:
    with pytest.raises(InvalidInputError, match="needs a reason"):
        require_trusted(doubted, names(doubted), " ")
    with pytest.raises(InvalidInputError, match="no raised check 'nothing'"):
        require_trusted(doubted, [*names(doubted), "nothing"], "known")
    with pytest.raises(ImportDoubtError):
        require_trusted(doubted)


def test_what_is_accepted_stands_in_the_trail_and_holds(doubted: Database) -> None:
    first, *others = names(doubted)
    assert {first, *others} <= open_names(doubted)
    if others:
        with pytest.raises(ImportDoubtError, match=others[0]) as still:
            require_trusted(doubted, [first], "the old system writes it")
        assert first not in str(still.value)
    require_trusted(doubted, [first, *others], "the old system writes it")
    require_trusted(doubted)
    assert not {first, *others} & open_names(doubted)
    with doubted.read() as uow:
        rows = uow.audit.latest(20, action="check accepted")
        assert {json.loads(row.details)["check"] for row in rows} == {first, *others}
        assert all(json.loads(row.details)["reason"] == "the old system writes it" for row in rows)


def test_an_acceptance_does_not_cover_more_of_the_same(doubted: Database, tmp_path: Path) -> None:
    require_trusted(doubted, names(doubted), "known")
    acts = hospital()
    for patient in (3, 5, 7):
        acts = at_time(acts, patient, "discharge", "9999-12-31 23:59:59")
    source = write(acts, "csv", tmp_path / "worse")
    assert main(["import", str(source), "--format", "csv", "--home", str(tmp_path / "home")]) == 0
    assert "sentinel_dates" in open_names(doubted)
    with pytest.raises(ImportDoubtError, match="sentinel_dates"):
        require_trusted(doubted)


def test_a_hospital_that_does_not_lie_is_scored_without_a_word(tmp_path: Path) -> None:
    home, source = tmp_path / "home", write(hospital(), "csv", tmp_path / "source")
    assert main(["import", str(source), "--format", "csv", "--home", str(home)]) == 0
    with Database(load_settings(home).database_url) as database:
        require_trusted(database)


def test_a_feed_that_broke_between_two_imports_is_doubted(tmp_path: Path) -> None:
    home, acts = str(tmp_path / "home"), hospital()
    poor = [act for act in acts if act.what != "result" or act.patient % 3 == 0]
    for name, records in (("first", acts), ("same", acts), ("poor", poor)):
        source = write(records, "csv", tmp_path / name)
        assert main(["import", str(source), "--format", "csv", "--home", home]) == 0
        with Database(load_settings(Path(home)).database_url).read() as uow:
            stored = uow.snapshots.latest()
        assert stored is not None
        found = {check["name"]: check for check in raised_checks(stored.import_summary)}
        assert ("sudden_change" in found) == (name == "poor")
    assert [example.partition(":")[0] for example in found["sudden_change"]["examples"]] == [
        "LAB_RESULT of an instance"
    ]
