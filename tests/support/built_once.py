"""What is expensive to build and only looked at or copied: built once for all workers of a test run."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Folder that all workers of a test run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def built_once(shared: Path, name: str, build: Callable[[Path], object]) -> Path:
    """Build a folder where it stays, because some files hold its path; the first worker builds, others wait.

    Parameters
    ----------
    shared : Path
        See :func:`shared_folder`.
    name : str
        Of the folder, for the whole run.
    build : callable
        Takes the folder to make; what it leaves when it fails is never taken for the whole.

    Returns
    -------
    Path
        The finished folder. Whoever wants to change something in it copies it.
    """
    made, whole = shared / name, shared / f"{name}.whole"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            shutil.rmtree(made, ignore_errors=True)
            build(made)
            whole.touch()
    return made
