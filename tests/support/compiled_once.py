"""What is compiled once: statements for all databases of a process, machine code for all processes of a test run.

Each test opens a database of its own. Compiling every statement anew for each took a third of the time of tests of the
store. Where nothing is cached yet, as in continuous integration, three workers that compile the same loops at the same
time take a CPU minute more than one that compiles while the others wait.
"""

import fcntl
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.built_once import shared_folder


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


@pytest.fixture(scope="session", autouse=True)
def machine_code_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let one worker at a time compile: the next finds in the cache what it was waiting for."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compile_alone, depth = Dispatcher.compile, 0

    def compile_in_turn(dispatcher: Any, signature: Any) -> Any:
        nonlocal depth
        with global_compiler_lock:  # first, as inside: a loop is compiled while another one is that calls it
            if depth == 0:
                fcntl.flock(lock, fcntl.LOCK_EX)
            depth += 1
            try:
                return compile_alone(dispatcher, signature)
            finally:
                depth -= 1
                if depth == 0:
                    fcntl.flock(lock, fcntl.LOCK_UN)

    with (
        (shared_folder(tmp_path_factory) / "compiling.lock").open("w") as lock,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(Dispatcher, "compile", compile_in_turn)
        yield
