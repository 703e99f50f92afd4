"""Pages of docs/ written from the program; ``python -m tests.support.generated_docs`` writes them."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import click
import sqlalchemy as sa

from alertreview.cli.main import cli
from alertreview.exports.schema import Column, table_schemas
from alertreview.rights import role_words, roles_that_may
from core.errors import AlertReviewError, AlertReviewWarning
from dashboard import frame
from db.models import Record

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
WRITTEN_BY = "Written by `python -m tests.support.generated_docs`; change the program, not this page."

COMMON_COLUMNS = {
    "id": "Number of the row.",
    "comment": "What was typed beside the answer; may be empty.",
    "created_at": "When the row was made.",
    "form_key": "Key of the form that was sent, so that one that is sent twice counts once.",
    "patient_id": "Pseudonymous patient, exactly as imported.",
    "simulated": "No real patient, or no real person, stands behind it.",
    "snapshot_at": "The 08:00 of the patient-state instance.",
    "task_key": "Stable key of the task: kind and item.",
    "version": "1, 2, ...; the highest one counts.",
}
"""Meanings of columns that mean the same in every table; a text under the column in `db.models` comes first."""


def command_line() -> str:
    """Every command with its arguments and options, and how a command ends."""
    lines = [
        "# The command line",
        "",
        WRITTEN_BY,
        "",
        "`alertreview COMMAND --help` shows the same. Options in square brackets of a usage line may be left out.",
        "Commands on a site take `--home` and `--database`, or `ALERTREVIEW_HOME` and `ALERTREVIEW_DATABASE`.",
        "Before the command, as in `alertreview -q score`:",
        "",
        *(
            f"- `{'`, `'.join(option.opts)}`: {option.help}"
            for option in cli.params
            if isinstance(option, click.Option)
        ),
        "",
        "The shell completes commands and options after this line in its start file:",
        "",
        '- bash, `~/.bashrc`: `eval "$(_ALERTREVIEW_COMPLETE=bash_source alertreview)"`',
        '- zsh, `~/.zshrc`: `eval "$(_ALERTREVIEW_COMPLETE=zsh_source alertreview)"`',
        "- fish, `~/.config/fish/config.fish`: `_ALERTREVIEW_COMPLETE=fish_source alertreview | source`",
        "",
    ]
    for path, command in commands(cli):
        lines += _command_section(path, command)
    lines += ["## How a command ends", "", "With 0 when all went well, otherwise with one line on standard error:", ""]
    lines += ["| error | exit code | meaning |", "|---|---|---|"]
    lines += [f"| `{error.__name__}` | {error.exit_code} | {_first_line(error)} |" for error in errors()]
    lines += [
        "",
        "130 means interrupted (Ctrl+C), 143 stopped (SIGTERM). Warnings end nothing:",
        "",
        "| warning | meaning |",
        "|---|---|",
    ]
    lines += [f"| `{warning.__name__}` | {_first_line(warning)} |" for warning in _below(AlertReviewWarning)]
    return "\n".join(lines) + "\n"


def data_model() -> str:
    """Every table of the database with the meaning of each column."""
    lines = [
        "# The data model",
        "",
        WRITTEN_BY,
        "",
        f"Tables of the database, SQLite or PostgreSQL, schema {_newest_revision()}. Times are in UTC.",
        "Features and decisions themselves lie in the folders of imports",
        "([why](adr/0002-snapshots-are-folders-judgments-are-rows.md)).",
        "",
        "| table | one row is |",
        "|---|---|",
    ]
    lines += [f"| [`{model.__table__.name}`](#{model.__table__.name}) | {_first_line(model)} |" for model in models()]
    for model in models():
        rest = inspect.cleandoc(model.__doc__ or "").partition("\n\n")[2].replace("\n", " ")
        lines += ["", f"## {model.__table__.name}", "", _first_line(model) + (f" {rest}" if rest else ""), ""]
        lines += ["| column | type | | meaning |", "|---|---|---|---|"]
        said = column_texts(model)
        for column in model.__table__.columns:
            lines.append(
                f"| `{column.name}` | {_type_name(column)} | {_marks(column)} | {column_meaning(column, said)} |"
            )
    return "\n".join(lines) + "\n"


def export_columns() -> str:
    """Every exported table with the meaning of each column."""
    lines = [
        "# Exported tables",
        "",
        WRITTEN_BY,
        "",
        "What `alertreview export labels`, `alertreview export study` and the Export page write.",
        "The same dictionary travels with each export as the table `dictionary`.",
        "",
        "| table | one row is |",
        "|---|---|",
    ]
    schemas = table_schemas()
    lines += [f"| [`{name}`](#{name}) | {schema.one_row} |" for name, schema in schemas.items()]
    for name, schema in schemas.items():
        lines += ["", f"## {name}", "", f"{schema.title}. Unique: {', '.join(f'`{key}`' for key in schema.key)}.", ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{column.name}` | {column.type} | {_export_meaning(column)} |" for column in schema.columns]
    return "\n".join(lines) + "\n"


def dashboard_pages() -> str:
    """Every page of the dashboard with its address, the roles that may open it, and what it is for."""
    lines = [
        "# Pages of the dashboard",
        "",
        WRITTEN_BY,
        "",
        "The guides say how to work with them: [clinicians](clinicians.md), [researchers](researchers.md),",
        "[administrators](administrators.md). Whoever has one of the roles may open the page.",
        "",
        "| page | address | opened by | roles | what it is for |",
        "|---|---|---|---|---|",
    ]
    offered = [(name, title, action, "the navigation") for name, title, _, action in frame.OFFERED]
    reached = [(name, title, action, "links of other pages") for name, title, action in frame.REACHED_FROM_OTHERS]
    for name, title, action, opened_by in offered + reached:
        view = ast.parse((ROOT / "dashboard" / "views" / f"{name}.py").read_text(encoding="utf-8"))
        _, _, purpose = (ast.get_docstring(view) or "").partition("\n")[0].partition(": ")
        roles = role_words(roles_that_may(action)) if action else "everybody"
        address = name.replace("_", "-") if action else ""
        lines.append(f"| {title} | `/{address}` | {opened_by} | {roles} | {_cell(purpose[:1].upper() + purpose[1:])} |")
    return "\n".join(lines) + "\n"


PAGES = {
    "command-line.md": command_line,
    "data-model.md": data_model,
    "export-columns.md": export_columns,
    "pages.md": dashboard_pages,
}


def commands(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with its path, groups before what is in them."""
    for name, command in sorted(group.commands.items()):
        path = (*before, name)
        yield path, command
        if isinstance(command, click.Group):
            yield from commands(command, path)


