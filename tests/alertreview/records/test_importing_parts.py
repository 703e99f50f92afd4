"""However an import is cut into parts, the same comes of it."""

from dataclasses import replace

import pytest

from alertreview.records.importing import build_cohort, import_snapshot, read_records
from alertreview.records.snapshots import read_snapshot
from core.cohort.build import build
from core.errors import SourceError
from core.events.facts import digest_of
from core.simulation.hospital import simulate_cohort, write_meds
from tests.support.frames import assert_same_frame
from tests.support.records import write_meds as write_rows


def quiet(what, share):
    """Tell nobody."""


def built(source, rows_per_part, kind="meds"):
    read = read_records(
        source,
        format=kind,
        mapping=None,
        schema=None,
        min_positive=None,
        progress=quiet,
        rows_per_part=rows_per_part,
    )
    cohort, report = build(read.stream, read.counts, read.mapping, read.about, quiet)
    facts = digest_of(read.facts(cohort.patients["patient_id"]))
    return replace(cohort, content_hash=facts.onto(cohort.content_hash)), report


def assert_same(one, other):
    (cohort, report), (again, report_again) = one, other
    for name in ("patients", "stays", "instances", "feature_dictionary", "tasks", "events"):
        assert_same_frame(getattr(cohort, name), getattr(again, name))
    assert (cohort.features != again.features).nnz == 0
    assert cohort.features.nnz == again.features.nnz
    assert (cohort.decisions != again.decisions).nnz == 0
    assert cohort.content_hash == again.content_hash
    assert report == report_again


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    sim = simulate_cohort(n_patients=90, n_days=30, unit_noise=0.2)
    return write_meds(sim, tmp_path_factory.mktemp("parts") / "hospital", patients_per_shard=25)


@pytest.fixture(scope="module")
def whole(hospital):
    return build_cohort(hospital)


@pytest.mark.parametrize("rows_per_part", [1_500, 17_000])
def test_a_simulated_hospital_is_the_same_in_one_part_and_in_many(hospital, whole, rows_per_part):
    assert_same(whole, built(hospital, rows_per_part))


@pytest.mark.real_data
@pytest.mark.parametrize(("folder", "kind"), [("mimic_iv_demo_meds", "meds"), ("omop_mimic_iv_demo", "omop")])
def test_the_open_records_are_the_same_in_one_part_and_in_many(real_data, folder, kind):
    assert_same(build_cohort(real_data / folder, format=kind), built(real_data / folder, 150_000, kind))


def test_a_snapshot_written_part_by_part_is_the_cohort_built_in_memory(hospital, whole, tmp_path):
    cohort, report = whole
    told = []
    imported = import_snapshot(hospital, tmp_path, rows_per_part=3_000, progress=lambda what, share: told.append(share))
    snapshot = read_snapshot(imported.folder)
    assert_same((cohort, report), (snapshot.cohort, imported.report))
    assert imported.folder.name == cohort.content_hash[:16]
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    for patient in cohort.patients["patient_id"].iloc[[0, 40, -1]]:
        mine = cohort.events[cohort.events["patient_id"] == patient]
        assert snapshot.events_of(patient)["time"].tolist() == mine["time"].tolist()


def test_a_refused_import_leaves_nothing_behind(tmp_path):
    folder = write_rows(
        tmp_path / "bad", [(1, "2026-01-01 10:00", "HOSPITAL_ADMISSION//X"), (1, "2026-01-02", "LAB//K")]
    )
    (folder / "data" / "1.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match=r"1\.parquet"):
        import_snapshot(folder, tmp_path / "home")
    assert list((tmp_path / "home" / "snapshots").iterdir()) == []


def test_a_full_disk_is_refused_and_leaves_nothing_behind(hospital, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("alertreview.records.snapshot_writer.pq.ParquetWriter", full)
    with pytest.raises(SourceError, match=r"No space left.*nothing was kept"):
        import_snapshot(hospital, tmp_path)
    assert list((tmp_path / "snapshots").iterdir()) == []
