"""The shared scorer: what must not change it, what must, and its steps against plain versions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from core.cohort.feature_roles import FEATURE_GROUP_WEIGHTS, OWN_ITEM, FeatureRoles, shares_name
from core.scoring.all_tasks import score_tasks
from core.scoring.calibration import fit_line
from core.scoring.own_history import NEVER, OwnHistory, residual_targets
from core.scoring.parameters import ScoringParameters
from core.scoring.scores import score_by_scale
from core.scoring.shared import SharedModel
from core.scoring.signs import (
    NAMED_EFFECT,
    NAMED_RIDGE,
    STRONG_EFFECT,
    OtherMembers,
    count_patients,
    fit_named,
    fit_signs,
    named_flags,
    patient_weights,
    score_signs,
)

N_PATIENTS, N_TASKS = 60, 4
SMALL = ScoringParameters(n_features_kept=12, min_past_positives=5)
SCALE = {"center": 0.0, "intercept": 0.0, "slope": 1.0}
KINDS, GROUPS = ["LAB_ORDER"] * 3 + ["MEDICATION"], ["a", "a", "", ""]


@pytest.fixture(scope="module")
def cohort():
    """Twelve signs of two drugs and ten labs, hours since each lab, and tasks that follow their own history."""
    random = np.random.default_rng(0)
    n, p = 420, 24
    patients = np.sort(random.integers(0, N_PATIENTS, n))
    level = random.normal(size=(N_PATIENTS, 12))[patients]
    signs = (level + random.normal(size=(n, 12)) > 0.8).astype(float)
    hours = np.where(random.random((n, 12)) < 0.5, random.uniform(1, 60, (n, 12)), 0)
    X = sparse.csr_array(np.hstack((signs, hours)), dtype=np.float32)
    chance = 1 / (1 + np.exp(-(signs @ random.normal(size=(12, N_TASKS)) - 0.8 + (hours[:, :N_TASKS] > 30))))
    own = np.full((N_TASKS, len(OWN_ITEM)), -1, dtype=np.int32)
    own[:, list(OWN_ITEM).index("recent")] = np.arange(N_TASKS)
    own[:, list(OWN_ITEM).index("since")] = 12 + np.arange(N_TASKS)
    roles = FeatureRoles(
        groups=np.array(["now"] * 12 + ["since"] * 12),
        own_item=own,
        signs=np.arange(12, dtype=np.int32),
        named=np.array([[0, 10], [0, 11], [2, 11]], dtype=np.int32),
        measured=np.arange(p) < 10,
        on=(np.arange(p) >= 10) & (np.arange(p) < 12),
        given=np.zeros(p, dtype=bool),
        day_of_stay=-1,
    )
    return X, random.random((n, N_TASKS)) < chance, patients, roles


def run(cohort, *, past, recent, Y=None, order=None, **changes):
    X, decisions, patients, roles = cohort
    Y = decisions if Y is None else Y
    options = {"scorers": ("shared",), "parameters": SMALL, "seed": 1, "kinds": KINDS, "order_groups": GROUPS}
    order = np.arange(len(patients)) if order is None else order
    return score_tasks(
        X[order],
        Y[order],
        is_flag=np.arange(X.shape[1]) < 12,
        is_elapsed=np.arange(X.shape[1]) >= 12,
        patients=patients[order],
        past=past,
        recent=recent,
        roles=roles,
        **(options | changes),
    )


def split(cohort):
    patients = cohort[2]
    return np.flatnonzero(patients < 45), np.flatnonzero(patients >= 45)


def log_odds(scored):
    return np.column_stack([scored.evidence[task]["shared_log_odds"] for task in scored])


def test_recent_decisions_enter_nowhere(cohort):
    past, recent = split(cohort)
    turned = cohort[1].copy()
    turned[recent] = ~turned[recent]
    first, second = (log_odds(run(cohort, past=past, recent=recent, Y=Y)) for Y in (cohort[1], turned))
    np.testing.assert_array_equal(first, second)


def test_weights_of_groups_are_learned_from_the_past_alone_and_stored(cohort):
    past, recent = split(cohort)
    turned = cohort[1].copy()
    turned[recent] = ~turned[recent]
    learning = replace(SMALL, learn_group_weights=True)
    first, second = (run(cohort, past=past, recent=recent, Y=Y, parameters=learning) for Y in (cohort[1], turned))
    weights = first.shared.group_weights
    assert weights == second.shared.group_weights
    assert set(weights) == set(FEATURE_GROUP_WEIGHTS)
    assert weights["now"] / weights["since"] > FEATURE_GROUP_WEIGHTS["now"] / FEATURE_GROUP_WEIGHTS["since"]
    assert SharedModel.of_stored(first.shared.stored()).group_weights == weights
    fixed = run(cohort, past=past, recent=recent)
    assert fixed.shared.group_weights == {}
    assert not np.array_equal(log_odds(first), log_odds(fixed))


def test_the_past_of_an_instance_s_own_patient_hardly_matters_to_it(cohort):
    """The first solve leaves it out exactly; later steps see it only through what other patients' days look like."""
    past, recent = np.arange(0, 400), np.arange(400, 420)
    patients = cohort[2]
    patient = patients[400]
    own = patients == patient
    assert own[:400].any()
    assert own[400:].any()
    turned = cohort[1].copy()
    turned[np.flatnonzero(own[:400])] ^= True
    options = {"past": past, "recent": recent}

    def uncalibrated(**changes):
        scored = run(cohort, **options, **changes)
        return log_odds(scored)[400:][own[400:]] / scored.shared.arrays["history_line"][1]

    left_out = [uncalibrated(Y=Y) for Y in (cohort[1], turned)]
    let_in = [uncalibrated(Y=Y, exclude_same_patient=False) for Y in (cohort[1], turned)]
    moved, moved_when_let_in = (np.abs(a - b).mean() for a, b in (left_out, let_in))
    assert moved < 0.5 * moved_when_let_in
    assert moved < 0.25


