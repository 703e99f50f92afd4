"""Commands that repeat the paper's experiments, with today's methods beside them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from alertreview.cli_options import log_the_unforeseen

if TYPE_CHECKING:
    from alertreview.reproduce import Options, Results


@click.group()
def reproduce() -> None:
    """Repeat the paper's tables and figures, with today's methods beside its own.

    Tables are printed and written to --out, with every run and the figures. An interrupted experiment is continued by
    the same command; more --runs add to those that are done.
    """


def experiment_options(runs: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of an experiment, with its usual number of runs."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        command = log_the_unforeseen(command)
        for option in (
            click.option(
                "--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of everything drawn."
            ),
            click.option(
                "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Runs done side by side."
            ),
            click.option(
                "--out",
                type=click.Path(path_type=Path, file_okay=False),
                default=Path("reproduced"),
                show_default=True,
                help="Folder for tables, figures and finished runs.",
            ),
            click.option("--runs", type=click.IntRange(1), default=runs, show_default=True, help="How many runs."),
        ):
            command = option(command)
        return command

    return decorate


def _run(title: str, experiment: Callable[..., "Results"], options: "Options", *arguments: Any) -> None:
    from alertreview.console import progress_bar
    from alertreview.reproduce import make_folder

    make_folder(options.out)
    with progress_bar(title) as progress:
        results = experiment(options, *arguments, progress)
    for line in results.lines():
        click.echo(line)
    click.echo("\nWritten: " + ", ".join(str(path) for path in results.write(options)))


@reproduce.command()
@experiment_options(runs=100)
def synthetic(runs: int, out: Path, jobs: int, seed: int) -> None:
    """Agreement with the true anomaly score on D1, D2 and D3, and the top five of each method."""
    from alertreview.reproduce import Options
    from alertreview.reproduce_synthetic import reproduce_synthetic

    _run("Synthetic data", reproduce_synthetic, Options(runs, seed, jobs, out))


@reproduce.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with winequality-red.csv, housing.data and auto-mpg.data (default: download them).",
)
@experiment_options(runs=100)
def uci(data: Path | None, runs: int, out: Path, jobs: int, seed: int) -> None:
    """Agreement with the true anomaly score on Wine Quality (red), Housing and Auto MPG."""
    from alertreview.reproduce import Options
    from alertreview.reproduce_uci import reproduce_uci

    _run("UCI data", reproduce_uci, Options(runs, seed, jobs, out), data)


@reproduce.command()
@experiment_options(runs=10)
def sensitivity(runs: int, out: Path, jobs: int, seed: int) -> None:
    """AUC by graph size and by regularisation on a simulated hospital with a simulated panel of three readers."""
    from alertreview.reproduce import Options
    from alertreview.reproduce_sensitivity import reproduce_sensitivity

    _run("Graph size and regularisation", reproduce_sensitivity, Options(runs, seed, jobs, out))


@reproduce.command()
@experiment_options(runs=1)
def scaling(runs: int, out: Path, jobs: int, seed: int) -> None:
    """Histograms of two tasks' soft labels, raw and scaled, with the most unusual omission of each."""
    from alertreview.reproduce import Options
    from alertreview.reproduce_scaling import reproduce_scaling

    _run("Scaling", reproduce_scaling, Options(runs, seed, jobs, out))
