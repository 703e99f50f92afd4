"""Two scorers on the judged cases of one study: which ranks relevant cases higher, and by more than chance.

Needs the folder that `alertreview export study --study NAME --out FOLDER` writes; a column of scores of your own,
by case_id, can take the place of either scorer.

Run it: python docs/examples/compare_scorers.py FOLDER softhad logistic
"""

import sys
from pathlib import Path

import pandas as pd

from core.statistics.estimate import Estimate
from core.statistics.weighted_auc import patient_jackknife, patient_jackknife_paired


def judged_cases(folder: Path) -> pd.DataFrame:
    """Join labels, weights and scores: a row for each complete case whose votes decide, as in the report."""
    labels = pd.read_csv(folder / "labels.csv", dtype={"case_id": str})
    cases = pd.read_csv(folder / "cases.csv", dtype={"case_id": str})
    scores = pd.read_csv(folder / "scores.csv", dtype={"case_id": str})
    labels = labels[(labels["state"] != "open") & labels["majority_label"].notna()]
    wide = scores.pivot_table(index="case_id", columns="scorer", values="score")
    table = labels[["case_id", "majority_label"]].merge(cases[["case_id", "patient_id", "inclusion_probability"]])
    return table.merge(wide, left_on="case_id", right_index=True)


def main(folder: str, first: str, second: str) -> None:
    """Print both AUCs and their difference, each with its 95 % interval."""
    cases = judged_cases(Path(folder))
    label, patient, weight = cases["majority_label"], cases["patient_id"], 1 / cases["inclusion_probability"]
    print(f"{len(cases)} decided cases, {int(label.sum())} of them relevant, of {patient.nunique()} patients")
    for scorer in (first, second):
        found = patient_jackknife(label, cases[scorer], patient, weight)
        print(f"AUC of {scorer}: {_with_interval(found)}")
    both = patient_jackknife_paired(label, cases[first], cases[second], patient, weight)
    p_value = "n/a" if both.p_value is None else f"{both.p_value:.3f}"
    print(f"difference: {_with_interval(both.difference)}, p = {p_value}")


def _with_interval(found: Estimate) -> str:
    value, low, high = found.value, found.low, found.high
    if value is None or low is None or high is None:
        return f"{'n/a' if value is None else format(value, '.3f')} ({found.reason})"
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main(*sys.argv[1:])
