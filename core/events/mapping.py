"""The site mapping: which codes of a health record source mean what, read from YAML and checked key by key."""

import re
import reprlib
import unicodedata
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from core.errors import MappingError
from core.events.facts import FactKind
from core.events.plausibility import RULES, Bounds
from core.events.spelling import stands_for_nothing, tidy, unit_spelling
from core.events.yaml_text import DoubledKeyError, TextLoader
from core.kinds import ACT_WORDS, CHARTED, ITEM_EVENTS, ITEM_WORDS, EventKind, Kind
from core.vocabulary import SNAPSHOT_HOUR

_GROUPS = {"item", "unit", "event"}
# The first and last days of calendars, epochs and types of common systems.
_SENTINEL_DATES = """
    0001-01-01 1600-01-01 1601-01-01 1752-09-14 1753-01-01 1800-01-01 1840-12-31 1841-01-01 1850-01-01 1858-11-17
    1899-12-30 1899-12-31 1900-01-01 1900-12-31 1901-01-01 1904-01-01 1970-01-01 2037-12-31 2038-01-19 2049-12-31
    2050-12-31 2078-12-31 2079-06-06 2099-01-01 2099-12-31 2100-01-01 2100-12-31 2199-12-31 2200-01-01 2262-04-11
    2299-12-31 2500-01-01 2999-12-31 3000-01-01 3000-12-31 4000-12-31 4712-12-31 8888-12-31 9998-12-31 9999-01-01
    9999-12-30 9999-12-31
"""
SENTINEL_DATES = tuple(date.fromisoformat(each) for each in _SENTINEL_DATES.split())
"""Dates that stand for "none" in many sources."""


_NOT_DONE = """
    cancelled; canceled; cancel; cancellation; cxl; entered in error; entered erroneously; error; voided; void; deleted;
    nullified; annulled; retracted; revoked; withdrawn; rejected; aborted; missed; omitted; refused; declined; draft;
    proposed; planned; test not performed; patient refused; family refused; refused by patient; skipped; withheld; not
    needed; duplicate; wrong patient; unable to give; unable to collect; no show; storno; storniert; stornierung;
    annulliert; annullierung; abbruch; abgebrochen; abgesagt; abgelehnt; verworfen; gelöscht; ungültig; fehleingabe;
    irrtum; irrtümlich; verweigert; widerrufen; zurückgezogen; gestrichen; entfällt; entfallen; ausgelassen; entwurf;
    falscher patient; doppelanforderung; annulé; annulation; refusé; refus; supprimé; rejeté; abandonné; révoqué; omis;
    omise; erreur de saisie; saisi par erreur; brouillon; annullato; annullamento; cancellato; cancellazione; rifiutato;
    revocato; eliminato; errore di inserimento; inserito per errore; bozza; cancelado; cancelación; anulado;
    anulación; rechazado; revocado; eliminado; suprimido; omitido; error de registro; borrador; geannuleerd; annulering;
    afgebroken; geweigerd; ingetrokken; vervallen; verwijderd; foutieve invoer
"""
_NO_ACT = {
    "not never": "done given performed taken collected administered drawn received",
    "nicht": "gegeben verabreicht durchgeführt erfolgt eingenommen genommen gemacht entnommen abgenommen benötigt",
    "non pas": "fait administré effectué réalisé donné pris prélevé",
    "non": "eseguito effettuato somministrato fatto assunto prelevato",
    "no": "realizado administrado hecho tomado dado efectuado",
    "niet": "gegeven uitgevoerd toegediend ingenomen afgenomen",
}
_INFLECTED = {"é": ("é", "ée", "és", "ées"), "o": ("o", "a", "i", "e", "os", "as")}
"""Endings of French participles, and of Italian and Spanish ones."""


def _forms(words: str) -> tuple[str, ...]:
    """Return words and short phrases in all their forms, each once."""
    said = (" ".join(each.split()) for each in words.split(";"))
    return tuple(dict.fromkeys(word[:-1] + end for word in said for end in _INFLECTED.get(word[-1], (word[-1],))))


