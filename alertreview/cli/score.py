"""The command that scores: everything again, or only new instances against what an earlier run learned."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from alertreview.cli.options import COUNT, SEED, list_format, result_format, site_options, with_application
from alertreview.cli.tables import print_list, show, tell_done
from alertreview.settings import Settings, load_settings
from core.errors import NotFoundError

if TYPE_CHECKING:
    from alertreview.application import Application
    from alertreview.scoring.resume import ScoringRequest
    from alertreview.scoring.score_site import PublishedRun, ScoringOutcome
    from alertreview.settings import Progress
    from db.database import Database

LEARNING_OPTIONS = ("scorers", "split", "nodes", "graphs", "seed", "learn_weights", "cluster")
"""Options that say how to learn: with one of them given, a run learns its own past."""


@click.command()
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    help="Named scorer; repeat for several, each with its own lists, the first one's shown first (default: "
    "shared). See --list-scorers.",
)
@click.option("--list-scorers", is_flag=True, help="List the named scorers and exit.")
@click.option(
    "--split",
    type=click.Choice(["auto", "time", "patient", "folds", "source"]),
    default="auto",
    show_default=True,
    help="What separates past from recent; auto: by time, or in folds of patients where the calendar is shifted.",
)
@click.option(
    "--since",
    metavar="DATE",
    help="First recent day (default: the last fifth of the days). Where an earlier run keeps a past that ends before "
    "it, only the instances from that day on are scored, against that past.",
)
@click.option(
    "--from-run",
    metavar="latest|none|ID",
    help="With --since: the run whose stored past is used; none learns again (default: latest, when it fits and no "
    "option says how to learn).",
)
@click.option(
    "--nodes", type=click.IntRange(10, COUNT.max), default=200, show_default=True, help="Nodes of a backbone graph."
)
@click.option("--graphs", type=COUNT, default=3, show_default=True, help="Graphs whose scores are averaged.")
@click.option(
    "--learn-weights",
    is_flag=True,
    help="Learn from the past what each group of features weighs in the shared graph, for records unlike those that "
    "the usual weights come from.",
)
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of everything drawn at random.")
@click.option(
    "--again", is_flag=True, help="Score and publish although the last run has the same records, options and version."
)
@click.option(
    "--accept", multiple=True, metavar="CHECK", help="Score although this check of the import is red; repeat."
)
@click.option("--reason", default="", help="Why a check is accepted, for the audit trail.")
@click.option("--jobs", type=COUNT, help="Tasks scored in parallel (default: one per processor).")
@click.option("--cluster", metavar="ADDRESS", help="Run the tasks on the Dask scheduler at tcp://HOST:PORT.")
@result_format
@site_options
@click.pass_context
def score(
    context: click.Context,
    scorers: tuple[str, ...],
    list_scorers: bool,
    split: str,
    since: str | None,
    from_run: str | None,
    nodes: int,
    graphs: int,
    learn_weights: bool,
    seed: int,
    again: bool,
    accept: tuple[str, ...],
    reason: str,
    jobs: int | None,
    cluster: str | None,
    output_format: str,
    home: Path | None,
    database: str | None,
) -> None:
    """Score every task of the last import and publish the alerts as one run.

    An interrupted run is continued where it stopped; readers see nothing of it until it is published. When the last
    run has these scores already, nothing is scored (see --again). While a check of the last import is red, nothing is
    scored either, and the exit code is 3.
    """
    from alertreview.cli.console import progress_bar
    from alertreview.operations.upgrade import open_database
    from alertreview.records.doubts import require_trusted
    from alertreview.scoring.cluster import cluster_workers
    from alertreview.scoring.resume import ScoringRequest
    from alertreview.scoring.score_site import PublishedRun, published_already, score_site
    from core.scoring.scorers import SCORERS, SHARED, describe_scorer

    if list_scorers:
        described = {name: describe_scorer(name) for name in SCORERS}
        show(described, [f"{name:21} {text}" for name, text in described.items()], output_format)
        return
    given = [name for name in LEARNING_OPTIONS if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    _check_from_run(from_run, since, given)
    settings = load_settings(home, database)
    request = ScoringRequest(
        scorers=scorers or (SHARED.key,),
        split=split,
        since=since,
        n_nodes=nodes,
        n_graphs=graphs,
        seed=seed,
        n_jobs=jobs,
        learn_weights=learn_weights,
    )
    with open_database(settings, upgrade=True) as site_database, progress_bar("Scoring") as progress:
        require_trusted(site_database, accept, reason)
        outcome: ScoringOutcome | PublishedRun | None = None
        if since is not None and from_run != "none" and not given:
            outcome = _score_new(settings, site_database, request, from_run, progress, again=again)
        if outcome is None and not again:
            outcome = published_already(settings, site_database, request)
        if outcome is None:
            with cluster_workers(cluster) if cluster else nullcontext() as workers:
                outcome = score_site(settings, site_database, request, progress, workers, again=again)
    is_new = not isinstance(outcome, PublishedRun)
    tell_done({"run": outcome.run_id, "is_new": is_new}, outcome.lines(), output_format)


def _check_from_run(from_run: str | None, since: str | None, given: list[str]) -> None:
    """Refuse a stored past without a first new day, or together with options that say how to learn."""
    if from_run in (None, "none"):
        return
    if since is None:
        raise click.UsageError("--from-run scores new instances: say with --since from which day on.")
    if given:
        options = ", ".join("--scorer" if name == "scorers" else f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(
            f"--from-run uses what that run learned, so {options} cannot be chosen. Leave one of them out."
        )


def _score_new(
    settings: Settings,
    database: "Database",
    request: "ScoringRequest",
    wanted: str | None,
    progress: "Progress | None",
    *,
    again: bool,
) -> "ScoringOutcome | PublishedRun | None":
    """Score new instances against a stored past; None when nobody named a run and no stored past fits."""
    from alertreview.scoring.new_day import LATEST, find_base, score_new_instances
    from alertreview.scoring.score_site import parse_day, published_already

    since = parse_day(request.since)
    if since is None:
        return None
    base = find_base(settings, database, wanted or LATEST, since)
    if base is None:
        if wanted == LATEST:
            raise NotFoundError(
                f"No run keeps a past that ends before {request.since}. Score again: --from-run none, or leave it out."
            )
        return None
    done = None if again else published_already(settings, database, request, base.run)
    return done or score_new_instances(
        settings,
        database,
        base,
        since,
        n_jobs=request.n_jobs,
        progress=progress,
        unless_published=None if again else request,
    )


@click.group()
def run() -> None:
    """Show published scoring runs, for scripts and for --from-run."""


@run.command(name="list")
@list_format
@with_application
def run_list(application: "Application", output_format: str) -> None:
    """List the published scoring runs of the site, newest first."""
    print_list(
        application.worklist.runs(),
        {
            "run": lambda one: one.run_id,
            "published_at": lambda one: one.published_at.isoformat(timespec="seconds"),
            "scorers": lambda one: " ".join(one.scorers),
            "split": lambda one: one.split,
            "since": lambda one: one.parameters.get("since"),
            "against_run": lambda one: one.base_run_id,
            "past": lambda one: one.n_past,
            "recent": lambda one: one.n_recent,
            "tasks": lambda one: one.n_tasks_scored,
            "alerts": lambda one: one.n_alerts,
            "simulated": lambda one: one.simulated,
        },
        output_format,
    )


COMMANDS = (score, run)
