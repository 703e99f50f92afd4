"""Repeated experiments: runs are kept, go on, do not depend on jobs; tables say what was measured."""

import csv
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from alertreview.cli.main import main
from alertreview.reproduce.paper import (
    Grid,
    Options,
    Results,
    Row,
    Spill,
    collect_runs,
    difference_and_error,
    mean_and_spread,
)
from alertreview.reproduce.synthetic import draw_run, top_of_each
from alertreview.reproduce.tables import TRUTH, best_of, by_method, duels, measure
from alertreview.reproduce.uci import Responses, one_run, split_responses
from core.baselines import Logistic, QuadraticDiscriminant
from core.errors import SourceError
from core.scoring.variants import CalibratedSoftHAD

METHODS = {"QDA": QuadraticDiscriminant, "logistic regression": Logistic, "SoftHAD (calibrated)": CalibratedSoftHAD}


def options(out: Path, runs: int = 3, jobs: int = 1) -> Options:
    return Options(runs=runs, seed=1, jobs=jobs, out=out)


def nothing(done: int, total: int) -> None:
    """Show no progress."""


def draw(folder: Path, run: int) -> list[Row]:
    """Leave a trace of having been called, and draw from the run alone."""
    with (folder / "called").open("a", encoding="utf-8") as trace:
        trace.write(f"{run}\n")
    return [{"value": float(np.random.default_rng(run).normal())}]


def called(folder: Path) -> list[int]:
    return sorted(int(line) for line in (folder / "called").read_text(encoding="utf-8").split())


def test_finished_runs_are_not_repeated_and_more_runs_add_to_them(tmp_path: Path) -> None:
    work = partial(draw, tmp_path)
    first = collect_runs(work, options(tmp_path, runs=2), "x", {}, nothing)
    more = collect_runs(work, options(tmp_path, runs=4), "x", {}, nothing)
    assert called(tmp_path) == [0, 1, 2, 3]
    assert more[:2] == first
    assert [row["run"] for row in more] == [0, 1, 2, 3]


def test_an_interrupted_experiment_goes_on_and_gives_the_same_rows(tmp_path: Path) -> None:
    def stopped(run: int) -> list[Row]:
        if run == 2:
            raise KeyboardInterrupt
        return draw(tmp_path, run)

    with pytest.raises(KeyboardInterrupt):
        collect_runs(stopped, options(tmp_path), "x", {}, nothing)
    assert called(tmp_path) == [0, 1]
    rows = collect_runs(partial(draw, tmp_path), options(tmp_path), "x", {}, nothing)
    assert called(tmp_path) == [0, 1, 2]
    (tmp_path / "fresh").mkdir()
    assert rows == collect_runs(partial(draw, tmp_path), options(tmp_path / "fresh"), "x", {}, nothing)


def test_runs_of_other_settings_and_torn_files_are_done_again(tmp_path: Path) -> None:
    work = partial(draw, tmp_path)
    collect_runs(work, options(tmp_path, runs=2), "x", {"k": 1}, nothing)
    collect_runs(work, options(tmp_path, runs=2), "x", {"k": 2}, nothing)
    assert called(tmp_path) == [0, 0, 1, 1]
    (tmp_path / "runs" / "x" / "run-0000.json").write_text("{", encoding="utf-8")
    collect_runs(work, options(tmp_path, runs=2), "x", {"k": 2}, nothing)
    assert called(tmp_path) == [0, 0, 0, 1, 1]
    assert Spill(tmp_path / "runs" / "x", {"k": 9}).read(1) is None


