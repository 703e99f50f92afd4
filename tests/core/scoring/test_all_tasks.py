"""Many tasks at once: against the formulas one by one, and what must not change a score."""

import dataclasses
import io
from collections.abc import MutableMapping

import numpy as np
import pytest
from scipy import sparse

from core.errors import InvalidInputError, NotFoundError
from core.evaluation import rank_auc
from core.features import SparseStandardizer, wilcoxon_table
from core.graph.backbone import sample_balanced_nodes
from core.graph.similarity import knn_similarity
from core.scoring.all_tasks import score_tasks
from core.scoring.calibration import calibrate, soft_label_evidence
from core.scoring.parameters import ScoringParameters
from core.scoring.scorers import NEW_INSTANCE_SCORERS as SCORERS
from core.softhad import solve_soft_labels

SMALL = ScoringParameters(n_neighbors=10, n_nodes=40, n_graphs=2, n_features_kept=12, min_past_positives=5)


@pytest.fixture(scope="module")
def cohort():
    """Patients with several days, sparse values and flags, four learnable tasks, one hopeless and one too rare."""
    random = np.random.default_rng(0)
    n, p = 260, 30
    patients = np.sort(random.integers(0, 60, n))
    stable = random.normal(size=(60, p))[patients]
    values = (stable + random.normal(size=(n, p))) * (random.random((n, p)) < 0.6)
    is_flag = np.arange(p) % 3 == 0
    values[:, is_flag] = values[:, is_flag] > 0.5
    X = sparse.csr_matrix(values, dtype=np.float32)
    chance = 1 / (1 + np.exp(-(values @ random.normal(size=(p, 4)) * 0.7 - 0.8)))
    Y = random.random((n, 4)) < chance
    rare = np.zeros((n, 1), dtype=bool)
    rare[:3] = True
    Y = np.hstack((Y, rare))
    return X, Y, is_flag, patients, np.flatnonzero(patients < 42), np.flatnonzero(patients >= 42)


def run(cohort, **changes):
    X, Y, is_flag, patients, past, recent = cohort
    options = {
        "is_flag": is_flag,
        "patients": patients,
        "past": past,
        "recent": recent,
        "scorers": SCORERS,
        "parameters": SMALL,
        "seed": 3,
    }
    options.update(changes)
    return score_tasks(options.pop("X", X), options.pop("Y", Y), **options)


@pytest.fixture(scope="module")
def scored(cohort):
    return run(cohort)


def plain_evidence(cohort, task, parameters, seed):
    """The recommended default, steps 1 to 4, solving again for every instance."""
    X, Y, is_flag, patients, past, recent = cohort
    rows = np.r_[past, recent]
    y = np.where(Y[past, task], 1.0, -1.0)
    standardised = SparseStandardizer(clip=parameters.clip).fit(X[past], is_flag).transform(X[rows])
    table = wilcoxon_table(standardised[: len(past)], sparse.csr_array(Y[past][:, [task]].astype(float)))
    psi = np.abs(2 * table.auc[:, 0] - 1) * (np.abs(table.z[:, 0]) >= 2)
    kept = np.argsort(-psi, kind="stable")[: parameters.n_features_kept]
    kept = kept[psi[kept] > 0]
    points = standardised.toarray().astype(float)[:, kept] * (psi[kept] / psi[kept].mean())
    c, k = parameters.label_weight, parameters.n_neighbors
    left_out, support = np.zeros(len(rows)), np.zeros(len(rows))
    for number in range(parameters.n_graphs):
        nodes = sample_balanced_nodes(y, parameters.n_nodes, np.random.default_rng([seed, task, number]))
        at = points[nodes.rows]
        groups = patients[past][nodes.rows]
        W = knn_similarity(at, n_neighbors=k, groups=groups).toarray()
        d = np.sqrt(((at[:, None] - at) ** 2).sum(axis=2))
        d[groups[:, None] == groups] = np.inf
        s = np.sort(d, axis=1)[:, 6]
        for i in range(len(rows)):
            own = patients[rows[i]] == groups
            to_nodes = np.where(own, np.inf, np.sqrt(((at - points[i]) ** 2).sum(axis=1)))
            near = np.argsort(to_nodes, kind="stable")[: min(k, (~own).sum())]
            larger = np.zeros((len(at) + 1, len(at) + 1))
            larger[:-1, :-1] = W
            w = np.exp(-(to_nodes[near] ** 2) / (to_nodes[near[6]] * s[near]))
            larger[-1, near] = larger[near, -1] = w
            trust = np.append(np.where(own, 0.0, c), 0.0)
            v = np.append(nodes.multiplicities, 1.0)
            known = solve_soft_labels(
                larger, np.append(y[nodes.rows], 1.0), label_weight=trust, regularization=0.0, multiplicities=v
            )
            trust[-1] = c
            # With own label +1: l = (c + q) / (c + a), without: q / a; so a follows from both.
            with_label = solve_soft_labels(
                larger, np.append(y[nodes.rows], 1.0), label_weight=trust, regularization=0.0, multiplicities=v
            )
            left_out[i] += known[-1]
            a = c * (1 - with_label[-1]) / (with_label[-1] - known[-1])
            support[i] += a / (c + a)
    return left_out / parameters.n_graphs, support / parameters.n_graphs, kept, psi[kept]


