"""Labs and vital signs of the simulated hospital, and how their values follow the state of a patient."""

from dataclasses import dataclass
from functools import cached_property


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


LABS: tuple[Lab, ...] = (
    Lab("Sodium", "mmol/L", 139, 3, 135, 145, "heart_failure -1.2; cirrhosis -1.8", 0),
    Lab(
        "Potassium",
        "mmol/L",
        4.1,
        0.4,
        3.6,
        5.0,
        "kidney_injury 1.6; drug:Furosemide -1; drug:Potassium Chloride 0.7; ketoacidosis -1.2",
        1,
    ),
    Lab("Chloride", "mmol/L", 103, 3.5, 98, 107, "heart_failure -0.8", 0),
    Lab("Bicarbonate", "mmol/L", 25, 2.5, 22, 29, "sepsis -1.6; ketoacidosis -3; kidney_injury -1.2; copd 1.4", 0),
    Lab(
        "Urea Nitrogen",
        "mg/dL",
        17,
        0.35,
        7,
        25,
        "kidney_injury 2.6; gi_bleeding 1.8; heart_failure 1.3; sepsis 1.2",
        0,
        log=True,
    ),
    Lab("Creatinine", "mg/dL", 0.95, 0.25, 0.6, 1.3, "kidney_injury 3.8; sepsis 1.6; heart_failure 1.2", 2, log=True),
    Lab(
        "Glucose",
        "mg/dL",
        115,
        0.2,
        70,
        180,
        "ketoacidosis 3.6; home:Insulin 1.8; drug:Prednisone 1.2; sepsis 0.9; drug:Insulin -0.7",
        0,
        log=True,
    ),
    Lab("Calcium", "mg/dL", 9.1, 0.45, 8.4, 10.4, "sepsis -0.9; abdominal_surgery -0.7", 1),
    Lab(
        "Magnesium", "mg/dL", 2.0, 0.22, 1.7, 2.6, "drug:Furosemide -1.1; cirrhosis -1.3; drug:Magnesium Sulfate 0.9", 1
    ),
    Lab("Phosphate", "mg/dL", 3.4, 0.6, 2.5, 4.5, "kidney_injury 1.5; ketoacidosis -1.6", 1),
    Lab(
        "Hemoglobin",
        "g/dL",
        12.8,
        1.5,
        8.0,
        17.0,
        "gi_bleeding -3.2; hip_fracture -1.8; abdominal_surgery -1.4; drug:Red Blood Cells 1",
        1,
    ),
    Lab(
        "White Blood Cells",
        "10^9/L",
        8.0,
        0.28,
        4.0,
        11.0,
        "sepsis 2.6; pneumonia 1.9; abdominal_surgery 1.4; drug:Prednisone 0.9",
        1,
        log=True,
    ),
    Lab("Platelets", "10^9/L", 235, 0.3, 100, 400, "sepsis -1.3; cirrhosis -2.4", 0, log=True),
    Lab("Neutrophils", "%", 66, 8, 40, 80, "sepsis 1.8; pneumonia 1.5", 0),
    Lab("ALT", "U/L", 26, 0.5, 7, 56, "cirrhosis 1.8; sepsis 1", 0, log=True),
    Lab("AST", "U/L", 28, 0.5, 10, 50, "cirrhosis 2.1; sepsis 1.1", 0, log=True),
    Lab("Alkaline Phosphatase", "U/L", 82, 0.3, 40, 130, "cirrhosis 1.6", 0, log=True),
    Lab("Bilirubin, Total", "mg/dL", 0.7, 0.45, 0.1, 1.3, "cirrhosis 2.9; sepsis 1", 1, log=True),
    Lab("Albumin", "g/dL", 3.7, 0.4, 3.3, 5.2, "cirrhosis -2; sepsis -1.4", 1),
    Lab("INR", "", 1.1, 0.1, 0.8, 1.8, "cirrhosis 3; drug:Warfarin 8; home:Warfarin 2.5", 1, log=True),
    Lab("aPTT", "s", 31, 0.12, 25, 45, "cirrhosis 1.4; drug:Heparin 1.2", 1, log=True),
    Lab("Troponin I", "ng/mL", 0.012, 0.6, 0.0, 0.04, "chest_pain 4.2; heart_failure 1.2; sepsis 0.9", 3, log=True),
    Lab("CK-MB", "ng/mL", 2.4, 0.45, 0.0, 6.0, "chest_pain 3.1", 1, log=True),
    Lab("NT-proBNP", "pg/mL", 260, 0.7, 0, 900, "heart_failure 3.4; chest_pain 0.8", 0, log=True),
    Lab(
        "C-Reactive Protein",
        "mg/L",
        6,
        0.8,
        0,
        40,
        "sepsis 3.2; pneumonia 2.7; abdominal_surgery 2.2; hip_fracture 1.7",
        1,
        log=True,
    ),
    Lab("Procalcitonin", "ng/mL", 0.08, 0.7, 0, 0.5, "sepsis 4.2; pneumonia 2.2", 2, log=True),
    Lab("Lactate", "mmol/L", 1.2, 0.28, 0.5, 2.2, "sepsis 2.9; gi_bleeding 1.2; ketoacidosis 1.8", 1, log=True),
    Lab("pH", "", 7.4, 0.03, 7.34, 7.46, "sepsis -1.5; ketoacidosis -3.8; copd -1.8", 2),
    Lab("pCO2", "mmHg", 40, 4, 34, 48, "copd 3.6; sepsis -1; ketoacidosis -2.2", 0),
    Lab("pO2", "mmHg", 88, 9, 65, 105, "pneumonia -1.8; copd -2; sepsis -1.2", 0),
    Lab("Cholesterol, Total", "mg/dL", 182, 36, 100, 200, "", 0),
    Lab("LDL Cholesterol", "mg/dL", 105, 30, 40, 130, "home:Atorvastatin -1.1", 0),
    Lab("Triglycerides", "mg/dL", 125, 0.4, 40, 150, "", 0, log=True),
    Lab("Ferritin", "ng/mL", 120, 0.8, 30, 400, "gi_bleeding -1.4", 0, log=True),
    Lab("Transferrin Saturation", "%", 26, 8, 16, 50, "gi_bleeding -1.3", 0),
    Lab("TSH", "mIU/L", 2.0, 0.55, 0.4, 4.5, "home:Levothyroxine 0.7", 2, log=True),
    Lab("Hemoglobin A1c", "%", 5.7, 0.4, 4.0, 6.5, "home:Insulin 4.2; ketoacidosis 7", 1),
    Lab("Lipase", "U/L", 32, 0.4, 10, 140, "abdominal_surgery 0.6", 0, log=True),
    Lab("Ammonia", "umol/L", 30, 0.35, 10, 55, "cirrhosis 2.6", 0, log=True),
    Lab("Beta-Hydroxybutyrate", "mmol/L", 0.15, 0.5, 0.0, 0.5, "ketoacidosis 6.5", 1, log=True),
    Lab("D-Dimer", "ng/mL", 420, 0.6, 0, 500, "sepsis 1.5; hip_fracture 1.2", 0, log=True),
    Lab("Vancomycin Trough", "ug/mL", 14, 0.3, 10, 20, "kidney_injury 1.5; sepsis 0.6", 1, log=True),
    Lab("Digoxin Level", "ng/mL", 1.0, 0.3, 0.5, 2.0, "kidney_injury 1.2", 1, log=True),
    Lab("Blood Culture", "", 0, 1, 0, 0, text="no growth"),
    Lab("Urine Culture", "", 0, 1, 0, 0, text="no growth"),
)

VITALS: tuple[Lab, ...] = (
    Lab("Heart Rate", "bpm", 82, 10, 50, 100, "sepsis 2.6; gi_bleeding 1.6; heart_failure 1.2; ketoacidosis 1.6", 0),
    Lab("Systolic Blood Pressure", "mmHg", 126, 14, 100, 170, "sepsis -2.6; gi_bleeding -1.6", 0),
    Lab("Temperature", "degC", 36.8, 0.35, 35.5, 38.2, "sepsis 5; pneumonia 4.2; abdominal_surgery 2", 1),
    Lab("Oxygen Saturation", "%", 96.5, 1.4, 92, 100, "pneumonia -2; copd -2.6; heart_failure -1.6; sepsis -1.2", 0),
    Lab(
        "Mobility Score",
        "",
        3.2,
        0.6,
        2.0,
        4.0,
        "stroke -4.2; hip_fracture -4.2; sepsis -2.6; abdominal_surgery -1.6",
        0,
    ),
)
