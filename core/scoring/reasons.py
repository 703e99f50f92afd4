"""Reasons for an expectation: what tells the past of a task apart, at the values of one instance.

A *finding* is a yes-or-no statement about a patient's state: "heparin on now", "potassium, last value below 3.3". All
findings of a task are weighed together by a ridge logistic regression, so that a finding which only goes along with
another gets little weight. Those that speak for the expected decision at this instance are its reasons.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from core.cohort.feature_layout import ADMISSION, UNIT
from core.errors import InvalidInputError
from core.scoring.logistic import RidgeLogistic, fit_ridge_logistic
from core.validation import FloatArray, IntArray

MOST_REASONS = 5
MOST_CANDIDATES = 150
"""Findings looked at, those that differ most between the groups."""
MOST_FINDINGS = 20
"""Findings weighed together."""
N_CUTS = 19
"""Candidate thresholds of a measured value, at evenly spaced quantiles."""
FEWEST = 10
"""Past instances with and without a finding, below which its two shares say nothing."""
SMALLEST_CHI_SQUARE = 15.0
"""Of the score test by which a finding joins those already weighed: one of 9,000 passes by chance."""
SMALLEST_CHI_SQUARE_OF_PATIENTS = 8.0
"""Of the same test with whole patients as its units, so that one patient's many days are no evidence."""
SMALLEST_DIFFERENCE = 0.05
"""Between the share with the decision among those with a finding and among those without it."""
SMALLEST_WEIGHT = 0.4
"""Change in log odds towards the expected decision, below which a finding is no reason."""
STRENGTH = 1.0
"""Weight of a past instance's log loss against half the squared coefficients: hardly any shrinkage."""
_READABLE = ("last_value", "change", "measured_24h", "ever", "pending")
_DRUG_NOW = ("on_now",)
_STAY = ("age_years", "hours_since_admission", "day_of_stay", "is_female", "previous_stays", "hours_on_unit")
READABLE_ASPECTS = frozenset({*_READABLE, *_DRUG_NOW, *_STAY, "admission", "on_unit"})
"""Aspects of a feature that can be said in a few words; slopes and means are left to the scores."""


@dataclass(frozen=True)
class Finding:
    """A yes-or-no statement about a patient's state."""

    column: int  # column of the features
    # The finding is "above" it, or "below" it when `below`; None: the feature is not 0, or there is a value.
    threshold: float | None = None
    below: bool = False

    def holds(self, values: FloatArray) -> NDArray[np.bool_]:
        """Say where it holds; a value that was not measured (NaN) is neither above nor below."""
        if self.threshold is None:
            return np.asarray(np.isfinite(values) & (values != 0))
        return np.asarray(values < self.threshold if self.below else values > self.threshold)


@dataclass(frozen=True)
class Reason:
    """One finding that speaks for the expected decision."""

    finding: Finding
    # Whether it holds for the instance. A finding that is missing here can be a reason too: heparin is not expected
    # where nobody lies in bed.
    here: bool
    value: float  # the instance's value of the feature; NaN where it was not measured
    # `share_with` and `share_without`: share of past instances with the decision, among those with and without the
    # finding. Where the instance has a value, only past instances with a value count: an unmeasured potassium is not
    # "potassium up to 3.5".
    share_with: float
    share_without: float
    # `n_with` and `n_without`: past instances behind the two shares.
    n_with: int
    n_without: int
    weight: float  # by how much it moves the log odds towards the expected decision, > 0


@dataclass(frozen=True)
class Reasons:
    """Why a decision was expected, or not."""

    # Strongest first, at most `MOST_REASONS`; empty when nothing tells the task's decisions apart.
    reasons: tuple[Reason, ...]
    # The one finding whose change would turn the expectation; None when no single one does.
    counterfactual: Finding | None = None
    counterfactual_here: bool = False  # whether that finding holds now


