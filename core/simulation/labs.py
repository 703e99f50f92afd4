"""Labs and vital signs of the simulated hospital (labs.csv), whose values follow the state of a patient."""

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


def parse_terms(text: str) -> dict[str, float]:
    """Read ``"low:Potassium 2.5; icu 3"`` as variables with weights.

    Examples
    --------
    >>> parse_terms("low:Potassium 2.5; icu 3")
    {'low:Potassium': 2.5, 'icu': 3.0}
    """
    parts = [part.strip().rpartition(" ") for part in text.split(";") if part.strip()]
    return {name: float(weight) for name, _, weight in parts}


@dataclass(frozen=True)
class Lab:
    """A lab and how its values follow the state."""

    name: str
    unit: str
    # `center` and `spread`: mean and standard deviation without disease; median and standard deviation of the logarithm
    # when `log`.
    center: float
    spread: float
    # `low` and `high`: limits of what clinicians call normal.
    low: float
    high: float
    # Shift in spreads per unit of severity, by reason for admission; ``drug:X`` while on a drug, ``home:X`` for a drug
    # taken at home.
    effects: str = ""
    decimals: int = 1
    log: bool = False
    text: str = ""  # the finding, for labs without a number

    @cached_property
    def shifts(self) -> dict[str, float]:
        """`effects`, read."""
        return parse_terms(self.effects)


def read_table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table that lies beside this module."""
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _labs(part: str) -> tuple[Lab, ...]:
    return tuple(
        Lab(
            name=row["name"],
            unit=row["unit"],
            center=float(row["center"]),
            spread=float(row["spread"]),
            low=float(row["low"]),
            high=float(row["high"]),
            effects=row["effects"],
            decimals=int(row["decimals"]),
            log=row["log"] == "yes",
            text=row["text"],
        )
        for row in read_table("labs.csv")
        if row["part"] == part
    )


LABS, COUPLED_LABS, VITALS = map(_labs, ("core", "coupled", "vital"))
"""Labs of every hospital, those that belong to a drug of a larger one, and vital signs."""