def errors() -> list[type[AlertReviewError]]:
    """Every kind of error a person may read, wherever it is defined."""
    for package in ("core", "db", "alertreview", "dashboard"):
        folder = importlib.import_module(package)
        for module in pkgutil.walk_packages(folder.__path__, f"{package}."):
            # Pages and migrations run when they are imported; neither defines an error.
            if not re.search(r"\.(views|versions|env|app|__main__)\b", module.name):
                importlib.import_module(module.name)
    found = [AlertReviewError, *_below(AlertReviewError)]
    return [error for error in found if not error.__module__.startswith(("tests", "test_"))]


def models() -> list[type[Record]]:
    """Every table, in alphabetical order."""
    return sorted(
        (model for model in Record.__subclasses__() if hasattr(model, "__tablename__")),
        key=lambda model: model.__table__.name,
    )


def column_texts(model: type[Record]) -> dict[str, str]:
    """What `db.models` says under a column."""
    body = ast.parse(inspect.getsource(model)).body[0]
    assert isinstance(body, ast.ClassDef)
    said = {}
    for statement, following in zip(body.body, body.body[1:], strict=False):
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and is_text:
            said[statement.target.id] = inspect.cleandoc(str(following.value.value)).replace("\n", " ")  # type: ignore[attr-defined]
    return said


