"""Two scorers on the judged cases of one study: which ranks relevant cases higher, and by more than chance.

Needs the folder that `alertreview export study --study NAME --out FOLDER` writes; a column of scores of your own,
by case_id, can take the place of either scorer.

Run it: python docs/examples/compare_scorers.py FOLDER softhad logistic
"""

import sys
from pathlib import Path

import pandas as pd

from core.statistics import design_weighted_auc, design_weighted_difference
from core.statistics.estimate import Estimate


def judged_cases(folder: Path) -> pd.DataFrame:
    """Join labels, weights and scores: a row for each complete case whose votes decide, as in the report."""
    labels = pd.read_csv(folder / "labels.csv", dtype={"case_id": str})
    cases = pd.read_csv(folder / "cases.csv", dtype={"case_id": str})
    scores = pd.read_csv(folder / "scores.csv", dtype={"case_id": str})
    strata = pd.read_csv(folder / "strata.csv").reset_index(names="stratum_row")
    labels = labels[(labels["state"] != "open") & labels["majority_label"].notna()]
    wide = scores.pivot_table(index="case_id", columns="scorer", values="score")
    design = cases[["case_id", "patient_id", "stratum", "inclusion_probability"]].merge(
        strata[["stratum", "stratum_row"]]
    )
    table = labels[["case_id", "majority_label"]].merge(design)
    return table.merge(wide, left_on="case_id", right_index=True)


def main(folder: str, first: str, second: str) -> None:
    """Print both AUCs and their difference, each with its 95 % interval."""
    cases = judged_cases(Path(folder))
    label = cases["majority_label"]
    design = {
        "patients": cases["patient_id"],
        "inclusion_probability": cases["inclusion_probability"],
        "strata": cases["stratum_row"],
        "stratum_sizes": pd.read_csv(Path(folder) / "strata.csv")["n_population"],
    }
    print(
        f"{len(cases)} decided cases, {int(label.sum())} of them relevant, of {cases['patient_id'].nunique()} patients"
    )
    for scorer in (first, second):
        print(f"AUC of {scorer}: {_with_interval(design_weighted_auc(label, cases[scorer], **design))}")
    both = design_weighted_difference(label, cases[first], cases[second], **design)
    p_value = "n/a" if both.p_value is None else f"{both.p_value:.3f}"
    print(f"difference: {_with_interval(both.difference)}, p = {p_value}")


def _with_interval(found: Estimate) -> str:
    value, low, high = found.value, found.low, found.high
    if value is None or low is None or high is None:
        return f"{'n/a' if value is None else format(value, '.3f')} ({found.reason})"
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main(*sys.argv[1:])
