"""Counts of a study for pages and reports, all from one query of its slots."""

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from alertreview.scoring.models import Histogram
from core.kinds import Kind
from core.statistics.consensus import case_state
from core.studies.selection import SelectionDesign, Stratum
from core.vocabulary import Answer, CaseId, CaseState, Decision, PersonId, RunId, SlotState, StudyId, StudyStatus
from db.models import Slot, Study
from db.unit_of_work import UnitOfWork

JUDGED = frozenset({SlotState.SUBMITTED, SlotState.CANNOT_JUDGE})


@dataclass(frozen=True, kw_only=True)
class StudyHead:
    """What a study asks and how it is read, without counting anything."""

    study_id: StudyId
    slug: str
    title: str
    status: StudyStatus
    simulated: bool
    question: str
    guidelines: str
    answer_texts: dict[Answer, str]  # answers that it offers, in the order of the page
    n_slots: int
    is_calibration: bool = False  # for training with feedback; it never enters a report
    is_open_panel: bool = False  # its readers may see the scores before they judge; false: they judge blindly


@dataclass(frozen=True, kw_only=True)
class StudyView(StudyHead):
    """A study on the Studies and Home pages, with its counts."""

    n_cases: int
    n_complete: int
    case_states: dict[CaseState, int]
    n_judged: int = 0  # slots with an answer, of all readers together
    opened_at: datetime | None = None  # for the first time, in the site's zone
    locked_at: datetime | None = None  # None while it is open, and again once it is reopened


@dataclass(frozen=True)
class ExportPreview:
    """How many rows an export would write, before anything is written."""

    n_rows: dict[CaseState, int]  # by where their cases stand; the states add up to all rows

    def chosen(self, states: Collection[CaseState]) -> int:
        """Count the rows whose cases stand in one of these states; no state means all."""
        return sum(n for state, n in self.n_rows.items() if not states or state in states)


def study_head(uow: UnitOfWork, study: Study) -> StudyHead:
    """Return a study without its counts."""
    return StudyHead(**_head(uow, study))


def study_view(uow: UnitOfWork, study: Study) -> StudyView:
    """Return a study with the states of its cases, which add up to their number; hidden repeats do not count."""
    slots = counted_slots(uow, study)
    states = states_of_cases(uow, study, slots)
    counted = Counter(states.values())
    return StudyView(
        **_head(uow, study),
        n_cases=len(states),
        n_complete=len(states) - counted[CaseState.OPEN],
        case_states={state: counted[state] for state in CaseState},
        n_judged=sum(slot.answer is not None for slot in slots),
        opened_at=study.opened_at and study.opened_at.astimezone(zone_of(uow, study)),
        locked_at=study.locked_at and study.locked_at.astimezone(zone_of(uow, study)),
    )


def _head(uow: UnitOfWork, study: Study) -> dict[str, Any]:
    rubric = uow.studies.rubric(study.id)
    return {
        "study_id": study.id,
        "slug": study.slug,
        "title": study.title,
        "status": study.status,
        "simulated": study.simulated,
        "question": rubric.question,
        "guidelines": rubric.guidelines,
        "answer_texts": rubric.answers,
        "n_slots": study.n_slots,
        "is_calibration": study.is_calibration,
        "is_open_panel": study.is_open_panel,
    }


def counted_slots(uow: UnitOfWork, study: Study) -> list[Slot]:
    """Return the slots of a study without those of hidden repeats."""
    return [slot for slot in uow.slots.of_study(study.id) if not slot.repeat_number]


def states_of_cases(uow: UnitOfWork, study: Study, slots: Sequence[Slot] | None = None) -> dict[CaseId, CaseState]:
    """Return the state of each case of a study, from its counted slots, which are read unless given."""
    slots = counted_slots(uow, study) if slots is None else slots
    adjudicated = {adjudication.case_id for adjudication in uow.adjudications.in_study(study.id)}
    return {
        case_id: state_of_case(list(group), adjudicated=case_id in adjudicated)
        for case_id, group in groupby(slots, key=lambda slot: slot.case_id)
    }


def state_of_case(slots: Sequence[Slot], *, adjudicated: bool) -> CaseState:
    """Return the state of a case, from its slots."""
    answers = sorted(-1 if slot.answer is None else int(slot.answer) for slot in slots)
    return _state_of_answers(tuple(answers), adjudicated)


