"""Exports of a real study: same rows in every format, the report again from the files, nothing half-written."""

import csv
import gc
import json
import os
import resource
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frictionless
import meds
import pandas as pd
import pyarrow.parquet as pq
import pytest

from alertreview.application import Application, open_application
from alertreview.exports import exports
from alertreview.exports.formats import ExportFormat, write_table
from alertreview.exports.recompute import recompute
from alertreview.files import write_bytes
from alertreview.reports.report import age_band, case_label
from alertreview.reports.signing import canonical_json
from core.errors import InvalidInputError, NotFoundError, SourceError, StoreError
from tests.support.demo_site import SMALL

N_VOTES = 3 * SMALL.n_cases - SMALL.n_waiting


@pytest.fixture
def own(own_home: Path) -> Application:
    return open_application(own_home)


def test_the_long_export_has_a_row_for_each_vote_in_every_format(own: Application, tmp_path: Path) -> None:
    for output_format in ("csv", "csv-excel", "xlsx", "parquet", "jsonl"):
        out = tmp_path / f"labels.{output_format}"
        assert own.exports.labels("demo", output_format, "long", out) == N_VOTES
        assert out.stat().st_size > 0
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    table = pd.read_parquet(tmp_path / "labels.parquet")
    assert len(rows) == len(lines) == len(table) == N_VOTES
    assert len({(row["case_id"], row["reader"], row["version"]) for row in rows}) == N_VOTES
    assert {row["answer"] for row in rows} <= {"0", "1", "2", "3"}
    assert [row["patient_id"] for row in rows] == table["patient_id"].tolist()
    assert all(row["snapshot_at"].endswith("T08:00:00+00:00") for row in rows)
    assert all(row["answer_text"] and row["saved_at"] and row["slot"] for row in rows)


def test_the_wide_export_has_a_row_for_each_case(own: Application, tmp_path: Path) -> None:
    assert own.exports.labels("demo", "csv", "wide", tmp_path / "wide.csv") == SMALL.n_cases


def test_a_changed_answer_is_a_further_version_and_a_taken_back_one_is_gone(
    own_home: Path, own: Application, tmp_path: Path
) -> None:
    visitor = next(person for person in own.site.people() if not person.simulated)
    case = own.review.next_case("demo", visitor.person_id)
    assert case is not None
    from core.vocabulary import Answer

    def save(answer: Answer, version: int, key: str, reason: str = "") -> None:
        own.review.submit_judgment(
            "demo", visitor.person_id, case.case_id, answer=answer, version_seen=version, form_key=key, reason=reason
        )

    save(Answer.RELEVANT, 0, "first")
    save(Answer.USUAL, 1, "second", "looked again")
    assert own.exports.labels("demo", "csv", "long", tmp_path / "a.csv") == N_VOTES + 2
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        mine = [row for row in csv.DictReader(file) if row["case_id"] == str(case.case_id) and row["reader"] == "R4"]
    assert [(row["version"], row["answer"], row["is_current"]) for row in mine] == [
        ("1", "3", "false"),
        ("2", "1", "true"),
    ]
    assert mine[1]["change_reason"] == "looked again"


def test_the_report_is_computed_again_from_the_files_alone(own: Application, tmp_path: Path) -> None:
    formats = ("csv", "parquet", "jsonl")
    own.exports.study("demo", formats, tmp_path / "study")
    for output_format in formats:
        again = recompute(tmp_path / "study", ExportFormat(output_format))
        assert canonical_json(again) == canonical_json(own.reports.report("demo"))