@dataclass(frozen=True)
class TaskContrast:
    """What tells the past decisions of one task apart, in findings that a reader can check; empty when nothing does."""

    findings: tuple[Finding, ...]
    subjects: tuple[str, ...]  # what each finding is about: a lab, a drug, a reason for admission
    coefficients: FloatArray  # shape (n_findings,): log odds of the decision by each finding, all weighed together
    intercept: float
    # `share_with`, `share_without`, `n_with` and `n_without`: shape (n_findings,): as in `Reason`, for an instance
    # without a value.
    share_with: FloatArray
    share_without: FloatArray
    n_with: FloatArray
    n_without: FloatArray
    # `share_other` and `n_other`: shape (n_findings,): what stands for `share_without` and `n_without` where the
    # instance has a value.
    share_other: FloatArray
    n_other: FloatArray
    # `held_by_taken` and `held_by_not_taken`: shape (n_findings,): share that has each finding among past instances
    # with and without the decision.
    held_by_taken: FloatArray
    held_by_not_taken: FloatArray

    def reasons(self, x: FloatArray, *, expected: bool) -> Reasons:
        """Return why the decision was expected (an omission) or not expected (a commission) for an instance.

        `x` has its raw features, NaN where a value was not measured.
        """
        values = np.array([x[finding.column] for finding in self.findings])
        here = np.array(
            [bool(f.holds(np.array([v]))[0]) for f, v in zip(self.findings, values, strict=True)], dtype=bool
        )
        usual = self.held_by_not_taken if expected else self.held_by_taken
        sign = 1.0 if expected else -1.0
        weights = sign * self.coefficients * (here - usual)
        measured = np.isfinite(values)
        share_without = np.where(measured, self.share_other, self.share_without)
        n_without = np.where(measured, self.n_other, self.n_without)
        agrees = np.sign(self.share_with - share_without) == np.sign(self.coefficients)
        differs = np.abs(self.share_with - share_without) >= SMALLEST_DIFFERENCE
        counted = np.flatnonzero(agrees & differs & (weights >= SMALLEST_WEIGHT))
        chosen: dict[str, Reason] = {}
        for i in counted[np.argsort(-weights[counted], kind="stable")].tolist():
            source = self.subjects[i]
            if source in chosen or len(chosen) == MOST_REASONS:
                continue
            chosen[source] = Reason(
                self.findings[i], bool(here[i]), float(values[i]), float(self.share_with[i]),
                float(share_without[i]), int(self.n_with[i]), int(n_without[i]), float(weights[i]),
            )  # fmt: skip
        change, held = self._counterfactual(here, expected, counted)
        return Reasons(tuple(chosen.values()), change, held)

    def _counterfactual(
        self, here: NDArray[np.bool_], expected: bool, counted: IntArray
    ) -> tuple[Finding | None, bool]:
        """Return the reason whose change alone turns the log odds, the one that turns them furthest."""
        log_odds = self.intercept + float(here @ self.coefficients)
        if (log_odds > 0) != expected:
            return None, False
        # A second finding on the same value would have to change with it.
        columns = np.array([finding.column for finding in self.findings])
        counted = counted[(columns[counted][:, None] == columns).sum(axis=1) == 1]
        if not len(counted):
            return None, False
        turned = log_odds + self.coefficients[counted] * (1.0 - 2.0 * here[counted])
        best = int(np.argmin(turned) if expected else np.argmax(turned))
        if (turned[best] > 0) == expected:
            return None, False
        return self.findings[counted[best]], bool(here[counted[best]])


def fit_contrast(
    X_past: sparse.csc_matrix,
    taken: NDArray[np.bool_],
    patients: IntArray,
    feature_dictionary: pd.DataFrame,
    kept: IntArray | None = None,
) -> TaskContrast:
    """Find what tells the past decisions of one task apart, by raw features of shape (n_past, n_features).

    Both decisions must occur. The dictionary has ``name``, ``source``, ``aspect`` and ``is_flag`` of every feature.
    Looked at are all aspects of what the features `kept` are about, care units and kinds of admission; everything when
    not given. Raise InvalidInputError when shapes differ, or only one decision occurs.
    """
    if X_past.shape != (len(taken), len(feature_dictionary)) or len(patients) != len(taken):
        raise InvalidInputError(
            f"{X_past.shape} features, {len(taken)} decisions, {len(patients)} patients and "
            f"{len(feature_dictionary)} descriptions of features do not fit together."
        )
    if np.all(taken) or not np.any(taken):
        raise InvalidInputError("Only one decision occurs in the past of this task, so nothing can tell two apart.")
    return _Past(X_past, taken, patients, feature_dictionary, kept).fit()


