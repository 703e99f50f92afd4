"""Choose the cases of a study from all scored decisions of a run, whatever their score."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from alertreview.snapshots import Snapshot
from alertreview.study_rows import ChosenCase, ScorerSays
from core.errors import InvalidInputError
from core.selection import Selection, SelectionDesign, choose_cases
from core.stays import HOURS_IN_WINDOW
from core.vocabulary import Decision
from db.rows import RunRow, TaskRow
from db.session import Database


@dataclass(frozen=True)
class _Candidates:
    """Every scored decision of a run; entries stand by task, then by recent instance."""

    task: np.ndarray[Any, np.dtype[np.int64]]
    """Position in `tasks` of each candidate."""
    row: np.ndarray[Any, np.dtype[np.int64]]
    position: np.ndarray[Any, np.dtype[np.int64]]
    scaled: np.ndarray[Any, np.dtype[np.float32]]
    taken: np.ndarray[Any, np.dtype[np.bool_]]


def choose_study_cases(
    database: Database, snapshot: Snapshot, run: RunRow, design: SelectionDesign, preset: str
) -> tuple[list[ChosenCase], dict[str, Any]]:
    """Choose cases over the whole range of a run's scaled scores.

    Parameters
    ----------
    database : Database
        The site's database.
    snapshot : Snapshot
        The import that the run scored.
    run : RunRow
        Published.
    design : SelectionDesign
        How many, in which strata, with which seed.
    preset : str
        What the design is called in reports.

    Returns
    -------
    cases : list of ChosenCase
        In the order of the study's numbering, which is shuffled; with the scores of all scorers of the run.
    selection_design : dict
        What is stored with the study and printed in reports.

    Raises
    ------
    InvalidInputError
        If no decision of the run can be chosen.
    """
    with database.read() as uow:
        tasks = uow.snapshots.tasks(run.snapshot_id)
        recent = np.flatnonzero(uow.runs.fold_of_row(run.id) >= 0)
        vectors = dict(uow.runs.vectors(run.id, "scaled_score"))
    candidates = _candidates(tasks, recent, vectors, snapshot)
    window_cut = snapshot.instances["window_hours"].to_numpy()[candidates.row] < HOURS_IN_WINDOW
    selection = choose_cases(
        candidates.scaled,
        pd.factorize(snapshot.instances["patient_id"].astype(str))[0][candidates.row],
        design,
        is_commission=candidates.taken,
        group=_group_codes(tasks, candidates),
        eligible=~(window_cut & ~candidates.taken),
    )
    said = _scores(database, run, tasks, candidates, selection)
    cases = []
    for number, index in enumerate(selection.index):
        stratum = selection.strata[selection.stratum[number]]
        cases.append(
            ChosenCase(
                row_index=int(candidates.row[index]),
                task_key=tasks[candidates.task[index]].task_key,
                decision=Decision.COMMISSION if candidates.taken[index] else Decision.OMISSION,
                stratum=stratum.name,
                stratum_size=stratum.n_population,
                inclusion_probability=float(selection.inclusion_probability[number]),
                scores=said[number],
            )
        )
    return cases, {
        **{name: value for name, value in asdict(design).items() if name != "n_readers"},
        "preset": preset,
        "strata": [[stratum.name, stratum.n_population, stratum.n_chosen] for stratum in selection.strata],
        "n_candidates": selection.n_candidates,
        "left_out": selection.left_out,
        "notes": list(selection.notes),
    }


def _candidates(
    tasks: list[TaskRow],
    recent: np.ndarray[Any, np.dtype[np.int64]],
    vectors: dict[int, np.ndarray[Any, np.dtype[np.float32]]],
    snapshot: Snapshot,
) -> _Candidates:
    scored = [place for place, task in enumerate(tasks) if task.id in vectors]
    if not scored:
        raise InvalidInputError("The run has no scored task; score the site again before choosing cases.")
    n = len(recent)
    taken = snapshot.decisions[:, [tasks[place].column_index for place in scored]][recent].toarray()
    return _Candidates(
        task=np.repeat(np.array(scored), n),
        row=np.tile(recent, len(scored)),
        position=np.tile(np.arange(n), len(scored)),
        scaled=np.concatenate([vectors[tasks[place].id] for place in scored]),
        taken=taken.T.ravel().astype(bool),
    )


def _group_codes(tasks: list[TaskRow], candidates: _Candidates) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Give members of an order group with the same decision on one instance the same code; -1 stands alone."""
    group = pd.factorize(np.array([task.order_group for task in tasks], dtype=object))[0]
    alone = np.array([task.order_group == "" for task in tasks])
    n_rows = int(candidates.row.max()) + 1
    code = (group[candidates.task].astype(np.int64) * n_rows + candidates.row) * 2 + candidates.taken
    return np.where(alone[candidates.task], -1, code)


def _scores(
    database: Database, run: RunRow, tasks: list[TaskRow], candidates: _Candidates, selection: Selection
) -> list[dict[str, ScorerSays]]:
    """Look up what every scorer of the run says of the chosen cases, one task at a time."""
    said: list[dict[str, ScorerSays]] = [{} for _ in selection.index]
    of_task: dict[int, list[int]] = {}
    for number, index in enumerate(selection.index):
        of_task.setdefault(int(candidates.task[index]), []).append(number)
    with database.read() as uow:
        for place, numbers in of_task.items():
            for scorer in (run.scorer, *run.scorers):
                result = uow.runs.task_result(run.id, tasks[place].id, scorer)
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
