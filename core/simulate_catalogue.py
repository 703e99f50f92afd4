"""The catalogue of a simulated hospital: which labs and drugs it has, also at sizes beyond the readable core."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.simulate_labs import LABS, Lab
from core.simulate_rules import DRUG_UNITS, LAB_UNITS, REASONS, OrderUnit

SPECIMENS = (
    "Urine",
    "24-Hour Urine",
    "Pleural Fluid",
    "Ascites",
    "Cerebrospinal Fluid",
    "Joint Fluid",
    "Stool",
    "Drain Fluid",
    "Dialysate",
    "Arterial",
)
FORMS = (
    "Oral",
    "Intravenous",
    "Subcutaneous",
    "Inhaled",
    "Topical",
    "Rectal",
    "Sustained Release",
    "Liquid",
    "Patch",
    "Bolus",
)


@dataclass(frozen=True)
class Catalogue:
    """Labs and rules of one simulated hospital.

    Parameters
    ----------
    labs : tuple of Lab
    lab_units, drug_units : tuple of OrderUnit
    """

    labs: tuple[Lab, ...] = LABS
    lab_units: tuple[OrderUnit, ...] = LAB_UNITS
    drug_units: tuple[OrderUnit, ...] = DRUG_UNITS

    @property
    def units(self) -> tuple[OrderUnit, ...]:
        """All rules: labs first, then drugs."""
        return (*self.lab_units, *self.drug_units)

    @cached_property
    def lab_number(self) -> dict[str, int]:
        """Position of each lab."""
        return {lab.name: i for i, lab in enumerate(self.labs)}

    @cached_property
    def drug_number(self) -> dict[str, int]:
        """Position of each drug."""
        return {unit.name: i for i, unit in enumerate(self.drug_units)}

    @cached_property
    def members(self) -> list[tuple[int, str]]:
        """Position of the rule and item of every task, in order."""
        return [(i, member) for i, unit in enumerate(self.units) for member in unit.members]


def extended(n_labs: int, n_drugs: int, seed: int) -> Catalogue:
    """Add labs of other specimens and drugs in other forms, each with a rule of its own, rarer than the core's.

    Parameters
    ----------
    n_labs, n_drugs : int
        How many there are altogether; never fewer than the core has.
    seed : int

    Returns
    -------
    Catalogue
    """
    rng = np.random.default_rng([seed, 1])
    labs, lab_units = list(LABS), list(LAB_UNITS)
    for name, model in _more_labs():
        if len(labs) >= n_labs:
            break
        labs.append(
            Lab(name, model.unit, model.center, model.spread, model.low, model.high, "", model.decimals, model.log)
        )
        lab_units.append(OrderUnit(name, (name,), *_rule(rng, f"fresh:{name} 1.5")))
    drug_units = list(DRUG_UNITS)
    for name in _more_drugs():
        if len(drug_units) >= n_drugs:
            break
        bias, rule = _rule(rng, f"on:{name} 3")
        drug_units.append(OrderUnit(name, (name,), bias - 0.4, rule, times=int(rng.integers(1, 4)), urgent=True))
    return Catalogue(tuple(labs), tuple(lab_units), tuple(drug_units))


def _more_labs() -> Iterator[tuple[str, Lab]]:
    for specimen in SPECIMENS:
        for lab in LABS:
            if not lab.text:
                yield f"{lab.name}, {specimen}", lab


def _more_drugs() -> Iterator[str]:
    for form in FORMS:
        for unit in DRUG_UNITS:
            yield f"{unit.name} ({form})"


def _rule(rng: np.random.Generator, own: str) -> tuple[float, str]:
    """Draw a rule: seldom ordered, but often where one of a few reasons and a circumstance come together.

    At the size of the method's paper each task has positive instances enough, and about as many features are present as
    there (4.8 %).
    """
    reasons = rng.choice(list(REASONS), size=int(rng.integers(2, 4)), replace=False)
    terms = [f"{reason} {rng.uniform(2.0, 2.6):.1f}" for reason in reasons]
    terms.append(f"{rng.choice(['icu', 'unstable', 'first_day', 'fever', 'surgery'])} {rng.uniform(2.0, 2.6):.1f}")
    return float(rng.uniform(-8.15, -7.45)), "; ".join([*terms, own])
