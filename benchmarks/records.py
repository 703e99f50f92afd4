"""What the import makes of the open MIMIC-IV demos, beside a plain road, for docs/results.md."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from alertreview.records.importing import build_cohort
from core.cohort.cohort import Cohort
from core.events.import_report import ImportReport
from tests.support.records import counted

ADMINISTERED = (32818, 38000180, 38000179)
"""Types of drug exposure that are doses, not orders."""
MOST_SHOWN = 20
Pair = tuple[int, str]
"""Row of an instance, and a drug."""


def states(cohort: Cohort) -> set[Pair]:
    """Return the drugs that the features say are on at each instance."""
    dictionary = cohort.feature_dictionary
    is_state = (dictionary["aspect"] == "on_now") & ~dictionary["name"].str.startswith("Any of ")
    items = dict(zip(cohort.events["name"].astype("str"), cohort.events["item"].astype("str"), strict=True))
    found = cohort.features.tocsc()[:, np.flatnonzero(is_state)].tocoo()
    drugs = [items.get(source, source) for source in dictionary.loc[is_state, "source"]]
    return {(int(row), drugs[column]) for row, column in zip(*found.coords, strict=True)}


def states_of_source(folder: Path, cohort: Cohort) -> set[Pair]:
    """Count the same by plain pandas: a drug is on if one row of the source began before and ends no earlier."""
    path = next(folder.glob("*drug_exposure*"))
    table = pd.read_csv(path, dtype={"person_id": "str", "drug_source_value": "str"}, keep_default_na=False)
    table = table[~table["drug_type_concept_id"].isin(ADMINISTERED)]
    spelled = table["drug_source_value"].str.split().str.join(" ").str.casefold()
    table["drug"] = table["drug_concept_id"].astype("str").where(table["drug_concept_id"] != 0, spelled)
    for end in ("start", "end"):
        table[end] = pd.to_datetime(table[f"drug_exposure_{end}_datetime"])
    instances = cohort.instances[["patient_id", "snapshot_at"]].reset_index(names="row")
    both = table.merge(instances, left_on="person_id", right_on="patient_id")
    on = both[(both["start"] < both["snapshot_at"]) & (both["snapshot_at"] <= both["end"])]
    return set(zip(on["row"].tolist(), on["drug"], strict=True))


def counts(cohort: Cohort, report: ImportReport) -> str:
    """Return what was found, in a line."""
    labs, orders = counted(report, "LAB_RESULT"), counted(report, "MEDICATION_ORDER")
    tasks = ", ".join(f"{n} {kind}" for kind, n in report.n_tasks.items())
    return (
        f"{len(cohort.stays):,} stays, {len(cohort.instances):,} instances, {labs.n_rows:,} rows of {labs.n_items:,} "
        f"lab items, {orders.n_rows:,} starts of drug orders, tasks: {tasks}; words: {report.words}"
    )


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of the open record sets")
    folder = parser.parse_args().data
    print("MEDS:", counts(*build_cohort(folder / "mimic_iv_demo_meds")), flush=True)
    cohort, report = build_cohort(folder / "omop_mimic_iv_demo", format="omop")
    print("OMOP:", counts(cohort, report))
    found, expected = states(cohort), states_of_source(folder / "omop_mimic_iv_demo", cohort)
    differ = sorted(found ^ expected)
    print(
        f"drug states: {len(expected):,} by the source's intervals, {len(found):,} by the features, "
        f"{len(differ):,} differ"
    )
    for row, drug in differ[:MOST_SHOWN]:
        print(f"  instance {row}, {drug}: on by the {'features' if (row, drug) in found else 'source'} alone")


if __name__ == "__main__":
    main()
