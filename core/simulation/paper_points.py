"""The paper's synthetic data sets D1, D2 and D3 with their true anomaly scores; parameters are ours, and documented.

The paper publishes no parameters for them. D1 follows the mixture in a commented-out block of its source; D2 and D3
follow its words and figures: overlapping classes, and clusters close to concentric circles that do not overlap.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from core.errors import InvalidInputError
from core.validation import FloatArray

Name: TypeAlias = Literal["D1", "D2", "D3"]
FLIPPED_SHARE: Final = 0.03


@dataclass(frozen=True)
class Mixture:
    """An equal mixture of Gaussians in the plane."""

    means: FloatArray  # shape (n_components, 2)
    covariances: FloatArray  # shape (n_components, 2, 2)

    def draw(self, n: int, random: np.random.Generator) -> FloatArray:
        """Draw n points; shape (n, 2)."""
        component = random.integers(0, len(self.means), n)
        roots = np.linalg.cholesky(self.covariances)
        return np.asarray(self.means[component] + np.einsum("nij,nj->ni", roots[component], random.normal(size=(n, 2))))

    def log_density(self, X: FloatArray) -> FloatArray:
        """Log density at the rows of `X`; shape (n,)."""
        difference = X[:, None, :] - self.means
        precision = np.linalg.inv(self.covariances)
        distance = np.einsum("nci,cij,ncj->nc", difference, precision, difference)
        log_norm = -np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(self.covariances)[1]
        return np.asarray(np.logaddexp.reduce(log_norm - distance / 2, axis=1) - np.log(len(self.means)))


def mixtures(name: Name) -> tuple[Mixture, Mixture]:
    """Return the class densities (positive, negative) of a data set.

    D1: one elongated Gaussian, and two small ones on either side of it, like an exclusive or.
    D2: a checkerboard of 4 x 4 overlapping Gaussians, colours alternating.
    D3: a core and two rings around it, the middle one of the other class.

    Raises
    ------
    InvalidInputError
        For another name.
    """
    if name == "D1":
        small = np.array([[1.0, 0.5], [0.5, 1.0]])
        return (
            Mixture(np.zeros((1, 2)), np.array([[[50.0, -20.0], [-20.0, 10.0]]])),
            Mixture(np.array([[-5.0, -1.0], [5.0, 3.0]]), np.array([small, small])),
        )
    if name == "D2":
        cells = np.array([(i, j) for i in range(4) for j in range(4)])
        even = cells.sum(axis=1) % 2 == 0
        return tuple(Mixture(2.0 * cells[part], np.tile(0.5 * np.eye(2), (8, 1, 1))) for part in (even, ~even))  # type: ignore[return-value]
    if name == "D3":
        core, middle, outer = _ring(0.0, 1, 0.25), _ring(3.0, 12, 0.2), _ring(6.0, 24, 0.2)
        # The core holds as many components as a third of the outer ring, so that each has its share of the class.
        means = np.vstack((np.tile(core[0], (8, 1)), outer[0]))
        covariances = np.concatenate((np.tile(core[1], (8, 1, 1)), outer[1]))
        return Mixture(means, covariances), Mixture(*middle)
    raise InvalidInputError(f"There is no synthetic data set {name!r}; choose D1, D2 or D3.")


def _ring(radius: float, n_components: int, spread: float) -> tuple[FloatArray, FloatArray]:
    angles = 2 * np.pi * np.arange(n_components) / n_components
    means = radius * np.column_stack((np.cos(angles), np.sin(angles)))
    return means, np.tile(spread * np.eye(2), (n_components, 1, 1))


@dataclass(frozen=True)
class LabelledPoints:
    """Points with labels, some of them switched."""

    X: FloatArray  # shape (n, 2)
    y: FloatArray  # shape (n,): -1 or +1, after switching
    flipped: np.ndarray[tuple[int], np.dtype[np.bool_]]  # shape (n,): which labels were switched
    # Shape (n,): P(other label | x) under the class densities, for the label as it stands; higher = more unusual.
    true_score: FloatArray


def draw_points(name: Name, random: np.random.Generator, n_per_class: int = 500) -> LabelledPoints:
    """Draw both classes and switch the labels of three per cent of the points.

    References
    ----------
    The paper, section "Synthetic data".
    """
    positive, negative = mixtures(name)
    X = np.vstack((positive.draw(n_per_class, random), negative.draw(n_per_class, random)))
    y = np.repeat([1.0, -1.0], n_per_class)
    flipped = np.zeros(len(y), dtype=bool)
    flipped[random.choice(len(y), round(FLIPPED_SHARE * len(y)), replace=False)] = True
    y = np.where(flipped, -y, y)
    log_odds = positive.log_density(X) - negative.log_density(X)
    return LabelledPoints(X, y, flipped, np.asarray(0.5 * (1 - y * np.tanh(log_odds / 2))))
