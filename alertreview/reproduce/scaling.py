"""The paper's figure of two tasks whose soft labels range differently, raw and scaled, on a simulated hospital."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from alertreview.reports.blocks import Figure
from alertreview.reports.plot import Anchor, Axis, Box, Plot, Segment, Stroke, Tone, Words
from alertreview.reproduce.medical import N_NODES, MedicalStudy, set_up, soft_labels, task_data
from alertreview.reproduce.paper import Grid, Options, Results, Row, collect_runs
from alertreview.settings import Progress
from core.errors import InvalidInputError
from core.validation import FloatArray

N_PATIENTS: Final = 200
EXPLANATION: Final = (
    "Two tasks of a simulated hospital. Raw: the soft label of every recent instance, as a share between 0 (should not "
    "be done) and 1 (should be done). Scaled: the same, so that those of the past range from 0 to 1. The arrow of each "
    "task points to its most unusual omission. Of all pairs of tasks the one is shown in which scaling turns the two "
    "omissions round most clearly: the one of the higher raw value is the less extreme within its own task. On average "
    "over the runs that is so in {turned} of {pairs} pairs."
)


@dataclass(frozen=True)
class TaskRange:
    """Soft labels of one task, as shares in [0, 1]."""

    name: str
    recent: FloatArray  # shape (n_recent,)
    # `low` and `high`: of the past.
    low: float
    high: float
    marked: float  # largest among recent instances without the decision

    def scaled(self, values: FloatArray | float) -> FloatArray:
        """Scale values so that those of the past range from 0 to 1."""
        return np.asarray((values - self.low) / (self.high - self.low))


def task_ranges(study: MedicalStudy, seed: int, run: int) -> list[TaskRange]:
    """Return the range of every task's soft labels, and its most unusual omission."""
    found = []
    for task, name in zip(study.tasks, study.names, strict=True):
        data = task_data(study.prepared, task)
        share = (soft_labels(data, data.nodes(N_NODES, seed, run, task), 1.0) + 1) / 2
        past, recent = share[: data.n_past], share[data.n_past :]
        omitted = recent[data.y[data.n_past :] < 0]
        if len(omitted) and past.max() > past.min():
            found.append(TaskRange(name, recent, float(past.min()), float(past.max()), float(omitted.max())))
    return found


def turned_pairs(ranges: list[TaskRange]) -> list[tuple[float, int, int]]:
    """Return the pairs (clearness, first, second): the first is higher raw and lower scaled; clearest first."""
    raw = np.array([task.marked for task in ranges])
    scaled = np.array([float(task.scaled(task.marked)) for task in ranges])
    first, second = np.nonzero((raw[:, None] > raw) & (scaled[:, None] < scaled))
    clearness = np.minimum(raw[first] - raw[second], scaled[second] - scaled[first])
    order = np.argsort(-clearness, kind="stable")
    return [(float(clearness[i]), int(first[i]), int(second[i])) for i in order]


def marked_histogram(values: FloatArray, marked: float, title: str, x_title: str) -> Plot:
    """Return a histogram over [0, 1] with an arrow at one instance, which may lie a little outside."""
    counts, edges = np.histogram(np.clip(values, 0.0, 1.0), bins=30, range=(0.0, 1.0))
    top = float(max(counts.max(), 1))
    x = min(max(marked, 0.0), 1.0)
    return Plot(
        (
            *(
                Box((a, 0), (b - 0.002, n), Tone.BARS, filled=True)
                for n, a, b in zip(counts, edges, edges[1:], strict=False)
            ),
            Words((0, 1.25 * top), title, Tone.TEXT, bold=True, shift=(0, 4)),
            Segment((x, 1.08 * top), (x, 0.01 * top), Stroke(Tone.TEXT, 2), arrow=True),
            Words((x, 1.08 * top), f"{marked:.2f}", Tone.TEXT, Anchor.MIDDLE, shift=(0, 4)),
        ),
        f"{title}: histogram of {len(values)} values between {values.min():.2f} and {values.max():.2f}; "
        f"the arrow points to {marked:.2f}.",
        Axis(0, 1, x_title, tuple((tick / 4, f"{tick / 4:g}") for tick in range(5))),
        Axis(0, 1.25 * top, ticks=((top, f"{top:.0f}"),), line=False),
        height=175,
    )


def one_run(study: MedicalStudy, seed: int, run: int) -> list[Row]:
    """Return the rows of one run: range and most unusual omission of every task."""
    ranges = task_ranges(study, seed, run)
    n_turned = len(turned_pairs(ranges))
    return [
        {
            "task": task.name,
            "low": task.low,
            "high": task.high,
            "marked": task.marked,
            "marked_scaled": float(task.scaled(task.marked)),
            "turned_pairs": n_turned,
        }
        for task in ranges
    ]


def reproduce_scaling(options: Options, progress: Progress, n_patients: int = N_PATIENTS) -> Results:
    """Repeat the paper's figure of two tasks, raw and scaled, on a simulated hospital.

    Raise InvalidInputError when no two tasks are turned round, so that there is nothing to show.
    """
    study = set_up(options.out / "simulated", n_patients, options.seed)
    rows = collect_runs(partial(one_run, study, options.seed), options, "scaling", {"n_patients": n_patients}, progress)
    ranges = task_ranges(study, options.seed, 0)
    pairs = turned_pairs(ranges)
    if not pairs:
        raise InvalidInputError(
            f"Scaling turns no two of {len(ranges)} tasks round with seed {options.seed}. Choose another --seed."
        )
    shown = [ranges[place] for place in pairs[0][1:]]
    figures: list[Figure] = []
    cells: list[tuple[str, ...]] = []
    for task in shown:
        scaled = float(task.scaled(task.marked))
        for values, at, word in ((task.recent, task.marked, "raw"), (task.scaled(task.recent), scaled, "scaled")):
            drawing = marked_histogram(values, at, f"{task.name}, {word}", f"soft label, {word}")
            figures.append(Figure(drawing, f"{task.name}: soft labels of recent instances, {word}."))
        cells.append((task.name, f"{task.low:.2f} to {task.high:.2f}", f"{task.marked:.2f}", f"{scaled:.2f}"))
    n_turned = float(np.mean([row["turned_pairs"] for row in {row["run"]: row for row in rows}.values()]))
    caption = "Soft labels of the past, and of the most unusual omission; higher = the order should be done"
    grid = Grid("tasks", caption, ("task", "range in the past", "omission, raw", "omission, scaled"), cells)
    n_pairs = len(ranges) * (len(ranges) - 1) // 2
    return Results(
        name="scaling",
        title="Soft labels of two tasks, raw and scaled",
        explanation=EXPLANATION.format(turned=f"{n_turned:.0f}", pairs=n_pairs),
        simulated=True,
        rows=rows,
        grids=(grid,),
        figures=tuple(figures),
        summary={"turned_pairs_mean": n_turned, "pairs": n_pairs, "shown": [task.name for task in shown]},
    )
