"""Where a site keeps its things: the home folder, the database and what lies inside the home."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from core.errors import SettingsError

HOME_VARIABLE = "ALERTREVIEW_HOME"
DATABASE_VARIABLE = "ALERTREVIEW_DATABASE"


@dataclass(frozen=True)
class Settings:
    """One site: a home folder with snapshots and exports, and a database.

    Parameters
    ----------
    home : Path
        Folder of the site; it holds patient data and belongs outside any repository.
    database_url : str
        SQLAlchemy URL; by default an SQLite file inside the home.
    """

    home: Path
    database_url: str

    @property
    def snapshots(self) -> Path:
        """Folder of the immutable imports."""
        return self.home / "snapshots"

    @property
    def scoring_checkpoint(self) -> Path:
        """Folder of tasks that an interrupted scoring has already finished."""
        return self.home / "unfinished-scoring"

    @property
    def learned(self) -> Path:
        """Folder of what the newest runs learned; it can be learned again, so that no backup needs it."""
        return self.home / "learned"

    @property
    def backups(self) -> Path:
        """Folder of the backups when nobody names another one; it goes when the disk goes."""
        return self.home / "backups"

    @property
    def log_file(self) -> Path:
        """File for technical messages; it never holds patient data."""
        return self.home / "alertreview.log"


def default_home() -> Path:
    """Folder used when nobody names one: ``$XDG_DATA_HOME/alertreview`` or ``~/.local/share/alertreview``."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "alertreview"


def load_settings(
    home: Path | None = None, database: str | None = None, *, create: bool = False, must_exist: bool = True
) -> Settings:
    """Find the home and the database from options, then environment variables, then defaults.

    Parameters
    ----------
    home, database
        What the command line was told; None to look further.
    create : bool
        Make the home folder, readable by its owner alone, when it does not exist.
    must_exist : bool
        False for a home that is still to come, as a restored one.

    Raises
    ------
    SettingsError
        When the home is no folder, does not exist, or cannot be made.
    """
    chosen = home or Path(os.environ.get(HOME_VARIABLE) or default_home())
    folder = chosen.expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"The home {folder} is a file; a folder is needed. Name another with --home DIR.")
    if create:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"The home {folder} cannot be made ({error.strerror}). Name a folder you may write to with --home DIR."
            ) from error
    elif must_exist and not folder.is_dir():
        raise SettingsError(
            f"There is no home at {folder}. Make one with 'alertreview init --home DIR', or name the right one."
        )
    url = database or os.environ.get(DATABASE_VARIABLE) or f"sqlite:///{folder / 'alertreview.db'}"
    return Settings(home=folder, database_url=url)


Clock: TypeAlias = Callable[[], datetime]
"""Returns the time now, aware."""
Progress: TypeAlias = Callable[[int, int], None]
"""Told how many steps are done, of how many."""


def now() -> datetime:
    """Return the time, aware, in UTC: the one clock of the application."""
    return datetime.now(UTC)
