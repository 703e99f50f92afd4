"""The format of a source is told from its files, so that nobody has to name it; the documents' example is read so."""

import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from alertreview.cli.main import main
from alertreview.records.sources.formats import detect_format
from core.errors import SourceError
from tests.support.documents import ROOT

ROW = "patient,time,code\n1,2026-01-01,BIRTH\n"


def written(path: Path, text: str = ROW) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["data/0.parquet"], "meds"),
        (["data/train/0.parquet", "labels.csv"], "meds"),
        (["PERSON.csv", "Measurement.csv"], "omop"),
        (["cdm/2b_person.csv"], "omop"),
        (["events.csv"], "csv"),
        (["events.tsv", "more/events.txt"], "csv"),
        ([], "meds"),
    ],
)
def test_a_folder_is_what_its_files_are_called(tmp_path: Path, files: list[str], expected: str) -> None:
    for name in files:
        written(tmp_path / name)
    assert detect_format(tmp_path) == expected
    if expected != "meds":
        archive = tmp_path / "all.zip"
        with zipfile.ZipFile(archive, "w") as opened:
            for name in files:
                opened.write(tmp_path / name, name)
        assert detect_format(archive) == expected


def test_a_single_file_is_a_long_table_and_a_url_a_database(tmp_path: Path) -> None:
    assert detect_format(written(tmp_path / "events.csv")) == "csv"
    assert detect_format("postgresql+psycopg://reader@host/cdm") == "omop"


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file or folder"):
        detect_format(tmp_path / "nowhere")


def archived(path: Path) -> Path:
    """Write an archive with a table of an OMOP CDM."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as opened:
            opened.writestr("person.csv", "person_id\n1\n")
    else:
        with tarfile.open(path, "w:gz" if path.suffix != ".tar" else "w") as tar:
            tar.addfile(tarfile.TarInfo("person.csv"))
    return path


@pytest.mark.parametrize(
    ("names", "told", "advice"),
    [
        (["0.zip"], r"0\.zip", "Give the path of the archive itself"),
        (["0.zip", "1.zip"], r"0\.zip and 1 more", "Give the path of the archive itself"),
        (["0.tar.gz"], r"0\.tar\.gz", "Unpack it, and give what was inside"),
        (["0.TGZ", "1.tar"], r"0\.TGZ and 1 more", "Unpack it, and give what was inside"),
    ],
)
def test_tables_in_an_archive_inside_are_refused_with_what_to_give_instead(
    tmp_path: Path, names: list[str], told: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, outer = tmp_path / "cdm", tmp_path / "outer.zip"
    archives = [archived(folder / "2026" / name) for name in names]
    with zipfile.ZipFile(outer, "w") as opened:
        for archive in archives:
            opened.write(archive, archive.relative_to(folder))
    for source, wanted, formats in (
        (folder, advice, ("omop", "csv", "fhir", "meds")),
        (outer, "Unpack it, and give what was inside", ("omop", "csv", "fhir")),
    ):
        for given in ([], *(["--format", name] for name in formats)):
            assert main(["mapping", "check", str(source), *given]) == 2
            said = capsys.readouterr().err
            assert re.search(rf"{source.name}: holds no table, only the archive 2026.{told}\. {wanted}", said), said
    if names == ["0.zip"]:
        assert detect_format(archives[0]) == "omop"


@pytest.fixture(scope="module")
def shown_table() -> str:
    """The long table that the page on data shows."""
    found = re.search(r"```csv\n(.*?)```", (ROOT / "docs" / "data.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_table_in_the_documents_is_recognised_to_its_last_row_without_naming_its_format(
    shown_table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "records.csv", shown_table)
    assert main(["mapping", "check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "Mapping csv: 100% of" in said
    for kind in ("ADMISSION", "DISCHARGE", "UNIT", "LAB_ORDER", "LAB_RESULT", "MEDICATION_ORDER", "ADMINISTRATION"):
        assert re.search(rf"^ *{kind} +[1-9]", said, re.MULTILINE), kind


def test_a_named_format_is_taken_at_its_word(
    shown_table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "records.csv", shown_table)
    assert main(["mapping", "check", str(file), "--format", "omop"]) == 2
    assert "no table person" in capsys.readouterr().err


def test_a_draft_says_how_to_import_with_it(
    shown_table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, own = written(tmp_path / "records.csv", shown_table), tmp_path / "own.yaml"
    assert main(["mapping", "suggest", str(file), "--out", str(own)]) == 0
    told = re.search(r"then: alertreview (import .*)$", capsys.readouterr().out, re.MULTILINE)
    assert told is not None
    monkeypatch.setenv("ALERTREVIEW_HOME", str(tmp_path / "home"))
    assert main(told[1].split()) == 0
