"""Agreement, ceiling, reliability and multi-reader figures of a report by the plainest road; see `second_road`."""

import math
from collections import Counter
from itertools import combinations, permutations

import numpy as np
from scipy import stats

from tests.support.second_road import (
    N_DRAWS,
    NAN,
    codes_of,
    covariance,
    estimate,
    expit,
    leave_one_out_error,
    logit,
    t_of,
    wilson,
    wins,
    z_of,
)


def given_votes(row):
    return [float(vote) for vote in row if not np.isnan(vote)]


def agreement_figures(study, votes, n_categories, inside=None):
    about = np.ones(study.n, dtype=bool) if inside is None else inside
    rows, patient = [given_votes(row) for row in votes[about]], study.patient[about]
    kept = [i for i, row in enumerate(rows) if len(row) >= 2]
    left_out = {"no vote": sum(not row for row in rows), "one vote only": sum(len(row) == 1 for row in rows)}
    left_out = {why: count for why, count in left_out.items() if count}
    nothing = estimate(study, None, n=len(kept), left_out=left_out)
    own, units = [rows[i] for i in kept], [int(patient[i]) for i in kept]
    singles = [row[0] for row in rows if len(row) == 1]
    found = {"n_cases": len(kept), "n_votes": sum(map(len, rows))}
    n_voted = sum(not np.isnan(votes[about][:, column]).all() for column in range(votes.shape[1]))
    if n_voted < 2 or not own:
        return found | dict.fromkeys(("raw", "fleiss", "alpha", "ac1"), nothing)
    agreeing = np.array([np.mean([a == b for a, b in combinations(row, 2)]) for row in own])
    found["raw"] = spread(study, float(agreeing.mean()), agreeing, units, nothing, is_share=True)
    seen = sorted({vote for row in own for vote in row} | set(singles))
    if len(seen) < 2:
        return found | dict.fromkeys(("fleiss", "alpha", "ac1"), nothing)
    shares = np.array([[row.count(code) / len(row) for code in seen] for row in own])
    every = np.vstack([shares, [[float(single == code) for code in seen] for single in singles]]) if singles else shares
    mean, scale = every.mean(axis=0), 1.0 / (max(n_categories, len(seen)) - 1)
    chances = {
        "fleiss": (sum(p * p for p in mean), [sum(row * mean) for row in shares]),
        "ac1": (scale * sum(p * (1 - p) for p in mean), [scale * sum(row * (1 - mean)) for row in shares]),
    }
    for name, (chance, per_case) in chances.items():
        value = (agreeing.mean() - chance) / (1 - chance)
        parts = [a - chance - 2 * (1 - value) * (e - chance) for a, e in zip(agreeing, per_case, strict=True)]
        found[name] = spread(study, float(value), np.array(parts) / (1 - chance), units, nothing)
    found["alpha"] = alpha_figure(study, own, units, nothing)
    return found


def spread(study, value, per_case, units, like, *, is_share=False):
    """Return a figure with the interval that the sums of its parts over patients give."""
    n_units = len(set(units))
    if n_units < 2:
        return like | {"value": value}
    sums = Counter()
    for unit, part in zip(units, per_case - per_case.mean(), strict=True):
        sums[unit] += float(part)
    error = math.sqrt(n_units / (n_units - 1) * sum(total**2 for total in sums.values())) / len(units)
    if error < 1e-13:
        low, high = wilson(value, n_units, z_of(study)) if is_share else (None, None)
        return like | {"value": value, "low": low, "high": high}
    reach = t_of(study, n_units - 1) * error
    return like | {
        "value": value,
        "low": max(0.0 if is_share else -1.0, value - reach),
        "high": min(1.0, value + reach),
    }


def alpha(rows):
    """Return one less observed over expected disagreement, over pairs; None with one category only."""
    every = Counter(vote for row in rows for vote in row)
    n = sum(every.values())
    observed = sum(sum(a != b for a, b in permutations(row, 2)) / (len(row) - 1) for row in rows) / n if n else 0.0
    expected = sum(every[a] * every[b] for a, b in permutations(every, 2)) / (n * (n - 1)) if n > 1 else 0.0
    return 1.0 - observed / expected if expected else None


def alpha_figure(study, rows, units, like):
    value = alpha(rows)
    if value is None:
        return like
    names = sorted(set(units))
    without = [alpha([row for row, own in zip(rows, units, strict=True) if own != unit]) for unit in names]
    if len(names) < 2 or None in without:
        return like | {"value": value}
    reach = t_of(study, len(names) - 1) * leave_one_out_error(without)
    return like | {"value": value, "low": max(-1.0, value - reach), "high": min(1.0, value + reach)}


