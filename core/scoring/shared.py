"""Evidence of the shared scorer: one graph for all tasks, what it leaves unexplained, own history, single signs.

Each step begins with log odds of "taken" that were found without the instance's own patient, and adds to them:

1. `solve_shared_graph` with the decisions as targets, calibrated over all tasks.
2. The same solve of what step 1 leaves, on the graph and on the soft labels of all tasks together.
3. Boosted trees over all (instance, task) pairs on the history of the task's own item (`core.scoring.own_history`),
   and one calibrated line for all tasks.
4. A drug that shares the name of a task's lab, and a ridge logistic regression of each task on single signs
   (`core.scoring.signs`).

Labels of recent instances enter nowhere. Steps 3 and 4 leave the past out by thirds of its patients.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.cohort.feature_roles import FEATURE_GROUP_WEIGHTS, FeatureRoles
from core.graph.group_weights import learn_group_weights
from core.graph.shared_graph import CosineMap, SharedSolution, soft_labels_of, solve_shared_graph, support_of
from core.numerics.boosted_trees import BoostedTrees
from core.scoring.calibration import calibrate, fit_line
from core.scoring.own_history import OwnHistory, fit_history, residual_targets
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import PreparedInstances
from core.scoring.signs import (
    N_SIGNS,
    OtherMembers,
    SignEffects,
    count_patients,
    fit_named,
    fit_signs,
    named_flags,
    patient_weights,
    score_signs,
)
from core.validation import FloatArray, IntArray

N_PARTS: Final = 3
"""Parts of the past patients; steps 3 and 4 expect each from what was learned of the others."""
_DRAW: Final = 1 << 20
"""Beside the seed in the state of the generator, beyond the numbers of tasks."""
_WEIGHTS_DRAW: Final = 1 << 22
_TASKS_AT_ONCE: Final = 16
_ROWS_AT_ONCE: Final = 1000
LogOdds = NDArray[np.float32]


@dataclass(frozen=True)
class _Line:
    """Calibrated lines of all tasks: from soft labels to log odds, rate and spread of the past decisions."""

    means: FloatArray
    intercepts: FloatArray
    slopes: FloatArray

    def log_odds(self, soft_labels: NDArray[np.float32]) -> LogOdds:
        """Return log odds of "taken", of the shape of `soft_labels`."""
        variance = 1 - self.means**2
        slopes = 2 * self.slopes / variance
        offset = self.intercepts - slopes * self.means
        return np.asarray(soft_labels * slopes.astype(np.float32) + offset.astype(np.float32))

    @classmethod
    def fit(cls, soft_labels: NDArray[np.float32], positive: NDArray[np.bool_], n_jobs: int | None) -> "_Line":
        """Calibrate past soft labels of all tasks, of shape (n_past, n_tasks)."""
        means = 2 * positive.mean(axis=0) - 1
        variance = 1 - means**2
        found = calibrate(
            lambda task: 2 * (soft_labels[:, task].astype(np.float64) - means[task]) / variance[task],
            lambda task: positive[:, task].astype(np.float64),
            positive.shape[1],
            n_jobs,
        )
        return cls(means, found.intercepts - found.slopes * found.centers, found.slopes)


@dataclass(frozen=True)
class Expected:
    """What the past of all tasks says about instances."""

    log_odds: LogOdds  # shape (n, n_tasks): of "taken", found without the instance's own patient
    support: NDArray[np.float32]  # shape (n,): see `core.graph.shared_graph.SharedSolution`


@dataclass(frozen=True)
class SharedModel:
    """What was learned of the past, enough to expect the decisions of later instances."""

    tasks: IntArray  # shape (n_tasks,): columns of the run's tasks that it knows
    arrays: Mapping[str, NDArray[Any]]  # fit for an .npz file

    @property
    def group_weights(self) -> dict[str, float]:
        """Learned weights of the groups of features in the graph; empty where none were learned."""
        learned = self.arrays.get("group_weights", np.empty(0))
        return dict(zip(FEATURE_GROUP_WEIGHTS, learned.tolist(), strict=False))

    def stored(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays for a file that holds others as well."""
        return {"shared_tasks": self.tasks, **{f"shared_{name}": array for name, array in self.arrays.items()}}

    @classmethod
    def of_stored(cls, stored: Mapping[str, NDArray[Any]]) -> "SharedModel | None":
        """Read back what `stored` gave; None where there is nothing of it."""
        if "shared_tasks" not in stored:
            return None
        arrays = {name.removeprefix("shared_"): array for name, array in stored.items() if name.startswith("shared_")}
        return cls(arrays.pop("tasks"), arrays)

    def expect(self, columns: sparse.csr_array, raw: sparse.csr_array) -> "Expected":
        """Expect the decisions of new instances, each by itself, from their standardised and raw features."""
        arrays = self.arrays
        coordinates = CosineMap.of_arrays(arrays, "map").transform(columns)
        soft_labels = soft_labels_of(coordinates, arrays["first_coefficients"])
        first = _Second.of_arrays(arrays, coordinates, soft_labels)
        expected = soft_labels_of(first[:], arrays["second_coefficients"])
        expected += 2 * _chance(_line_of(arrays, "first").log_odds(soft_labels)) - 1
        log_odds = _line_of(arrays, "second").log_odds(expected)
        history = _history_of(arrays, sparse.csc_array(raw))
        if history is not None:
            trees, effects = BoostedTrees.of_arrays(arrays, "history"), SignEffects(arrays["signs"], arrays["effects"])
            rates = _logit(arrays["first_means"])
            there = _signs_of(history)
            named = named_flags(there, history.roles.named, log_odds.shape[1])
            of_names = arrays.get("named_effects", np.zeros(log_odds.shape[1]))
            every = slice(None)
            _add_to_tasks(log_odds, lambda t, old: trees.predict(history.of_task(t, rates[t], old, every)))
            # A model of an earlier version has none.
            intercept, slope = arrays.get("history_line", np.array([0.0, 1.0])).astype(np.float32)
            log_odds = log_odds * slope + intercept
            _add_to_tasks(log_odds, lambda task, _: _dense(named, task) * of_names[task])
            _add_to_tasks(log_odds, lambda task, _: effects.of_task(there, task))
        penalty, ridge = arrays["penalty_and_ridge"].tolist()
        return Expected(log_odds, support_of(coordinates, arrays["first_root"], penalty, ridge))


