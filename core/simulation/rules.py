"""The rules by which the simulated hospital's clinicians order labs (orders.csv) and give drugs (drugs.csv).

A rule is a logistic model: P(order | state) = 1 / (1 + exp(-(bias + sum of weight x variable))). Variables are what a
clinician sees at 08:00:

``chest_pain``, ...      the reason for admission
``icu``, ``surgery``     the care unit
``first_day``, ``late``  the first morning; from the fifth on
``unstable``, ``fever``, ``hypoxic``, ``immobile``  from the vital signs, 0 = normal, about 1 = clearly not
``low:Potassium``, ``high:Glucose``  last known value beyond its limit, in spreads up to 2.5; 0 if unknown
``known:TSH``, ``fresh:Troponin I``  1 if known in this stay; 1 if the result is less than a day old
``on:Warfarin``, ``home:Warfarin``  1 if given on the day before; 1 if taken at home
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from core.simulation.labs import COUPLED_LABS, LABS, Lab, parse_terms, read_table

REASONS = {row["key"]: (row["words"], float(row["share"]), row["unit"]) for row in read_table("reasons.csv")}
"""Words, share of admissions and care unit of each reason for admission."""
SURGICAL = ("hip_fracture", "abdominal_surgery")
BEDBOUND = ("stroke", "hip_fracture")
_HOME_DRUGS = read_table("home_drugs.csv")
HOME_DRUGS = {row["name"]: float(row["share"]) for row in _HOME_DRUGS}
"""Share of patients who take a drug at home."""
PROBLEMS = {row["name"]: row["problem"] for row in _HOME_DRUGS if row["problem"]}
"""Problems on the list of a patient who takes a drug at home."""
ALLERGIES: dict[str, float] = {"Penicillin": 0.08, "Sulfonamides": 0.04, "Iodinated contrast": 0.02}
RECOGNISABLE = tuple(
    (row["rule"], row["followed"] == "yes", parse_terms(row["limits"])) for row in read_table("recognisable.csv")
)
"""Decisions that a physician recognises as odd: rule, whether it was followed, and from which value of what.

Where planting has a choice, it takes these first.
"""


@dataclass(frozen=True)
class OrderUnit:
    """Labs that are drawn together, or one drug, and the rule by which they are ordered."""

    name: str
    members: tuple[str, ...]  # labs of the panel; the drug itself
    bias: float
    rule: str  # variables with weights
    times: int = 1  # largest number of draws or doses a day
    urgent: bool = False  # from 08:00 on, instead of next morning

    @cached_property
    def terms(self) -> dict[str, float]:
        """`rule`, read."""
        return parse_terms(self.rule)


def _lab_units(part: str) -> tuple[OrderUnit, ...]:
    return tuple(
        OrderUnit(
            name=row["name"],
            members=tuple(row["members"].split("; ")),
            bias=float(row["bias"]),
            rule=row["rule"],
            times=int(row["times"]),
            urgent=row["urgent"] == "yes",
        )
        for row in read_table("orders.csv")
        if row["part"] == part
    )


def _drug_units(part: str) -> tuple[OrderUnit, ...]:
    """Return drugs; most of them go on once they are on."""
    return tuple(
        OrderUnit(row["name"], (row["name"],), float(row["bias"]), row["rule"], int(row["times"]), urgent=True)
        for row in _DRUGS
        if row["part"] == part
    )


_DRUGS = read_table("drugs.csv")
DOSES = {row["name"]: (row["dose"], row["route"]) for row in _DRUGS if row["dose"]}
"""Dose and route of drugs, for the case view; they decide nothing."""
LAB_UNITS, COUPLED_LAB_UNITS = map(_lab_units, ("core", "coupled"))
DRUG_UNITS, COUPLED_DRUG_UNITS = map(_drug_units, ("core", "coupled"))


COUPLED_TERMS: dict[str, str] = {
    "Basic metabolic panel": "on:Insulin 2; on:Potassium Chloride 2",
    "Minerals": "on:Magnesium Sulfate 3",
    "aPTT": "on:Heparin 3.4",
}
"""What a drug adds to the rule of a lab of the core.

