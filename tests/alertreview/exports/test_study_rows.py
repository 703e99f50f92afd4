"""A study's exported tables, and the report computed again from them alone."""

import dataclasses
import json
import shutil
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from alertreview.exports.formats import ExportFormat, write_table
from alertreview.exports.manifest import MANIFEST, changed_files, manifest_hash, read_manifest, write_manifest
from alertreview.exports.recompute import read_rows, recompute
from alertreview.exports.schema import table_schemas
from alertreview.exports.study_rows import RECOMPUTED_FROM, study_rows, study_schema, study_settings
from alertreview.reports.signing import content_hash
from core.errors import InvalidInputError
from core.statistics.alert_rate import Budget
from core.studies.make_report import study_report
from core.studies.report_input import REPEAT_COLUMNS, StudyInput, prepare
from core.studies.selection import SelectionDesign
from core.vocabulary import BLINDED, OPEN_PANEL, READING
from tests.support.simulated_study import few_draws, simulate_study

__all__ = ["few_draws"]

READ_BACK = [f for f in ExportFormat if f is not ExportFormat.XLSX]
NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)


def small_study(**changes) -> StudyInput:
    study = simulate_study(seed=4, n_patients=20, n_per_patient=20, design=SelectionDesign(n_cases=60))
    scores = study.scores.copy()
    scores.loc[3, "weighted_knn"] = np.nan
    budgets = {"both": [Budget(0.05, 0.8, 33), Budget(0.2)], "omission": [Budget(0.1, 0.7123456789012345, 12)]}
    newer = study.votes.iloc[[0]].assign(version=2, answer=3)
    votes = pd.concat([study.votes, newer], ignore_index=True)
    repeats = pd.DataFrame(
        [(1, "reader-1", 3, 3), (2, "reader-1", 1, 3), (2, "reader-2", 0, 1), (7, "reader-3", 2, 1)],
        columns=list(REPEAT_COLUMNS),
    )
    given = {"scores": scores, "budgets": budgets, "votes": votes, "repeats": repeats} | changes
    return dataclasses.replace(study, **given)


def export(study, folder, formats=tuple(ExportFormat), **details):
    report = study_report(study)
    files = []
    for name, rows in study_rows(study, report, **details).items():
        files += write_table(folder, rows, study_schema(name, study), formats)
    write_manifest(
        folder,
        files,
        study_settings(study),
        created_at=NOW,
        origin={"code_version": "0.1.0"},
        report_hash=content_hash(report),
    )
    return report, files


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    study = small_study()
    return study, *export(study, folder), folder


@pytest.fixture
def own_export(exported, tmp_path):
    """Return a copy of the exported folder that a test may change."""
    return shutil.copytree(exported[-1], tmp_path / "export")


@pytest.mark.parametrize("chosen", READ_BACK)
def test_the_report_is_recomputed_to_the_last_digit_from_any_format(exported, chosen):
    _, report, _, folder = exported
    assert recompute(folder, chosen) == report


def test_row_counts_are_equal_in_all_formats(exported):
    _, _, files, _ = exported
    by_table = {}
    for file in files:
        by_table.setdefault(file.table, set()).add(file.n_rows)
    assert all(len(counts) == 1 for counts in by_table.values())
    assert by_table["judgments"] == {181}
    assert by_table["cases"] == by_table["labels"] == {60}


def test_three_votes_are_three_rows_and_a_changed_one_is_a_fourth(exported):
    study, _, _, folder = exported
    path = folder / "judgments.jsonl"
    rows = list(read_rows(path, study_schema("judgments", study), ExportFormat.JSONL))
    first = [r for r in rows if r["case_id"] == "1"]
    assert [(r["reader"], r["version"], r["is_current"]) for r in first] == [
        ("reader-1", 1, False),
        ("reader-1", 2, True),
        ("reader-2", 1, True),
        ("reader-3", 1, True),
    ]
    keys = [tuple(r[k] for k in ("study", "case_id", "reader", "version")) for r in rows]
    assert len(set(keys)) == len(keys)


def test_every_key_is_unique_in_every_table(exported):
    study, _, files, _ = exported
    for file in files:
        if file.format is ExportFormat.JSONL:
            schema = study_schema(file.table, study)
            keys = [tuple(r[k] for k in schema.key) for r in read_rows(file.path, schema, file.format)]
            assert len(set(keys)) == len(keys), file.table


def test_labels_say_votes_and_why_there_is_none(exported):
    study, report, _, folder = exported
    rows = list(read_rows(folder / "labels.csv", study_schema("labels", study), ExportFormat.CSV))
    assert sum(r["majority_label"] == 1 for r in rows) == report.primary.n_positive
    assert all((r["majority_label"] is None) == bool(r["majority_why_not"]) for r in rows)
    assert all(r["n_judgments"] == r["n_positive_votes"] + r["n_negative_votes"] + r["n_cannot_judge"] for r in rows)


