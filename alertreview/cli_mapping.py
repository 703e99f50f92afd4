"""Commands on site mappings: what one recognises in a source, and a first draft of a new one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from alertreview.cli_options import file_or_url, site_options


@click.group()
def mapping() -> None:
    """Help with site mappings: what one recognises in a source, and a first draft of your own."""


def mapping_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command SOURCE, ``--format`` and ``--schema``."""
    for decorate in (
        click.option("--schema", help="Schema of an OMOP CDM that is read from a database."),
        click.option(
            "--format", "source_format", type=click.Choice(["meds", "omop", "csv"]), default="meds", show_default=True
        ),
        click.argument("source"),
    ):
        command = decorate(command)
    return command


@mapping.command(name="check")
@mapping_options
@click.option("--mapping", "name", metavar="NAME|FILE", help="Preset or YAML file (default: the best fit).")
def mapping_check(source: str, source_format: str, schema: str | None, name: str | None) -> None:
    """Show what a mapping would recognise in SOURCE, and what an import with it would lack; nothing is imported."""
    from alertreview.mapping_help import check_mapping

    for line in check_mapping(file_or_url(source), format=source_format, mapping=name, schema=schema).lines():
        click.echo(line)


@mapping.command(name="groups")
@site_options
def mapping_groups(home: Path | None, database: str | None) -> None:
    """Print the order groups of the last import as a part of a site mapping, to be edited and put into it."""
    from alertreview.bootstrap import open_database
    from alertreview.mapping_help import order_groups_text
    from alertreview.settings import load_settings

    with open_database(load_settings(home, database)) as site_database:
        click.echo(order_groups_text(site_database), nl=False)


@mapping.command(name="suggest")
@mapping_options
@click.option("--out", type=click.Path(path_type=Path), help="New YAML file (default: standard output).")
def mapping_suggest(source: str, source_format: str, schema: str | None, out: Path | None) -> None:
    """Draft a site mapping from the codes found in SOURCE, with remarks on what to look at before using it."""
    from alertreview.mapping_help import save_suggestion, suggest_mapping

    suggestion = suggest_mapping(file_or_url(source), format=source_format, schema=schema)
    if out is None:
        click.echo(suggestion.text, nl=False)
        return
    save_suggestion(suggestion, out)
    for note in suggestion.notes:
        click.echo(note)
    click.echo(f"Draft written to {out}; look at it, then: alertreview import {source} --mapping {out}")