def cohen(study, first, second):
    """Return Cohen's kappa with the large-sample variance of Fleiss, Cohen and Everitt (1969), term by term."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if not np.isnan(a) and not np.isnan(b)]
    left_out = {"not voted on by both": len(first) - len(pairs)} if len(pairs) < len(first) else {}
    nothing = estimate(study, None, n=len(pairs), left_out=left_out)
    codes = sorted({code for pair in pairs for code in pair})
    if len(codes) < 2:
        return nothing
    n = len(pairs)
    p = {(a, b): pairs.count((a, b)) / n for a in codes for b in codes}
    row, column = ({a: sum(p[(a, b)[::way]] for b in codes) for a in codes} for way in (1, -1))
    observed, chance = sum(p[a, a] for a in codes), sum(row[a] * column[a] for a in codes)
    value = (observed - chance) / (1 - chance)
    variance = sum(p[a, a] * (1 - (row[a] + column[a]) * (1 - value)) ** 2 for a in codes)
    variance += (1 - value) ** 2 * sum(p[a, b] * (column[a] + row[b]) ** 2 for a in codes for b in codes if a != b)
    variance -= (value - chance * (1 - value)) ** 2
    variance /= (1 - chance) ** 2 * n
    if not variance > 1e-16:
        return nothing | {"value": value}
    reach = z_of(study) * math.sqrt(variance)
    return nothing | {"value": value, "low": max(-1.0, value - reach), "high": min(1.0, value + reach)}


def weighted_agreement(study, votes):
    """Return agreement on all candidates, leaving out one patient at a time."""
    rows = [given_votes(row) for row in votes]
    kept = [i for i, row in enumerate(rows) if len(row) >= 2 and np.isfinite(study.weight[i])]
    left_out = {"fewer than two votes, or no weight": study.n - len(kept)} if len(kept) < study.n else {}
    like = estimate(study, None, n=len(kept), left_out=left_out)

    def coefficients(cases):
        every = sum(study.weight[i] for i in cases)
        observed = sum(study.weight[i] * np.mean([a == b for a, b in combinations(rows[i], 2)]) for i in cases) / every
        yes = sum(study.weight[i] * np.mean(rows[i]) for i in cases) / every
        chances = yes**2 + (1 - yes) ** 2, 2 * yes * (1 - yes)
        return [observed, *((observed - chance) / (1 - chance) if chance < 1 else NAN for chance in chances)]

    units = sorted({study.patient[i] for i in kept})
    without = [coefficients([i for i in kept if study.patient[i] != unit]) for unit in units]
    found = {}
    for k, (name, lowest) in enumerate((("raw", 0.0), ("fleiss", -1.0), ("ac1", -1.0))):
        value = float(coefficients(kept)[k])
        reach = t_of(study, len(units) - 1) * leave_one_out_error([one[k] for one in without])
        found[name] = like | {"value": value, "low": max(lowest, value - reach), "high": min(1.0, value + reach)}
    return found


def majority_share(chance, n_readers):
    """Return how often the majority of readers who vote alike says yes, ties left out."""

    def more(p):
        votes = range(n_readers // 2 + 1, n_readers + 1)
        return sum(math.comb(n_readers, k) * p**k * (1 - p) ** (n_readers - k) for k in votes)

    return more(chance) / (more(chance) + more(1 - chance))


def share_of_majorities(chance, n_votes):
    """Return how often so many votes have a positive majority; half where they are even."""
    n = int(n_votes)
    terms = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    return sum(term * (0.5 if 2 * k == n else 2 * k > n) for k, term in enumerate(terms))


def ceiling(study, votes):
    """Return the ceiling with errors of readers estimated case by case instead of by pattern of votes."""
    rows = [given_votes(row) for row in votes]
    kept = [i for i, row in enumerate(rows) if len(row) >= 2]
    left_out = {"fewer than two votes": study.n - len(kept)} if len(kept) < study.n else {}
    nothing = estimate(study, None, n=len(kept), left_out=left_out)
    yes, given = (np.array([of(rows[i]) for i in kept], dtype=float) for of in (sum, len))
    patient, weight = codes_of(study.patient[kept]), np.nan_to_num(study.weight[kept])
    rng = np.random.default_rng(0)
    by_patient = rng.standard_gamma(1.0, (N_DRAWS, patient.max() + 1))
    own = np.vstack([np.ones(len(kept)), by_patient[:, patient]])
    found, false = alike_readers(own, yes, given)
    majority = np.where(yes == given / 2, 0.5, yes > given / 2)
    on_positive, on_negative = (np.stack([share_of_majorities(p, n) for n in given], axis=1) for p in (found, false))
    truths = []
    for size, pseudo_cases in ((np.ones(len(kept)), 0.0), (weight, 0.25)):
        more = step = 0.0
        for one in sorted(set(size) - {0.0}):
            inside = size == one
            pseudo = np.hstack([np.zeros((2, 1)), rng.standard_gamma(pseudo_cases, (2, N_DRAWS))])
            positive, negative = (
                (own * of)[:, inside].sum(axis=1) + pseudo.sum(axis=0) * share_of_majorities(p, given.max())
                for p, of in ((found, on_positive), (false, on_negative))
            )
            hits = (own * majority)[:, inside].sum(axis=1) + pseudo[1]
            each = one * inside.sum() / (own[:, inside].sum(axis=1) + pseudo.sum(axis=0))
            more, step = more + each * (hits - negative), step + each * (positive - negative)
        truths.append(np.clip(more / step, 0.0, 1.0))
    named = dict(zip(("naive", "weighted", "sensitivity", "specificity"), [nothing] * 4, strict=True))
    if not 0.0 < truths[0][0] < 1.0:
        return named | {"reader_error": None, "n_readers": study.n_slots}
    n_patients = len(set(patient))
    sensitivity, false_share = majority_share(found, study.n_slots), majority_share(false, study.n_slots)
    for name, truth in zip(("naive", "weighted"), truths, strict=True):
        with np.errstate(invalid="ignore", divide="ignore"):
            positive = truth * sensitivity / (truth * sensitivity + (1 - truth) * false_share)
            rest = (1 - truth) * (1 - false_share)
            value = (positive + rest / (rest + truth * (1 - sensitivity))) / 2
        value = np.where((truth > 0.0) & (truth < 1.0), value, 0.5)
        if 0.0 < truth[0] < 1.0:
            named[name] = between(study, value, 0.5, n_patients, nothing)
    named["sensitivity"] = between(study, found, 0.0, n_patients, nothing)
    named["specificity"] = between(study, 1.0 - false, 0.0, n_patients, nothing)
    wrong = truths[0][0] * (1 - found[0]) + (1 - truths[0][0]) * false[0]
    return named | {"reader_error": float(wrong), "n_readers": study.n_slots}


def between(study, values, lowest, n_patients, like):
    value = float(values[0])
    draws = logit(np.clip((values[1:] - lowest) / (1 - lowest), 1e-12, 1 - 1e-12))
    low, middle, high = (float(np.quantile(draws, q)) for q in (0.5 - study.level / 2, 0.5, 0.5 + study.level / 2))
    wider = t_of(study, n_patients - 1) / z_of(study)
    low, high = (float(lowest + (1 - lowest) * expit(middle + wider * (end - middle))) for end in (low, high))
    return like | {"value": value, "low": min(low, value), "high": max(high, value)}


def alike_readers(own, yes, given):
    """Return the chance of a positive vote on positive and on negative cases, in each draw of weights of cases."""
    moments = []
    for j in range(3):
        enough = given > j
        share = np.prod([np.maximum(yes - k, 0.0) / np.maximum(given - k, 1.0) for k in range(j + 1)], axis=0)
        moments.append((own * share)[:, enough].sum(axis=1) / own[:, enough].sum(axis=1))
    m1, m2, m3 = moments
    with np.errstate(invalid="ignore", divide="ignore"):
        s = (m3 - m1 * m2) / (m2 - m1**2)
        root = np.sqrt(s**2 - 4 * (s * m1 - m2))
        found, false = (s + root) / 2, (s - root) / 2
        share = (m1 - false) / (found - false)
    fine = (found < 1) & (false > 0) & (share > 0) & (share < 1)
    found, false, share = (np.where(fine, x, y) for x, y in ((found, 0.75), (false, 0.25), (share, 0.5)))
    for _ in range(100):
        likely, other = share[:, None] * chance(found, yes, given), (1 - share)[:, None] * chance(false, yes, given)
        positive = own * likely / (likely + other)
        negative = own - positive
        found = (positive @ yes + 0.5) / (positive @ given + 1)
        false = (negative @ yes + 0.5) / (negative @ given + 1)
        share = (positive.sum(axis=1) + 0.5) / (own.sum(axis=1) + 1)
    return found, false


def chance(p, yes, given):
    """Return the chance of the votes of each case, of which each is positive with chance p."""
    powers = [np.array([q**k for k in range(int(given.max()) + 1)]).T for q in (p, 1 - p)]
    return powers[0][:, yes.astype(int)] * powers[1][:, (given - yes).astype(int)]


def dawid_skene(votes):
    """Return label by reliability, and what the report says of it, by loops over cases and readers."""
    n, r = votes.shape
    given = [[j for j in range(r) if not np.isnan(votes[i, j])] for i in range(n)]
    voted = [i for i in range(n) if given[i]]
    belief = {i: float(np.mean([votes[i, j] for j in given[i]])) for i in voted}
    n_steps, moved = 0, 1.0
    while moved >= 1e-8 and n_steps < 500:
        n_steps += 1
        share = (sum(belief.values()) + 0.5) / (len(voted) + 1)
        right = {}
        for j in range(r):
            own = [i for i in voted if j in given[i]]
            for truth, sure in ((1.0, belief), (0.0, {i: 1 - belief[i] for i in voted})):
                hit = sum(sure[i] for i in own if votes[i, j] == truth)
                right[j, truth] = (hit + 0.5) / (sum(sure[i] for i in own) + 1)
        updated = {}
        for i in voted:
            odds = share / (1 - share)
            for j in given[i]:
                sensitivity, specificity = right[j, 1.0], right[j, 0.0]
                odds *= sensitivity / (1 - specificity) if votes[i, j] else (1 - sensitivity) / specificity
            updated[i] = odds / (1 + odds)
        moved = max(abs(updated[i] - belief[i]) for i in voted)
        belief = updated
    label = np.full(n, NAN)
    for i in voted:
        label[i] = NAN if abs(belief[i] - 0.5) < 1e-9 else float(belief[i] > 0.5)
    return label, len(voted), share, right, n_steps, moved < 1e-8


def multi_reader(study, votes):
    """Return Obuchowski and Rockette's means and differences, leaving out one case at a time anew."""
    keys = list(study.scores)
    scored = [i for i in range(study.n) if all(np.isfinite(study.scores[key][i]) for key in keys)]
    readers = [j for j in range(votes.shape[1]) if min((votes[scored, j] == v).sum() for v in (0.0, 1.0)) >= 2]
    t, r, n = len(keys), len(readers), len(scored)
    value, without = np.empty((t, r)), np.empty((n, t, r))
    for b, j in enumerate(readers):
        yes, no = (np.array([i for i in scored if votes[i, j] == v]) for v in (1.0, 0.0))
        for a, key in enumerate(keys):
            pairs = wins(study.scores[key][yes], study.scores[key][no])
            value[a, b] = pairs.mean()
            for k, i in enumerate(scored):
                without[k, a, b] = pairs[yes != i][:, no != i].mean()
    cells = [(a, b) for a in range(t) for b in range(r)]
    cov = {
        (c, d): (n - 1) ** 2 / n * covariance(without[:, c[0], c[1]], without[:, d[0], d[1]])
        for c in cells
        for d in cells
        if c[1] != d[1]
    }
    cov2 = [np.mean([own for (c, d), own in cov.items() if c[0] == d[0] == a]) for a in range(t)]
    cov3 = np.mean([own for (c, d), own in cov.items() if c[0] != d[0]])
    found = {"n_readers": r, "means": {}, "differences": {}, "p_values": {}}
    for a, key in enumerate(keys):
        square = float(np.var(value[a], ddof=1))
        found["means"][key] = hillis(study, value[a].mean(), square, r * max(cov2[a], 0.0), r - 1, 1 / r, n, 0.0)[0]
    rest = value - value.mean(axis=1, keepdims=True) - value.mean(axis=0) + value.mean()
    square, degrees = float((rest**2).sum() / ((t - 1) * (r - 1))), (t - 1) * (r - 1)
    for a, key in enumerate(keys[1:], start=1):
        apart, extra = value[0].mean() - value[a].mean(), r * max(np.mean(cov2) - cov3, 0.0)
        own, p = hillis(study, apart, square, extra, degrees, 2 / r, n, -1.0)
        found["differences"][key], found["p_values"][key] = own, p
    return found


def hillis(study, value, square, extra, degrees, factor, n, lowest):
    error, df = math.sqrt(factor * (square + extra)), (square + extra) ** 2 / (square**2 / degrees)
    reach = t_of(study, df) * error
    found = estimate(study, float(value), max(lowest, float(value - reach)), min(1.0, float(value + reach)), n)
    return found, float(2 * stats.t.sf(abs(value) / error, df))
