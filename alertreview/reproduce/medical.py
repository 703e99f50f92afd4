"""The paper's medical set-up on a simulated hospital: instances, tasks, cases chosen by the SVM, a panel of three."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from alertreview.records.importing import build_cohort
from core.baselines import SupportVectors
from core.cohort.cohort import Cohort
from core.graph.backbone import SampledNodes, sample_balanced_nodes
from core.graph.similarity import group_codes
from core.scaling import ScoreScaler
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import PreparedInstances, prepare_instances, weighted_task_rows
from core.scoring.task_graph import NOBODY, build_task_graph, extend, soft_labels_with_own
from core.simulation.hospital import TRUTH, load_truth, simulate_cohort, write_meds
from core.simulation.study import RELEVANT_FROM, SimulatedPanel, simulate_votes
from core.statistics.consensus import majority_label
from core.studies.selection import SelectionDesign, choose_cases
from core.validation import FloatArray, IntArray

PAST_SHARE: Final = 2646 / 4486
"""Share of patients that the paper learns from."""
N_CASES: Final = 222
N_NODES: Final = 200
N_FEATURES: Final = 100
MIN_POSITIVES: Final = 25
"""Of each decision among the past instances of a task; fewer leave no choice of nodes."""
PLANTED_RATE: Final = 0.1
"""Of decisions taken that are dropped, and as many added: enough for a panel of three to find some in 222 cases."""
LOW_AND_MIDDLE: Final = (0.8, 0.98)
"""Shares of the SVM's scores that are low, and low or middle; a third of the cases comes from each range."""
_CASES, _VOTES = 1, 2
_TRUST_WITHOUT_LIMIT: Final = 1e7


@dataclass(frozen=True)
class MedicalStudy:
    """A simulated hospital with judged cases."""

    prepared: PreparedInstances  # past rows first
    tasks: tuple[int, ...]  # columns of the decisions
    names: tuple[str, ...]  # of `tasks`
    # `case_row` and `case_task`: shape (n_cases,): place of each case among the recent instances, and among `tasks`.
    case_row: IntArray
    case_task: IntArray
    label: FloatArray  # shape (n_cases,): majority of the panel: 1 = unusual and relevant, 0 = not, NaN = no majority
    planted: NDArray[np.bool_]  # shape (n_recent, n_tasks)


@dataclass(frozen=True)
class TaskData:
    """One task's instances as every method sees them."""

    features: NDArray[np.float32]  # shape (n_past + n_recent, n_features)
    y: FloatArray  # shape (n_past + n_recent,)
    n_past: int

    @property
    def past_y(self) -> FloatArray:
        """Decisions of past instances."""
        return self.y[: self.n_past]

    def nodes(self, n_nodes: int, seed: int, run: int, task: int) -> SampledNodes:
        """Draw the nodes of a run, as many positive as negative ones."""
        return sample_balanced_nodes(self.past_y, n_nodes, np.random.default_rng([seed, run, task]))

    def scaled(self, score: FloatArray) -> FloatArray:
        """Scale scores of all instances so that those of past ones range from 0 to 1."""
        return ScoreScaler().fit(score[: self.n_past]).transform(score)


def task_data(prepared: PreparedInstances, task: int) -> TaskData:
    """Collect what methods need of one task."""
    features = weighted_task_rows(prepared, task).dense()
    positive = np.concatenate((prepared.past_positive(task), prepared.recent_positive(task)))
    return TaskData(np.ascontiguousarray(features, dtype=np.float32), np.where(positive, 1.0, -1.0), prepared.n_past)


def soft_labels(data: TaskData, nodes: SampledNodes, regularization: float, n_neighbors: int = 75) -> FloatArray:
    """Return soft labels l* of all instances, own label included, each tied to the graph by itself; c_l = 1.

    The paper, eq. (had:sle) and section "Backbone Graph".
    """
    parameters = ScoringParameters(n_neighbors=n_neighbors, regularization=regularization)
    graph = build_task_graph(data.features, data.past_y, nodes, None, parameters)
    # The paper pulls soft labels towards 0, whatever the prior.
    graph = replace(graph, labels=data.past_y[nodes.rows], center=0.0)
    soft_label = soft_labels_with_own(graph, data.features, data.y, n_neighbors)
    soft_label[nodes.rows] = graph.soft_labels()
    return soft_label


def neighbour_scores(data: TaskData, nodes: SampledNodes, n_neighbors: int = 75) -> FloatArray:
    """Return scores |vote - y| of all instances by weighted k-NN on the graph of the nodes, multiplicities included.

    When labels are trusted without limit, none passes a labelled node: the soft label without the own label is then the
    weighted vote of the neighbours (the hard harmonic solution of a fully labelled graph).
    """
    parameters = ScoringParameters(n_neighbors=n_neighbors, label_weight=_TRUST_WITHOUT_LIMIT)
    graph = build_task_graph(data.features, data.past_y, nodes, None, parameters)
    found = extend(graph, data.features, np.full(len(data.y), NOBODY, dtype=np.int64), n_neighbors)
    a = found.conductance
    vote = np.divide(found.inflow, a, out=np.zeros_like(a), where=a > 0)
    return np.asarray(np.abs(vote - data.y), dtype=np.float64)


