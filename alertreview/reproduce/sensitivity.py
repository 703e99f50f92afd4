"""The paper's medical figures on a simulated hospital: AUC by graph size and by regularisation, scaled and unscaled."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from alertreview.reports.blocks import Figure
from alertreview.reports.figures import settings_curves
from alertreview.reproduce.medical import (
    N_NODES,
    MedicalStudy,
    TaskData,
    neighbour_scores,
    set_up,
    soft_labels,
    svm_scores,
    task_data,
)
from alertreview.reproduce.paper import Grid, Options, Results, Row, collect_runs, mean_and_spread
from alertreview.settings import Progress
from core.evaluation import rank_auc
from core.scoring.calibration import calibrate, soft_label_evidence
from core.scoring.evidence import expectation_and_support
from core.scoring.parameters import ScoringParameters
from core.scoring.task_graph import build_task_graph, extend
from core.statistics.estimate import Estimate
from core.validation import FloatArray

SIZES: Final = (50, 100, 200, 400)
REGULARIZERS: Final = (0.01, 0.1, 1.0, 10.0, 100.0)
N_PATIENTS: Final = 200
N_TOP: Final = 50
N_GRAPHS: Final = 3
SOFTHAD, KNN, SVM, DEFAULT = "SoftHAD", "weighted k-NN", "SVM", "softhad, the default"
EXPLANATION: Final = (
    "A simulated hospital of {patients} patients in the paper's set-up: past and recent patients apart, {tasks} tasks, "
    "222 pairs of an instance and a decision, a third each from the lower 80 %, the next 18 % and the highest 2 % of "
    "an SVM's scores, judged by a simulated panel of three; {labelled} have a majority, {positive} of them for unusual "
    "and relevant. Ten per cent of the decisions taken were dropped and as many added. Each run draws new nodes "
    "and everything else stays, so that the spread is that of the graphs alone. Readers err in a quarter of the "
    "relevant cases, which bounds every AUC."
)

Scores = dict[tuple[str, float], FloatArray]


def task_scores(data: TaskData, task: int, seed: int, run: int) -> Scores:
    """Return the scores of all instances of one task by (method, setting), higher = more unusual, for the two figures.

    The settings of "size" methods are numbers of nodes, the others regularisers.
    """
    found: Scores = {}
    for size in SIZES:
        nodes = data.nodes(size, seed, run, task)
        found[f"{SOFTHAD} by size", size] = np.abs(soft_labels(data, nodes, 1.0) - data.y)
        found[f"{KNN} by size", size] = neighbour_scores(data, nodes)
        if size == N_NODES:
            for value in REGULARIZERS:
                same = found[f"{SOFTHAD} by size", size]
                found[SOFTHAD, value] = same if value == 1.0 else np.abs(soft_labels(data, nodes, value) - data.y)
                found[SVM, value] = svm_scores(data, nodes, value)
    return found


def default_scores(study: MedicalStudy, seed: int, run: int) -> FloatArray:
    """Return the scores of recent instances by the default scorer: support x calibrated P, mean over three graphs."""
    groups, n_past, parameters = study.prepared.groups, study.prepared.n_past, ScoringParameters()
    evidence: list[FloatArray] = []
    supports: list[FloatArray] = []
    decisions: list[FloatArray] = []

    def past_positive(place: int) -> FloatArray:
        return np.asarray(decisions[place][:n_past] > 0, dtype=np.float64)

    for task in study.tasks:
        data = task_data(study.prepared, task)
        left_out, support = np.zeros(len(data.y)), np.zeros(len(data.y))
        for number in range(N_GRAPHS):
            nodes = data.nodes(N_NODES, seed, run, task + number * len(study.prepared.kept_features))
            graph = build_task_graph(data.features, data.past_y, nodes, groups, parameters)
            found = extend(graph, data.features, groups, parameters.n_neighbors)
            expected, tied = expectation_and_support(graph, found)
            left_out += expected / N_GRAPHS
            support += tied / N_GRAPHS
        evidence.append(soft_label_evidence(left_out))
        supports.append(support[n_past:])
        decisions.append(data.y)
    lines = calibrate(lambda place: evidence[place][:n_past], past_positive, len(decisions))
    columns = [
        supports[place] / (1 + np.exp(y[n_past:] * lines.log_odds(place, evidence[place][n_past:])))
        for place, y in enumerate(decisions)
    ]
    return np.column_stack(columns)


def one_run(study: MedicalStudy, seed: int, run: int) -> list[Row]:
    """Return the rows of one run: AUC on the judged cases and the top fifty, by method, setting and scaling."""
    n_past = study.prepared.n_past
    columns: dict[tuple[str, float, bool], list[FloatArray]] = {}
    for task in study.tasks:
        data = task_data(study.prepared, task)
        for (method, setting), score in task_scores(data, task, seed, run).items():
            columns.setdefault((method, setting, False), []).append(score[n_past:])
            columns.setdefault((method, setting, True), []).append(data.scaled(score)[n_past:])
    tables = {key: np.column_stack(found) for key, found in columns.items()}
    tables[DEFAULT, N_NODES, False] = default_scores(study, seed, run)
    return [
        {
            "method": method,
            "setting": setting,
            "scaled": scaled,
            "auc": _case_auc(study, scores),
            "planted_auc": rank_auc(study.planted.ravel(), scores.ravel()),
            "top": sorted(np.argsort(-scores.ravel(), kind="stable")[:N_TOP].tolist()),
        }
        for (method, setting, scaled), scores in tables.items()
    ]


def _case_auc(study: MedicalStudy, scores: FloatArray) -> float:
    judged: NDArray[np.bool_] = ~np.isnan(study.label)
    return rank_auc(study.label[judged], scores[study.case_row, study.case_task][judged])


def overlap(tops: Sequence[Sequence[int]]) -> list[float]:
    """Return the members that the lists of two runs share, for every pair of runs."""
    return [float(len(set(first) & set(second))) for first, second in combinations(tops, 2)]


def _of(rows: Sequence[Row], method: str, setting: float, scaled: bool, figure: str) -> list[Any]:
    return [
        row[figure] for row in rows if row["method"] == method and row["setting"] == setting and row["scaled"] == scaled
    ]


def _settings(rows: Sequence[Row]) -> list[tuple[str, float, bool]]:
    return list(dict.fromkeys((row["method"], row["setting"], row["scaled"]) for row in rows))


def curve_grid(
    rows: Sequence[Row], name: str, caption: str, methods: Mapping[str, str], ticks: Sequence[float]
) -> Grid:
    """Return the AUC of several methods, keyed as in the rows, by one setting, unscaled and scaled."""
    made = [
        (f"{shown}, {word}", *(mean_and_spread(_of(rows, method, tick, scaled, "auc")) for tick in ticks))
        for method, shown in methods.items()
        for scaled, word in ((False, "unscaled"), (True, "scaled"))
    ]
    return Grid(name, caption, ("AUC, %", *(f"{tick:g}" for tick in ticks)), made)


def _figure(rows: Sequence[Row], methods: Mapping[str, str], ticks: Sequence[float], x_title: str) -> Figure:
    curves = {}
    for method, shown in methods.items():
        for scaled, word in ((False, "unscaled"), (True, "scaled")):
            found = [np.array(_of(rows, method, tick, scaled, "auc")) for tick in ticks]
            ends = [(a.mean(), a.std(ddof=1) if len(a) > 1 else 0.0) for a in found]
            curves[f"{shown}, {word}"] = [Estimate(float(m), float(m - sd), float(m + sd)) for m, sd in ends]
    names = [f"{tick:g}" for tick in ticks]
    drawing = settings_curves(names, curves, x_title, "AUC on the judged cases", bars="one standard deviation")
    return Figure(drawing, f"AUC by {x_title}; bars are one standard deviation over runs.")


_BY_SIZE: Final = {f"{SOFTHAD} by size": SOFTHAD, f"{KNN} by size": KNN}
_BY_REGULARIZER: Final = {SOFTHAD: f"{SOFTHAD} (γ_g)", SVM: f"{SVM} (cost c)"}


def _stability(rows: Sequence[Row]) -> Grid:
    header = (
        "of the 50 most unusual, shared by two runs",
        "mean (SD) over pairs",
        "AUC of the judged cases",
        "planted",
    )
    made = []
    for method, setting, scaled in _settings(rows):
        if setting == N_NODES or (method in _BY_SIZE and setting == SIZES[-1]):
            shown = f"{_BY_SIZE.get(method, method)}, {setting:g} nodes" + (", scaled" if scaled else "")
            tops = _of(rows, method, setting, scaled, "top")
            cells = [mean_and_spread(_of(rows, method, setting, scaled, figure)) for figure in ("auc", "planted_auc")]
            made.append((shown, mean_and_spread(overlap(tops), percent=False), *cells))
    caption = (
        "Stability of the top of the list between two draws of nodes, and the AUC of finding all planted decisions"
    )
    return Grid("stability", caption, header, made)


def reproduce_sensitivity(options: Options, progress: Progress, n_patients: int = N_PATIENTS) -> Results:
    """Repeat the paper's figures of graph size and regularisation on a simulated hospital."""
    study = set_up(options.out / "simulated", n_patients, options.seed)
    settings = {"n_patients": n_patients, "sizes": SIZES, "regularizers": REGULARIZERS}
    rows = collect_runs(partial(one_run, study, options.seed), options, "sensitivity", settings, progress)
    by_size = curve_grid(rows, "graph-size", "AUC by nodes in the graph, γ_g = 1", _BY_SIZE, SIZES)
    by_regularizer = curve_grid(rows, "regularisation", "AUC by regulariser, 200 nodes", _BY_REGULARIZER, REGULARIZERS)
    summary = [
        {
            "method": method,
            "setting": setting,
            "scaled": scaled,
            "auc_mean": float(np.mean(_of(rows, method, setting, scaled, "auc"))),
            "planted_auc_mean": float(np.mean(_of(rows, method, setting, scaled, "planted_auc"))),
            "top_50_shared": overlap(_of(rows, method, setting, scaled, "top")),
        }
        for method, setting, scaled in _settings(rows)
    ]
    return Results(
        name="sensitivity",
        title="Graph size and regularisation on a simulated hospital",
        explanation=EXPLANATION.format(
            patients=n_patients,
            tasks=len(study.tasks),
            labelled=int((~np.isnan(study.label)).sum()),
            positive=int(np.nansum(study.label)),
        ),
        simulated=True,
        rows=[{**row, "top": " ".join(map(str, row["top"]))} for row in rows],
        grids=(by_size, by_regularizer, _stability(rows)),
        figures=(
            _figure(rows, _BY_SIZE, SIZES, "number of nodes"),
            _figure(rows, _BY_REGULARIZER, REGULARIZERS, "regulariser"),
        ),
        summary={"settings": summary},
    )
