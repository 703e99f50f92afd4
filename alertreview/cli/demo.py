"""The demonstration: a simulated hospital, scored, with a study that simulated readers have judged in part."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alertreview.application import Application
from alertreview.cli.console import progress_bar
from alertreview.operations.upgrade import open_database
from alertreview.records.import_site import import_records
from alertreview.records.snapshots import Snapshot, read_snapshot
from alertreview.review.judging import OutsideVote, record_votes
from alertreview.scoring.resume import ScoringRequest
from alertreview.scoring.score_site import score_site
from alertreview.settings import Settings, default_home, now
from alertreview.studies.models import CaseForReport, Rubric, StudyPlan, StudyView
from core.errors import NotFoundError
from core.evaluation import rank_auc
from core.simulation.hospital import load_truth, simulate_cohort, write_meds
from core.simulation.study import SimulatedPanel, SimulatedVotes, simulate_relevance, simulate_votes
from core.statistics.consensus import majority_label
from core.vocabulary import Answer, Certainty, Role, StudyStatus
from db.database import Database
from db.models import Person, ScoringRun

STUDY = "demo"
TITLE = "Demonstration panel"
SCORERS = ("shared", "softhad", "softhad-paper", "logistic", "day-adjusted")
SEED = 7
GUIDELINES = (
    "Judge the decision from what was known at {snapshot_hour}, not from what came later.\n\n"
    "**Unusual** means: you would have expected the other decision for this patient. "
    "**Clinically relevant** means: you would want to be told. If the record does not let you decide, say so."
)
READERS = ("Reader 1 (simulated)", "Reader 2 (simulated)", "Reader 3 (simulated)")
VISITOR = "You (demonstration)"
RESEARCHER = "Researcher (demonstration)"
"""Judges nothing, so that no result has to be hidden from this person."""
PANEL = SimulatedPanel(error_rate=0.42, usual_error=0.06, unusual_error=0.07, leniency_spread=0.15, relevant_from=0.0)
"""The simulated readers: they miss two fifths of what is relevant, call 2 or 3 in 100 other decisions relevant, and
agree as published panels do (kappa .3 to .5)."""
EDGES = (0.5, 0.8, 0.95)
"""Scaled scores that divide the strata, as in the preset "four strata, finer at the top"."""
N_LEFT_OPEN = 2
"""Cases that the simulated readers shall at least leave to the adjudicator."""
MOST_DRAWS = 50
ADJUDICATOR = "Adjudicator (demonstration)"
"""Settles the cases that the votes of the simulated readers leave open."""


@dataclass(frozen=True)
class DemoSize:
    """How large the demonstration is."""

    n_patients: int = 200
    n_cases: int = 900  # about what `alertreview study plan` asks for in this design for an AUC within .1 either way
    n_waiting: int = 20  # cases with one free slot, for whoever tries the demonstration


def demo_home() -> Path:
    """Folder of the demonstration when nobody names one: beside the default home, never in it."""
    return default_home().with_name("alertreview-demo")


def build_demo(settings: Settings, size: DemoSize | None = None) -> Iterator[str]:
    """Build what is missing of the demonstration in its own home, and say in lines what was done.

    Tests ask for smaller sizes. Every step is whole or not there, so that an interrupted build goes on where it
    stopped.
    """
    size = size or DemoSize()
    with open_database(settings, upgrade=True) as database:
        source = settings.home / "simulated-source"
        yield _simulate_source(source, size)
        yield from _import_and_score(settings, database, source)
        application = Application(settings, database)
        yield from _build_study(application, database, source, size)


def _simulate_source(source: Path, size: DemoSize) -> str:
    if not source.exists():
        write_meds(simulate_cohort(n_patients=size.n_patients, seed=SEED), source)
    return f"Simulated health records (no real patient): {source}"


def _import_and_score(settings: Settings, database: Database, source: Path) -> Iterator[str]:
    with progress_bar("Importing") as progress:
        outcome = import_records(settings, database, source, "meds", None, progress)
    snapshot = read_snapshot(outcome.folder)
    yield f"Imported {len(snapshot.instances)} patient-state instances and {len(snapshot.tasks)} tasks."
    with database.read() as uow:
        run = uow.runs.latest_published()
    if run is None:
        with progress_bar("Scoring") as progress:
            yield from score_site(settings, database, ScoringRequest(scorers=SCORERS, seed=SEED), progress).lines()
        with database.read() as uow:
            run = uow.runs.latest_published()
    if run is not None:
        yield _planted_auc(database, snapshot, run, source)


def _planted_auc(database: Database, snapshot: Snapshot, run: ScoringRun, source: Path) -> str:
    """Say how well the planted decisions are found, with the rarity of the tasks alone beside it."""
    _, planted = load_truth(source, snapshot.cohort)
    with database.read() as uow:
        tasks = {task.id: task.column_index for task in uow.snapshots.tasks(run.snapshot_id)}
        folds = uow.runs.fold_of_row(run.id)
        scaled = dict(uow.runs.vectors(run.id, "scaled_score"))
    recent, past = np.flatnonzero(folds >= 0), np.flatnonzero(folds == -1)
    columns = [tasks[task_id] for task_id in scaled]
    is_planted = planted[np.ix_(recent, np.array(columns))].T.ravel()
    taken = snapshot.decisions[:, columns][recent].toarray().T.astype(bool)
    share = np.asarray(snapshot.decisions[past][:, columns].mean(axis=0)).reshape(-1, 1)
    rarity = np.where(taken, 1 - share, share).ravel()
    score_auc = rank_auc(is_planted, np.concatenate(list(scaled.values())))
    return (
        f"Planted unusual decisions: {int(is_planted.sum())} of {is_planted.size} recent decisions; AUC of the scaled "
        f"score {score_auc:.3f}, of the rarity of the decision in its task alone {rank_auc(is_planted, rarity):.3f}."
    )


def _build_study(application: Application, database: Database, source: Path, size: DemoSize) -> Iterator[str]:
    people = _people(database)
    try:
        study = application.studies.view(STUDY)
    except NotFoundError:
        study = _create_study(application, size)
    if study.status is StudyStatus.DRAFT:
        readers = [person.id for name, person in people.items() if name in (*READERS, VISITOR)]
        application.studies.add_readers(STUDY, readers)
        application.studies.open_study(STUDY)
    n_votes = _vote(application, database, source, people, size)
    yield (
        f"Study '{STUDY}': {study.n_cases} cases, {n_votes} votes of three simulated readers; "
        f"{size.n_waiting} cases wait for a third vote: yours."
    )


def _people(database: Database) -> dict[str, Person]:
    wanted = [(name, Role.REVIEWER, True) for name in READERS] + [
        (VISITOR, Role.REVIEWER, False),
        (RESEARCHER, Role.RESEARCHER, False),
        (ADJUDICATOR, Role.ADJUDICATOR, False),
    ]
    with database.write() as uow:
        known = {person.name: person for person in uow.people.all()}
        for name, role, simulated in wanted:
            if name not in known:
                known[name] = uow.people.add(name, role, created_at=now(), simulated=simulated)
        uow.commit()
    return known


def _create_study(application: Application, size: DemoSize) -> StudyView:
    run = application.worklist.run()
    if run is None:
        raise NotFoundError("The demonstration has no published scoring run; build it again.")
    rubric = Rubric(guidelines=GUIDELINES.format(snapshot_hour=run.snapshot_hour))
    return application.study_desk.set_up(STUDY, TITLE, study_plan(size.n_cases, SEED), rubric, [])


def study_plan(n_cases: int, seed: int) -> StudyPlan:
    """Return how the cases of the demonstration are chosen."""
    preset = "four strata, half of the cases in the largest"
    return StudyPlan(n_cases=n_cases, edges=EDGES, seed=seed, preset=preset, half_in_largest=True)


def truth_of_decisions(source: Path, snapshot: Snapshot) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return what a simulation knows of every decision, as two arrays of shape (n_instances, n_tasks).

    Whether a physician who makes no error finds it relevant, and its true anomaly score in [0, 1], higher = more
    unusual.
    """
    true_score, planted = load_truth(source, snapshot.cohort)
    anomaly = np.nan_to_num(true_score)
    return simulate_relevance(anomaly, planted, seed=SEED), anomaly