_NOTHING = [f"{no} {act}" for nos, acts in _NO_ACT.items() for no in nos.split() for act in acts.split()]
NOT_DONE_WORDS = _forms(";".join([_NOT_DONE, *_NOTHING]))
"""Words that say that an act was called off, never done, or written down by mistake."""
_DONE = """
    completed; complete; active; final; finished; amended; corrected; preliminary;
    ended; in progress; on hold; suspended; held; paused; stopped; discontinued; expired; dispensed; verified;
    ordered; started; running; pending; dc; dc'd; d/c; d/c'd; open; closed; resulted; signed;
    released; new; modified; ok; y; yes; true; 1; abgeschlossen; erledigt; aktiv;
    laufend; beendet; abgesetzt; pausiert; angeordnet; validiert; freigegeben; bestätigt; terminé; actif; arrêté;
    completato; attivo; completado; terminado; activo; voltooid; actief
"""
DONE_WORDS = _forms(";".join([_DONE, *" ".join(_NO_ACT.values()).split()]))
"""Statuses of what was ordered or done, whatever became of it later."""


def normalise(text: str, *, keep_case: bool = False) -> str:
    """Squeeze blanks and, unless told otherwise, drop the difference between upper and lower case.

    Examples
    --------
    >>> normalise(" Sodium Chloride 0.9%  Flush ")
    'sodium chloride 0.9% flush'
    """
    squeezed = tidy(text)
    return squeezed if keep_case else squeezed.casefold()


