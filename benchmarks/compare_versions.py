"""Compare the scores, alerts, reports and exports of two versions, on the demonstration and the MIMIC-IV demo.

Run with ``./dev bench compare --old PATH``, where PATH is a checkout of the other version. Each version builds the
demonstration and, where ALERTREVIEW_REAL_DATA has it, imports and scores the MIMIC-IV demo. Prints the largest
differences of each result; the exit code is 1 when one is beyond the tolerance or anything else differs.

With ``--same-input``, this version alone builds and imports; both score the same instances, features and decisions, and
make the report of the same cases, votes and scores. That compares versions between which features changed on purpose.
"""

import argparse
import csv
import json
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from alertreview.alerts.explanations import Explanations
from alertreview.application import open_application
from alertreview.cli.demo import SCORERS, STUDY
from alertreview.records.snapshots import elapsed_features
from alertreview.reports.report import gather_study

ROOT = Path(__file__).resolve().parent.parent
REAL = "mimic_iv_demo_meds"
SHARED_SCORERS = [
    "softhad",
    "softhad-paper",
    "logistic",
    "pair",
    "day-adjusted",
    "weighted-knn",
    "neighbour-difference",
]
"""Scorers of the first versions that take no support vector machine to compute."""
VECTORS = ("score", "scaled_score", "soft_label", "support")
CHANGED = re.compile(
    r"\.ceiling\.|\.p_value_weighted$|"
    r"\.(auc_weighted|difference_weighted|prevalence_weighted|positive_share|rate|auc_(against|without)\.[\w-]+)\.(low|high)$"
)
"""Figures of a report that follow other methods than before the rooms: weighted intervals, which left too much out, and
the ceiling, which has unequal errors of readers."""
VOLATILE = re.compile(r"(_at|_on|version|sha256|digest|fingerprint|created|generated|seconds?|path|bytes)\b")
"""Names of figures that say when, where or by which program something was made."""


