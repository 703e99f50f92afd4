"""Kinds of events and decisions: entries that fit each other, the site mapping and the stored snapshots."""

import pickle

import pytest

from core.cohort.feature_layout import GROUPS
from core.events.mapping import SiteMapping
from core.kinds import EVENT_NAMES, KIND_OF_EVENT, VALUE_EVENTS, EventKind, Kind, task_key, task_of


def test_no_event_belongs_to_two_kinds():
    assert len(KIND_OF_EVENT) == sum(len(kind.events) for kind in Kind)


def test_numbers_of_events_in_stored_arrays_never_change():
    first = "ADMISSION DISCHARGE UNIT LAB_ORDER LAB_RESULT OBSERVATION MEDICATION_ORDER MEDICATION_STOP ADMINISTRATION"
    assert EVENT_NAMES[:12] == [*first.split(), "BIRTH", "DEATH", "SEX"]
    assert [kind.number for kind in EventKind] == list(range(len(EventKind)))


def test_values_are_those_of_labs_and_of_what_nobody_orders():
    assert VALUE_EVENTS == (EventKind.LAB_RESULT, EventKind.OBSERVATION)


@pytest.mark.parametrize("kind", Kind)
def test_an_entry_names_what_there_is(kind):
    assert set(kind.record.features) <= set(GROUPS)
    assert kind.record.setting in ("", *SiteMapping.model_fields)
    assert kind.record.stop or "course" not in kind.record.features
    assert kind.words.noun != kind.words.item


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_survives_storage(kind):
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert Kind(str(kind)) is kind
    assert task_of(task_key(kind, "a/b")) == (kind, "a/b")


def test_one_item_has_words_for_one_and_for_several():
    words = Kind.MEDICATION.words
    assert (words.noun, words.nouns, words.item, words.items) == ("medication", "medications", "drug", "drugs")