@lru_cache(maxsize=1_000)
def _state_of_answers(answers: tuple[int, ...], adjudicated: bool) -> CaseState:
    """Few combinations occur in many cases; -1 stands for no answer yet."""
    given = [None if answer < 0 else answer for answer in answers]
    return case_state(given, len(given), adjudicated=adjudicated)


def zone_of(uow: UnitOfWork, study: Study) -> ZoneInfo:
    """Return the time zone of the site whose run a study judges."""
    return ZoneInfo(uow.snapshots.get(uow.runs.get(study.run_id).snapshot_id).site_timezone)


ACTIONS = ("study created", "rubric revised", "readers added", "study opened", "study locked", "study reopened")
KEPT = 50


def history_of(uow: UnitOfWork, study: Study) -> tuple[str, ...]:
    """Return one sentence for each act on a study, oldest first, with its reason; names of readers stay out of it."""
    zone = zone_of(uow, study)
    rows = [row for action in ACTIONS for row in uow.audit.latest(KEPT, action=action, thing=f"study {study.slug}")]
    sentences = []
    for row in sorted(rows, key=lambda row: row.sequence):
        reason = str(json.loads(row.details).get("reason", "") or "")
        when = f"{row.moment.astimezone(zone):%Y-%m-%d %H:%M}"
        sentences.append(f"{when}: {row.action} by {row.actor}" + (f", because: {reason}" if reason else ""))
    return tuple(sentences)


OWN_CHOICE = "own choice"


@dataclass(frozen=True)
class StudyPlan:
    """How the cases of a study are to be chosen."""

    scorer: str = ""  # whose scaled scores divide the strata: a scorer of the run, its first when empty
    # `n_cases` and `n_readers`: cases in all; readers for each.
    n_cases: int = 222
    n_readers: int = 3
    edges: tuple[float, ...] = (1.0 / 3.0, 2.0 / 3.0)  # scaled scores that divide the strata, rising
    balance_decisions: bool = False  # whether omissions and commissions get half of each stratum each
    # Cases that are shown twice to their readers unmarked, for the agreement of readers with themselves.
    n_repeats: int = 0
    seed: int = 1  # of the choice and of the readers' orders
    preset: str = OWN_CHOICE  # what reports call the design
    quantiles: tuple[float, ...] = ()  # instead of `edges`: shares of the candidates below each division, rising
    half_in_largest: bool = False  # whether half of the cases come from the stratum with most candidates

    @property
    def design(self) -> SelectionDesign:
        """How cases are drawn; raise InvalidInputError if the plan breaks a rule."""
        return SelectionDesign(
            n_cases=self.n_cases,
            n_readers=self.n_readers,
            edges=self.edges,
            quantiles=self.quantiles,
            balance_decisions=self.balance_decisions,
            seed=self.seed,
            half_in_largest=self.half_in_largest,
        )


PRESETS = (
    StudyPlan(preset="as in the paper"),
    StudyPlan(balance_decisions=True, preset="as in the paper, as many omissions as commissions"),
    StudyPlan(n_cases=30, balance_decisions=True, preset="pilot of 30 cases"),
    StudyPlan(n_cases=222, edges=(0.5, 0.8, 0.95), n_repeats=12, preset="four strata, finer at the top"),
)
"""Designs with a name; the first is the method paper's: 222 cases of low, middle and high scores, three readers."""


@dataclass(frozen=True)
class PlanPreview:
    """What a plan would choose, before anything is stored."""

    run_id: RunId
    scorer: str
    candidates: Histogram  # scaled scores of every decision that can be chosen
    strata: tuple[Stratum, ...]
    n_candidates: int
    n_chosen: int
    n_patients: int  # patients behind the chosen cases
    n_alerts: int
    """Chosen cases that are alerts of the run, which blinded readers meet in no list until they have judged them."""
    left_out: dict[str, int]
    notes: tuple[str, ...]


QUESTION = "Is this decision unusual for this patient, and is it clinically relevant?"
ANSWER_TEXTS: Mapping[Answer, str] = {answer: answer.text for answer in Answer}


@dataclass(frozen=True)
class Rubric:
    """What readers are asked and told."""

    question: str = QUESTION
    answer_texts: Mapping[Answer, str] = field(default_factory=lambda: ANSWER_TEXTS)
    guidelines: str = ""


