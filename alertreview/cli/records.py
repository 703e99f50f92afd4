"""Commands on site mappings: what one recognises in a source, and a first draft of a new one."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from alertreview.cli.options import SEED, FilePath, out_option, source_options, with_application
from alertreview.cli.tables import STANDARD_OUTPUT, tell

if TYPE_CHECKING:
    from alertreview.application import Application


@click.group()
def mapping() -> None:
    """Check a site mapping against a source, or draft one."""


@mapping.command(name="check")
@source_options
@click.option("--mapping", "name", metavar="NAME|FILE", help="Preset or YAML file (default: the best fit).")
def mapping_check(source: Path | str, source_format: str, schema: str | None, name: str | None) -> None:
    """Read SOURCE and show what an import with a mapping would recognise, leave out and lack; nothing is kept."""
    from alertreview.records.mapping_help import check_mapping

    for line in check_mapping(source, format=source_format, mapping=name, schema=schema).lines():
        click.echo(line)


@mapping.command(name="groups")
@with_application
def mapping_groups(application: "Application") -> None:
    """Print the order groups of the last import as a part of a site mapping, to be edited and put into it."""
    from alertreview.records.mapping_help import order_groups_text

    click.echo(order_groups_text(application.database), nl=False)


@mapping.command(name="suggest")
@source_options
@out_option("New YAML file")
def mapping_suggest(source: Path | str, source_format: str, schema: str | None, out: Path | None) -> None:
    """Draft a site mapping from the codes found in SOURCE, with remarks on what to check."""
    from alertreview.records.mapping_help import save_suggestion, suggest_mapping

    suggestion = suggest_mapping(source, format=source_format, schema=schema)
    if out is None or str(out) == STANDARD_OUTPUT:
        click.echo(suggestion.text, nl=False)
        return
    save_suggestion(suggestion, out)
    for note in suggestion.notes:
        tell(note)
    tell(f"Draft written to {out}; look at it, then: alertreview import {source} --mapping {out}")


@click.command()
@click.option(
    "--size",
    type=click.Choice(["small", "medium", "paper"]),
    default="small",
    show_default=True,
    help="How many patients, labs and drugs; paper: about those of the method's paper (4 GB of memory, a minute).",
)
@click.option("--seed", type=SEED, default=7, show_default=True, help="Seed of everything drawn at random.")
@click.option(
    "--planted-rate", type=click.FloatRange(0, 0.5), help="Share of decisions that are planted as unusual [0.02]."
)
@click.option("--missing-rate", type=click.FloatRange(0, 1), help="Share of results without a usable number [0.01].")
@click.option(
    "--unit-noise",
    type=click.FloatRange(0, 1),
    help="Share of glucose, creatinine and hemoglobin results in another unit [0].",
)
@click.option("--drift", type=click.FloatRange(-5, 5), help="How far habits move over the calendar, in logits [0].")
@click.option("--out", type=FilePath(path_type=Path), required=True, help="Folder to write; it must not exist yet.")
def simulate(size: str, seed: int, out: Path, **switches: float | None) -> None:
    """Write a simulated hospital as a MEDS data set, with the true anomaly score of every decision.

    No real patient stands behind it, and the data set says so. The same options give the same hospital.
    """
    from alertreview.records.import_site import write_simulated_source

    chosen = {name: value for name, value in switches.items() if value is not None}
    for line in write_simulated_source(size, seed, out, **chosen):
        tell(line)


COMMANDS = (mapping, simulate)