def test_neither_the_batch_nor_the_workers_matter(cohort):
    past, recent = split(cohort)
    whole = log_odds(run(cohort, past=past, recent=recent))
    few = log_odds(run(cohort, past=past, recent=recent[3:7], n_jobs=2))
    np.testing.assert_allclose(few[len(past) :], whole[len(past) + 3 : len(past) + 7], atol=1e-4)


def test_the_order_of_rows_changes_little(cohort):
    """Patients keep their part, and all past rows are landmarks; ties between features may be ranked otherwise."""
    past, recent = split(cohort)
    first = log_odds(run(cohort, past=past, recent=recent))
    order = np.concatenate((np.random.default_rng(1).permutation(past), recent))
    again = log_odds(run(cohort, past=past, recent=recent, order=order))
    np.testing.assert_allclose(again[: len(past)], first[order[: len(past)]], atol=2e-2)


def test_neither_rows_that_take_no_part_nor_the_place_of_rows_matter(cohort):
    past, recent = split(cohort)
    first = log_odds(run(cohort, past=past, recent=recent))
    backwards = np.arange(len(cohort[2]))[::-1]
    turned = run(cohort, past=backwards[past], recent=backwards[recent], order=backwards)
    np.testing.assert_allclose(log_odds(turned), first, atol=1e-4)
    n, X = 25, cohort[0]
    more = sparse.csr_array(sparse.vstack((X[:n] * 2, X)))
    patients = np.r_[np.full(n, N_PATIENTS + 7), cohort[2]]
    wider = (more, np.concatenate((~cohort[1][:n], cohort[1])), patients, cohort[3])
    np.testing.assert_allclose(log_odds(run(wider, past=past + n, recent=recent + n)), first, atol=1e-4)


def test_a_stored_model_expects_what_the_run_did(cohort):
    past, recent = split(cohort)
    scored = run(cohort, past=past, recent=recent)
    model = SharedModel.of_stored(scored.shared.stored())
    prepared = scored.prepared
    found = model.expect(sparse.csr_array(prepared.columns)[len(past) :], cohort[0][recent])
    np.testing.assert_allclose(found.log_odds, log_odds(scored)[len(past) :], atol=1e-4)
    support = scored.evidence[0]["shared_support"]
    np.testing.assert_allclose(found.support, support[len(past) :], atol=1e-4)
    assert ((support >= 0) & (support <= 1)).all()


def test_a_model_stored_without_names_expects_what_it_did(cohort):
    past, recent = split(cohort)
    X, decisions, patients, roles = cohort
    unnamed = X, decisions, patients, replace(roles, named=roles.named[:0])
    scored = run(unnamed, past=past, recent=recent)
    older = {name: array for name, array in scored.shared.stored().items() if "named" not in name}
    columns = sparse.csr_array(scored.prepared.columns)[len(past) :]
    expected = SharedModel.of_stored(older).expect(columns, cohort[0][recent])
    np.testing.assert_allclose(expected.log_odds, log_odds(scored)[len(past) :], atol=1e-4)


