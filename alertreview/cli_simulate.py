"""The command that writes a simulated hospital."""

from pathlib import Path

import click


@click.command()
@click.option(
    "--size",
    type=click.Choice(["small", "medium", "paper"]),
    default="small",
    show_default=True,
    help="How many patients, labs and drugs; paper: about those of the method's paper (4 GB of memory, a minute).",
)
@click.option(
    "--seed", type=click.IntRange(0), default=7, show_default=True, help="Seed of everything drawn at random."
)
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
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write; it must not exist yet.")
def simulate(size: str, seed: int, out: Path, **switches: float | None) -> None:
    """Write a simulated hospital as a MEDS data set, with the true anomaly score of every decision.

    No real patient stands behind it, and the data set says so. The same options give the same hospital.
    """
    from alertreview.site import write_simulated_source

    chosen = {name: value for name, value in switches.items() if value is not None}
    for line in write_simulated_source(size, seed, out, **chosen):
        click.echo(line)
