"""The command line: each command does one use case, prints what a person needs, and ends with 0 or a one-line error."""

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from alertreview import __version__
from alertreview.cli import accounts, operations, records, reproduce, score, study, tasks
from alertreview.cli.console import EXIT_INTERRUPTED, EXIT_TERMINATED, Terminated
from alertreview.cli.options import (
    EXIT_UNEXPECTED,
    FilePath,
    list_format,
    site_options,
    source_options,
    with_application,
    with_settings,
)
from alertreview.cli.tables import STANDARD_OUTPUT, show, tell
from alertreview.settings import Settings, load_settings, load_web_settings
from core.errors import AlertReviewError, SettingsError
from core.kinds import Kind

if TYPE_CHECKING:
    from alertreview.application import Application

GOES_ON = "nothing half-done is visible, the same command goes on from here"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="alertreview")
@click.option("-q", "--quiet", is_flag=True, help="Print errors and what was asked for, and no sentence about it.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Also print the home, progress and the time taken, on standard error."
)
@click.pass_context
def cli(context: click.Context, quiet: bool, verbose: bool) -> None:
    """Find unusual patient-management decisions, have clinicians judge them, report how good the alerts are.

    A site lives in a home folder: import health records, score them, then open the dashboard.
    """
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose are mutually exclusive.")
    if verbose:
        from alertreview.cli.console import log_to_terminal

        context.with_resource(log_to_terminal(f"alertreview {__version__} {context.invoked_subcommand or ''}"))


@cli.command()
@site_options
@click.option("--no-serve", is_flag=True, help="Build the demonstration and exit, without opening the dashboard.")
@click.option("--port", type=click.IntRange(1, 65535), default=8501, show_default=True, help="Port of the dashboard.")
@click.option("--browser/--no-browser", default=None, help="Open a browser window (default: when there is a display).")
def demo(home: Path | None, database: str | None, no_serve: bool, port: int, browser: bool | None) -> None:
    """Build a simulated hospital with a judged study, and open the dashboard on it.

    Nothing in it is a real patient. Without --home it is built in a separate folder next to the default home.
    """
    from alertreview.cli.demo import build_demo, demo_home

    settings = load_settings(home or demo_home(), database, create=True)
    for line in build_demo(settings):
        tell(line)
    if no_serve:
        tell(f"Open it with: alertreview dashboard --home {settings.home}")
        return
    _serve(settings, port, browser)


@cli.command()
@with_settings(create=True)
def init(settings: Settings) -> None:
    """Create the home folder and the database tables; an existing site is left as it is."""
    from alertreview.operations.upgrade import open_database

    with open_database(settings, upgrade=True):
        tell(f"Ready: {settings.home}")


@cli.command(name="import")
@source_options
@click.option(
    "--mapping", metavar="NAME|FILE", help="Site mapping: a preset's name or a YAML file (default: the best fit)."
)
@click.option(
    "--labels",
    multiple=True,
    metavar="[NAME=]PATH",
    help="Parquet file, or folder of them, with true and false labels (MEDS, ACES): a separate task. Repeatable.",
)
@click.option("--add", is_flag=True, help="Add the records, such as those of another day, to the last import.")
@click.option(
    "--report",
    "report_file",
    type=FilePath(path_type=Path, allow_dash=True),
    help="Also write the import report to FILE (.html or .json); - prints it as JSON instead of the sentences.",
)
@with_settings(create=True)
def import_(
    settings: Settings,
    source: Path | str,
    source_format: str,
    mapping: str | None,
    schema: str | None,
    labels: tuple[str, ...],
    add: bool,
    report_file: Path | None,
) -> None:
    """Read health records from SOURCE into the site: all of it, or nothing.

    SOURCE is a MEDS data set, FHIR R4 (folder or zip of ndjson files or Bundles), an OMOP CDM (folder or zip of CSV
    files, folder of Parquet files, SQLite or DuckDB file, or SQLAlchemy URL), a folder of raw MIMIC or eICU
    tables, or a long CSV file.
    """
    from alertreview.cli.console import progress_bar
    from alertreview.operations.upgrade import open_database
    from alertreview.records.import_site import import_records, write_import_report

    with open_database(settings, upgrade=True) as site_database, progress_bar("Importing") as progress:
        outcome = import_records(
            settings, site_database, source, source_format, mapping, progress, schema=schema, add=add, labels=labels
        )
    if str(report_file) == STANDARD_OUTPUT:
        show(outcome.report.to_dict(), (), "json")
        return
    for line in outcome.report.lines():
        tell(line)
    tell("Already imported; nothing changed." if outcome.unchanged else f"Imported as {outcome.folder.name}.")
    if outcome.keeps_words:
        tell("Decisions keep the words of that import; import into a new home to have the words above.")
    if report_file is not None:
        write_import_report(outcome.report, report_file)
        tell(f"Report written to {report_file}.")


