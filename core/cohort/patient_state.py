"""The state of a patient at each snapshot: sparse features from everything known strictly before it.

An event counts as known when both its own time and the time at which it could be known lie before the snapshot; what
happens at the very snapshot belongs to the decision window, which begins there. Values of one stay are those known from
24 h before admission on; "ever", "last value" and "hours since last" look at the patient's whole past.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from core.cohort.feature_layout import Entries, Layout
from core.cohort.instance_blocks import blocks, whole_block
from core.cohort.item_features import add_drugs, add_panels, add_pending, add_results, add_stay
from core.cohort.reference_bands import BandCollector
from core.events.mapping import Category
from core.events.stream import EventKind


@dataclass(frozen=True)
class PatientState:
    """Features of the instances of some patients.

    Parameters
    ----------
    features : csr_matrix of shape (n_instances, n_columns), float32
        One column for every aspect that the layout knows; explicit zeros are values; a missing entry is "not measured",
        or a flag that is 0.
    unit : array of str, shape (n_instances,)
        Care unit at the snapshot, "" when unknown.
    """

    features: sparse.csr_matrix
    unit: npt.NDArray[np.object_]


@dataclass(frozen=True)
class Background:
    """What is known of all patients when the features of some are computed.

    Parameters
    ----------
    layout : Layout
    bands : BandCollector
        Complete.
    kinds : frozenset of EventKind
        Kinds of events that the source has anywhere: where it never tells when drugs stop or are given, a drug counts
        as on, or as given, for a day after each start.
    panels, classes : array of bool, shape (n_categories, n_items)
        Members of the lab panels, and of the drug classes; no row of both has any.
    """

    layout: Layout
    bands: BandCollector
    kinds: frozenset[EventKind]
    panels: npt.NDArray[np.bool_]
    classes: npt.NDArray[np.bool_]


def members(items: Sequence[str], categories: Sequence[Category], kind: str) -> npt.NDArray[np.bool_]:
    """Find the members of lab panels or drug classes, of shape (n_categories, n_items); none in those of another kind.

    Parameters
    ----------
    items : sequence of str
    categories : sequence of Category
    kind : {"lab", "drug"}
    """
    out = np.zeros((len(categories), len(items)), dtype=bool)
    for i, category in enumerate(categories):
        if category.kind == kind:
            patterns = [re.compile(pattern) for pattern in category.items]
            out[i] = [any(pattern.fullmatch(item) for pattern in patterns) for item in items]
    return out


def patient_state(
    events: pd.DataFrame, stays: pd.DataFrame, instances: pd.DataFrame, background: Background
) -> PatientState:
    """Compute the features of the instances of some patients.

    Parameters
    ----------
    events : DataFrame
        All events of these patients, as a part of `core.events.parts.EventStream`.
    stays, instances : DataFrame
        Theirs, as in `core.cohort.cohort.Cohort`, with ``stay_id`` = row of `stays`; instances sorted by patient and
        snapshot;
        ``unit`` is not read.
    background : Background

    Returns
    -------
    PatientState
    """
    entries = Entries(background.layout)
    whole = whole_block(events, stays, instances)
    bands = background.bands.bands(events, whole)
    drugs = partial(
        add_drugs,
        entries=entries,
        has_stops=EventKind.MEDICATION_STOP in background.kinds,
        has_administrations=EventKind.ADMINISTRATION in background.kinds,
    )
    for block in blocks(whole):
        add_results(block, bands, entries)
        add_pending(block, entries)
        drugs(block)
        if len(background.panels):
            add_panels(block.regrouped(background.panels), entries)
            drugs(block.regrouped(background.classes), group="class")
    unit = add_stay(events, whole, stays, instances, entries)
    return PatientState(entries.matrix(len(instances)), unit)
