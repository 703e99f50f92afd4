"""Words and numbers of the pages: one way to write a score, a time, a share, and to make any text safe to show."""

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Literal

from alertreview.alerts.models import AlertRow, Comparison
from alertreview.alerts.triage_models import TriageChoice, TriageStatus
from alertreview.studies.models import StudyView
from core.kinds import KindWords
from core.number_texts import counted, fixed_text, hours_text, measured_text, percent_text
from core.statistics.estimate import Estimate
from core.vocabulary import Answer, CaseState, Certainty, Decision, StudyStatus, TriageState

CERTAINTY_TEXTS = {Certainty.CERTAIN: "Certain", Certainty.UNCERTAIN: "Not certain"}
CASE_TEXTS = {
    CaseState.MAJORITY: "Majority",
    CaseState.ADJUDICATED: "Adjudicated",
    CaseState.DISPUTED: "Disputed",
    CaseState.UNDETERMINED: "Undetermined",
    CaseState.OPEN: "Open",
}
STATUS_TEXTS = {StudyStatus.DRAFT: "Draft", StudyStatus.OPEN: "Open", StudyStatus.LOCKED: "Locked"}
BadgeColour = Literal["red", "orange", "yellow", "blue", "green", "gray"]
STATUS_COLOURS: dict[StudyStatus, BadgeColour] = {
    StudyStatus.DRAFT: "yellow",
    StudyStatus.OPEN: "green",
    StudyStatus.LOCKED: "gray",
}
DECISION_TEXTS = {Decision.OMISSION: "Omission", Decision.COMMISSION: "Commission"}
DECISION_ICONS = {Decision.OMISSION: ":material/do_not_disturb_on:", Decision.COMMISSION: ":material/add_circle:"}
DECISION_COLOURS = {Decision.OMISSION: "blue", Decision.COMMISSION: "orange"}
TRIAGE_TEXTS = {
    TriageState.NEW: "New",
    TriageState.IN_REVIEW: "In review",
    TriageState.ACTIONED: "Actioned",
    TriageState.DISMISSED: "Dismissed",
    TriageState.SNOOZED: "Snoozed",
}
TRIAGE_COLOURS: dict[TriageState, BadgeColour] = {
    TriageState.NEW: "gray",
    TriageState.IN_REVIEW: "green",
    TriageState.ACTIONED: "green",
    TriageState.DISMISSED: "gray",
    TriageState.SNOOZED: "yellow",
}
TRIAGE_ICONS = {
    TriageState.NEW: ":material/fiber_new:",
    TriageState.IN_REVIEW: ":material/visibility:",
    TriageState.ACTIONED: ":material/task_alt:",
    TriageState.DISMISSED: ":material/do_not_disturb_off:",
    TriageState.SNOOZED: ":material/snooze:",
}
TRIAGE_CHOICES = {
    TriageChoice.OPEN: "Open",
    TriageChoice.ANY: "Any state",
    TriageChoice.NEW: "New",
    TriageChoice.IN_REVIEW: "In review",
    TriageChoice.ACTIONED: "Actioned",
    TriageChoice.DISMISSED: "Dismissed",
    TriageChoice.SNOOZED: "Snoozed",
}

NO_BREAK = "\N{NO-BREAK SPACE}"
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_POWER = re.compile(r"(?<=\d)[\^*](-?\d+)")
_MICRO = re.compile(r"\bu(?=(?:g|l|L|m|mol|kat|U|IU)\b)")
_DEGREES = re.compile(r"\bdeg ?(?=[CF]\b)")

# What Markdown makes a link of without being asked; an invisible joiner before it keeps it text.
_LINK = re.compile(r"(://|\.(?<=www\.)|@)", re.IGNORECASE)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=@/])")


def shorten(text: str, limit: int = 80) -> str:
    """Text on one line, cut with an ellipsis; the whole text stays reachable where it matters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


_DECIDED = re.compile(r"(: \d+ \w+)?( not)? \w+(, \d+ days| and \d+ more)?$")


def plain(text: str, limit: int = 80) -> str:
    """Text from outside for inside Markdown: no emphasis, link, formula, icon or tag can come out of it."""
    return _MARKDOWN.sub(r"\\\1", _LINK.sub("\u2060\\1", shorten(text, limit)))


def decision_line(words: str, limit: int = 36) -> str:
    """Shorten the words of a line in the middle, so that what was decided stays: "Basic metabolic pa… not measured"."""
    found = _DECIDED.search(words)
    end = found.group() if found else ""
    return shorten(words.removesuffix(end), max(limit - len(end), 8)) + end


number = measured_text
"""Measured value with three significant digits and no needless zeros: 0.62, 138, 1,240."""


def unit(text: str) -> str:
    """Write a unit as it is printed: 10⁹/L for 10^9/L, µg for ug, °C for degC."""
    text = _POWER.sub(lambda found: found[1].translate(_SUPERSCRIPTS), text)
    return _DEGREES.sub("°", _MICRO.sub("µ", text))


score = fixed_text
"""Score with two decimals, or as many as `score_digits` says."""


def score_digits(values: Iterable[float]) -> int:
    """Digits needed to tell neighbouring scores apart, between 2 and 4; the top of a list is often crowded."""
    ordered = sorted(set(values), reverse=True)
    for digits in (2, 3):
        shown = [round(value, digits) for value in ordered]
        if len(set(shown)) >= 0.8 * len(ordered):
            return digits
    return 4


def percent(share: float, digits: int = 0) -> str:
    """Write a share in [0, 1] as a percentage; only none reads as 0% and only all as 100%."""
    return percent_text(share, digits)


def interval_percent(low: float, high: float, digits: int = 0) -> str:
    """Write an interval of shares: 51–72%."""
    return f"{100 * low:.{digits}f}–{100 * high:.{digits}f}%"


def day(when: date) -> str:
    """27 Nov 2026."""
    return f"{when.day} {when:%b %Y}"


def short_day(when: datetime) -> str:
    """27 Nov."""
    return f"{when.day} {when:%b}"


def day_time(when: datetime) -> str:
    """27 Nov 2026, 08:00."""
    return f"{day(when)}, {when:%H:%M}"


def short_time(when: datetime) -> str:
    """27 Nov 08:00."""
    return f"{when.day} {when:%b %H:%M}"


def duration(seconds: float) -> str:
    """52 s, 1 min 52 s, 2 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60:,} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


