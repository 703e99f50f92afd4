"""The command that says how much a run depends on graph size and regularisation."""

from pathlib import Path

import click

from alertreview.cli_options import site_options
from alertreview.settings import load_settings


@click.command()
@click.option("--run", "run_id", type=click.IntRange(1), help="Number of a published run (default: the newest).")
@click.option("--jobs", type=click.IntRange(1), help="Tasks scored side by side (default: one a processor).")
@site_options
def sensitivity(run_id: int | None, jobs: int | None, home: Path | None, database: str | None) -> None:
    """Score a run's import anew at other graph sizes and regularisers, and keep the curves for the Runs page.

    At each setting: the share of the run's first 50 omissions and 50 commissions that are found again, and the AUC on
    the judged study of the run, if there is one. Takes about nine times as long as scoring; the run stays as it is.
    """
    from alertreview.bootstrap import open_database
    from alertreview.console import progress_bar
    from alertreview.sensitivity import compute_sensitivity

    settings = load_settings(home, database)
    with open_database(settings, upgrade=True) as site_database, progress_bar("Varying") as progress:
        number, found = compute_sensitivity(settings, site_database, run_id, n_jobs=jobs, progress=progress)
    click.echo(f"Sensitivity of run {number}, nodes drawn with seed {found.seed}; shown on the Runs page.")
    click.echo(f"{'scorer':14} {'varied':15} {'setting':>8} {'shared':>7}  AUC")
    for point in found.points:
        auc = point.auc.text()
        click.echo(f"{point.scorer:14} {point.varied.value:15} {point.setting:8g} {100 * point.shared:6.0f}%  {auc}")
