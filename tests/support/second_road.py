"""Every number of a report again, from the CSV files of its export alone, by the plainest road.

Nothing of `core` is used. Pairs of cases are compared one with another, patients and cases are left out by computing
anew, and readers' errors are estimated case by case. Only the random numbers are the same: the same generator is asked
for the same numbers in the same order.
"""

import csv
import json
import math
from collections import Counter

import numpy as np
from scipy import stats

FIRST, SECOND = {3.0}, {2.0, 3.0}
GROUPINGS = {"kind": "kind", "decision": "decision", "sex": "sex", "age band": "age_band", "unit": "unit"}
BUDGETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5)
N_DRAWS = 600
WIDE, NARROW, NARROWEST = (0.1, 0.5), (0.1, 0.25), (0.1,)
NAN = float("nan")


class Study:
    """The files as arrays, by case in the order of the file."""

    def __init__(self, folder):
        def rows(name):
            with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))

        self.settings = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["study"]
        self.level, self.n_slots = self.settings["level"], self.settings["n_slots"]
        self.cases, self.strata, self.budgets, self.repeats = map(rows, ("cases", "strata", "budgets", "repeats"))
        self.n = len(self.cases)
        self.place = {row["case_id"]: i for i, row in enumerate(self.cases)}
        self.weight = 1.0 / self.numbers("inclusion_probability")
        self.patient = codes_of(self.column("patient_id"))
        names = [row["stratum"] for row in self.strata]
        self.size = np.array([float(row["n_population"]) for row in self.strata])
        self.stratum = np.array([names.index(name) for name in self.column("stratum")])
        self.scores = {}
        for row in rows("scores"):
            score = self.scores.setdefault(row["scorer"], np.full(self.n, NAN))
            score[self.place[row["case_id"]]] = float(row["score"]) if row["score"] else NAN
        newest = {}
        for row in sorted(rows("judgments"), key=lambda row: int(row["version"])):
            newest[row["case_id"], row["reader"]] = row
        self.readers = sorted({reader for _, reader in newest})
        self.answers = np.full((self.n, len(self.readers)), NAN)
        for (case, reader), row in newest.items():
            self.answers[self.place[case], self.readers.index(reader)] = float(row["answer"])
        seconds = [float(row["active_seconds"]) for row in newest.values() if row["active_seconds"]]
        self.minutes = float(np.median(seconds)) / 60.0 if seconds else None

    def column(self, name):
        return np.array([row[name] for row in self.cases], dtype=object)

    def numbers(self, name):
        return np.array([float(row[name]) if row[name] else NAN for row in self.cases])

    def votes(self, positive):
        """1 and 0 for each vote, NaN for none; "cannot judge" is none."""
        voted = ~np.isnan(self.answers) & (self.answers != 0.0)
        return np.where(voted, np.isin(self.answers, list(positive)), NAN)

    def groups(self):
        for grouping, column in GROUPINGS.items():
            values = self.column(column)
            yield grouping, [(group, values == group) for group in sorted(set(values))]


def codes_of(values):
    known = sorted(set(values))
    return np.array([known.index(value) for value in values], dtype=int)


def estimate(study, value, low=None, high=None, n=0, left_out=None):
    return {"value": value, "low": low, "high": high, "level": study.level, "n": n, "left_out": left_out or {}}


def t_of(study, degrees):
    return float(stats.t.ppf(0.5 + study.level / 2.0, degrees))


def z_of(study):
    return float(stats.norm.ppf(0.5 + study.level / 2.0))


def majority(votes):
    label = np.full(len(votes), NAN)
    for i, row in enumerate(votes):
        yes, no = int((row == 1.0).sum()), int((row == 0.0).sum())
        if max(yes, no) >= 2 and yes != no:
            label[i] = float(yes > no)
    return label


def why_undetermined(votes):
    yes, no = int((votes == 1.0).sum()), int((votes == 0.0).sum())
    if yes + no < 2:
        return "one vote only" if yes + no else "no vote"
    return f"votes do not decide ({yes} against {no})"


def usable(study, y, inside, scores=(), weighted=True):
    """Return which cases a figure uses, and why others of those that it is about are left out."""
    keep, left_out = [], Counter()
    for i in np.flatnonzero(inside):
        if np.isnan(y[i]):
            left_out["no label"] += 1
        elif not all(np.isfinite(score[i]) for score in scores):
            left_out["no score"] += 1
        elif weighted and not np.isfinite(study.weight[i]):
            left_out["no inclusion probability"] += 1
        else:
            keep.append(i)
    return np.array(keep, dtype=int), dict(left_out)