def judge_all(source: Path, snapshot: Snapshot, seed: int = SEED) -> SimulatedVotes:
    """Let the simulated readers judge every decision, by instance and then by task."""
    relevant, anomaly = truth_of_decisions(source, snapshot)
    return simulate_votes(relevant.ravel(), anomaly.ravel(), PANEL, seed=seed)


def truth_of_cases(
    application: Application, source: Path, slug: str
) -> tuple[tuple[CaseForReport, ...], list[bool], list[float]]:
    """Return the cases of a study on simulated records, whether each is truly relevant, and its true anomaly score."""
    cases = application.studies.case_rows(slug)
    snapshot = _snapshot(application, slug)
    relevant, anomaly = (known.ravel()[_cells(cases, snapshot)] for known in truth_of_decisions(source, snapshot))
    return cases, relevant.tolist(), anomaly.tolist()


def _snapshot(application: Application, slug: str) -> Snapshot:
    with application.database.read() as uow:
        snapshot_id = uow.runs.get(uow.studies.by_slug(slug).run_id).snapshot_id
        folder = uow.snapshots.get(snapshot_id).folder
    return read_snapshot(application.settings.snapshots / folder)


def _cells(cases: tuple[CaseForReport, ...], snapshot: Snapshot) -> NDArray[np.int64]:
    """Return where the decisions of cases stand among those of `judge_all`."""
    column = {key: place for place, key in enumerate(snapshot.tasks["task_key"])}
    return np.array([case.row_index * len(column) + column[case.task_key] for case in cases], dtype=np.int64)


def _vote(application: Application, database: Database, source: Path, people: dict[str, Person], size: DemoSize) -> int:
    """Let the simulated readers judge; building again adds nothing."""
    cases = application.studies.case_rows(STUDY)
    snapshot = _snapshot(application, STUDY)
    at = _cells(cases, snapshot)
    answered = _judge(source, snapshot, at, size)
    votes = [
        OutsideVote(
            person_id=people[name].id,
            case_id=case.case_id,
            answer=(answer := Answer(int(answered.answers[at[number], reader]))),
            certainty=Certainty.CERTAIN if answered.is_certain[at[number], reader] else Certainty.UNCERTAIN,
            reason="Simulated: not enough in the record." if answer.needs_reason else "",
            active_seconds=float(answered.active_seconds[at[number], reader]),
        )
        for number, case in enumerate(cases)
        for reader, name in enumerate(READERS)
        # One slot of the first cases stays free, each time another reader's.
        if number >= size.n_waiting or reader != number % len(READERS)
    ]
    record_votes(database, now(), STUDY, votes)
    return len(votes)


def _judge(source: Path, snapshot: Snapshot, at: NDArray[np.int64], size: DemoSize) -> SimulatedVotes:
    """Draw the votes from the first seed that leaves something to the adjudicator, which a small study may not."""
    for number in range(MOST_DRAWS):
        answered = judge_all(source, snapshot, SEED + number)
        all_read = answered.answers[at[size.n_waiting :]]
        if len(all_read) - majority_label(all_read).n >= N_LEFT_OPEN:
            break
    return answered
