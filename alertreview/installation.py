"""Whether the four packages of this program belong together: `core` and `db` are names that others use too."""

import importlib.util
from pathlib import Path

PACKAGES = ("core", "db", "dashboard")
_ADVICE = "Install alertreview in an environment of its own, and start it from a folder without a package of that name."


def foreign_package(parent: Path | None = None) -> str:
    """Name a package that Python would take from elsewhere than from beside this one.

    Parameters
    ----------
    parent : Path, optional
        Folder that holds this program's packages; by default the one that `alertreview` is in.

    Returns
    -------
    str
        A sentence with the package, where it comes from and what to do; empty when all is well.
    """
    here = parent or Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        origin = Path(found.origin).resolve() if found is not None and found.origin else None
        if origin != here / name / "__init__.py":
            came = "is missing" if origin is None else f"comes from {origin.parent}, not from {here / name}"
            return f"The package '{name}' {came}. {_ADVICE}"
    return ""
