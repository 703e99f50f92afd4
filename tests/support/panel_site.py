"""A small ward as a long CSV: labs that are always drawn together, things that nobody orders, and drugs."""

from pathlib import Path

import pandas as pd

PANEL = ("Sodium", "Potassium", "Creatinine", "Anion gap")
SINGLE = ("Lipase", "Blue Top Hold")
DRUGS = ("Heparin", "NS 100ml")


def write_ward(folder: Path, *, n_patients: int = 24, n_days: int = 6) -> Path:
    """Write the ward; who gets what on which day follows a fixed pattern, so that no test depends on chance."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["patient,time,code,value"]
    for patient in range(n_patients):
        begin = pd.Timestamp("2026-01-01 06:00") + pd.Timedelta(days=patient)
        lines.append(f"P{patient},{begin},ADMISSION//Ward {'AB'[patient % 2]},")
        lines.append(f"P{patient},{begin},UNIT//Ward {'AB'[patient % 2]},")
        for day in range(n_days):
            number, at = patient * n_days + day, begin + pd.Timedelta(days=day, hours=4)
            if number % 3:
                lines += [f"P{patient},{at},LAB//{name}//mmol/L,{4 + number % 5}" for name in PANEL]
            if number % 4 == 0:
                lines += [f"P{patient},{at},LAB//{SINGLE[0]}//U/L,{20 + number % 7}"]
            if number % 5 == 0:
                lines += [f"P{patient},{at},LAB//{SINGLE[1]}//,"]
            if number % 7 < 2:
                lines += [f"P{patient},{at},MEDICATION//{DRUGS[0]},"]
            if number % 7 < 3:
                lines += [f"P{patient},{at},MEDICATION//{DRUGS[1]},"]
        lines.append(f"P{patient},{begin + pd.Timedelta(days=n_days)},DISCHARGE,")
    source = folder / "ward.csv"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return source
