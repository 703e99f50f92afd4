"""Looking back: what the other decisions of a window explain, against plain algebra, and what must not enter."""

import numpy as np
import pytest

from core.scoring.look_back import GATE, coefficients_outside, explain_by_window, gate_of_day
from core.scoring.prepared import DayContext

N_PAST, N_RECENT, N_TASKS = 400, 60, 9
DAY = DayContext(np.array([0] * 6 + [1] * 3), np.array([0, 0, 1, 2, 3, 3, 4, 5, 6]))


@pytest.fixture(scope="module")
def windows():
    """Days with a latent busyness that all decisions follow, which the log odds do not know."""
    random = np.random.default_rng(0)
    n = N_PAST + N_RECENT
    patients = random.integers(0, 80, n)
    log_odds = random.normal(size=(n, N_TASKS)).astype(np.float32)
    busy = 1.5 * random.normal(size=(n, 1))
    taken = random.random((n, N_TASKS)) < 1 / (1 + np.exp(-(log_odds + busy)))
    return log_odds, taken, patients, patients % 3


def explained(windows, taken=None, log_odds=None):
    own_log_odds, own_taken, patients, part = windows
    return explain_by_window(
        own_log_odds if log_odds is None else log_odds,
        own_taken if taken is None else taken,
        N_PAST,
        DAY,
        patients,
        part,
    )


def test_coefficients_equal_a_ridge_regression_without_the_order_group():
    random = np.random.default_rng(1)
    X, targets = random.normal(size=(50, N_TASKS)), random.normal(size=(50, N_TASKS))
    found = coefficients_outside(X, targets, DAY.groups, 7.0)
    for task in range(N_TASKS):
        others = np.flatnonzero(DAY.groups != DAY.groups[task])
        system = X[:, others].T @ X[:, others] + 7.0 * np.eye(len(others))
        expected = np.zeros(N_TASKS)
        expected[others] = np.linalg.solve(system, X[:, others].T @ targets[:, task])
        np.testing.assert_allclose(found[:, task], expected, atol=1e-10)


def test_a_busy_day_is_explained(windows):
    log_odds, taken, _, _ = windows
    found = explained(windows)

    def loss(values):
        return np.logaddexp(0, np.where(taken, -values, values))[N_PAST:].mean()

    assert loss(found) < loss(log_odds) - 0.02


def test_neither_the_own_decision_nor_its_order_group_enters(windows):
    _, taken, _, _ = windows
    found = explained(windows)
    for task in (0, 3):
        turned = taken.copy()
        group = np.flatnonzero(DAY.groups == DAY.groups[task])
        turned[N_PAST:, group] = ~turned[N_PAST:, group]
        np.testing.assert_array_equal(explained(windows, turned)[N_PAST:, task], found[N_PAST:, task])


def test_a_recent_window_changes_no_other(windows):
    _, taken, _, _ = windows
    found = explained(windows)
    turned = taken.copy()
    turned[N_PAST + 5] = ~turned[N_PAST + 5]
    again = explained(windows, turned)
    others = np.delete(np.arange(N_PAST + N_RECENT), N_PAST + 5)
    np.testing.assert_array_equal(again[others], found[others])
    assert (again[N_PAST + 5] != found[N_PAST + 5]).any()


def test_own_decisions_of_a_past_patient_enter_only_through_the_rest_of_the_window(windows):
    """A patient's decisions of one task do not teach what is expected of that patient's same task."""
    _, taken, patients, _ = windows
    task, mine = 3, np.flatnonzero(patients[:N_PAST] == patients[0])
    turned = taken.copy()
    turned[mine, task] = ~turned[mine, task]
    change = np.abs(explained(windows, turned)[mine, task] - explained(windows)[mine, task])
    # Only the calibration over all patients still knows them.
    assert change.max() < 0.2


@pytest.mark.parametrize("expected", [3.0, 0.0, -1.0])
@pytest.mark.parametrize("own_group", [False, True])
def test_a_day_on_which_all_else_is_missing_keeps_its_log_odds(windows, expected, own_group):
    log_odds, taken, _, _ = windows
    task = 3
    empty, level = taken.copy(), log_odds.copy()
    empty[N_PAST] = own_group & (DAY.groups == DAY.groups[task])
    level[N_PAST] = expected
    found = explained(windows, empty, level)
    assert found[N_PAST, task] == pytest.approx(expected, abs=1e-6)


def test_the_gate_opens_between_two_shares_of_the_past():
    tail = np.append(-np.arange(100.0)[::-1], [-200.0, 0.0, -93.0])
    gate = gate_of_day(tail, 100)
    assert gate[100] == 0.0
    assert gate[101] == 1.0
    place = 7 / 100
    assert gate[102] == pytest.approx((place - GATE[0]) / (GATE[1] - GATE[0]))
    assert (np.diff(gate[:100]) >= 0).all()
