"""The console script, and ``python -m alertreview``: nothing is imported before the packages are known to be ours."""

import importlib.util
import re
import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)
PACKAGES = ("core", "db", "dashboard")
_ADVICE = (
    "Install alertreview in its own environment (venv, pipx, uv tool or a container), and start it from a folder "
    "without a package of that name."
)


def main() -> int:
    """Run the command line, unless Python is too old, a package is missing, or another program's stands in for ours."""
    if sentence := _old_python() or _foreign_package():
        return _refused(sentence)
    from core.errors import MissingPackageError

    try:
        from alertreview.cli.console import stop_in_order

        stop_in_order()
        from alertreview.cli.main import main as run_command_line
    except ModuleNotFoundError as error:
        return _refused(str(MissingPackageError(error.name or str(error))))
    return run_command_line()


def _refused(sentence: str) -> int:
    sys.stderr.write(f"alertreview: {sentence}\n")
    return 2


def _old_python() -> str:
    if sys.version_info >= OLDEST_PYTHON:
        return ""
    found = ".".join(map(str, sys.version_info[:2]))
    return (
        f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed, and {sys.executable} is {found}. "
        "Make an environment with a newer one: python3.13 -m venv DIR"
    )


def _foreign_package() -> str:
    """Return a sentence about a package that is not ours, with its origin and what to do; or nothing.

    `core` and `db` are names that other programs use too. One that is installed into the same folder replaces the
    first file of ours, which holds a docstring and nothing else.
    """
    here = Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        origin = Path(found.origin).resolve() if found is not None and found.origin else None
        if origin != here / name / "__init__.py":
            came = "is missing" if origin is None else f"comes from {origin.parent}, not from {here / name}"
            return f"The package '{name}' {came}. {_ADVICE}"
        if not re.fullmatch(r'"""[^"]*"""\s*', origin.read_text(encoding="utf-8", errors="replace")):
            return f"The package '{name}' in {origin.parent} was replaced by another program's. {_ADVICE}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
