"""Snapshots on disk: read back as written, whole or not there at all, never run as code."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from alertreview.records.importing import build_cohort
from alertreview.records.snapshots import read_snapshot
from core.errors import SourceError
from core.simulation.hospital import simulate_cohort, write_meds
from tests.support.snapshots import write_snapshot


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = write_meds(simulate_cohort(n_patients=60, n_days=25), tmp_path_factory.mktemp("snap") / "hospital")
    return build_cohort(folder, min_positive=10)


@pytest.fixture(scope="module")
def stored(imported, tmp_path_factory):
    return write_snapshot(*imported, tmp_path_factory.mktemp("home"))


def test_what_is_read_equals_what_was_written(imported, stored):
    cohort, report = imported
    snapshot = read_snapshot(stored)
    for name in ("patients", "stays", "instances", "feature_dictionary", "tasks", "events"):
        pd.testing.assert_frame_equal(getattr(cohort, name), getattr(snapshot.cohort, name))
    assert (cohort.features != snapshot.features).nnz == 0
    assert cohort.features.nnz == snapshot.features.nnz
    assert np.array_equal(cohort.decisions.toarray(), snapshot.decisions.toarray())
    for name in ("site_timezone", "calendar_is_shifted", "simulated", "content_hash"):
        assert getattr(cohort, name) == getattr(snapshot, name) == getattr(snapshot.cohort, name)
    assert snapshot.report == json.loads(json.dumps(report.to_dict()))


def test_the_folder_is_named_after_the_content(imported, stored):
    assert stored.parent.name == "snapshots"
    assert stored.name == imported[0].content_hash[:16]


def test_a_second_import_of_the_same_changes_nothing(imported, tmp_path):
    first = write_snapshot(*imported, tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in first.iterdir()}
    assert write_snapshot(*imported, tmp_path) == first
    assert {path.name: path.stat().st_mtime_ns for path in first.iterdir()} == before
    assert [path.name for path in first.parent.iterdir()] == [first.name]


class OneAtATime:
    """Reads as the file of events does, and notes when two readers are in it at once: Arrow would end the process."""

    def __init__(self, file):
        self.file = file
        self.inside = Lock()
        self.n_met = 0

    def _read(self, read, *given):
        if not self.inside.acquire(blocking=False):
            self.n_met += 1
            return read(*given)
        try:
            time.sleep(0.002)
            return read(*given)
        finally:
            self.inside.release()

    def read_row_groups(self, groups):
        return self._read(self.file.read_row_groups, groups)

    def read(self):
        return self._read(self.file.read)


def test_sessions_read_events_one_after_the_other_and_each_gets_its_own_patient(stored):
    snapshot = read_snapshot(stored)
    patients = list(snapshot.patients["patient_id"])[:24]
    expected = [read_snapshot(stored).events_of(patient) for patient in patients]
    whole = snapshot.cohort.events
    guard = OneAtATime(pq.ParquetFile(stored / "events.parquet"))
    shared = read_snapshot(stored)
    shared.__dict__["_events"] = guard
    with ThreadPoolExecutor(8) as pool:
        everything = pool.submit(lambda: shared.cohort.events)
        found = list(pool.map(shared.events_of, patients))
    assert guard.n_met == 0
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(everything.result(), whole)


def test_events_of_a_patient_are_its_rows_and_only_those(imported, stored, monkeypatch):
    cohort, _ = imported
    snapshot = read_snapshot(stored)
    for patient in cohort.patients["patient_id"].iloc[[0, 20, -1]]:
        mine = cohort.events[cohort.events["patient_id"] == patient].reset_index(drop=True)
        found = snapshot.events_of(patient)
        pd.testing.assert_frame_equal(
            found.astype({"kind": "str"}), mine.astype({"kind": "str"}), check_categorical=False
        )


@pytest.mark.parametrize("size", [1, 7, 100])
def test_patients_who_straddle_row_groups_are_whole(imported, tmp_path, monkeypatch, size):
    monkeypatch.setattr("alertreview.records.snapshot_writer.ROWS_PER_GROUP", size * 10)
    cohort = imported[0]
    few = cohort.events[cohort.events["patient_id"].isin(cohort.patients["patient_id"].iloc[:3])].reset_index(drop=True)
    few["patient_id"] = few["patient_id"].cat.remove_unused_categories()
    snapshot = read_snapshot(write_snapshot(replace(cohort, events=few), imported[1], tmp_path))
    for patient, mine in few.groupby("patient_id", observed=True):
        assert snapshot.events_of(str(patient))["time"].tolist() == mine["time"].tolist()


def test_an_unknown_patient_has_no_events(stored):
    assert read_snapshot(stored).events_of("nobody").empty


def test_one_patient_is_read_quickly(stored):
    snapshot = read_snapshot(stored)
    snapshot.events_of("SIM-0001")
    best = min(_seconds(lambda: snapshot.events_of("SIM-0020")) for _ in range(5))
    assert best < 0.1


def _seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.checklist("D1")
def test_an_interrupted_write_leaves_nothing(imported, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("alertreview.records.snapshot_writer.sparse.save_npz", fail)
    with pytest.raises(SourceError, match=r"No space left.*nothing was kept"):
        write_snapshot(*imported, tmp_path)
    assert list((tmp_path / "snapshots").iterdir()) == []


def test_a_home_that_cannot_be_written_is_refused(imported, tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(SourceError, match="Choose another home"):
        write_snapshot(*imported, tmp_path / "home")


def test_what_is_no_snapshot_is_refused(tmp_path):
    with pytest.raises(SourceError, match=r"manifest\.json"):
        read_snapshot(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format_version": 99}')
    with pytest.raises(SourceError, match="version 99"):
        read_snapshot(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format_version": 2}')
    with pytest.raises(SourceError, match=r"patients\.parquet is missing"):
        _ = read_snapshot(tmp_path).patients


@pytest.mark.checklist("D2")
def test_no_pickle_is_read(stored, tmp_path):
    (tmp_path / "manifest.json").write_text((stored / "manifest.json").read_text())
    for part in ("data", "indices", "indptr"):
        np.save(tmp_path / f"features_{part}.npy", np.array([object()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"pickle|Python objects"):
        _ = read_snapshot(tmp_path).features


def test_changing_features_in_memory_never_reaches_the_disk(stored):
    features = read_snapshot(stored).features
    before = features.data[0]
    features.data[:] = -1
    assert read_snapshot(stored).features.data[0] == before
