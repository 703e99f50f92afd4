"""Paths of a site: its home folder, what the home contains, and its database."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from core.errors import SettingsError

if TYPE_CHECKING:
    from alertreview.configuration import DigestSettings as DigestSettings  # noqa: PLC0414 - named by operations
    from alertreview.configuration import WebhookSettings as WebhookSettings  # noqa: PLC0414 - named by review
    from alertreview.configuration import WebSettings

HOME_VARIABLE = "ALERTREVIEW_HOME"
DATABASE_VARIABLE = "ALERTREVIEW_DATABASE"
FIRST_PAGE_VARIABLE = "DASHBOARD_FIRST_PAGE"
"""Tells the dashboard's process which page to open first; nobody sets it by hand."""


@dataclass(frozen=True)
class Settings:
    """One site: a home folder with snapshots and exports, and a database."""

    home: Path  # folder of the site; it holds patient data and belongs outside any repository
    database_url: str  # SQLAlchemy URL; by default an SQLite file inside the home
    anchor: Path | None = None  # file outside the home to which every backup appends the head of the audit trail
    digest: "DigestSettings | None" = None  # mail server and addresses of the digest
    webhook: "WebhookSettings | None" = None  # where the digest of the whole site is posted
    hosts: tuple[str, ...] = ()  # names under which browsers reach the dashboard

    @property
    def snapshots(self) -> Path:
        """Folder of the immutable imports."""
        return self.home / "snapshots"

    @property
    def scoring_checkpoint(self) -> Path:
        """Folder of the tasks that an interrupted scoring has finished."""
        return self.home / "unfinished-scoring"

    @property
    def models(self) -> Path:
        """Folder of what the newest runs learned; it can be computed again, so backups leave it out."""
        return self.home / "learned"

    @property
    def backups(self) -> Path:
        """Default folder of the backups; it is lost with the disk."""
        return self.home / "backups"

    @property
    def log_file(self) -> Path:
        """Technical log, without patient data."""
        return self.home / "alertreview.log"


def default_home() -> Path:
    """Return the home used without an option: ``$XDG_DATA_HOME/alertreview`` or ``~/.local/share/alertreview``."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "alertreview"


def home_folder(home: Path | None = None) -> Path:
    """Return the absolute home: the given one, else ``ALERTREVIEW_HOME``, else the default."""
    return (home or Path(os.environ.get(HOME_VARIABLE) or default_home())).expanduser().absolute()


def load_settings(
    home: Path | None = None, database: str | None = None, *, create: bool = False, must_exist: bool = True
) -> Settings:
    """Return the home and the database: options, then environment, then ``alertreview.toml``, then defaults.

    A missing home is created, readable by its owner alone, if wanted; `must_exist` is false for one that is yet to be
    created, such as a restored one. Raise SettingsError if the home is not a folder, does not exist or cannot be
    created, or a setting cannot be used.
    """
    folder = home_folder(home)
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"The home {folder} is a file; a folder is needed. Name another with --home DIR.")
    if create:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"The home {folder} cannot be created ({error.strerror}). Name a writable folder with --home DIR."
            ) from error
    elif must_exist and not folder.is_dir():
        raise SettingsError(
            f"There is no home at {folder}. Make one with 'alertreview init --home DIR', or name the right one."
        )
    from alertreview.configuration import read_configuration

    configuration = read_configuration(folder, database=database)
    url = configuration.database or f"sqlite:///{folder / 'alertreview.db'}"
    logging.getLogger(__name__).info("Home: %s", folder)
    return Settings(
        home=folder,
        database_url=url,
        anchor=configuration.anchor,
        digest=configuration.digest,
        webhook=configuration.webhook,
        hosts=configuration.hosts,
    )


def load_web_settings(home: Path | None = None) -> "WebSettings":
    """Return how the dashboard of a site is reached; the files of its secrets can be read.

    Raise SettingsError if a setting or the file of a secret cannot be used.
    """
    from alertreview.configuration import read_configuration

    web = read_configuration(home_folder(home))
    web.check_secrets()
    return web


Clock: TypeAlias = Callable[[], datetime]
"""Return the current time, aware."""
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps done and the total."""


now: Clock = partial(datetime.now, UTC)
"""The clock of the application: the current time in UTC."""
