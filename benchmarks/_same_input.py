"""Score stored instances and make the report of a stored study with the version whose packages are on the path.

``python benchmarks/_same_input.py VERSION FOLDER OUT``, run by ``./dev bench compare --same-input`` for each version.
"""

import importlib
import json
import pickle
import sys
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from scipy import sparse


def first(*places):
    """Return the first object that this version has, of "module:name"."""
    for place in places:
        module, name = place.split(":")
        try:
            return getattr(importlib.import_module(module), name)
        except ImportError:
            continue
    raise ImportError(f"None of {', '.join(places)} is in this version.")


def arguments_of(record, given):
    """Return the entries of a dictionary that a dataclass of this version knows."""
    return {field.name: given[field.name] for field in fields(record) if field.name in given}


def score(folder, scorers):
    """Score the instances of a folder; returns score, soft label and support by scorer and task."""
    score_tasks = first("core.scoring.all_tasks:score_tasks", "core.multitask:score_tasks")
    given = pickle.loads((folder / "rows.pickle").read_bytes())
    scored = score_tasks(
        sparse.load_npz(folder / "features.npz"), sparse.load_npz(folder / "decisions.npz"), scorers=scorers, **given
    )
    values = {}
    for scorer in scorers:
        for task in scored.tasks:
            found = scored.scores(task, scorer)
            for name in ("score", "scaled_score", "soft_label", "support", "past_score"):
                values[f"{scorer} {name} {task}"] = getattr(found, name)
    return values


def report(folder):
    """Return the figures of the report of a stored study, and of its agreements and AUCs by themselves."""
    study_input = first("core.studies.report_input:StudyInput", "core.study_input:StudyInput")
    study_report = first("core.studies.make_report:study_report", "core.reporting:study_report")
    given = pickle.loads((folder / "study.pickle").read_bytes())
    return asdict(study_report(study_input(**arguments_of(study_input, given))))


def main():
    """Write what this version makes of a folder."""
    version, folder, out = (Path(word) for word in sys.argv[1:4])
    found = Path(importlib.import_module("core").__file__).resolve()
    if not found.is_relative_to(version.resolve()):
        sys.exit(f"core comes from {found.parent}, not from {version}.")
    np.savez(out / "scores.npz", **score(folder, tuple(sys.argv[4:])))
    if (folder / "study.pickle").exists():
        (out / "report.json").write_text(json.dumps(report(folder), default=str), encoding="utf-8")


if __name__ == "__main__":
    main()