@dataclass(frozen=True)
class StudyPaper:
    """What a coordinator wrote for a study, as of its current rubric version, and how it was chosen."""

    slug: str
    rubric: Rubric
    rubric_version: int
    run_id: RunId
    order_seed: int
    design: dict[str, object]
    reader_ids: tuple[PersonId, ...]
    n_repeats: int  # hidden second showings, which count nowhere but in the agreement of readers with themselves
    is_calibration: bool
    history: tuple[str, ...] = field(default=())
    """Sentences about opening, locking and reopening, oldest first, with who and why."""


@dataclass(frozen=True)
class SelfAgreement:
    """How often a reader gave the same answer to the same case twice; never a vote, never in an AUC."""

    reader_code: str
    n_pairs: int
    n_same: int


@dataclass(frozen=True)
class ScorerSays:
    """What one scorer says of a case; higher scores are more unusual."""

    score: float
    scaled_score: float
    soft_label: float | None = None
    support: float | None = None


@dataclass(frozen=True, kw_only=True)
class ChosenCase:
    """An instance x task chosen for judgment."""

    row_index: int  # row of the instance in the arrays of the run's import
    task_key: str
    decision: Decision
    stratum: str
    stratum_size: int  # how many candidates the stratum had
    inclusion_probability: float  # in (0, 1]: the chance that the design gave this case
    scores: Mapping[str, ScorerSays] = field(default_factory=dict)  # by name of the scorer
    repeat_number: int = 0  # 1, 2, ... for a hidden second showing of a case to its own readers
    reference: tuple[Answer, str] | None = None
    """Answer and comment that a calibration study shows after the own judgment."""


@dataclass(frozen=True, kw_only=True)
class CaseForReport:
    """A case with how it was chosen, what scorers say and where it stands."""

    case_id: CaseId
    case_number: int
    row_index: int
    patient_id: str
    snapshot_at: datetime  # in the site's zone
    task_key: str
    task_name: str
    kind: Kind
    decision: Decision
    unit: str
    stratum: str
    stratum_size: int
    inclusion_probability: float
    state: CaseState
    n_slots: int
    scores: dict[str, ScorerSays]
    adjudicated: Answer | None = None


@dataclass(frozen=True)
class ReaderProgress:
    """How far a reader has come; answers stay out of it."""

    person_id: PersonId
    reader_code: str
    name: str
    states: dict[SlotState, int]  # of the slots the reader holds
    n_mine: int  # cases that are or may become the reader's, as `QueueView.n_mine` counts them
    last_judged_at: datetime | None = None
    """When the reader last saved, changed or took back an answer, in the site's zone."""
    per_day: float | None = None
    """Cases judged per calendar day from the reader's first answer to today; None before a second day of work."""
    seconds: tuple[float, ...] = ()
    """Active time, without pauses, up to the first answer to each case judged; cases without one are not in it."""

    @property
    def n_judged(self) -> int:
        """Return the number of cases with an answer."""
        return sum(self.states[state] for state in JUDGED)

    @property
    def days_to_go(self) -> int | None:
        """Return the days that the rest takes at this pace; None without a pace."""
        if not self.per_day:
            return None
        return math.ceil((self.n_mine - self.n_judged) / self.per_day)


@dataclass(frozen=True)
class StratumProgress:
    """How many cases of a stratum of scores stand where."""

    name: str
    n_decided: int  # by a majority or an adjudicator
    n_undecided: int  # complete, and neither
    n_open: int

    @property
    def n_cases(self) -> int:
        """Return the number of cases chosen from the stratum."""
        return self.n_decided + self.n_undecided + self.n_open


@dataclass(frozen=True)
class StudyProgress:
    """How far a study has come; the states add up to the numbers of cases and slots."""

    n_cases: int
    n_complete: int
    case_states: dict[CaseState, int]
    n_slots: int
    slot_states: dict[SlotState, int]
    readers: tuple[ReaderProgress, ...]
    judged_by: tuple[tuple[date, int], ...]
    """Days, in the site's zone, and how many of the answers that stand were first given by their end."""
    today: date

    @property
    def done_on(self) -> date | None:
        """Return the day of the last answer at the pace since the first; None without a second day of work."""
        if len(self.judged_by) < 2:
            return None
        n_judged, n_days = self.judged_by[-1][1], (self.today - self.judged_by[0][0]).days + 1
        return self.today + timedelta(days=math.ceil((self.n_slots - n_judged) * n_days / n_judged))