class _Past:
    """The past of one task while its findings are looked for."""

    def __init__(
        self,
        X_past: sparse.csc_matrix,
        taken: NDArray[np.bool_],
        patients: IntArray,
        dictionary: pd.DataFrame,
        kept: IntArray | None,
    ) -> None:
        self._names = dictionary["name"].to_numpy()
        self._sources = dictionary["source"].to_numpy()
        self._aspects = dictionary["aspect"].to_numpy()
        self._is_flag = dictionary["is_flag"].to_numpy(dtype=bool)
        self._X, self._taken, self._patients, self._kept = X_past, np.asarray(taken, dtype=bool), patients, kept
        self._n = len(self._taken), int(np.sum(taken))

    def fit(self) -> TaskContrast:
        """Return the findings that tell the decisions apart, weighed."""
        findings, held = self._findings()
        chosen, model = self._choose(held)
        held = held[:, chosen]
        found = tuple(findings[i] for i in chosen)
        others = 1 - held
        measured = np.empty_like(held)
        for i, finding in enumerate(found):
            measured[:, i] = np.isfinite(self._values(finding.column))
        n_with, n_without, n_other = held.sum(axis=0), others.sum(axis=0), (others * measured).sum(axis=0)
        return TaskContrast(
            findings=found,
            subjects=tuple(self._subject(finding.column) for finding in found),
            coefficients=np.empty(0) if model is None else model.coefficients,
            intercept=0.0 if model is None else model.intercept,
            share_with=held[self._taken].sum(axis=0) / n_with,
            share_without=others[self._taken].sum(axis=0) / n_without,
            n_with=n_with,
            n_without=n_without,
            share_other=(others * measured)[self._taken].sum(axis=0) / n_other,
            n_other=n_other,
            held_by_taken=held[self._taken].mean(axis=0),
            held_by_not_taken=held[~self._taken].mean(axis=0),
        )

    def _subject(self, column: int) -> str:
        """Return what a feature is about; one reason is shown for each."""
        own = self._aspects[column] in ("admission", "on_unit", *_STAY)
        return str(self._names[column] if own else self._sources[column])

    def _choose(self, held: FloatArray) -> tuple[list[int], RidgeLogistic | None]:
        """Choose findings one by one, each time the one that tells most beyond those chosen; return them, weighed."""
        positive = self._taken.astype(np.float64)
        chosen: list[int] = []
        model = None
        chance = np.full(len(positive), positive.mean())
        groups = np.unique(self._patients, return_inverse=True)[1]
        by_patient = sparse.csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))))
        while len(chosen) < min(MOST_FINDINGS, held.shape[1]):
            weight = chance * (1 - chance)
            known = np.column_stack([np.ones(len(held)), held[:, chosen]])
            weighted = known * weight[:, None]
            beyond = held - known @ np.linalg.lstsq(weighted.T @ known, weighted.T @ held, rcond=None)[0]
            by_group = by_patient @ (beyond * (positive - chance)[:, None])
            score = by_group.sum(axis=0) ** 2
            statistic = score / np.maximum((beyond**2 * weight[:, None]).sum(axis=0), 1e-9)
            statistic[score < SMALLEST_CHI_SQUARE_OF_PATIENTS * (by_group**2).sum(axis=0)] = 0.0
            statistic[chosen] = 0.0
            best = _first_of_highest(statistic)
            if statistic[best] < SMALLEST_CHI_SQUARE:
                break
            chosen.append(best)
            model = fit_ridge_logistic(held[:, chosen], positive, STRENGTH * len(positive), groups)
            chance = 1 / (1 + np.exp(-model.log_odds(held[:, chosen])))
        return chosen, model

    def _findings(self) -> tuple[tuple[Finding, ...], FloatArray]:
        """Return the findings that differ most between the groups, and where each holds."""
        columns = np.flatnonzero([aspect in READABLE_ASPECTS for aspect in self._aspects])
        if self._kept is not None:
            always = np.isin(self._sources, [UNIT, ADMISSION])
            wanted = np.isin(self._sources, np.unique(self._sources[self._kept]))
            columns = columns[(always | wanted)[columns]]
        found: list[tuple[float, bool, Finding]] = []
        for column in columns.tolist():
            found += self._candidates(column)
        # "Above 3.4" and "below 3.5" may be the same days: rounding, which differs between machines, decides nothing.
        found.sort(key=lambda one: (-round(one[0], 9), not one[1]))
        findings = tuple(finding for *_, finding in found[:MOST_CANDIDATES])
        held = np.empty((len(self._taken), len(findings)))
        for i, finding in enumerate(findings):
            held[:, i] = finding.holds(self._values(finding.column))
        return findings, held

    def _values(self, column: int) -> FloatArray:
        values = np.full(self._X.shape[0], 0.0 if self._is_flag[column] else np.nan)
        start, end = self._X.indptr[column], self._X.indptr[column + 1]
        values[self._X.indices[start:end]] = self._X.data[start:end]
        return values

    def _candidates(self, column: int) -> list[tuple[float, bool, Finding]]:
        """Return what can be said about a feature: |z|, whether it comes with more decisions taken, and the finding.

        Of a flag that it is there; of a value the best cut on each side.
        """
        start, end = self._X.indptr[column], self._X.indptr[column + 1]
        stored, taken = np.asarray(self._X.data[start:end], float), self._taken[self._X.indices[start:end]]
        if self._is_flag[column]:
            there = stored != 0
            one = (float(_strengths(there.sum(), (there & taken).sum(), *self._n)), True, Finding(column))
            return [one] if one[0] > 0 else []
        if len(stored) < FEWEST:
            return []
        order = np.argsort(stored, kind="stable")
        stored, n_taken = stored[order], np.r_[0, np.cumsum(taken[order])]
        cuts = np.unique([_rounded(cut) for cut in np.quantile(stored, np.linspace(0.05, 0.95, N_CUTS))])
        up_to = np.searchsorted(stored, cuts, side="right")
        under = np.searchsorted(stored, cuts, side="left")
        above = self._cut_strengths(len(stored) - up_to, n_taken[-1] - n_taken[up_to], len(stored), n_taken[-1])
        below = self._cut_strengths(under, n_taken[under], len(stored), n_taken[-1])
        best = [(side, z, _first_of_highest(z)) for side, z in ((False, above), (True, below))]
        rises = n_taken[under] * len(stored) > n_taken[-1] * under  # more often taken below a cut than in all
        return [
            (float(z[i]), rises[i] == side, Finding(column, float(cuts[i]), side)) for side, z, i in best if z[i] > 0
        ]

    def _cut_strengths(
        self, n_with: IntArray, n_with_taken: IntArray, n_measured: int, n_measured_taken: int
    ) -> FloatArray:
        """Return |z| of cuts; 0 where values beyond the cut differ from none measured, but not from other values."""
        among_measured = _strengths(n_with, n_with_taken, n_measured, n_measured_taken)
        every = _strengths(n_with, n_with_taken, *self._n)
        return np.where(among_measured**2 >= SMALLEST_CHI_SQUARE, every, 0.0)


def _strengths(n_with: IntArray, n_with_taken: IntArray, n: int, n_taken: int) -> FloatArray:
    """Return |z| of the difference between the groups; 0 when too few have, or lack, the finding."""
    if n_taken in (0, n):
        return np.zeros(np.shape(n_with))
    share = n_with / n
    difference = n_with_taken / n_taken - (n_with - n_with_taken) / (n - n_taken)
    error = np.sqrt(np.maximum(share * (1 - share), 1e-12) * (1 / n_taken + 1 / (n - n_taken)))
    enough = np.minimum(n_with, n - n_with) >= FEWEST
    return np.asarray(np.where(enough, np.abs(difference) / error, 0.0))


def _first_of_highest(values: FloatArray) -> int:
    """Return the first place of the highest value; those that rounding tells apart are equal."""
    return int(np.argmax(values >= values.max() * (1 - 1e-9)))


def _rounded(value: float) -> float:
    """Round to two significant digits, as people name a threshold."""
    return float(f"{value:.2g}")