def test_evidence_equals_solving_again_for_every_instance(cohort, scored):
    left_out, support, kept, psi = plain_evidence(cohort, 1, SMALL, 3)
    evidence = scored.evidence[1]
    np.testing.assert_allclose(evidence["left_out_soft_label"], left_out, atol=2e-5)
    np.testing.assert_allclose(evidence["support"], support, atol=2e-4)
    scores = scored.scores(1, "softhad")
    np.testing.assert_array_equal(scores.feature_indices, kept)
    np.testing.assert_allclose(scores.feature_weights, psi, rtol=1e-6)


def test_the_default_score_is_support_times_the_calibrated_chance_of_the_other_decision(cohort, scored):
    _, Y, _, _, past, recent = cohort
    n_past = len(past)
    evidence = [soft_label_evidence(scored.evidence[t]["left_out_soft_label"]) for t in scored.tasks]
    positive = [Y[past, t].astype(float) for t in scored.tasks]
    calibration = calibrate(lambda place: evidence[place][:n_past], positive.__getitem__, len(positive))
    for place, task in enumerate(scored.tasks):
        z = calibration.log_odds(place, evidence[place][n_past:])
        chance_of_yes = 1 / (1 + np.exp(-z))
        other = np.where(Y[recent, task], 1 - chance_of_yes, chance_of_yes)
        scores = scored.scores(task, "softhad")
        np.testing.assert_allclose(scores.score, scores.support * other, rtol=1e-5)
        np.testing.assert_array_equal(scores.score, scores.scaled_score)
        assert ((scores.score >= 0) & (scores.score <= 1)).all()


