"""How fast this machine is, in five numbers, to set beside those of the machine that the published figures are from.

Virtual machines of one name differ by more than twice, and so do the days of one of them.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._machine import described

REPEATS = 5
N_ADDITIONS = 2_000_000
N_SIDE = 1_000
N_COPIED = 256 * 2**20
N_SYNCS = 50


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Fewest seconds that a piece of work took; whatever else the machine did can only lengthen it."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def python_ns() -> float:
    """Nanoseconds of an addition in a loop of the interpreter."""

    def add() -> int:
        total = 0
        for number in range(N_ADDITIONS):
            total += number
        return total

    return 1e9 * best(add) / N_ADDITIONS


def gflops(kind: type[np.floating]) -> float:
    """Billions of operations a second in a product of matrices, on one thread."""
    left = np.random.default_rng(0).normal(size=(N_SIDE, N_SIDE)).astype(kind)
    with threadpool_limits(1):
        return 2e-9 * N_SIDE**3 / best(lambda: left @ left)


def copied_gb() -> float:
    """Gigabytes a second from memory to memory, on one thread."""
    source = np.ones(N_COPIED, dtype=np.uint8)
    target = np.empty_like(source)
    return 1e-9 * N_COPIED / best(lambda: np.copyto(target, source))


def sync_ms(folder: Path) -> float:
    """Milliseconds until the disk says it has 4 KB, the middle of some tries; what a commit waits for."""
    seconds = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(N_SYNCS):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return 1000 * float(np.median(seconds))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="./dev bench machine", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="disk whose answer is timed")
    options = parser.parse_args()
    print(described())
    print(f"an addition in a loop of the interpreter: {python_ns():.0f} ns")
    print(
        f"product of matrices, one thread: {gflops(np.float64):.0f} GFLOPS, single precision {gflops(np.float32):.0f}"
    )
    print(f"copying memory, one thread: {copied_gb():.1f} GB/s")
    print(f"disk, until it has 4 KB: {sync_ms(options.folder):.2f} ms")


if __name__ == "__main__":
    main()
