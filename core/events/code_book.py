"""The code book: what the site mapping makes of every code that was met, and how often each was met."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.errors import MappingError
from core.events.facts import FactKind
from core.events.import_report import Dropped, KindCount
from core.events.mapping import CompiledRules, Rule, SiteMapping, normalise
from core.events.plausibility import Finding
from core.events.spelling import (
    code_spelling,
    identifier,
    is_common_unit,
    is_rounded_code,
    look_of,
    name_key,
    says_missing,
    twin_key,
    without_zeros,
)
from core.kinds import ITEM_WORDS, KIND_OF_EVENT, EventKind, Kind

UNKNOWN = "code that no rule of the mapping recognises"
NO_ITEM = "code without an item"
IGNORED_ITEM = "item that the mapping ignores"
WORD_DOES_NOT_COUNT = "event word that does not count"
NOT_DONE = "called off, never done or entered in error"
WORD_UNKNOWN = "event word that the mapping does not know"
NO_ROW = "The source has no row, at most a header. Export it again, or give another file."
LEFT_OUT = -1
"""Code of "no kind" where kinds are numbered."""
_N_EXAMPLES_KEPT = 20
_FEMALE = "f female w woman weiblich frau femme f\u00e9minin femenino mujer femminile 8532"
_MALE = "m male man m\u00e4nnlich mann homme masculin masculino hombre maschile 8507"
_SEX = {**dict.fromkeys(_FEMALE.split(), "F"), **dict.fromkeys(_MALE.split(), "M")}
_OTHER = "u unknown unk o x d other divers undifferentiated 0 8551 8521 unbekannt null"
_OTHER_SEX = frozenset(["", *_OTHER.split()])
_NO_ITEM = frozenset({"null", "(null)", "nan", "#n/a", "\\n"})


@dataclass(frozen=True)
class Recognised:
    """What the mapping makes of one code."""

    kind: EventKind | None  # None when the code is left out
    item: str = ""
    spelling: str = ""  # the item as the source spells it
    unit: str = ""
    reason: str = ""  # why it is left out
    counted_as: EventKind | None = None  # the kind under which an ignored item is counted all the same
    calls_off: EventKind | None = None
    """The kind of order that the code calls off, by itself or as a separate event; `kind` is None then."""
    is_order_row: bool = False  # the code is that of the order itself, with a status
    rule: int = -1  # number of the rule that matched
    fact: FactKind | None = None  # set when the code is a fact beside the event stream; `kind` is None then


def recognise(code: str, mapping: SiteMapping) -> Recognised:
    """Ask the mapping what a code means; its first rule whose pattern matches the whole code decides.

    Where none does, the case of letters does not count in a code that is written in one case throughout; one in both
    cases ("Visit//IP//end") is a separate code.
    """
    code = spelled_for(code, mapping)
    found = _matched(code, mapping, mapping.compiled_rules)
    if found.reason != UNKNOWN or not (code.isupper() or code.islower()):
        return found
    return _matched(code, mapping, mapping.rules_of_any_case)


def spelled_for(code: str, mapping: SiteMapping) -> str:
    """Return a code in its one spelling, without zeros before numbers where only then a rule matches."""
    code = code_spelling(code)
    bare = without_zeros(code)
    if bare == code or any(pattern.fullmatch(code) for pattern, _ in mapping.compiled_rules):
        return code
    return bare if any(pattern.fullmatch(bare) for pattern, _ in mapping.compiled_rules) else code


def _matched(code: str, mapping: SiteMapping, rules: CompiledRules) -> Recognised:
    for number, (pattern, rule) in enumerate(rules):
        match = pattern.fullmatch(code)
        if match is None:
            continue
        return replace(_meaning(code, match.groupdict(), rule, mapping), rule=number)
    return Recognised(None, reason=UNKNOWN)


def _meaning(code: str, groups: Mapping[str, str], rule: Rule, mapping: SiteMapping) -> Recognised:
    if rule.kind == "IGNORE":
        return Recognised(None, reason=rule.reason)
    # Empty parts at the end of a code are no part of a name.
    spelling = rule.item or (groups.get("item") or "").rstrip("/")
    unit = rule.unit or groups.get("unit") or ""
    if isinstance(rule.kind, FactKind):
        return Recognised(None, normalise(spelling, keep_case=True), spelling, unit, fact=rule.kind)
    kind = EventKind(rule.kind)
    if kind in KIND_OF_EVENT and spelling.casefold() in _NO_ITEM:
        return Recognised(None, reason=NO_ITEM)
    item = _item(kind, spelling, mapping)
    if item and normalise(item) in mapping.ignored_keys:
        return Recognised(None, item, spelling, reason=IGNORED_ITEM, counted_as=kind)
    worded = _with_event_word(Recognised(kind, item, spelling, unit), groups.get("event"), mapping)
    return worded if worded.kind is None else _called_off(code, worded, mapping) or worded


def _called_off(code: str, found: Recognised, mapping: SiteMapping) -> Recognised | None:
    """Return what a code with a status word calls off; None for a code without one."""
    decision = KIND_OF_EVENT.get(found.kind) if found.kind else None
    parts = code.split("//")
    kept = [parts[0], *(part for part in parts[1:] if not mapping.is_not_done(part))]
    if decision is None or len(kept) == len(parts):
        return None
    bare = recognise("//".join(kept), mapping)
    act = bare if bare.kind in (decision.record.order, decision.record.done) else found
    is_order_row = act.kind is decision.record.order
    order = decision.record.order
    return Recognised(None, act.item, act.spelling, reason=NOT_DONE, calls_off=order, is_order_row=is_order_row)


def _item(kind: EventKind, spelling: str, mapping: SiteMapping) -> str:
    if kind is EventKind.SEX:
        return _SEX.get(normalise(spelling), "")
    decision = KIND_OF_EVENT.get(kind)
    folds_case = decision is not None and decision.record.folds_case
    return normalise(spelling, keep_case=not folds_case or mapping.keep_case)


def _with_event_word(found: Recognised, word: str | None, mapping: SiteMapping) -> Recognised:
    if word is None or found.kind is not EventKind.ADMINISTRATION:
        return found
    meaning = mapping.word_meanings.get(normalise(word))
    if meaning == "counts":
        return found
    if meaning == "stops":
        return Recognised(EventKind.MEDICATION_STOP, found.item, found.spelling)
    return Recognised(None, reason=WORD_DOES_NOT_COUNT if meaning else WORD_UNKNOWN)


_FAMILIES = tuple(dict.fromkeys(kind.words.item for kind in Kind))
"""Families of items, those that keep their key first; one for each kind of decision."""
_MANY_CODES = 10


def _family(found: Recognised) -> str:
    kind = found.kind or found.calls_off
    decision = KIND_OF_EVENT.get(kind) if kind else None
    return decision.words.item if decision else ""


class CodeBook:
    """Recognises each code once and counts its rows; of the texts of the source's code table any may be missing."""

    def __init__(self, mapping: SiteMapping, descriptions: Mapping[str, str]) -> None:
        self.mapping = mapping
        self.found: list[Recognised] = []
        self._descriptions = descriptions
        self._ids: dict[str, int] = {}
        self._codes: list[str] = []
        self._n_rows = np.zeros(0, dtype=np.int64)
        self.n_joined = 0
        """Rows whose item took the spelling of another; see `join_twins`."""
        self._spelled: dict[str, str] = {}

    def spelling(self, code: str) -> str:
        """Return a code in its one spelling, as the mapping knows it."""
        if code not in self._spelled:
            self._spelled[code] = spelled_for(code, self.mapping)
        return self._spelled[code]

    def ids_of(self, codes: Iterable[str]) -> npt.NDArray[np.int64]:
        """Numbers of codes, recognising the new ones."""
        return np.array([self._id_of(code) for code in codes], dtype=np.int64)

    def _id_of(self, code: str) -> int:
        if code not in self._ids:
            self._ids[code] = len(self._codes)
            self._codes.append(code)
            self.found.append(recognise(code, self.mapping))
        return self._ids[code]

    def count(self, ids: npt.NDArray[np.int64]) -> None:
        """Add rows to the counts; `ids` has one number a row."""
        counts = np.bincount(ids, minlength=len(self._codes))
        counts[: len(self._n_rows)] += self._n_rows
        self._n_rows = counts

    def unknown_words(self) -> Counter[str]:
        """Count the rows with an unknown event word or a sex that is neither F nor M, nor said to be unknown, by word.

        Words of events come behind the item in the code.
        """
        words = Counter[str]()
        for code, found, n in zip(self._codes, self.found, self._n_rows.tolist(), strict=False):
            is_sex = found.kind is EventKind.SEX and not found.item and normalise(found.spelling) not in _OTHER_SEX
            if is_sex or found.reason == WORD_UNKNOWN:
                words[found.spelling if is_sex else code.rpartition("//")[2]] += n
        return words

    def rounded(self) -> Counter[str]:
        """Count the rows of codes of which a spreadsheet kept the first digits only."""
        codes = zip(self._codes, self._n_rows.tolist(), strict=False)
        return Counter({code: n for code, n in codes if any(map(is_rounded_code, code.split("//")))})

    def code(self, number: int) -> str:
        """Code of a number."""
        return self._codes[number]

    def kinds(self) -> npt.NDArray[np.int8]:
        """Kind number of every code, and `LEFT_OUT` at the end for "no code" (index -1).

        A code that calls an order off has the kind of the order.
        """
        kinds = [found.kind or found.calls_off for found in self.found]
        return np.array([LEFT_OUT if kind is None else kind.number for kind in kinds] + [LEFT_OUT], dtype=np.int8)

    def keep_families_apart(self) -> None:
        """Make items of one key but different families different items, once all codes are known.

        A key such as 50912 may be a lab in one table and a drug with another name in another. Labs and observations
        keep the key; other families carry their name behind it.
        """
        names: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for described in (True, False):
            for i in self._by_frequency(range(len(self._codes))):
                found = self.found[i]
                text = self._descriptions.get(self._codes[i], "") if described else found.spelling
                if found.item and _family(found) and text.strip():
                    names[found.item].setdefault(_family(found), normalise(text))
        for i, found in enumerate(self.found):
            family, of_family = _family(found), names.get(found.item, {})
            first = next((each for each in _FAMILIES if each in of_family), "")
            if family in of_family and of_family[family] != of_family[first]:
                self.found[i] = replace(found, item=f"{found.item} [{family}]")

    def join_twins(self, known: Collection[str] = ()) -> None:
        """Make items of one family whose names are spellings of each other one item, once all codes are known.

        The item that the mapping names or that is known already, of an earlier import, stays, else the most frequent
        without quotes or points. Codes that the source's table describes otherwise are never joined.
        """
        mine = {*self.mapping.names, *self.mapping.units, *known}
        order = [
            i for i in self._by_frequency(range(len(self._codes))) if self.found[i].item and _family(self.found[i])
        ]
        place = {i: at for at, i in enumerate(order)}
        twins: defaultdict[tuple[str, str], defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for i in order:
            text, key = (
                twin_key(code_spelling(normalise(each)))
                for each in (self._descriptions.get(self._codes[i], ""), self.found[i].item)
            )
            # A code that stands for its own name tells nothing.
            twins[_family(self.found[i]), key]["" if text == key else text].append(i)
        for by_text in twins.values():
            groups = list(by_text.values())
            if len(by_text) == 2 and "" in by_text:
                # What the table does not describe is the only one that it does.
                groups = [sorted((i for members in groups for i in members), key=place.__getitem__)]
            for members in groups:
                items = [self.found[i].item for i in members]
                item = min(items, key=lambda each: (each not in mine, len(name_key(each)) < len(each)))
                name = self.mapping.names.get(item)
                for i in members:
                    # What the mapping names apart stays apart.
                    own = self.mapping.names.get(self.found[i].item, name)
                    if self.found[i].item != item and (name is None or own == name):
                        self.found[i] = replace(self.found[i], item=item)
                        self.n_joined += int(self._n_rows[i]) if i < len(self._n_rows) else 0

    def greedy_rule(self) -> str:
        """Say which rule makes one item of what are many; "" where none does.

        That is a rule of whose codes, at least `_MANY_CODES`, more than half are one lab or drug, or of whose codes
        more than half are labs or drugs that are called as a unit is.
        """
        codes: defaultdict[int, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for code, found in zip(self._codes, self.found, strict=True):
            if found.kind and _family(found) in _FAMILIES:
                codes[found.rule][found.item].append(code)
        for number, items in codes.items():
            rule = self.mapping.rules[number]
            units = [item for item in items if is_common_unit(item)]
            if 2 * sum(len(items[unit]) for unit in units) > sum(map(len, items.values())) and not rule.item:
                return (
                    f"Mapping {self.mapping.name!r}: the rule {rule.code!r} takes units for items, such as "
                    f"{units[0]!r} in {items[units[0]][0]}. Correct its group item."
                )
            item, mine = max(items.items(), key=lambda each: len(each[1]))
            n_codes = sum(map(len, items.values()))
            if n_codes >= _MANY_CODES and 2 * len(mine) > n_codes and not rule.item and "(?P<event>" not in rule.code:
                return (
                    f"Mapping {self.mapping.name!r}: the rule {rule.code!r} makes one item, {item!r}, of {len(mine):,} "
                    f"of the {n_codes:,} codes it recognises (such as {', '.join(sorted(mine)[:3])}). Correct its "
                    "group item, or give the rule a fixed item if this is meant."
                )
        return ""

    @cached_property
    def _taken(self) -> dict[int, dict[str, Recognised]]:
        """For each rule that no code came to, the codes that it matches and what earlier rules made of them."""
        idle = set(range(len(self.mapping.rules))) - {found.rule for found in self.found}
        book = list(zip(self._codes, self.found, strict=True))
        patterns = {number: self.mapping.compiled_rules[number][0] for number in sorted(idle)}
        return {n: {code: found for code, found in book if each.fullmatch(code)} for n, each in patterns.items()}

    def idle_rules(self) -> tuple[str, ...]:
        """Say which rules no code came to; rules are counted from 1."""
        unmatched = [str(number + 1) for number, codes in self._taken.items() if not codes]
        none = f"No code matches rule {', '.join(unmatched)} of {len(self.mapping.rules)}." if unmatched else ""
        hidden = [
            f"Rule {number + 1} ({self.mapping.rules[number].code}) comes to nothing: all its {len(codes):,} codes are "
            f"taken by rule {', '.join(map(str, sorted({found.rule + 1 for found in codes.values()})))}."
            for number, codes in self._taken.items()
            if codes
        ]
        return tuple(filter(None, [none, *hidden]))

    def hidden_rules(self) -> Finding:
        """Count the rules all of whose codes go to earlier rules that are broader and make something else of them."""
        hidden = [number for number, codes in self._taken.items() if self._is_hidden(number, codes)]
        return Finding("hidden_rules", len(hidden), 0, tuple(self.mapping.rules[number].code for number in hidden))

    def _is_hidden(self, number: int, codes: Mapping[str, Recognised]) -> bool:
        """Return whether a rule stands behind a broader one; before a general rule a special one hides nothing."""
        by = {found.rule for found in codes.values()}
        own = self.mapping.compiled_rules[number : number + 1]
        mine = ((_matched(code, self.mapping, own), found) for code, found in codes.items())
        return any((a.kind, a.fact, a.item, a.unit) != (b.kind, b.fact, b.item, b.unit) for a, b in mine) and any(
            found.rule in by and code not in codes for code, found in zip(self._codes, self.found, strict=True)
        )

    def names(self) -> dict[str, str]:
        """Names for people by item: the mapping's, else a description, else the most frequent spelling."""
        names: dict[str, str] = {}
        order = self._by_frequency(range(len(self._codes)))
        for described in (True, False):
            for i in order:
                found = self.found[i]
                text = self._descriptions.get(self._codes[i], "") if described else found.spelling
                if found.kind is not None and found.item not in names and text.strip():
                    names[found.item] = " ".join(text.split())
        return {**names, **self.mapping.names}

    def names_by_code(self) -> list[str]:
        """Names for people by number of the code, those of facts included; as `names` finds them."""
        names = self.names()
        return [
            self.mapping.names.get(found.item) or " ".join(self._descriptions.get(code, "").split()) or found.spelling
            if found.fact
            else names.get(found.item, found.item)
            for code, found in zip(self._codes, self.found, strict=True)
        ]

    def kind_counts(self) -> tuple[KindCount, ...]:
        """Recognised events by kind, ignored items included."""
        return self._counts(EventKind, [found.kind or found.counted_as for found in self.found])

    def fact_counts(self) -> tuple[KindCount, ...]:
        """Rows that are facts beside the event stream, by kind."""
        return self._counts(FactKind, [found.fact for found in self.found])

    def _counts(
        self, kinds: Iterable[EventKind | FactKind], of_code: Sequence[EventKind | FactKind | None]
    ) -> tuple[KindCount, ...]:
        members: defaultdict[EventKind | FactKind, list[int]] = defaultdict(list)
        for i, kind in enumerate(of_code):
            if kind is not None:
                members[kind].append(i)
        return tuple(
            KindCount(
                kind=kind.value,
                n_rows=int(self._n_rows[members[kind]].sum()),
                n_codes=len(members[kind]),
                n_spellings=len({self.found[i].spelling for i in members[kind]}),
                n_items=len({self.found[i].item for i in members[kind]}),
            )
            for kind in kinds
            if kind in members
        )

    def dropped(self) -> list[Dropped]:
        """Rows whose code is left out, by reason."""
        members: defaultdict[str, list[int]] = defaultdict(list)
        for i, found in enumerate(self.found):
            if found.kind is None and found.fact is None:
                members[found.reason].append(i)
        return [
            Dropped(
                reason=reason,
                n_rows=int(self._n_rows[ids].sum()),
                n_codes=len(ids),
                examples=tuple(
                    (self._codes[i], int(self._n_rows[i])) for i in self._by_frequency(ids)[:_N_EXAMPLES_KEPT]
                ),
            )
            for reason, ids in members.items()
        ]

    def dropped_codes(self, reason: str, numbers: Counter[int]) -> Dropped:
        """Rows left out for a reason that is not in their code."""
        examples = tuple((self._codes[i], n) for i, n in numbers.most_common(_N_EXAMPLES_KEPT))
        return Dropped(reason, numbers.total(), len(numbers), examples)

    def n_items_with_several_unit_codes(self) -> int:
        """Lab items that come under more than one code."""
        units: defaultdict[str, set[str]] = defaultdict(set)
        for found in self.found:
            if found.kind is EventKind.LAB_RESULT:
                units[found.item].add(found.unit)
        return sum(len(each) > 1 for each in units.values())

    def refuse_useless(self, *, is_addition: bool = False) -> None:
        """Stop an import that could not lead to any task; to an addition, former imports may bring what it lacks.

        Raise MappingError when a rule is greedy, no code is an admission, or none tells of a kind of decision; of an
        addition, when no code is an event.
        """
        if not self._n_rows.any():
            raise MappingError(NO_ROW)
        if greedy := self.greedy_rule():
            raise MappingError(greedy)
        kinds = {found.kind for found in self.found}
        needed = (({EventKind.ADMISSION}, "admission"), (KIND_OF_EVENT.keys(), ITEM_WORDS))
        for wanted, words in ((set(EventKind), "event"),) if is_addition else needed:
            if wanted.isdisjoint(kinds):
                frequent = ", ".join(self._codes[i] for i in self._by_frequency(range(len(self._codes)))[:5])
                raise MappingError(
                    f"Mapping {self.mapping.name!r} recognises no {words} among the {len(self._codes):,} codes of "
                    f"{int(self._n_rows.sum()):,} rows (most frequent: {frequent or 'none'}). Choose another mapping, "
                    "or write one: see data/README.md."
                )

    def _by_frequency(self, numbers: Iterable[int]) -> list[int]:
        return sorted(numbers, key=lambda i: (-int(self._n_rows[i]) if i < len(self._n_rows) else 0, self._codes[i]))


IntArray = npt.NDArray[np.int64]


def different_texts(column: pd.Series) -> tuple[list[str], npt.NDArray[np.integer]]:
    """Return the texts that occur in a column, in the order of its categories, and the place of each row's.

    The place is -1 where there is no text.
    """
    found = column.astype("category").cat
    codes = found.codes.to_numpy()
    used = np.bincount(codes[codes >= 0], minlength=len(found.categories)) > 0
    if used.all():
        return [str(text) for text in found.categories], codes
    return [str(text) for text in found.categories[used]], np.append(np.cumsum(used) - 1, -1)[codes]


class Words:
    """Texts, numbered in the order in which they are first met.

    The empty text is number 0 and stands for a missing one, as do texts that say so.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self.texts: list[str] = [""]

    def number(self, text: str) -> int:
        """Return the number of a text; a new one is added."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def numbers(self, column: pd.Series) -> npt.NDArray[np.int32]:
        """Return the numbers of a column of texts, of str or category."""
        texts, places = different_texts(column)
        found = [0 if says_missing(text) else self.number(text) for text in texts]
        numbers: npt.NDArray[np.int32] = np.array([*found, 0], dtype=np.int32)[places]
        return numbers


class Subjects:
    """Patients as the source names them, numbered in the order in which they are first met, with their rows counted."""

    def __init__(self) -> None:
        self._numbers: dict[int | str, int] = {}
        self.n_rows = np.zeros(0, dtype=np.int64)
        self.n_respelled = 0

    @property
    def names(self) -> Sequence[int | str]:
        """As the source has them, in order of their numbers."""
        return list(self._numbers)

    def numbers(self, column: npt.NDArray[np.generic]) -> npt.NDArray[np.int32]:
        """Return the numbers of a column of identifiers, each row counted; texts in their one spelling."""
        codes, unique = pd.factorize(column)
        known = self._numbers
        names = [identifier(each) if isinstance(each, str) else each for each in unique.tolist()]
        found = np.array([known.setdefault(each, len(known)) for each in names], dtype=np.int32)
        respelled = np.array([new != old for new, old in zip(names, unique.tolist(), strict=True)], dtype=bool)
        self.n_respelled += int(respelled[codes].sum()) if respelled.any() else 0
        numbers: npt.NDArray[np.int32] = found[codes]
        counts = np.bincount(numbers, minlength=len(known))
        counts[: len(self.n_rows)] += self.n_rows
        self.n_rows = counts
        return numbers

    def n_alike(self) -> int:
        """Count the patients whose identifier looks like that of another; see `core.events.spelling.look_of`."""
        looks = Counter(look_of(each) for each in self._numbers if isinstance(each, str))
        return sum(n for n in looks.values() if n > 1)


def ranked(texts: Sequence[str]) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Sort texts, each once, and say where each has gone.

    Examples
    --------
    >>> ranked(["b", "a", "b"])
    (['a', 'b'], array([1, 0, 1], dtype=int32))
    """
    ordered = sorted(set(texts))
    place = {text: i for i, text in enumerate(ordered)}
    return ordered, np.array([place[text] for text in texts], dtype=np.int32)
