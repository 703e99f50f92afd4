"""Every preset reads the spelling that it is for."""

import pandas as pd
import pyarrow as pa
import pytest

from alertreview.records.importing import build_cohort
from tests.support.records import counted, write_meds

SPELLINGS = {
    "mimic-iv-meds": [
        (1, "2026-01-01 10:00", "HOSPITAL_ADMISSION//URGENT//EMERGENCY ROOM"),
        (1, "2026-01-01 10:00", "TRANSFER_TO//admit//Medicine"),
        (1, "2026-01-02 09:00", "LAB//50912//mg/dL", 1.1),
        (1, "2026-01-02 09:00", "MEDICATION//START//Heparin"),
        (1, "2026-01-02 10:00", "MEDICATION//Heparin//Administered"),
        (1, "2026-01-02 11:00", "MEDICATION//Heparin//Not Given"),
        (1, "2026-01-03 12:00", "HOSPITAL_DISCHARGE//HOME"),
    ],
    "mimic-iv-meds-0.2": [
        (1, "2026-01-01 10:00", "HOSPITAL_ADMISSION//URGENT//EMERGENCY ROOM"),
        (1, "2026-01-01 10:00", "TRANSFER_TO//admit//Medicine"),
        (1, "2026-01-02 09:00", "LAB//SPECIMEN_COLLECTED//50912//STAT"),
        (1, "2026-01-03 08:10", "LAB//RESULT//50912//mg/dL", 1.1),
        (1, "2026-01-02 09:00", "MEDICATION//START//Heparin//00641040012"),
        (1, "2026-01-02 10:00", "MEDICATION//Heparin//Administered//UNK"),
        (1, "2026-01-02 11:00", "MEDICATION//Heparin//Not Given//UNK"),
        (1, "2026-01-03 12:00", "HOSPITAL_DISCHARGE//HOME"),
    ],
    "omop-meds": [
        (1, "2026-01-01 10:00", "visit//Visit//9201"),
        (1, "2026-01-02 09:00", "LOINC//3000483", 1.1),
        (1, "2026-01-02 09:00", "drug_exposure_start//RxNorm//1367571"),
        (1, "2026-01-02 21:00", "drug_exposure_end//RxNorm//1367571"),
        (1, "2026-01-03 12:00", "visit_end//Visit//9201"),
    ],
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_preset_for_a_spelling_is_found_and_reads_it(tmp_path, name):
    cohort, report = build_cohort(write_meds(tmp_path, SPELLINGS[name]), min_positive=1)
    assert report.mapping == name
    assert (len(cohort.stays), len(cohort.instances)) == (1, 2)
    assert cohort.tasks["kind"].tolist() == ["LAB_ORDER", "MEDICATION"]
    assert cohort.decisions.toarray().tolist() == [[True, True], [False, False]]
    drugs = cohort.events[cohort.events["kind"].isin(["MEDICATION_ORDER", "MEDICATION_STOP", "ADMINISTRATION"])]
    assert drugs["item"].nunique() == 1
    assert not any("no rule" in drop.reason for drop in report.read.dropped)


def test_ends_in_a_column_close_visits_and_drugs(tmp_path):
    rows = [
        (1, "2026-01-01 10:00", "Visit/IP"),
        (1, "2026-01-02 09:00", "LOINC/20565-8", 25.0),
        (1, "2026-01-02 09:00", "RxNorm/1191"),
        (1, "1956-01-02 09:00", "MEDS_BIRTH"),
    ]
    ends = pd.to_datetime(["2026-01-04 12:00", None, "2026-01-02 21:00", None])
    write_meds(tmp_path, rows, end=pa.array(ends, pa.timestamp("us")), unit=pa.array(["", "mmol/L", "", ""]))
    cohort, report = build_cohort(tmp_path, min_positive=1)
    assert report.mapping == "meds-etl-omop"
    assert (report.stays.n_stays, report.stays.n_open, len(cohort.instances)) == (1, 0, 3)
    assert set(cohort.events.loc[cohort.events["kind"] == "LAB_RESULT", "unit"]) == {"mmol/L"}
    assert counted(report, "MEDICATION_STOP").n_rows == 1
