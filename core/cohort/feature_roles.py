"""What each feature is to the tasks: its group among all features, and which features tell of a task's own item."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.cohort.feature_layout import GROUPS
from core.kinds import FeatureGroup, Kind

FEATURE_GROUP_WEIGHTS: Final = {
    "since": 0.30,
    "now": 0.30,
    "count": 0.12,
    "person": 0.10,
    "between": 0.06,
    "change": 0.03,
    "last": 0.03,
    "ever": 0.03,
    "stay": 0.015,
}
"""Share of each group of features in the similarity of two instances. Found on the MIMIC-IV demo without planted flips:
the weights that raise what left-out patients' decisions are explained by."""
_GROUP_OF_ASPECT: Final = {
    **dict.fromkeys(("hours_since_last", "hours_since_start"), "since"),
    **dict.fromkeys(("measured_24h", "given_24h", "on_now", "pending"), "now"),
    "count_24h": "count",
    "hours_between": "between",
    **dict.fromkeys(("change", "change_from_first", "slope_24h", "slope_stay"), "change"),
    **dict.fromkeys(("last_value", "is_high", "is_low"), "last"),
    **dict.fromkeys(("ever", "count_stay", "count_starts"), "ever"),
    **dict.fromkeys(("min_stay", "max_stay", "mean_stay", "first_stay"), "stay"),
}
"""Features of no other group describe the person, the stay and the care unit."""
OWN_ITEM: Final[dict[str, tuple[tuple[FeatureGroup, str], ...]]] = {
    "recent": (("result", "measured_24h"), ("course", "given_24h")),
    "count": (("result", "count_24h"),),
    "in_stay": (("result", "count_stay"), ("course", "count_starts")),
    "since": (("result", "hours_since_last"), ("course", "hours_since_last")),
    "between": (("value", "hours_between"),),
    "pending": (("pending", "pending"),),
    "high": (("value", "is_high"),),
    "low": (("value", "is_low"),),
    "ever": (("result", "ever"), ("course", "ever")),
    "on_now": (("course", "on_now"),),
    "since_start": (("course", "hours_since_start"),),
}
"""What is told of a task's own item, and the features that tell it for kinds of decisions with such features."""
_SIGNS: Final = ("on_now", "given_24h")
_FEWEST_LETTERS: Final = 5
"""Of a name, for it to be recognised in another."""
_SHARED_LETTERS: Final = 2 / 3
"""Of the longer of two words that begin alike ("valproate", "valproic"), for them to be one name."""


def shares_name(drug: str, lab: str) -> bool:
    """Return whether a drug's first word names the lab as well: a level, or what the drug replaces.

    Examples
    --------
    >>> shares_name("Tacrolimus 1 mg", "tacroFK"), shares_name("Vancomycin", "Vancomycin Trough")
    (True, True)
    >>> shares_name("Red Blood Cells", "Blood Culture"), shares_name("Phenobarbital", "Phenytoin")
    (False, False)
    """
    first = next((word for word in _words(drug) if len(word) > 2), "")
    return any(_is_one_name(first, word) for word in _words(lab))


def _words(name: str) -> list[str]:
    return [word.casefold() for word in re.findall(r"[^\W\d_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name))]


def _is_one_name(one: str, other: str) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    n = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    return n >= _FEWEST_LETTERS and (n == shorter or n >= _SHARED_LETTERS * longer)


@dataclass(frozen=True)
class FeatureRoles:
    """Roles of features."""

    groups: npt.NDArray[Any]  # shape (n_features,): keys of `FEATURE_GROUP_WEIGHTS`
    # Shape (n_tasks, len(OWN_ITEM): feature that tells each thing about a task's own item; -1 where there is none.
    own_item: npt.NDArray[np.int32]
    signs: npt.NDArray[np.int32]  # shape (n_signs,): courses that are going on or were given
    # Shape (n_named, 2): tasks of labs, and positions in `signs` of the drugs that share their name.
    named: npt.NDArray[np.int32]
    # `measured`, `on` and `given`: shape (n_features,): labs measured in 24 h, courses going on, and given in 24 h.
    measured: npt.NDArray[np.bool_]
    on: npt.NDArray[np.bool_]
    given: npt.NDArray[np.bool_]
    day_of_stay: int  # feature of the day of the stay; -1 without

    @classmethod
    def of(cls, dictionary: pd.DataFrame, task_names: Sequence[str], task_kinds: Sequence[str]) -> "FeatureRoles":
        """Read the roles from a feature dictionary, and names and kinds (keys of `core.kinds.Kind`) of the tasks."""
        aspects, sources = (dictionary[name].astype(str).to_numpy(dtype=object) for name in ("aspect", "source"))
        group_of = {
            (each.key, each.meaning.casefold()): group for group, features in GROUPS.items() for each in features
        }
        column_of: dict[tuple[str, str, str], int] = {}
        for column, (source, aspect, meaning) in enumerate(
            zip(sources, aspects, dictionary["meaning"].astype(str), strict=True)
        ):
            group = group_of.get((aspect, meaning.removeprefix(f"{source}: ").casefold()))
            if group:
                column_of.setdefault((source, group, aspect), column)
        own = np.full((len(task_names), len(OWN_ITEM)), -1, dtype=np.int32)
        for task, (name, kind) in enumerate(zip(task_names, task_kinds, strict=True)):
            for place, sources_of in enumerate(OWN_ITEM.values()):
                for group, aspect in sources_of:
                    if group in Kind(kind).record.features:
                        own[task, place] = column_of.get((name, group, aspect), -1)
        days = np.flatnonzero(aspects == "day_of_stay")
        signs = np.flatnonzero(np.isin(aspects.astype(str), _SIGNS)).astype(np.int32)
        labs = [
            (task, name)
            for task, (name, kind) in enumerate(zip(task_names, task_kinds, strict=True))
            if "result" in Kind(kind).record.features
        ]
        labs_of = {drug: [task for task, lab in labs if shares_name(drug, lab)] for drug in set(sources[signs])}
        named = [(task, place) for place, drug in enumerate(sources[signs]) for task in labs_of[drug]]
        return cls(
            groups=np.array([_GROUP_OF_ASPECT.get(aspect, "person") for aspect in aspects]),
            own_item=own,
            signs=signs,
            named=np.array(named, dtype=np.int32).reshape(-1, 2),
            measured=aspects == "measured_24h",
            on=aspects == "on_now",
            given=aspects == "given_24h",
            day_of_stay=int(days[0]) if len(days) else -1,
        )
