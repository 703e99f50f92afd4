"""Downloads of the Export page on a whole site: blinding, counts, names, bytes, and the list of past exports."""

import csv
import hashlib
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from alertreview.application import Application, open_application
from alertreview.exports import exports
from alertreview.exports.formats import checksums, folder_digest, zip_folder
from alertreview.exports.recompute import recompute
from alertreview.reports.signing import canonical_json
from core.errors import InvalidInputError, NotFoundError, RefusedError, SourceError
from core.vocabulary import Answer, CaseState, Role
from tests.support.demo_site import SMALL

FORMATS = ("csv", "csv-excel", "xlsx", "parquet", "jsonl")
N_VOTES = 3 * SMALL.n_cases - SMALL.n_waiting


@pytest.fixture
def own(own_home: Path) -> Iterator[Application]:
    with open_application(own_home) as application:
        yield application


def visitor(application: Application) -> int:
    return next(person.person_id for person in application.site.people() if not person.simulated)


def files_of(home: Path) -> set[str]:
    """Everything in the home but what the database itself writes."""
    return {str(path.relative_to(home)) for path in home.rglob("*") if not path.name.startswith("alertreview.db")}


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_a_reader_with_cases_left_sees_counts_only_and_gets_no_file(application: Application) -> None:
    person = visitor(application)
    assert application.review.is_blinded("demo", person)
    report = application.reports.report("demo", person)
    assert report.hidden
    assert "hidden" in report.headline[0]
    assert report.primary.scorers == report.primary.alert_rates == report.readers == ()
    assert (report.n_cases, report.flow.n_decided) == (SMALL.n_cases, 0)
    for act in (
        lambda: application.exports.preview("demo", "csv", "long", person_id=person),
        lambda: application.exports.labels_download("demo", "csv", "long", person_id=person),
        lambda: application.exports.study_download("demo", ["csv"], person_id=person),
    ):
        with pytest.raises(RefusedError, match=r"others' answers.*until the study is locked"):
            act()


def test_the_last_judgment_or_the_lock_ends_the_blinding(own: Application) -> None:
    person = visitor(own)
    with own.database.write() as uow:
        outsider = uow.people.add("Statistician", Role.RESEARCHER, created_at=uow.people.get(person).created_at).id
        uow.commit()
    assert not own.review.is_blinded("demo", outsider)
    assert not own.review.is_blinded("demo", None)
    number = 0
    while (case := own.review.next_case("demo", person)) is not None:
        assert own.review.is_blinded("demo", person)
        number += 1
        own.review.submit_judgment(
            "demo", person, case.case_id, answer=Answer.USUAL, version_seen=0, form_key=f"vote {number}"
        )
    assert number == SMALL.n_waiting
    assert not own.review.is_blinded("demo", person)
    assert not own.reports.report("demo", person).hidden
    simulated = next(one.person_id for one in own.site.people() if one.simulated)
    own.studies.lock_study("demo")
    assert not own.review.is_blinded("demo", simulated)


def test_a_download_is_the_file_of_the_command_line_and_leaves_nothing_behind(
    own: Application, own_home: Path, tmp_path: Path
) -> None:
    before = files_of(own_home)
    written = [("long", "judgments", output_format) for output_format in FORMATS] + [("wide", "labels", "csv")]
    for layout, table, output_format in written:
        name, content = own.exports.labels_download("demo", output_format, layout)
        suffix = {"csv-excel": "excel.csv"}.get(output_format, output_format)
        assert name == f"demo-{table}.{suffix}"
        own.exports.labels("demo", output_format, layout, tmp_path / name)
        assert (tmp_path / name).read_bytes() == content
    assert files_of(own_home) == before
    assert {path.name for path in tmp_path.iterdir()} - {own_home.name} == {
        *(f"demo-judgments.{suffix}" for suffix in ("csv", "excel.csv", "xlsx", "parquet", "jsonl")),
        "demo-labels.csv",
    }
    votes, labels = (rows_of((tmp_path / f"demo-{one}.csv").read_bytes()) for one in ("judgments", "labels"))
    assert (len(votes), len(labels)) == (N_VOTES, SMALL.n_cases)
    for column in ("reader", "case_id", "alert_id", "task_key", "run_id", "rubric_version"):
        assert all(row[column] or column == "alert_id" for row in votes), column


def test_an_export_that_fails_half_way_leaves_no_file_and_no_trace(
    own: Application, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_place: object, **_options: object) -> object:
        raise OSError(28, "No space left on device")

    before = files_of(own_home)
    monkeypatch.setattr(exports, "write_table", full)
    for act in (
        lambda: own.exports.labels_download("demo", "csv", "long"),
        lambda: own.exports.labels("demo", "csv", "long", tmp_path / "labels.csv"),
    ):
        with pytest.raises(SourceError, match="No space left on device"):
            act()
    assert files_of(own_home) == before
    assert {path.name for path in tmp_path.iterdir()} == {own_home.name}
    assert own.exports.past("demo") == ()