WITHOUT_SIGNS = replace(SMALL, sign_ridge=1e12)


def test_own_history_leaves_chances_that_come_true(cohort):
    past, recent = split(cohort)
    unnamed = *cohort[:3], replace(cohort[3], named=cohort[3].named[:0])
    scored = run(unnamed, past=past, recent=recent, parameters=WITHOUT_SIGNS)
    expected = log_odds(scored)[: len(past)].astype(float).ravel()
    line = fit_line(expected, cohort[1][past].ravel().astype(float))
    assert (line.intercept, line.slope) == pytest.approx((0, 1), abs=1e-3)
    model = scored.shared
    older = SharedModel(model.tasks, {name: model.arrays[name] for name in model.arrays if name != "history_line"})
    columns = sparse.csr_array(scored.prepared.columns)[len(past) :]
    new, old = (each.expect(columns, cohort[0][recent]).log_odds for each in (model, older))
    intercept, slope = model.arrays["history_line"]
    np.testing.assert_allclose(intercept + slope * old, new, atol=1e-4)


def test_a_level_is_expected_of_the_first_patient_on_its_drug(cohort):
    X, decisions, patients, roles = cohort
    past, recent = split(cohort)
    features = X.toarray()
    features[:, 10] = np.isin(patients, (50, 51))

    def expected(named):
        with_names = sparse.csr_array(features), decisions, patients, replace(roles, named=named)
        return log_odds(run(with_names, past=past, recent=recent))[:, 0]

    found = expected(np.array([[0, 10]], dtype=np.int32)) - expected(roles.named[:0])
    np.testing.assert_allclose(found, NAMED_EFFECT * np.r_[np.zeros(len(past)), features[recent, 10]], atol=1e-5)


def test_own_history_helps_where_decisions_follow_it(cohort):
    past, recent = split(cohort)
    losses = []
    for roles in (cohort[3], None):
        scored = run((*cohort[:3], roles), past=past, recent=recent)
        taken = cohort[1][recent]
        chance = 1 / (1 + np.exp(-log_odds(scored)[len(past) :]))
        losses.append(-np.log(np.where(taken, chance, 1 - chance)).mean())
    assert losses[0] < losses[1]


def test_without_roles_every_feature_weighs_the_same(cohort):
    past, recent = split(cohort)
    scored = run((*cohort[:3], None), past=past, recent=recent, kinds=None, order_groups=None)
    assert np.isfinite(log_odds(scored)).all()


def test_the_score_is_the_weighted_mean_of_the_chances_of_both_members(cohort):
    past, recent = split(cohort)
    # With fewer features than the member sees, it is the scorer "logistic".
    scored = run(cohort, past=past, recent=recent, scorers=("shared", "logistic"))
    found = scored.scores(0, "shared")
    logistic = (1 + scored.scores(0, "logistic").soft_label.astype(float)) / 2
    chance = (2 / (1 + np.exp(-log_odds(scored)[len(past) :, 0])) + logistic) / 3
    np.testing.assert_allclose(found.score, np.where(cohort[1][recent, 0], 1 - chance, chance), atol=1e-5)
    np.testing.assert_allclose(found.soft_label, 2 * chance - 1, atol=1e-5)


def test_scaled_scores_order_decisions_of_all_tasks_by_the_chance_of_a_mistake(cohort):
    past, recent = split(cohort)
    scored = run(cohort, past=past, recent=recent)
    error = 1e-3  # share of the decisions taken that is forgotten; a rarer one is also taken by mistake less often
    mistaken, scaled = [], []
    for task in scored:
        found = scored.scores(task, "shared")
        taken = cohort[1][recent, task]
        share = cohort[1][past, task].mean()
        expected = (1 + found.soft_label.astype(float)) / 2
        forgotten, by_mistake = error * expected, error * (share / (1 - share)) ** 0.6 * (1 - expected)
        chance = np.where(taken, by_mistake / (by_mistake + expected), forgotten / (forgotten + 1 - expected))
        odds = found.scaled_score.astype(float) / (1 - found.scaled_score.astype(float))
        np.testing.assert_allclose(odds, chance / (1 - chance) / error, rtol=1e-3)
        np.testing.assert_array_equal(found.scaled_score[~taken], found.score[~taken])
        mistaken.append(chance)
        scaled.append(found.scaled_score)
    order = np.argsort(np.concatenate(scaled), kind="stable")
    assert (np.diff(np.concatenate(mistaken)[order]) > -1e-7).all()


