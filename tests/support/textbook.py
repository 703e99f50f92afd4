"""The paper's soft labels by its own formula, on small graphs and decisions drawn by chance."""

import numpy as np


def textbook(W, y, c=1.0, g=1.0):
    """Paper, eq. (had:sle): (L / c + (1 + g / c) I) l = y, solved densely."""
    n = len(y)
    L = np.diag(W.sum(axis=1)) - W
    return np.linalg.solve(L / c + (1 + g / c) * np.eye(n), y)


def random_graph(n, seed, density=0.4):
    random = np.random.default_rng(seed)
    W = np.triu(random.random((n, n)) * (random.random((n, n)) < density), 1)
    return W + W.T, np.where(random.random(n) < 0.4, 1.0, -1.0)


def two_moons(n=80, seed=0, p=3):
    random = np.random.default_rng(seed)
    y = np.where(random.random(n) < 0.5, 1, -1)
    X = random.normal(size=(n, p)) + y[:, None] * 0.8
    flipped = random.random(n) < 0.05
    return X, np.where(flipped, -y, y)
