"""The readout of one task against loops over pairs, and what must not change it."""

import numpy as np
import pytest

from core.baselines import NeighbourDistanceDifference
from core.evaluation import ordering_agreement, rank_auc
from core.scoring.calibration import fit_line
from core.scoring.readout import ReadoutSoftHAD
from core.simulation.paper_points import draw_points


def make(n=50, n_features=3, seed=0, noise=0.1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, n_features))
    y = np.where((np.abs(X[:, 0]) > 0.7) ^ (random.random(n) < noise), 1.0, -1.0)
    return X, y


def plain_line(evidence, y):
    """Expectation and maximisation, past label by past label, beside four pseudo-instances in the middle."""
    turned, expected = 0.05, [float(label > 0) for label in y]
    for _ in range(10):
        line = fit_line(np.r_[evidence, np.zeros(4)], np.r_[expected, np.full(4, 0.5)])
        slope = max(line.slope, 0.0)
        wrong = []
        for e, label in zip(evidence, y, strict=True):
            own = 1 / (1 + np.exp(-label * (line.intercept + slope * e)))
            wrong.append(turned * (1 - own) / (turned * (1 - own) + (1 - turned) * own))
        expected = [1 - w if label > 0 else w for w, label in zip(wrong, y, strict=True)]
        turned = min(max(np.mean(wrong), 1e-6), 0.1)
    return lambda x: line.intercept + slope * x


def plain_log_odds(X, y, recent, n_neighbors):
    """The formulas of the class, pair by pair; without logistic regression."""
    n = len(X)

    def squared(a, b):
        return float(((a - b) ** 2).sum())

    seventh = [sorted(squared(X[i], X[j]) for j in range(n) if j != i)[6] for i in range(n)]
    s = float(np.median(seventh))
    first = np.empty(n)
    for i in range(n):
        sums = {
            label: sum(np.exp(-squared(X[i], X[j]) / (4 * s)) for j in range(n) if j != i and y[j] == label)
            for label in (1.0, -1.0)
        }
        first[i] = np.log(sums[1.0]) - np.log(sums[-1.0])
    trust = 1 / (1 + np.exp(-y * plain_line(first, y)(first)))

    def both(x, own):
        strength, nearness = {}, {}
        for label in (1.0, -1.0):
            others = [j for j in range(n) if y[j] == label and j != own]
            kept = min(n_neighbors, int((y == label).sum()) - 1)
            terms = sorted((trust[j] * np.exp(-squared(x, X[j]) / (8 * s)) for j in others), reverse=True)
            strength[label] = np.log(sum(terms[:kept]))
            nearness[label] = np.mean(sorted(np.sqrt(squared(x, X[j]) / s) for j in others)[:kept])
        return strength[1.0] - strength[-1.0], nearness[-1.0] - nearness[1.0]

    past = np.array([both(X[i], i) for i in range(n)])
    new = np.array([both(x, None) for x in recent])
    lines = [plain_line(past[:, part], y) for part in range(2)]
    return (2 * lines[0](new[:, 0]) + lines[1](new[:, 1])) / 3


def plain_psi(X, y):
    one, other = X[y > 0], X[y < 0]
    above = (one[:, None] > other[None]).mean(axis=(0, 1)) + (one[:, None] == other[None]).mean(axis=(0, 1)) / 2
    return np.abs(2 * above - 1)


@pytest.mark.parametrize("with_weights", [True, False])
def test_log_odds_equal_the_formulas_pair_by_pair(with_weights):
    n_features = 3 if with_weights else 1
    X, y = make(n_features=n_features)
    recent, _ = make(12, n_features, seed=1)
    model = ReadoutSoftHAD(n_neighbors=6).fit(X, y)
    assert model.uses_weights_ == with_weights
    assert not model.uses_logistic_
    weights = plain_psi(X, y) if with_weights else np.ones(n_features)
    expected = plain_log_odds(X * weights, y, recent * weights, 6)
    np.testing.assert_allclose(model.log_odds(recent), expected, rtol=1e-6, atol=1e-8)


def test_the_score_is_the_chance_of_the_other_decision():
    X, y = make(80)
    recent, decisions = make(30, seed=1)
    model = ReadoutSoftHAD().fit(X, y)
    one, other = model.score_samples(recent, decisions), model.score_samples(recent, -decisions)
    np.testing.assert_allclose(one + other, 1.0, atol=1e-12)
    np.testing.assert_allclose(np.log(other / one), decisions * model.log_odds(recent), rtol=1e-6)


