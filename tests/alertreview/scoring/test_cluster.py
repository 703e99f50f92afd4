"""A cluster gives what one process gives, also when one of its workers dies in the middle."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from alertreview.scoring.cluster import cluster_workers
from core.errors import ClusterError, SettingsError
from core.scoring.all_tasks import Workers, score_tasks
from core.scoring.parameters import ScoringParameters
from core.scoring.scores import ScoredTasks

ROOT = Path(__file__).resolve().parents[3]
N_TASKS = 16
SCORERS = ("shared", "softhad", "logistic")
LOOPBACK = ["--host", "127.0.0.1", "--no-dashboard"]


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    """Start a scheduler or worker on loopback, without a dashboard."""
    # Unpickling a task imports `core`; a worker at a site has it installed.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"}
    command = [sys.executable, "-m", *arguments, *LOOPBACK]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, "list[subprocess.Popen[bytes]]"]]:
    """Address of a scheduler with two worker processes, and the workers."""
    found = tmp_path / "scheduler.json"
    processes = [start("distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(found))]
    try:
        deadline = time.monotonic() + 60
        while not found.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        address = json.loads(found.read_text())["address"]
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny")
        processes += [start(*worker, "--local-directory", str(tmp_path / f"worker-{number}")) for number in range(2)]
        wait_for_workers(address, 2)
        yield address, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def wait_for_workers(address: str, n_workers: int) -> None:
    from distributed import Client

    with Client(address, timeout=30, set_as_default=False) as client:
        client.wait_for_workers(n_workers, timeout=60)


def scored(
    workers: Workers | None = None,
    stop_one: "subprocess.Popen[bytes] | None" = None,
    store: dict[int, dict[str, np.ndarray]] | None = None,
) -> ScoredTasks:
    random = np.random.default_rng(2)
    n, p = 300, 20
    values = random.normal(size=(n, p)) * (random.random((n, p)) < 0.7)
    chance = 1 / (1 + np.exp(-values @ random.normal(size=(p, N_TASKS))))

    def kill_after_five(done: int, total: int) -> None:
        if stop_one is not None and done == 5:
            stop_one.kill()

    return score_tasks(
        sparse.csr_matrix(values, dtype=np.float32),
        random.random((n, N_TASKS)) < chance,
        is_flag=np.zeros(p, dtype=bool),
        patients=np.arange(n) // 3,
        past=np.arange(200),
        recent=np.arange(200, n),
        scorers=SCORERS,
        parameters=ScoringParameters(n_neighbors=10, n_nodes=60, n_graphs=2, n_features_kept=10),
        seed=1,
        n_jobs=None if workers is None else -1,
        on_progress=kill_after_five,
        workers=workers,
        store=store,
    )


def arrays_of(result: ScoredTasks) -> dict[str, np.ndarray]:
    """Every array of every task, by name."""
    arrays = {f"{task} {name}": array for task in result for name, array in result.evidence[task].items()}
    scores = {f"{task} score of {by}": result.scores(task, by).score for task in result for by in SCORERS}
    return arrays | scores


def assert_close(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_cluster_that_loses_a_worker_ends_complete_and_with_the_same_scores(
    cluster: tuple[str, "list[subprocess.Popen[bytes]]"],
) -> None:
    address, processes = cluster
    expected = scored()
    store: dict[int, dict[str, np.ndarray]] = {}
    try:
        with cluster_workers(address) as workers:
            found = scored(workers, stop_one=processes[0], store=store)
    except ClusterError:
        # Most often the other worker takes over; if what was under way is lost, the same command goes on.
        with cluster_workers(address) as workers:
            found = scored(workers, store=store)
    assert len(store) == N_TASKS
    assert processes[0].wait(timeout=60) != 0
    assert processes[1].poll() is None
    assert found.tasks == tuple(range(N_TASKS))
    assert_close(arrays_of(found), arrays_of(expected))


def test_an_address_where_nobody_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alertreview.scoring.cluster.SECONDS_TO_CONNECT", 0.5)
    with (
        pytest.raises(ClusterError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9 .*--cluster"),
        cluster_workers("tcp://127.0.0.1:9"),
    ):
        pass


def test_without_the_optional_packages_the_text_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SettingsError, match=r"alertreview\[cluster\]"), cluster_workers("tcp://127.0.0.1:9"):
        pass
