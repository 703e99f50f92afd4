"""From label files to the alert list, by the command line: labels are decisions beside labs and drugs."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from alertreview.alerts.patient import SnapshotViews
from alertreview.cli.main import main
from alertreview.records.snapshots import Snapshot, read_snapshot
from core.simulation.hospital import simulate_cohort, write_meds
from core.vocabulary import Decision

KEY = "LABEL/crp asked"
TWIN = "LAB_ORDER/C-Reactive Protein"


def run(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hospital and a label file that says of seven days in ten whether CRP was ordered."""
    hospital = simulate_cohort(n_patients=45, n_days=25, planted_rate=0.05)
    folder = write_meds(hospital, tmp_path_factory.mktemp("labels") / "hospital")
    truth = hospital.truth[hospital.truth["task_key"] == TWIN]
    truth = truth[np.random.default_rng(1).random(len(truth)) < 0.7]
    labels = pd.DataFrame(
        {
            "subject_id": truth["subject_id"].astype("int64"),
            "prediction_time": truth["snapshot_at"] + pd.Timedelta(minutes=5),
            "boolean_value": truth["decided"].astype(bool),
        }
    )
    (folder.parent / "crp asked").mkdir()
    labels.to_parquet(folder.parent / "crp asked" / "0.parquet")
    return folder


@pytest.fixture(scope="module")
def home(records: Path) -> Path:
    home = records.parent / "site"
    assert run("import", records, "--labels", records.parent / "crp asked", "--home", home) == 0
    assert run("score", "--scorer", "softhad", "--home", home) == 0
    return home


def snapshot_of(home: Path) -> Snapshot:
    (folder,) = (home / "snapshots").iterdir()
    return read_snapshot(folder)


def test_a_label_task_has_the_decisions_of_the_lab_that_it_repeats(home: Path, records: Path) -> None:
    snapshot = snapshot_of(home)
    keys = snapshot.tasks["task_key"].tolist()
    decisions = snapshot.cohort.decisions[:, [keys.index(KEY), keys.index(TWIN)]].toarray()
    assert (decisions[:, 0] == decisions[:, 1]).all()
    assert len(decisions) == len(pd.read_parquet(records.parent / "crp asked"))
    assert not any("crp asked" in name for name in snapshot.cohort.feature_dictionary["name"])


def test_the_list_holds_both_kinds_of_unusual_labels(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("alerts", "--kind", "LABEL", "--top", "500", "--format", "json", "--home", home) == 0
    alerts = json.loads(capsys.readouterr().out)
    assert {alert["decision"] for alert in alerts} == {"omission", "commission"}
    assert {alert["task_key"] for alert in alerts} == {KEY}


def test_a_case_shows_its_own_label_and_none_before(home: Path) -> None:
    snapshot = snapshot_of(home)
    view = SnapshotViews(snapshot)
    column = snapshot.tasks["task_key"].tolist().index(KEY)
    taken = snapshot.cohort.decisions[:, [column]].toarray().ravel()
    again = snapshot.instances["patient_id"].duplicated().to_numpy()
    for row in (int(np.flatnonzero(taken & again)[0]), int(np.flatnonzero(~taken & again)[0])):
        timeline = view.timeline(row, KEY)
        assert timeline.past_orders == ()
        assert len(timeline.orders_in_window) == int(taken[row])
        assert timeline.decision is (Decision.COMMISSION if taken[row] else Decision.OMISSION)


def test_a_study_and_its_export_name_the_kind(home: Path, tmp_path: Path) -> None:
    readers = [word for reader in "ABC" for word in ("--reader", f"Reader {reader}")]
    assert (
        run(
            "study",
            "create",
            "--study",
            "ward",
            "--title",
            "Ward",
            *readers,
            "--cases",
            "120",
            "--seed",
            "1",
            "--home",
            home,
        )
        == 0
    )
    assert run("export", "study", "--study", "ward", "--format", "csv", "--out", tmp_path / "out", "--home", home) == 0
    with (tmp_path / "out" / "cases.csv").open(encoding="utf-8") as file:
        kinds = {row["kind"] for row in csv.DictReader(file)}
    assert "LABEL" in kinds


def test_the_same_import_again_changes_nothing(home: Path, records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("import", records, "--add", "--home", home) == 0
    assert "nothing changed" in capsys.readouterr().out


def test_a_label_file_that_cannot_be_used_is_one_line(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", records, "--labels", tmp_path / "none.parquet", "--home", tmp_path / "site") != 0
    said = capsys.readouterr().err
    assert "none.parquet: there is no such file" in said
    assert "Traceback" not in said
