"""The import report: what was read, recognised and dropped, and why; counts and codes, never patient data."""

import html
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

from core.errors import InvalidInputError
from core.events.plausibility import Check, Finding, Severity
from core.events.series import SeriesSet
from core.events.stream import of_kind, seconds
from core.kinds import CHARTED, LABEL_EVENTS, PATIENT_EVENTS, EventKind, Kind, task_of
from core.number_texts import counted
from core.vocabulary import SNAPSHOT_HOUR

N_EXAMPLES = 8
"""How many codes or items a line of the report names."""


@dataclass(frozen=True)
class KindCount:
    """Recognised rows of one kind, before duplicates and ignored items are taken out."""

    kind: str
    n_rows: int
    n_codes: int
    n_spellings: int  # group keys as the source spells them
    n_items: int  # group keys after case and blanks are normalised


@dataclass(frozen=True)
class Dropped:
    """Rows left out for one reason."""

    reason: str
    n_rows: int
    n_codes: int
    examples: tuple[tuple[str, int], ...]  # (code, number of rows), most frequent first


@dataclass(frozen=True)
class UnitConflict:
    """An item whose results come in more than one known unit."""

    item: str
    name: str
    main_unit: str
    n_main: int
    others: tuple[tuple[str, int], ...]  # (unit, number of results left without a value because no conversion is known)


@dataclass(frozen=True)
class OutsideStays:
    """Events of one kind that happened while the patient was not in hospital."""

    kind: str
    n_events: int
    n_outside: int


@dataclass(frozen=True)
class ReadCounts:
    """What the event stream counted while the source was read."""

    n_rows: int = 0
    n_codes: int = 0
    kinds: tuple[KindCount, ...] = ()
    facts: tuple[KindCount, ...] = ()
    """Rows for the case view only, which are neither features nor tasks; see `core.events.facts`."""
    dropped: tuple[Dropped, ...] = ()
    n_duplicate_rows: int = 0  # rows of the source that repeat another row exactly, recognised or not
    n_duplicates_dropped: int = 0  # recognised rows among them, taken out of the event stream
    n_items_with_several_unit_codes: int = 0
    unit_conflicts: tuple[UnitConflict, ...] = ()
    n_converted: int = 0
    n_sentinels: int = 0
    implausible: tuple[tuple[str, int], ...] = ()  # (item, number of values outside the plausible range)
    n_results_without_number: int = 0
    n_numbers_from_text: int = 0
    n_not_finite: int = 0
    remarks: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    idle_rules: tuple[str, ...] = ()  # sentences on rules of the mapping that no code came to
    problem: str = ""  # why an import with this mapping is refused; only in the counts of a check


@dataclass(frozen=True)
class StayCounts:
    """What came of the admissions and discharges."""

    n_stays: int = 0
    n_open: int = 0
    n_zero_length: int = 0
    n_overlapping: int = 0
    n_without_instance: int = 0
    n_unpaired_admissions: int = 0
    n_unpaired_discharges: int = 0
    n_reversed: int = 0  # ended before they began; left out
    n_emptied: int = 0  # of length zero, although their patient has events around them
    n_left: int = 0  # open ones whose patient has no event in the last two days of the data, or has died
    n_long: int = 0  # longer than a year
    n_contradicted: int = 0  # patients with two sexes, or two dates of birth or death; the first counts
    n_differing: int = 0  # stays of one name with admissions or discharges over an hour apart
    n_instances_merged: int = 0
    """Instances of overlapping stays that fell on the same morning of the same patient and became one."""

    @property
    def n_unpaired(self) -> int:
        """Admissions and discharges without a partner, without those of reversed stays."""
        return self.n_unpaired_admissions + self.n_unpaired_discharges - 2 * self.n_reversed

    def __add__(self, other: "StayCounts") -> "StayCounts":
        """Count two groups of patients together."""
        return StayCounts(**{name: n + getattr(other, name) for name, n in asdict(self).items()})


