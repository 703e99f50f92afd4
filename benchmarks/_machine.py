"""What a measurement is made on, and how busy it is with other work: whether a wall-clock time says anything."""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

PROC = Path("/proc")
QUIET_CORES = 0.25
"""Other work above this makes wall-clock times say more about the machine than about the program."""


def described() -> str:
    """Say what this is measured on."""
    info = PROC / "cpuinfo"
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    name = names[0] if names else platform.machine()
    return f"{name}, {os.cpu_count()} CPUs, {memory:.0f} GiB, Python {platform.python_version()}"


@dataclass(frozen=True)
class Surroundings:
    """What else the machine did during a measurement.

    Parameters
    ----------
    own_cores : float
        Processor seconds of this process, its descendants and the database server, per second.
    other_cores : float or None
        The same of everything else; None where the system does not tell.
    load : float
        Load average of the last minute.
    """

    own_cores: float
    other_cores: float | None
    load: float

    @property
    def is_quiet(self) -> bool:
        """Whether wall-clock times say something about the program."""
        return self.other_cores is not None and self.other_cores <= QUIET_CORES

    def __str__(self) -> str:
        others = "unknown" if self.other_cores is None else f"{self.other_cores:.2f}"
        own = f"this took {self.own_cores:.2f} of {os.cpu_count()} cores, other work {others}"
        return f"{own}; load average {self.load:.1f}"


class Watch:
    """Looks at the processors' clocks now and again at the end.

    Parameters
    ----------
    url : str
        Database; a PostgreSQL server on this machine counts as own.
    """

    def __init__(self, url: str) -> None:
        self._server = _postmaster(url)
        self._began = time.perf_counter(), self._own(), _busy()

    def stop(self) -> Surroundings:
        """Return what happened since."""
        seconds = time.perf_counter() - self._began[0]
        own, busy = self._own() - self._began[1], _busy()
        others = None if busy is None or self._began[2] is None else (busy - self._began[2] - own) / seconds
        return Surroundings(own / seconds, None if others is None else max(0.0, others), os.getloadavg()[0])

    def _own(self) -> float:
        return _tree(os.getpid()) + (_tree(self._server) if self._server else 0.0)


def _postmaster(url: str) -> int | None:
    """Process number of a PostgreSQL server on this machine."""
    if not url.startswith("postgresql"):
        return None
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            stat = PROC / str(backend) / "stat"
            return int(_fields(stat)[1]) if stat.exists() else None
    finally:
        engine.dispose()


def _tree(root: int) -> float:
    """Processor seconds of a process and its descendants, those that ended and those alive, such as a browser's."""
    parents, ticks = dict[int, int](), dict[int, int]()
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            fields = _fields(stat)
        except OSError:  # it ended meanwhile
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        ticks[int(stat.parent.name)] = sum(int(value) for value in fields[11:15])
    tree, found = set[int](), {root}
    while found:
        tree |= found
        found = {process for process, parent in parents.items() if parent in found}
    return sum(ticks.get(process, 0) for process in tree) / os.sysconf("SC_CLK_TCK")


def _fields(stat: Path) -> list[str]:
    """Fields of a process from its state on; its name may hold blanks and brackets."""
    return stat.read_text().rsplit(")", 1)[1].split()


def _busy() -> float | None:
    """Seconds that all processors together have worked since the machine started."""
    try:
        with (PROC / "stat").open() as file:
            user, nice, system, _idle, _waiting, *rest = map(int, file.readline().split()[1:9])
    except (OSError, ValueError):
        return None
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
