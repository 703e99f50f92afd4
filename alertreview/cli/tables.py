"""What commands print: tables and results for people and scripts, sentences that ``-q`` leaves out, bytes to ``-``."""

import csv
import io
import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from alertreview.files import write_bytes

T = TypeVar("T")

STANDARD_OUTPUT = "-"


def is_set(flag: str) -> bool:
    """Return whether a flag of the program itself, quiet or verbose, was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get(flag))


def tell(sentence: str) -> None:
    """Print a sentence about what was done, unless the program was told to be quiet."""
    if not is_set("quiet"):
        click.echo(sentence)


def show(result: Mapping[str, Any], lines: Iterable[str], output_format: str) -> None:
    """Print a result as lines for people, or as one JSON object whose times are in ISO 8601."""
    if output_format == "json":
        click.echo(json.dumps(result, indent=2, ensure_ascii=False, default=str))
        return
    for line in lines:
        click.echo(line)


def tell_done(result: Mapping[str, Any], sentences: Iterable[str], output_format: str) -> None:
    """Tell what was done, or print it as one JSON object, ``-q`` or not."""
    show(result, () if is_set("quiet") else sentences, output_format)


def as_text(records: Sequence[Mapping[str, Any]], names: Sequence[str], output_format: str) -> str:
    """Write records as a "table", as "csv" or as an array of "json" objects, ending with a line break.

    Names are the columns, in order; a table without records still has them. Values are texts, numbers, truth values or
    None.
    """
    if output_format == "json":
        return json.dumps(list(records), indent=2, ensure_ascii=False) + "\n"
    if output_format == "csv":
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, fieldnames=names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return buffer.getvalue()
    columns = {name: ["" if r[name] is None else str(r[name]) for r in records] for name in names}
    numbers = {name for name in names if any(isinstance(r[name], (int, float)) for r in records)}
    return aligned(columns, right=numbers)


def print_list(things: Iterable[T], columns: Mapping[str, Callable[[T], Any]], output_format: str) -> None:
    """Print a row for each thing, as `as_text` writes it: what the columns find in it, by their names."""
    records = [{name: found(one) for name, found in columns.items()} for one in things]
    click.echo(as_text(records, tuple(columns), output_format), nl=False)


def aligned(columns: Mapping[str, Sequence[str]], *, right: Collection[str] = ()) -> str:
    """Write columns of text in even widths, under their names; those in `right` end at the right."""
    widths = {name: max(map(len, [name, *values])) for name, values in columns.items()}
    lines = []
    for cells in [list(columns), *map(list, zip(*columns.values(), strict=True))]:
        padded = (
            cell.rjust(widths[name]) if name in right else cell.ljust(widths[name])
            for name, cell in zip(columns, cells, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines) + "\n"


def write_out(out: Path | None, content: bytes) -> bool:
    """Write to a file, or to standard output when it is None or ``-``; tell whether it was a file."""
    if out is None or str(out) == STANDARD_OUTPUT:
        sys.stdout.buffer.write(content)
        return False
    write_bytes(out, content)
    return True