def test_looking_back_knows_the_other_decisions_of_the_window_and_never_the_own(cohort):
    past, recent = split(cohort)
    both = ("shared", "shared-looking-back")
    before = run(cohort, past=past, recent=recent, scorers=both)
    turned = cohort[1].copy()
    turned[recent, 0] = ~turned[recent, 0]
    after = run(cohort, past=past, recent=recent, scorers=both, Y=turned)
    for task in before:
        one, other = (scored.scores(task, "shared-looking-back").soft_label for scored in (before, after))
        # Tasks 0 and 1 are one order group, whose decisions explain neither of them.
        assert np.array_equal(one, other) == (task in (0, 1))
        np.testing.assert_array_equal(before.scores(task, "shared").soft_label, after.scores(task, "shared").soft_label)
        assert not np.array_equal(one, before.scores(task, "shared").soft_label)


def test_what_the_shared_graph_expects_is_the_same_whichever_scorers_are_asked_for(cohort):
    past, recent = split(cohort)
    asked = [("shared",), ("shared-looking-back",), ("softhad", "shared", "shared-looking-back")]
    first, *others = (log_odds(run(cohort, past=past, recent=recent, scorers=scorers)) for scorers in asked)
    for found in others:
        np.testing.assert_array_equal(found, first)


def test_a_scale_that_was_stored_without_what_is_general_scores_as_it_did():
    evidence = {"shared_log_odds": np.array([1.0, -2.0]), "short_logistic_log_odds": np.array([1.0, -2.0])}
    scale = {f"{name}_{part}": slope for part in ("shared", "short-logistic") for name, slope in SCALE.items()}
    y = np.array([1.0, 1.0])
    before = score_by_scale(evidence, y, "shared", scale)
    np.testing.assert_array_equal(before.score, before.scaled_score)
    after = score_by_scale(evidence, y, "shared", scale | {"in_general": np.log(0.25)})
    np.testing.assert_array_equal(after.score, before.score)
    odds = before.score / (1 - before.score)
    np.testing.assert_allclose(after.scaled_score / (1 - after.scaled_score), odds / 4)


def test_certain_members_leave_the_score_finite():
    evidence = {"shared_log_odds": np.array([1e4, -1e4]), "short_logistic_log_odds": np.array([1e4, 1e4])}
    scale = {f"{name}_{part}": slope for part in ("shared", "short-logistic") for name, slope in SCALE.items()}
    found = score_by_scale(evidence, np.array([1.0, 1.0]), "shared", scale)
    np.testing.assert_allclose(found.score, [0.0, 2 / 3], atol=1e-12)


def test_history_features_tell_of_the_task_s_own_item(cohort):
    X, _, _, roles = cohort
    history = OwnHistory(sparse.csc_array(X), roles, np.array([0, 0, 1, 2]), np.array([0, 0, 0, 1]))
    found, dense = history.of_task(1, -1.5, np.arange(420), slice(None)), X.toarray()
    np.testing.assert_array_equal(found[:, list(OWN_ITEM).index("recent")], dense[:, 1])
    hours = np.where(dense[:, 13] > 0, dense[:, 13], NEVER)
    np.testing.assert_array_equal(found[:, list(OWN_ITEM).index("since")], hours)
    np.testing.assert_array_equal(found[:, -8], dense[:, 0])
    np.testing.assert_array_equal(found[:, -7], dense[:, :10].sum(axis=1))
    np.testing.assert_array_equal(found[:, -6], dense[:, 10:12].sum(axis=1))
    assert (found[:, -2] == -1.5).all()
    np.testing.assert_array_equal(found[:, -1], np.arange(420))
    assert (history.of_task(2, 0.0, np.zeros(420), slice(None))[:, -8] == -1).all()
    few = np.array([7, 3, 300])
    np.testing.assert_array_equal(history.of_task(1, -1.5, few, few), found[few])


def test_targets_are_residuals_in_units_of_their_variance():
    targets, weights = residual_targets(np.array([True, False, True]), np.array([0.0, np.log(0.25), -9.0]))
    np.testing.assert_allclose(weights, [0.25, 0.16, 0.02])
    np.testing.assert_allclose(targets, [2.0, -1.25, 4.0])