def test_the_pair_averages_log_odds_and_logistic_uses_no_support(cohort, scored):
    _, Y, _, _, _, recent = cohort
    for task in scored:
        soft, logistic, pair = (scored.scores(task, s) for s in ("softhad", "logistic", "pair"))
        y = np.where(Y[recent, task], 1.0, -1.0)
        z = [-y * np.log(p / (1 - p)) for p in (soft.score / soft.support, logistic.score.astype(float))]
        expected = soft.support / (1 + np.exp(y * (z[0] + z[1]) / 2))
        np.testing.assert_allclose(pair.score, expected, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(logistic.soft_label, np.tanh(z[1] / 2), atol=1e-4)


DAY = {
    "kinds": ["LAB_ORDER", "LAB_ORDER", "MEDICATION", "LAB_ORDER", "MEDICATION"],
    "order_groups": ["a", "a", "", "", "a"],
}


def test_the_day_adjusted_scorer_never_sees_its_own_order_group(cohort):
    _X, Y, *_ = cohort
    scored = run(cohort, scorers=("day-adjusted",), **DAY)
    turned = Y.copy()
    turned[:, 1] = ~turned[:, 1]
    again = run(cohort, scorers=("day-adjusted",), Y=turned, **DAY)
    np.testing.assert_array_equal(
        again.evidence[0]["day_adjusted_log_odds"], scored.evidence[0]["day_adjusted_log_odds"]
    )
    assert (again.evidence[3]["day_adjusted_log_odds"] != scored.evidence[3]["day_adjusted_log_odds"]).any()


def test_the_day_adjusted_scorer_finds_what_a_busy_day_explains(cohort):
    _X, Y, *_ = cohort
    random = np.random.default_rng(8)
    busy = random.random(len(Y)) < 0.5
    together = np.column_stack([random.random(len(Y)) < np.where(busy, 0.7, 0.1) for _ in range(12)])
    options = {"Y": together, "kinds": ["LAB_ORDER"] * 12, "order_groups": [""] * 12}
    scored = run(cohort, scorers=("softhad", "day-adjusted"), **options)
    recent = cohort[5]
    auc = {
        scorer: np.mean([rank_auc(together[recent, t], scored.scores(t, scorer).soft_label) for t in scored])
        for scorer in scored.scorers
    }
    assert auc["day-adjusted"] > 0.7 > auc["softhad"]
    first = scored.scores(scored.tasks[0], "day-adjusted")
    assert (first.score <= first.support).all()


def test_the_paper_s_scorer_is_min_max_on_the_past(scored):
    for task in scored:
        scores = scored.scores(task, "softhad-paper")
        low, high = scores.past_score.min(), scores.past_score.max()
        np.testing.assert_allclose(scores.scaled_score, (scores.score - low) / (high - low), atol=1e-5)
        assert scores.past_scaled_score.min() == pytest.approx(0, abs=1e-6)
        assert scores.past_scaled_score.max() == pytest.approx(1, abs=1e-6)
        outside = (scores.scaled_score < 0).sum() + (scores.scaled_score > 1).sum()
        assert scores.scale["n_below"] + scores.scale["n_above"] == outside


def test_every_scorer_finds_decisions_that_were_flipped(cohort):
    _X, Y, *_, recent = cohort
    random = np.random.default_rng(5)
    flipped = np.zeros(Y.shape, dtype=bool)
    flipped[recent[:, None], np.arange(4)] = random.random((len(recent), 4)) < 0.1
    scored = run(cohort, Y=Y ^ flipped)
    for scorer in SCORERS:
        scores = np.column_stack([scored.scores(task, scorer).scaled_score for task in range(4)])
        assert rank_auc(flipped[recent, :4].ravel(), scores.ravel()) > 0.65, scorer


def arrays_of(scored):
    return {
        (task, scorer, field.name): getattr(scored.scores(task, scorer), field.name)
        for task in scored
        for scorer in scored.scorers
        for field in dataclasses.fields(scored.scores(task, scorer))
        if isinstance(getattr(scored.scores(task, scorer), field.name), np.ndarray)
    }


def test_results_do_not_depend_on_the_number_of_workers(cohort, scored):
    expected = arrays_of(scored)
    for name, array in arrays_of(run(cohort, n_jobs=2)).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6, err_msg=str(name))


def test_a_recent_instance_scores_the_same_whoever_else_is_recent(cohort, scored):
    *_, recent = cohort
    part = recent[5:23]
    fewer = run(cohort, recent=part[::-1])
    for task in scored:
        for scorer in SCORERS:
            expected = scored.scores(task, scorer).score[5:23][::-1]
            np.testing.assert_allclose(fewer.scores(task, scorer).score, expected, rtol=1e-6)


def test_tasks_do_not_move_each_other_s_evidence(cohort, scored):
    _X, Y, *_ = cohort
    alone = run(cohort, Y=Y[:, :1])
    found, expected = (run.evidence[0]["left_out_soft_label"] for run in (alone, scored))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_task_with_too_few_decisions_is_listed_with_its_reason(scored):
    assert scored.tasks == (0, 1, 2, 3)
    assert len(scored) == 4
    reason = scored.not_scored[4]
    assert "Task 'number 4' has 3 positive past instances; at least 5 are needed." in reason
    assert "Lower min_past_positives or leave the task out" in reason
    with pytest.raises(NotFoundError, match="3 positive past instances"):
        scored.scores(4, "softhad")


def test_a_task_that_no_feature_tells_apart_is_listed_with_its_reason(cohort):
    strict = dataclasses.replace(SMALL, min_abs_z=99.0)
    scored = run(cohort, parameters=strict, task_names=["K+", "b", "c", "d", "e"], scorers=("softhad",))
    assert scored.tasks == ()
    assert "Task 'K+' cannot be scored: no feature" in scored.not_scored[0]


def test_a_common_decision_needs_negatives(cohort):
    _X, Y, *_ = cohort
    scored = run(cohort, Y=np.hstack((Y[:, :2], np.ones((len(Y), 1), dtype=bool))), scorers=("softhad",))
    assert "has 0 negative past instances" in scored.not_scored[2]