@dataclass(frozen=True)
class _Second:
    """Coordinates of the second solve, made of the first's and of the soft labels of all tasks when they are read."""

    means: NDArray[np.float32]
    scales: NDArray[np.float32]
    center: NDArray[np.float32]
    scale: np.float32
    coordinates: NDArray[np.float32]
    soft_labels: NDArray[np.float32]

    @classmethod
    def fit(
        cls, coordinates: NDArray[np.float32], soft_labels: NDArray[np.float32], n_past: int, means: FloatArray
    ) -> "_Second":
        """Learn centres and sizes from the past, which comes first."""
        single, spread = np.float32, np.sqrt(1 - means**2)
        found = soft_labels[:n_past].mean(axis=0, dtype=np.float64)
        center = coordinates[:n_past].mean(axis=0, dtype=np.float64)
        squared = size = 0.0
        for rows in _in_rows(n_past):
            squared += float((((soft_labels[rows] - found.astype(single)) / spread.astype(single)) ** 2).sum())
            size += float(((coordinates[rows] - center.astype(single)) ** 2).sum())
        scales = 1 / (spread * np.sqrt(2 * max(squared / n_past, 1e-12)))
        scale = single(1 / np.sqrt(2 * max(size / n_past, 1e-12)))
        return cls(found.astype(single), scales.astype(single), center.astype(single), scale, coordinates, soft_labels)

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.coordinates), self.coordinates.shape[1] + self.soft_labels.shape[1]

    def __getitem__(self, rows: Any, /) -> NDArray[np.float32]:
        first, soft_labels = self.coordinates[rows], self.soft_labels[rows]
        return np.hstack(((soft_labels - self.means) * self.scales, (first - self.center) * self.scale))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "wide_means": self.means,
            "wide_scales": self.scales,
            "wide_center": self.center,
            "wide_scale": np.array(self.scale),
        }

    @classmethod
    def of_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], coordinates: NDArray[np.float32], soft_labels: NDArray[np.float32]
    ) -> "_Second":
        scale = np.float32(arrays["wide_scale"])
        means, scales, center = (arrays[f"wide_{name}"] for name in ("means", "scales", "center"))
        return cls(means, scales, center, scale, coordinates, soft_labels)