@dataclass(frozen=True)
class ImportReport:
    """Everything a data manager must know about an import; holds codes and counts, never patient data."""

    source: str
    format: str
    mapping: str
    n_patients: int
    n_events: int
    read: ReadCounts
    stays: StayCounts
    n_instances: int
    n_cut_windows: int
    n_features: int
    n_tasks: dict[str, int]
    """Labs and drugs with enough decisions, by `core.kinds.Kind`, of the kinds that rules of the mapping name."""
    min_positive: dict[str, int]  # positive instances that a task of each kind needs
    outside_stays: tuple[OutsideStays, ...] = ()
    share_midnight: float = 0.0  # share of events other than births and deaths whose time is midnight, in [0, 1]
    n_results_before_order: int = 0
    n_before_birth: int = 0
    n_after_death: int = 0
    simulated: bool = False
    snapshot_hour: int = SNAPSHOT_HOUR
    warnings: tuple[str, ...] = field(default=())
    checks: tuple[Check, ...] = ()  # every check of the import, those without a finding included
    n_panels: int = 0  # order groups that are one task, besides those of `n_tasks`
    n_asked: int | None = None
    """Tasks and panels that the task catalogue asks about by default; None in reports of former versions."""
    words: dict[str, str] = field(default_factory=dict)
    """What it is called that a task was done; see `core.kinds.said_of`."""

    @property
    def n_recognised(self) -> int:
        """Rows that a rule of the mapping recognised as an event."""
        return sum(kind.n_rows for kind in self.read.kinds)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists, ready for JSON."""
        return {**asdict(self), "n_recognised": self.n_recognised}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "ImportReport":
        """Return the report that `to_dict` gave.

        Raise InvalidInputError if it lacks what a former version did not count.
        """
        try:
            return _adapter().validate_python(stored)
        except ValidationError:
            raise InvalidInputError(
                "The report of this import was stored by another version and cannot be read. Import the source again."
            ) from None

    def lines(self) -> list[str]:
        """Text for the terminal, one sentence or figure a line."""
        out: list[str] = []
        for title, rows in self.sections():
            out += [title, *(f"  {label:<44} {value}" for label, value in rows), ""]
        return out[:-1]

    def to_html(self) -> str:
        """Build one section of HTML, without its own script or style; every text is escaped."""
        parts = ["<section class='import-report'>"]
        for title, rows in self.sections(every_check=True):
            cells = "".join(
                f"<tr><th scope='row'>{html.escape(label)}</th><td>{html.escape(value)}</td></tr>"
                for label, value in rows
            )
            parts.append(f"<h2>{html.escape(title)}</h2><table>{cells}</table>")
        return "".join([*parts, "</section>"])

    def sections(self, *, every_check: bool = False) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return what the report says as titled lists of label and value, without empty ones.

        With `every_check`, checks that found nothing to doubt are among them.
        """
        sections = [
            (f"Import of {self.source} ({'simulated, ' if self.simulated else ''}{self.format})", self._overview()),
            ("Recognised", self._recognised()),
            ("Left out", self._left_out()),
            ("Rules of the mapping", [("-", sentence) for sentence in self.read.idle_rules]),
            ("Values", self._values()),
            ("Times", self._times()),
            ("Checks", self._checked(every_check)),
            ("Warnings", [("-", warning) for warning in self.warnings]),
            ("Remarks", [("-", remark) for remark in self.read.remarks]),
        ]
        return [(title, rows) for title, rows in sections if rows]

    def _checked(self, every_check: bool) -> list[tuple[str, str]]:
        return [(_check_label(check), _check_text(check)) for check in self.checks if every_check or _is_raised(check)]

    def _overview(self) -> list[tuple[str, str]]:
        stays = self.stays
        notes = [
            (stays.n_open, "open"),
            (stays.n_zero_length, "of length zero"),
            (stays.n_overlapping, "overlapping another"),
            (stays.n_without_instance, "without an instance"),
        ]
        extra = ", ".join(f"{n:,} {words}" for n, words in notes if n)
        return [
            ("mapping", self.mapping),
            ("rows read", f"{self.read.n_rows:,}"),
            ("events recognised", f"{self.n_recognised:,} ({self.n_events:,} kept)"),
            ("patients", f"{self.n_patients:,}"),
            ("stays", f"{stays.n_stays:,}" + (f" ({extra})" if extra else "")),
            (
                "patient-state instances",
                f"{self.n_instances:,} at {self.snapshot_hour:02d}:00 ({self.n_cut_windows:,} with a cut window)",
            ),
            ("features", f"{self.n_features:,}"),
            *(
                (
                    f"{kind.words.item} tasks",
                    f"{self.n_tasks[kind]:,} with at least {self.min_positive[kind]} positive instances",
                )
                for kind in Kind
                if kind in self.n_tasks
            ),
            *self._worded(),
            *self._catalogue(),
        ]

    def _worded(self) -> list[tuple[str, str]]:
        """Return the words of decisions, and how many tasks have others."""
        parts = []
        for kind in CHARTED:
            if kind.value in self.words:
                n_others = sum(task_of(key)[0] is kind for key in self.words if key not in list(Kind))
                others = f" ({n_others:,} of them otherwise)" if n_others else ""
                parts.append(f"{kind.words.items} {self.words[kind.value]}{others}")
        return [("words of decisions", ", ".join(parts))] if parts else []

    def _catalogue(self) -> list[tuple[str, str]]:
        n_all = sum(self.n_tasks.values()) + self.n_panels
        if self.n_asked in (None, n_all):
            return []
        said = f"{self.n_asked:,} of {n_all:,} tasks are asked about, {self.n_panels:,} are panels"
        return [("task catalogue", f"{said} (alertreview tasks list)")]

    def _recognised(self) -> list[tuple[str, str]]:
        return [(_kind_words(count.kind), _counts(count)) for count in (*self.read.kinds, *self.read.facts)]

    def _left_out(self) -> list[tuple[str, str]]:
        rows = [
            (drop.reason, f"{drop.n_rows:,} rows of {drop.n_codes:,} codes: {_examples(drop.examples)}")
            for drop in self.read.dropped
        ]
        if self.read.n_duplicate_rows:
            text = f"{self.read.n_duplicate_rows:,} rows, of which {self.read.n_duplicates_dropped:,} were recognised"
            rows.append(("exact duplicates", text))
        stays = self.stays
        for n, label in (
            (stays.n_unpaired_admissions, "admissions without a discharge, not the last"),
            (stays.n_unpaired_discharges, "discharges without an admission"),
            (stays.n_reversed, "stays that end before they begin"),
            (stays.n_instances_merged, "instances of overlapping stays, merged"),
        ):
            if n:
                rows.append((label, f"{n:,}"))
        return rows

    def _values(self) -> list[tuple[str, str]]:
        read = self.read
        counts = [
            ("results without a number", read.n_results_without_number),
            ("numbers read from text", read.n_numbers_from_text),
            ("numbers that are not finite, left out", read.n_not_finite),
            ("sentinel values, left out", read.n_sentinels),
            ("values converted to another unit", read.n_converted),
            ("items under several unit codes", read.n_items_with_several_unit_codes),
        ]
        rows = [(label, f"{n:,}") for label, n in counts if n]
        if read.implausible:
            n_all = sum(n for _, n in read.implausible)
            rows.append(("values outside the plausible range", f"{n_all:,}: {_examples(read.implausible)}"))
        for conflict in read.unit_conflicts[:N_EXAMPLES]:
            others = ", ".join(f"{n:,} in {unit}" for unit, n in conflict.others)
            rows.append((f"unit conflict: {conflict.name}", f"{conflict.n_main:,} in {conflict.main_unit}, {others}"))
        if len(read.unit_conflicts) > N_EXAMPLES:
            rows.append(("more unit conflicts", f"{len(read.unit_conflicts) - N_EXAMPLES:,} items"))
        return rows

    def _times(self) -> list[tuple[str, str]]:
        rows = [
            (
                f"{_kind_words(part.kind)} outside any stay",
                f"{part.n_outside:,} of {part.n_events:,} ({part.n_outside / part.n_events:.0%})",
            )
            for part in self.outside_stays
            if part.n_outside
        ]
        for label, n in (
            ("results before their order", self.n_results_before_order),
            ("events before birth", self.n_before_birth),
            ("events after death", self.n_after_death),
        ):
            if n:
                rows.append((label, f"{n:,}"))
        rows.append(("share of times at midnight", f"{self.share_midnight:.1%}"))
        return rows


