"""JSON rows: many short rows of a query as one JSON text, so that the driver has one row to fetch.

SQLite's driver gives the interpreter up and takes it back for every row that it fetches. Among thirty busy threads that
costs more than the query.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class JsonRows(FunctionElement[str]):
    """Aggregate: all rows of a query as one JSON text; of a single column, its values."""

    inherit_cache = True
    type = sa.Text()


@compiles(JsonRows, "sqlite")
def _on_sqlite(rows: JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    columns = compiler.process(rows.clauses, **options)
    return f"json_group_array({columns if len(rows.clauses) == 1 else f'json_array({columns})'})"


@compiles(JsonRows, "postgresql")
def _on_postgresql(rows: JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    columns = compiler.process(rows.clauses, **options)
    return f"CAST(json_agg({columns if len(rows.clauses) == 1 else f'json_build_array({columns})'}) AS text)"


def rows_of_json(text: str | None) -> Sequence[Any]:
    """Return the rows: numbers, texts, None, and moments as `moment` reads them."""
    return cast("list[Any]", json.loads(text)) if text else ()


def moment(text: str | None) -> datetime | None:
    """Return a moment in a JSON row, which is UTC without a zone on SQLite."""
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
