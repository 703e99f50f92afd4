"""Choose the cases of a study from all scored decisions of a run, whatever their score."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from alertreview.records.snapshots import Snapshot
from alertreview.studies.models import ChosenCase, ScorerSays, StudyPlan
from core.errors import InvalidInputError
from core.events.stays import HOURS_IN_WINDOW
from core.statistics.alert_rate import BUDGETS, Budget
from core.studies.selection import Selection, SelectionDesign, candidate_rows, choose_cases
from core.vocabulary import Decision
from db.database import Database
from db.models import ScoringRun, Task


@dataclass(frozen=True)
class Candidates:
    """Every scored decision of a run; entries stand by task, then by recent instance."""

    tasks: list[Task]
    task: np.ndarray[Any, np.dtype[np.int64]]  # position in `tasks` of each candidate
    row: np.ndarray[Any, np.dtype[np.int64]]
    position: np.ndarray[Any, np.dtype[np.int64]]
    scaled: np.ndarray[Any, np.dtype[np.float32]]  # by the scorer that divides the strata
    taken: np.ndarray[Any, np.dtype[np.bool_]]
    patient: np.ndarray[Any, np.dtype[np.int64]]  # code of the patient behind each candidate
    group: np.ndarray[Any, np.dtype[np.int64]]
    """The same code for members of an order group with one decision on one instance; -1 stands alone."""
    eligible: np.ndarray[Any, np.dtype[np.bool_]]
    """False for omissions in a window that was cut short: what was not done may only not have been done yet."""

    def scores(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the scaled scores of what can really be chosen, an order group once."""
        rows, _ = candidate_rows(self.scaled, self.group, self.eligible)
        return self.scaled[rows]

    def budgets(self, n_patient_days: float) -> dict[str, list[Budget]]:
        """Return where each alert budget ends in the run, by curve of the report: counted, not estimated.

        A curve is about all decisions, omissions, commissions, or one kind; a budget of more alerts than there are
        candidates is left out.
        """
        rows, _ = candidate_rows(self.scaled, self.group, self.eligible)
        kind = np.array([str(task.kind) for task in self.tasks], dtype=object)[self.task[rows]]
        inside = {"both": np.ones(rows.size, dtype=bool)}
        inside |= {str(Decision.OMISSION): ~self.taken[rows], str(Decision.COMMISSION): self.taken[rows]}
        inside |= {name: kind == name for name in sorted(set(kind))}
        found = {}
        for curve, members in inside.items():
            ordered = np.sort(self.scaled[rows[members]].astype(np.float64))[::-1]
            counts = {budget: round(budget * n_patient_days) for budget in BUDGETS}
            found[curve] = [
                Budget(budget, float(ordered[n - 1]), int(np.searchsorted(-ordered, -ordered[n - 1], side="right")))
                for budget, n in counts.items()
                if 0 < n <= ordered.size
            ]
        return {curve: budgets for curve, budgets in found.items() if budgets}

    def choose(self, design: SelectionDesign) -> Selection:
        """Choose cases by a design; see `core.studies.selection.choose_cases`."""
        return choose_cases(
            self.scaled,
            self.patient,
            design,
            is_commission=self.taken,
            group=self.group,
            eligible=self.eligible,
        )


def read_candidates(database: Database, snapshot: Snapshot, run: ScoringRun, scorer: str | None = None) -> Candidates:
    """Read every scored decision of a published run from the stored vectors, those below the alerts' floor as well.

    Scaled scores are those of a scorer, by default the run's first. Raise InvalidInputError if the run has no such
    scorer, or scored no task with it.
    """
    wanted = scorer or run.scorer
    known = (run.scorer, *run.scorers)
    if wanted not in known:
        raise InvalidInputError(f"Run {run.id} has no scorer '{wanted}'. It has: {', '.join(known)}.")
    with database.read() as uow:
        tasks = uow.snapshots.tasks(run.snapshot_id)
        recent = np.flatnonzero(uow.runs.fold_of_row(run.id) >= 0)
        vectors = dict(uow.runs.vectors(run.id, "scaled_score", wanted))
    scored = [place for place, task in enumerate(tasks) if task.id in vectors]
    if not scored:
        raise InvalidInputError("The run has no scored task; score the site again before choosing cases.")
    n = len(recent)
    taken = snapshot.decisions[:, [tasks[place].column_index for place in scored]][recent].toarray()
    task, row = np.repeat(np.array(scored), n), np.tile(recent, len(scored))
    is_taken = taken.T.ravel().astype(bool)
    window_cut = snapshot.instances["window_hours"].to_numpy()[row] < HOURS_IN_WINDOW
    return Candidates(
        tasks=tasks,
        task=task,
        row=row,
        position=np.tile(np.arange(n), len(scored)),
        scaled=np.concatenate([vectors[tasks[place].id] for place in scored]),
        taken=is_taken,
        patient=pd.factorize(snapshot.instances["patient_id"].astype(str))[0][row],
        group=_group_codes(tasks, task, row, is_taken),
        eligible=~(window_cut & ~is_taken),
    )


