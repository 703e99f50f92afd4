"""SoftHAD, loaded when it is first used: an import alone does not wait for scikit-learn, SciPy and pandas."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.softhad.estimator import FeatureWeights, SoftHAD, solve_soft_labels

__all__ = ["FeatureWeights", "SoftHAD", "solve_soft_labels"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from core.softhad import estimator

    return getattr(estimator, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
