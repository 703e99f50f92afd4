"""Many decisions at once on features of your own: no MEDS, no import, no site; arrays in, ranked decisions out.

Run it from anywhere: python docs/examples/own_features.py
"""

import numpy as np
import pandas as pd
from scipy import sparse

from core.scoring.all_tasks import score_tasks

TASKS = ["blood culture", "troponin", "vitamin D"]


def main() -> None:
    """Score three tasks, and list the most unusual decisions of all of them together."""
    rng = np.random.default_rng(1)
    n_patients, n_days = 300, 4
    patients = np.repeat(np.arange(n_patients), n_days)
    state = rng.normal(size=(n_patients * n_days, 12))
    # The first task follows the first feature, the second the second; the third follows nothing.
    chance = 1 / (1 + np.exp(-4 * np.column_stack([state[:, 0], state[:, 1] - 1, np.zeros(len(state)) - 0.3])))
    decisions = rng.random(chance.shape) < chance

    # Rows that are learned from and rows that are scored; no patient is in both.
    past, recent = np.flatnonzero(patients < 200), np.flatnonzero(patients >= 200)
    scored = score_tasks(
        sparse.csr_array(state),
        sparse.csr_array(decisions),
        is_flag=np.zeros(state.shape[1], dtype=bool),  # True for features that are 0 or 1
        patients=patients,
        past=past,
        recent=recent,
        scorers=("softhad", "logistic"),
        task_names=TASKS,
        seed=1,
    )
    rows = []
    for task in scored.tasks:
        found = scored.scores(task, "softhad")
        rows.append(
            pd.DataFrame(
                {
                    "task": TASKS[task],
                    "patient": patients[recent],
                    "done": decisions[recent, task],
                    "expected": found.soft_label,
                    "support": found.support,
                    "scaled_score": found.scaled_score,
                }
            )
        )
    table = pd.concat(rows).sort_values("scaled_score", ascending=False)
    print("The most unusual decisions of all tasks; expected runs from -1 (surely not done) to 1 (surely done):")
    print(table.head(8).round(2).to_string(index=False))
    for task, reason in scored.not_scored.items():
        print(f"{TASKS[task]}: {reason}")


if __name__ == "__main__":
    main()
