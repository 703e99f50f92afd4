"""Whether the report of the demonstration tells the truth that its simulation knows, over many draws of cases.

The simulated readers judge every candidate of the run, which no study could; their majority over all of them is the
truth. Each draw chooses the cases of a study by another seed, gives it the votes of the same readers, and makes its
report. The AUC of all candidates should lie in the interval, the true-alert rate in its band, the ceiling above the
AUC, kappa between .3 and .5, and the headline should withhold nothing.

    python -m benchmarks.story HOME [--seeds 20]
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alertreview.cli.demo import SEED, DemoSize, judge_all, study_plan, truth_of_decisions
from alertreview.operations.upgrade import open_database
from alertreview.records.snapshots import read_snapshot
from alertreview.settings import load_settings
from alertreview.studies.case_selection import Candidates, read_candidates
from core.evaluation import rank_auc
from core.scoring.scorers import label_of_scorer
from core.statistics.consensus import majority_label
from core.statistics.estimate import Estimate
from core.studies.make_report import study_report
from core.studies.next_study import plan_next
from core.studies.report import StudyReport
from core.studies.report_input import StudyInput
from core.studies.selection import candidate_rows
from core.studies.texts import headline_point
from core.vocabulary import Decision

HALF_WIDTH = 0.1


@dataclass(frozen=True)
class Judged:
    """Every decision of a run on simulated records, as the simulated readers judge it."""

    candidates: Candidates
    scorer: str
    answers: NDArray[np.int64]
    """Of shape (n, n_readers), for each entry of the candidates."""
    relevant: NDArray[np.bool_]
    """Whether a physician who makes no error finds it relevant, for each entry."""
    anomaly: NDArray[np.float64]
    """True anomaly score in [0, 1] of each entry, higher = more unusual."""
    n_instances: int

    @property
    def rows(self) -> NDArray[np.int64]:
        """Entries that can be chosen, an order group once."""
        return candidate_rows(self.candidates.scaled, self.candidates.group, self.candidates.eligible)[0]

    @property
    def score(self) -> NDArray[np.float64]:
        """Scaled score of each candidate."""
        return self.candidates.scaled[self.rows].astype(np.float64)

    @property
    def label(self) -> NDArray[np.float64]:
        """Majority of the readers on "relevant" for each candidate, NaN without one."""
        return np.asarray(majority_label(self.answers[self.rows].astype(float)).label, dtype=np.float64)


def judged(home: Path) -> Judged:
    """Read the candidates of the published run of a demonstration, and have them all judged."""
    settings = load_settings(home)
    with open_database(settings) as database:
        with database.read() as uow:
            run = uow.runs.latest_published()
            if run is None:
                raise SystemExit(f"{home} has no published run; build it with ./dev demo.")
            snapshot = read_snapshot(settings.snapshots / uow.snapshots.get(run.snapshot_id).folder)
        candidates = read_candidates(database, snapshot, run)
    column = np.array([task.column_index for task in candidates.tasks])[candidates.task]
    at = candidates.row * len(snapshot.tasks) + column
    source = home / "simulated-source"
    relevant, anomaly = (known.ravel()[at] for known in truth_of_decisions(source, snapshot))
    answers = judge_all(source, snapshot).answers[at]
    return Judged(candidates, run.scorer, answers, relevant, anomaly, len(np.unique(candidates.row)))


def study(all_of: Judged, seed: int, n_cases: int = DemoSize.n_cases) -> StudyInput:
    """Return a study of cases that one seed chooses, with the votes of the readers."""
    candidates, n_readers = all_of.candidates, all_of.answers.shape[1]
    chosen = candidates.choose(study_plan(n_cases, seed).design)
    rows = chosen.index
    tasks = [candidates.tasks[place] for place in candidates.task[rows]]
    case_id = np.arange(1, len(rows) + 1)
    cases = pd.DataFrame(
        {
            "case_id": case_id,
            "case_label": [f"D{number}" for number in case_id],
            "patient_id": candidates.patient[rows].astype(str),
            "task_key": [task.task_key for task in tasks],
            "task_name": [task.name for task in tasks],
            "kind": [str(task.kind) for task in tasks],
            "decision": np.where(candidates.taken[rows], str(Decision.COMMISSION), str(Decision.OMISSION)),
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
            "answer": all_of.answers[rows].ravel(),
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
        scores=pd.DataFrame({"case_id": case_id, all_of.scorer: candidates.scaled[rows].astype(np.float64)}),
        scorer_labels={all_of.scorer: label_of_scorer(all_of.scorer)},
        strata=[(stratum.name, stratum.n_population, stratum.n_chosen) for stratum in chosen.strata],
        n_instances=all_of.n_instances,
        n_candidates=chosen.n_candidates,
        budgets=candidates.budgets(all_of.n_instances),
    )


def true_auc(all_of: Judged) -> float:
    """Return the AUC over all candidates with a majority."""
    label = all_of.label
    known = np.isfinite(label)
    return float(rank_auc(label[known] == 1, all_of.score[known]))


def true_rate(all_of: Judged, threshold: float) -> float:
    """Return the share of relevant alerts among all candidates at or above a score."""
    inside = np.isfinite(all_of.label) & (all_of.score >= threshold)
    return float(all_of.label[inside].mean())


def main() -> None:
    """Draw studies from a demonstration and print what held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    all_of = judged(given.home)
    auc, label = true_auc(all_of), all_of.label
    print(f"{len(label)} candidates, {np.nanmean(label):.1%} relevant, true AUC {auc:.3f}")
    held = []
    for seed in range(SEED, SEED + given.seeds):
        report = study_report(study(all_of, seed))
        found = told(report, all_of, auc)
        held.append([getattr(found, name) for name in HELD])
        print(f"seed {seed}: {found}")
        if seed == SEED:
            for plan in plan_next(report, HALF_WIDTH):
                width = "no interval" if plan.half_width is None else f"{plan.half_width:.3f}"
                print(f"planned for {HALF_WIDTH}: {plan.n_cases} cases {plan.by_stratum}, {plan.allocation}: {width}")
    print(f"{', '.join(HELD)}: {np.sum(held, axis=0).tolist()} of {len(held)}")


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
    nothing_withheld: bool


