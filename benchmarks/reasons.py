"""How often the reasons shown for an alert are those of the hospital's own policy, which the simulation knows.

The policy is read back from the features: what pulled each decision, in logits. A planted decision counts as explained
when the term that pulls strongest is among the reasons shown. For usual decisions, a reason outside the rule of the
task counts as false: a stand-in such as a high lactate for sepsis is false here, although it is no error. Of tasks that
are done on most days, habit is the reason, and no finding is: they stand apart.
"""

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from alertreview.records.importing import build_cohort
from core.cohort.cohort import Cohort
from core.scoring.reasons import Reasons, fit_contrast
from core.simulation.hospital import load_truth, simulate_cohort, write_meds
from core.simulation.labs import LABS, VITALS
from core.simulation.rules import REASONS, SURGICAL, Catalogue, OrderUnit

N_USUAL = 200
FEWEST_OF_A_KIND = 10
HABIT = 0.5
"""Share of past instances with the decision from which an omission is unexpected by habit alone."""
Values = NDArray[np.float64]
_LABS = {lab.name: lab for lab in (*LABS, *VITALS)}
_UNITS = {member: unit for unit in Catalogue().units for member in unit.members}


class KnownPolicy:
    """What moves each decision of the simulated hospital, for every instance of a snapshot.

    Parameters
    ----------
    features : sparse matrix of shape (n_instances, n_features)
    dictionary : DataFrame
        Feature dictionary.
    """

    def __init__(self, features: sparse.csc_matrix, dictionary: pd.DataFrame) -> None:
        self._features = sparse.csc_matrix(features)
        self._place = {
            key: i
            for i, key in enumerate(zip(dictionary["source"], dictionary["aspect"], dictionary["name"], strict=True))
        }
        self._by_aspect = {(source, aspect): i for (source, aspect, _), i in self._place.items()}
        self._by_name = {name: i for (_, _, name), i in self._place.items()}

    def main_reasons(self, item: str, row: int, taken: NDArray[np.bool_], *, expected: bool) -> dict[str, float]:
        """Return the terms of the rule that speak for what was expected, with their pull in logits, strongest first.

        What was expected is explained by what is there. What was not is explained by what is missing, or forbids it: a
        term then pulls by how far it lies from its mean among those with the decision.
        """
        pulls = {}
        for term, weight in _UNITS[item].terms.items():
            x = self.variable(term)
            against = 0.0 if expected else x[taken].mean()
            pulls[term] = float(weight * (x[row] - against)) * (1 if expected else -1)
        return dict(sorted(((t, p) for t, p in pulls.items() if p > 0.5), key=lambda one: -one[1]))

    def rule(self, item: str) -> OrderUnit:
        """Return the rule behind a task."""
        return _UNITS[item]

    def variable(self, term: str) -> Values:
        """Return the value of a rule's variable for every instance."""
        kind, _, what = term.partition(":")
        if kind in ("low", "high"):
            lab, last = _LABS[what], self._column((what, "last_value"), np.nan)
            limit = lab.low if kind == "low" else lab.high
            distance = np.log(np.maximum(last, 1e-9) / max(limit, 1e-9)) if lab.log else last - limit
            return np.nan_to_num(np.clip((-distance if kind == "low" else distance) / lab.spread, 0, 2.5))
        if what:
            aspect = {"known": "ever", "fresh": "measured_24h", "on": "on_now", "home": "ever"}[kind]
            return self._column((what, aspect), 0.0)
        plain: dict[str, Callable[[], Values]] = {
            "icu": lambda: self._named("Care unit: Intensive Care"),
            "surgery": lambda: np.maximum(
                self._named("Care unit: Surgery"), sum(self._named(_admission(each)) for each in SURGICAL)
            ),
            "first_day": lambda: (self._column(("Stay", "day_of_stay"), np.nan) <= 2).astype(float),
            "late": lambda: (self._column(("Stay", "day_of_stay"), np.nan) >= 6).astype(float),
            "unstable": lambda: (
                np.clip((self._vital("Heart Rate") - 100) / 20, 0, 1.5)
                + np.clip((100 - self._vital("Systolic Blood Pressure")) / 15, 0, 1.5)
            ),
            "fever": lambda: np.clip((self._vital("Temperature") - 38.0) / 0.5, 0, 1.5),
            "hypoxic": lambda: np.clip((92 - self._vital("Oxygen Saturation")) / 2, 0, 1.5),
            "immobile": lambda: np.clip(2.5 - self._vital("Mobility Score"), 0, 1),
        }
        return np.nan_to_num(plain[term]()) if term in plain else self._named(_admission(term))

    def _vital(self, name: str) -> Values:
        return self._column((name, "last_value"), np.nan)

    def _named(self, name: str) -> Values:
        return self._read(self._by_name[name], 0.0)

    def _column(self, key: tuple[str, str], missing: float) -> Values:
        return self._read(self._by_aspect.get(key, -1), missing)

    def _read(self, column: int, missing: float) -> Values:
        values = np.full(self._features.shape[0], missing)
        if column >= 0:
            start, end = self._features.indptr[column], self._features.indptr[column + 1]
            values[self._features.indices[start:end]] = self._features.data[start:end]
        return values


