"""Commands on a study: its report, a signature, exported labels, and the report again from exported files."""

import sys
from pathlib import Path

import click

from alertreview.cli_options import site_options


@click.command()
@click.option("--study", "slug", required=True, help="Short name of the study.")
@click.option(
    "--format", "output_format", type=click.Choice(["json", "html", "pdf"]), default="json", show_default=True
)
@click.option("--out", type=click.Path(path_type=Path), help="File to write (default: standard output).")
@site_options
def report(slug: str, output_format: str, out: Path | None, home: Path | None, database: str | None) -> None:
    """Report how good the alerts of a study are: AUC with intervals, agreement, what was left out and why."""
    from alertreview.bootstrap import open_application
    from alertreview.files import write_bytes
    from alertreview.report_documents import ReportFormat, render_report

    with open_application(home, database) as application:
        study_report = application.report(slug)
        signatures = application.signatures(slug, study_report)
        content = render_report(study_report, ReportFormat(output_format), signatures)
    if out is None:
        sys.stdout.buffer.write(content)
    else:
        write_bytes(out, content)
        click.echo(f"Report of study {slug} written to {out}.")


@click.command(name="sign-report")
@click.option("--study", "slug", required=True, help="Short name of the study; it must be locked.")
@click.option("--person", metavar="NAME", required=True, help="Who signs: the name of somebody on this site.")
@click.option("--meaning", metavar="TEXT", required=True, help="What the signature says: 'I approve this report'.")
@site_options
def sign_report(slug: str, person: str, meaning: str, home: Path | None, database: str | None) -> None:
    """Sign the report of a locked study as it stands; a changed vote or a reopened study supersedes the signature."""
    from alertreview.bootstrap import open_application

    with open_application(home, database) as application:
        signature = application.sign_report(slug, application.person_named(person).person_id, meaning)
    click.echo(f"{signature.name} signed the report of study {slug}: {signature.meaning}.")
    click.echo(f"Content {signature.content_hash}")


@click.group()
def export() -> None:
    """Write expert labels and scores to files that open anywhere."""


@export.command(name="labels")
@click.option("--study", "slug", required=True, help="Short name of the study.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["csv", "csv-excel", "xlsx", "parquet", "jsonl", "meds"]),
    default="csv",
    show_default=True,
)
@click.option(
    "--layout",
    type=click.Choice(["long", "wide"]),
    default="long",
    show_default=True,
    help="One row for each version of each judgment, or one row for each case.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
@site_options
def export_labels(
    slug: str, output_format: str, layout: str, out: Path, home: Path | None, database: str | None
) -> None:
    """Write the judgments of a study, with the case, the alert, the run and the rubric they belong to."""
    from alertreview.bootstrap import open_application

    with open_application(home, database) as application:
        n_rows = application.exports.labels(slug, output_format, layout, out)
    click.echo(f"{n_rows} rows written to {out}.")


@export.command(name="study")
@click.option("--study", "slug", required=True, help="Short name of the study.")
@click.option(
    "--format",
    "output_formats",
    type=click.Choice(["csv", "csv-excel", "xlsx", "parquet", "jsonl"]),
    multiple=True,
    default=("csv",),
    show_default=True,
    help="Format of the tables; repeat for several.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="New folder to write.")
@site_options
def export_study(
    slug: str, output_formats: tuple[str, ...], out: Path, home: Path | None, database: str | None
) -> None:
    """Write every table of a study with a manifest; `alertreview recompute` makes its report again from them."""
    from alertreview.bootstrap import open_application

    with open_application(home, database) as application:
        files = application.exports.study(slug, output_formats, out)
    click.echo(f"{len(files)} files and a manifest written to {out}.")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="File to write (default: standard output).")
def recompute(folder: Path, out: Path | None) -> None:
    """Compute a study's report again from the files in FOLDER alone, as JSON; needs no site and no database."""
    from alertreview.export_recompute import recompute as recompute_report
    from alertreview.files import write_bytes
    from alertreview.report_documents import ReportFormat, render_report

    content = render_report(recompute_report(folder), ReportFormat.JSON)
    if out is None:
        sys.stdout.buffer.write(content)
    else:
        write_bytes(out, content)
        click.echo(f"Report recomputed from {folder} written to {out}.")