WITHHELD = ("cannot be said", "not computable", "is off")
HELD = ("auc_holds", "rate_holds", "ceiling_is_above", "kappa_is_usual", "nothing_withheld")


def told(report: StudyReport, all_of: Judged, auc: float) -> Told:
    """Compare a report with the truth of all candidates; what cannot be computed does not hold."""
    shown, kappa = report.primary.scorers[0].auc_weighted, report.agreement.positive.fleiss.value
    point, ceiling = headline_point(report.primary, report.headline_budget), report.ceiling.weighted
    rate = None if point is None else true_rate(all_of, point.threshold)
    return Told(
        auc=f"{_words(shown)}, truly {auc:.3f}",
        rate="none" if point is None else f"{_words(point.rate)}, truly {rate:.2f}",
        ceiling=_words(ceiling),
        kappa=kappa,
        auc_holds=_holds(shown, auc),
        rate_holds=point is not None and _holds(point.rate, rate),
        ceiling_is_above=ceiling.value is not None and shown.value is not None and ceiling.value >= shown.value,
        kappa_is_usual=kappa is not None and 0.3 <= kappa <= 0.5,
        nothing_withheld=not any(words in " ".join(report.headline) for words in WITHHELD),
    )


def _words(found: Estimate) -> str:
    if found.value is None or found.low is None or found.high is None:
        return found.reason if found.value is None else f"{found.value:.3f}"
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _holds(found: Estimate, truth: float | None) -> bool:
    return truth is not None and found.low is not None and found.high is not None and found.low <= truth <= found.high


if __name__ == "__main__":
    main()
