"""Scores on the scale of the task's past."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InvalidInputError
from core.scaling import ScoreScaler

scores = st.lists(st.floats(0, 2), min_size=2, max_size=30)


@given(scores)
@settings(deadline=None)
def test_past_scores_span_zero_to_one_and_keep_their_order(values):
    scaled = ScoreScaler().fit(values).transform(values)
    if max(values) > min(values):
        assert scaled.min() == 0
        assert scaled.max() == pytest.approx(1)
        assert (np.diff(scaled[np.argsort(values)]) >= 0).all()
    else:
        assert (scaled == 0.5).all()


def test_values_outside_the_past_are_kept_and_counted():
    scaler = ScoreScaler().fit([1.0, 2.0])
    np.testing.assert_allclose(scaler.transform([0.5, 1.5, 2.5, 3.0]), [-0.5, 0.5, 1.5, 2.0])
    assert (scaler.n_below_, scaler.n_above_) == (1, 2)


def test_the_paper_s_figure_scales_the_soft_label():
    # Range 0.25 to 0.61, as in the lower histogram; both examples have negative labels.
    scaler = ScoreScaler(on="soft_label").fit([0.25, 0.61])
    np.testing.assert_allclose(scaler.transform([0.61, 0.25], [-1, -1]), [1.0, 0.0])
    np.testing.assert_allclose(scaler.transform([0.61, 0.25], [1, 1]), [0.0, 1.0])


def test_the_quantile_scaler_does_not_hang_on_two_extreme_instances():
    past = np.r_[np.linspace(0, 1, 1000), 50.0, -50.0]
    assert ScoreScaler(method="quantile").fit(past).transform([0.5])[0] == pytest.approx(0.5, abs=0.01)
    assert ScoreScaler().fit(past).transform([1.0])[0] == pytest.approx(0.51, abs=0.001)


def test_the_quantile_scaler_spans_the_first_and_the_99th_percentile():
    scaler = ScoreScaler(method="quantile").fit(np.arange(101.0))
    assert (scaler.low_, scaler.high_) == pytest.approx((1.0, 99.0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ScoreScaler(on="both"), 'on is "score"'),
        (lambda: ScoreScaler().fit([]), "non-empty"),
        (lambda: ScoreScaler().fit([np.nan]), "finite"),
        (lambda: ScoreScaler().fit([[0.1, 0.2]]), r"vector .*shape \(1, 2\)"),
        (lambda: ScoreScaler(on="soft_label").fit([0.0, 1.0]).transform([0.5]), "needs the decisions"),
    ],
)
def test_bad_input_is_refused_by_name(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()
