"""Commands that repeat the paper's experiments, with today's methods beside them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from alertreview.cli.options import COUNT, SEED, FilePath, list_format, log_the_unforeseen, with_settings
from alertreview.cli.tables import print_list, tell
from alertreview.settings import Settings
from core.vocabulary import RunId

if TYPE_CHECKING:
    from alertreview.reproduce.paper import Options, Results


@click.group()
def reproduce() -> None:
    """Reproduce the paper's tables and figures, alongside today's methods.

    Tables are printed and written to --out, with every run and the figures. An interrupted experiment is continued by
    the same command; more --runs add to those that are done.
    """


def experiment_options(runs: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for the options of an experiment, with its usual number of runs."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        command = log_the_unforeseen(command)
        for option in (
            click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of everything drawn."),
            click.option("--jobs", type=COUNT, default=1, show_default=True, help="Runs in parallel."),
            click.option(
                "--out",
                type=FilePath(path_type=Path, file_okay=False),
                default=Path("reproduced"),
                show_default=True,
                help="Folder for tables, figures and finished runs.",
            ),
            click.option("--runs", type=COUNT, default=runs, show_default=True, help="How many runs."),
        ):
            command = option(command)
        return command

    return decorate


def _run(title: str, experiment: Callable[..., "Results"], options: "Options", *arguments: Any) -> None:
    from alertreview.cli.console import progress_bar
    from alertreview.reproduce.paper import make_folder

    make_folder(options.out)
    with progress_bar(title) as progress:
        results = experiment(options, *arguments, progress)
    for line in results.lines():
        click.echo(line)
    tell("\nWritten: " + ", ".join(str(path) for path in results.write(options)))


@reproduce.command()
@experiment_options(runs=100)
def synthetic(runs: int, out: Path, jobs: int, seed: int) -> None:
    """Agreement with the true anomaly score on D1, D2 and D3, and the top five of each method."""
    from alertreview.reproduce.paper import Options
    from alertreview.reproduce.synthetic import reproduce_synthetic

    _run("Synthetic data", reproduce_synthetic, Options(runs, seed, jobs, out))


@reproduce.command()
@click.option(
    "--data",
    type=FilePath(path_type=Path),
    help="Folder with winequality-red.csv, housing.data and auto-mpg.data (default: download them).",
)
@experiment_options(runs=100)
def uci(data: Path | None, runs: int, out: Path, jobs: int, seed: int) -> None:
    """Agreement with the true anomaly score on Wine Quality (red), Housing and Auto MPG."""
    from alertreview.reproduce.paper import Options
    from alertreview.reproduce.uci import reproduce_uci

    _run("UCI data", reproduce_uci, Options(runs, seed, jobs, out), data)


@reproduce.command()
@experiment_options(runs=10)
def sensitivity(runs: int, out: Path, jobs: int, seed: int) -> None:
    """AUC by graph size and by regularisation on a simulated hospital with a simulated panel of three readers."""
    from alertreview.reproduce.paper import Options
    from alertreview.reproduce.sensitivity import reproduce_sensitivity

    _run("Graph size and regularisation", reproduce_sensitivity, Options(runs, seed, jobs, out))


@reproduce.command()
@experiment_options(runs=1)
def scaling(runs: int, out: Path, jobs: int, seed: int) -> None:
    """Histograms of two tasks' soft labels, raw and scaled, with the most unusual omission of each."""
    from alertreview.reproduce.paper import Options
    from alertreview.reproduce.scaling import reproduce_scaling

    _run("Scaling", reproduce_scaling, Options(runs, seed, jobs, out))


@click.command("sensitivity")
@click.option("--run", "run_id", type=COUNT, help="Number of a published run (default: the newest).")
@click.option("--jobs", type=COUNT, help="Tasks scored in parallel (default: one per processor).")
@list_format
@with_settings()
def sensitivity_of_run(settings: Settings, run_id: RunId | None, jobs: int | None, output_format: str) -> None:
    """Score a run's import again at other graph sizes and regularisers, and keep the curves for the Runs page.

    At each setting: the share of the run's first 50 omissions and 50 commissions that are found again, and the AUC on
    the judged study of the run, if there is one. Takes about nine times as long as scoring; the run stays as it is.
    """
    from alertreview.cli.console import progress_bar
    from alertreview.operations.upgrade import open_database
    from alertreview.reports.sensitivity import compute_sensitivity

    with open_database(settings, upgrade=True) as site_database, progress_bar("Varying") as progress:
        number, found = compute_sensitivity(settings, site_database, run_id, n_jobs=jobs, progress=progress)
    if output_format == "table":
        tell(f"Sensitivity of run {number}, nodes drawn with seed {found.seed}; shown on the Runs page.")
    print_list(
        found.points,
        {
            "scorer": lambda point: point.scorer,
            "varied": lambda point: point.varied.value,
            "setting": lambda point: point.setting,
            "shared": lambda point: point.shared,
            "auc": lambda point: point.auc.text() if output_format == "table" else point.auc.value,
        },
        output_format,
    )


COMMANDS = (reproduce, sensitivity_of_run)