@cli.command()
@click.option("--top", type=click.IntRange(1, 100_000), default=20, show_default=True, help="How many alerts.")
@list_format
@click.option(
    "--decision", type=click.Choice(["omission", "commission"]), help="Only decisions not taken, or only those taken."
)
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Only this kind of decision.")
@click.option(
    "--order",
    type=click.Choice(["score", "turns"]),
    default="score",
    show_default=True,
    help="By scaled score, or taking turns between the omission and the commission list by rank.",
)
@click.option("--cut-windows", is_flag=True, help="Also omissions whose 24 h were cut short by discharge.")
@click.option("--scorer", default="", help="Lists of another scorer of the run (default: the one shown first).")
@with_application
def alerts(
    application: "Application",
    top: int,
    output_format: str,
    decision: str | None,
    kind: str | None,
    order: str,
    cut_windows: bool,
    scorer: str,
) -> None:
    """Print the most unusual decisions of the last published run."""
    from alertreview.cli.alerts import list_alerts, render_alerts

    rows = list_alerts(
        application,
        top,
        decision=decision,
        kind=kind,
        order=order,
        include_cut_windows=cut_windows,
        scorer=scorer,
    )
    click.echo(render_alerts(rows, output_format, simulated=application.site.simulated), nl=False)


@cli.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8501, show_default=True, help="Port on this machine.")
@click.option("--browser/--no-browser", default=None, help="Open a browser window (default: when there is a display).")
@with_settings()
def dashboard(settings: Settings, port: int, browser: bool | None) -> None:
    """Open the dashboard on the site, on this machine only.

    On a site where nobody has an account, it prints a link that signs its owner in once, with every role.
    """
    from alertreview.operations.upgrade import open_database

    with open_database(settings, upgrade=True):
        pass
    _serve(settings, port, browser, _owner_code(settings))


for module in (score, study, records, tasks, operations, accounts, reproduce):
    for command in module.COMMANDS:
        cli.add_command(command)


def _owner_code(settings: Settings) -> str:
    """Return the one-time code of the owner where the site is for this machine and nobody has an account."""
    from alertreview.application import open_application

    if not load_web_settings(settings.home).is_for_this_machine:
        return ""
    with open_application(settings.home, settings.database_url) as application:
        return application.accounts.owner_code(getpass.getuser())


def _serve(settings: Settings, port: int, browser: bool | None, code: str = "") -> None:
    from alertreview.cli.console import serve_dashboard

    serve_dashboard(settings, port=port, open_browser=browser, path=f"/login/link?code={code}" if code else "/")


def _refuse_undecodable(arguments: list[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode(errors="replace").decode()
            raise SettingsError(f"'{shown}' is not text in UTF-8. Rename the file, or type it in UTF-8.") from None


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or another with one line on standard error."""
    try:
        _refuse_undecodable(sys.argv[1:] if arguments is None else arguments)
        # Without its own end of the program, click hands the exit code of a command back instead of raising it.
        ended = cli.main(args=arguments, prog_name="alertreview", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo(f"alertreview: interrupted; {GOES_ON}", err=True)
        return EXIT_INTERRUPTED
    except Terminated:
        click.echo(f"alertreview: stopped; {GOES_ON}", err=True)
        return EXIT_TERMINATED
    except AlertReviewError as error:
        click.echo(f"alertreview: {error}", err=True)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_UNEXPECTED
    return ended if isinstance(ended, int) else 0
