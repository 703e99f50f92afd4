"""Every number of a report again, by a plain road from the exported CSV files alone."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from alertreview.exports.formats import ExportFormat
from alertreview.exports.recompute import read_rows
from alertreview.exports.study_rows import estimates_of, study_schema
from core.statistics.alert_rate import Budget
from core.studies.report_input import REPEAT_COLUMNS, StudyInput
from core.studies.selection import SelectionDesign
from tests.alertreview.exports.test_study_rows import export
from tests.support.second_road import Study
from tests.support.second_road_report import differences, second_report
from tests.support.simulated_study import simulate_study


def study_of_everything() -> StudyInput:
    """Return a study with all that a report can be about: ties, gaps, budgets, repeats, adjudications, versions."""
    study = simulate_study(seed=4, n_patients=60, n_per_patient=60, design=SelectionDesign(n_cases=222))
    cases, votes, scores = study.cases.copy(), study.votes, study.scores.copy()
    scores["weighted_knn"] = scores["weighted_knn"].round(2)
    scores.loc[[3, 40], "weighted_knn"] = np.nan
    scores.loc[[11, 12], "softhad"] = np.nan
    # Two votes on some cases, one or none on a few; one vote was changed.
    gone = (votes["reader"] == "reader-3") & (votes["case_id"] % 9 == 0)
    gone |= (votes["reader"] != "reader-1") & (votes["case_id"] % 50 == 0)
    gone |= votes["case_id"] == 77
    newer = votes.iloc[[0]].assign(version=2, answer=3)
    split = votes.groupby("case_id")["answer"].apply(lambda own: (own == 3).sum() == 1).to_numpy()
    cases.loc[np.flatnonzero(split)[:12], "adjudicated_answer"] = [3, 2, 1, 0] * 3
    cases.loc[5, "inclusion_probability"] = np.nan
    cases.loc[cases.index[::8], "unit"] = ""
    repeats = [(1, "reader-1", 3, 3), (2, "reader-1", 1, 3), (2, "reader-2", 0, 1), (7, "reader-3", 2, 1)]
    repeats += [(case, "reader-2", answer, 3) for case, answer in zip(range(8, 20), [3, 3, 1, 2] * 3, strict=True)]
    return dataclasses.replace(
        study,
        cases=cases,
        votes=pd.concat([votes[~gone], newer], ignore_index=True),
        scores=scores,
        strata=[*study.strata, ("never chosen", 5000, 0)],
        budgets={"both": [Budget(0.05, 0.8, 33), Budget(0.2), Budget(0.4)], "omission": [Budget(0.1, 0.71234567, 12)]},
        repeats=pd.DataFrame(repeats, columns=list(REPEAT_COLUMNS)),
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("road")
    report, _ = export(study_of_everything(), folder, (ExportFormat.CSV,))
    return report, second_report(Study(folder)), folder


def test_every_number_of_a_report_has_the_same_value_on_a_second_road(exported):
    report, second, _ = exported
    found = list(differences(report.to_dict(), second))
    assert [f"{place} {what}" for place, what in found if what] == []
    assert len(found) > 14_000


def test_the_study_of_the_second_road_leaves_no_part_of_a_report_empty(exported):
    """What a report leaves out has no second road either."""
    report = exported[0]
    for result in report.results:
        assert result.prevalence_weighted.has_interval
        assert result.comparisons[0].p_holm is not None
    keys = [result.n_used for result in report.results]
    assert len(set(keys)) > 2
    for result in (report.results[0], report.results[1], report.results[2], report.results[5]):
        assert all([result.alert_rates, result.operating_point, result.calibration, result.subgroup_differences])
        assert all(scorer.roc_weighted.band_low for scorer in result.scorers)
    assert all([report.agreement.repeats, report.agreement.pairs, report.agreement.by_task, report.multi_reader])
    assert report.ceiling.weighted.has_interval
    assert report.dawid_skene.n_iterations > 1


@pytest.mark.parametrize(
    ("place", "change", "words"),
    [
        (("ceiling", "weighted"), {"high": 0.5}, "/ceiling/weighted/high is 0.5"),
        (("results", 0, "scorers", 1, "auc_weighted"), {"low": None}, "/auc_weighted/low is None"),
        (("flow",), {"n_seen": 3}, "/flow/n_seen has no second road"),
        (("agreement",), {"pairs": []}, "/agreement/pairs has 0 members"),
        (("results", 2, "operating_point"), {"n_cleared": 1}, "/results/2/operating_point/n_cleared is 1"),
    ],
)
def test_another_number_or_one_without_a_second_road_is_named(exported, place, change, words):
    plain = exported[0].to_dict()
    part = plain
    for step in place:
        part = part[step]
    part.update(change)
    (found,) = [f"{at} {what}" for at, what in differences(plain, exported[1]) if what]
    assert words in found


def test_the_table_of_figures_holds_the_numbers_of_the_report(exported):
    report, _, folder = exported
    rows = read_rows(folder / "figures.csv", study_schema("figures", study_of_everything()), ExportFormat.CSV)
    found = {row["figure"]: (row["value"], row["low"], row["high"], row["level"], row["n"]) for row in rows}
    assert found == {path: (one.value, one.low, one.high, one.level, one.n) for path, one in estimates_of(report)}


def test_every_interval_of_the_report_holds_its_value_and_what_is_missing_has_a_reason(exported):
    for name, figure in estimates_of(exported[0]):
        if figure.low is not None and figure.high is not None:
            assert figure.low <= figure.value + 1e-12, name
            assert figure.value <= figure.high + 1e-12, name
        if figure.value is None:
            assert figure.reason.startswith("not computable: "), name
