"""Kinds of events and decisions: entries that fit each other, the site mapping and the stored snapshots."""

import pickle

import pytest

from core.cohort.feature_layout import GROUPS
from core.events.mapping import SiteMapping
from core.kinds import (
    ACT_WORDS,
    CHARTED,
    EVENT_NAMES,
    KIND_OF_EVENT,
    VALUE_EVENTS,
    EventKind,
    Kind,
    done_word,
    in_words,
    said_of,
    task_key,
    task_of,
)


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
    assert (words.noun, words.item, words.items) == ("medication", "drug", "drugs")


@pytest.mark.parametrize("kind", CHARTED)
def test_no_word_of_a_task_says_more_than_its_import(kind):
    told = {each for words in ACT_WORDS.values() for word in words for each in word.split(" or ")}
    telling = told | {"order", "specimen", "prescription", "dispensation", "administration"}
    for done in (word for event in kind.events for word in ACT_WORDS.get(event, ())):
        words = kind.worded(done)
        said = " ".join([words.noun.removeprefix("medication"), words.done, words.act, words.had, words.happened])
        assert words.done == done
        others = telling - set(done.split(" or ")) - {words.act}
        assert not others & set(said.split()), (done, said)


def test_several_words_are_joined_in_one_order():
    assert in_words(["given", "ordered or dispensed"]) == "ordered, dispensed or given"
    assert in_words(["given", "ordered", "given"]) == "ordered or given"
    assert in_words(["labelled true"]) == "labelled true"


def test_an_import_of_a_former_version_says_nothing():
    assert done_word(None, "LAB_ORDER/a") == done_word({}, "LAB_ORDER/a") == ""
    assert Kind.LAB_ORDER.worded("") == Kind.LAB_ORDER.words


def test_a_task_with_another_word_than_its_kind_keeps_it():
    done = {"LAB_ORDER/a": "measured", "LAB_ORDER/b": "ordered", "LAB_ORDER/c": "measured", "MEDICATION/a": "given"}
    assert {key: done_word(said_of(done), key) for key in done} == done