def _admission(reason: str) -> str:
    return f"Admission: {REASONS[reason][0]}"


def names_term(term: str, source: str, name: str) -> bool:
    """Say whether a feature shown as a reason is what a term of a rule means."""
    kind, _, what = term.partition(":")
    if what:
        return source == what
    if kind in REASONS:
        return name == _admission(kind)
    return {
        "icu": source == "Care unit",
        "surgery": name == "Care unit: Surgery" or name in map(_admission, SURGICAL),
        "first_day": source == "Stay",
        "late": source == "Stay",
        "unstable": source in ("Heart Rate", "Systolic Blood Pressure"),
        "fever": source == "Temperature",
        "hypoxic": source == "Oxygen Saturation",
        "immobile": source == "Mobility Score",
    }[kind]


@dataclass
class Measured:
    """What was counted.

    Parameters
    ----------
    by_task : dict of str to list of int
        Task -> planted decisions, and those explained; without habits.
    n_habits, n_habits_explained : int
        Planted omissions of what is done on most days.
    n_usual, n_usual_with_false, n_lines, n_false_lines : int
        Usual decisions looked at, those with a reason outside the rule, and the same counts of reasons.
    """

    by_task: dict[str, list[int]] = field(default_factory=dict)
    n_habits: int = 0
    n_habits_explained: int = 0
    n_usual: int = 0
    n_usual_with_false: int = 0
    n_lines: int = 0
    n_false_lines: int = 0

    @property
    def explained(self) -> float:
        """Share of planted decisions whose strongest true reason is shown."""
        total, found = np.sum(list(self.by_task.values()), axis=0)
        return float(found / total)


class Hospital:
    """A simulated hospital with its truth, the earlier four fifths of it as the past."""

    def __init__(self, folder: Path, n_patients: int, n_days: int, seed: int) -> None:
        write_meds(simulate_cohort(n_patients=n_patients, n_days=n_days, seed=seed), folder)
        self.cohort: Cohort = build_cohort(folder)[0]
        self.true_score, self.planted = load_truth(folder, self.cohort)
        self.decisions = self.cohort.decisions.toarray().astype(bool)
        self.policy = KnownPolicy(self.cohort.features, self.cohort.feature_dictionary)
        at = self.cohort.instances["snapshot_at"]
        self.past = np.flatnonzero((at < at.quantile(0.8)).to_numpy())
        self.recent = np.flatnonzero((at >= at.quantile(0.8)).to_numpy())
        self._columns = sparse.csc_matrix(self.cohort.features[self.past])
        self.patients = self.cohort.instances["patient_id"].astype("category").cat.codes.to_numpy()[self.past]
        self._contrasts = {}

    def deal(self, past_decisions: NDArray[np.bool_]) -> None:
        """Replace the decisions of the past, and forget what told them apart."""
        self.decisions[self.past] = past_decisions
        self._contrasts = {}

    def can_explain(self, task: int) -> bool:
        """Say whether the past holds enough decisions of both kinds."""
        n_taken = int(self.decisions[self.past, task].sum())
        return FEWEST_OF_A_KIND <= n_taken <= len(self.past) - FEWEST_OF_A_KIND

    def reasons(self, row: int, task: int, *, expected: bool) -> Reasons:
        """Return the reasons shown for one decision."""
        if task not in self._contrasts:
            taken = self.decisions[self.past, task]
            self._contrasts[task] = fit_contrast(self._columns, taken, self.patients, self.cohort.feature_dictionary)
        is_flag = self.cohort.feature_dictionary["is_flag"].to_numpy(dtype=bool)
        x = np.where(is_flag, 0.0, np.nan)
        own = self.cohort.features[[row]]
        x[own.indices] = own.data
        return self._contrasts[task].reasons(x, expected=expected)


