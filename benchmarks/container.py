"""Build the container by Buildah, and pass the demonstration and the health check in it.

Its base image is pulled. Where no registry of images is reached, ``--debian`` makes a stand-in of the same name from
Debian's packages (debootstrap, as root): Debian's own Python of that version in place of the image's. Images are kept
in a folder of this measurement's own, which goes with it: 3 GB.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "deploy" / "container" / "Containerfile"
PORT = 8593
OF_THIS_MACHINE = ("/etc/pip.conf", "/etc/ssl/certs")
"""Read-only in each step of the build, where they are there: how this machine reaches the registry of packages."""


class Builder:
    """Buildah with storage of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = ["buildah", "--root", str(folder / "images"), "--runroot", str(folder / "state")]
        self.program += ["--storage-driver", "vfs"]

    def __call__(self, *arguments: str) -> str:
        """Run a command and return what it printed; end with its last words when it fails."""
        command = [*self.program, *arguments]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.exit(f"container: {' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        return ended.stdout.strip()

    def stand_in(self, image: str) -> None:
        """Make a base image from Debian's packages: the distribution's own Python, under the name `python`."""
        python, distribution = re.fullmatch(r"python:([\d.]+)-slim-(\w+)", image).groups()  # type: ignore[union-attr]
        base = self.folder / "base"
        packages = f"--include=python{python},python3-venv,ca-certificates"
        command = ["debootstrap", "--variant=minbase", packages, distribution, str(base)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            sys.exit(f"container: debootstrap ended with {made.returncode}:\n{made.stdout[-2000:]}")
        (base / "usr" / "local" / "bin" / "python").symlink_to(f"/usr/bin/python{python}")
        container = self("from", "scratch")
        self("add", container, str(base), "/")
        self("config", "--env", "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", container)
        self("commit", container, f"localhost/{image}")
        self("rm", container)
        shutil.rmtree(base)


def main() -> None:
    """Build, run, ask for its health and stop; print how long each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debian", action="store_true", help="make the base image from Debian's packages")
    debian = parser.parse_args().debian
    for program, package in (("buildah", "buildah"), *([("debootstrap", "debootstrap")] if debian else [])):
        if shutil.which(program) is None:
            sys.exit(f"container: {program} is not installed: apt install {package}")
    text = FILE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        builder, began = Builder(Path(folder)), time.monotonic()

        def told(what: str) -> None:
            nonlocal began
            print(f"{what} ({(time.monotonic() - began) / 60:.1f} minutes)", flush=True)
            began = time.monotonic()

        if debian:
            for image in sorted(set(re.findall(r"^FROM (\S+)", text, re.MULTILINE))):
                builder.stand_in(image)
                told(f"stand-in for {image} made of Debian's packages")
        mounts = [f"--volume={path}:{path}:ro" for path in OF_THIS_MACHINE if Path(path).exists()]
        pull = "--pull-never" if debian else "--pull"
        shared = ["--isolation", "chroot", "--format", "docker", pull, *mounts]
        builder("bud", *shared, "--file", str(FILE), "--tag", "alertreview", str(ROOT))
        told("built")
        container = builder("from", "--pull-never", "localhost/alertreview")
        inside = ["run", "--isolation", "chroot", container, "--", "alertreview"]
        printed = builder(*inside, "demo", "--no-serve")
        told("\n".join(line for line in printed.splitlines() if "AUC" in line or "Study" in line))
        command = [*builder.program, *inside, "dashboard", "--port", str(PORT), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as served:
            healthy = text.partition("HEALTHCHECK")[2].partition("CMD ")[2].partition("\n")[0]
            asked = [part.replace("8501", str(PORT)) for part in re.findall(r'"([^"]*)"', healthy)]
            ask = [*builder.program, "run", "--isolation", "chroot", container, "--", *asked]
            while subprocess.run(ask, capture_output=True, check=False).returncode:
                if served.poll() is not None or time.monotonic() - began > 300:
                    sys.exit("container: the dashboard is not healthy")
                time.sleep(1)
            told("healthy")
            for process in children(served.pid):
                os.kill(process, signal.SIGTERM)
            try:
                served.wait(timeout=60)
            except subprocess.TimeoutExpired:
                for process in children(served.pid):
                    os.kill(process, signal.SIGKILL)
                sys.exit("container: the dashboard did not stop within 60 s")
        told("stopped")


def children(parent: int) -> list[int]:
    """Return the processes below one that run the dashboard."""
    found, waiting = [], [parent]
    while waiting:
        one = waiting.pop()
        # Each thread of a process has children of its own.
        threads = Path(f"/proc/{one}/task").glob("*/children")
        below = [int(child) for thread in threads for child in thread.read_text(encoding="ascii").split()]
        waiting += below
        found += [child for child in below if b"-m\0dashboard" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return found


if __name__ == "__main__":
    main()