hours = hours_text
"""Age of a value: 40 min, 5 h, 4 d."""
plural = counted
"""1 alert, 31 alerts, 1,204 alerts."""


def sex(code: str) -> str:
    """Sex as a word; empty when the record does not say."""
    return {"f": "female", "female": "female", "m": "male", "male": "male"}.get(code.strip().lower(), code.strip())


def age(age_years: float | None) -> str:
    """71 y, of completed years."""
    return f"{int(age_years)} y" if age_years is not None else ""


def person(sex_code: str, age_years: float | None) -> str:
    """71 y, female."""
    return ", ".join(part for part in (age(age_years), sex(sex_code)) if part)


def joined(*parts: str) -> str:
    """Parts of a line with a middle dot between them, empty ones left out."""
    return " · ".join(part for part in parts if part)


def patient_cell(row: AlertRow) -> str:
    """SIM-0412, 71 y F."""
    letter = sex(row.sex)[:1].upper()
    about = " ".join(part for part in (age(row.age_years), letter) if part)
    return ", ".join(part for part in (shorten(row.patient_id, 24), about) if part)


def triage_status(where: TriageStatus) -> str:
    """Where a decision stands: New, Dismissed, Snoozed to 30 Nov 08:00; a snooze that is over says so."""
    if where.state is TriageState.SNOOZED and where.snoozed_until is not None:
        return f"Snoozed to {short_time(where.snoozed_until)}"
    if where.state is TriageState.NEW and where.snoozed_until is not None:
        return "New, snooze over"
    return TRIAGE_TEXTS[where.state]


def answer_text(answer: Answer, texts: Mapping[Answer, str] | None = None, limit: int = 40) -> str:
    """Text of an answer in a study, or its short text when the study has none."""
    return shorten((texts or {}).get(answer) or answer.short, limit)


def study_name(study: StudyView) -> str:
    """Title of a study in lists; an open panel says so first, where no cut takes it away."""
    return f"Open panel: {study.title}" if study.is_open_panel else study.title


def minutes_left(n_cases: int, minutes_per_case: float = 2.0) -> str:
    """About 25 min; rounded to five minutes so that it does not look exact."""
    if not n_cases:
        return "nothing left"
    minutes = max(5, round(n_cases * minutes_per_case / 5) * 5)
    return f"about {minutes} min" if minutes < 100 else f"about {minutes / 60:.1f} h"


def reason(compared: Comparison, words: KindWords, sex: str) -> tuple[str, str]:
    """Return what similar patients got and what the same patient got before: a sentence each, empty without days."""
    days = f"{compared.n_days:,} most similar days of other patients ({plural(compared.n_patients, 'patient')})"
    others = f"{compared.n_decided:,} of the {days} {words.had}."
    whose = {"F": "Her", "M": "His"}.get(sex, "The patient's")
    own = f"{whose} own earlier days: {compared.n_own_decided:,} of {compared.n_own_days:,}."
    return (
        others if compared.n_days else "No similar past day of another patient is stored.",
        own if compared.n_own_days else "",
    )


def guideline(line: str) -> str:
    """One line of a coordinator's text: its bold words and list marks stay, links, images and formulas do not."""
    return plain(line, 600).replace(r"\*\*", "**").replace(r"\- ", "- ", 1)


def judge_first(n_cases: int) -> str:
    """Return why alerts are missing from the lists of somebody who has still to judge them."""
    hidden = "1 alert is" if n_cases == 1 else f"{n_cases:,} alerts are"
    them = "it" if n_cases == 1 else "them"
    return f"{hidden} hidden until you have judged {them} in a blinded study."


def bold_only(sentence: str) -> str:
    """Keep **bold** in a sentence of a report, and nothing else of Markdown."""
    return plain(sentence, 600).replace(r"\*\*", "**")


def estimate_tile(
    label: str, estimate: Estimate | None, about: str, *, percentage: bool = False
) -> tuple[str, str, str]:
    """Name, value and second line of a figure: its interval, or the reason why it is missing."""
    if estimate is None or estimate.value is None:
        return label, "–", plain(estimate.reason if estimate else "not computable", 120)
    value, _, interval = estimate.text(percent=percentage).partition(" ")
    if not interval:
        return label, value, plain(joined(estimate.reason, about), 120)
    return label, value, f"{interval.strip('()')}, {plain(about, 80)}"
