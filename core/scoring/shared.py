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

from collections.abc import Callable, Mapping
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

    def expect(self, columns: sparse.csr_array, raw: sparse.csr_array, n_jobs: int | None = None) -> "Expected":
        """Expect the decisions of new instances, each by itself, from their standardised and raw features."""
        arrays = self.arrays
        coordinates = CosineMap.of_arrays(arrays, "map").transform(columns, n_jobs)
        soft_labels = soft_labels_of(coordinates, arrays["first_coefficients"])
        log_odds = _line_of(arrays, "first").log_odds(soft_labels)
        wide = _Second.of_arrays(arrays).coordinates(coordinates, soft_labels)
        expected = 2 * _chance(log_odds) - 1 + soft_labels_of(wide, arrays["second_coefficients"])
        log_odds = _line_of(arrays, "second").log_odds(expected)
        history = _history_of(arrays, raw)
        if history is not None:
            trees, effects = BoostedTrees.of_arrays(arrays, "history"), SignEffects(arrays["signs"], arrays["effects"])
            rates = _logit(arrays["first_means"])
            there = _signs_of(raw, history.roles.signs)
            named = named_flags(there, history.roles.named, log_odds.shape[1])
            effects_of_names = arrays.get("named_effects", np.zeros(log_odds.shape[1]))
            _add_to_tasks(log_odds, lambda task, old: trees.predict(history.of_task(task, rates[task], old)), n_jobs)
            # A model of an earlier version has none.
            intercept, slope = arrays.get("history_line", np.array([0.0, 1.0])).astype(np.float32)
            log_odds = log_odds * slope + intercept
            _add_to_tasks(log_odds, lambda task, _: _dense(named, task) * effects_of_names[task], n_jobs)
            _add_to_tasks(log_odds, lambda task, _: effects.of_task(there, task), n_jobs)
        penalty, ridge = arrays["penalty_and_ridge"].tolist()
        return Expected(log_odds, support_of(coordinates, arrays["first_root"], penalty, ridge))