def test_details_of_cases_and_votes_are_joined_in(tmp_path):
    at = datetime(2026, 3, 29, 8, tzinfo=UTC)
    study = small_study()
    details = {"1": {"alert_id": "77", "run_id": "3", "snapshot_at": at, "ignored_here": "x"}}
    votes = {("1", "reader-2", 1): {"comment": "=1+1", "certainty": "certain", "slot": 2, "saved_at": at}}
    export(study, tmp_path, [ExportFormat.CSV], case_details=details, vote_details=votes)
    rows = read_rows(tmp_path / "judgments.csv", study_schema("judgments", study), ExportFormat.CSV)
    found = next(r for r in rows if r["reader"] == "reader-2" and r["case_id"] == "1")
    assert (found["alert_id"], found["run_id"], found["slot"], found["comment"]) == ("77", "3", 2, "=1+1")
    assert found["snapshot_at"] == "2026-03-29T08:00:00+00:00"


@pytest.mark.parametrize("votes_kept", [0, 1, 3, 4])
def test_studies_with_few_votes_export_and_recompute(tmp_path, votes_kept):
    study = simulate_study(seed=4, n_patients=20, n_per_patient=20, design=SelectionDesign(n_cases=30))
    study = dataclasses.replace(study, votes=study.votes.iloc[:votes_kept])
    report, files = export(study, tmp_path)
    assert {f.n_rows for f in files if f.table == "judgments"} == {votes_kept}
    for chosen in READ_BACK:
        assert recompute(tmp_path, chosen) == report


def test_an_open_panel_is_marked_in_its_labels_and_manifest_and_survives_the_way_round(exported, tmp_path):
    study = small_study()
    panel = dataclasses.replace(study, design={**study.design, READING: OPEN_PANEL})
    report, _ = export(panel, tmp_path, [ExportFormat.CSV])
    for folder, mark in ((tmp_path, OPEN_PANEL), (exported[-1], BLINDED)):
        rows = read_rows(folder / "labels.csv", study_schema("labels", study), ExportFormat.CSV)
        assert {row["reading"] for row in rows} == {mark}
    assert read_manifest(tmp_path)["study"]["design"][READING] == OPEN_PANEL
    again = recompute(tmp_path)
    assert again == report
    assert again.is_open_panel


def test_the_words_of_reading_are_those_of_the_dictionary():
    found = next(column for column in table_schemas()["labels"].columns if column.name == "reading")
    assert [value for value, _ in found.values] == [BLINDED, OPEN_PANEL]


def test_the_manifest_names_every_file_with_its_checksum(exported):
    study, _, files, folder = exported
    manifest = read_manifest(folder)
    assert {f["name"] for f in manifest["files"]} == {p.name for p in folder.iterdir()} - {MANIFEST}
    assert {f["name"]: f["sha256"] for f in manifest["files"]} == {f.path.name: f.sha256 for f in files}
    assert manifest["created_at"] == "2026-11-28T09:30:00+00:00"
    assert manifest["study"]["slug"] == study.slug
    assert changed_files(folder, manifest) == []


def test_a_changed_or_missing_file_is_refused_unless_asked(exported, own_export):
    _, report, _, _ = exported
    path = own_export / "judgments.csv"
    path.write_text(path.read_text().replace('"reader-1",,1,false,', '"reader-1",,1,true,', 1))
    with pytest.raises(InvalidInputError, match=r"judgments\.csv is missing or was changed"):
        recompute(own_export)
    assert recompute(own_export, verify=False) == report
    path.unlink()
    with pytest.raises(InvalidInputError, match=r"judgments\.csv is missing"):
        recompute(own_export)


@pytest.mark.parametrize(
    ("changes", "details", "words"),
    [
        ({"slug": "another"}, {}, r"judgments\.csv, row 1 is of study 'another', the manifest of 'simulated'"),
        ({}, {"1": {"run_id": "4"}}, r"Table 'judgments', row 1: case 1 is of run 4, in table 'cases' of run 3"),
    ],
)
def test_labels_of_another_study_or_run_are_refused_though_nothing_is_verified(tmp_path, changes, details, words):
    export(small_study(), tmp_path / "own", [ExportFormat.CSV], case_details={"1": {"run_id": "3"}})
    export(small_study(**changes), tmp_path / "other", [ExportFormat.CSV], case_details=details)
    (tmp_path / "other" / "judgments.csv").rename(tmp_path / "own" / "judgments.csv")
    with pytest.raises(InvalidInputError, match=r"judgments\.csv is missing or was changed"):
        recompute(tmp_path / "own")
    with pytest.raises(InvalidInputError, match=words):
        recompute(tmp_path / "own", verify=False)