Hospitals larger than the core order the labs that belong to a drug, whether both share a name or not; forms of a drug
count like the drug.
"""


_VARIANTS = read_table("variants.csv")


@dataclass(frozen=True)
class Catalogue:
    """Labs and rules of one simulated hospital."""

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
    """Add drugs with the labs that belong to them, labs of other specimens and drugs in other forms, up to a number.

    The last two have rules of their own, rarer than the core's. The first come, with `COUPLED_TERMS`, where there is
    room for all of them; there are never fewer than the core has.
    """
    rng = np.random.default_rng([seed, 1])
    labs, lab_units, drug_units = list(LABS), list(LAB_UNITS), list(DRUG_UNITS)
    coupled = n_labs >= len(LABS) + len(COUPLED_LABS) and n_drugs >= len(DRUG_UNITS) + len(COUPLED_DRUG_UNITS)
    if coupled:
        labs += COUPLED_LABS
        lab_units += COUPLED_LAB_UNITS
        drug_units += COUPLED_DRUG_UNITS
    for name, model in _more_labs():
        if len(labs) >= n_labs:
            break
        labs.append(
            Lab(name, model.unit, model.center, model.spread, model.low, model.high, "", model.decimals, model.log)
        )
        lab_units.append(OrderUnit(name, (name,), *_rule(rng, f"fresh:{name} 1.5")))
    for name in _more_drugs():
        if len(drug_units) >= n_drugs:
            break
        bias, rule = _rule(rng, f"on:{name} 3")
        drug_units.append(OrderUnit(name, (name,), bias - 0.4, rule, times=int(rng.integers(1, 4)), urgent=True))
    if coupled:
        forms = [unit.name for unit in drug_units]
        lab_units = [_with_couplings(unit, forms) for unit in lab_units]
    return Catalogue(tuple(labs), tuple(lab_units), tuple(drug_units))


def _with_couplings(unit: OrderUnit, drugs: Sequence[str]) -> OrderUnit:
    """Add the terms of `COUPLED_TERMS` to a lab's rule, and those of other forms of the drugs that it looks at."""
    rule = f"{unit.rule}; {COUPLED_TERMS.get(unit.name, '')}"
    terms = parse_terms(rule)
    for drug in drugs:
        of_plain = terms.get(f"on:{drug.partition(' (')[0]}")
        if of_plain is not None:
            terms.setdefault(f"on:{drug}", of_plain)
    return replace(unit, rule="; ".join(f"{name} {weight}" for name, weight in terms.items()))


def _more_labs() -> Iterator[tuple[str, Lab]]:
    for variant in _VARIANTS:
        for lab in LABS:
            if not lab.text:
                yield f"{lab.name}, {variant['specimen']}", lab


def _more_drugs() -> Iterator[str]:
    for variant in _VARIANTS:
        for unit in DRUG_UNITS:
            yield f"{unit.name} ({variant['form']})"


def _rule(rng: np.random.Generator, own: str) -> tuple[float, str]:
    """Draw a rule: seldom ordered, but often where one of a few reasons and a circumstance come together.

    At the size of the method's paper each task has positive instances enough, and about as many features are present as
    there (4.8 %).
    """
    reasons = rng.choice(list(REASONS), size=int(rng.integers(2, 4)), replace=False)
    terms = [f"{reason} {rng.uniform(2.0, 2.6):.1f}" for reason in reasons]
    terms.append(f"{rng.choice(['icu', 'unstable', 'first_day', 'fever', 'surgery'])} {rng.uniform(2.0, 2.6):.1f}")
    return float(rng.uniform(-8.15, -7.45)), "; ".join([*terms, own])