@cache
def _adapter() -> TypeAdapter[ImportReport]:
    return TypeAdapter(ImportReport)


def _kind_words(kind: str) -> str:
    """Write the name of a kind of event in words: "lab order"."""
    return kind.lower().replace("_", " ")


def _counts(count: KindCount) -> str:
    """Return the rows, items and codes of a kind in words: "1 row, 2 items, 2 codes"."""
    numbers = ((count.n_rows, "row"), (count.n_items, "item"), (count.n_codes, "code"))
    return ", ".join(counted(n, noun) for n, noun in numbers)


def _is_raised(check: Check) -> bool:
    return check.severity is not Severity.OK


def _check_label(check: Check) -> str:
    return f"{check.severity.value}: {check.name}"


def _check_text(check: Check) -> str:
    parts = [check.sentence, f"{_bound(check)}."]
    if _is_raised(check):
        parts.append(check.effect)
    if check.examples:
        parts.append(f"For example: {', '.join(check.examples)}.")
    return " ".join(parts)


def _bound(check: Check) -> str:
    """Return the bound that was passed, or the first that would be, in words."""
    if math.isinf(check.bound):
        return "No bound"
    is_count = check.bound_is_count or not check.n_of
    return f"Bound: {check.bound:,.0f}" if is_count else f"Bound: {100 * check.bound:.3g} %"