def measure(hospital: Hospital, seed: int = 0) -> Measured:
    """Count true reasons of planted decisions and false reasons of usual ones."""
    measured, cohort, policy = Measured(), hospital.cohort, hospital.policy
    items = cohort.tasks["name"].to_numpy()
    names, sources = (cohort.feature_dictionary[each].to_numpy() for each in ("name", "source"))

    def shown_terms(reasons: Reasons, terms: list[str]) -> list[bool]:
        columns = [reason.finding.column for reason in reasons.reasons]
        return [any(names_term(term, sources[c], names[c]) for c in columns) for term in terms]

    for row in hospital.recent.tolist():
        for task in np.flatnonzero(hospital.planted[row]).tolist():
            taken = hospital.decisions[:, task]
            expected = not taken[row]
            true = list(policy.main_reasons(items[task], row, taken, expected=expected))
            if not hospital.can_explain(task) or not true:
                continue
            explained = shown_terms(hospital.reasons(row, task, expected=expected), true)[0]
            if expected and taken[hospital.past].mean() >= HABIT:
                measured.n_habits += 1
                measured.n_habits_explained += explained
            else:
                counts = measured.by_task.setdefault(items[task], [0, 0])
                counts[0] += 1
                counts[1] += explained
    rng = np.random.default_rng(seed)
    while measured.n_usual < N_USUAL:
        row, task = int(rng.choice(hospital.recent)), int(rng.integers(len(items)))
        if hospital.planted[row, task] or hospital.true_score[row, task] > 0.5 or not hospital.can_explain(task):
            continue
        reasons = hospital.reasons(row, task, expected=bool(hospital.decisions[row, task]))
        terms = policy.rule(items[task]).terms
        columns = [reason.finding.column for reason in reasons.reasons]
        false = [not any(names_term(term, sources[c], names[c]) for term in terms) for c in columns]
        measured.n_usual += 1
        measured.n_usual_with_false += any(false)
        measured.n_lines += len(false)
        measured.n_false_lines += sum(false)
    return measured


def count_by_chance(hospital: Hospital, seed: int = 0) -> int:
    """Return of how many of `N_USUAL` decisions a reason is shown when decisions have nothing to do with the patients.

    The past decisions of each task are moved along the days in order of patients, so that runs of days stay together.
    """
    rng = np.random.default_rng(seed)
    kept = hospital.decisions[hospital.past]
    order = np.argsort(hospital.patients, kind="stable")
    moved = kept.copy()
    for task in range(kept.shape[1]):
        moved[order, task] = np.roll(kept[order, task], rng.integers(len(kept)))
    hospital.deal(moved)
    n_shown = n = 0
    while n < N_USUAL:
        row, task = int(rng.choice(hospital.recent)), int(rng.integers(kept.shape[1]))
        if hospital.can_explain(task):
            n += 1
            n_shown += bool(hospital.reasons(row, task, expected=bool(hospital.decisions[row, task])).reasons)
    hospital.deal(kept)
    return n_shown


def main() -> None:
    """Measure one hospital and print the figures by task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", type=int, default=700)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hospital = Hospital(Path(folder), given.patients, given.days, given.seed)
        measured = measure(hospital)
        n_by_chance = count_by_chance(hospital)
    for item, (n, found) in sorted(measured.by_task.items()):
        print(f"{item:28} {found:4} of {n:4} planted decisions explained")
    print(f"all {measured.explained:.1%}; of {measured.n_habits} omitted habits {measured.n_habits_explained}")
    print(
        f"usual decisions with a reason outside the rule: {measured.n_usual_with_false} of {measured.n_usual}; "
        f"{measured.n_false_lines} of {measured.n_lines} reasons"
    )
    print(f"decisions dealt at random with any reason: {n_by_chance} of {N_USUAL}")


if __name__ == "__main__":
    main()