def test_an_export_without_manifest_or_table_is_refused(own_export, tmp_path):
    with pytest.raises(InvalidInputError, match=r"has no manifest\.json"):
        recompute(tmp_path)
    manifest = read_manifest(own_export)
    manifest["files"] = [file for file in manifest["files"] if not file["name"].endswith(".csv")]
    manifest["manifest_sha256"] = manifest_hash(manifest)
    (own_export / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"Table 'cases' is not in .* as csv"):
        recompute(own_export, ExportFormat.CSV)
    (own_export / MANIFEST).write_text(json.dumps({"manifest_version": 99}))
    with pytest.raises(InvalidInputError, match="not a manifest of version 2"):
        recompute(own_export)
    (own_export / MANIFEST).write_text("{")
    with pytest.raises(InvalidInputError, match="cannot be read as JSON"):
        recompute(own_export)


def test_a_time_without_zone_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="needs a zone"):
        write_manifest(tmp_path, [], {}, created_at=datetime(2026, 1, 1), origin={}, report_hash="")  # noqa: DTZ001


def test_multi_reader_rows_hold_truth_readers_and_scorers(exported):
    study, report, _, folder = exported
    rows = list(read_rows(folder / "multi_reader.csv", study_schema("multi_reader", study), ExportFormat.CSV))
    truth = [r for r in rows if r["modality_id"] == "truth"]
    assert len(truth) == report.primary.n_used
    assert {r["reader_id"] for r in truth} == {"-1"}
    assert sum(r["modality_id"] == "reader" for r in rows) == report.n_votes
    assert sum(r["modality_id"] == "scorer" for r in rows) == 119


def test_the_tables_needed_to_recompute_are_among_those_written(exported):
    study, report, _, _ = exported
    assert set(RECOMPUTED_FROM) <= set(study_rows(study, report)) <= set(table_schemas())


@pytest.mark.parametrize(
    ("field", "value"),
    [("level", 0.9), ("headline_budget", 0.5), ("locked", False), ("n_slots", 2), ("simulated", False)],
)
def test_a_setting_changed_by_hand_in_the_manifest_is_found(own_export, field, value):
    path = own_export / MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert manifest["study"][field] != value
    manifest["study"][field] = value
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="was changed after the export"):
        recompute(own_export)
    # Whoever makes the seal of the manifest anew is found by the seal of the report.
    manifest["manifest_sha256"] = manifest_hash(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="The report has content"):
        recompute(own_export)


def test_labels_and_multi_reader_rows_are_of_the_cases_in_the_report(tmp_path):
    study = small_study(locked=False)
    votes = study.votes[~((study.votes["reader"] == "reader-3") & (study.votes["case_id"] <= 20))]
    study = dataclasses.replace(study, votes=votes)
    report = study_report(study)
    rows = {name: list(table) for name, table in study_rows(study, report).items()}
    used = {case.case_label for case in report.primary.cases if case.used}
    label_of = dict(zip(prepare(study).column("case_id"), prepare(study).column("case_label"), strict=True))
    assert 0 < len(used) <= 40
    assert {label_of[r["case_id"]] for r in rows["labels"] if not np.isnan(r["majority_label"])} == used
    assert {label_of[r["case_id"]] for r in rows["multi_reader"] if r["modality_id"] == "truth"} == used
    assert {r["case_label"] for r in rows["case_use"] if r["result"] == "majority-3" and r["used"]} == used


def test_every_figure_of_the_report_is_a_row_under_its_own_name(exported):
    study, report, *_ = exported
    rows = list(study_rows(study, report)["figures"])
    names = [row["figure"] for row in rows]
    assert len(names) == len(set(names))
    found = {row["figure"]: row for row in rows}
    auc = report.primary.scorer("softhad").auc_weighted
    assert found["results/majority-3/scorers/softhad/auc_weighted"]["high"] == auc.high
    assert found["ceiling/weighted"]["value"] == report.ceiling.weighted.value

    def count(plain):
        if isinstance(plain, dict):
            return ({"value", "low", "high"} <= plain.keys()) + sum(map(count, plain.values()))
        return sum(map(count, plain)) if isinstance(plain, list) else 0

    assert len(rows) == count(report.to_dict()) > 300


def test_every_p_value_of_the_report_stands_beside_its_figure(exported):
    study, report, *_ = exported
    found = {row["figure"]: (row["p_value"], row["p_holm"]) for row in study_rows(study, report)["figures"]}
    (compared,) = report.primary.comparisons
    weighted = found[f"results/majority-3/comparisons/{compared.scorer_b}/difference_weighted"]
    assert weighted == (compared.p_value_weighted, compared.p_holm) != (None, None)

    def p_values(plain):
        if isinstance(plain, dict):
            for key, value in plain.items():
                if key == "p_values":
                    yield from value.values()
                elif key.startswith("p_"):
                    yield value
                else:
                    yield from p_values(value)
        elif isinstance(plain, list):
            for value in plain:
                yield from p_values(value)

    written = sorted(p for pair in found.values() for p in pair if p is not None)
    assert written == sorted(p for p in p_values(report.to_dict()) if p is not None)
    assert len(written) > 20