def test_progress_counts_what_was_done_before(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    collect_runs(partial(draw, tmp_path), options(tmp_path, runs=1), "x", {}, nothing)
    collect_runs(partial(draw, tmp_path), options(tmp_path), "x", {}, lambda *counts: seen.append(counts))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def regression(n: int = 90, seed: int = 0) -> Responses:
    random = np.random.default_rng(seed)
    X = np.column_stack((random.normal(size=(n, 3)), np.ones(n)))
    return Responses("small", X, X[:, 0] + 0.3 * random.normal(size=n) + 7.0, 0)


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    work = partial(one_run, (regression(200),), 1)
    alone = collect_runs(work, options(tmp_path / "alone", runs=2), "uci", {}, nothing)
    together = collect_runs(work, options(tmp_path / "together", runs=2, jobs=2), "uci", {}, nothing)
    assert alone == together


def test_a_split_is_the_papers() -> None:
    data = regression(300)
    split = split_responses(data, np.random.default_rng(5))
    assert len(split.past[1]) == 200
    assert len(split.recent[1]) == 100
    # A switched label lies on the other side of the scaled response, so its true score is 1 or more, and 1 or less
    # otherwise: |y_r - y| with y_r in [-1, 1].
    assert (split.true_score[split.flipped] >= 1).all()
    assert (split.true_score[~split.flipped] <= 1).all()
    np.testing.assert_allclose(split.past[0][:, :3].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(split.past[0][:, :3].std(axis=0), 1)
    assert (split.past[0][:, 3] == 0).all()


def test_three_per_cent_of_all_labels_are_switched_and_every_run_draws_anew() -> None:
    data = regression(300)
    scaled = 2 * (data.response - data.response.min()) / np.ptp(data.response) - 1
    positive = []
    for run in range(2):
        split = split_responses(data, np.random.default_rng(run))
        y = np.concatenate((split.past[1], split.recent[1]))
        assert abs(int((y > 0).sum()) - int((scaled >= 0).sum())) <= 9
        positive.append(y)
    assert not np.array_equal(*positive)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    found = []
    for run in range(3):
        past, recent = draw_run("D1", 1, run, 60)
        measured = measure("D1", (past.X, past.y), (recent.X, recent.y), recent.true_score, recent.flipped, METHODS)
        found += [{"run": run, **row} for row in measured]
    return found


def test_the_true_score_agrees_wholly_with_itself(rows: list[Row]) -> None:
    assert {row["agreement"] for row in rows if row["method"] == TRUTH} == {1.0}
    assert all(0 <= row[figure] <= 1 for row in rows for figure in ("agreement", "flip_auc"))
    assert [row["method"] for row in rows[:4]] == [TRUTH, *METHODS]


def test_the_table_sets_the_papers_figure_beside_its_method_only(rows: list[Row]) -> None:
    grid = by_method(rows, ["D1"], {"QDA": ["73.4 (2.4)"]})
    by_name = {row[0]: row for row in grid.rows}
    assert by_name["QDA"][2] == "73.4 (2.4)"
    assert by_name["logistic regression"][2] == ""
    found = np.array([row["agreement"] for row in rows if row["method"] == "QDA"]) * 100
    assert by_name["QDA"][1] == f"{found.mean():.1f} ({found.std(ddof=1):.1f})"


def test_duels_are_paired_within_runs_and_losses_are_shown() -> None:
    made = [
        {"run": run, "data": "A", "method": method, "agreement": value + run / 10, "flip_auc": 0.5}
        for run in range(3)
        for method, value in (("QDA", 0.5), ("logistic regression", 0.7), ("SoftHAD (calibrated)", 0.6))
    ]
    grid, leads = duels(made, ["A"])
    shown = dict(grid.rows)
    assert shown["best SoftHAD variant"] == "SoftHAD (calibrated)"
    assert shown["strongest peer"] == best_of(made, "A", ["QDA", "logistic regression"]) == "logistic regression"
    assert shown["ahead of QDA by"] == "+10.0 ± 0.0, ahead in 100% of runs"
    assert shown["ahead of logistic regression by"] == "-10.0 ± 0.0, ahead in 0% of runs"
    assert leads == {"A": True}


def test_figures_of_one_run_have_no_spread() -> None:
    assert mean_and_spread([0.5]) == "50.0 (–)"
    assert mean_and_spread([]) == "–"
    assert difference_and_error([0.5], [0.25]) == "+25.0 ± –"


def test_the_top_of_the_truth_comes_first() -> None:
    past, recent = draw_run("D3", 1, 0, 60)
    tops = top_of_each(past, recent)
    assert next(iter(tops)) == TRUTH
    limit = np.sort(recent.true_score)[-5]
    assert (recent.true_score[tops[TRUTH]] >= limit).all()
    assert {len(rows) for rows in tops.values()} == {5}


def test_written_files_say_that_data_are_simulated(tmp_path: Path) -> None:
    grid = Grid("t", "A caption", ("name", "value"), [("a", "1.0")])
    rows: list[Row] = [{"run": 0, "x": 1.5}]
    for simulated in (True, False):
        results = Results("name", "Title", "What was done.", simulated, rows, (grid,), summary={"x": 1})
        paths = results.write(options(tmp_path))
        assert [path.suffix for path in paths] == [".csv", ".json", ".html", ".md"]
        table = list(csv.DictReader((tmp_path / "name.csv").read_text(encoding="utf-8").splitlines()))
        assert table == [{"run": "0", "x": "1.5", "simulated": str(simulated)}]
        about = json.loads((tmp_path / "name.json").read_text(encoding="utf-8"))
        assert about["about"]["simulated"] is simulated
        assert about["tables"]["t"]["rows"] == [["a", "1.0"]]
        page = (tmp_path / "name.html").read_text(encoding="utf-8")
        assert ("Simulated data" in page) is simulated
        assert any("Simulated data" in line for line in results.lines()) is simulated


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SourceError, match=r"file.x.*--out another folder"):
        collect_runs(partial(draw, tmp_path), options(tmp_path / "file" / "x"), "x", {}, nothing)


def test_the_command_prints_tables_writes_files_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import alertreview.reproduce.uci as module

    monkeypatch.setattr(module, "read_uci", lambda data, downloads: (regression(),))
    monkeypatch.setattr(module, "PAPER", {"QDA": ("75.1 (1.3)",)})
    monkeypatch.setattr(module, "measure", small_measure(module.measure))
    command = ["reproduce", "uci", "--out", str(tmp_path), "--data", str(tmp_path), "--runs"]
    assert main([*command, "1"]) == 0
    assert main([*command, "2"]) == 0
    shown = capsys.readouterr().out
    assert "75.1 (1.3)" in shown
    assert "ahead of all the paper's baselines" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs", "uci.csv", "uci.html", "uci.json", "uci.md"]
    assert json.loads((tmp_path / "uci.json").read_text(encoding="utf-8"))["about"]["runs"] == 2


def small_measure(measure: Callable[..., list[Row]]) -> Callable[..., list[Row]]:
    return partial(measure, detectors=METHODS)


def test_a_missing_file_is_one_line_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "nowhere")
    assert main(["reproduce", "uci", "--data", missing, "--out", str(tmp_path / "out"), "--runs", "1"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("alertreview: ")
    assert missing in error
    assert error.count("\n") == 1