class Files(MutableMapping):
    """Evidence as it would lie in files: nothing but what a file without pickle can hold comes back."""

    def __init__(self):
        self.data = {}

    def __setitem__(self, task, evidence):
        self.data[task] = io.BytesIO()
        np.savez_compressed(self.data[task], **evidence)

    def __getitem__(self, task):
        self.data[task].seek(0)
        with np.load(self.data[task], allow_pickle=False) as stored:
            return dict(stored)

    def __delitem__(self, task):
        del self.data[task]

    def __iter__(self):
        return iter(self.data)

    def __len__(self):
        return len(self.data)


@pytest.mark.parametrize("scorers", [SCORERS, ("softhad", "logistic")])
def test_an_interrupted_run_goes_on_by_task_and_ends_the_same(cohort, scored, scorers):
    store = Files()

    def stop_after_two(done, n_all):
        if len(store) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cohort, store=store, on_progress=stop_after_two, scorers=scorers)
    before, progress = dict(store.data), []
    resumed = run(cohort, store=store, on_progress=lambda done, n_all: progress.append((done, n_all)), scorers=scorers)
    assert len(before) == 2
    assert sorted(store) == [0, 1, 2, 3]
    if scorers != SCORERS:
        # What all tasks have together is added to every task at the end.
        assert all(store.data[task] is buffer for task, buffer in before.items())
    assert progress[0] == (3, 5)
    assert progress[-1] == (5, 5)
    expected = arrays_of(scored)
    for name, array in arrays_of(resumed).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6, err_msg=str(name))


def test_without_leaving_patients_out_only_the_instance_itself_is_left_out(cohort, scored):
    alone = run(cohort, exclude_same_patient=False, scorers=("softhad",))
    X, _Y, _is_flag, _, _past, _recent = cohort
    as_patients = run(cohort, patients=np.arange(X.shape[0]), scorers=("softhad",))
    for task in alone:
        found, expected = (run.evidence[task]["left_out_soft_label"] for run in (alone, as_patients))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert (alone.evidence[0]["left_out_soft_label"] != scored.evidence[0]["left_out_soft_label"]).any()


def test_regularisation_pulls_towards_the_task_s_own_base_rate(cohort, scored):
    strong = run(cohort, parameters=dataclasses.replace(SMALL, regularization=1e6), scorers=("softhad",))
    _, Y, _, _, past, _ = cohort
    base = 2 * Y[past, 0].mean() - 1
    np.testing.assert_allclose(strong.evidence[0]["left_out_soft_label"], base, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scorers": ()}, "Unknown scorers"),
        ({"scorers": ("svn",)}, "choose one or more of shared, softhad"),
        ({"scorers": "softhad"}, "Unknown scorers"),
        ({"scorers": ("day-adjusted",)}, "needs kinds and order_groups of all 5 tasks"),
        ({"past": []}, "0 past and"),
        ({"past": [0, 1], "recent": [1, 2]}, "both learned from and scored"),
        ({"recent": [10_000]}, "Rows of past and recent"),
        ({"task_names": ["one"]}, "1 names for 5 tasks"),
        ({"is_flag": [True]}, "is_flag has shape"),
        ({"Y": np.zeros((3, 5), dtype=bool)}, "260 instances and Y 3"),
        ({"patients": [1, 2]}, "groups has shape"),
    ],
)
def test_bad_input_is_refused_by_name(cohort, changes, words):
    with pytest.raises(InvalidInputError, match=words):
        run(cohort, **changes)


def test_a_scorer_that_was_not_run_is_refused(cohort):
    with pytest.raises(NotFoundError, match="no scorer 'pair'"):
        run(cohort, scorers=("softhad",), Y=cohort[1][:, :1]).scores(0, "pair")
    with pytest.raises(NotFoundError, match="Task 7"):
        run(cohort, scorers=("softhad",), Y=cohort[1][:, :1]).scores(7, "softhad")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_nodes": 1}, "n_nodes is 1; it must be 2 or more"),
        ({"label_weight": 0.0}, "label_weight is 0.0; it must be above 0"),
        ({"regularization": float("nan")}, "regularization is nan"),
        ({"length_scale": 0.0}, "length_scale is 0.0"),
        ({"clip": float("inf")}, "clip is inf"),
    ],
)
def test_parameters_that_break_a_rule_are_refused_by_name(changes, words):
    with pytest.raises(InvalidInputError, match=words):
        ScoringParameters(**changes)
