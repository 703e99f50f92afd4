"""The program as its users get it: a wheel made from the sdist, installed where the checkout is not to be seen.

What costs time is made once for a whole test run, whichever worker comes first: :func:`installed_program` and the
demonstration that it builds, :func:`built_demonstration`.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.support.built_once import built_once
from tests.support.demo_site import small_demonstration
from tests.support.pieces import require

ROOT = Path(__file__).resolve().parents[2]
DEMONSTRATION = Path(".local/share/alertreview-demo")
"""Where `alertreview demo` builds without --home, below the person's home folder."""


def built_distributions(shared: Path) -> tuple[Path, Path]:
    """The sdist of this checkout, and the wheel that is made from that sdist alone."""
    folder = built_once(shared, "installed-distributions", _build)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def installed_program(shared: Path) -> Path:
    """Folder of an environment in which the wheel is installed, and of the checkout nothing."""
    _, wheel = built_distributions(shared)
    return built_once(shared, "installed-environment", lambda folder: _install(wheel, folder))


def built_demonstration(shared: Path) -> Path:
    """Home folder of a person who has installed the wheel and said `alertreview demo --no-serve`, and nothing else."""
    environment = installed_program(shared)

    def build(home: Path) -> None:
        home.mkdir()
        small_demonstration(shared)
        _take_machine_code(environment)
        ended = run_installed(environment, home, "demo", "--no-serve")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        (home / "printed.txt").write_text(ended.stdout, encoding="utf-8")

    return built_once(shared, "installed-person", build)


def _take_machine_code(environment: Path) -> None:
    """Copy what Numba cached of the checkout, most of a minute, beside modules that are the same to the byte."""
    core = _packages(environment) / "core"
    for index in (ROOT / "core").rglob("*.nbi"):
        source = index.parent.parent / f"{index.name.partition('.')[0]}.py"
        module = core / source.relative_to(ROOT / "core")
        # The cache of a module that is gone stays where it was.
        if not source.exists() or module.read_bytes() != source.read_bytes():
            continue
        # The cache belongs to a module of this time and size.
        os.utime(module, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
        kept = module.parent / "__pycache__"
        kept.mkdir(exist_ok=True)
        for file in index.parent.glob(f"{index.stem}.*"):
            shutil.copy(file, kept)


def demonstration(shared: Path) -> Path:
    """Home of that demonstration, or of one that ALERTREVIEW_DEMO_HOME names, which saves a minute of waiting."""
    ready = os.environ.get("ALERTREVIEW_DEMO_HOME")
    return Path(ready) if ready else built_demonstration(shared) / DEMONSTRATION


def run_installed(environment: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the console script as a person in an otherwise empty home folder."""
    return subprocess.run(
        [str(environment / "bin" / "alertreview"), *arguments],
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=1800,  # the demonstration took over 400 s on two cores with load 25
        check=False,
    )


def pip_check(environment: Path) -> subprocess.CompletedProcess[str]:
    """Ask pip whether all that is required is there in a version that fits."""
    return _pip(environment, "check")


def _build(folder: Path) -> None:
    folder.mkdir()
    sdist = Path(next(SdistBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))
    with tarfile.open(sdist) as archive:
        # The first releases of Python 3.11, Debian's among them, know no filter.
        archive.extractall(folder / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    unpacked = next((folder / "unpacked").iterdir())
    next(WheelBuilder(str(unpacked)).build(directory=str(folder), versions=["standard"]))


def _install(wheel: Path, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    # Its requirements are those of the tests' environment, without the line that puts the checkout on the path:
    # files of the kind .pth are read in the first folder only.
    (_packages(folder) / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    done = _pip(
        folder, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--ignore-installed", str(wheel)
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _packages(environment: Path) -> Path:
    """Where an environment keeps what is installed in it."""
    return environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _pip(environment: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    base = getattr(sys, "_base_executable", sys.executable)
    for python in (sys.executable, base):
        command = [python, "-m", "pip", "--disable-pip-version-check", "--python", str(environment / "bin" / "python")]
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
            return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    require(False, "pip", "apt install python3-pip")
    raise AssertionError
