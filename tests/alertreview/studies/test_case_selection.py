"""Candidates of a run: where alert budgets end, counted one by one."""

from types import SimpleNamespace

import numpy as np
import pytest

from alertreview.studies.case_selection import Candidates


@pytest.fixture
def candidates():
    rng = np.random.default_rng(0)
    n = 400
    return Candidates(
        tasks=[SimpleNamespace(kind="LAB_ORDER"), SimpleNamespace(kind="MEDICATION")],
        task=np.repeat([0, 1], n // 2),
        row=np.tile(np.arange(n // 2), 2),
        position=np.tile(np.arange(n // 2), 2),
        scaled=np.round(rng.random(n), 2).astype(np.float32),
        taken=rng.random(n) < 0.3,
        patient=rng.integers(0, 40, n),
        group=np.where(rng.random(n) < 0.3, rng.integers(0, 60, n), -1),
        eligible=rng.random(n) < 0.9,
    )


def slow_scores(found, curve):
    """Scores of one curve, highest first, an order group once by its highest member."""
    best, alone = {}, []
    for i in range(found.scaled.size):
        if not found.eligible[i]:
            continue
        if found.group[i] < 0:
            alone.append(i)
        elif found.group[i] not in best or found.scaled[i] > found.scaled[best[found.group[i]]]:
            best[found.group[i]] = i
    members = {
        "both": lambda i: True,
        "omission": lambda i: not found.taken[i],
        "commission": lambda i: found.taken[i],
        "LAB_ORDER": lambda i: found.task[i] == 0,
        "MEDICATION": lambda i: found.task[i] == 1,
    }[curve]
    return sorted((float(found.scaled[i]) for i in [*alone, *best.values()] if members(i)), reverse=True)


def test_every_curve_has_budgets_of_its_own_counted_over_the_run(candidates):
    found = candidates.budgets(100.0)
    assert list(found) == ["both", "omission", "commission", "LAB_ORDER", "MEDICATION"]
    for curve, budgets in found.items():
        scores = slow_scores(candidates, curve)
        assert [b.alerts_per_patient_day for b in budgets] == [0.01, 0.02, 0.05, 0.1, 0.25, 0.5]
        for budget in budgets:
            wanted = round(100 * budget.alerts_per_patient_day)
            assert budget.threshold == scores[wanted - 1]
            assert budget.n_alerts == sum(score >= budget.threshold for score in scores) >= wanted
    assert len({budgets[-1].threshold for budgets in found.values()}) > 1


def test_a_budget_beyond_the_candidates_is_left_out(candidates):
    assert all(budget.n_alerts <= 400 for budgets in candidates.budgets(5_000.0).values() for budget in budgets)
    assert candidates.budgets(1.0) == {}
