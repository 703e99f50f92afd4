"""Labels as MEDS: the schema, local hours kept, large identifiers exact."""

from datetime import datetime
from zoneinfo import ZoneInfo

import meds
import pyarrow.parquet as pq
import pytest

from alertreview.exports.study_rows import MedsLabel, write_meds_labels
from core.errors import InvalidInputError

ZONE = ZoneInfo("Europe/Zurich")


def label(patient="12", task="LAB_ORDER/K+", day=29, positive=True):
    return MedsLabel(task, patient, datetime(2026, 3, day, 8, tzinfo=ZONE), positive)


def write(folder, labels, **about):
    return write_meds_labels(folder, labels, **({"slug": "pilot"} | about))


def test_there_is_one_valid_meds_label_file_for_each_task(tmp_path):
    paths = write(tmp_path, [label(), label(task="LAB_ORDER/K-"), label(patient="3", positive=False)])
    assert list(paths) == ["LAB_ORDER/K+", "LAB_ORDER/K-"]
    assert len({p.name for p in paths.values()}) == 2
    for path in paths.values():
        assert path.name.startswith("relevant__LAB_ORDER_K")
        meds.LabelSchema.validate(pq.read_table(path))
    table = pq.read_table(paths["LAB_ORDER/K+"])
    assert table["subject_id"].to_pylist() == [3, 12]
    assert table["boolean_value"].to_pylist() == [False, True]


def test_eight_in_the_morning_stays_eight(tmp_path):
    path = write(tmp_path, [label(day=28), label(day=29)])["LAB_ORDER/K+"]
    assert [t.hour for t in pq.read_table(path)["prediction_time"].to_pylist()] == [8, 8]


def test_nineteen_digits_are_kept(tmp_path):
    path = write(tmp_path, [label(patient="9223372036854775807")])["LAB_ORDER/K+"]
    assert pq.read_table(path)["subject_id"].to_pylist() == [9223372036854775807]


@pytest.mark.parametrize("patient", ["001017", "891e3", "P12", "", "9223372036854775808"])
def test_a_patient_that_is_no_meds_subject_is_refused_without_naming_the_patient(tmp_path, patient):
    with pytest.raises(InvalidInputError, match="not a whole number as MEDS subjects") as error:
        write(tmp_path, [label(patient=patient)])
    assert not patient or patient not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_no_labels_write_no_file(tmp_path):
    assert write(tmp_path, []) == {}


@pytest.mark.parametrize("simulated", [True, False])
def test_the_folder_says_what_its_labels_are_and_whether_they_are_simulated(tmp_path, simulated):
    write(tmp_path, [label()], simulated=simulated)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "verdict of the panel by majority" in text
    assert ("simulated, no real patient" in text) == simulated
