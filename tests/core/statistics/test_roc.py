"""ROC curves: the area under them, their ends, their band."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from core.statistics.auc import BAND_AT, BAND_SEED, N_RESAMPLES, roc_curve
from core.statistics.weighted_auc import weighted_auc

FEW = settings(max_examples=30, deadline=None)
rows = st.lists(st.tuples(st.booleans(), st.integers(-4, 4), st.integers(1, 9)), min_size=4, max_size=25).filter(
    lambda r: 1 <= sum(y for y, _, _ in r) <= len(r) - 1
)


@FEW
@given(rows)
def test_the_area_under_the_corners_is_the_weighted_auc(r):
    y, score, weight = (np.array(c, float) for c in zip(*r, strict=True))
    found = roc_curve(y, score, weight=weight, band=False)
    area = np.trapezoid(found.found_fraction, found.false_alert_fraction)
    assert_allclose(area, weighted_auc(y, score, weight).value, atol=1e-12)


@FEW
@given(rows)
def test_the_curve_rises_from_one_corner_to_the_other(r):
    y, score, weight = (np.array(c, float) for c in zip(*r, strict=True))
    found = roc_curve(y, score, weight=weight, band=False)
    for axis in (found.false_alert_fraction, found.found_fraction):
        assert axis[0] == 0
        assert axis[-1] == 1
        assert (np.diff(axis) >= -1e-12).all()


def many(seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(150) < 0.4).astype(float)
    return y, rng.normal(size=150) + y, np.repeat(np.arange(50), 3)


def test_the_band_holds_the_curve_and_is_the_same_every_time():
    y, score, patient = many()
    first, second = (roc_curve(y, score, patient=patient) for _ in range(2))
    assert first == second
    assert first.reason == roc_curve(y, score, patient=patient, band=False).reason == ""
    at, height = np.array(first.false_alert_fraction), np.array(first.found_fraction)
    for x, low, high in zip(first.band_at, first.band_low, first.band_high, strict=True):
        top = height[np.flatnonzero(at <= x + 1e-12).max()]
        assert low <= high
        assert low <= top + 0.05
    assert first.band_at == tuple(BAND_AT)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_band_spans_the_curves_of_resampled_patients(level):
    y, score, patient = many()
    rng, n = np.random.default_rng(BAND_SEED), int(patient.max()) + 1
    heights = []
    for _ in range(N_RESAMPLES):
        rows = np.concatenate([np.flatnonzero(patient == p) for p in rng.integers(0, n, n)])
        drawn = roc_curve(y[rows], score[rows], band=False)
        heights.append(np.interp(BAND_AT, drawn.false_alert_fraction, drawn.found_fraction))
    curve = roc_curve(y, score, patient=patient, level=level)
    seen = np.interp(BAND_AT, curve.false_alert_fraction, curve.found_fraction)
    for end, share, hold in ((curve.band_low, 1 - level, np.minimum), (curve.band_high, 1 + level, np.maximum)):
        assert_allclose(end, hold(np.quantile(heights, share / 2, axis=0), seen), atol=1e-12)


def test_the_order_of_cases_does_not_move_the_band():
    y, score, patient = many()
    order = np.random.default_rng(1).permutation(y.size)
    first = roc_curve(y, score, patient=patient)
    second = roc_curve(y[order], score[order], patient=patient[order])
    assert_allclose(first.band_low, second.band_low)
    assert_allclose(first.band_high, second.band_high)


def test_a_higher_level_gives_a_wider_band():
    y, score, patient = many()
    narrow, wide = (roc_curve(y, score, patient=patient, level=level) for level in (0.8, 0.99))
    assert sum(wide.band_high) - sum(wide.band_low) > sum(narrow.band_high) - sum(narrow.band_low)


@pytest.mark.parametrize(("y", "why"), [([1, 1], "one class only"), ([], "no case has both")])
def test_no_curve_says_why(y, why):
    found = roc_curve(y, [0.5] * len(y))
    assert found.false_alert_fraction == ()
    assert why in found.reason


def test_one_class_from_one_patient_has_a_curve_without_band():
    found = roc_curve([1, 1, 0, 0], [3, 1, 2, 0], patient=["a", "a", "b", "c"])
    assert found.found_fraction[-1] == 1
    assert found.band_at == ()
    assert "too few patients" in found.reason


@pytest.mark.parametrize(("patient", "has_band"), [("aaaa", False), ("aabb", True)])
def test_a_band_needs_two_patients(patient, has_band):
    assert bool(roc_curve([1, 0, 1, 0], [3, 1, 2, 0], patient=list(patient)).band_at) == has_band
