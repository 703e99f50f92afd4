"""Whether the wheel installs and builds the demonstration with every promised Python that is at hand.

Give interpreters by path, or none: then python3.11, python3.12 and python3.13 are looked for on the PATH. Each gets an
environment of its own with the pinned requirements, pip's check, and `alertreview demo --no-serve` in an empty home.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parent.parent
PROMISED = ("python3.11", "python3.12", "python3.13")


def run(*command: str, **options: object) -> str:
    """Run a command and return what it printed; end with its words when it fails."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return str(ended.stdout)


def works(program: str) -> bool:
    """Whether a name on the PATH is a Python and no placeholder for one."""
    return (
        bool(shutil.which(program))
        and subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode == 0
    )


def try_with(python: str, wheel: Path, folder: Path) -> str:
    """Install, check and build with one Python; return a line of figures."""
    run(python, "-m", "venv", str(folder / "env"))
    installed = folder / "env" / "bin"
    requirements = str(ROOT / "requirements" / "app.txt")
    run(str(installed / "pip"), "install", "--quiet", "--no-compile", "--require-hashes", "-r", requirements)
    run(str(installed / "pip"), "install", "--quiet", "--no-deps", str(wheel))
    run(str(installed / "pip"), "check")
    home = folder / "home"
    home.mkdir()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = f"{installed}{os.pathsep}/usr/bin{os.pathsep}/bin"
    printed = run(str(installed / "alertreview"), "demo", "--no-serve", cwd=home, env={"HOME": str(home), "PATH": path})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = re.search(r"AUC of the scaled score ([\d.]+)", printed)
    version = run(str(installed / "python"), "--version").strip()
    return f"{version:15} demonstration in {seconds:.0f} s of processor, AUC {found[1] if found else 'n/a'}"


def main() -> None:
    """Try one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interpreters", nargs="*", help="paths or names of Pythons")
    pythons = parser.parse_args().interpreters or [name for name in PROMISED if works(name)]
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(next(WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])))
        for number, python in enumerate(pythons):
            place = Path(folder) / str(number)
            place.mkdir()
            print(try_with(python, wheel, place), flush=True)


if __name__ == "__main__":
    main()