def wins(positive, negative):
    """Return for each pair of scores 1 where the positive one is higher, one half where both are equal."""
    return (positive[:, None] > negative).astype(float) + 0.5 * (positive[:, None] == negative)


def area(y, score, weight):
    """Return the weighted AUC over all pairs; None without both classes."""
    yes, no = y == 1.0, y == 0.0
    if not yes.any() or not no.any():
        return None
    return float(weight[yes] @ wins(score[yes], score[no]) @ weight[no] / (weight[yes].sum() * weight[no].sum()))


def leave_one_out_error(without):
    without = np.asarray(without)
    return math.sqrt((without.size - 1) / without.size * float(((without - without.mean()) ** 2).sum()))


def wilson(share, n, quantile):
    middle, reach = (
        share + quantile**2 / (2 * n),
        quantile * math.sqrt(share * (1 - share) / n + (quantile / n) ** 2 / 4),
    )
    return max(0.0, (middle - reach) / (1 + quantile**2 / n)), min(1.0, (middle + reach) / (1 + quantile**2 / n))


def logit(x):
    return np.log(x) - np.log1p(-x)


def expit(x):
    return 1.0 / (1.0 + np.exp(-x))


def plain_share(study, y, patient):
    """Share of positive cases, leaving out one patient at a time."""
    kept = ~np.isnan(y)
    left_out = {"no label": int((~kept).sum())} if not kept.all() else {}
    y, patient = y[kept], patient[kept]
    if not y.size:
        return estimate(study, None, left_out=left_out)
    value, units = float(y.mean()), sorted(set(patient))
    if 0.0 < value < 1.0 and len(units) > 1:
        error = leave_one_out_error([y[patient != unit].mean() for unit in units])
        reach = t_of(study, len(units) - 1) * error / (value * (1 - value))
        low, high = float(expit(logit(value) - reach)), float(expit(logit(value) + reach))
    else:
        low, high = wilson(value, min(y.size, len(units)), t_of(study, max(len(units) - 1, 1)))
    return estimate(study, value, low, high, int(y.size), left_out)