def call(version, *arguments):
    """Run the command line of a version; its output is shown only when it fails."""
    environment = os.environ | {"PYTHONPATH": str(version), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "alertreview", *map(str, arguments)]
    done = subprocess.run(command, cwd=version, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed in {version}:\n{done.stdout}{done.stderr}")


def build(version, folder, real):
    """Build the sites of a version; returns the demonstration's home, and that of the real data or None."""
    demo = folder / "demo"
    call(version, "demo", "--no-serve", "--home", demo)
    call(version, "report", "--study", STUDY, "--home", demo, "--out", folder / "report.json")
    call(version, "export", "study", "--study", STUDY, "--home", demo, "--out", folder / "study")
    call(version, "export", "labels", "--study", STUDY, "--home", demo, "--out", folder / "labels.csv")
    if not real.is_dir():
        return demo, None
    home = folder / "real"
    call(version, "init", "--home", home)
    call(version, "import", real, "--home", home)
    call(version, "score", "--home", home, *(word for name in SCORERS for word in ("--scorer", name)))
    return demo, home


def query(home, sql):
    """Return the rows of a query on the database of a site."""
    with closing(sqlite3.connect(home / "alertreview.db")) as connection:
        return connection.execute(sql).fetchall()


def scores_of(home):
    """Return the figures of every task and scorer by name."""
    sql = "SELECT r.run_id, t.task_key, r.scorer, r.{} FROM task_result r JOIN task t ON t.id = r.task_id"
    return {
        f"{name} {run} {task} {scorer}": np.frombuffer(zlib.decompress(data), dtype="<f4").astype(float)
        for name in VECTORS
        for run, task, scorer, data in query(home, sql.format(name))
        if data is not None
    }


def alerts_of(home):
    """Return the alerts of every list in their order."""
    sql = """SELECT a.run_id, a.scorer, a.decision, a.rank, t.task_key, i.row_index FROM alert a
             JOIN task t ON t.id = a.task_id JOIN instance i ON i.id = a.instance_id ORDER BY 1, 2, 3, 4"""
    return {f"{row[:4]}": f"{row[4:]}" for row in query(home, sql)}


def write_input(home, folder, study, n_tasks):
    """Write what the last import of a site is scored from, and what the report of a study is made from.

    Of the tasks those that are decided either way most often, as many as are asked for, or all.
    """
    folder.mkdir()
    with open_application(home) as application:
        open_snapshot = Explanations(application.settings, application.database).snapshot
        with application.database.read() as uow:
            snapshot = open_snapshot(uow.snapshots.latest().content_hash)
        decisions = sparse.csc_matrix(snapshot.decisions)
        n_positive = decisions.sum(axis=0).A1
        rarer = np.minimum(n_positive, decisions.shape[0] - n_positive)
        tasks = np.sort(np.argsort(-rarer, kind="stable")[:n_tasks])
        patients = pd.factorize(snapshot.instances["patient_id"].astype(str))[0]
        rows = {
            "is_flag": snapshot.feature_dictionary["is_flag"].to_numpy(dtype=bool),
            "is_elapsed": elapsed_features(snapshot),
            "patients": patients,
            "past": np.flatnonzero(patients % 5 != 0),
            "recent": np.flatnonzero(patients % 5 == 0),
            "kinds": [str(snapshot.tasks["kind"].iloc[task]) for task in tasks],
            "order_groups": [str(snapshot.tasks["order_group"].iloc[task]) for task in tasks],
        }
        (folder / "rows.pickle").write_bytes(pickle.dumps(rows))
        sparse.save_npz(folder / "features.npz", sparse.csr_matrix(snapshot.features))
        sparse.save_npz(folder / "decisions.npz", decisions[:, tasks])
        if study:
            given = gather_study(application.database, application.studies, open_snapshot, study)
            plain = {field.name: getattr(given, field.name) for field in fields(given) if field.name != "budgets"}
            (folder / "study.pickle").write_bytes(pickle.dumps(plain))


def same_input(versions, folder, options):
    """Let both versions score and report the same input; returns whether they agree."""
    real, scorers = options.data.resolve(), options.scorers
    if options.home is None:
        call(ROOT, "demo", "--no-serve", "--home", folder / "demo")
    else:
        shutil.copytree(options.home, folder / "demo")
    sites = {"demonstration": (folder / "demo", STUDY)}
    if real.is_dir():
        call(ROOT, "init", "--home", folder / "real")
        call(ROOT, "import", real, "--home", folder / "real")
        sites["MIMIC-IV demo"] = (folder / "real", "")
    results = []
    for title, (home, study) in sites.items():
        write_input(home, home / "input", study, options.tasks)
        for place, version in enumerate(versions):
            out = home / f"output-{place}"
            out.mkdir()
            script = ROOT / "benchmarks" / "_same_input.py"
            # Without -P, the folder of the script would come first, with a module of the name of a library.
            command = [sys.executable, "-P", script, version, home / "input", out, *scorers]
            environment = os.environ | {"PYTHONPATH": str(version), "OMP_NUM_THREADS": "1"}
            subprocess.run(command, cwd=version, env=environment, check=True)
        found = [np.load(home / f"output-{place}" / "scores.npz") for place in (0, 1)]
        for scorer in scorers:
            old, new = ({name: one[name] for name in one if name.split()[0] == scorer} for one in found)
            results.append(compare(f"{title} {scorer}", old, new, options.tolerance))
        if study:
            old, new = (home / f"output-{place}" / "report.json" for place in (0, 1))
            results.append(compare_figures(old, new, options))
    return all(results)


def figures_of(file):
    """Return the numbers of a report by name, those at an alert budget by the budget."""
    report = json.loads(file.read_text(encoding="utf-8"))
    for curve in (curve for result in report["results"] for curve in result["alert_rates"]):
        curve["points"] = {f"at {point['alerts_per_patient_day']:g}": point for point in curve["points"]}
    return {name: value for name, value in flat(report).items() if isinstance(value, (int, float))}


def compare_figures(old_report, new_report, options):
    """Compare the figures that two reports share; returns whether all agree but those whose method has changed."""
    before, after = figures_of(old_report), figures_of(new_report)
    shared = before.keys() & after.keys()
    changed = {name for name in shared if CHANGED.search(name)}
    print(f"figures in one report only: {len(before.keys() ^ after.keys()):,}")
    for title, names in (("by a changed method", changed), ("all others", shared - changed)):
        old, new = ({name: one[name] for name in names} for one in (before, after))
        same = compare(title, old, new, options.tolerance)
    return same


def flat(value, name=""):
    """Return the leaves of nested lists and dictionaries by name, less the volatile ones."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: leaf for place, inner in items for key, leaf in flat(inner, f"{name}.{place}").items()}
    return {} if VOLATILE.search(name) else {name: value}


def report_of(folder):
    """Return the figures of the report by name."""
    return flat(json.loads((folder / "report.json").read_text(encoding="utf-8")))


def exports_of(folder):
    """Return the cells of all exported tables by file, row and column."""
    cells = {}
    for file in (folder / "labels.csv", *sorted((folder / "study").rglob("*.csv"))):
        with file.open(encoding="utf-8-sig", newline="") as rows:
            cells |= flat(list(csv.DictReader(rows)), file.name)
    return cells


def number(value):
    """Return an array of a number, of its text or of a vector; None for anything else."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None


def compare(title, old, new, tolerance):
    """Print the largest differences of two dictionaries; returns whether they agree."""
    absolute = relative = 0.0
    different = [name for name in old.keys() | new.keys() if (name in old) != (name in new)]
    for name in old.keys() & new.keys():
        left, right = number(old[name]), number(new[name])
        if left is None or right is None or left.shape != right.shape:
            different += [name] if old[name] != new[name] else []
        elif left.size:
            gap = np.where(left == right, 0.0, np.abs(left - right))
            gap[np.isnan(left) & np.isnan(right)] = 0.0
            absolute = max(absolute, float(np.nan_to_num(gap, nan=np.inf).max()))
            size = np.where(gap > 0, np.maximum(np.abs(left), np.abs(right)), 1.0)
            relative = max(relative, float(np.nan_to_num(gap / size, nan=np.inf).max()))
    agree = not different and absolute <= tolerance
    print(
        f"{title:24} {len(old):9,} {absolute:12.1e} {relative:12.1e} {len(different):10,} {'' if agree else ' DIFFERS'}"
    )
    for name in sorted(different)[:5]:
        print(f"    {name}: {old.get(name)!r} -> {new.get(name)!r}")
    return agree


def main():
    """Build both versions, compare them and exit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    real = Path(os.environ.get("ALERTREVIEW_REAL_DATA", "../shared/data")) / REAL
    parser.add_argument("--old", type=Path, required=True, help="checkout of the version to compare with")
    parser.add_argument("--data", type=Path, default=real, help="folder of the MIMIC-IV demo in MEDS")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="largest absolute difference allowed")
    parser.add_argument("--same-input", action="store_true", help="score and report the same input with both")
    parser.add_argument("--home", type=Path, help="demonstration to copy for --same-input instead of building one")
    parser.add_argument("--tasks", type=int, help="of --same-input: this many tasks only")
    parser.add_argument("--scorers", nargs="+", default=SHARED_SCORERS, help="of --same-input")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        versions = (options.old.resolve(), ROOT)
        if options.same_input:
            return 0 if same_input(versions, Path(name), options) else 1
        folders = [Path(name) / "old", Path(name) / "new"]
        for folder in folders:
            folder.mkdir()
        sites = [build(*pair, options.data.resolve()) for pair in zip(versions, folders, strict=True)]
        print(f"{'':24} {'compared':>9} {'absolute':>12} {'relative':>12} {'other':>10}")
        results = []
        for title, homes in zip(("demonstration", "MIMIC-IV demo"), zip(*sites, strict=True), strict=True):
            if homes[0] is None:
                print(f"{title}: not found in {options.data}")
                continue
            for word, read in (("scores", scores_of), ("alerts", alerts_of)):
                old, new = map(read, homes)
                results.append(compare(f"{title} {word}", old, new, options.tolerance))
        for word, read in (("report", report_of), ("exports", exports_of)):
            old, new = map(read, folders)
            results.append(compare(word, old, new, options.tolerance))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