@pytest.fixture
def signs():
    random = np.random.default_rng(2)
    there = (random.random((900, 15)) < 0.2).astype(float)
    groups = random.integers(0, 90, 900)
    offset = random.normal(size=900) - 1
    positive = random.random(900) < 1 / (1 + np.exp(-(offset + 2.5 * there[:, 4])))
    return sparse.csr_array(there), groups, offset, positive


ALONE = OtherMembers(np.zeros(900), 1.0)
FLAT = OtherMembers(np.full(900, 0.3 / 3), 2 / 3)
"""A member with a third of the weight that expects .3 whatever the signs."""


def fit(signs, others, n_patients):
    """Choose and fit the signs of one task."""
    there, groups, offset, positive = signs
    weights = patient_weights(groups)
    slope, curvature = score_signs(there, positive[:, None], offset[:, None], weights, others[:, None])
    chances = sparse.csc_array(there), positive, offset, weights, others
    return fit_signs(*chances, slope[:, 0], curvature[:, 0], np.full(15, n_patients), 2.0)


def losses(positive, offset, weights, others, tried):
    """Minus log likelihood of the mean chance with each of the effects tried, of shape (n_tried,)."""
    chance = others.share / (1 + np.exp(-(offset[:, None] + tried))) + others.chances[:, None]
    return -(weights @ np.where(positive[:, None], np.log(chance), np.log(1 - chance)))


def penalty(effect):
    """Of a sign's effect with a ridge of 2."""
    return STRONG_EFFECT**2 * np.log1p((effect / STRONG_EFFECT) ** 2)


@pytest.mark.parametrize("others", [ALONE, FLAT], ids=["alone", "in a mean"])
def test_a_sign_s_effect_makes_the_decisions_likeliest(signs, others):
    there, groups, offset, positive = signs
    chosen, effects = fit(signs, others, 90)
    assert chosen[0] == 4
    offset = offset + there.toarray()[:, chosen[1:]] @ effects[1:]
    days, tried = there.toarray()[:, 4] > 0, np.linspace(-2, 8, 1001)
    loss = losses(positive[days], offset[days], patient_weights(groups)[days], others[days], tried) + penalty(tried)
    assert effects[0] == pytest.approx(tried[np.argmin(loss)], abs=2e-2)


def test_other_members_that_see_nothing_of_a_sign_leave_more_for_it_to_add(signs):
    assert fit(signs, FLAT, 90)[1][0] > fit(signs, ALONE, 90)[1][0] > 0


def test_strong_evidence_of_few_patients_is_hardly_drawn_back(signs):
    there, groups, _, _ = signs
    days = there.toarray()[:, 4] > 0
    few = (there, groups, np.full(900, -7.0), days & (np.cumsum(days) <= 40))
    chosen, effects = fit(few, ALONE, 90)
    assert chosen[0] == 4
    share = few[3][days].mean()
    # Without a penalty: what brings the base rate to the share on days with the sign; half a ridge of 2 x 5^2 is 25.
    assert effects[0] > 0.9 * (np.log(share / (1 - share)) + 7)


def test_a_sign_of_few_patients_is_not_chosen(signs):
    assert not fit(signs, ALONE, 4)[1].any()


@pytest.mark.parametrize("others", [ALONE, FLAT], ids=["alone", "in a mean"])
@pytest.mark.parametrize("n", [0, 1, 12, 900])
def test_a_drug_of_the_lab_s_name_counts_before_any_data_which_then_correct_it(signs, n, others):
    _, groups, offset, positive = signs
    weights = patient_weights(groups)[:n]
    effect = fit_named(positive[:n], offset[:n], weights, others[:n])
    tried = np.linspace(-4, 4, 801)
    loss = losses(positive[:n], offset[:n], weights, others[:n], tried) + NAMED_RIDGE / 2 * (tried - NAMED_EFFECT) ** 2
    assert effect == pytest.approx(tried[np.argmin(loss)], abs=1e-2)


@pytest.mark.parametrize("taken", [True, False])
def test_a_named_drug_s_effect_stays_finite_against_certainty(taken):
    against = np.full(50, -40.0 if taken else 40.0)
    for others in (ALONE, OtherMembers(np.full(900, 0.0 if taken else 1 / 3), 2 / 3)):
        assert np.isfinite(fit_named(np.full(50, taken), against, np.ones(50), others[:50]))


