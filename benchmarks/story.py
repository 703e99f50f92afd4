"""Whether the report of the demonstration tells the truth that its simulation knows, over many draws of cases.

The simulated readers judge every candidate of the run, which no study could; their majority over all of them is the
truth. Each draw chooses the cases of a study by another seed, gives it the votes of the same readers, and makes its
report. The AUC of all candidates should lie in the interval, the true-alert rate in its band, and the ceiling above
the AUC.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alertreview.cli.demo import SEED, panel
from alertreview.operations.upgrade import open_database
from alertreview.records.snapshots import read_snapshot
from alertreview.settings import load_settings
from core.evaluation import rank_auc
from core.simulation.files import load_truth
from core.simulation.study import RELEVANT_FROM, SimulatedVotes, simulate_votes
from core.statistics.consensus import majority_label
from core.statistics.estimate import Estimate
from core.studies.make_report import study_report
from core.studies.report import StudyReport
from core.studies.report_input import StudyInput
from core.studies.selection import SelectionDesign, choose_cases
from core.vocabulary import Decision

N_CASES = 120


@dataclass(frozen=True)
class Candidates:
    """Every recent decision of a run on simulated records, as the simulated readers would judge it."""

    score: NDArray[np.float64]
    patient: NDArray[np.int64]
    is_commission: NDArray[np.bool_]
    task: NDArray[np.object_]
    kind: NDArray[np.object_]
    votes: SimulatedVotes
    n_instances: int

    @property
    def label(self) -> NDArray[np.float64]:
        """Majority of the readers on "relevant" for every candidate, NaN without one."""
        return np.asarray(majority_label(self.votes.answers.astype(float)).label, dtype=np.float64)


def candidates(home: Path) -> Candidates:
    """Read the candidates of the published run of a demonstration."""
    settings = load_settings(home)
    with open_database(settings) as database, database.read() as uow:
        run = uow.runs.latest_published()
        if run is None:
            raise SystemExit(f"{home} has no published run; build it with ./dev demo.")
        snapshot = read_snapshot(settings.snapshots / uow.snapshots.get(run.snapshot_id).folder)
        column = {task.id: task.column_index for task in uow.snapshots.tasks(run.snapshot_id)}
        recent = np.flatnonzero(uow.runs.fold_of_row(run.id) >= 0)
        scaled = dict(uow.runs.vectors(run.id, "scaled_score"))
    true_score, planted = load_truth(home / "simulated-source", snapshot.cohort)
    columns = np.array([column[task] for task in scaled])
    cells = np.ix_(recent, columns)
    anomaly = true_score[cells].T.ravel()
    relevant = planted[cells].T.ravel() | (anomaly >= RELEVANT_FROM)
    score = np.concatenate(list(scaled.values()))
    known = np.isfinite(anomaly) & np.isfinite(score)
    patient = snapshot.instances["patient_id"].astype("category").cat.codes.to_numpy()[recent].astype(np.int64)
    taken = snapshot.decisions[recent][:, columns].toarray().T.ravel().astype(bool)
    names, kinds = (snapshot.tasks[each].to_numpy()[columns] for each in ("name", "kind"))
    return Candidates(
        score=score[known],
        patient=np.tile(patient, len(columns))[known],
        is_commission=taken[known],
        task=np.repeat(names, len(recent))[known],
        kind=np.repeat(kinds, len(recent))[known],
        votes=simulate_votes(relevant[known], anomaly[known], panel(), seed=SEED),
        n_instances=len(recent),
    )


def study(all_of: Candidates, seed: int) -> StudyInput:
    """Return a study of cases that one seed chooses, with the votes of the readers."""
    design = SelectionDesign(n_cases=N_CASES, balance_decisions=True, seed=seed)
    chosen = choose_cases(all_of.score, all_of.patient, design, is_commission=all_of.is_commission)
    rows, n_readers = chosen.index, all_of.votes.answers.shape[1]
    case_id = np.arange(1, len(rows) + 1)
    cases = pd.DataFrame(
        {
            "case_id": case_id,
            "case_label": [f"D{number}" for number in case_id],
            "patient_id": all_of.patient[rows].astype(str),
            "task_key": all_of.task[rows],
            "task_name": all_of.task[rows],
            "kind": all_of.kind[rows].astype(str),
            "decision": np.where(all_of.is_commission[rows], str(Decision.COMMISSION), str(Decision.OMISSION)),
            "unit": "",
            "sex": "",
            "age_band": "",
            "stratum": [chosen.strata[s].name for s in chosen.stratum],
            "inclusion_probability": chosen.inclusion_probability,
            "adjudicated_answer": np.nan,
            "record_reference": np.nan,
        }
    )
    votes = pd.DataFrame(
        {
            "case_id": np.repeat(case_id, n_readers),
            "reader": np.tile([f"reader-{i + 1}" for i in range(n_readers)], len(rows)),
            "answer": all_of.votes.answers[rows].ravel(),
            "version": 1,
        }
    )
    return StudyInput(
        slug="story",
        title="Demonstration",
        question="Is this decision unusual, and is that clinically relevant?",
        simulated=True,
        locked=True,
        n_slots=n_readers,
        cases=cases,
        votes=votes,
        scores=pd.DataFrame({"case_id": case_id, "softhad": all_of.score[rows]}),
        scorer_labels={"softhad": "SoftHAD"},
        strata=[(stratum.name, stratum.n_population, stratum.n_chosen) for stratum in chosen.strata],
        n_instances=all_of.n_instances,
        n_candidates=chosen.n_candidates,
    )


def true_auc(all_of: Candidates) -> float:
    """Return the AUC over all candidates with a majority."""
    known = np.isfinite(all_of.label)
    return float(rank_auc(all_of.label[known] == 1, all_of.score[known]))


def true_rate(all_of: Candidates, threshold: float) -> float:
    """Return the share of relevant alerts among all candidates at or above a score."""
    inside = np.isfinite(all_of.label) & (all_of.score >= threshold)
    return float(all_of.label[inside].mean())


def main() -> None:
    """Draw studies from a demonstration and print what held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    all_of = candidates(given.home)
    auc = true_auc(all_of)
    print(f"{len(all_of.score)} candidates, {np.nanmean(all_of.label):.1%} relevant, true AUC {auc:.3f}")
    held = []
    for seed in range(SEED, SEED + given.seeds):
        found = told(study_report(study(all_of, seed)), all_of, auc)
        held.append([found.auc_holds, found.rate_holds, found.ceiling_is_above, found.kappa_is_usual])
        print(f"seed {seed}: {found}")
    print("AUC, rate, ceiling, kappa as they should be:", np.sum(held, axis=0).tolist(), "of", len(held))