@dataclass(frozen=True)
class _Left:
    """What the first solve leaves of the targets, computed when it is read."""

    targets: NDArray[np.int8]
    soft_labels: NDArray[np.float32]
    line: _Line

    @property
    def shape(self) -> tuple[int, ...]:
        return self.targets.shape

    def __getitem__(self, rows: Any, /) -> NDArray[np.float32]:
        return np.asarray(self.targets[rows] - self.expected(rows))

    def expected(self, rows: Any) -> NDArray[np.float32]:
        return 2 * _chance(self.line.log_odds(self.soft_labels[rows])) - 1


def _first_rows(matrix: sparse.csr_array, n: int) -> sparse.csr_array:
    """Return the first rows of a matrix without a copy."""
    end = matrix.indptr[n]
    return sparse.csr_array(
        (matrix.data[:end], matrix.indices[:end], matrix.indptr[: n + 1]), shape=(n, matrix.shape[1])
    )


def _in_rows(n: int) -> Iterator[slice]:
    """Yield rows a few at a time, for which temporary arrays are small."""
    return (slice(begin, min(begin + _ROWS_AT_ONCE, n)) for begin in range(0, n, _ROWS_AT_ONCE))


def shared_evidence(
    prepared: PreparedInstances,
    raw: Callable[[], sparse.csc_array],
    roles: FeatureRoles | None,
    tasks: tuple[int, ...],
    parameters: ScoringParameters,
    seed: int,
    n_jobs: int | None,
    others: Callable[[], OtherMembers],
    patients: IntArray,
) -> tuple[Expected, SharedModel]:
    """Learn the past of all tasks together and expect every instance's decisions without its own patient.

    Return what is expected of past and recent instances, and the model for later ones. The tasks have enough decisions
    of both kinds. `raw` makes the raw features, and `others` what the other members of the scorer expect, in the order
    of the tasks, when the graph needs no memory any more. Without roles, for which `prepared` has the day's kinds and
    order groups, all features weigh the same, and steps 3 and 4 are left out. Weights of groups of features are learned
    by leaving out patients.
    """
    random = np.random.default_rng([seed, _DRAW])
    positive = np.column_stack([prepared.past_positive(task) for task in tasks])
    log_odds, support, arrays = _solve_graph(
        prepared, roles, positive, parameters, seed, random, patients[: prepared.n_past], n_jobs
    )
    gc.collect()
    if roles is not None and prepared.day is not None:
        chosen = list(tasks)
        kinds, order_groups = prepared.day.kinds[chosen], prepared.day.groups[chosen]
        arrays |= _roles_arrays(roles, chosen, kinds, order_groups)
        arrays |= _add_steps(arrays, raw, positive, log_odds, others, prepared.groups, parameters, random, n_jobs)
    return Expected(log_odds, support), SharedModel(np.array(tasks, dtype=np.int64), arrays)


def _solve_graph(
    prepared: PreparedInstances,
    roles: FeatureRoles | None,
    positive: NDArray[np.bool_],
    parameters: ScoringParameters,
    seed: int,
    random: np.random.Generator,
    patients: IntArray,
    n_jobs: int | None,
) -> tuple[LogOdds, NDArray[np.float32], dict[str, NDArray[Any]]]:
    """Return log odds and support by the two solves, and what was learned."""
    n_past, groups, ridge = prepared.n_past, prepared.groups, parameters.shared_ridge
    columns = sparse.csr_array(prepared.columns)
    past = _first_rows(columns, n_past)
    kinds_of_features = np.full(columns.shape[1], "all") if roles is None else roles.groups
    weights: Mapping[str, float] = {"all": 1.0} if roles is None else FEATURE_GROUP_WEIGHTS
    learned: dict[str, NDArray[Any]] = {}
    if roles is not None and parameters.learn_group_weights:
        draw = np.random.default_rng([seed, _WEIGHTS_DRAW])
        weights = learn_group_weights(past, roles.groups, positive, patients, weights, ridge=ridge, random=draw)
        learned["group_weights"] = np.array([weights[group] for group in FEATURE_GROUP_WEIGHTS])
    cosine = CosineMap.fit(past, kinds_of_features, weights, parameters.n_landmarks, random)
    coordinates = cosine.transform(columns, n_jobs)
    del columns, past
    # What joblib's workers were given is part of a cycle: it is not freed before the collector comes by.
    gc.collect()
    targets = np.where(positive, np.int8(1), np.int8(-1))
    first = solve_shared_graph(coordinates, targets, groups, ridge=ridge, n_jobs=n_jobs)
    first_line = _Line.fit(first.soft_labels[:n_past], positive, n_jobs)
    second = _Second.fit(coordinates, first.soft_labels, n_past, first_line.means)
    found, left = first.soft_labels, _Left(targets, first.soft_labels, first_line)

    def add(rows: IntArray, added: NDArray[np.float32]) -> None:
        found[rows] = added + left.expected(rows)

    # In the place of the first soft labels: both would not fit beside the coordinates at the paper's size.
    added = solve_shared_graph(second, left, groups, ridge=ridge, keep=add, n_jobs=n_jobs)
    second_line = _Line.fit(found[:n_past], positive, n_jobs)
    for rows in _in_rows(len(found)):
        found[rows] = second_line.log_odds(found[rows])
    arrays = {
        **cosine.arrays("map"),
        **second.arrays(),
        **learned,
        "first_root": first.root,
        "penalty_and_ridge": np.array([first.penalty, ridge]),
        **_arrays_of("first", first, first_line),
        **_arrays_of("second", added, second_line),
    }
    return found, first.support, arrays