def svm_scores(data: TaskData, nodes: SampledNodes, cost: float) -> FloatArray:
    """Return the scores of all instances by a support vector machine fitted on the nodes."""
    rows = nodes.rows
    machine = SupportVectors(C=cost).fit(data.features[rows], data.y[rows])
    return machine.score_samples(data.features, data.y)


def simulated_hospital(folder: Path, n_patients: int, seed: int) -> tuple[Cohort, FloatArray, NDArray[np.bool_]]:
    """Simulate a hospital, or read it where it was simulated before: cohort, true scores and planted decisions."""
    source = folder / f"hospital-{n_patients}-{seed}"
    if not (source / TRUTH).exists():
        write_meds(simulate_cohort(n_patients=n_patients, seed=seed, planted_rate=PLANTED_RATE), source)
    cohort, _ = build_cohort(source)
    true_score, planted = load_truth(source, cohort)
    return cohort, true_score, planted


def set_up(folder: Path, n_patients: int, seed: int, n_cases: int = N_CASES) -> MedicalStudy:
    """Simulate the hospital, choose cases over the SVM's scores, and let the panel judge them.

    The seed is that of the hospital, the split, the cases and the panel. The paper, section "Medical data".
    """
    cohort, true_score, planted = simulated_hospital(folder, n_patients, seed)
    patients = group_codes(cohort.instances["patient_id"].to_numpy(), len(cohort.instances))
    order = np.random.default_rng([seed, 0]).permutation(patients.max() + 1)
    is_past = np.isin(patients, order[: round(PAST_SHARE * len(order))])
    past, recent = np.flatnonzero(is_past), np.flatnonzero(~is_past)
    n_positive = np.asarray(cohort.decisions[past].sum(axis=0)).ravel()
    usable = (n_positive >= MIN_POSITIVES) & (n_positive <= len(past) - MIN_POSITIVES)
    prepared = prepare_instances(
        cohort.features,
        sparse.csc_matrix(cohort.decisions),
        cohort.feature_dictionary["is_flag"].to_numpy(dtype=bool),
        patients,
        past,
        recent,
        ScoringParameters(n_features_kept=N_FEATURES),
        cohort.feature_dictionary["aspect"].astype(str).str.startswith("hours_").to_numpy(),
    )
    tasks = tuple(int(task) for task in np.flatnonzero(usable & (prepared.kept_features[:, 0] >= 0)))
    scores = np.column_stack([_selection_scores(prepared, task, seed) for task in tasks])
    case_row, case_task = _choose(scores, patients[recent], _whole_windows(cohort, recent), seed, n_cases)
    places = np.ix_(recent, np.array(tasks))
    truth, is_planted = true_score[places], planted[places]
    label = _judge(truth[case_row, case_task], is_planted[case_row, case_task], seed)
    names = tuple(cohort.tasks["name"].iloc[list(tasks)].astype(str))
    return MedicalStudy(prepared, tasks, names, case_row, case_task, label, is_planted)


def _selection_scores(prepared: PreparedInstances, task: int, seed: int) -> FloatArray:
    data = task_data(prepared, task)
    # Its own draw, which no run repeats: the cases are not chosen by a machine that is measured on them.
    nodes = sample_balanced_nodes(data.past_y, N_NODES, np.random.default_rng([seed, task]))
    return data.scaled(svm_scores(data, nodes, 1.0))[prepared.n_past :]


def _whole_windows(cohort: Cohort, recent: IntArray) -> NDArray[np.bool_]:
    return np.asarray(cohort.instances["window_hours"].to_numpy()[recent] >= 24)


def _choose(
    scores: FloatArray, patients: IntArray, whole: NDArray[np.bool_], seed: int, n_cases: int
) -> tuple[IntArray, IntArray]:
    n_tasks = scores.shape[1]
    chosen = choose_cases(
        scores.ravel(),
        np.repeat(patients, n_tasks),
        SelectionDesign(n_cases=n_cases, quantiles=LOW_AND_MIDDLE, seed=seed + _CASES),
        eligible=np.repeat(whole, n_tasks),
    ).index
    return chosen // n_tasks, chosen % n_tasks


def _judge(true_score: FloatArray, planted: NDArray[np.bool_], seed: int) -> FloatArray:
    """Return the majority label of three simulated readers; planted or unlikely decisions are relevant."""
    relevant = planted | (true_score >= RELEVANT_FROM)
    answers = simulate_votes(relevant, true_score, SimulatedPanel(), seed=seed + _VOTES).answers
    return np.asarray(majority_label(answers).label)
