"""Kinds of events and of decisions. One entry of `Kind` registers a kind of decision; everything else reads it here."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, Literal

FeatureGroup = Literal["value", "result", "pending", "course"]
"""Group of features; see `core.cohort.feature_layout.GROUPS`."""


class EventKind(StrEnum):
    """What a recognised event is. The order is stored; a new kind goes to the end."""

    ADMISSION = "ADMISSION"
    DISCHARGE = "DISCHARGE"
    UNIT = "UNIT"  # arrival on a care unit; the item is the unit's name
    LAB_ORDER = "LAB_ORDER"  # a lab was ordered, or its specimen taken
    LAB_RESULT = "LAB_RESULT"
    OBSERVATION = "OBSERVATION"
    """A vital sign or another measured value that nobody orders: it describes the state and is never a task."""
    MEDICATION_ORDER = "MEDICATION_ORDER"  # a drug order started
    MEDICATION_STOP = "MEDICATION_STOP"
    ADMINISTRATION = "ADMINISTRATION"
    BIRTH = "BIRTH"
    DEATH = "DEATH"
    SEX = "SEX"  # the item is "F" or "M"
    LABEL_TRUE = "LABEL_TRUE"  # a label file says yes; the item is the file's question
    LABEL_FALSE = "LABEL_FALSE"

    @property
    def number(self) -> int:
        """Position among the kinds, which stands for it in arrays."""
        return EVENT_NAMES.index(self.value)


EVENT_NAMES: Final = [kind.value for kind in EventKind]
PATIENT_EVENTS: Final = (EventKind.BIRTH, EventKind.DEATH, EventKind.SEX)
LABEL_EVENTS: Final = (EventKind.LABEL_TRUE, EventKind.LABEL_FALSE)
"""What somebody says of a patient at a time; nothing happened then, and nothing of it was known."""


ACT_WORDS: Final[Mapping[EventKind, tuple[str, ...]]] = {
    EventKind.LAB_ORDER: ("ordered", "sampled"),
    EventKind.LAB_RESULT: ("measured",),
    EventKind.MEDICATION_ORDER: ("ordered", "prescribed", "dispensed", "ordered or dispensed"),
    EventKind.ADMINISTRATION: ("given", "dispensed"),
}
"""What an event that decides may be called: the first, unless a site mapping knows better (``act_words``)."""
_ONE_AND_WHOSE: Final = {
    "ordered": ("order", "had the order"),
    "sampled": ("specimen", "had a specimen taken"),
    "measured": ("result", "had it measured"),
    "prescribed": ("prescription", "were prescribed it"),
    "dispensed": ("dispensation", "had it dispensed"),
    "given": ("administration", "were given it"),
}
"""`KindWords.act` and `KindWords.had` of each word of `ACT_WORDS`."""


@dataclass(frozen=True)
class KindRecord:
    """How a kind of decision shows in the records."""

    # `order` and `done`: the event that asks for it, and the one that shows that it was done.
    order: EventKind
    done: EventKind
    stop: EventKind | None = None  # the event that ends it; None for what is done once
    also: tuple[EventKind, ...] = ()  # events that nobody decides on, described by the same features as `done`
    features: tuple[FeatureGroup, ...] = ("result", "pending")  # groups of features that describe its items
    setting: str = ""  # key of the site mapping that says which of `order` and `done` is the decision
    # {"auto", "order"}: where no setting says it: "auto" is the order for items that have any, else what was done.
    decided_by: Literal["auto", "order"] = "auto"
    # Positive instances that a task needs, where this differs from the site mapping's ``min_positive``.
    min_positive: int | None = None
    folds_case: bool = False  # names that differ only by case are one item, unless the site mapping says otherwise


@dataclass(frozen=True)
class KindWords:
    """How a kind of decision is worded on pages, in reports and in files; `Kind.worded` knows the source of a task."""

    noun: str  # one task: "lab order"
    # What is decided on: "lab". Categories of a site mapping name it. Its plural takes an s, as that of `act`.
    item: str
    done: str = "ordered"  # "ordered", after the name of an item
    act: str = "order"  # one event: "order"
    had: str = "had the order"  # of patients for whom it was done: "had the order"
    happened: str = ""  # in the record: "started or given"; empty for `done`

    @property
    def items(self) -> str:
        """What is decided on: "labs"."""
        return f"{self.item}s"


class Kind(StrEnum):
    """A kind of decision: something that is done for a patient, or not.

    Keys are stored and never change; every task key begins with one ("LAB_ORDER/50912"). A new kind brings its events
    in `EventKind`, and rules in the site mappings that recognise them.
    """

    record: KindRecord
    words: KindWords

    # The defaults exist for type checkers only, which read the look-up `Kind(key)` as a call of this method.
    def __new__(cls, key: str, record: KindRecord | None = None, words: KindWords | None = None) -> "Kind":
        """Make a member whose value is its key."""
        kind = str.__new__(cls, key)
        kind._value_ = key
        if record is not None and words is not None:
            kind.record, kind.words = record, words
        return kind

    LAB_ORDER = (
        "LAB_ORDER",
        KindRecord(
            order=EventKind.LAB_ORDER,
            done=EventKind.LAB_RESULT,
            also=(EventKind.OBSERVATION,),
            features=("value", "result", "pending"),
            setting="lab_tasks_from",
        ),
        KindWords(noun="lab order", item="lab"),
    )
    MEDICATION = (
        "MEDICATION",
        KindRecord(
            order=EventKind.MEDICATION_ORDER,
            done=EventKind.ADMINISTRATION,
            stop=EventKind.MEDICATION_STOP,
            features=("course",),
            setting="medication_tasks_from",
            folds_case=True,
        ),
        KindWords(
            noun="medication",
            item="drug",
            done="given",
            act="administration",
            had="were given it",
            happened="started or given",
        ),
    )

    LABEL = (
        "LABEL",
        KindRecord(order=EventKind.LABEL_TRUE, done=EventKind.LABEL_FALSE, features=(), decided_by="order"),
        KindWords(
            noun="labelled question",
            item="label",
            done="labelled true",
            act="label",
            had="were labelled true",
        ),
    )

    @cached_property
    def events(self) -> tuple[EventKind, ...]:
        """Kinds of events that tell of it."""
        return tuple(event for event in EventKind if event in (self.record.order, self.record.done, self.record.stop))

    def worded(self, done: str) -> KindWords:
        """Return the words of a task of which the import says what was done, as `done_word` returns it.

        Examples
        --------
        >>> Kind.LAB_ORDER.worded("measured").had
        'had it measured'
        """
        if not done:
            return self.words
        act, had = _ONE_AND_WHOSE.get(done, ("record", f"had it {done}"))
        noun = f"{self.words.item} {act}" if self is Kind.LAB_ORDER else self.words.noun
        return replace(self.words, noun=noun, done=done, act=act, had=had, happened="")


KIND_OF_EVENT: Final = {event: kind for kind in Kind for event in kind.events}
VALUE_EVENTS: Final = tuple(
    event for kind in Kind if "value" in kind.record.features for event in (kind.record.done, *kind.record.also)
)
"""Events whose numbers matter."""
CHARTED: Final = tuple(kind for kind in Kind if kind is not Kind.LABEL)
"""Kinds that rules of a site mapping recognise in the records; labels come from files of their own."""
ITEM_EVENTS: Final = (*(event for kind in CHARTED for event in (*kind.events, *kind.record.also)), *LABEL_EVENTS)
"""Events of an item: without one they are neither task nor feature."""
ITEM_WORDS: Final = " or ".join(kind.words.item for kind in CHARTED)
""" "lab or drug": what tasks are about."""


def task_key(kind: Kind, item: str) -> str:
    """Return the key of a task, the same from import to import; the item is the group key of its events.

    Examples
    --------
    >>> task_key(Kind.LAB_ORDER, "50912")
    'LAB_ORDER/50912'
    """
    return f"{kind.value}/{item}"


def task_of(key: str) -> tuple[Kind, str]:
    """Return the kind and the item of a task key; raise ValueError if it begins with no kind.

    Examples
    --------
    >>> task_of("LAB_ORDER/50912")
    (<Kind.LAB_ORDER: 'LAB_ORDER'>, '50912')
    """
    kind, _, item = key.partition("/")
    return Kind(kind), item


def in_words(words: Iterable[str]) -> str:
    """Join what is said to be done, each word once: "ordered, dispensed or given"."""
    order = list(_ONE_AND_WHOSE)
    single = {each for word in words for each in word.replace(", ", " or ").split(" or ")}
    found = sorted(single, key=lambda word: (order.index(word) if word in order else len(order), word))
    return " or ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def said_of(done: Mapping[str, str]) -> dict[str, str]:
    """Return what `done_word` reads: the commonest word of each kind, and the tasks that have another one.

    Examples
    --------
    >>> said_of({"LAB_ORDER/a": "measured", "LAB_ORDER/b": "measured", "LAB_ORDER/c": "ordered"})
    {'LAB_ORDER': 'measured', 'LAB_ORDER/c': 'ordered'}
    """
    words: dict[str, Counter[str]] = {}
    for key, word in done.items():
        words.setdefault(task_of(key)[0].value, Counter())[word] += 1
    usual = {kind: min(counts, key=lambda word: (-counts[word], word)) for kind, counts in words.items()}
    return usual | {key: word for key, word in done.items() if word != usual[task_of(key)[0].value]}


def done_word(said: Mapping[str, str] | None, key: str) -> str:
    """Return what an import calls it that a task was done ("measured"), "" where it does not say; see `said_of`."""
    said = said or {}
    return said.get(key, said.get(task_of(key)[0].value, ""))