def test_a_stored_zero_is_no_sign(cohort, monkeypatch):
    monkeypatch.setattr("core.scoring.signs.SMALLEST_SCORE", 0.0)
    past, recent = split(cohort)
    found = cohort[0].tocoo()
    rows = np.arange(0, len(past), 7)
    X = sparse.csr_array(found)
    absent = [(row, 10) for row in rows if X[row, 10] == 0]
    row, column = np.r_[found.row, [at[0] for at in absent]], np.r_[found.col, [at[1] for at in absent]]
    data = np.r_[found.data, np.zeros(len(absent), dtype=np.float32)]
    stored = sparse.coo_array((data, (row, column)), shape=X.shape).tocsr()
    assert stored.nnz == X.nnz + len(absent) > X.nnz
    plain, with_zeros = (log_odds(run((each, *cohort[1:]), past=past, recent=recent)) for each in (X, stored))
    np.testing.assert_allclose(with_zeros, plain, atol=1e-4)


def test_a_named_drug_is_there_once_however_many_courses_say_so(signs):
    there = signs[0]
    named = np.array([[0, 3], [0, 4], [2, 4]], dtype=np.int32)
    dense = there.toarray() > 0
    expected = np.column_stack((dense[:, 3] | dense[:, 4], np.zeros(len(dense)), dense[:, 4]))
    np.testing.assert_array_equal(named_flags(sparse.csc_array(there), named, 3).toarray(), expected)


@pytest.mark.parametrize(
    ("drug", "lab", "shared"),
    [
        ("Vancomycin", "Vancomycin Trough", True),
        ("IV Vancomycin HCl", "Vancomycin [Blood]", True),
        ("Tacrolimus", "tacroFK", True),
        ("Divalproex", "Valproic Acid", False),
        ("Valproate", "Valproic Acid", True),
        ("Calcium Gluconate", "Free Calcium", True),
        ("Red Blood Cells", "Blood Culture", False),
        ("Cyclophosphamide", "Cyclosporin", False),
        ("Phenobarbital", "Phenytoin", False),
        ("0.9% Sodium Chloride", "Chloride", False),
        ("", "INR", False),
        ("12", "12", False),
    ],
)
def test_a_drug_and_a_lab_share_a_name_by_the_drug_s_first_word(drug, lab, shared):
    assert shares_name(drug, lab) == shared


def test_roles_know_drugs_of_a_lab_s_name():
    dictionary = pd.DataFrame(
        [(drug, aspect, f"{drug}: {aspect}") for drug in ("Digoxin", "Aspirin") for aspect in ("on_now", "given_24h")],
        columns=["source", "aspect", "meaning"],
    )
    tasks = ["Digoxin", "Digoxin Level", "INR"], ["MEDICATION", "LAB_ORDER", "LAB_ORDER"]
    assert FeatureRoles.of(dictionary, *tasks).named.tolist() == [[1, 0], [1, 1]]
    assert FeatureRoles.of(dictionary, ["INR"], ["LAB_ORDER"]).named.shape == (0, 2)


def test_patients_with_a_sign_are_counted_once(signs):
    there, groups, *_ = signs
    dense = there.toarray()
    expected = [len(set(groups[dense[:, sign] > 0])) for sign in range(15)]
    assert count_patients(there, groups).tolist() == expected


def test_of_a_hundred_days_with_a_chance_about_that_many_had_the_decision(cohort):
    patients = cohort[2]
    chances, taken = [], []
    for fold in range(3):
        past, recent = np.flatnonzero(patients % 3 != fold), np.flatnonzero(patients % 3 == fold)
        scored = run(cohort, past=past, recent=recent)
        chances.append(np.column_stack([(1 + scored.scores(task, "shared").soft_label) / 2 for task in scored]))
        taken.append(cohort[1][np.ix_(recent, list(scored))])
    chance, came_true = np.concatenate(chances).ravel(), np.concatenate(taken).ravel()
    place = np.digitize(chance, [0.2, 0.4, 0.6, 0.8])
    for bin_ in range(5):
        expected, found = chance[place == bin_], came_true[place == bin_]
        assert len(found) > 50
        # Days of a patient are alike: half as many of them are taken as independent.
        error = np.sqrt(expected.mean() * (1 - expected.mean()) * 2 / len(found))
        assert abs(found.mean() - expected.mean()) < 3 * error
