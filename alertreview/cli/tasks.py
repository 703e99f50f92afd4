"""Commands on the task catalogue: which tasks are asked about, why others are not, and changes of that."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from alertreview.cli.options import FilePath, list_format, out_option, result_format, with_application
from alertreview.cli.tables import as_text, print_list, tell, tell_done, write_out
from core.number_texts import counted
from core.vocabulary import Decision

if TYPE_CHECKING:
    from alertreview.application import Application


@click.group()
def tasks() -> None:
    """Show and change the task catalogue: what is asked about."""


@tasks.command(name="list")
@list_format
@click.option("--asked/--not-asked", "asked", default=None, help="Only tasks that are asked about, or only others.")
@with_application
def tasks_list(application: "Application", output_format: str, asked: bool | None) -> None:
    """List the tasks of the last import, with why those that are not asked about are not."""
    from alertreview.records.catalogue import current_catalogue

    entries = current_catalogue(application.settings, application.database)
    print_list(
        [entry for entry in entries if asked is None or asked is not bool(entry.off)],
        {
            "task": lambda entry: entry.name,
            "kind": lambda entry: entry.kind.value,
            "asked": lambda entry: not entry.off,
            "decisions": lambda entry: entry.n_positive,
            "share": lambda entry: round(entry.rate, 4),
            "members": lambda entry: len(entry.members) or None,
            "group": lambda entry: entry.order_group,
            "muted_until": lambda entry: entry.setting.muted_until and entry.setting.muted_until.isoformat(),
            "why_not": lambda entry: entry.off,
            "task_key": lambda entry: entry.task_key,
        },
        output_format,
    )


@tasks.command(name="alerts")
@list_format
@click.option("--top", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many alerts.")
@click.option(
    "--order",
    type=click.Choice(["score", "turns"]),
    default="score",
    show_default=True,
    help="By scaled score, or taking turns between omissions and commissions by rank.",
)
@with_application
def tasks_alerts(application: "Application", output_format: str, top: int, order: str) -> None:
    """Count what the first alerts of the last published run ask about, by task; no patient is named."""
    from alertreview.cli.alerts import list_alerts
    from alertreview.records.catalogue import current_catalogue

    rows = list_alerts(application, top, order=order)
    entries = {entry.task_key: entry for entry in current_catalogue(application.settings, application.database)}
    counts = Counter((row.task_key, row.task_name, row.kind, row.decision) for row in rows)
    found = dict.fromkeys((key, name, kind) for key, name, kind, _ in counts)
    records: list[dict[str, Any]] = [
        {
            "task": name,
            "kind": kind.value,
            **{f"{decision.value}s": counts[key, name, kind, decision] for decision in Decision},
            "members": len(entries[key].members) or None if key in entries else None,
            "task_key": key,
        }
        for key, name, kind in found
    ]
    records.sort(key=lambda record: (-sum(record[f"{one.value}s"] for one in Decision), record["task"]))
    names = ("task", "kind", *(f"{decision.value}s" for decision in Decision), "members", "task_key")
    click.echo(as_text(records, names, output_format), nl=False)


@tasks.command(name="export")
@out_option("New YAML file")
@with_application
def tasks_export(application: "Application", out: Path | None) -> None:
    """Write the task catalogue as YAML, to be edited and given to tasks apply."""
    from alertreview.records.catalogue import catalogue_text, current_catalogue

    text = catalogue_text(current_catalogue(application.settings, application.database))
    if write_out(out, text.encode()):
        tell(f"Written to {out}.")


@tasks.command(name="apply")
@click.argument("file", type=FilePath(path_type=Path))
@click.option("--reason", default="", help="Why, for the audit trail.")
@result_format
@with_application
def tasks_apply(application: "Application", file: Path, reason: str, output_format: str) -> None:
    """Switch, mute, rename and group tasks as FILE says; tasks that it does not name stay as they are.

    All changes are made, or none, and each is a row of the audit trail. Names and groups hold from the next import on,
    everything else from the next scoring on.
    """
    from alertreview.records.catalogue import change_catalogue, current_catalogue, read_catalogue
    from alertreview.settings import now

    site = application.settings, application.database
    changed = change_catalogue(
        *site, read_catalogue(file, current_catalogue(*site)), reason, actor="command line", now=now()
    )
    follow = " Score again to follow (alertreview score); import again first where names or groups changed."
    said = f"{counted(len(changed), 'task')} changed." + (follow if changed else "")
    tell_done({"changed": list(changed)}, [*(f"changed: {name}" for name in changed), said], output_format)


COMMANDS = (tasks,)
