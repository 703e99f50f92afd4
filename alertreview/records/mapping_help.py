"""Help with site mappings: what one would recognise in a source, and a first draft from the codes found there."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from alertreview.files import preset_paths
from alertreview.records.importing import choose_mapping, code_counts_of, count_records
from alertreview.records.sources.formats import checked_format
from core.errors import MappingError, NotFoundError
from core.events.code_book import UNKNOWN, CodeBook
from core.events.import_report import Dropped, KindCount, ReadCounts
from core.events.mapping import SiteMapping, load_mapping, parse_mapping
from core.events.plausibility import OF_RULES, Severity, judged
from core.kinds import ITEM_EVENTS, ITEM_WORDS, Kind
from core.number_texts import counted
from db.database import Database

N_EXAMPLES = 5
_HINTS = (
    # What a code says somewhere, and the kind that it then likely is; the first that fits counts.
    (r"birth|dob", "BIRTH"),
    (r"death|dod\b|died", "DEATH"),
    (r"gender|sex\b", "SEX"),
    (r"discharge|visit_end|checkout", "DISCHARGE"),
    (r"hospital_admi|admission|admit|visit", "ADMISSION"),
    (r"transfer|ward|care_?unit|care_?site|location", "UNIT"),
    (r"specimen|lab.*order|order.*lab", "LAB_ORDER"),
    (r"lab|loinc|measurement|result", "LAB_RESULT"),
    (r"(medic|drug|rx).*(stop|end)", "MEDICATION_STOP"),
    (r"(medic|drug|rx).*(given|admin)|emar", "ADMINISTRATION"),
    (r"medic|drug|\brx|rxnorm|ndc|atc|prescri", "MEDICATION_ORDER"),
    (r"vital|sign|chart|flowsheet", "OBSERVATION"),
)


_END_WORDS = "end|stop|stopped|discharge|out|finish"
_BEGIN_WORDS = "start|begin|started|admission|in"
_ENDS = re.compile(f"[/:|_^]({_END_WORDS})$", re.IGNORECASE)
_ENDED_BY = {"ADMISSION": "DISCHARGE", "MEDICATION_ORDER": "MEDICATION_STOP"}


@dataclass(frozen=True)
class MappingCheck:
    """What a mapping would recognise in a source."""

    mapping: str
    # `n_rows` and `n_codes`: of the whole source, as an import counts them.
    n_rows: int
    n_codes: int
    kinds: tuple[KindCount, ...]
    dropped: tuple[Dropped, ...]
    rules: tuple[str, ...]  # sentences on rules that no code came to
    problems: tuple[str, ...]  # sentences: what an import with this mapping would lack. Empty when it can be used.

    @property
    def share_recognised(self) -> float:
        """Share of rows that would become events or facts, in [0, 1]."""
        return sum(kind.n_rows for kind in self.kinds) / max(self.n_rows, 1)

    def lines(self) -> list[str]:
        """Return the lines for the terminal."""
        rows, codes = counted(self.n_rows, "row"), counted(self.n_codes, "code")
        head = f"Mapping {self.mapping}: {self.share_recognised:.0%} of {rows}, {codes}"
        known = [f"  {k.kind:<20} {k.n_rows:>12,} rows {k.n_items:>8,} items {k.n_codes:>8,} codes" for k in self.kinds]
        lost = [f"  {drop.reason}: {counted(drop.n_rows, 'row')}, e.g. {_examples(drop)}" for drop in self.dropped]
        return [
            head,
            *known,
            *(["Left out", *lost] if lost else []),
            *self.rules,
            *(["Problems", *self.problems] if self.problems else []),
        ]


def _examples(drop: Dropped) -> str:
    return ", ".join(f"{code} ({n:,})" for code, n in drop.examples[:N_EXAMPLES])


def check_mapping(
    source: Path | str,
    *,
    format: str = "meds",  # noqa: A002
    mapping: str | Path | None = None,
    schema: str | None = None,
) -> MappingCheck:
    """Return what a mapping would recognise, without importing.

    Parameters as in `alertreview.records.importing.build_cohort`. Raise SourceError or MappingError when source or
    mapping cannot be read.
    """
    kind = checked_format(format)
    site = choose_mapping(source, kind.name, mapping, schema)
    return _check(count_records(source, site, schema), site)


def _of_codes(counts: Counter[str], site: SiteMapping) -> ReadCounts:
    """Return the counts of rows of which only the codes are known."""
    book = CodeBook(site, {})
    ids = book.ids_of(counts)
    book.count(np.repeat(ids, list(counts.values())))
    dropped = tuple(book.dropped())
    kinds, facts = book.kind_counts(), book.fact_counts()
    return ReadCounts(counts.total(), len(counts), kinds, facts, dropped, problem=book.greedy_rule())


def _check(counts: ReadCounts, site: SiteMapping) -> MappingCheck:
    kinds = (*counts.kinds, *counts.facts)
    found = {kind.kind for kind in kinds}
    problems = []
    if "ADMISSION" not in found:
        problems.append("No code is an ADMISSION: there would be no stays.")
    if "DISCHARGE" not in found:
        problems.append("No code is a DISCHARGE: every stay would be open.")
    if not found & {event for kind in Kind for event in (kind.record.order, kind.record.done)}:
        problems.append(f"No code is a {ITEM_WORDS}: there would be no tasks.")
    problems += site.without_item()
    if counts.problem:
        problems.append(counts.problem)
    problems += [
        f"{check.sentence} For example: {', '.join(check.examples) or check.name}."
        for check in judged(counts.findings, site.checks)
        if check.name in OF_RULES and check.severity is not Severity.OK
    ]
    return MappingCheck(
        site.name, counts.n_rows, counts.n_codes, kinds, counts.dropped, counts.idle_rules, tuple(problems)
    )


@dataclass(frozen=True)
class SuggestedMapping:
    """A first draft of a site mapping."""

    text: str  # YAML, ready to be edited and saved; it passes the checks of a mapping
    check: MappingCheck  # what it would recognise
    notes: tuple[str, ...]  # what to look at before using it


def suggest_mapping(source: Path | str, *, format: str = "meds", schema: str | None = None) -> SuggestedMapping:  # noqa: A002
    """Draft a site mapping from the codes of a source; raise SourceError when it cannot be read.

    The preset that recognises most is the start; codes that it does not know get rules by what their first part says
    ("LAB//...", "DRUG:..."), or a rule that ignores them.
    """
    kind = checked_format(format)
    presets = [each for each in map(load_mapping, preset_paths().values()) if each.format == kind.name]
    counts_of = code_counts_of(source, kind, presets, schema)
    checked = [(_check(_of_codes(counts, preset), preset), preset, counts) for preset, counts in counts_of]
    check, start, counts = max(checked, key=lambda each: each[0].share_recognised)
    unknown = next((drop for drop in check.dropped if drop.reason == UNKNOWN), None)
    own = [] if unknown is None else _draft_rules(_unknown_codes(counts, start))
    keep = check.share_recognised > 0
    content: dict[str, Any] = {"name": "my-site", "title": "My site", "format": kind.name, "timezone": start.timezone}
    content |= start.model_dump(
        mode="json", exclude_defaults=True, exclude={"name", "title", "format", "rules", "timezone", "simulated"}
    )
    kept = [rule.model_dump(mode="json", exclude_defaults=True) for rule in start.rules] if keep else []
    content["rules"] = [*kept, *own] or [{"code": ".*", "kind": "IGNORE", "reason": "no rule yet"}]
    draft = parse_mapping(content, "the draft")
    drafted = _check(count_records(source, draft, schema), draft)
    notes = (
        [f"Started from the preset {start.name}."] if keep else ["No preset knows these codes; every rule is a guess."]
    )
    notes += [
        f"Check the rule {rule['code']}: guessed to be {rule['kind']}." for rule in own if rule["kind"] != "IGNORE"
    ]
    notes += [f"Check the time zone ({start.timezone}) and whether dates are shifted patient by patient."]
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
    head = "".join(f"# {note}\n" for note in [*notes, *drafted.problems])
    return SuggestedMapping(head + body, drafted, (*notes, *drafted.problems))


def _unknown_codes(counts: Counter[str], start: SiteMapping) -> Counter[str]:
    book = CodeBook(start, {})
    found = [book.found[i] for i in book.ids_of(counts)]
    return Counter({code: n for (code, n), each in zip(counts.items(), found, strict=True) if each.reason == UNKNOWN})


def _draft_rules(unknown: Counter[str]) -> list[dict[str, str]]:
    """Group codes by their first part and guess the kind of each group."""
    groups: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for code, n in unknown.items():
        first, mark, _ = _parts(code)
        groups[first, mark][code] += n
    rules = []
    for (first, mark), codes in sorted(groups.items(), key=lambda each: -each[1].total()):
        prefix = re.escape(first) + re.escape(mark)
        hint = " ".join([first, *(code for code, _ in codes.most_common(N_EXAMPLES))]).casefold()
        kind = next((kind for words, kind in _HINTS if re.search(words, first.casefold())), "") or next(
            (kind for words, kind in _HINTS if re.search(words, hint)), ""
        )
        if not kind:
            rules.append({"code": f"{prefix}.*", "kind": "IGNORE", "reason": f"not known what {first} means"})
        elif mark and kind in _ENDED_BY and any(_ENDS.search(code) for code in codes):
            # The last part of a code tells its beginning from its end; nothing else of the group may be either.
            ends = f"{re.escape(mark)}(?i:{_END_WORDS})"
            begins = f"({re.escape(mark)}(?i:{_BEGIN_WORDS}))?"
            rules.append({"code": f"{prefix}(?P<item>.+?){ends}", "kind": _ENDED_BY[kind]})
            rules.append({"code": f"{prefix}(?P<item>.+?){begins}", "kind": kind})
        elif not mark:
            rules.append({"code": prefix, "kind": kind, **({"item": first} if kind in ITEM_EVENTS else {})})
        elif kind == "LAB_RESULT" and any(code.count(mark) > 1 for code in codes):
            rules.append({"code": f"{prefix}(?P<item>.+?){re.escape(mark)}(?P<unit>.*)", "kind": kind})
            rules.append({"code": f"{prefix}(?P<item>.+)", "kind": kind})
        else:
            rules.append({"code": f"{prefix}(?P<item>.+)", "kind": kind})
    return rules


def _parts(code: str) -> tuple[str, str, str]:
    """Split a code at its first separator."""
    marks = [mark for mark in ("//", "/", ":", "|", "^") if mark in code]
    return code.partition(min(marks, key=lambda mark: (code.index(mark), -len(mark)))) if marks else (code, "", "")


def order_groups_text(database: Database) -> str:
    """Return the order groups of the last import as YAML, the part ``order_groups`` of a site mapping that names them.

    Raise NotFoundError if nothing was imported yet.
    """
    with database.read() as uow:
        last = uow.snapshots.latest()
        if last is None:
            raise NotFoundError("Nothing was imported yet, so there are no order groups. Import records first.")
        tasks = uow.snapshots.tasks(last.id)
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for task in tasks:
        if task.order_group:
            groups[task.order_group].append(task.task_key)
    head = (
        f"# Order groups of the import {last.folder}. Change names and members, put this into the mapping,\n"
        "# and import again. A group named '' leaves its tasks alone.\n"
    )
    return head + yaml.safe_dump({"order_groups": dict(groups)}, sort_keys=True, allow_unicode=True, width=120)


def save_suggestion(suggestion: SuggestedMapping, path: Path) -> None:
    """Write a draft to a file that does not exist yet; raise MappingError when it does, or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(suggestion.text)
    except FileExistsError:
        raise MappingError(f"{path} exists already. Name a new file, so that nothing is overwritten.") from None
    except OSError as error:
        raise MappingError(f"{path}: cannot be written ({error.strerror}). Name another file.") from None
