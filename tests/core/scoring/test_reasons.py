"""Reasons: the shares that are shown, what changes nothing, and the known policy of the simulated hospital."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from benchmarks.reasons import Hospital, measure
from core.errors import InvalidInputError
from core.scoring.reasons import MOST_REASONS, fit_contrast

DICTIONARY = pd.DataFrame(
    {
        "name": ["Heparin, on now", "Potassium, last value", "Sodium, last value", "Potassium, slope over 24 h"],
        "source": ["Heparin", "Potassium", "Sodium", "Potassium"],
        "aspect": ["on_now", "last_value", "last_value", "slope_24h"],
        "is_flag": [True, False, False, False],
    }
)


def made_past(n=600, seed=0):
    """Decisions that follow heparin and a potassium below 3.5; sodium and the slope say nothing."""
    rng = np.random.default_rng(seed)
    heparin = rng.random(n) < 0.4
    potassium, sodium = np.round(rng.normal(4.0, 0.6, n), 1), np.round(rng.normal(140, 4, n))
    logit = -2.5 + 3.0 * heparin + 3.0 * (potassium < 3.5)
    taken = rng.random(n) < 1 / (1 + np.exp(-logit))
    X = sparse.csc_matrix(np.column_stack([heparin, potassium, sodium, rng.normal(size=n)]))
    return X, taken, np.arange(n) // 3


def low_on_heparin(**changed):
    values = {"heparin": 1.0, "potassium": 3.1, "sodium": 140.0, "slope": 0.0} | changed
    return np.array(list(values.values()))


def test_the_true_reasons_are_shown_with_the_shares_that_can_be_counted():
    X, taken, patients = made_past()
    found = fit_contrast(X, taken, patients, DICTIONARY).reasons(low_on_heparin(), expected=True)
    assert {reason.finding.column for reason in found.reasons} == {0, 1}
    for reason in found.reasons:
        values = X[:, [reason.finding.column]].toarray().ravel()
        cut = reason.finding.threshold
        held = values != 0 if cut is None else values < cut if reason.finding.below else values > cut
        assert reason.here
        assert reason.share_with == pytest.approx(taken[held].mean())
        assert reason.share_without == pytest.approx(taken[~held].mean())
        assert (reason.n_with, reason.n_without) == (held.sum(), (~held).sum())


def test_what_is_missing_explains_why_a_decision_was_not_expected():
    X, taken, patients = made_past()
    contrast = fit_contrast(X, taken, patients, DICTIONARY)
    without = contrast.reasons(low_on_heparin(heparin=0.0, potassium=4.4), expected=False)
    assert {reason.finding.column for reason in without.reasons} == {0, 1}
    assert not any(reason.here for reason in without.reasons)
    unmeasured = contrast.reasons(low_on_heparin(heparin=0.0, potassium=np.nan), expected=False)
    assert all(np.isnan(reason.value) for reason in unmeasured.reasons if reason.finding.column == 1)


def test_one_change_that_turns_the_expectation_is_named_only_where_it_does():
    X, taken, patients = made_past()
    contrast = fit_contrast(X, taken, patients, DICTIONARY)
    one = contrast.reasons(low_on_heparin(potassium=4.4), expected=True)
    assert one.counterfactual is not None
    assert one.counterfactual.column == 0
    assert one.counterfactual_here
    both = contrast.reasons(low_on_heparin(heparin=0.0, potassium=4.4), expected=True)
    assert both.counterfactual is None, "nothing was expected, so nothing can turn it"


def test_where_a_value_is_measured_its_shares_count_measured_days_only():
    X, taken, patients = made_past()
    X = X.tolil()
    unmeasured = np.random.default_rng(3).random(len(taken)) < 0.3
    X[unmeasured, 1] = 0
    X = X.tocsc()
    X.eliminate_zeros()
    contrast = fit_contrast(X, taken, patients, DICTIONARY)
    values = X[:, [1]].toarray().ravel()
    for potassium, others in ((3.1, ~unmeasured), (4.4, ~unmeasured), (np.nan, True)):
        expected = potassium == 3.1
        x = low_on_heparin(potassium=potassium, heparin=float(expected))
        reason = next(r for r in contrast.reasons(x, expected=expected).reasons if r.finding.column == 1)
        low = (values < reason.finding.threshold) & ~unmeasured
        assert reason.finding.below
        assert (reason.share_with, reason.n_with) == (pytest.approx(taken[low].mean()), low.sum())
        assert reason.share_without == pytest.approx(taken[others & ~low].mean())
        assert reason.n_without == (others & ~low).sum()


def test_a_value_that_only_tells_measured_days_from_others_is_no_finding():
    rng = np.random.default_rng(4)
    measured = rng.random(900) < 0.5
    potassium = np.where(measured, np.round(rng.normal(4.0, 0.6, 900), 1), 0.0)
    X = sparse.csc_matrix(np.column_stack([np.zeros(900), potassium, np.zeros((900, 2))]))
    taken = rng.random(900) < np.where(measured, 0.7, 0.1)
    contrast = fit_contrast(X, taken, np.arange(900), DICTIONARY)
    assert not contrast.findings, "what counts is whether it was measured; how high it was says nothing"


def test_the_order_of_rows_and_the_number_of_copies_change_no_reason():
    X, taken, patients = made_past()
    rows = np.random.default_rng(1).permutation(len(taken))
    one, other = (
        fit_contrast(*given, DICTIONARY).reasons(low_on_heparin(), expected=True)
        for given in ((X, taken, patients), (X[rows].tocsc(), taken[rows], patients[rows]))
    )
    assert [reason.finding for reason in one.reasons] == [reason.finding for reason in other.reasons]
    assert [reason.weight for reason in one.reasons] == pytest.approx([reason.weight for reason in other.reasons])


def test_no_reason_is_made_up_where_nothing_tells_the_decisions_apart():
    X, taken, patients = made_past()
    shown = 0
    for seed in range(20):
        shuffled = np.random.default_rng(seed).permutation(taken)
        shown += bool(fit_contrast(X, shuffled, patients, DICTIONARY).reasons(low_on_heparin(), expected=True).reasons)
    assert shown <= 1


def test_the_many_days_of_one_patient_are_no_evidence():
    rng = np.random.default_rng(2)
    one = np.arange(400) < 60
    X = sparse.csc_matrix(np.column_stack([one, rng.normal(4, 0.5, 400), rng.normal(140, 4, 400), np.ones(400)]))
    taken = np.where(one, rng.random(400) < 0.9, rng.random(400) < 0.3)
    alone = np.where(one, 0, np.arange(400))
    assert fit_contrast(X, taken, np.arange(400), DICTIONARY).reasons(low_on_heparin(), expected=True).reasons
    assert not fit_contrast(X, taken, alone, DICTIONARY).reasons(low_on_heparin(), expected=True).reasons


@pytest.mark.parametrize("fault", ["one decision", "rows"])
def test_a_past_that_cannot_be_contrasted_is_refused(fault):
    X, taken, patients = made_past(n=50)
    taken = np.ones(50, dtype=bool) if fault == "one decision" else taken[:-1]
    with pytest.raises(InvalidInputError, match="apart" if fault == "one decision" else "fit together"):
        fit_contrast(X, taken, patients, DICTIONARY)


def test_the_reasons_of_the_simulated_hospital_are_those_of_its_policy(tmp_path):
    measured = measure(Hospital(tmp_path, n_patients=200, n_days=35, seed=7))
    assert sum(n for n, _ in measured.by_task.values()) >= 50
    assert measured.explained >= 0.9, measured.by_task
    assert measured.n_usual_with_false / measured.n_usual <= 0.2
    assert measured.n_false_lines / measured.n_lines <= 0.15
    assert measured.n_lines <= MOST_REASONS * measured.n_usual