def test_the_manifest_names_where_the_labels_come_from(own: Application, tmp_path: Path) -> None:
    own.exports.study("demo", ["csv"], tmp_path / "study")
    manifest = json.loads((tmp_path / "study" / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["origin"]) == {
        "code_version",
        "data_hash",
        "scoring_run",
        "scorer",
        "rubric_version",
        "audit_head",
    }
    assert all(manifest["origin"].values())
    assert {Path(file["name"]).suffix for file in manifest["files"]} == {".csv"}


def test_meds_labels_are_written_for_decided_cases(own: Application, tmp_path: Path) -> None:
    n_rows = own.exports.labels("demo", "meds", "long", tmp_path / "labels")
    paths = sorted((tmp_path / "labels").rglob("*.parquet"))
    for path in paths:
        assert path.name.startswith("relevant__")
        meds.LabelSchema.validate(pq.read_table(path))
    tables = list(map(pd.read_parquet, paths))
    assert n_rows == sum(map(len, tables)) > 0
    for table in tables:
        assert table["subject_id"].dtype == "int64"
        assert (table["prediction_time"].dt.hour == 8).all()


@pytest.mark.checklist("A1")
def test_an_export_is_an_act_in_the_audit_trail(own: Application, tmp_path: Path) -> None:
    own.exports.labels("demo", "csv", "long", tmp_path / "a.csv")
    with own.database.read() as uow:
        assert uow.audit.latest(1)[0].action == "exported"
        uow.audit.require_whole()


def test_an_unknown_study_is_not_found(own: Application, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no study 'nothing'"):
        own.exports.labels("nothing", "csv", "long", tmp_path / "a.csv")


def test_a_folder_that_is_not_there_is_named_and_nothing_is_left(own: Application, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be written"):
        own.exports.labels("demo", "csv", "long", tmp_path / "missing" / "a.csv")
    assert list(tmp_path.glob("**/*.csv")) == []


def test_a_study_is_not_exported_over_older_files(own: Application, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("old")
    with pytest.raises(InvalidInputError, match="is not empty"):
        own.exports.study("demo", ["csv"], tmp_path)


@pytest.mark.parametrize(
    ("age", "band"),
    [(None, ""), (float("nan"), ""), (3.0, "under 18"), (18.0, "18-39"), (79.9, "60-79"), (80.0, "80 and over")],
)
def test_ages_are_given_in_bands(age: float | None, band: str) -> None:
    assert age_band(age) == band


def test_case_labels_sort_like_their_numbers() -> None:
    assert [case_label(number) for number in (7, 42, 222)] == ["C007", "C042", "C222"]


def test_the_exported_tables_are_what_their_data_package_says(own: Application, tmp_path: Path) -> None:
    own.exports.study("demo", ["csv", "parquet"], tmp_path / "study")
    report = frictionless.validate(str(tmp_path / "study" / "datapackage.json"))
    assert report.valid, report.flatten(["name", "rowNumber", "fieldName", "type", "note"])[:20]
    assert {task.name for task in report.tasks} >= {"cases", "judgments", "labels", "scores", "dictionary"}
    cases = tmp_path / "study" / "cases.csv"
    cases.write_text(cases.read_text(encoding="utf-8").replace('"omission"', '"neither"', 1), encoding="utf-8")
    assert not frictionless.validate(str(tmp_path / "study" / "datapackage.json")).valid


def acts_of(own: Application, tmp_path: Path) -> dict[str, Callable[[], object]]:
    """Every way to write files of a study, by the name of what it writes."""
    return {
        "labels.csv": lambda: own.exports.labels("demo", "csv", "long", tmp_path / "labels.csv"),
        "labels.xlsx": lambda: own.exports.labels("demo", "xlsx", "wide", tmp_path / "labels.xlsx"),
        "meds": lambda: own.exports.labels("demo", "meds", "wide", tmp_path / "meds"),
        "study": lambda: own.exports.study("demo", ["csv", "xlsx"], tmp_path / "study"),
    }


@pytest.mark.checklist("A1", "C5")
def test_no_file_is_seen_without_its_audit_row(
    own: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object) -> None:
        seen.append({path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} - before)
        raise StoreError("the disk is full")

    before, seen = {path.name for path in tmp_path.iterdir()}, []  # type: ignore[var-annotated]
    monkeypatch.setattr(type(own.exports), "_note", refuse)
    for act in acts_of(own, tmp_path).values():
        with pytest.raises(StoreError, match="full"):
            act()
    assert seen == [set()] * 4
    assert {path.name for path in tmp_path.iterdir()} == before


def test_exported_files_are_for_their_owner_alone(own: Application, tmp_path: Path) -> None:
    for name, act in acts_of(own, tmp_path).items():
        act()
        for path in [tmp_path / name, *(tmp_path / name).rglob("*")]:
            assert path.stat().st_mode & 0o077 == 0, path
    assert len(own.exports.past("demo")) == 4


@pytest.mark.checklist("C5")
def test_a_device_or_a_pipe_is_never_replaced_by_a_file(own: Application, tmp_path: Path) -> None:
    """As root, a file that gets the name of /dev/null takes it from every program of the machine."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with own.database.read() as uow:
        before = uow.audit.count()
    for out in (pipe, Path("/dev/alertreview-test.jsonl")):
        for write in (
            lambda out=out: own.exports.labels("demo", "jsonl", "long", out),
            lambda out=out: own.audit_trail.export(out),
            lambda out=out: write_bytes(out, b"content"),
        ):
            with pytest.raises(SourceError, match="is a device or a pipe"):
                write()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.glob("pipe*")) == [pipe]
    assert not Path("/dev/alertreview-test.jsonl").exists()
    with own.database.read() as uow:
        assert uow.audit.count() == before


# xlsxwriter leaves its temporary file open when the disk is full.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("output_format", ["xlsx", "csv", "parquet", "jsonl"])
def test_a_full_disk_is_a_plain_sentence_and_leaves_neither_file_nor_row(
    own: Application, tmp_path: Path, output_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(*arguments: Any, **options: Any) -> Any:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
        try:
            return write_table(*arguments, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, former)

    monkeypatch.setattr(exports, "write_table", limited)
    before = {path.name for path in tmp_path.iterdir()}
    out = tmp_path / f"labels.{output_format}"
    for act in (
        lambda: own.exports.labels("demo", output_format, "long", out),
        lambda: own.exports.study("demo", [output_format], tmp_path / "study"),
        lambda: own.exports.labels_download("demo", output_format, "long"),
        lambda: own.exports.study_download("demo", [output_format]),
    ):
        with pytest.raises(SourceError, match=r"cannot be written \(File too large\); nothing was kept"):
            act()
    gc.collect()
    assert {path.name for path in tmp_path.iterdir()} == before
    assert own.exports.past("demo") == ()