class Labelled:
    """Figures of one labelling on all candidates."""

    def __init__(self, study, y):
        self.study, self.y = study, y
        self.rows = np.flatnonzero(~np.isnan(y) & np.isfinite(study.weight))
        patient = codes_of(study.patient[self.rows])
        n_patients, n_strata = (int(patient.max()) + 1 if patient.size else 0), study.size.size
        rng = np.random.default_rng(0)
        drawn = rng.standard_gamma(1.0, (N_DRAWS, n_patients))[:, patient]
        judged = [min(1.0, sum(study.stratum[self.rows] == h) / study.size[h]) for h in range(n_strata)]
        unjudged = np.array([1.0 if min(judged, default=1.0) == 1.0 else 1.0 - share for share in judged])
        self.own = 1.0 + (drawn - 1.0) * unjudged[study.stratum[self.rows]] ** 0.5
        self.where = rng.random((2, N_DRAWS, n_strata))
        steps = [rng.standard_gamma(more, (2, N_DRAWS, n_strata)) for more in np.diff((0.0, 0.1, 0.25, 0.5))]
        sums = {0.1: steps[0], 0.25: steps[0] + steps[1], 0.5: steps[0] + steps[1] + steps[2]}
        self.pseudo = {number: draws * unjudged for number, draws in sums.items()}

    def weights(self, inside, order_by, number, pseudo=None, where=None):
        """Return the cases inside, and the weight of each as a positive and as a negative one, in each draw."""
        study = self.study
        pseudo, where = self.pseudo[number] if pseudo is None else pseudo, self.where if where is None else where
        at = [k for k, i in enumerate(self.rows) if inside[i]]
        cases = self.rows[at]
        positive = self.own[:, at] * (self.y[cases] == 1.0)
        negative = self.own[:, at] * (self.y[cases] == 0.0)
        for h in range(study.size.size):
            members = np.flatnonzero(study.stratum[cases] == h).tolist()
            if not members:
                continue
            members.sort(key=lambda k: tuple(score[cases[k]] for score in order_by))
            total = self.own[:, study.stratum[self.rows] == h].sum(axis=1) + pseudo[:, :, h].sum(axis=0)
            for side, weights in enumerate((positive, negative)):
                at_case = (where[side, :, h] * len(members)).astype(int)
                for k, member in enumerate(members):
                    weights[:, member] += pseudo[side, :, h] * (at_case == k)
                weights[:, members] *= (study.size[h] / total)[:, None]
        return cases, positive, negative

    def interval(self, statistic, inside, order_by, numbers, is_share):
        """Return the widest limits that the numbers of pseudo-cases give."""
        lows, highs = [], []
        for number in numbers:
            cases, positive, negative = self.weights(inside, order_by, number)
            with np.errstate(divide="ignore", invalid="ignore"):
                values = statistic(cases, positive, negative)
            values = values[np.isfinite(values)]
            if is_share:
                values = logit(np.clip(values, 1e-12, 1 - 1e-12))
            tail = (1.0 - self.study.level) / 2.0
            low, middle, high = (float(np.quantile(values, q)) for q in (tail, 0.5, 1.0 - tail))
            wider = t_of(self.study, len(set(self.study.patient[cases])) - 1) / z_of(self.study)
            ends = middle - wider * (middle - low), middle + wider * (high - middle)
            ends = [float(expit(end)) for end in ends] if is_share else [max(-1.0, ends[0]), min(1.0, ends[1])]
            lows.append(ends[0])
            highs.append(ends[1])
        return min(lows), max(highs)

    def figure(self, value, statistic, inside, order_by=(), numbers=WIDE, is_share=True, about=None):
        """Return a figure with its interval; `about` are the cases that it would be about if all could be used."""
        keep, left_out = usable(self.study, self.y, inside if about is None else about, order_by)
        if value is None:
            return estimate(self.study, None, n=len(keep), left_out=left_out)
        if len(set(self.study.patient[keep])) < 2:
            return estimate(self.study, value, n=len(keep), left_out=left_out)
        low, high = self.interval(statistic, inside, order_by, numbers, is_share)
        return estimate(self.study, value, min(low, value), max(high, value), len(keep), left_out)

    def auc(self, key, inside=None):
        study, score = self.study, self.study.scores[key]
        about = np.ones(study.n, dtype=bool) if inside is None else inside
        keep, _ = usable(study, self.y, about, [score])
        value = area(self.y[keep], score[keep], study.weight[keep])
        value = None if value is None or len(set(score[keep])) < 2 else value
        used = about & np.isfinite(score)
        numbers = NARROW if inside is not None or self.n_effective(used) > 4.0 else NARROWEST
        return self.figure(value, drawn_area(score), used, [score], numbers, about=about)

    def n_effective(self, inside):
        """Return the effective number of patients with cases of the rarer class."""
        n_in_stratum, found = Counter(self.study.stratum[self.rows].tolist()), []
        for side in (1.0, 0.0):
            by_patient = Counter()
            for i in self.rows:
                if inside[i] and self.y[i] == side:
                    h = int(self.study.stratum[i])
                    by_patient[self.study.patient[i]] += self.study.size[h] / n_in_stratum[h]
            squares = sum(total**2 for total in by_patient.values())
            found.append(sum(by_patient.values()) ** 2 / squares if squares else 0.0)
        return round(min(found), 6)

    def numbers_of_difference(self, inside):
        n = self.n_effective(inside)
        return WIDE if n > 4.0 else NARROW if n > 2.0 else NARROWEST

    def difference(self, first, other):
        study, a, b = self.study, self.study.scores[first], self.study.scores[other]
        everyone = np.ones(study.n, dtype=bool)
        keep, _ = usable(study, self.y, everyone, [a, b])
        own = [area(self.y[keep], score[keep], study.weight[keep]) for score in (a, b)]
        constant = any(len(set(score[keep])) < 2 for score in (a, b))
        value = None if None in own or constant else own[0] - own[1]
        first_area, other_area = drawn_area(a), drawn_area(b)
        found = self.figure(
            value,
            lambda *given: first_area(*given) - other_area(*given),
            np.isfinite(a) & np.isfinite(b),
            [a, b],
            self.numbers_of_difference(np.isfinite(a) & np.isfinite(b)),
            is_share=False,
            about=everyone,
        )
        return found, self.p_value(found, len(set(study.patient[keep])) - 1)

    def group_difference(self, key, group):
        study, score = self.study, self.study.scores[key]
        everyone = np.ones(study.n, dtype=bool)
        keep, left_out = usable(study, self.y, everyone, [score])
        sides = [usable(study, self.y, side, [score])[0] for side in (group, ~group)]
        own = [area(self.y[side], score[side], study.weight[side]) for side in sides]
        if None in own:
            return estimate(study, None, n=len(keep), left_out=left_out), None
        value, fewest = own[0] - own[1], min((set(study.patient[side]) for side in sides), key=len)
        if len(fewest) < 2:
            return estimate(study, value, n=len(keep), left_out=left_out), None
        lows, highs, used = [], [], np.isfinite(score)
        wider = t_of(study, len(fewest) - 1) / z_of(study)
        tail = (1.0 - study.level) / 2.0
        for number in NARROW:
            of = drawn_area(score)
            first = of(*self.weights(group & used, [score], number))
            last_first = self.pseudo[number][:, ::-1], self.where[:, ::-1]
            apart = first - of(*self.weights(~group & used, [score], number, *last_first))
            low, middle, high = (float(np.quantile(apart, q)) for q in (tail, 0.5, 1.0 - tail))
            lows.append(max(-1.0, middle - wider * (middle - low)))
            highs.append(min(1.0, middle + wider * (high - middle)))
        found = estimate(study, value, min(*lows, value), max(*highs, value), len(keep), left_out)
        return found, self.p_value(found, len(fewest) - 1)

    def p_value(self, found, degrees):
        value, low, high = found["value"], found["low"], found["high"]
        if value is None or low is None or low == high:
            return None
        reach = value - low if value > 0.0 else high - value
        t = abs(value) / reach * t_of(self.study, degrees) if reach > 0.0 else 0.0
        return float(2.0 * stats.t.sf(t, degrees))

    def ratio(self, hit, of, about, order_by=()):
        """Return the weighted share of cases `of` that are a `hit`; both are functions of label and case."""
        study = self.study
        keep, _ = usable(study, self.y, about, order_by)
        top = sum(study.weight[i] for i in keep if hit(self.y[i] == 1.0, i))
        bottom = sum(study.weight[i] for i in keep if of(self.y[i] == 1.0, i))

        def statistic(cases, positive, negative):
            def total(which):
                yes = np.array([which(True, i) for i in cases], dtype=bool)
                no = np.array([which(False, i) for i in cases], dtype=bool)
                return positive[:, yes].sum(axis=1) + negative[:, no].sum(axis=1)

            return total(hit) / total(of)

        used = about & np.array([all(np.isfinite(score[i]) for score in order_by) for i in range(study.n)])
        return self.figure(float(top / bottom) if bottom else None, statistic, used, order_by, about=about)

    def share(self, inside=None):
        about = np.ones(self.study.n, dtype=bool) if inside is None else inside
        return self.ratio(lambda yes, i: yes, lambda yes, i: True, about)

    def net_benefit(self, key, threshold, chance):
        study, score = self.study, self.study.scores[key]
        everyone, odds = np.ones(study.n, dtype=bool), chance / (1.0 - chance)
        keep, _ = usable(study, self.y, everyone, [score])
        shown = [i for i in keep if score[i] >= threshold]
        gain = sum(study.weight[i] * (1.0 if self.y[i] == 1.0 else -odds) for i in shown)

        def statistic(cases, positive, negative):
            seen = score[cases] >= threshold
            every = positive.sum(axis=1) + negative.sum(axis=1)
            return (positive[:, seen].sum(axis=1) - odds * negative[:, seen].sum(axis=1)) / every

        value = float(gain / study.weight[keep].sum()) if keep.size else None
        return self.figure(value, statistic, np.isfinite(score), [score], is_share=False, about=everyone)


