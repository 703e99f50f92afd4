"""Reference bands of values come from earlier periods or from other patients only."""

import numpy as np
import pytest

from core.cohort.reference_bands import Periods, patient_cells, reference_bands

RNG = np.random.default_rng(3)


def test_with_a_true_calendar_only_earlier_periods_count():
    value, cell = RNG.normal(size=200), np.repeat([0, 1], 100)
    item = np.zeros(200, dtype=int)
    bands = reference_bands(value, item, 1, cell, np.array([0, 1, 2]), expanding=True)
    assert np.isnan(bands.low[0, 0])
    np.testing.assert_allclose([bands.low[1, 0], bands.high[1, 0]], np.quantile(value[:100], [0.05, 0.95]))
    np.testing.assert_allclose(bands.high[2, 0], np.quantile(value, 0.95))


def test_a_future_value_moves_no_earlier_band():
    value, cell, item = RNG.normal(size=200), np.repeat([0, 1], 100), np.zeros(200, dtype=int)
    before = reference_bands(value, item, 1, cell, np.array([1]), expanding=True)
    changed = np.where(cell == 1, 1e6, value)
    after = reference_bands(changed, item, 1, cell, np.array([1]), expanding=True)
    assert before.high[1, 0] == after.high[1, 0]


def test_with_shifted_calendars_no_patient_is_in_its_own_band():
    value, item = RNG.normal(size=500), np.zeros(500, dtype=int)
    cell = np.arange(500) % 5
    bands = reference_bands(value, item, 1, cell, np.array([3]), expanding=False)
    np.testing.assert_allclose(bands.low[3, 0], np.quantile(value[cell != 3], 0.05))


@pytest.mark.parametrize("expanding", [True, False])
@pytest.mark.parametrize("n", [20, 21, 39, 41, 60, 101, 1000])
def test_bands_are_the_quantiles_of_numpy_to_the_last_bit(n, expanding):
    value, cell, item = np.round(RNG.normal(size=n), 2), RNG.integers(0, 4, n), np.zeros(n, dtype=int)
    bands = reference_bands(value, item, 1, cell, np.array([4]), expanding=expanding)
    for c in range(5):
        usable = value[cell < c] if expanding else value[cell != c]
        expected = np.quantile(usable, [0.05, 0.95]) if len(usable) >= 20 else [np.nan, np.nan]
        np.testing.assert_array_equal([bands.low[c, 0], bands.high[c, 0]], expected)


def test_few_values_make_no_band():
    bands = reference_bands(
        np.ones(19), np.zeros(19, dtype=int), 2, np.zeros(19, dtype=int), np.array([1]), expanding=True
    )
    assert np.isnan(bands.low).all()


def test_periods_last_at_least_a_week_and_start_before_their_snapshots():
    day = 86400
    known, snapshot = np.array([0, 6 * day, 7 * day]), np.array([8 * day, 20 * day])
    periods = Periods()
    periods.see(known[2:], snapshot)
    periods.see(known[:2], snapshot[:0])
    assert periods.cells(known).tolist() == [0, 0, 1]
    assert periods.cells(snapshot).tolist() == [1, 2]
    assert periods.cells(np.array([-5 * day])).tolist() == [0]


def test_without_any_value_everything_is_in_the_first_period():
    assert Periods().cells(np.array([0, 10**9])).tolist() == [0, 0]


def test_a_new_patient_moves_nobody_to_another_group():
    assert patient_cells(["a", "b"]).tolist() == patient_cells(["a", "b", "c"]).tolist()[:2]
