"""Append newly arrived events to those already known, and record what was corrected."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.events.mapping import SiteMapping
from core.events.reading import is_decision
from core.events.stream import EVENT_COLUMNS, finish_events, of_kind
from core.kinds import EventKind

TRAIL_COLUMNS = ("patient_id", "time", "kind", "item", "old_value", "old_text", "new_value", "new_text")

_PLACE = ["patient_id", "time", "kind", "item"]
_TEXTS = ("patient_id", "kind", "item", "name", "text", "unit")


@dataclass(frozen=True)
class Merged:
    """What came of old and new events."""

    events: pd.DataFrame  # an event stream with the column ``stay``
    trail: pd.DataFrame  # `TRAIL_COLUMNS`: one row for each result whose value was replaced
    n_added: int  # new events that were not known before


def merge_events(old: pd.DataFrame, old_stays: pd.DataFrame, new: pd.DataFrame, mapping: SiteMapping) -> Merged:
    """Add new events, with the column ``stay``; what is known already changes nothing.

    A corrected result replaces its value. Closed stays stay as they were paired.
    """
    before = _plain(old).assign(stay=_stay_names(old, old_stays), is_new=False)
    after = _plain(new).assign(stay=-1, is_new=True)
    names = before.drop_duplicates("item").set_index("item")["name"]
    after["name"] = after["item"].map(names).fillna(after["name"])
    known = pd.MultiIndex.from_frame(before[[*_PLACE, "value", "text"]].fillna({"value": np.inf}))
    arrived = pd.MultiIndex.from_frame(after[[*_PLACE, "value", "text"]].fillna({"value": np.inf}))
    after = after[~arrived.isin(known)]
    trail, replaced = _corrections(before, after)
    both = pd.concat([before[~replaced], after], ignore_index=True)
    both = both.astype(dict.fromkeys(_TEXTS, "category"))
    both["kind"] = both["kind"].cat.set_categories([kind.value for kind in EventKind])
    both["is_decision"] = is_decision(both, mapping)
    return Merged(finish_events(both, keep=("stay",)), trail, len(after))


def _plain(events: pd.DataFrame) -> pd.DataFrame:
    return events[list(EVENT_COLUMNS)].astype(dict.fromkeys(_TEXTS, "str")).reset_index(drop=True)


def _stay_names(events: pd.DataFrame, stays: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return each admission's or discharge's closed stay, -1 else: open stays may still be closed."""
    out = np.full(len(events), -1, dtype=np.int64)
    closed = stays[stays["discharged_at"].notna()]
    for kind, column in ((EventKind.ADMISSION, "admitted_at"), (EventKind.DISCHARGE, "discharged_at")):
        rows = np.flatnonzero(of_kind(events, [kind]))
        mine = events.iloc[rows][["patient_id", "time"]].astype({"patient_id": "str"})
        # Two stays may begin or end in the same minute: the i-th such event belongs to the i-th of them.
        mine["i"] = mine.groupby(["patient_id", "time"]).cumcount()
        named = closed[["patient_id", column, "stay_id"]].rename(columns={column: "time"})
        named["i"] = named.groupby(["patient_id", "time"]).cumcount()
        out[rows] = (
            mine.merge(named, on=["patient_id", "time", "i"], how="left")["stay_id"].fillna(-1).to_numpy(np.int64)
        )
    return out


def _corrections(
    before: pd.DataFrame, after: pd.DataFrame
) -> tuple[pd.DataFrame, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Find results of the same patient, time and item whose value or text has changed."""
    values = [EventKind.LAB_RESULT.value, EventKind.OBSERVATION.value]
    old, new = before[before["kind"].isin(values)], after[after["kind"].isin(values)]
    new = new.drop_duplicates(_PLACE, keep="last")
    old = old.assign(row=old.index).drop_duplicates(_PLACE, keep=False)
    pairs = old.merge(new, on=_PLACE, suffixes=("_old", "_new"))
    replaced = np.zeros(len(before), dtype=bool)
    replaced[pairs["row"].to_numpy(dtype=np.int64)] = True
    trail = pd.DataFrame(
        {
            **{name: pairs[name] for name in _PLACE},
            "old_value": pairs["value_old"],
            "old_text": pairs["text_old"],
            "new_value": pairs["value_new"],
            "new_text": pairs["text_new"],
        }
    )
    return trail[list(TRAIL_COLUMNS)], replaced