def column_meaning(column: sa.Column, said: dict[str, str]) -> str:
    """What a column holds; empty when nobody says."""
    meaning = said.get(column.name, "")
    if not meaning and column.foreign_keys:
        table = next(iter(column.foreign_keys)).column.table.name
        meaning = f"Which [{table}](#{table})."
    meaning = meaning or COMMON_COLUMNS.get(column.name, "")
    words = getattr(column.type, "enum_class", None) or getattr(column.type, "enums", None)
    if isinstance(words, type) and issubclass(words, Enum):
        meaning += " One of " + ", ".join(f"`{word.value}`" for word in words) + "."
    return _cell(meaning)


def _command_section(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    name = " ".join(("alertreview", *path))
    yield f"## {name}"
    yield ""
    yield inspect.cleandoc(command.help or "")
    yield ""
    if isinstance(command, click.Group):
        inside = [f"[{word}](#{'-'.join(('alertreview', *path, word))})" for word in sorted(command.commands)]
        yield "Commands: " + ", ".join(inside) + "."
        yield ""
        return
    context = click.Context(command, info_name=name, terminal_width=200, max_content_width=200)
    yield "```\n" + command.get_usage(context).replace("Usage: ", "").strip() + "\n```"
    yield ""
    rows = [_option_row(option, context) for option in command.params if isinstance(option, click.Option)]
    if rows:
        yield "| option | default | meaning |"
        yield "|---|---|---|"
        yield from rows
        yield ""


def _option_row(option: click.Option, context: click.Context) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" {option.make_metavar(context)}"
    default = ""
    if option.show_default and option.default is not None:
        given = option.default if isinstance(option.default, tuple) else (option.default,)
        default = ", ".join(str(one) for one in given)
    meaning = option.help or {"output_format": "What is written."}[option.name or ""]
    if option.multiple:
        meaning += "" if "repeat" in meaning else " May be given several times."
    if option.envvar:
        meaning += f" Or `{option.envvar}`."
    return f"| `{_cell(names + value)}` | {_cell(default)} | {_cell(meaning)} |"


def _export_meaning(column: Column) -> str:
    parts = [column.meaning]
    if column.unit:
        parts.append(f"Unit: {column.unit}.")
    if column.values:
        parts.append("Values: " + "; ".join(f"`{value}` {meaning}" for value, meaning in column.values) + ".")
    if column.missing:
        parts.append(f"Missing {column.missing}.")
    if column.repeats:
        parts.append(f"One such column for each {column.repeats}.")
    return _cell(" ".join(parts))


def _type_name(column: sa.Column) -> str:
    if hasattr(column.type, "enum_class") or isinstance(column.type, sa.Enum):
        return "word"
    kind = column.type.impl if isinstance(column.type, sa.types.TypeDecorator) else column.type
    if "Vector" in type(column.type).__name__:
        return "vector"
    if "UtcDateTime" in type(column.type).__name__:
        return "time"
    for sort, name in (
        (sa.Boolean, "yes or no"),
        (sa.Integer, "whole number"),
        (sa.Float, "number"),
        (sa.JSON, "JSON"),
        (sa.Text, "text"),
        (sa.String, "text"),
    ):
        if isinstance(kind, sort):
            return name
    return str(kind).lower()


def _marks(column: sa.Column) -> str:
    marks = ["key"] if column.primary_key else []
    if column.nullable:
        marks.append("may be empty")
    return ", ".join(marks)


def _newest_revision() -> str:
    from db.schema import head

    return head()


def _below(kind: type) -> list[type]:
    found = []
    for below in sorted(kind.__subclasses__(), key=lambda one: one.__name__):
        found += [below, *_below(below)]
    return list(dict.fromkeys(found))


def _first_line(documented: type) -> str:
    return _cell(inspect.cleandoc(documented.__doc__ or "").split("\n\n")[0].replace("\n", " "))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    for page, make in PAGES.items():
        (DOCS / page).write_text(make(), encoding="utf-8")
