"""Which instances are learned from and which are scored: by time, by patient, in folds, or as the data say."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.errors import InvalidInputError
from core.vocabulary import Split

FoldOfRow = npt.NDArray[np.int16]
"""For each instance the fold it is scored in; -1 only learned from, -2 neither."""

LEARNED_FROM = -1
LEFT_OUT = -2
N_FOLDS = 5
PAST_SHARE = 0.6
"""Share of patients learned from in the split by patient; the paper's 2,646 of 4,486."""
RECENT_SHARE_OF_DAYS = 0.2


def choose_split(wanted: str, *, calendar_is_shifted: bool) -> Split:
    """Return the split for "auto": by time where the calendar is true, else in folds of patients.

    Raise InvalidInputError if a split by time is asked for where dates mean nothing between patients.
    """
    if wanted == "auto":
        return Split.FOLDS if calendar_is_shifted else Split.TIME
    split = Split(wanted)
    if split is Split.TIME and calendar_is_shifted:
        raise InvalidInputError(
            "A split by time means nothing here: the site mapping says that the dates of this record set are shifted "
            "patient by patient. Use --split folds, patient or source."
        )
    return split


def fold_of_row(
    split: Split,
    instances: pd.DataFrame,
    patients: pd.DataFrame,
    *,
    since: pd.Timestamp | None = None,
    seed: int,
) -> FoldOfRow:
    """Return the fold of each instance of a snapshot, as an int16 array of shape (n_instances,).

    It is the fold that an instance is scored in (0 where there is only one), -1 when it is only learned from, -2 when
    the data leave it out. A split by time has its first recent moment at `since`, site time; None takes the last fifth
    of the days. The seed is for splits that draw patients. Raise InvalidInputError when nothing is left to learn from
    or to score.
    """
    if since is not None and split is not Split.TIME:
        raise InvalidInputError(f"A first recent day (--since) belongs to the split by time, not to '{split.value}'.")
    if split is Split.TIME:
        folds = _by_time(instances["snapshot_at"], since)
    elif split is Split.SOURCE:
        folds = _by_source(instances["patient_id"], patients)
    else:
        folds = _by_patient(instances["patient_id"], split, seed)
    learned, scored = int((folds != LEFT_OUT).sum()), int((folds >= 0).sum())
    if scored == 0 or (split is not Split.FOLDS and learned == scored):
        raise InvalidInputError(
            f"The split '{split.value}' leaves {learned - scored} instances to learn from and {scored} to score; both "
            "are needed. Choose another split or, by time, another first recent day (--since)."
        )
    return folds


def rows_of_fold(folds: FoldOfRow, fold: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows learned from and the rows scored in one fold; in folds, every other fold is past."""
    recent = np.flatnonzero(folds == fold)
    past = np.flatnonzero((folds != fold) & (folds != LEFT_OUT))
    return past, recent


def _by_time(snapshot_at: pd.Series, since: pd.Timestamp | None) -> FoldOfRow:
    if since is None:
        days = np.sort(snapshot_at.dt.normalize().unique())
        since = pd.Timestamp(days[int(len(days) * (1 - RECENT_SHARE_OF_DAYS))]) if len(days) else pd.Timestamp.min
    return np.where((snapshot_at >= since).to_numpy(), 0, LEARNED_FROM).astype(np.int16)


def _by_source(patient_id: pd.Series, patients: pd.DataFrame) -> FoldOfRow:
    split_of = patients.set_index("patient_id")["source_split"]
    if split_of.isna().all():
        raise InvalidInputError("The source came without subject splits. Use --split time, patient or folds.")
    split = patient_id.astype(str).map(split_of)
    return np.select(
        [split.isna().to_numpy(), (split == "train").to_numpy()], [LEFT_OUT, LEARNED_FROM], default=0
    ).astype(np.int16)


def _by_patient(patient_id: pd.Series, split: Split, seed: int) -> FoldOfRow:
    codes, names = pd.factorize(patient_id.astype(str), sort=True)
    place = np.random.default_rng(seed).permutation(len(names))[codes]
    if split is Split.FOLDS:
        if len(names) < N_FOLDS:
            raise InvalidInputError(f"{N_FOLDS} folds need at least {N_FOLDS} patients; there are {len(names)}.")
        return np.asarray(place % N_FOLDS, dtype=np.int16)
    return np.where(place < round(PAST_SHARE * len(names)), LEARNED_FROM, 0).astype(np.int16)