def test_neither_the_order_of_the_past_nor_who_else_is_recent_changes_a_score():
    X, y = make(90)
    recent, decisions = make(40, seed=1)
    expected = ReadoutSoftHAD().fit(X, y).score_samples(recent, decisions)
    order = np.random.default_rng(3).permutation(90)
    turned = ReadoutSoftHAD().fit(X[order], y[order])
    np.testing.assert_allclose(turned.score_samples(recent, decisions), expected, rtol=1e-8)
    alone = [float(turned.score_samples(recent[[i]], decisions[[i]])[0]) for i in range(40)]
    np.testing.assert_allclose(alone, expected, rtol=1e-8)


def test_swapping_the_two_decisions_turns_the_log_odds_round():
    X, y = make(90)
    recent, _ = make(40, seed=1)
    one, other = ReadoutSoftHAD().fit(X, y), ReadoutSoftHAD().fit(X, -y)
    np.testing.assert_allclose(one.log_odds(recent), -other.log_odds(recent), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_the_unit_of_all_features_together_does_not_matter(factor):
    X, y = make(90)
    recent, _ = make(40, seed=1)
    model, scaled = ReadoutSoftHAD().fit(X, y), ReadoutSoftHAD().fit(factor * X, y)
    if not (model.uses_logistic_ or scaled.uses_logistic_):
        np.testing.assert_allclose(scaled.log_odds(factor * recent), model.log_odds(recent), rtol=1e-5, atol=1e-7)


def test_the_own_label_of_a_past_instance_does_not_enter_its_log_odds():
    X, y = make(90, noise=0.0)
    model = ReadoutSoftHAD().fit(X, y)
    row = int(np.argmax(y * model.left_out_log_odds_))
    turned = y.copy()
    turned[row] = -y[row]
    # Lines and the trust of its neighbours still know it, as one of many.
    after = ReadoutSoftHAD().fit(X, turned).left_out_log_odds_[row]
    assert y[row] * after > 0.5 * y[row] * model.left_out_log_odds_[row] > 0


def test_psi_is_used_where_it_tells_the_classes_apart_and_not_where_it_hides_them():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 20))
    shifted = np.where(X[:, 0] + 0.3 * random.normal(size=300) > 0, 1.0, -1.0)
    assert ReadoutSoftHAD().fit(X, shifted).uses_weights_
    crossed = np.where((X[:, 0] > 0) ^ (X[:, 1] > 0), 1.0, -1.0)
    assert not ReadoutSoftHAD().fit(X[:, :2], crossed).uses_weights_


def test_logistic_regression_is_a_member_only_where_it_explains_the_past_much_better():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 30))
    direction = random.normal(size=30)
    linear = np.where(X @ direction > 0, 1.0, -1.0)
    assert ReadoutSoftHAD().fit(X, linear).uses_logistic_
    ring = np.where((X[:, :2] ** 2).sum(axis=1) > 1.4, 1.0, -1.0)
    assert not ReadoutSoftHAD().fit(X[:, :2], ring).uses_logistic_


def test_copies_and_two_of_a_class_are_scored():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    y = np.repeat([-1.0, 1.0], 10)
    scores = ReadoutSoftHAD().fit(X, y).score_samples(X, -y)
    assert np.isfinite(scores).all()
    assert (scores > 0.5).all()
    few = np.where(np.arange(20) < 2, 1.0, -1.0)
    assert np.isfinite(
        ReadoutSoftHAD().fit(np.random.default_rng(0).normal(size=(20, 2)), few).score_samples(X, y)
    ).all()


def test_instances_of_pure_clusters_are_ordered():
    """Soft labels are constant within a cluster of one class; the paper's rings part clearly."""
    past, recent = (draw_points("D3", np.random.default_rng(seed), 150) for seed in (0, 1))
    readout, difference = (
        method.fit(past.X, past.y).score_samples(recent.X, recent.y)
        for method in (ReadoutSoftHAD(), NeighbourDistanceDifference())
    )
    assert rank_auc(recent.flipped, readout) > 0.99
    agreement = ordering_agreement(recent.true_score, readout)
    assert agreement > ordering_agreement(recent.true_score, difference) + 0.1


@pytest.mark.parametrize("n_turned", [3, 10])
def test_a_few_far_mistakes_leave_what_the_other_labels_tell(n_turned):
    X = np.r_[np.linspace(-4, -1, 100), np.linspace(1, 16, 100)][:, None]
    y = np.sign(X[:, 0])
    before = np.diff(ReadoutSoftHAD().fit(X, y).log_odds(np.array([[-1.0], [1.0]])))
    y[200 - 3 * n_turned : 200 : 3] = -1.0
    after = np.diff(ReadoutSoftHAD().fit(X, y).log_odds(np.array([[-1.0], [1.0]])))
    assert after > before / 2