def test_counts_before_writing_are_the_rows_that_get_written(own: Application) -> None:
    for layout in ("long", "wide"):
        preview = own.exports.preview("demo", "csv", layout)
        for states in ((), (CaseState.OPEN,), (CaseState.MAJORITY, CaseState.UNDETERMINED), (CaseState.ADJUDICATED,)):
            rows = rows_of(own.exports.labels_download("demo", "csv", layout, states=states)[1])
            assert len(rows) == preview.chosen(states)
            if states and layout == "wide":
                assert {row["state"] for row in rows} <= {state.value for state in states}
    assert preview.n_rows == {
        state: Counter(case.state for case in own.studies.case_rows("demo"))[state] for state in CaseState
    }
    assert preview.n_rows[CaseState.OPEN] == SMALL.n_waiting
    assert preview.chosen([CaseState.ADJUDICATED]) == 0


def test_meds_labels_come_as_a_zip_with_as_many_rows_as_counted(own: Application) -> None:
    name, content = own.exports.labels_download("demo", "meds", "long")
    assert name == "demo-meds-labels.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        files = [one for one in archive.namelist() if one.endswith(".parquet")]
        tables = [pd.read_parquet(io.BytesIO(archive.read(one))) for one in files]
    assert sum(map(len, tables)) == own.exports.preview("demo", "meds", "long").chosen(()) > 0
    assert own.exports.labels_download("demo", "meds", "wide")[1] == content


def test_everything_for_a_paper_can_be_checked_and_computed_again(own: Application, tmp_path: Path) -> None:
    person = visitor(own)
    own.studies.lock_study("demo")
    own.reports.sign("demo", person, "I approve this report")
    report = own.reports.report("demo", person)
    assert b"I approve this report" in own.reports.file(report, "html")
    assert own.reports.file(report, "json") == canonical_json(report)
    name, content = own.exports.study_download("demo", ["csv", "parquet"], person_id=person)
    assert name == "demo-study.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "demo-study"
    assert canonical_json(recompute(folder)) == (folder / "report.json").read_bytes()
    assert "I approve this report" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")
    listed = (folder / "SHA256SUMS").read_text(encoding="utf-8")
    (folder / "SHA256SUMS").unlink()
    assert checksums(folder) == listed
    described = {(row["table"], row["column"]) for row in rows_of((folder / "dictionary.csv").read_bytes())}
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for file in manifest["files"]:
        if file["format"] == "csv" and file["table"] != "dictionary":
            header = (folder / file["name"]).read_text(encoding="utf-8").splitlines()[0]
            assert {(file["table"], column.strip('"')) for column in header.split(",")} <= described
    (past,) = own.exports.past("demo")
    assert (past.actor, past.file_name, past.what) == (f"person {person}", name, "study, csv, parquet")
    assert past.sha256 == hashlib.sha256(content).hexdigest()


def test_past_exports_name_file_rows_and_checksum_newest_first(own: Application, tmp_path: Path) -> None:
    assert own.exports.past("demo") == ()
    own.exports.labels("demo", "csv", "wide", tmp_path / "mine.csv")
    own.exports.labels("demo", "meds", "long", tmp_path / "meds")
    _, content = own.exports.labels_download("demo", "jsonl", "long", states=(CaseState.MAJORITY,))
    newest, meds, oldest = own.exports.past("demo")
    assert (oldest.file_name, oldest.n_rows, oldest.actor) == ("mine.csv", SMALL.n_cases, "command line")
    assert oldest.sha256 == hashlib.sha256((tmp_path / "mine.csv").read_bytes()).hexdigest()
    assert (meds.file_name, meds.sha256) == ("meds", folder_digest(tmp_path / "meds"))
    assert (newest.what, newest.sha256) == ("labels, long, jsonl", hashlib.sha256(content).hexdigest())
    assert newest.n_rows == len(content.decode().splitlines())
    assert own.exports.past("demo", limit=1) == (newest,)
    assert own.exports.past("other") == ()
    with own.database.read() as uow:
        uow.audit.require_whole()


@pytest.mark.parametrize(
    ("output_format", "layout", "part"),
    [("doc", "long", "no format 'doc'. Formats are csv"), ("csv", "tall", "no layout 'tall'. Layouts are long, wide")],
)
def test_what_cannot_be_written_is_refused_with_what_can(
    application: Application, output_format: str, layout: str, part: str
) -> None:
    for act in (application.exports.preview, application.exports.labels_download):
        with pytest.raises(InvalidInputError, match=part):
            act("demo", output_format, layout)


def test_an_unknown_study_is_not_found_and_leaves_no_trace(own: Application, own_home: Path) -> None:
    before = files_of(own_home)
    with pytest.raises(NotFoundError, match="no study 'nothing'"):
        own.exports.labels_download("nothing", "csv", "long")
    with pytest.raises(NotFoundError, match="no study 'nothing'"):
        own.exports.study_download("nothing", ["csv"])
    assert files_of(own_home) == before
    assert own.exports.past("nothing") == ()


def test_the_same_files_make_the_same_zip_and_any_change_another_digest(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.txt").write_text("Müller µmol/L", encoding="utf-8")
    (tmp_path / "two.txt").write_text("2", encoding="utf-8")
    first, digest = zip_folder(tmp_path, "name", with_checksums=True), folder_digest(tmp_path)
    assert zip_folder(tmp_path, "name", with_checksums=True) == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert archive.namelist() == ["name/b/one.txt", "name/two.txt", "name/SHA256SUMS"]
        assert archive.read("name/b/one.txt").decode() == "Müller µmol/L"
    (tmp_path / "two.txt").rename(tmp_path / "three.txt")
    assert folder_digest(tmp_path) != digest