def drawn_area(score):
    def statistic(cases, positive, negative):
        own = score[cases]
        won = ((positive @ wins(own, own)) * negative).sum(axis=1)
        return won / (positive.sum(axis=1) * negative.sum(axis=1))

    return statistic


def holm(p_values):
    given = [p for p in p_values if p is not None]
    found = []
    for p in p_values:
        smaller = sorted(q for q in given if p is not None and q <= p)
        steps = [min(1.0, q * (len(given) - sum(r < q for r in given))) for q in smaller]
        found.append(max(steps) if steps else None)
    return found


def placements(y, score):
    pairs = wins(score[y == 1.0], score[y == 0.0])
    return pairs.mean(), pairs.mean(axis=1), pairs.mean(axis=0)


def covariance(a, b):
    return float(((a - a.mean()) * (b - b.mean())).sum() / (len(a) - 1))


def delong(study, y, scores, inside=None):
    """Return value, variance (None without one), n and who is left out: of an AUC, or of the difference of two."""
    about = np.ones(study.n, dtype=bool) if inside is None else inside
    keep, left_out = usable(study, y, about, scores, weighted=False)
    label = y[keep]
    n_yes, n_no = int((label == 1.0).sum()), int((label == 0.0).sum())
    if not n_yes or not n_no or any(len(set(score[keep])) < 2 for score in scores):
        return None, None, len(keep), left_out
    found = [placements(label, score[keep]) for score in scores]
    signs = [1.0, -1.0][: len(scores)]
    value = sum(sign * own[0] for sign, own in zip(signs, found, strict=True))
    if min(n_yes, n_no) < 2:
        return float(value), None, len(keep), left_out
    yes, no = (sum(sign * own[k] for sign, own in zip(signs, found, strict=True)) for k in (1, 2))
    return float(value), covariance(yes, yes) / n_yes + covariance(no, no) / n_no, len(keep), left_out