@dataclass(frozen=True)
class Told:
    """What a report says, and whether it is so."""

    auc: str
    rate: str
    ceiling: str
    kappa: float | None
    auc_holds: bool
    rate_holds: bool
    ceiling_is_above: bool
    kappa_is_usual: bool


def told(report: StudyReport, all_of: Candidates, auc: float) -> Told:
    """Compare a report with the truth of all candidates."""
    shown, kappa = report.primary.scorers[0].auc_weighted, report.agreement.positive.fleiss.value
    points = report.primary.alert_rates[0].points
    point = min(points, key=lambda each: abs(each.alerts_per_patient_day - report.headline_budget))
    rate, ceiling = true_rate(all_of, point.threshold), report.ceiling.weighted
    return Told(
        auc=f"{_words(shown)}, truly {auc:.3f}",
        rate=f"{_words(point.rate)}, truly {rate:.2f}",
        ceiling=_words(ceiling),
        kappa=kappa,
        auc_holds=_holds(shown, auc),
        rate_holds=_holds(point.rate, rate),
        ceiling_is_above=ceiling.value is None or shown.value is None or ceiling.value >= shown.value,
        kappa_is_usual=kappa is not None and 0.3 <= kappa <= 0.5,
    )


def _words(found: Estimate) -> str:
    if found.value is None or found.low is None or found.high is None:
        return found.reason if found.value is None else f"{found.value:.3f}"
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _holds(found: Estimate, truth: float) -> bool:
    """Say whether an interval holds the truth; what was not computable claims nothing."""
    return found.low is None or found.high is None or found.low <= truth <= found.high


if __name__ == "__main__":
    main()
