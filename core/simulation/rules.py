"""The rules by which the simulated hospital's clinicians order labs and give drugs.

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

from core.simulation.labs import LABS, Lab, parse_terms

REASONS: dict[str, tuple[str, float, str]] = {
    # key: (words, share of admissions, care unit)
    "chest_pain": ("Chest pain", 0.13, "Cardiology"),
    "sepsis": ("Sepsis", 0.11, "Intensive Care"),
    "heart_failure": ("Heart failure", 0.12, "Cardiology"),
    "pneumonia": ("Pneumonia", 0.12, "Medicine"),
    "gi_bleeding": ("Gastrointestinal bleeding", 0.07, "Medicine"),
    "kidney_injury": ("Acute kidney injury", 0.07, "Medicine"),
    "hip_fracture": ("Hip fracture", 0.10, "Surgery"),
    "abdominal_surgery": ("Abdominal surgery", 0.10, "Surgery"),
    "copd": ("COPD exacerbation", 0.06, "Medicine"),
    "stroke": ("Stroke", 0.06, "Neurology"),
    "ketoacidosis": ("Diabetic ketoacidosis", 0.03, "Intensive Care"),
    "cirrhosis": ("Liver cirrhosis", 0.03, "Medicine"),
}
SURGICAL = ("hip_fracture", "abdominal_surgery")
BEDBOUND = ("stroke", "hip_fracture")
PROBLEMS: dict[str, str] = {
    "Warfarin": "Atrial fibrillation",
    "Aspirin": "Coronary artery disease",
    "Atorvastatin": "Hyperlipidemia",
    "Metoprolol": "Hypertension",
    "Lisinopril": "Hypertension",
    "Insulin": "Type 2 diabetes",
    "Levothyroxine": "Hypothyroidism",
    "Digoxin": "Atrial fibrillation",
    "Spironolactone": "Chronic heart failure",
    "Prednisone": "Polymyalgia rheumatica",
    "Tiotropium": "COPD",
}
"""Problems on the list of a patient who takes a drug at home."""
ALLERGIES: dict[str, float] = {"Penicillin": 0.08, "Sulfonamides": 0.04, "Iodinated contrast": 0.02}
DOSES: dict[str, tuple[str, str]] = {
    "Heparin": ("5000 units 3x daily", "SC"),
    "Warfarin": ("5 mg daily", "PO"),
    "Aspirin": ("81 mg daily", "PO"),
    "Clopidogrel": ("75 mg daily", "PO"),
    "Atorvastatin": ("40 mg daily", "PO"),
    "Metoprolol": ("25 mg 2x daily", "PO"),
    "Lisinopril": ("10 mg daily", "PO"),
    "Furosemide": ("40 mg 2x daily", "IV"),
    "Spironolactone": ("25 mg daily", "PO"),
    "Digoxin": ("0.125 mg daily", "PO"),
    "Amiodarone": ("400 mg daily", "PO"),
    "Potassium Chloride": ("40 mmol 2x daily", "PO"),
    "Magnesium Sulfate": ("2 g daily", "IV"),
    "Insulin": ("sliding scale", "SC"),
    "Dextrose 50%": ("25 g once", "IV"),
    "Vancomycin": ("1 g 2x daily", "IV"),
    "Piperacillin-Tazobactam": ("4.5 g 3x daily", "IV"),
    "Ceftriaxone": ("1 g daily", "IV"),
    "Azithromycin": ("500 mg daily", "PO"),
    "Norepinephrine": ("0.1 ug/kg/min", "IV"),
    "Sodium Chloride 0.9%": ("100 mL/h", "IV"),
    "Red Blood Cells": ("1 unit", "IV"),
    "Pantoprazole": ("40 mg 2x daily", "PO"),
    "Ondansetron": ("4 mg 2x daily", "IV"),
    "Acetaminophen": ("650 mg 4x daily", "PO"),
    "Morphine": ("2 mg 3x daily", "IV"),
    "Oxycodone": ("5 mg 3x daily", "PO"),
    "Docusate": ("100 mg 2x daily", "PO"),
    "Prednisone": ("40 mg daily", "PO"),
    "Albuterol": ("2.5 mg 4x daily", "INH"),
    "Tiotropium": ("18 ug daily", "INH"),
    "Lactulose": ("20 g 3x daily", "PO"),
    "Levothyroxine": ("75 ug daily", "PO"),
    "Phytonadione": ("10 mg daily", "PO"),
}
"""Dose and route of each drug, for the case view; they decide nothing."""
RECOGNISABLE: tuple[tuple[str, bool, dict[str, float]], ...] = (
    ("Troponin", False, {"chest_pain": 1.0}),
    ("CK-MB", False, {"chest_pain": 1.0}),
    ("Basic metabolic panel", False, {"low:Potassium": 1.5}),
    ("INR", False, {"on:Warfarin": 1.0}),
    ("Lactate", False, {"unstable": 0.8}),
    ("Blood culture", False, {"fever": 0.8}),
    ("Heparin", True, {"low:Platelets": 0.1}),
    ("Aspirin", True, {"gi_bleeding": 1.0}),
    ("Warfarin", True, {"gi_bleeding": 1.0}),
    ("Potassium Chloride", True, {"high:Potassium": 0.1}),
    ("Insulin", True, {"low:Glucose": 0.1}),
)
"""Decisions that a physician recognises as odd: rule, whether it was followed, and from which value of what.

