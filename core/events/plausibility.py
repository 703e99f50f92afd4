"""Checks of an import: what was found, how often, the bound it is held against, and what it would do to the alerts.

Stages of the import count what they find (`Finding`); `judged` turns the counts into one `Check` for every rule of
`RULES` (plausibility.csv), whether or not anything was found. A red check says that the alerts cannot be trusted before
somebody has looked; a yellow one that somebody should look.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Severity(StrEnum):
    """How serious a check is."""

    OK = "ok"
    YELLOW = "yellow"
    RED = "red"


@dataclass(frozen=True)
class Bounds:
    """Above which value a check is yellow and red."""

    # `yellow` and `red`: shares in [0, 1] or counts, as the rule says; infinity: never.
    yellow: float
    red: float


@dataclass(frozen=True)
class Rule:
    """One kind of doubt."""

    name: str  # stable key: "open_stays"
    what: str  # completes "3 of 200 ...": "stays have no discharge"; stands before the count where it is of nothing
    effect: str  # what it would do to the alerts, as a sentence
    bounds: Bounds
    of_count: bool = False  # the bounds are counts, not shares


@dataclass(frozen=True)
class Finding:
    """What a stage of the import counted for one rule."""

    name: str  # of the rule
    count: int
    n_of: int = 0  # among how many; 0 where there is no such number
    # Kinds, items, files or rows of the source ("drugs.csv, row 12"); never a patient or a value.
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One check of an import."""

    name: str  # stable key; `--accept` takes it
    severity: Severity
    count: int
    n_of: int
    share: float  # ``count / n_of``, 0 where there is nothing to divide by
    bound: float  # the bound that was passed, or the first that would be
    bound_is_count: bool  # `bound` is a count, not a share
    sentence: str  # the finding, for people
    effect: str  # what it would do to the alerts
    examples: tuple[str, ...] = ()


def _rules() -> tuple[Rule, ...]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Rule(
                row["name"],
                row["what"],
                row["effect"],
                Bounds(float(row["yellow"]), float(row["red"] or "inf")),
                of_count=row["of"] == "count",
            )
            for row in csv.DictReader(file)
        )


RULES = _rules()
"""Every check, in the order in which they are shown; one without a bound for red is never red."""

OF_RULES = ("mistaken_kinds", "swapped_courses", "hidden_rules")
"""Checks of what the rules of the mapping say; a mapping is checked for them without an import."""

_N_EXAMPLES = 5


def judged(findings: Iterable[Finding], bounds: Mapping[str, Bounds]) -> tuple[Check, ...]:
    """Judge what was counted: return a check for each of `RULES`, in their order; findings of one rule are added up.

    Bounds take the place of the rules' own.
    """
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:
        by_name.setdefault(finding.name, []).append(finding)
    unknown = by_name.keys() - {rule.name for rule in RULES}
    if unknown:
        raise KeyError(f"no rule for {min(unknown)}")
    return tuple(_check(rule, by_name.get(rule.name, []), bounds.get(rule.name, rule.bounds)) for rule in RULES)


def _check(rule: Rule, found: list[Finding], bounds: Bounds) -> Check:
    count, n_of = sum(each.count for each in found), sum(each.n_of for each in found)
    share = count / n_of if n_of else 0.0
    value = float(count) if rule.of_count or not n_of else share
    severity = Severity.RED if value > bounds.red else Severity.YELLOW if value > bounds.yellow else Severity.OK
    examples = tuple(dict.fromkeys(example for each in found for example in each.examples))[:_N_EXAMPLES]
    sentence = f"{count:,} of {n_of:,} {rule.what}." if n_of else f"{rule.what[0].upper()}{rule.what[1:]}: {count:,}."
    return Check(
        name=rule.name,
        severity=severity,
        count=count,
        n_of=n_of,
        share=share,
        bound=bounds.red if severity is Severity.RED else bounds.yellow,
        bound_is_count=rule.of_count,
        sentence=sentence,
        effect=rule.effect,
        examples=examples,
    )
