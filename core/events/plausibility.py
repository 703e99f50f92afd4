"""Checks of an import: what was found, how often, the bound it is held against, and what it would do to the alerts.

Stages of the import count what they find (`Finding`); `judged` turns the counts into one `Check` for every rule of
`RULES`, whether or not anything was found. A red check says that the alerts cannot be trusted before somebody has
looked; a yellow one that somebody should look.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


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
    what: str  # completes "3 of 200 ...": "stays have no discharge"
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


_NEVER = float("inf")
RULES = (
    Rule(
        "sentinel_dates",
        "events are dated with a date that stands for none; they were left out",
        "A stay without its admission or discharge is left out, or ends with the patient's last event.",
        Bounds(0, 0),
    ),
    Rule(
        "far_dates",
        "events lie months or years away from everything else about their patient; they were left out",
        "A stay without its admission or discharge is left out, or ends with the patient's last event.",
        Bounds(0, 0),
    ),
    Rule(
        "impossible_ages",
        "patients are born over 115 years before their first event; their births were left out",
        "Their ages are missing.",
        Bounds(0, 0.2),
    ),
    Rule(
        "impossible_known_at",
        "events are said to be known over a year after they happened; they count as if nothing was said",
        "A result may count as known before it was.",
        Bounds(0, 0.2),
    ),
    Rule(
        "timeless_events",
        "rows of known codes have no time; they were left out",
        "Decisions, results or stays are missing.",
        Bounds(0.001, 0.1),
    ),
    Rule(
        "mixed_zones",
        "times have no zone while others of the source have one; they count as times of the site",
        "Some acts count hours too early or too late, some in the window before or after.",
        Bounds(0, _NEVER),
    ),
    Rule(
        "foreign_zones",
        "times are in another zone than the mapping's; they were converted",
        "If the mapping's timezone is not the hospital's, instances are placed at the wrong hour.",
        Bounds(0.02, _NEVER),
    ),
    Rule(
        "future_events",
        "events lie after the day of the import",
        "Decisions that were not taken yet count as taken; if the calendar is shifted, the mapping must say so.",
        Bounds(0, 0.001),
    ),
    Rule(
        "open_stays",
        "stays have no discharge although their patient has left the data; they end with the patient's last event",
        "A stay that went on loses its last days.",
        Bounds(0, 0),
    ),
    Rule(
        "reversed_stays",
        "stays end before they begin; they were left out",
        "Their patients have no alerts on these days.",
        Bounds(0, 0),
    ),
    Rule(
        "unpaired_stays",
        "admissions or discharges have no partner; they were left out",
        "Days of these stays are missing.",
        Bounds(0, 0.1),
    ),
    Rule(
        "overlapping_stays",
        "stays begin before an earlier stay of their patient ended",
        "Stays of one patient may be entries of several systems; on each morning one of them counts.",
        Bounds(0.02, _NEVER),
    ),
    Rule(
        "contradicted_patients",
        "patients have two dates of birth or two sexes; the first counts",
        "One identifier may stand for two patients.",
        Bounds(0, 0.05),
    ),
    Rule(
        "repeated_rows",
        "rows of the source say what another row says",
        "If a file was read twice nothing is wrong; if rows lack what tells them apart, doses are missing.",
        Bounds(0.3, _NEVER),
    ),
    Rule(
        "long_stays",
        "stays are longer than a year",
        "One stay may fill the alert list with its days.",
        Bounds(0, 0),
    ),
    Rule(
        "crowded_patients",
        "instances are those of one patient, over ten times as many as the median patient has",
        "The alerts are mostly about one patient.",
        Bounds(0.05, 0.2),
    ),
    Rule(
        "uneven_days",
        "days have over three times or less than a third of the instances of the days around them",
        "A feed may have stopped or sent patients twice; what was not recorded on such a day looks like an omission.",
        Bounds(0, _NEVER),
    ),
    Rule(
        "unread_files",
        "files of the source were not read",
        "Patients and decisions in them do not exist for the program.",
        Bounds(0, _NEVER),
        of_count=True,
    ),
    Rule(
        "respelled",
        "rows were read in another spelling",
        "What was one thing under several spellings is one thing; look whether it should be.",
        Bounds(0, _NEVER),
    ),
    Rule(
        "alike_patients",
        "patients have identifiers that differ only by case, signs, leading zeros or letters that look alike",
        "If they are one patient, each part lacks the stays, results or orders of the other.",
        Bounds(0, 0.1),
    ),
    Rule(
        "doubtful_numbers",
        "results are numbers such as 1,234, which may be thousands or decimals; they have no value",
        "Features of these labs are missing.",
        Bounds(0, 0.1),
    ),
    Rule(
        "unread_numbers",
        "results begin with a number that was not understood; they have no value",
        "Features of these labs are missing.",
        Bounds(0.02, 0.2),
    ),
    Rule(
        "lost_values",
        "results lost their value: a unit without a conversion, a sentinel number, or outside the plausible range",
        "Features of these labs are missing or rest on few values.",
        Bounds(0.02, 0.2),
    ),
    Rule(
        "open_orders",
        "drug orders have no stop; they last as long as the stay",
        "A drug counts as on after it was stopped, so that not ordering it again looks right.",
        Bounds(0.2, _NEVER),
    ),
    Rule(
        "turned_orders",
        "drug orders stop before they start; they count as stopped at once",
        "A drug that was given may not count as on.",
        Bounds(0, 0.2),
    ),
    Rule(
        "never_done",
        "rows were called off, never done or entered in error; they are no decisions",
        "If a word was misread, decisions are missing; the mapping's not_done_words say which words count.",
        Bounds(0.2, _NEVER),
    ),
    Rule(
        "unknown_words",
        "rows have a status or sex that the program does not know; the status counts as done",
        "Acts that were called off may count as decisions. Name the word in the mapping under not_done_words or "
        "done_words.",
        Bounds(0, _NEVER),
    ),
    Rule(
        "stray_orders",
        "items have an order for less than half of the patients they were given to; orders and doses both count",
        "Orders are missing, or written down in another system.",
        Bounds(0, _NEVER),
        of_count=True,
    ),
    Rule(
        "ungiven_orders",
        "pairs of patient and drug have an order but no dose, though other patients were given the drug",
        "Orders that nobody carried out count as decisions; if doses are written down elsewhere, nothing is wrong.",
        Bounds(0.5, _NEVER),
    ),
    Rule(
        "unnamed_tasks",
        "tasks have no name but a code; a table of names is missing (MEDS: metadata/codes.parquet, OMOP: concept)",
        "Nobody can judge an alert about a number.",
        Bounds(0.1, _NEVER),
    ),
    Rule(
        "alike_tasks",
        "tasks have names that differ only by case, blanks or letters that look alike",
        "If two of them are one thing, each is missing the decisions of the other; give them one item in the mapping.",
        Bounds(0, _NEVER),
    ),
    Rule(
        "midnight_times",
        "events are of kinds with dates instead of times of day",
        "An act of the afternoon counts as known in the morning, and as decided in the window before. Name the kinds "
        "under day_level in the mapping: they then count for their day. Where admissions or discharges are dates, a "
        "stay gains its first morning or loses its last.",
        Bounds(0, 0.5),
    ),
    Rule(
        "events_outside_stays",
        "events lie outside any stay",
        "Decisions outside stays are no decisions; stays may be missing.",
        Bounds(0.5, 0.9),
    ),
    Rule(
        "events_after_death",
        "events lie on a day after the patient's death",
        "A wrong time of death ends a stay too early.",
        Bounds(0.0, 0.01),
    ),
    Rule(
        "events_before_birth",
        "events lie before the patient's birth",
        "Ages are missing or wrong, and with them reference ranges.",
        Bounds(0.0, 0.01),
    ),
    Rule(
        "sudden_change",
        "figures are over twice or less than half of what they were in the last import",
        "A feed or a code may have changed; decisions that are no longer recorded look like omissions.",
        Bounds(0, 0.5),
    ),
    Rule(
        "unknown_codes",
        "rows have a code that no rule of the mapping recognises",
        "Decisions and results behind these codes do not exist for the program.",
        Bounds(0.1, 0.5),
    ),
)
"""Every check, in the order in which they are shown."""

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
    among = f" of {n_of:,}" if n_of else ""
    return Check(
        name=rule.name,
        severity=severity,
        count=count,
        n_of=n_of,
        share=share,
        bound=bounds.yellow if severity is Severity.OK else bounds.red if severity is Severity.RED else bounds.yellow,
        bound_is_count=rule.of_count,
        sentence=f"{count:,}{among} {rule.what}.",
        effect=rule.effect,
        examples=examples,
    )
