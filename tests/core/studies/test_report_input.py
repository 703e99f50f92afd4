"""What a report is made from is checked before any number is computed."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from core.errors import InvalidInputError
from core.studies.report_input import StudyInput, prepare
from tests.support.simulated_study import simulate_study


@pytest.fixture(scope="module")
def study() -> StudyInput:
    return simulate_study(seed=2, n_patients=20, n_per_patient=20)


def test_the_newest_version_of_a_judgment_counts(study):
    newer = study.votes.iloc[[0]].assign(version=2, answer=0)
    older = study.votes.iloc[[0]].assign(version=2, answer=3)
    for extra, want in ((newer, 0), (older, 3)):
        arrays = prepare(dataclasses.replace(study, votes=pd.concat([extra, study.votes])))
        assert arrays.answers[0, 0] == want


def test_the_order_of_rows_changes_nothing(study):
    shuffled = dataclasses.replace(
        study,
        cases=study.cases.sample(frac=1, random_state=0),
        votes=study.votes.sample(frac=1, random_state=1),
        scores=study.scores.sample(frac=1, random_state=2),
    )
    first, second = prepare(study), prepare(shuffled)
    assert_array_equal(first.answers, second.answers)
    assert_array_equal(first.scores["softhad"], second.scores["softhad"])
    assert_array_equal(first.column("case_label"), second.column("case_label"))


def test_ids_sort_by_size_also_when_they_are_text(study):
    as_text = dataclasses.replace(
        study,
        cases=study.cases.assign(case_id=study.cases["case_id"].astype(str)),
        votes=study.votes.assign(case_id=study.votes["case_id"].astype(str)),
        scores=study.scores.assign(case_id=study.scores["case_id"].astype(str)),
    )
    assert_array_equal(prepare(as_text).column("case_label"), prepare(study).column("case_label"))


def test_a_scorer_without_a_column_is_gone(study):
    arrays = prepare(dataclasses.replace(study, scorer_labels={**study.scorer_labels, "svm": "SVM"}))
    assert arrays.gone == ("svm",)
    assert np.isnan(arrays.scores["svm"]).all()


def test_unknown_inclusion_probabilities_are_missing_weights(study):
    cases = study.cases.assign(inclusion_probability=None)
    assert np.isnan(prepare(dataclasses.replace(study, cases=cases)).weight).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {"cases": s.cases.drop(columns="stratum")}, "Table 'cases' has no column 'stratum'"),
        (lambda s: {"votes": s.votes.drop(columns="reader")}, "Table 'votes' has no column 'reader'"),
        (lambda s: {"scores": s.scores.drop(columns="case_id")}, "Table 'scores' has no column 'case_id'"),
        (lambda s: {"cases": pd.concat([s.cases, s.cases.iloc[:1]])}, r"\(case_id\) = \(1\) twice"),
        (
            lambda s: {"votes": pd.concat([s.votes, s.votes.iloc[:1]])},
            r"\(case_id, reader, version\) = \(1, reader-1, 1\)",
        ),
        (lambda s: {"votes": s.votes.assign(case_id=s.votes["case_id"] + 1)}, "names case 223"),
        (lambda s: {"scores": s.scores.assign(case_id=s.scores["case_id"] + 1)}, "names case 223"),
        (lambda s: {"cases": s.cases.assign(inclusion_probability=1.5)}, "Inclusion probability 1.5"),
        (lambda s: {"cases": s.cases.assign(inclusion_probability=0.0)}, "Inclusion probability 0"),
        (lambda s: {"votes": s.votes.assign(answer=7)}, "Answer 7 does not exist"),
        (lambda s: {"votes": s.votes.assign(answer="often")}, "Column 'votes.answer'"),
        (lambda s: {"scorer_labels": {}}, "names no scorer"),
        (lambda s: {"level": 95}, "Confidence level 95"),
    ],
)
def test_malformed_tables_are_refused_by_table_column_and_value(study, change, message):
    with pytest.raises(InvalidInputError, match=message):
        prepare(dataclasses.replace(study, **change(study)))
