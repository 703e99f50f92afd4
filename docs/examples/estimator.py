"""SoftHAD alone: a data frame of past cases, a data frame of recent ones, and how unusual each recent decision is.

Run it from anywhere: python docs/examples/estimator.py
"""

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from core.softhad import SoftHAD

FEATURES = ["temperature", "heart_rate", "lactate"]


def made_up_patients(n: int, seed: int) -> pd.DataFrame:
    """Patients who get a blood culture when they look septic; nobody of them is real."""
    rng = np.random.default_rng(seed)
    septic = rng.random(n) < 0.3
    table = pd.DataFrame(
        {
            "temperature": rng.normal(36.9 + 1.6 * septic, 0.5),
            "heart_rate": rng.normal(78 + 32 * septic, 12),
            "lactate": rng.gamma(4, 0.3 + 0.5 * septic),
        }
    )
    table["culture_ordered"] = np.where(septic, 1, -1)
    return table


def main() -> None:
    """Turn three recent decisions around, and look where they end up."""
    past, recent = made_up_patients(800, seed=1), made_up_patients(200, seed=2)
    turned_around = [3, 50, 120]
    recent.loc[turned_around, "culture_ordered"] *= -1

    # Features are compared by their distance: bring them to one scale, on the past alone.
    scaler = StandardScaler().set_output(transform="pandas").fit(past[FEATURES])
    detector = SoftHAD(n_nodes=200, n_graphs=3, feature_weights="wilcoxon", random_state=1)
    detector.fit(scaler.transform(past[FEATURES]), past["culture_ordered"])

    recent["score"] = detector.score_samples(scaler.transform(recent[FEATURES]), recent["culture_ordered"])
    recent["turned_around"] = recent.index.isin(turned_around)
    print("The most unusual decisions; a higher score is more unusual:")
    print(recent.sort_values("score", ascending=False).head(6).round(2).to_string())


if __name__ == "__main__":
    main()