Where planting has a choice, it takes these first.
"""
HOME_DRUGS: dict[str, float] = {
    "Warfarin": 0.14,
    "Aspirin": 0.25,
    "Atorvastatin": 0.32,
    "Metoprolol": 0.30,
    "Lisinopril": 0.30,
    "Insulin": 0.16,
    "Levothyroxine": 0.10,
    "Digoxin": 0.06,
    "Spironolactone": 0.07,
    "Pantoprazole": 0.25,
    "Prednisone": 0.06,
    "Tiotropium": 0.08,
}


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


_BMP = ("Sodium", "Potassium", "Chloride", "Bicarbonate", "Urea Nitrogen", "Creatinine", "Glucose")
_CBC = ("Hemoglobin", "White Blood Cells", "Platelets")
_LIVER = ("ALT", "AST", "Alkaline Phosphatase", "Bilirubin, Total", "Albumin")
LAB_UNITS: tuple[OrderUnit, ...] = (
    OrderUnit(
        "Basic metabolic panel",
        _BMP,
        2.2,
        "icu 3; first_day 2; low:Potassium 2.5; high:Potassium 2.5; high:Creatinine 1.5; "
        "on:Furosemide 1.5; late -1.3; ketoacidosis 2",
    ),
    OrderUnit(
        "Minerals",
        ("Calcium", "Magnesium", "Phosphate"),
        -2.6,
        "icu 4; on:Furosemide 2.6; low:Magnesium 2.5; low:Potassium 2; cirrhosis 1.5; ketoacidosis 3",
    ),
    OrderUnit(
        "Blood count",
        _CBC,
        1.6,
        "icu 3; first_day 2.5; gi_bleeding 4; surgery 1.5; on:Heparin 0.8; late -1; high:White Blood Cells 1",
    ),
    OrderUnit(
        "Differential", ("Neutrophils",), -3.2, "first_day 2; sepsis 4; pneumonia 2.8; high:White Blood Cells 0.8"
    ),
    OrderUnit("Liver panel", _LIVER, -4.0, "first_day 3.4; cirrhosis 6.5; sepsis 2.2; high:ALT 1.6; icu 1"),
    OrderUnit(
        "INR", ("INR",), -4.2, "on:Warfarin 8; home:Warfarin 2; cirrhosis 5; gi_bleeding 2.6; first_day 2; high:INR 0.8"
    ),
    OrderUnit("aPTT", ("aPTT",), -4.6, "gi_bleeding 3.2; first_day 2.2; icu 1.8; cirrhosis 1.5"),
    OrderUnit(
        "Troponin",
        ("Troponin I",),
        -5.2,
        "chest_pain 4.8; first_day 2.6; high:Troponin I 3.4; heart_failure 1.2; fresh:Troponin I 0.6; late -3",
        times=3,
        urgent=True,
    ),
    OrderUnit(
        "CK-MB", ("CK-MB",), -6.2, "chest_pain 4.4; first_day 2; high:Troponin I 3; late -2.5", times=2, urgent=True
    ),
    OrderUnit("NT-proBNP", ("NT-proBNP",), -5.0, "heart_failure 4.6; first_day 2.5; hypoxic 0.8; known:NT-proBNP -1.2"),
    OrderUnit(
        "C-reactive protein",
        ("C-Reactive Protein",),
        -2.8,
        "sepsis 4.4; pneumonia 4.2; abdominal_surgery 3.6; fever 2.2; first_day 0.8; hip_fracture 1.8",
    ),
    OrderUnit("Procalcitonin", ("Procalcitonin",), -5.0, "sepsis 4.4; pneumonia 2.2; fever 1.6; icu 1.2"),
    OrderUnit(
        "Lactate",
        ("Lactate",),
        -4.8,
        "sepsis 4.6; unstable 3.4; high:Lactate 3.4; ketoacidosis 2.6; gi_bleeding 1.4; late -0.8",
        times=3,
        urgent=True,
    ),
    OrderUnit(
        "Blood gas",
        ("pH", "pCO2", "pO2"),
        -4.6,
        "icu 3.6; hypoxic 3.4; copd 2.6; low:pH 2.2; ketoacidosis 2.6",
        times=2,
        urgent=True,
    ),
    OrderUnit(
        "Lipids",
        ("Cholesterol, Total", "LDL Cholesterol", "Triglycerides"),
        -4.6,
        "chest_pain 5; stroke 4.6; first_day 1.4; known:LDL Cholesterol -6.5",
    ),
    OrderUnit(
        "Iron studies",
        ("Ferritin", "Transferrin Saturation"),
        -5.0,
        "gi_bleeding 4.6; low:Hemoglobin 1.5; known:Ferritin -5.5",
    ),
    OrderUnit("TSH", ("TSH",), -4.6, "home:Levothyroxine 3.6; on:Amiodarone 2.4; first_day 1.6; known:TSH -5"),
    OrderUnit(
        "Hemoglobin A1c",
        ("Hemoglobin A1c",),
        -4.8,
        "home:Insulin 4.4; ketoacidosis 4.6; high:Glucose 0.9; first_day 1.6; known:Hemoglobin A1c -6.5",
    ),
    OrderUnit("Lipase", ("Lipase",), -5.2, "abdominal_surgery 3.6; first_day 2; high:Lipase 2"),
    OrderUnit("Ammonia", ("Ammonia",), -6.0, "cirrhosis 7.6; high:Ammonia 1"),
    OrderUnit(
        "Ketones",
        ("Beta-Hydroxybutyrate",),
        -6.5,
        "ketoacidosis 8.2; high:Beta-Hydroxybutyrate 1.8; late -2",
        times=2,
        urgent=True,
    ),
    OrderUnit("D-dimer", ("D-Dimer",), -5.4, "hypoxic 2.4; chest_pain 2.2; first_day 2.4; known:D-Dimer -4"),
    OrderUnit(
        "Vancomycin trough",
        ("Vancomycin Trough",),
        -7.0,
        "on:Vancomycin 9.4; high:Vancomycin Trough 1; high:Creatinine 0.5",
    ),
    OrderUnit("Digoxin level", ("Digoxin Level",), -6.6, "on:Digoxin 7; high:Creatinine 0.9"),
    OrderUnit(
        "Blood culture",
        ("Blood Culture",),
        -4.8,
        "fever 4.4; sepsis 2.8; first_day 1.4; unstable 0.8",
        times=2,
        urgent=True,
    ),
    OrderUnit("Urine culture", ("Urine Culture",), -4.8, "fever 2.6; sepsis 2.6; first_day 1.6", urgent=True),
)


def _drug(name: str, bias: float, rule: str, times: int, on: float) -> OrderUnit:
    """Return a drug the inertia of a drug that is on: it mostly goes on."""
    return OrderUnit(name, (name,), bias, f"{rule}; on:{name} {on}", times, urgent=True)


DRUG_UNITS: tuple[OrderUnit, ...] = (
    _drug(
        "Heparin",
        -3.6,
        "immobile 6.6; surgery 3; gi_bleeding -5; on:Warfarin -4.5; high:INR -2.5; low:Platelets -8; stroke 1",
        3,
        2.0,
    ),
    _drug("Warfarin", -6.4, "home:Warfarin 6.4; gi_bleeding -6; high:INR -0.9; surgery -1.5", 1, 3.4),
    _drug("Aspirin", -4.6, "home:Aspirin 4.6; chest_pain 5.2; stroke 4.4; gi_bleeding -5.5", 1, 2.6),
    _drug("Clopidogrel", -6.4, "chest_pain 3.8; high:Troponin I 2; gi_bleeding -3", 1, 3.2),
    _drug("Atorvastatin", -4.6, "home:Atorvastatin 5.2; chest_pain 4.4; stroke 4.4", 1, 2.6),
    _drug("Metoprolol", -4.4, "home:Metoprolol 5; chest_pain 3.8; unstable -3; heart_failure 1.6", 2, 2.6),
    _drug(
        "Lisinopril",
        -4.6,
        "home:Lisinopril 5; heart_failure 2.2; high:Creatinine -1.8; high:Potassium -1.8; unstable -2.4",
        1,
        2.6,
    ),
    _drug("Furosemide", -5.0, "heart_failure 7.2; cirrhosis 2.2; unstable -1.5", 2, 2.4),
    _drug("Spironolactone", -5.4, "home:Spironolactone 5; cirrhosis 4.6; high:Potassium -3", 1, 2.6),
    _drug("Digoxin", -6.4, "home:Digoxin 6.6; high:Digoxin Level -3", 1, 3.0),
    _drug("Amiodarone", -6.8, "unstable 2.4; heart_failure 1.4; icu 1.4", 1, 4.4),
    _drug(
        "Potassium Chloride", -4.8, "low:Potassium 4.6; on:Furosemide 1.2; high:Potassium -4; ketoacidosis 3", 2, 0.6
    ),
    _drug("Magnesium Sulfate", -5.0, "low:Magnesium 4.8; on:Furosemide 0.6", 1, 0.4),
    _drug("Insulin", -4.8, "home:Insulin 5.2; high:Glucose 3.2; ketoacidosis 7; low:Glucose -3", 4, 2.0),
    _drug("Dextrose 50%", -6.0, "low:Glucose 5.5; on:Insulin 1", 1, 0.0),
    _drug("Vancomycin", -6.2, "sepsis 4.6; fever 1.4; high:White Blood Cells 0.6; late -1.4", 2, 3.8),
    _drug("Piperacillin-Tazobactam", -6.0, "sepsis 4.8; fever 1.4; abdominal_surgery 2; late -1.2", 3, 3.4),
    _drug("Ceftriaxone", -5.6, "pneumonia 6.8; cirrhosis 1.4; late -2.4", 1, 2.6),
    _drug("Azithromycin", -6.0, "pneumonia 6; copd 3.4; late -3.4", 1, 2.2),
    _drug("Norepinephrine", -7.2, "icu 2; unstable 3.8; sepsis 1.6; high:Lactate 0.8", 4, 1.8),
    _drug(
        "Sodium Chloride 0.9%",
        -3.4,
        "sepsis 3.8; kidney_injury 4.8; gi_bleeding 3.2; ketoacidosis 4.4; unstable 1.6; heart_failure -3.4; late -1.6",
        2,
        1.4,
    ),
    _drug("Red Blood Cells", -5.6, "low:Hemoglobin 4.8; gi_bleeding 1.8", 1, 0.0),
    _drug("Pantoprazole", -4.0, "home:Pantoprazole 4.4; gi_bleeding 7.6; icu 3.6", 2, 2.4),
    _drug("Ondansetron", -3.6, "abdominal_surgery 3.6; ketoacidosis 1.6", 2, 1.2),
    _drug("Acetaminophen", -1.6, "surgery 4; fever 3; cirrhosis -3.4", 4, 1.6),
    _drug("Morphine", -4.6, "surgery 3.8; first_day 1.2; chest_pain 0.8; late -1.8", 3, 1.8),
    _drug("Oxycodone", -4.6, "surgery 4.2; first_day -1.2", 3, 2.2),
    _drug("Docusate", -3.6, "on:Morphine 3.6; on:Oxycodone 3.6; surgery 1.4", 2, 2.2),
    _drug("Prednisone", -5.4, "copd 7.6; home:Prednisone 6; gi_bleeding -1", 1, 2.2),
    _drug("Albuterol", -4.6, "copd 7.4; pneumonia 1.6; hypoxic 1.6", 4, 1.8),
    _drug("Tiotropium", -5.4, "home:Tiotropium 5.6; copd 4", 1, 3.0),
    _drug("Lactulose", -6.0, "cirrhosis 8; high:Ammonia 1", 3, 2.2),
    _drug("Levothyroxine", -6.4, "home:Levothyroxine 7.8", 1, 2.6),
    _drug("Phytonadione", -6.0, "high:INR 1; gi_bleeding 1.6; cirrhosis 1.6; on:Warfarin -2", 1, 0.4),
)


COUPLED_LABS: tuple[Lab, ...] = (
    Lab("Tacrolimus Level", "ng/mL", 8.5, 0.3, 5.0, 15.0, "kidney_injury 0.8", 1, log=True),
    Lab("Gentamicin Level", "ug/mL", 1.2, 0.4, 0.5, 2.0, "kidney_injury 1.5", 1, log=True),
    Lab("Phenytoin Level", "ug/mL", 14, 0.3, 10.0, 20.0, "", 1, log=True),
    Lab("Valproic Acid", "ug/mL", 70, 0.25, 50.0, 100.0, "", 0, log=True),
    Lab("Osmolality, Measured", "mOsm/kg", 290, 7, 275, 320, "drug:Mannitol 1.5; ketoacidosis 2", 0),
    Lab("Cortisol", "ug/dL", 16, 0.4, 6.0, 25.0, "sepsis 1; drug:Cosyntropin 1.5", 1, log=True),
)
COUPLED_LAB_UNITS: tuple[OrderUnit, ...] = (
    OrderUnit("Tacrolimus Level", ("Tacrolimus Level",), -7.0, "on:Tacrolimus 8.6; high:Tacrolimus Level 0.8"),
    OrderUnit("Gentamicin Level", ("Gentamicin Level",), -7.0, "on:Gentamicin 7.6; high:Creatinine 0.4"),
    OrderUnit("Phenytoin Level", ("Phenytoin Level",), -7.0, "on:Phenytoin 7; low:Phenytoin Level 0.8"),
    OrderUnit("Valproic acid level", ("Valproic Acid",), -7.0, "on:Divalproex 6.6; low:Valproic Acid 0.8"),
    OrderUnit("Osmolality", ("Osmolality, Measured",), -6.2, "on:Mannitol 7.4; ketoacidosis 3", times=2),
    OrderUnit("Cortisol", ("Cortisol",), -6.6, "on:Cosyntropin 7; unstable 0.6"),
)
COUPLED_DRUG_UNITS: tuple[OrderUnit, ...] = (
    _drug("Tacrolimus", -6.4, "kidney_injury 3.4; cirrhosis 3.4", 2, 6.5),
    _drug("Gentamicin", -6.4, "sepsis 3.6; fever 0.8", 1, 4.2),
    _drug("Phenytoin", -6.6, "stroke 4.2", 2, 5.6),
    _drug("Divalproex", -6.8, "stroke 4; copd 1.5", 2, 5.6),
    _drug("Mannitol", -7.0, "stroke 4.2; icu 1", 3, 4.2),
    _drug("Cosyntropin", -6.4, "sepsis 2.6; unstable 1.4", 1, 2.0),
)
COUPLED_TERMS: dict[str, str] = {
    "Basic metabolic panel": "on:Insulin 2; on:Potassium Chloride 2",
    "Minerals": "on:Magnesium Sulfate 3",
    "aPTT": "on:Heparin 3.4",
}
"""What a drug adds to the rule of a lab of the core.

Hospitals larger than the core order the labs that belong to a drug, whether both share a name or not; forms of a drug
count like the drug.
"""


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