def _add_steps(
    roles_arrays: Mapping[str, NDArray[Any]],
    raw: Callable[[], sparse.csc_array],
    positive: NDArray[np.bool_],
    log_odds: LogOdds,
    others: Callable[[], OtherMembers],
    groups: IntArray,
    parameters: ScoringParameters,
    random: np.random.Generator,
    n_jobs: int | None,
) -> dict[str, NDArray[Any]]:
    """Add own history and single signs to the log odds in place; return what was learned of the whole past."""
    part = patient_parts(groups, len(positive), random)
    pairs = _pairs(len(positive), positive.shape[1], parameters.n_history_pairs, random)
    history = _history_of(roles_arrays, raw())
    if history is None:
        return {}
    steps = _Steps(positive, log_odds, groups, part, n_jobs)
    learned = steps.add_history(history, pairs)
    there, named_roles = _signs_of(history), history.roles.named
    del history
    gc.collect()
    beside = others()
    named = named_flags(there, named_roles, positive.shape[1])
    named_effects = steps.add_named(named, beside)
    signs, effects = steps.add_signs(there, beside, parameters.sign_ridge)
    return {**learned, "named_effects": named_effects, "signs": signs, "effects": effects}


@dataclass(frozen=True)
class _Steps:
    """Steps 3 and 4: what they learn of the past outside an instance's part of the patients is added in place."""

    positive: NDArray[np.bool_]  # shape (n_past, n_tasks)
    log_odds: LogOdds  # shape (n, n_tasks)
    groups: IntArray  # shape (n,): patients
    part: IntArray  # shape (n,): see `patient_parts`
    n_jobs: int | None

    def add_history(self, history: OwnHistory, pairs: tuple[IntArray, IntArray]) -> dict[str, NDArray[Any]]:
        """Add own history to the log odds in place and calibrate them; return trees and line of the whole past."""
        positive, log_odds, part, n_jobs = self.positive, self.log_odds, self.part, self.n_jobs
        rates = _logit(2 * positive.mean(axis=0) - 1)
        X, targets, weights = self._pair_features(history, pairs, rates)
        outside = [part[pairs[0]] != number for number in range(N_PARTS)] + [np.ones(len(X), dtype=bool)]
        in_threads = joblib.Parallel(n_jobs=n_jobs, require="sharedmem")

        def fit(rows: NDArray[np.bool_]) -> BoostedTrees:
            return fit_history(X[rows], targets[rows], weights[rows])

        trees = list(in_threads(joblib.delayed(fit)(rows) for rows in outside))

        def of_history(task: int, old: LogOdds) -> FloatArray:
            features = history.of_task(task, rates[task], old, slice(None))
            return _by_part(part, lambda number, rows: trees[number].predict(features[rows]))

        _add_to_tasks(log_odds, of_history, n_jobs)
        return {**trees[-1].arrays("history"), "history_line": self._calibrate(pairs)}

    def _pair_features(
        self, history: OwnHistory, pairs: tuple[IntArray, IntArray], rates: FloatArray
    ) -> tuple[NDArray[np.float32], FloatArray, FloatArray]:
        positive, log_odds = self.positive, self.log_odds
        rows, tasks = pairs
        bounds = np.searchsorted(tasks, np.arange(positive.shape[1] + 1))

        def of_task(task: int) -> NDArray[np.float32]:
            chosen = rows[bounds[task] : bounds[task + 1]]
            return history.of_task(task, rates[task], log_odds[chosen, task], chosen)

        in_threads = joblib.Parallel(n_jobs=self.n_jobs, require="sharedmem")
        X = np.concatenate(list(in_threads(joblib.delayed(of_task)(task) for task in range(positive.shape[1]))))
        targets, weights = residual_targets(positive[rows, tasks], log_odds[rows, tasks])
        return X, targets, weights

    def _calibrate(self, pairs: tuple[IntArray, IntArray]) -> FloatArray:
        """Calibrate log odds in place, which trees leave too far from 0; return the intercept and slope of all tasks.

        Lines of single tasks would draw rare ones towards their base rates again.
        """
        positive, log_odds = self.positive, self.log_odds
        line = fit_line(log_odds[pairs].astype(np.float64), positive[pairs].astype(np.float64))
        log_odds *= np.float32(line.slope)
        log_odds += np.float32(line.intercept)
        return np.array([line.intercept, line.slope])

    def add_named(self, named: sparse.csc_array, others: OtherMembers) -> NDArray[np.float32]:
        """Add what a drug of the lab's name tells to the log odds in place; return each task's, from the whole past."""
        positive, groups, part = self.positive, self.groups, self.part
        n_past, n_tasks = positive.shape
        by_patient = patient_weights(groups[:n_past])
        found = np.zeros(n_tasks, dtype=np.float32)

        def of_names(task: int, old: LogOdds) -> FloatArray:
            there = _dense(named, task)
            if not there.any():
                return there
            past = np.flatnonzero(there[:n_past])
            effects = np.empty(N_PARTS + 1)
            for number in range(N_PARTS + 1):
                rows = past[part[past] != number]
                effects[number] = fit_named(positive[rows, task], old[rows], by_patient[rows], others[rows, task])
            found[task] = effects[N_PARTS]
            return there * effects[part]

        _add_to_tasks(self.log_odds, of_names, self.n_jobs)
        return found

    def add_signs(
        self, there: sparse.csc_array, others: OtherMembers, ridge: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Add single signs to the log odds in place; return signs and effects of all tasks, from the whole past."""
        positive, log_odds, groups, part = self.positive, self.log_odds, self.groups, self.part
        n_past, n_tasks = positive.shape
        past_signs = sparse.csr_array(there[:n_past])
        by_patient = patient_weights(groups[:n_past])
        inside = [np.flatnonzero(part[:n_past] == number) for number in range(N_PARTS)]
        outside = [np.flatnonzero(part[:n_past] != number) for number in range(N_PARTS + 1)]
        signs_inside = [past_signs[rows] for rows in inside]
        signs_outside = [sparse.csc_array(past_signs[rows]) for rows in outside]
        patients = [count_patients(signs, groups[rows]) for signs, rows in zip(signs_inside, inside, strict=True)]
        n_patients = np.sum(patients, axis=0)
        chosen = np.zeros((n_tasks, N_SIGNS), dtype=np.int32)
        fitted = np.zeros((n_tasks, N_SIGNS), dtype=np.float32)

        def of_tasks(tasks: slice) -> None:
            scores = [
                score_signs(signs, positive[rows, tasks], log_odds[rows, tasks], by_patient[rows], others[rows, tasks])
                for signs, rows in zip(signs_inside, inside, strict=True)
            ]
            slope, curvature = (np.sum([score[i] for score in scores], axis=0) for i in range(2))
            for place, task in enumerate(range(n_tasks)[tasks]):
                old, added = log_odds[:, task].copy(), np.empty(len(part))
                for number, rows in enumerate(outside):
                    whole = number == N_PARTS
                    found = fit_signs(
                        signs_outside[number],
                        positive[rows, task],
                        old[rows],
                        by_patient[rows],
                        others[rows, task],
                        slope[:, place] - (0 if whole else scores[number][0][:, place]),
                        curvature[:, place] - (0 if whole else scores[number][1][:, place]),
                        n_patients - (0 if whole else patients[number]),
                        ridge,
                    )
                    mine = part == number
                    added[mine] = SignEffects(found[0][None], found[1][None]).of_task(there, 0)[mine]
                chosen[task], fitted[task] = found
                log_odds[:, task] += added

        blocks = (slice(begin, begin + _TASKS_AT_ONCE) for begin in range(0, n_tasks, _TASKS_AT_ONCE))
        joblib.Parallel(n_jobs=self.n_jobs, require="sharedmem")(joblib.delayed(of_tasks)(block) for block in blocks)
        return chosen, fitted


def _dense(flags: sparse.csc_array, column: int) -> FloatArray:
    found = np.zeros(flags.shape[0])
    found[flags.indices[flags.indptr[column] : flags.indptr[column + 1]]] = 1.0
    return found


def patient_parts(groups: IntArray, n_past: int, random: np.random.Generator) -> IntArray:
    """Return the part of each instance, one for all of a patient; `N_PARTS` for patients without a past."""
    patients, place = np.unique(groups[:n_past], return_inverse=True)
    part_of = random.permutation(len(patients)) % N_PARTS
    found = np.full(len(groups), N_PARTS, dtype=np.int64)
    found[:n_past] = part_of[place]
    where = np.searchsorted(patients, groups[n_past:]).clip(max=len(patients) - 1)
    known = patients[where] == groups[n_past:]
    found[n_past:][known] = part_of[where[known]]
    return found


def _by_part(part: IntArray, expect: Callable[[int, IntArray], FloatArray]) -> FloatArray:
    found = np.empty(len(part))
    for number in range(N_PARTS + 1):
        rows = np.flatnonzero(part == number)
        if len(rows):
            found[rows] = expect(number, rows)
    return found


def _add_to_tasks(log_odds: LogOdds, added: Callable[[int, LogOdds], FloatArray], n_jobs: int | None = None) -> None:
    """Add to the log odds of every task in place, tasks side by side."""

    def add(task: int) -> None:
        log_odds[:, task] += added(task, log_odds[:, task]).astype(np.float32)

    joblib.Parallel(n_jobs=n_jobs, require="sharedmem")(joblib.delayed(add)(task) for task in range(log_odds.shape[1]))


def _pairs(n_past: int, n_tasks: int, n_pairs: int, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw (instance, task) pairs, by task; all of them where there are no more than `n_pairs`."""
    n_all = n_past * n_tasks
    drawn = np.arange(n_all) if n_all <= n_pairs else np.sort(random.choice(n_all, n_pairs, replace=False))
    return drawn % n_past, drawn // n_past


def _chance(log_odds: LogOdds) -> NDArray[np.float32]:
    return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -80, 80))))


