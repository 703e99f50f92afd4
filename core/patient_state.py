"""The state of a patient at each snapshot: sparse features from everything known strictly before it.

An event counts as known when both its own time and the time at which it could be known lie before the snapshot; what
happens at the very snapshot belongs to the decision window, which begins there. Values of one stay are those known from
24 h before admission on; "ever", "last value" and "hours since last" look at the patient's whole past.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from core.events import EventKind, of_kind
from core.reference import ReferenceBands, patient_cells, period_cells, reference_bands
from core.state_blocks import Block, blocks, whole_block
from core.state_items import add_drugs, add_pending, add_results
from core.state_layout import Entries, Layout
from core.state_stay import add_stay


@dataclass(frozen=True)
class PatientState:
    """Features of all instances.

    Parameters
    ----------
    features : csr_matrix of shape (n_instances, n_features), float32
        As in `core.cohort.Cohort`: explicit zeros are values; a missing entry is "not measured", or a flag that is 0.
    dictionary : DataFrame
        As `core.cohort.Cohort.feature_dictionary`.
    unit : array of str, shape (n_instances,)
        Care unit at the snapshot, "" when unknown.
    """

    features: sparse.csr_matrix
    dictionary: pd.DataFrame
    unit: npt.NDArray[np.object_]


def patient_state(
    events: pd.DataFrame, stays: pd.DataFrame, instances: pd.DataFrame, *, calendar_is_shifted: bool
) -> PatientState:
    """Compute the features of all instances.

    Parameters
    ----------
    events : DataFrame
        An event stream.
    stays : DataFrame
        As `core.cohort.Cohort.stays`.
    instances : DataFrame
        As `core.cohort.Cohort.instances`, sorted by patient and snapshot; ``unit`` is not read.
    calendar_is_shifted : bool
        Reference bands then come from other patients, else from earlier dates.

    Returns
    -------
    PatientState
    """
    layout = Layout(events)
    entries = Entries(layout)
    whole = whole_block(events, stays, instances)
    bands = _bands(events, whole, instances, layout.n_items, calendar_is_shifted)
    has_stops = bool(of_kind(events, [EventKind.MEDICATION_STOP]).any())
    has_administrations = bool(of_kind(events, [EventKind.ADMINISTRATION]).any())
    for block in blocks(whole):
        add_results(block, bands, entries)
        add_pending(block, entries)
        add_drugs(block, entries, has_stops=has_stops, has_administrations=has_administrations)
    unit = add_stay(events, whole, stays, instances, entries)
    features = entries.matrix(len(instances))
    present = np.asarray(features.getnnz(axis=0)).ravel()
    used = np.flatnonzero(present)
    dictionary = layout.dictionary().iloc[used].reset_index(drop=True)
    dictionary["share_present"] = present[used] / max(len(instances), 1)
    return PatientState(features[:, used], dictionary, unit)


def _bands(
    events: pd.DataFrame, whole: Block, instances: pd.DataFrame, n_items: int, calendar_is_shifted: bool
) -> ReferenceBands:
    results = whole.only(EventKind.LAB_RESULT, EventKind.OBSERVATION)
    results = results.where(np.isfinite(results.value))
    if calendar_is_shifted:
        cells = patient_cells(str(each) for each in events["patient_id"].cat.categories)
        of_value, of_instance = cells[results.patient], cells[whole.instance_patient]
    else:
        of_value, of_instance = period_cells(results.known_at, whole.snapshot)
    return reference_bands(
        results.value, results.item, n_items, of_value, of_instance, expanding=not calendar_is_shifted
    )