def _examples(examples: tuple[tuple[str, int], ...]) -> str:
    shown = ", ".join(f"{code} ({n:,})" for code, n in examples[:N_EXAMPLES])
    return shown + (", ..." if len(examples) > N_EXAMPLES else "")


_CHECKED_KINDS = [kind for kind in EventKind if kind not in (*PATIENT_EVENTS, EventKind.ADMISSION, EventKind.DISCHARGE)]


_ENOUGH_TIMES = 5
SHARE_OF_DATES = 0.9
"""From this share of midnights on, a kind has dates and no times."""
_SHARE_OF_SOME_DATES = 0.15
"""Of times of day, 2 to 3 % are midnight."""
_STANDS_OUT = 1.5
"""Times as many as at any other minute of the day, for midnights to be doubted: rounds have hours of their own."""
_MINUTES = 24 * 60


class StreamChecks:
    """Counts over all parts of an event stream."""

    def __init__(self) -> None:
        self._n_of_kind: Counter[EventKind] = Counter()
        self._n_timed_of_kind: Counter[EventKind] = Counter()
        self._n_outside: Counter[EventKind] = Counter()
        self._n_midnight: Counter[EventKind] = Counter()
        self._n_of_minute = np.zeros((len(EventKind), _MINUTES), dtype=np.int64)
        self.n_before_birth = self.n_after_death = self.n_results_before_order = 0

    def add(self, events: pd.DataFrame, stays: pd.DataFrame, patients: pd.DataFrame) -> None:
        """Count one part, with its stays and patients."""
        inside = _inside_stays(events, stays)
        second = seconds(events["time"]) % 86400
        at_midnight = second == 0
        kind = events["kind"].cat.codes.to_numpy()
        minute = kind.astype(np.int64) * _MINUTES + second // 60
        self._n_of_minute += np.bincount(minute, minlength=self._n_of_minute.size).reshape(self._n_of_minute.shape)
        n, n_outside, n_midnight = (
            np.bincount(each, minlength=len(EventKind)).tolist() for each in (kind, kind[~inside], kind[at_midnight])
        )
        for each in EventKind:
            if each in _CHECKED_KINDS:
                self._n_of_kind[each] += n[each.number]
                self._n_outside[each] += n_outside[each.number]
            if each not in (*PATIENT_EVENTS, *LABEL_EVENTS):
                self._n_timed_of_kind[each] += n[each.number]
                self._n_midnight[each] += n_midnight[each.number]
        self.n_results_before_order += _n_results_before_order(events)
        self._add_outside_life(events, patients)

    @property
    def outside_stays(self) -> tuple[OutsideStays, ...]:
        """Events outside any stay, by kind."""
        return tuple(
            OutsideStays(kind.value, self._n_of_kind[kind], self._n_outside[kind])
            for kind in _CHECKED_KINDS
            if self._n_of_kind[kind]
        )

    @property
    def share_midnight(self) -> float:
        """Share of events other than births and deaths whose time is midnight, in [0, 1]."""
        n = self._n_timed_of_kind.total()
        return self._n_midnight.total() / n if n else 0.0

    def midnights(self) -> list[Finding]:
        """Count the events of the kinds that have dates instead of times, and those that have dates among times."""
        n_all = self._n_timed_of_kind.total()
        shares = {kind: self._n_midnight[kind] / n for kind, n in self._n_timed_of_kind.items() if n >= _ENOUGH_TIMES}
        dated = [kind for kind, share in shares.items() if share >= SHARE_OF_DATES]
        some = [
            kind
            for kind, share in shares.items()
            if _SHARE_OF_SOME_DATES <= share < SHARE_OF_DATES
            and self._n_midnight[kind] > _STANDS_OUT * self._n_of_minute[kind.number, 1:].max()
        ]
        return [
            Finding(
                name,
                sum(n[kind] for kind in kinds),
                n_all,
                tuple(f"{kind} ({shares[kind]:.0%} at midnight)" for kind in kinds),
            )
            for name, kinds, n in (
                ("midnight_times", dated, self._n_timed_of_kind),
                ("some_dates", some, self._n_midnight),
            )
        ]

    def _add_outside_life(self, events: pd.DataFrame, patients: pd.DataFrame) -> None:
        numbers = events["patient_id"].cat.codes.to_numpy()
        by_patient = patients.set_index("patient_id").loc[events["patient_id"].cat.categories]
        own = ~of_kind(events, (*PATIENT_EVENTS, *LABEL_EVENTS))
        time = events["time"].to_numpy()
        birth = by_patient["birth_time"].to_numpy().astype("datetime64[us]")[numbers]
        death = by_patient["death_time"].to_numpy().astype("datetime64[us]")[numbers]
        # A death is often a date without a time of day: only what happened on a later day is after it.
        dead = np.flatnonzero(own & ~np.isnat(death))
        after = time[dead].astype("datetime64[D]") > death[dead].astype("datetime64[D]")
        self.n_before_birth += int((own & (time < birth)).sum())
        self.n_after_death += int(after.sum())


