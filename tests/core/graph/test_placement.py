"""The same results wherever arrays lie in memory: machine code takes another path where they are close together."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core.graph import extension
from core.graph.feature_rows import FeatureRows
from core.graph.kernels import LeftOut, Nodes
from core.graph.similarity import dense_similarity
from core.numerics.distances import symmetric_squared_distances

N_NODES, N_NEIGHBORS, N_FEATURES, N_ROWS, N_BLOCKS = 60, 10, 10, 300, 20
Place = Callable[[Any], Any]


class Memory:
    """A piece of memory that arrays are copied into from both ends, with random gaps between them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._room = np.zeros(1 << 18, dtype=np.uint8)
        self._low, self._high = -self._room.ctypes.data % 64, len(self._room) - 64
        self._high -= (self._room.ctypes.data + self._high) % 64
        self._step, self._gap = self._random.choice([8, 16, 64]), self._random.choice([0, 16, 64, 256])

    def place(self, array: Any) -> Any:
        size = -(-array.nbytes // self._step) * self._step
        size += self._step * self._random.randrange(1 + self._gap // self._step)
        if self._random.random() < 0.5:
            start, self._low = self._low, self._low + size
        else:
            start = self._high = self._high - size
        placed = self._room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        placed[...] = array
        return placed


@pytest.fixture(scope="module")
def extend() -> Callable[[Place], Any]:
    """Tie instances to a graph, some with nodes left out, after a function has moved every array."""
    numbers = np.random.default_rng(0)
    points, queries = (
        (numbers.normal(size=(n, N_FEATURES)) * (numbers.random((n, N_FEATURES)) < 0.7)).astype(np.float32)
        for n in (N_NODES, N_ROWS)
    )
    similarity, scales = dense_similarity(symmetric_squared_distances(points.astype(float)), N_NEIGHBORS, "local")
    inverse = np.linalg.inv(np.diag(similarity.sum(axis=1) + 1) - similarity)
    soft_labels = inverse @ numbers.choice([-1.0, 1.0], N_NODES)
    nodes = extension.graph_nodes(np.ones(N_NODES), scales, inverse, soft_labels)
    squares, pulls = (numbers.normal(size=n * N_BLOCKS).astype(np.float32) / 100 for n in (4, 2))
    left_nodes = numbers.permutation(N_NODES)[: 2 * N_BLOCKS]
    left = LeftOut(np.arange(N_BLOCKS + 1) * 2, left_nodes, np.arange(N_BLOCKS) * 4, squares, pulls)
    blocks = np.where(np.arange(N_ROWS) % 2, numbers.integers(0, N_BLOCKS, N_ROWS), -1)
    rows = FeatureRows.of_dense(queries)
    norms = np.einsum("ij,ij->i", points, points)
    query = extension.query_of(True, 1.0)

    def run(place: Place) -> Any:
        row = place(np.zeros(N_NODES, dtype=np.float32))
        steps, full, d, near, _, powers, _, places, searches = extension.workspace(N_NODES, N_NEIGHBORS)
        near, powers = place(near), place(powers)
        work = (
            tuple(place(step) for step in steps), place(full), place(d), near, near.view(np.int32),
            powers, powers.view(np.int32), place(places), place(searches),
        )  # fmt: skip
        conductance, inflow = place(np.zeros(N_ROWS)), place(np.zeros(N_ROWS))
        extension._extend_sparse(
            (place(rows.starts), place(rows.places), place(rows.values)),
            place(np.ascontiguousarray(points.T)), place(norms), row, row.view(np.int32),
            Nodes(*map(place, nodes)), LeftOut(*map(place, left)), place(blocks),
            query, N_NEIGHBORS, work, conductance, inflow,
        )  # fmt: skip
        return np.concatenate((conductance, inflow))

    return run


def test_results_do_not_depend_on_where_in_memory_arrays_lie(extend: Callable[[Place], Any]) -> None:
    apart = extend(np.copy)
    assert np.isfinite(apart).all()
    assert (apart != 0).all()
    for seed in range(50):
        np.testing.assert_allclose(extend(Memory(seed).place), apart, rtol=1e-5)
