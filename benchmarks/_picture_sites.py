"""The sites that pictures are taken of: the demonstration, the same with accounts, and a new one with nothing in it."""

import shutil
from pathlib import Path

from alertreview.application import open_application
from alertreview.cli.demo import build_demo
from alertreview.operations.upgrade import open_database
from alertreview.settings import load_settings
from core.vocabulary import Role

PASSWORD = "four boats in winter"
"""Of simulated people, on a site that only pictures are taken of."""
LOGINS = {
    "reviewer": Role.REVIEWER,
    "adjudicator": Role.ADJUDICATOR,
    "coordinator": Role.COORDINATOR,
    "researcher": Role.RESEARCHER,
    "administrator": Role.ADMINISTRATOR,
    "viewer": Role.VIEWER,
}


def build_sites(folder: Path, *, again: bool = False) -> dict[str, Path]:
    """Build the sites; gives the home of each by name.

    The demonstration is kept for the next time, and nobody acts in it: pictures are taken of a copy.
    """
    kept, ready = folder / "kept", folder / "ready"
    homes = {name: folder / name for name in ("demonstration", "accounts", "new", "nobody")}
    if again or not ready.exists():
        ready.unlink(missing_ok=True)
        shutil.rmtree(kept, ignore_errors=True)
        for line in build_demo(load_settings(kept, create=True)):
            print(f"  {line}", flush=True)
        ready.touch()
    for home in homes.values():
        shutil.rmtree(home, ignore_errors=True)
    for name in ("demonstration", "accounts"):
        shutil.copytree(kept, homes[name])
    for name in ("new", "nobody"):
        with open_database(load_settings(homes[name], create=True), upgrade=True):
            pass
    for name in ("accounts", "new"):
        _let_in(homes[name])
    return homes


def _let_in(home: Path) -> None:
    """Return each role an account."""
    with open_application(home) as site:
        for login, role in LOGINS.items():
            code = site.accounts.create(f"{login.capitalize()} (simulated)", role, login=login)
            site.sign_in.with_code(login, code, PASSWORD)