def cases_of(
    database: Database,
    run: ScoringRun,
    candidates: Candidates,
    plan: StudyPlan,
    scorer: str,
) -> tuple[list[ChosenCase], dict[str, Any]]:
    """Choose cases over the whole range of scaled scores, by those of a scorer of the run.

    Return them and the design to store and print in reports. Cases come in the order of the study's numbering, which is
    shuffled, with the scores of all scorers of the run; hidden repeats, shown twice to the same readers, at the end.
    Raise InvalidInputError if no decision of the run can be chosen, or more repeats than cases are wanted.
    """
    design = plan.design
    selection = candidates.choose(design)
    said = _scores(database, run, candidates, selection)
    cases = []
    for number, index in enumerate(selection.index):
        stratum = selection.strata[selection.stratum[number]]
        cases.append(
            ChosenCase(
                row_index=int(candidates.row[index]),
                task_key=candidates.tasks[candidates.task[index]].task_key,
                decision=Decision.COMMISSION if candidates.taken[index] else Decision.OMISSION,
                stratum=stratum.name,
                stratum_size=stratum.n_population,
                inclusion_probability=float(selection.inclusion_probability[number]),
                scores=said[number],
            )
        )
    return [*cases, *_repeats(cases, plan.n_repeats, plan.seed)], {
        **{name: value for name, value in asdict(design).items() if name != "n_readers"},
        "preset": plan.preset,
        "strata_by": scorer,
        "n_repeats": plan.n_repeats,
        "strata": [[stratum.name, stratum.n_population, stratum.n_chosen] for stratum in selection.strata],
        "n_candidates": selection.n_candidates,
        "left_out": selection.left_out,
        "notes": list(selection.notes),
    }


def _repeats(cases: list[ChosenCase], n_repeats: int, seed: int) -> Iterable[ChosenCase]:
    """Draw the cases that are shown a second time, from a stream of their own so that the choice stays the same."""
    if not 0 <= n_repeats <= len(cases):
        raise InvalidInputError(f"{n_repeats} hidden repeats are wanted of {len(cases)} cases; a case repeats once.")
    drawn = np.random.default_rng([seed, 1]).choice(len(cases), n_repeats, replace=False)
    return (replace(cases[at], repeat_number=1) for at in sorted(drawn))


def _group_codes(
    tasks: list[Task],
    task: np.ndarray[Any, np.dtype[np.int64]],
    row: np.ndarray[Any, np.dtype[np.int64]],
    taken: np.ndarray[Any, np.dtype[np.bool_]],
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return members of an order group with the same decision on one instance the same code; -1 stands alone."""
    group = pd.factorize(np.array([one.order_group for one in tasks], dtype=object))[0]
    alone = np.array([one.order_group == "" for one in tasks])
    n_rows = int(row.max()) + 1
    code = (group[task].astype(np.int64) * n_rows + row) * 2 + taken
    return np.where(alone[task], -1, code)


def _scores(
    database: Database, run: ScoringRun, candidates: Candidates, selection: Selection
) -> list[dict[str, ScorerSays]]:
    """Look up what every scorer of the run says of the chosen cases, one task at a time."""
    said: list[dict[str, ScorerSays]] = [{} for _ in selection.index]
    of_task: dict[int, list[int]] = {}
    for number, index in enumerate(selection.index):
        of_task.setdefault(int(candidates.task[index]), []).append(number)
    with database.read() as uow:
        for place, numbers in of_task.items():
            for scorer in (run.scorer, *run.scorers):
                result = uow.runs.task_result(run.id, candidates.tasks[place].id, scorer)
                if result.score is None or result.scaled_score is None:
                    continue
                for number in numbers:
                    at = candidates.position[selection.index[number]]
                    said[number][scorer] = ScorerSays(
                        score=float(result.score[at]),
                        scaled_score=float(result.scaled_score[at]),
                        soft_label=None if result.soft_label is None else float(result.soft_label[at]),
                        support=None if result.support is None else float(result.support[at]),
                    )
    return said
