"""The report of the demonstration tells the truth that its simulation knows."""

from pathlib import Path

import numpy as np

from alertreview.cli.demo import SEED
from benchmarks.story import candidates, study, told, true_auc
from core.studies.make_report import study_report


def test_the_report_of_the_shipped_seed_holds_the_truth_of_all_candidates(demo_home: Path) -> None:
    all_of = candidates(demo_home)
    auc = true_auc(all_of)
    found = told(study_report(study(all_of, SEED)), all_of, auc)
    assert found.auc_holds, found
    assert found.rate_holds, found
    assert found.kappa is not None
    assert 0.25 <= found.kappa <= 0.65, found


def test_the_simulated_readers_find_little_in_what_is_usual(demo_home: Path) -> None:
    all_of = candidates(demo_home)
    assert 0.002 < np.nanmean(all_of.label) < 0.05
    assert true_auc(all_of) > 0.85