def delong_estimate(study, y, scores, inside=None):
    value, variance, n, left_out = delong(study, y, scores, inside)
    lowest = 0.0 if len(scores) == 1 else -1.0
    if value is None or variance is None or variance <= 1e-15:
        return estimate(study, value, n=n, left_out=left_out)
    reach = z_of(study) * math.sqrt(variance)
    return estimate(study, value, max(lowest, value - reach), min(1.0, value + reach), n, left_out)


def curve(study, y, score, weight, band):
    """Return the corners of the ROC curve, and its band from resampled patients.

    A band has two values at each place, closely before and after it: on a vertical step of a resampled curve, the last
    bit of a sum decides which of its ends is the height there.
    """
    nothing = {"false_alert_fraction": [], "found_fraction": [], "band_at": [], "band_low": [], "band_high": []}
    keep, _ = usable(study, y, np.ones(study.n, dtype=bool), [score], weighted=band)
    yes, own, score = y[keep] == 1.0, weight[keep], score[keep]
    steps = np.array([np.inf, *sorted(set(score), reverse=True)])
    above = (score >= steps[:, None]).astype(float)

    def corners(weights):
        with np.errstate(invalid="ignore"):
            return (np.round(above @ (weights * of) / (weights * of).sum(), 13) for of in (~yes, yes))

    false, found = corners(own)
    nothing |= {"false_alert_fraction": false.tolist(), "found_fraction": found.tolist()}
    if not band:
        return nothing
    at, patient, resampled = np.linspace(0.0, 1.0, 51), codes_of(study.patient[keep]), []
    n_patients = int(patient.max()) + 1
    rng = np.random.default_rng(20131)
    for _ in range(400):
        times = Counter(rng.integers(0, n_patients, n_patients).tolist())
        x, z = corners(own * np.array([times[p] for p in patient]))
        if np.isfinite(x).all() and np.isfinite(z).all():
            resampled.append((x, z))
    if n_patients < 2 or len(resampled) < 360:
        return nothing
    ends = {"band_low": [], "band_high": []}
    for name, q, pick in (
        ("band_low", 0.5 - study.level / 2, np.minimum),
        ("band_high", 0.5 + study.level / 2, np.maximum),
    ):
        sides = []
        for side in (at - 1e-9, at + 1e-9):
            heights = np.array([at_height(side, x, z) for x, z in resampled])
            sides.append(pick(np.quantile(heights, q, axis=0), at_height(side, false, found)))
        ends[name] = list(zip(*(side.tolist() for side in sides), strict=True))
    return nothing | {"band_at": at.tolist()} | ends


def at_height(at, x, z):
    """Return the height of a line of steps; on a vertical step its upper end."""
    last = np.maximum((x <= at[:, None]).sum(axis=1) - 1, 0)
    following = np.minimum(last + 1, len(x) - 1)
    run = x[following] - x[last]
    share = np.divide(at - x[last], run, out=np.zeros(len(at)), where=run > 0.0)
    return z[last] + np.maximum(share, 0.0) * (z[following] - z[last])


def task_mean(study, y, score):
    tasks, values, left_out = study.column("task_key"), [], Counter()
    for task in sorted(set(tasks)):
        keep, _ = usable(study, y, tasks == task, [score], weighted=False)
        own = area(y[keep], score[keep], np.ones(keep.size))
        if own is not None and len(set(score[keep])) < 2:
            left_out["all scores equal"] += 1
        elif own is not None:
            values.append(own)
        elif not keep.size:
            left_out["no usable case"] += 1
        else:
            left_out["0 negative" if y[keep].any() else "0 positive"] += 1
    return estimate(study, float(np.mean(values)) if values else None, n=len(values), left_out=dict(left_out)) | {
        "level": 0.95
    }