def _logit(means: NDArray[Any]) -> FloatArray:
    """Return log odds of past means of decisions, -1 or +1."""
    return np.asarray(np.log1p(means) - np.log1p(-means))


def _arrays_of(prefix: str, solved: SharedSolution, line: _Line) -> dict[str, NDArray[Any]]:
    return {
        f"{prefix}_coefficients": solved.coefficients,
        f"{prefix}_means": line.means,
        f"{prefix}_intercepts": line.intercepts,
        f"{prefix}_slopes": line.slopes,
    }


def _line_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> _Line:
    return _Line(arrays[f"{prefix}_means"], arrays[f"{prefix}_intercepts"], arrays[f"{prefix}_slopes"])


_ROLES: Final = ("groups", "signs", "measured", "on", "given")
_NO_NAMES: Final = np.empty((0, 2), dtype=np.int32)


def _roles_arrays(
    roles: FeatureRoles, tasks: list[int], kinds: IntArray, order_groups: IntArray
) -> dict[str, NDArray[Any]]:
    place = np.full(len(roles.own_item), -1, dtype=np.int32)
    place[tasks] = np.arange(len(tasks), dtype=np.int32)
    named = np.column_stack((place[roles.named[:, 0]], roles.named[:, 1]))
    return {
        **{f"roles_{name}": getattr(roles, name) for name in _ROLES},
        "roles_own_item": roles.own_item[tasks],
        "roles_named": named[named[:, 0] >= 0],
        "roles_day_of_stay": np.array(roles.day_of_stay),
        "kinds": kinds,
        "order_groups": order_groups,
    }


def _history_of(arrays: Mapping[str, NDArray[Any]], raw: sparse.csc_array) -> OwnHistory | None:
    if "roles_own_item" not in arrays:
        return None
    roles = FeatureRoles(
        **{name: arrays[f"roles_{name}"] for name in (*_ROLES, "own_item")},
        named=arrays.get("roles_named", _NO_NAMES),
        day_of_stay=int(arrays["roles_day_of_stay"]),
    )
    return OwnHistory(raw, roles, arrays["order_groups"], arrays["kinds"])


def _signs_of(history: OwnHistory) -> sparse.csc_array:
    """Return where each sign is there, 1.0, and nothing else."""
    found: sparse.csc_array = history.raw[:, history.roles.signs].astype(np.float64)
    found.data = (found.data != 0).astype(np.float64)
    found.eliminate_zeros()
    return found