_CLAUSE = re.compile(
    r"[:;,.(/]| - | (?:by|on|due to|because|durch|von|vom|am|wegen|par|le|pour|da|per|il|por|el|door|op|wegens) ",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\b(?:order|request|test|lab|specimen|dose|auftrag|anforderung|anordnung|verordnung|probe|dosis|demande|commande|"
    r"prescription|richiesta|ordine|prescrizione|pedido|orden|solicitud|aanvraag|opdracht|was|wurde)\b"
)
"""What a status may be said to be of, as "order cancelled" is."""
_TWO_VOWELS = re.compile("([aou])e")


def _status_key(word: str) -> str:
    """Return what is the same for two spellings of a status: regardless of case, "-", "_", accents and umlauts."""
    key = normalise(word.replace("_", " ").replace("-", " "))
    if not key.isascii():
        key = "".join(each for each in unicodedata.normalize("NFD", key) if not unicodedata.combining(each))
    return _TWO_VOWELS.sub(r"\1", key)


def _status_keys(words: str) -> frozenset[str]:
    return frozenset(map(_status_key, _forms(words)))


_HELD = _status_keys(
    "hold;held;on hold;dose held;hold dose;suspended;paused;pausiert;sistiert;suspendu;en pause;sospeso;suspendido"
)
"""Statuses of an order that goes on later, and of a dose that was not given."""
_OVER = _status_keys(
    "stopped;discontinued;dc;dc'd;d/c;d/c'd;ended;expired;finished;completed;abgesetzt;beendet;abgeschlossen;arrêté;"
    "terminé;interrotto;completato;terminado;completado;gestopt;voltooid"
)
"""Statuses of an order that has ended."""


def _checked_pattern(pattern: str) -> str:
    try:
        groups = set(re.compile(pattern).groupindex)
    except re.error as error:
        raise ValueError(f"is no regular expression ({error})") from None
    if groups - _GROUPS:
        raise ValueError(f"names the group {min(groups - _GROUPS)!r}; known groups are item, unit and event")
    return pattern


def _checked_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError("is no IANA time zone such as Europe/Zurich") from None
    return name


def _checked_check(name: str) -> str:
    known = [rule.name for rule in RULES]
    if name not in known:
        raise ValueError(f"is no check of an import; known are {', '.join(known)}")
    return name


def _checked_item_word(word: str) -> str:
    if word not in (kind.words.item for kind in CHARTED):
        raise ValueError(f"is no {ITEM_WORDS}")
    return word


_PURE_NUMBER = "1"
"""The unit of what has none, in UCUM."""
Pattern = Annotated[str, AfterValidator(_checked_pattern)]
UnitText = Annotated[str, AfterValidator(unit_spelling)]
CheckName = Annotated[str, AfterValidator(_checked_check)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Strict):
    """One line of a mapping: codes that match the whole pattern are events of a kind.

    The named groups ``item``, ``unit`` and ``event`` of the pattern give the group key, the unit and the event word.
    """

    code: Pattern
    kind: EventKind | FactKind | Literal["IGNORE"]
    item: str = ""  # a fixed group key, for patterns without the group ``item``
    unit: str = ""
    reason: str = ""  # why codes of an IGNORE rule are left out; printed in the import report

    @model_validator(mode="after")
    def _ignoring_needs_a_reason(self) -> "Rule":
        if self.kind == "IGNORE" and not self.reason:
            raise ValueError("a rule of kind IGNORE needs a reason, which the import report prints")
        return self


CompiledRules = tuple[tuple[re.Pattern[str], Rule], ...]


class PlausibleRange(_Strict):
    """Values of an item outside [low, high] mean nothing and are kept as "no number"."""

    item: str
    low: float = float("-inf")
    high: float = float("inf")

    @model_validator(mode="after")
    def _from_low_to_high(self) -> "PlausibleRange":
        if not self.low <= self.high:
            raise ValueError(f"low = {self.low:g} is not below high = {self.high:g}")
        return self


class UnitConversion(_Strict):
    """``value_in_to = value * factor + offset``."""

    item: str
    from_unit: UnitText
    to_unit: UnitText
    factor: float = Field(default=1.0, allow_inf_nan=False)
    offset: float = Field(default=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _keeps_values_apart(self) -> "UnitConversion":
        if self.factor == 0:
            raise ValueError("factor = 0 makes every value the same")
        return self


class EventWords(_Strict):
    """What the words beside an administration mean; compared without case and extra blanks."""

    counts: tuple[str, ...] = ()
    does_not_count: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()


DetailColumn = Literal["end", "dose", "route", "range_low", "range_high"]


class Columns(_Strict):
    """Names of columns beside the ones every source of the format has; empty = the source has none."""

    known_at: str = ""  # when a result could be known
    unit: str = ""
    text: str = ""
    stay: str = ""  # identifier of the stay, when admissions and discharges carry one
    status: str = ""  # what became of an order or act; see ``not_done_words``
    order: str = ""  # identifier of the order that a start, stop or dose belongs to
    end: str = ""  # when the event ended; each end becomes a separate event, with ``//END`` after the code


class CsvColumns(_Strict):
    """Names of the columns of a long CSV file."""

    patient: str = "patient"
    time: str = "time"
    code: str = "code"
    value: str = "value"
    text: str = "text"
    unit: str = ""
    known_at: str = ""
    status: str = "status"
    order: str = "order_id"


class Visits(_Strict):
    """Which OMOP visits are hospital stays."""

    included_concepts: tuple[int, ...] | None = None  # None: every visit that is longer than zero
    excluded_concepts: tuple[int, ...] = ()


class Lookup(_Strict):
    """A column of another table, found by a key that has the same name in both; a template makes one of several."""

    table: str
    key: str
    value: str


class Origins(_Strict):
    """Where times that are minutes from an origin start: one row for each key, such as a stay on a unit.

    The origin is on the first of January of the year at the clock time. Rows of one stay are shifted onto each other by
    the minutes from each origin to the beginning of the stay. Stays of one patient come a month after another, by year,
    then by number.
    """

    table: str
    key: str
    patient: str
    year: str
    clock: str
    stay: str
    stay_offset: str
    last: str = ""  # column that says how a stay ended
    last_text: str = ""  # what it says of the stay in which a patient died, which comes last


class TableEvents(_Strict):
    """Events of a wide table: each row that has all it needs is one event.

    Names are of columns, compared without case; those with braces are templates such as ``LAB//{itemid}``.
    """

    table: str  # file name without folder and suffixes
    code: str
    patient: str = ""
    time: str = ""
    offset: str = ""  # minutes from the origin, instead of a time
    at: Lookup | None = None  # the time is in another table
    minus_years: str = ""  # years before the time: an age, for births
    needs: str = ""  # rows without it are no event
    value: str = ""
    text: str = ""
    remark: str = ""  # calls off a row without value and text if it says so, as "Cancelled: hemolyzed" does
    unit: str = ""
    known_at: str = ""
    end: str = ""
    end_offset: str = ""
    no_end: str = ""  # what stands in the column of the end, or in `needs`, where there is none
    stay: str = ""
    order: str = ""  # identity of a drug order: its beginning and its end share it
    dose: str = ""
    route: str = ""
    range_low: str = ""
    range_high: str = ""
    name: Lookup | None = None  # names of codes for people

    def without_details(self) -> "TableEvents":
        """Return the events without the columns that a table may lack."""
        kept = {"table", "code", "patient", "time", "offset", "at", "minus_years", "value"}
        return TableEvents.model_validate(self.model_dump(include=kept))


class Category(_Strict):
    """A lab panel or drug class: what holds for any of its members becomes separate features."""

    name: str = Field(min_length=1)
    kind: Annotated[str, AfterValidator(_checked_item_word)]
    """What its items are: "lab" or "drug", as in the words of `core.kinds.Kind`."""
    items: tuple[Pattern, ...] = Field(min_length=1)
    """Regular expressions; an item is a member when one of them matches its whole group key."""


class SiteMapping(_Strict):
    """How to read one site's records; see data/README.md for every key.

    `load_mapping` and `parse_mapping` raise MappingError, naming file, key, value and rule.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    title: str
    format: str = Field(pattern=r"^[a-z]+$")
    """Of health records; `alertreview.records.sources.formats.FORMATS` lists them."""
    timezone: Annotated[str, AfterValidator(_checked_timezone)] = "UTC"
    naive_times: Literal["local", "utc"] = "local"  # times without a zone are site time, or UTC
    calendar_is_shifted: bool = False
    simulated: bool = False
    snapshot_hour: int = Field(default=SNAPSHOT_HOUR, ge=0, le=23)
    min_positive: int = Field(default=20, ge=1)
    min_positive_of_kind: dict[Kind, Annotated[int, Field(ge=1)]] = {}  # instead of `min_positive`, by kind of decision
    patient_prefix: str = ""
    patient_identifier: str = ""
    """FHIR: system of the identifier that names a patient; by default the id of the resource does."""
    patient_digits: int = Field(default=0, ge=0, le=19)
    day_level: tuple[EventKind, ...] = ()
    """Kinds with dates instead of times: they count for the day's snapshot, and are known when the day is over."""
    result_delay_minutes: int = Field(default=0, ge=0)
    """Assumed time from specimen to result, where the source has only the specimen's."""
    lab_tasks_from: Literal["auto", "order", "result"] = "auto"
    """auto: orders or specimens for items that have any, results else."""
    medication_tasks_from: Literal["auto", "order", "administration"] = "auto"
    """auto: orders for drugs that have any, administrations else."""
    act_words: dict[EventKind, str] = {}
    """What the source records, where it is not what `core.kinds.ACT_WORDS` names first."""
    columns: Columns = Columns()
    csv: CsvColumns = CsvColumns()
    code_prefix: str = ""
    """MEDS: column whose text, with "//", goes before each code, such as the table that an event came from."""
    details: dict[DetailColumn, str] = {}
    """Names of columns that the case view shows and no feature uses; a file may lack them."""
    visits: Visits = Visits()
    tables: tuple[TableEvents, ...] = ()  # wide tables of the format ``tables``
    origins: Origins | None = None
    rules: tuple[Rule, ...] = Field(min_length=1)
    event_words: EventWords = EventWords()
    not_done_words: tuple[str, ...] = NOT_DONE_WORDS
    """Parts of a code, texts or statuses that say that an order was called off or an act never done; compared without
    case, with "-" and "_" as blanks."""
    done_words: tuple[str, ...] = DONE_WORDS
    """Statuses of what was ordered or done; others are counted, and taken for one of these."""
    keep_case: bool = False  # drug names that differ only by case are different drugs
    ignored_items: tuple[str, ...] = ()
    unknown_units: tuple[str, ...] = ("", "UNK", "N/A")
    unit_aliases: dict[str, str] = {}
    unit_conversions: tuple[UnitConversion, ...] = ()
    sentinels: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()
    """Numbers that stand for "nothing", whatever the item."""
    sentinel_dates: tuple[date, ...] = SENTINEL_DATES
    """Dates that stand for "none" where no other event of the patient lies within a year."""
    plausible: tuple[PlausibleRange, ...] = ()
    names: dict[str, str] = {}  # names for people, by item
    units: dict[str, UnitText] = {}  # units by item, where neither codes nor columns tell
    categories: tuple[Category, ...] = ()  # lab panels and drug classes
    checks: dict[CheckName, Bounds] = {}
    """Bounds of checks of the import, instead of those of `core.events.plausibility.RULES`."""
    order_groups: dict[str, tuple[str, ...]] = {}
    """Names of order groups and their task keys; replaces what was found for these tasks."""
    ask_about: Literal["orders", "everything"] = "orders"
    """What the task catalogue asks about: panels of labs and single orders, or every lab and drug by itself."""

    @field_validator("act_words")
    @classmethod
    def _known_act_words(cls, words: dict[EventKind, str]) -> dict[EventKind, str]:
        for event, word in words.items():
            if event not in ACT_WORDS:
                raise ValueError(f"{event} never decides; words are for {', '.join(ACT_WORDS)}")
            if word not in ACT_WORDS[event]:
                raise ValueError(f"{word!r} is no word for {event}; known are {', '.join(ACT_WORDS[event])}")
        return words

    @cached_property
    def compiled_rules(self) -> CompiledRules:
        """The rules in order, each with its compiled pattern; the first that matches a whole code wins."""
        return tuple((re.compile(rule.code), rule) for rule in self.rules)

    @cached_property
    def rules_of_any_case(self) -> CompiledRules:
        """The rules, as `compiled_rules`, for codes in capital or small letters throughout."""
        return tuple((re.compile(rule.code, re.IGNORECASE), rule) for rule in self.rules)

    def without_item(self) -> tuple[str, ...]:
        """Say in a sentence each which rules name no item although events of their kind are nothing without one."""
        return tuple(
            f"The rule {rule.code!r} ({rule.kind}) names no item, so its events are neither tasks nor features. Put "
            "(?P<item>...) around the part of the code that names it, or give the rule a fixed item."
            for pattern, rule in self.compiled_rules
            if rule.kind in ITEM_EVENTS and not rule.item and "item" not in pattern.groupindex
        )

    def is_not_done(self, word: str) -> bool:
        """Return whether a word says that an order was called off or an act never done."""
        key = _status_key(word)
        return key in self._not_done_keys or " ".join(_ABOUT.sub(" ", key).split()) in self._not_done_keys

    def says_not_done(self, text: str) -> bool:
        """Return whether a status or text begins with such a word, as "Cancelled: hemolyzed" does."""
        return self.is_not_done(text) or self.is_not_done(_CLAUSE.split(tidy(text), maxsplit=1)[0])

    def is_known_status(self, text: str) -> bool:
        """Return whether a status says what became of an order or act, or nothing."""
        return (
            stands_for_nothing(tidy(text))
            or _status_key(text) in self._done_keys
            or self.says_held(text)
            or self.says_not_done(text)
        )

    def says_held(self, text: str) -> bool:
        """Return whether a status or text begins with a word for what waits, as "On hold: surgery" does."""
        return bool({_status_key(text), _status_key(_CLAUSE.split(tidy(text), maxsplit=1)[0])} & _HELD)

    def says_over(self, text: str) -> bool:
        """Return whether a status says that an order has ended."""
        return _status_key(text) in _OVER

    @cached_property
    def _done_keys(self) -> frozenset[str]:
        return frozenset(map(_status_key, self.done_words))

    @cached_property
    def _not_done_keys(self) -> frozenset[str]:
        return frozenset(map(_status_key, self.not_done_words))

    @cached_property
    def ignored_keys(self) -> frozenset[str]:
        """Normalised `ignored_items`."""
        return frozenset(normalise(item) for item in self.ignored_items)

    @cached_property
    def word_meanings(self) -> dict[str, str]:
        """Normalised event word to "counts", "does_not_count" or "stops"."""
        words = self.event_words
        meanings = (("counts", words.counts), ("does_not_count", words.does_not_count), ("stops", words.stops))
        return {normalise(word): meaning for meaning, group in meanings for word in group}

    def decision_source(self, kind: Kind) -> Literal["auto", "order", "done"]:
        """Return which events of a kind are decisions; "auto": orders for items that have any, else what was done."""
        setting = str(getattr(self, kind.record.setting)) if kind.record.setting else kind.record.decided_by
        return "auto" if setting == "auto" else "order" if setting == "order" else "done"

    def changed_from(self, former: "SiteMapping") -> tuple[str, ...]:
        """Return the keys under which a row means something else than with a former mapping; rules may come behind."""
        mine, theirs = (each.model_dump(mode="json", exclude=_OF_WHOLE_IMPORTS) for each in (self, former))
        if mine["rules"][: len(theirs["rules"])] == theirs["rules"]:
            mine["rules"] = theirs["rules"]
        return tuple(key for key, said in mine.items() if said != theirs[key])

    def act_word(self, event: EventKind) -> str:
        """Return what an event that decides is called: "ordered", "measured"."""
        return self.act_words.get(event, ACT_WORDS[event][0])

    def positives_needed(self, kind: Kind) -> int:
        """Return how many positive instances a task of a kind needs."""
        return self.min_positive_of_kind.get(kind) or kind.record.min_positive or self.min_positive

    def known_unit(self, unit: str) -> str:
        """Return a unit as the mapping spells it, "" where it says nothing."""
        squeezed = tidy(unit)
        if squeezed in self.unknown_units or stands_for_nothing(squeezed) or squeezed == _PURE_NUMBER:
            return ""
        spelled = unit_spelling(squeezed)
        return unit_spelling(self.unit_aliases.get(squeezed, self.unit_aliases.get(spelled, spelled)))

    def patient_id(self, subject: int | str) -> str:
        """Pseudonym as people see it: ``SIM-0412`` for subject 412 with prefix ``SIM-`` and 4 digits.

        Examples
        --------
        >>> mapping = SiteMapping(name="x", title="X", format="csv", patient_prefix="SIM-", patient_digits=4,
        ...                       rules=[{"code": ".*", "kind": "LAB_RESULT"}])
        >>> mapping.patient_id(412)
        'SIM-0412'
        """
        number = f"{subject:0{self.patient_digits}d}" if isinstance(subject, int) else subject
        return f"{self.patient_prefix}{number}"


_OF_WHOLE_IMPORTS = {
    *("title", "min_positive", "min_positive_of_kind", "act_words", "details", "plausible", "names", "categories"),
    *("checks", "order_groups", "ask_about"),
}
"""Keys that may change between two additions: they rule all events, those of before included, or show them only."""


def _shown(value: object) -> str:
    """Show a wrong value; what YAML's anchors nest a billion times is cut."""
    return reprlib.repr(value)[:200] if isinstance(value, dict | list) else repr(str(value)[:80])


def parse_mapping(content: Mapping[str, Any], where: str) -> SiteMapping:
    """Check the content of a mapping file.

    Raise MappingError, naming the file, the first wrong key, its value and the rule.
    """
    try:
        return SiteMapping.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole file"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        rule = first["msg"].removeprefix("Value error, ")
        shown = "" if first["type"] == "missing" else f" = {_shown(first['input'])}"
        raise MappingError(f"{where}: key {key}{shown}: {rule}{more}. See data/README.md for the keys.") from None


def load_mapping(path: Path) -> SiteMapping:
    """Read a site mapping from a YAML file in UTF-8.

    Raise MappingError when the file is missing, no YAML, or breaks a rule.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8-sig"), TextLoader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise MappingError(f"{path}: cannot be read ({error.strerror}); give the path of a site mapping.") from None
    except RecursionError:
        raise MappingError(
            f"{path}: is nested too deeply; a site mapping has a few levels. Correct the file."
        ) from None
    except DoubledKeyError as error:
        raise MappingError(f"{path}, {error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        at = f", line {line + 1}" if line is not None else ""
        raise MappingError(f"{path}{at}: is not YAML in UTF-8; correct the file.") from None
    if not isinstance(content, dict):
        raise MappingError(f"{path}: holds no keys; a site mapping starts with name, title, format and rules.")
    return parse_mapping(content, str(path))