@dataclass(frozen=True)
class _Second:
    """How the soft labels of all tasks and the graph's coordinates become the coordinates of the second solve."""

    means: NDArray[np.float32]
    scales: NDArray[np.float32]
    center: NDArray[np.float32]
    scale: np.float32

    @classmethod
    def fit(cls, coordinates: NDArray[np.float32], soft_labels: NDArray[np.float32], means: FloatArray) -> "_Second":
        spread = np.sqrt(1 - means**2)
        found = soft_labels.mean(axis=0, dtype=np.float64)
        squared = float(
            (((soft_labels - found.astype(np.float32)) / spread.astype(np.float32)) ** 2).sum(axis=1).mean()
        )
        center = coordinates.mean(axis=0, dtype=np.float64).astype(np.float32)
        size = float(((coordinates - center) ** 2).sum(axis=1).mean())
        single = np.float32
        scales = 1 / (spread * np.sqrt(2 * max(squared, 1e-12)))
        return cls(found.astype(single), scales.astype(single), center, single(1 / np.sqrt(2 * max(size, 1e-12))))

    def coordinates(self, coordinates: NDArray[np.float32], soft_labels: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.hstack(((soft_labels - self.means) * self.scales, (coordinates - self.center) * self.scale))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "wide_means": self.means,
            "wide_scales": self.scales,
            "wide_center": self.center,
            "wide_scale": np.array(self.scale),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "_Second":
        scale = np.float32(arrays["wide_scale"])
        return cls(arrays["wide_means"], arrays["wide_scales"], arrays["wide_center"], scale)


def shared_evidence(
    prepared: PreparedInstances,
    raw: sparse.csr_array,
    roles: FeatureRoles | None,
    tasks: tuple[int, ...],
    parameters: ScoringParameters,
    seed: int,
    n_jobs: int | None = None,
    others: OtherMembers | None = None,
    patients: IntArray | None = None,
) -> tuple[Expected, SharedModel]:
    """Learn the past of all tasks together and expect every instance's decisions without its own patient.

    Return what is expected of past and recent instances, and the model for later ones. The tasks have enough decisions
    of both kinds. Without roles, for which `prepared` has the day's kinds and order groups, all features weigh the
    same, and steps 3 and 4 are left out. The other members of the scorer are in the order of the tasks. Weights of
    groups of features are learned by leaving out patients, or the groups of `prepared`.
    """
    n_past, groups = prepared.n_past, prepared.groups
    random = np.random.default_rng([seed, _DRAW])
    positive = np.column_stack([prepared.past_positive(task) for task in tasks])
    columns = sparse.csr_array(prepared.columns)
    kinds_of_features = np.full(columns.shape[1], "all") if roles is None else roles.groups
    weights: Mapping[str, float] = {"all": 1.0} if roles is None else FEATURE_GROUP_WEIGHTS
    learned: dict[str, NDArray[Any]] = {}
    if roles is not None and parameters.learn_group_weights:
        people = (groups if patients is None else patients)[:n_past]
        draw = np.random.default_rng([seed, _WEIGHTS_DRAW])
        ridge = parameters.shared_ridge
        weights = learn_group_weights(
            columns[:n_past], roles.groups, positive, people, weights, ridge=ridge, random=draw
        )
        learned["group_weights"] = np.array([weights[group] for group in FEATURE_GROUP_WEIGHTS])
    cosine = CosineMap.fit(columns[:n_past], kinds_of_features, weights, parameters.n_landmarks, random)
    coordinates = cosine.transform(columns, n_jobs)
    del columns
    targets = np.where(positive, np.float32(1), np.float32(-1))
    first = solve_shared_graph(coordinates, targets, groups, ridge=parameters.shared_ridge)
    first_line = _Line.fit(first.soft_labels[:n_past], positive, n_jobs)
    expected = 2 * _chance(first_line.log_odds(first.soft_labels)) - 1
    second = _Second.fit(coordinates[:n_past], first.soft_labels[:n_past], first_line.means)
    wide = second.coordinates(coordinates, first.soft_labels)
    added = solve_shared_graph(wide, targets - expected[:n_past], groups, ridge=parameters.shared_ridge)
    del wide, coordinates, targets
    expected += added.soft_labels
    second_line = _Line.fit(expected[:n_past], positive, n_jobs)
    log_odds = second_line.log_odds(expected)
    arrays = {
        **cosine.arrays("map"),
        **second.arrays(),
        **learned,
        "first_root": first.root,
        "penalty_and_ridge": np.array([first.penalty, parameters.shared_ridge]),
        **_arrays_of("first", first, first_line),
        **_arrays_of("second", added, second_line),
    }
    if roles is not None and prepared.day is not None:
        chosen = list(tasks)
        kinds, order_groups = prepared.day.kinds[chosen], prepared.day.groups[chosen]
        arrays |= _roles_arrays(roles, chosen, kinds, order_groups)
        beside = others or OtherMembers.none(positive.shape)
        arrays |= _add_steps(arrays, raw, positive, log_odds, beside, groups, parameters, random, n_jobs)
    return Expected(log_odds, first.support), SharedModel(np.array(tasks, dtype=np.int64), arrays)


def _add_steps(
    roles_arrays: Mapping[str, NDArray[Any]],
    raw: sparse.csr_array,
    positive: NDArray[np.bool_],
    log_odds: LogOdds,
    others: OtherMembers,
    groups: IntArray,
    parameters: ScoringParameters,
    random: np.random.Generator,
    n_jobs: int | None,
) -> dict[str, NDArray[Any]]:
    """Add own history and single signs to the log odds in place; return what was learned of the whole past."""
    n_past, n_tasks = positive.shape
    history = _history_of(roles_arrays, raw)
    if history is None:
        return {}
    part = patient_parts(groups, n_past, random)
    rates = _logit(2 * positive.mean(axis=0) - 1)
    pairs = _pairs(n_past, n_tasks, parameters.n_history_pairs, random)
    X, targets, weights = _pair_features(history, pairs, rates, positive, log_odds, n_jobs)
    outside = [part[pairs[0]] != number for number in range(N_PARTS)] + [np.ones(len(X), dtype=bool)]
    in_threads = joblib.Parallel(n_jobs=n_jobs, require="sharedmem")
    trees = list(in_threads(joblib.delayed(fit_history)(X[rows], targets[rows], weights[rows]) for rows in outside))
    del X

    def of_history(task: int, old: LogOdds) -> FloatArray:
        features = history.of_task(task, rates[task], old)
        return _by_part(part, lambda number, rows: trees[number].predict(features[rows]))

    _add_to_tasks(log_odds, of_history, n_jobs)
    line = _calibrate_history(log_odds, positive, pairs)
    there = _signs_of(raw, history.roles.signs)
    named = named_flags(there, history.roles.named, n_tasks)
    named_effects = _add_named(named, positive, log_odds, others, groups, part, n_jobs)
    fitted = _add_signs(there, positive, log_odds, others, groups, part, parameters, n_jobs)
    return {
        **trees[-1].arrays("history"),
        "history_line": line,
        "named_effects": named_effects,
        "signs": np.stack([fitted[task][0] for task in range(n_tasks)]),
        "effects": np.stack([fitted[task][1] for task in range(n_tasks)]),
    }


def _calibrate_history(log_odds: LogOdds, positive: NDArray[np.bool_], pairs: tuple[IntArray, IntArray]) -> FloatArray:
    """Calibrate log odds in place, which trees leave too far from 0; return the intercept and slope of all tasks.

    Lines of single tasks would draw rare ones towards their base rates again.
    """
    line = fit_line(log_odds[pairs].astype(np.float64), positive[pairs].astype(np.float64))
    log_odds *= np.float32(line.slope)
    log_odds += np.float32(line.intercept)
    return np.array([line.intercept, line.slope])


def _add_named(
    named: sparse.csc_array,
    positive: NDArray[np.bool_],
    log_odds: LogOdds,
    others: OtherMembers,
    groups: IntArray,
    part: IntArray,
    n_jobs: int | None,
) -> NDArray[np.float32]:
    """Add what a drug of the lab's name tells to the log odds in place; return each task's, from the whole past."""
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

    _add_to_tasks(log_odds, of_names, n_jobs)
    return found


def _dense(flags: sparse.csc_array, column: int) -> FloatArray:
    found = np.zeros(flags.shape[0])
    found[flags.indices[flags.indptr[column] : flags.indptr[column + 1]]] = 1.0
    return found


def _add_signs(
    there: sparse.csr_array,
    positive: NDArray[np.bool_],
    log_odds: LogOdds,
    others: OtherMembers,
    groups: IntArray,
    part: IntArray,
    parameters: ScoringParameters,
    n_jobs: int | None,
) -> dict[int, tuple[NDArray[np.int32], NDArray[np.float32]]]:
    """Add single signs to the log odds in place; return signs and effects of each task, from the whole past."""
    n_past = len(positive)
    past_signs, past_log_odds = there[:n_past], log_odds[:n_past]
    by_patient = patient_weights(groups[:n_past])
    numbers = [np.flatnonzero(part[:n_past] == number) for number in range(N_PARTS)]
    scores = [
        score_signs(past_signs[rows], positive[rows], past_log_odds[rows], by_patient[rows], others[rows])
        for rows in numbers
    ]
    slope, curvature = (np.sum([score[i] for score in scores], axis=0) for i in range(2))
    patients = [count_patients(past_signs[rows], groups[rows]) for rows in numbers]
    n_patients = np.sum(patients, axis=0)
    dense = sparse.csc_array(past_signs)
    fitted: dict[int, tuple[NDArray[np.int32], NDArray[np.float32]]] = {}

    def of_signs(task: int, old: LogOdds) -> FloatArray:
        effects = []
        for number in range(N_PARTS + 1):
            whole = number == N_PARTS
            rows = np.flatnonzero(part[:n_past] != number)
            found = fit_signs(
                dense if whole else dense[rows],
                positive[rows, task],
                old[rows],
                by_patient[rows],
                others[rows, task],
                slope[:, task] - (0 if whole else scores[number][0][:, task]),
                curvature[:, task] - (0 if whole else scores[number][1][:, task]),
                n_patients - (0 if whole else patients[number]),
                parameters.sign_ridge,
            )
            effects.append(SignEffects(found[0][None], found[1][None]))
            if whole:
                fitted[task] = found
        return _by_part(part, lambda number, rows: effects[number].of_task(there[rows], 0))

    _add_to_tasks(log_odds, of_signs, n_jobs)
    return fitted


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


def _add_to_tasks(log_odds: LogOdds, added: Callable[[int, LogOdds], FloatArray], n_jobs: int | None) -> None:
    """Add to the log odds of every task in place, tasks side by side."""

    def add(task: int) -> None:
        log_odds[:, task] += added(task, log_odds[:, task]).astype(np.float32)

    joblib.Parallel(n_jobs=n_jobs, require="sharedmem")(joblib.delayed(add)(task) for task in range(log_odds.shape[1]))


def _pairs(n_past: int, n_tasks: int, n_pairs: int, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw (instance, task) pairs, by task; all of them where there are no more than `n_pairs`."""
    n_all = n_past * n_tasks
    drawn = np.arange(n_all) if n_all <= n_pairs else np.sort(random.choice(n_all, n_pairs, replace=False))
    return drawn % n_past, drawn // n_past


def _pair_features(
    history: OwnHistory,
    pairs: tuple[IntArray, IntArray],
    rates: FloatArray,
    positive: NDArray[np.bool_],
    log_odds: LogOdds,
    n_jobs: int | None,
) -> tuple[NDArray[np.float32], FloatArray, FloatArray]:
    rows, tasks = pairs
    bounds = np.searchsorted(tasks, np.arange(positive.shape[1] + 1))

    def of_task(task: int) -> NDArray[np.float32]:
        chosen = rows[bounds[task] : bounds[task + 1]]
        return history.of_task(task, rates[task], log_odds[:, task])[chosen]

    in_threads = joblib.Parallel(n_jobs=n_jobs, require="sharedmem")
    X = np.concatenate(list(in_threads(joblib.delayed(of_task)(task) for task in range(positive.shape[1]))))
    targets, weights = residual_targets(positive[rows, tasks], log_odds[rows, tasks])
    return X, targets, weights


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


def _history_of(arrays: Mapping[str, NDArray[Any]], raw: sparse.csr_array) -> OwnHistory | None:
    if "roles_own_item" not in arrays:
        return None
    roles = FeatureRoles(
        **{name: arrays[f"roles_{name}"] for name in (*_ROLES, "own_item")},
        named=arrays.get("roles_named", _NO_NAMES),
        day_of_stay=int(arrays["roles_day_of_stay"]),
    )
    return OwnHistory(sparse.csc_array(raw), roles, arrays["order_groups"], arrays["kinds"])


def _signs_of(raw: sparse.csr_array, signs: NDArray[np.int32]) -> sparse.csr_array:
    found: sparse.csr_array = raw[:, signs].astype(np.float64)
    found.data = (found.data != 0).astype(np.float64)
    return found
