"""Statements compiled once for all databases of a test process, as a server compiles them once for its only one.

Each test opens a database of its own. Compiling every statement anew for each took a third of the time of tests of the
store.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa


class _OfAllEngines(dict[Any, Any]):
    """Compiled statements by the kind of database and the driver, not by the engine that they were compiled for."""

    @staticmethod
    def _shared(key: Any) -> Any:
        dialect, *rest = key
        return (dialect.name, dialect.driver, *rest)

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(self._shared(key), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__(self._shared(key), compiled)


@pytest.fixture(scope="session", autouse=True)
def statements_compiled_once() -> Iterator[None]:
    """Let all engines of this process share what they compiled."""
    shared, create_engine = _OfAllEngines(), sa.create_engine

    def creating(*given: Any, **options: Any) -> sa.Engine:
        engine = create_engine(*given, **options)
        engine._compiled_cache = shared  # type: ignore[assignment]
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sa, "create_engine", creating)
        yield