def _inside_stays(events: pd.DataFrame, stays: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    patients = events["patient_id"].cat.categories
    who = patients.get_indexer(stays["patient_id"]).astype(np.int64)
    admitted, ended = seconds(stays["admitted_at"]), seconds(stays["discharged_at"])
    ended = np.where(stays["discharged_at"].isna(), np.iinfo(np.int64).max, ended)
    begun = SeriesSet(who, admitted, len(patients))
    # Stays may overlap: compare with the latest end among the patient's stays that have begun.
    latest = pd.Series(ended[begun.order]).groupby(who[begun.order]).cummax().to_numpy()
    patient, time = events["patient_id"].cat.codes.to_numpy().astype(np.int64), seconds(events["time"])
    place = begun.before(patient, time + 1) - 1
    exists = place >= begun.start(patient)
    return exists & (latest[np.maximum(place, 0)] >= time) if len(latest) else exists


def _n_results_before_order(events: pd.DataFrame) -> int:
    """Count results of items that have orders, known before the patient's first order of the item."""
    n = 0
    series = (events["patient_id"].cat.codes.to_numpy().astype(np.int64) << 32) | events["item"].cat.codes.to_numpy()
    time, known_at = events["time"].to_numpy(), events["known_at"].to_numpy()
    for kind in (each for each in Kind if "pending" in each.record.features):
        orders = np.flatnonzero(of_kind(events, [kind.record.order]))
        results = np.flatnonzero(of_kind(events, [kind.record.done]))
        ordered, first = np.unique(series[orders], return_index=True)
        if len(ordered):
            place = np.minimum(np.searchsorted(ordered, series[results]), len(ordered) - 1)
            # Events are in the order of their times: the first row of a series is its first order.
            early = known_at[results] < time[orders[first]][place]
            n += int((early & (ordered[place] == series[results])).sum())
    return n
