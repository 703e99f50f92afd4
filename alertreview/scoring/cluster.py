"""Tasks on a cluster: the same joblib call, run by the workers of a Dask scheduler."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import joblib

from core.errors import ClusterError, SettingsError
from core.scoring.all_tasks import Workers

SECONDS_TO_CONNECT = 5.0


@contextmanager
def cluster_workers(address: str) -> Iterator[Workers]:
    """Connect to a Dask scheduler ("tcp://HOST:PORT") and return the `workers` of `core.scoring.all_tasks.score_tasks`.

    Every worker gets the prepared instances once; a task is then only a number. A task whose worker dies is run by
    another one. Workers need this version of alertreview and its libraries; other processors round differently. Raise
    SettingsError if the optional packages are not installed, ClusterError if the scheduler cannot be reached, has no
    worker, or loses the instances with its last worker. What is finished is kept: the same command goes on from there.
    """
    try:
        dask: Any = import_module("distributed")
        configured: Any = import_module("dask").config.set
    except ImportError:
        raise SettingsError(
            "Scoring on a cluster needs the optional packages of the extra 'cluster': "
            "install 'alertreview[cluster]' here and on every worker."
        ) from None
    # Also how long to wait for a worker that has died with a result.
    with configured({"distributed.comm.timeouts.connect": SECONDS_TO_CONNECT}):
        client = _connect(dask, address)
        try:
            if not client.ncores():
                raise ClusterError(f"The scheduler at {address} has no worker. Start workers, then score again.")
            yield lambda shared: joblib.parallel_config("dask", client=client, scatter=[shared])
        except (dask.CancelledError, dask.KilledWorker, dask.comm.CommClosedError) as error:
            raise ClusterError(
                f"The cluster at {address} lost what it was working on ({type(error).__name__}). "
                "Finished tasks are kept: start its workers again and give the same command."
            ) from error
        finally:
            client.close()


def _connect(dask: Any, address: str) -> Any:
    try:
        return dask.Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {address} ({error}). Start it, or name another with --cluster."
        ) from None
