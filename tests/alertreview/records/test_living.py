"""Imports day by day: the same as importing everything at once, with corrections in the trail."""

import shutil

import pandas as pd
import pytest

from alertreview.files import preset_paths
from alertreview.records.import_site import extend_snapshot
from alertreview.records.importing import build_cohort, import_snapshot
from alertreview.records.snapshots import read_snapshot
from core.errors import MappingError
from core.events.plausibility import Severity
from core.simulation.hospital import simulate_cohort, write_meds
from tests.support.frames import assert_same_frame
from tests.support.lying_records import hospital, write
from tests.support.records import write_meds as write_rows
from tests.support.snapshots import write_snapshot


@pytest.fixture(scope="module")
def sim():
    return simulate_cohort(n_patients=40, n_days=20)


def folder_of(sim, rows, path):
    return write_meds(type(sim)(rows, sim.codes, sim.splits, sim.truth, 0, 0.0), path)


@pytest.fixture(scope="module")
def days(sim, tmp_path_factory):
    """The whole record, and its halves before and after a morning."""
    root = tmp_path_factory.mktemp("days")
    cut = sim.events["time"].max().normalize() - pd.Timedelta(days=6)
    early = sim.events["time"].isna() | (sim.events["time"] < cut)
    parts = {"whole": sim.events, "early": sim.events[early], "late": sim.events[~early]}
    return {name: folder_of(sim, rows, root / name) for name, rows in parts.items()}


@pytest.fixture(scope="module")
def imported_early(days, tmp_path_factory):
    """Home with an import of the first half."""
    home = tmp_path_factory.mktemp("early")
    facts = read_snapshot(import_snapshot(days["early"], tmp_path_factory.mktemp("with-facts")).folder).facts
    cohort, report = build_cohort(days["early"], min_positive=5)
    return home, write_snapshot(cohort, report, home, facts=facts).relative_to(home)


@pytest.fixture
def early(imported_early, tmp_path):
    home, folder = imported_early
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    return read_snapshot(tmp_path / folder)


@pytest.fixture(scope="module")
def whole(days):
    return build_cohort(days["whole"], min_positive=5)[0]


@pytest.mark.parametrize("rows_per_part", [500, 400_000])
def test_another_day_on_a_snapshot_equals_importing_everything_at_once(days, early, whole, tmp_path, rows_per_part):
    extended = extend_snapshot(early, days["late"], tmp_path, min_positive=5, rows_per_part=rows_per_part)
    cohort = read_snapshot(extended.folder).cohort
    for name in ("stays", "instances", "tasks", "events"):
        assert_same_frame(getattr(cohort, name), getattr(whole, name))
    assert (cohort.features != whole.features).nnz == 0
    assert cohort.content_hash == whole.content_hash
    assert extended.n_added > 100


def test_an_addition_looks_at_a_part_of_the_last_import_at_a_time(days, early, tmp_path, monkeypatch):
    looked_at = []
    read = type(early).events_of
    monkeypatch.setattr(type(early), "events_of", lambda self, *ids: looked_at.append(ids) or read(self, *ids))
    monkeypatch.setattr(type(early), "_all_events", lambda self: pytest.fail("All events are in memory."))
    extend_snapshot(early, days["late"], tmp_path, min_positive=5, rows_per_part=500)
    assert len(looked_at) > 5
    assert sorted(patient for ids in looked_at for patient in ids) == sorted(early.patients["patient_id"])


def test_the_same_day_again_changes_nothing(days, early, tmp_path):
    extended = extend_snapshot(early, days["early"], tmp_path, min_positive=5)
    assert (extended.n_added, extended.folder) == (0, early.folder)


def test_a_correction_is_in_the_next_snapshot_s_trail(sim, days, early, tmp_path):
    rows = sim.events[sim.events["code"] == "LAB//RESULT//Potassium//mmol/L"].dropna(subset="numeric_value")
    rows = rows[rows["time"] == rows["time"].min()].head(1)
    admission = sim.events[sim.events["code"].str.startswith("HOSPITAL_ADMISSION")].head(1)
    corrected = pd.concat([rows.assign(numeric_value=5.5), admission]).sort_values(["subject_id", "time"])
    extended = extend_snapshot(early, folder_of(sim, corrected, tmp_path / "fix"), tmp_path, min_positive=5)
    stored = read_snapshot(extended.folder)
    assert stored.trail["new_value"].tolist() == [5.5]
    assert stored.trail["old_value"].iloc[0] == pytest.approx(rows["numeric_value"].iloc[0], rel=1e-6)
    assert stored.folder != early.folder
    again = extend_snapshot(stored, tmp_path / "fix", tmp_path, min_positive=5)
    assert (again.n_added, len(read_snapshot(again.folder).trail)) == (0, 1)


def test_a_mapping_of_one_s_own_is_to_be_named_again(days, tmp_path):
    own = tmp_path / "own.yaml"
    text = preset_paths()["simulated"].read_text(encoding="utf-8")
    own.write_text(text.replace("name: simulated", "name: our-ward"), encoding="utf-8")
    kept = read_snapshot(write_snapshot(*build_cohort(days["early"], mapping=own, min_positive=5), tmp_path / "home"))
    with pytest.raises(MappingError, match=r"'our-ward' from a file of your own\. Name that file again with --mapping"):
        extend_snapshot(kept, days["late"], tmp_path, min_positive=5)
    assert extend_snapshot(kept, days["late"], tmp_path, mapping=own, min_positive=5).n_added > 100


def test_another_mapping_is_refused(days, early, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(preset_paths()["simulated"].read_text().replace("name: simulated", "name: other"))
    with pytest.raises(MappingError, match="'simulated', not with 'other'"):
        extend_snapshot(early, days["late"], tmp_path, mapping=other)


@pytest.mark.parametrize("source_format", ["csv", "meds"])
@pytest.mark.parametrize("days", [("05",), ("05", "06", "07", "08", "09")])
def test_a_day_on_which_nobody_was_admitted_is_added(tmp_path, source_format, days):
    acts = hospital(n=4)
    whole, _ = build_cohort(write(acts, source_format, tmp_path / "whole"), format=source_format, min_positive=1)
    cut = f"2026-01-{days[0]}"
    early = write([act for act in acts if act.time < cut], source_format, tmp_path / "early")
    folder = write_snapshot(*build_cohort(early, format=source_format, min_positive=1), tmp_path)
    for i, day in enumerate(days):
        following = (*days[i + 1 : i + 2], "99")[0]
        late = [act for act in acts if f"2026-01-{day}" <= act.time < f"2026-01-{following}"]
        path = write(late, source_format, tmp_path / day)
        added = extend_snapshot(read_snapshot(folder), path, tmp_path, format=source_format, min_positive=1)
        folder = added.folder
        # Where the calendar is shifted, nobody is still in hospital.
        assert {check.name for check in added.report.checks if check.severity is Severity.RED} <= {"open_stays"}
    cohort = read_snapshot(folder).cohort
    for name in ("stays", "instances", "events"):
        assert_same_frame(getattr(cohort, name), getattr(whole, name))


def test_an_addition_of_which_nothing_is_known_is_refused(days, early, tmp_path):
    rows = write_rows(tmp_path / "other", [(1, "2026-01-01 10:00", "ZZTOP:1")])
    with pytest.raises(MappingError, match="recognises no event among the 1 codes"):
        extend_snapshot(early, rows, tmp_path)
