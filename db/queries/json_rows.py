"""Many short rows in one: the database packs them as a JSON text, and the driver has one row to fetch.

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


class Packed(FunctionElement[str]):
    """Aggregate: all rows of a query as one text; its arguments are the columns, and one alone gives plain values."""

    inherit_cache = True
    type = sa.Text()


@compiles(Packed, "sqlite")
def _on_sqlite(packed: Packed, compiler: SQLCompiler, **options: Any) -> str:
    columns = compiler.process(packed.clauses, **options)
    return f"json_group_array({columns if len(packed.clauses) == 1 else f'json_array({columns})'})"


@compiles(Packed, "postgresql")
def _on_postgresql(packed: Packed, compiler: SQLCompiler, **options: Any) -> str:
    columns = compiler.process(packed.clauses, **options)
    return f"CAST(json_agg({columns if len(packed.clauses) == 1 else f'json_build_array({columns})'}) AS text)"


def unpacked(text: str | None) -> Sequence[Any]:
    """Return the rows of a packed text: numbers, texts, None, and moments as `moment` reads them."""
    return cast("list[Any]", json.loads(text)) if text else ()


def moment(text: str | None) -> datetime | None:
    """Read a packed moment: UTC without saying so from SQLite, with its zone from PostgreSQL."""
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
