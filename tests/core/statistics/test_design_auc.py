"""The AUC on all candidates: against plain loops over the same draws, what must not change it, and that it covers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import special

from benchmarks.fresh_coverage import Design, drawn, run_of, true_auc
from core.errors import InvalidInputError
from core.statistics import design_weighted_auc, design_weighted_difference
from core.statistics.auc import delong_interval
from core.statistics.bayesian_bootstrap import CandidateDraws, _divided_by_chance, auc_of
from core.statistics.candidate_figures import CandidateFigures
from core.studies.selection import SelectionDesign, choose_cases


def study(seed=0, n=60, n_patients=40, prevalence=0.2):
    rng = np.random.default_rng(seed)
    strata = rng.integers(0, 3, n)
    score = np.round(strata / 3 + rng.random(n) / 3, 2)
    sizes = np.array([9000.0, 900.0, 100.0])
    counts = np.bincount(strata, minlength=3)
    return {
        "y": (rng.random(n) < prevalence * (0.5 + score)).astype(float),
        "score": score,
        "patients": rng.integers(0, n_patients, n),
        "inclusion_probability": (counts / sizes)[strata],
        "strata": strata,
        "stratum_sizes": sizes,
    }


def test_draws_equal_plain_loops_over_pairs():
    given = study(n=20)
    is_positive, stratum, score = given["y"] == 1.0, given["strata"], given["score"]
    draws = CandidateDraws(is_positive, given["patients"], stratum, given["stratum_sizes"], np.ones(20))
    inside = score > 0.2
    for positive, negative in draws._weights(np.flatnonzero(inside), np.argsort(stratum[inside], kind="stable")):
        values = auc_of(score[inside])(positive, negative)
        for draw in range(3):
            won = every = 0.0
            for i, one in enumerate(score[inside]):
                for j, other in enumerate(score[inside]):
                    pair = positive[draw, i] * negative[draw, j]
                    every += pair
                    won += pair * (1.0 if one > other else 0.5 if one == other else 0.0)
            assert values[draw] == pytest.approx(won / every, rel=1e-12)


def test_weights_of_a_stratum_add_up_to_its_candidates():
    given = study()
    weight = 1.0 + np.random.default_rng(1).random(60)
    draws = CandidateDraws(given["y"] == 1.0, given["patients"], given["strata"], given["stratum_sizes"], weight)

    for positive, negative in draws._weights(np.arange(60), np.argsort(given["strata"], kind="stable")):
        for h, size in enumerate(given["stratum_sizes"]):
            rows = given["strata"] == h
            np.testing.assert_allclose((positive + negative)[:, rows].sum(axis=1), size)


def test_a_case_weighs_in_the_mean_of_the_draws_as_its_chance_says():
    weight = np.repeat([1.0, 1.2, 1.8, 5.0], 30)
    stratum, rows = (weight == 5.0).astype(int), np.arange(120)
    draws = CandidateDraws(rows % 2 == 0, rows, stratum, np.array([9_000.0, 500.0]), weight, n_draws=2_000)
    positive, negative = draws._weights(rows, rows, pseudo_cases=[0.1])[0]
    mean = (positive + negative).mean(axis=0).reshape(4, 30).mean(axis=1)
    np.testing.assert_allclose(mean, [75.0, 90.0, 135.0, 500 / 30], rtol=0.02)


def test_a_figure_is_handed_every_draw_once_however_many_a_cache_holds(monkeypatch):
    monkeypatch.setattr("core.statistics.bayesian_bootstrap.CACHED", 7 * 60)
    given, rows = study(), np.arange(60)
    draws = CandidateDraws(given["y"] == 1.0, given["patients"], given["strata"], given["stratum_sizes"], np.ones(60))
    seen = []
    draws.interval(
        lambda positive, negative: seen.append(positive) or negative[:, 0],
        0.95,
        rows,
        pseudo_cases=[0.1],
        is_share=False,
    )
    whole = draws._weights(rows, np.lexsort((given["strata"],)), [0.1])[0][0]
    np.testing.assert_array_equal(np.vstack(seen), whole)


@pytest.mark.parametrize("n_high", [37, 211, 364])
def test_unequal_chances_inside_a_stratum_give_about_the_interval_of_as_many_strata(n_high):
    """High scores are chosen ten times as often as low ones: one stratum or two, the design is the same."""
    rng, high = np.random.default_rng(0), np.arange(400) < n_high
    given = {
        "y": (rng.random(400) < np.where(high, 0.4, 0.1)).astype(float),
        "score": high + rng.random(400),
        "patients": np.arange(400),
        "inclusion_probability": np.where(high, 0.1, 0.01),
    }
    sizes = [100 * (400 - n_high), 10 * n_high]
    two = design_weighted_auc(**given, strata=high.astype(int), stratum_sizes=sizes)
    one = design_weighted_auc(**given, strata=np.zeros(400), stratum_sizes=[sum(sizes)])
    assert one.value == two.value
    assert (one.low, one.high) == pytest.approx((two.low, two.high), abs=0.03)


def test_an_interval_holds_the_truth_where_chances_of_a_stratum_differ_forty_times():
    """High scores are chosen most often; undivided, the interval held the truth in 37 of these 60 studies."""
    design = Design("", 600, 50, 0.05, (), (150,), unequal=3.0)
    rng = np.random.default_rng(77)
    patient, score, relevant = run_of(design, rng)
    truth, held = true_auc(relevant, score), 0
    for _ in range(60):
        rows, chance = drawn(design, score, np.zeros(score.size, dtype=np.int64), rng)
        found = design_weighted_auc(
            relevant[rows].astype(float),
            score[rows],
            patients=patient[rows],
            inclusion_probability=chance,
            strata=np.zeros(150),
            stratum_sizes=[score.size],
        )
        held += found.low <= truth <= found.high
    assert held >= 54


def test_a_stratum_is_divided_where_chances_differ_twice_and_more():
    weight = np.array([1.0, 1.9, 2.0, 3.9, 4.1, 5.0, 5.0 + 1e-12])
    stratum, size = np.array([0, 0, 0, 0, 0, 1, 1]), np.array([129.0, 50.0])
    divided, sizes = _divided_by_chance(weight, stratum, size)
    assert divided.tolist() == [0, 0, 2, 2, 3, 1, 1]
    np.testing.assert_allclose(sizes, [129 * 2.9 / 12.9, 50.0, 129 * 5.9 / 12.9, 129 * 4.1 / 12.9])
    for scale in (1e-6, 1e6):
        assert np.array_equal(_divided_by_chance(scale * weight, stratum, size)[0], divided)
    few = _divided_by_chance(weight[:5], stratum[:5], np.array([5.0]))
    # Two of the five candidates by weight would be 1.1: no part has fewer candidates than cases.
    np.testing.assert_allclose(few[1], [2.0, 5 * 5.9 / 12.9, 5 * 4.1 / 12.9])


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_order_of_rows_names_of_patients_and_scale_of_scores_change_nothing(spread):
    given = study()
    given["inclusion_probability"] *= 1.0 - spread * np.random.default_rng(2).random(60)
    before = design_weighted_auc(**given)
    order = np.random.default_rng(1).permutation(60)
    per_row = ("y", "score", "patients", "inclusion_probability", "strata")
    turned = {key: value[order] if key in per_row else value for key, value in given.items()}
    turned["score"] = special.logit(0.001 + 0.998 * turned["score"])
    turned["patients"] = np.array([f"p{one:03}" for one in turned["patients"]])
    after = design_weighted_auc(**turned)
    assert (after.value, after.low, after.high) == pytest.approx((before.value, before.low, before.high), abs=1e-12)


def test_a_difference_turns_its_sign_with_the_scorers_and_is_zero_between_equal_ones():
    given = study(n=120)
    score = given.pop("score")
    other = np.random.default_rng(9).random(120)
    one, turned = (
        design_weighted_difference(score_a=a, score_b=b, **given) for a, b in ((score, other), (other, score))
    )
    assert one.difference.value == -turned.difference.value
    apart = design_weighted_auc(score=score, **given).value - design_weighted_auc(score=other, **given).value
    assert one.difference.value == pytest.approx(apart, abs=1e-12)
    assert (one.p_value < 0.05) == (not one.difference.low <= 0.0 <= one.difference.high)
    same = design_weighted_difference(score_a=score, score_b=2.0 * score, **given)
    assert (same.difference.low, same.difference.high, same.p_value) == (0.0, 0.0, None)


def test_an_undetermined_case_is_as_one_that_is_not_there():
    given = study()
    given["y"][:5] = np.nan
    per_row = ("y", "score", "patients", "inclusion_probability", "strata")
    without = {key: value[5:] if key in per_row else value for key, value in given.items()}
    one, other = design_weighted_auc(**given), design_weighted_auc(**without)
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)
    assert one.left_out == {"no label": 5}


def test_the_interval_holds_the_value_and_is_wider_where_a_heavy_stratum_has_no_positive():
    given = study(seed=2)
    none_low = {**given, "y": np.where(given["strata"] == 0, 0.0, given["y"])}
    usual, blind = design_weighted_auc(**given), design_weighted_auc(**none_low)
    for one in (usual, blind):
        assert one.low <= one.value <= one.high
    # The value is near 1 only because no judged low-score case was relevant; the interval says what 9,000 may hide.
    assert blind.value > 0.9 > blind.low
    assert blind.high - blind.low > usual.high - usual.low


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.zeros(60)}, "not computable: one class only (0 positive, 60 negative)"),
        ({"y": np.ones(60)}, "not computable: one class only (60 positive, 0 negative)"),
        ({"y": np.full(60, np.nan)}, "not computable: no case has both a label and a score"),
        ({"score": np.full(60, np.nan)}, "not computable: no case has both a label and a score"),
        ({"score": np.full(60, 0.5)}, "not computable: all scores equal"),
        ({"patients": np.zeros(60)}, "interval not computable: all cases come from one patient"),
    ],
)
def test_what_cannot_be_computed_says_why(change, words):
    found = design_weighted_auc(**{**study(), **change})
    assert found.reason == words
    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize("n", [0, 1])
def test_without_two_judged_cases_there_is_no_auc(n):
    per_row = ("y", "score", "patients", "inclusion_probability", "strata")
    given = {key: value[:n] if key in per_row else value for key, value in study().items()}
    found = design_weighted_auc(**given)
    assert found.value is None
    assert found.reason.startswith("not computable: ")


def test_the_interval_is_wider_where_cases_without_votes_could_be_anything():
    """Votes that are missing among the high scores take cases away; the interval must not get narrower by that."""
    given = study(seed=3, n=200)
    fewer = {**given, "y": np.where((given["score"] > 0.5) & (np.arange(200) % 4 > 0), np.nan, given["y"])}
    usual, thin = design_weighted_auc(**given), design_weighted_auc(**fewer)
    assert thin.high - thin.low > usual.high - usual.low


@pytest.mark.parametrize("prevalence", [0.02, 0.2, 0.9])
@pytest.mark.parametrize("seed", range(8))
def test_every_figure_lies_between_its_limits_inside_zero_and_one(prevalence, seed):
    found = design_weighted_auc(**study(seed=seed, n=30, n_patients=5, prevalence=prevalence))
    if found.has_interval:
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    else:
        assert found.reason


def test_a_stratum_without_a_judged_case_is_left_out():
    given = study()
    with_empty = {**given, "stratum_sizes": np.append(given["stratum_sizes"], 5_000.0)}
    one, other = design_weighted_auc(**given), design_weighted_auc(**with_empty)
    assert one.value == other.value
    assert other.has_interval


def test_complete_separation_has_a_lower_bound_only():
    given = study()
    given["y"] = (given["score"] > 0.7).astype(float)
    found = design_weighted_auc(**given)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low < 0.95


def test_only_another_seed_gives_another_interval():
    given = study()
    first, again, other = (design_weighted_auc(**given, random_state=seed) for seed in (None, 0, 1))
    assert first == again
    assert other.low != first.low
    assert other.low == pytest.approx(first.low, abs=0.05)


def test_lists_frames_and_other_kinds_of_labels_give_the_same_figure():
    given = study()
    frame = pd.DataFrame({key: given[key] for key in ("y", "score", "patients")}, index=range(100, 160))
    names = [("low", "middle", "high")[h] for h in given["strata"]]
    spellings = (
        {key: value.tolist() for key, value in given.items()},
        {**given, **{key: frame[key] for key in frame}},
        {**given, "y": given["y"].astype(bool)},
        {**given, "y": pd.Series(given["y"], dtype="Int64")},
        {**given, "strata": given["strata"].astype(float)},
        {**given, "strata": names, "stratum_sizes": {"low": 9000, "middle": 900, "high": 100}},
        {**given, "strata": given["strata"] + 1, "stratum_sizes": {1: 9000, 2: 900, 3: 100}},
    )
    expected = design_weighted_auc(**given)
    for spelling in spellings:
        y, score = spelling.pop("y"), spelling.pop("score")
        assert design_weighted_auc(y, score, **spelling) == expected


def test_a_higher_level_gives_an_interval_around_that_of_a_lower_one():
    found = [design_weighted_auc(**study(), level=level) for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)]
    assert [one.level for one in found] == [0.5, 0.8, 0.9, 0.95, 0.99, 0.999]
    for inner, outer in itertools.pairwise(found):
        assert outer.low < inner.low <= inner.value <= inner.high < outer.high


def test_an_interval_shrinks_with_the_share_of_candidates_that_is_judged():
    """With the fraction f of every stratum judged, the reach is that of few judged times the root of 1 - f."""
    rng = np.random.default_rng(5)
    y = (rng.random(400) < 0.3).astype(float)
    score, strata = y + rng.normal(0.0, 1.5, 400), np.arange(400) % 2
    widths = {}
    for share in (0.001, 0.5, 0.9, 0.99):
        chance, sizes = np.full(400, share), np.full(2, 200 / share)
        given = {"inclusion_probability": chance, "strata": strata, "stratum_sizes": sizes}
        found = design_weighted_auc(y, score, patients=np.arange(400), **given)
        widths[share] = found.high - found.low
    for share, width in widths.items():
        assert width == pytest.approx(widths[0.001] * np.sqrt(1.0 - share), rel=0.1)


def test_a_census_of_many_patients_has_about_the_interval_of_unweighted_cases():
    rng = np.random.default_rng(6)
    y = (rng.random(300) < 0.3).astype(float)
    score, ones = y + rng.normal(0.0, 1.5, 300), np.ones(300)
    strata = (score > 0.5).astype(int)
    found = design_weighted_auc(
        y,
        score,
        patients=np.arange(300),
        inclusion_probability=ones,
        strata=strata,
        stratum_sizes=np.bincount(strata),
    )
    naive = delong_interval(y, score)
    assert found.value == pytest.approx(naive.value, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((naive.low, naive.high), abs=0.02)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"strata": np.full(60, 3)}, "A case has stratum 3, but there are 3 stratum sizes"),
        ({"strata": np.full(60, -1)}, "A case has stratum -1"),
        ({"strata": np.full(60, 0.5)}, "A case has stratum 0.5"),
        ({"strata": np.full(60, np.nan)}, "A case has stratum nan"),
        ({"strata": np.zeros(59)}, "'strata' has 59 values and 'y' has 60"),
        ({"inclusion_probability": np.zeros(60)}, "Inclusion probability 0 is not above 0"),
        ({"inclusion_probability": np.full(60, 1.01)}, "Inclusion probability 1.01 is not above 0 and at most 1"),
        ({"inclusion_probability": np.full(60, np.nan)}, "Inclusion probability nan is not above 0"),
        ({"inclusion_probability": np.full(61, 0.5)}, "'inclusion_probability' has 61 values and 'y' has 60"),
        ({"stratum_sizes": np.array([9000.0, 900.0, 1.0])}, "Stratum 2 has 1 candidates and"),
        ({"stratum_sizes": np.array([9000.0, np.nan, 100.0])}, "Stratum 1 has nan candidates"),
        ({"y": np.full(60, 2.0)}, "Label 2 is neither"),
        ({"y": np.full(60, "relevant")}, "'y' holds something that is not a number"),
        ({"score": np.zeros(59)}, "'score' has 59 values and 'y' has 60"),
        ({"patients": np.zeros(59)}, "'patients' has shape"),
        ({"patients": np.zeros((60, 1))}, "'patients' has shape"),
        ({"patients": None}, "'patients' has shape"),
        ({"patients": [None, *range(59)]}, "Entry 0 of 'patients' is missing"),
        ({"patients": [*range(59), np.nan]}, "Entry 59 of 'patients' is missing"),
        ({"patients": [*["a"] * 59, pd.NA]}, "Entry 59 of 'patients' is missing"),
        ({"patients": pd.Series([*["a"] * 59, 1])}, "'patients' mixes text and numbers"),
        ({"strata": ["low"] * 60}, "'strata' holds something that is not a number.*as a dict"),
        ({"strata": ["low"] * 60, "stratum_sizes": {"high": 100}}, "A case has stratum 'low', which has no size"),
        ({"strata": ["low"] * 60, "stratum_sizes": {"low": 59}}, "Stratum low has 59 candidates and 60 cases"),
        ({"stratum_sizes": 100.0 * (1.0 + study()["strata"])}, "'stratum_sizes' repeats a size for each case"),
        ({"stratum_sizes": 100.0}, "'stratum_sizes' has 0 dimensions"),
        ({"inclusion_probability": 0.5}, "'inclusion_probability' has 0 dimensions"),
        *(({"level": level}, f"Confidence level {level!r}") for level in (1.0, 0, 95, "95 %", None, np.nan)),
        *(({"random_state": seed}, f"'random_state' is {seed!r}") for seed in (-1, 1.5, "a", True)),
    ],
)
def test_wrong_input_is_refused_by_name_and_value(change, words):
    with pytest.raises(InvalidInputError, match=words):
        design_weighted_auc(**{**study(), **change})


def test_it_covers_the_auc_of_all_candidates_where_the_jackknife_did_not():
    """60 cases at 2.6 % relevance, where leaving out patients covers about half of the time."""
    rng = np.random.default_rng(5)
    patient, score = rng.integers(0, 400, 30_000), rng.beta(0.6, 3.0, 30_000)
    y = rng.random(30_000) < special.expit(4.0 * score - 4.6)
    truth = np.mean(np.searchsorted(np.sort(score[~y]), score[y])) / (~y).sum()
    held = []
    for seed in range(60):
        chosen = choose_cases(score, patient, SelectionDesign(n_cases=60, seed=seed))
        found = design_weighted_auc(
            y[chosen.index].astype(float),
            score[chosen.index],
            patients=patient[chosen.index],
            inclusion_probability=chosen.inclusion_probability,
            strata=chosen.stratum,
            stratum_sizes=[stratum.n_population for stratum in chosen.strata],
        )
        if found.has_interval:
            held.append(found.low <= truth <= found.high)
    assert len(held) > 40
    assert np.mean(held) >= 0.9


def test_a_small_share_is_covered_in_many_strata():
    """30 cases of six strata at 1 % relevance, where a quarter of a positive case in each stratum is too many."""
    rng = np.random.default_rng(3)
    stratum, size = np.repeat(np.arange(6), 5), np.full(6, 1_000.0)
    held = []
    for _ in range(60):
        y = (rng.random(30) < 0.01).astype(float)
        found = CandidateFigures(y, np.full(30, 200.0), np.arange(30), stratum, size, 0.95).share()
        held.append(found.low <= 0.01 <= found.high)
    assert np.mean(held) >= 0.93


def test_the_effective_number_of_patients_is_that_of_the_rarer_class_and_of_whole_patients():
    strata, size = np.repeat([0, 1], 20), np.array([200.0, 40.0])
    patient, y = np.arange(40), np.zeros(40)
    y[[20, 21, 22]] = 1.0

    def n_effective(y, patient, inside=patient >= 0):
        return CandidateDraws(y == 1.0, patient, strata, size, np.ones(40)).n_effective(inside)

    assert n_effective(y, patient) == n_effective(1.0 - y, patient) == 3.0
    assert n_effective(y, np.where(y == 1.0, 99, patient)) == 1.0
    assert n_effective(y, patient, inside=patient != 20) == 2.0
    y[0] = 1.0
    assert n_effective(y, patient) == pytest.approx((10.0 + 3 * 2.0) ** 2 / (10.0**2 + 3 * 2.0**2))
    assert n_effective(np.zeros(40), patient) == 0.0


@pytest.mark.parametrize(
    ("n_relevant", "auc_text", "difference_text"),
    [
        (1, "with 0.1 pseudo", "with 0.1 pseudo"),
        (2, "with 0.1 pseudo", "with 0.1 pseudo"),
        (3, "with 0.1 pseudo", "0.1 and 0.25 pseudo"),
        (4, "with 0.1 pseudo", "0.1 and 0.25 pseudo"),
        (5, "0.1 and 0.25 pseudo", "0.1 and 0.5 pseudo"),
    ],
)
def test_few_relevant_cases_are_not_outweighed_by_pseudo_cases(n_relevant, auc_text, difference_text):
    given = {**study(n_patients=10_000), "inclusion_probability": np.full(60, 0.1), "strata": np.repeat(0, 60)}
    given["stratum_sizes"] = [600.0]
    score = given.pop("score")
    given["y"] = (np.arange(60) < n_relevant).astype(float)
    other = design_weighted_difference(score_a=score, score_b=score[::-1], **given).difference
    assert auc_text in design_weighted_auc(score=score, **given).method
    assert difference_text in other.method


def test_an_auc_is_covered_where_one_candidate_in_a_hundred_is_relevant_in_many_strata():
    """With half a pseudo-case of each class in six strata the upper limit would be drawn to one half: 90 % cover."""
    rng = np.random.default_rng(4)
    first, size = np.array([0, 0, 2_500, 2_500, 5_300, 5_300]), np.array([1_250, 1_250, 1_400, 1_400, 350, 350])
    chance = special.expit(1.6 * special.ndtri((np.arange(6_000) + 0.5) / 6_000) - 5.6)
    other = np.cumsum(1.0 - chance) - (1.0 - chance) / 2.0
    truth = chance @ other / (chance.sum() * (1.0 - chance).sum())
    stratum = np.repeat(np.arange(6), 20)
    held = []
    for _ in range(150):
        score = first[stratum] + rng.integers(0, 2 * size[stratum])
        y = (rng.random(120) < chance[score]).astype(float)
        given = y, size[stratum] / 20.0, np.arange(120), stratum, size.astype(float), 0.95
        found = CandidateFigures(*given).auc(score.astype(float))
        if found.has_interval:
            held.append(found.low <= truth <= found.high)
    assert len(held) > 130
    assert np.mean(held) >= 0.93


def figures_in_groups(seed, n_patients_of_group):
    """300 cases of 100 patients, 12 % relevant; the group is the first few patients."""
    rng = np.random.default_rng(seed)
    stratum, patient = np.repeat([0, 1, 2], 100), rng.integers(0, 100, 300)
    score = (stratum + rng.random(300)) / 3.0
    y = (rng.random(300) < 0.24 * score).astype(float)
    size = np.array([9_000.0, 900.0, 100.0])
    group = patient < n_patients_of_group
    return CandidateFigures(y, size[stratum] / 100.0, patient, stratum, size, 0.95), score, group


@pytest.mark.parametrize("n_patients_of_group", [4, 12, 50])
@pytest.mark.parametrize("seed", range(4))
def test_a_difference_of_groups_is_no_better_known_than_the_auc_of_each(seed, n_patients_of_group):
    figures, score, group = figures_in_groups(seed, n_patients_of_group)
    found = figures.group_difference(score, group).difference
    for side in (group, ~group):
        if found.has_interval:
            alone = figures.auc(score, side)
            assert found.high - found.low > 0.7 * (alone.high - alone.low)


def test_a_difference_of_groups_turns_its_sign_with_them():
    figures, score, group = figures_in_groups(0, 40)
    first, other = figures.group_difference(score, group), figures.group_difference(score, ~group)
    assert first.difference.value == pytest.approx(-other.difference.value)
    assert (first.difference.low, first.difference.high) == pytest.approx(
        (-other.difference.high, -other.difference.low), abs=0.05
    )


def test_a_group_of_one_patient_has_a_difference_without_an_interval():
    figures, score, group = figures_in_groups(0, 40)
    labels = figures._y.copy()
    one = np.arange(300) == np.flatnonzero(group & (labels == 1.0))[0]
    one |= np.arange(300) == np.flatnonzero(group & (labels == 0.0))[0]
    patient = np.where(one, 500, figures._patient)
    alone = CandidateFigures(labels, figures._weight, patient, figures._stratum, figures._size, 0.95)
    found = alone.group_difference(score, one)
    assert found.difference.value is not None
    assert found.difference.low is found.difference.high is found.p_value is None
    assert "come from one patient" in found.difference.reason
