"""A reader's own list of a study's cases: in a fixed random order, with repeats hidden in it, and counted.

The order comes from the study's seed, the reader and the case alone, so it survives reloads, new sign-ins and cases
that others finish, and no two readers tire at the same cases.
"""

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain
from zoneinfo import ZoneInfo

from alertreview.alerts.lines import headline
from alertreview.alerts.patient import PatientViews
from alertreview.review.models import BlindedCase, DraftView, JudgmentRow, QueueView
from alertreview.studies.models import JUDGED
from core.errors import StoreError
from core.vocabulary import CaseId, PersonId, SlotState
from db.models import BlindedRow, DraftAnswer, Judgment, OwnAnswer, ReaderSlot, ReadingTerms, ShownCase


class ReaderList:
    """One reader's view of a study, from the reader's slot in every case.

    Free slots may be taken while the study is open.
    """

    def __init__(self, slots: Sequence[ReaderSlot], order_seed: int, person_id: PersonId, *, takes_new: bool) -> None:
        self._ordered = _repeats_after_originals(
            sorted(slots, key=lambda slot: _draw(order_seed, person_id, slot.case_id))
        )
        self._takes_new = takes_new
        self.mine = [slot for slot in self._ordered if self._is_mine(slot)]
        """Cases that are or may become this reader's, in order."""

    @cached_property
    def _number(self) -> dict[CaseId, int]:
        return {slot.case_id: number for number, slot in enumerate(self._ordered, start=1)}

    @cached_property
    def _by_case(self) -> dict[CaseId, ReaderSlot]:
        return {slot.case_id: slot for slot in self._ordered}

    def number(self, case_id: CaseId) -> int:
        """Return the reader's own number of a case, which never changes."""
        return self._number[case_id]

    def position(self, case_id: CaseId) -> int:
        """Return the place of a case among those that are or may become the reader's, from 1; 0 when it is none."""
        return next((at for at, slot in enumerate(self.mine, start=1) if slot.case_id == case_id), 0)

    def find(self, case_id: CaseId) -> ReaderSlot | None:
        """Return the reader's slot in a case, None when the study has no such case."""
        return self._by_case.get(case_id)

    def may_claim(self, slot: ReaderSlot) -> bool:
        """Return whether a slot is to be had; a repeat only once its original is judged."""
        if not self._takes_new or not slot.has_room:
            return False
        return slot.original_id is None or self._by_case[slot.original_id].state in JUDGED

    def candidates(self, after_case_id: CaseId | None) -> Iterator[ReaderSlot]:
        """Yield the cases to judge next: those that follow, then from the beginning, put-off ones last."""
        start = self.position(after_case_id) if after_case_id is not None else 0
        put_off = []
        for slot in chain(self.mine[start:], self.mine[:start]):
            if slot.state in JUDGED or slot.case_id == after_case_id:
                continue
            if slot.state is SlotState.LATER:
                put_off.append(slot)
            elif slot.holds_slot or self.may_claim(slot):
                yield slot
        yield from put_off

    def before(self, case_id: CaseId | None) -> Iterator[ReaderSlot]:
        """Yield the reader's own cases that come before one, nearest first; all of them from the end for None."""
        end = self.position(case_id) - 1 if case_id is not None else len(self.mine)
        return (slot for slot in reversed(self.mine[: max(end, 0)]) if slot.holds_slot)

    def counts(self, lapses: Mapping[CaseId, datetime]) -> QueueView:
        """Count the reader's cases; the states add up to the whole.

        `lapses` says by case when the first hold of somebody else lapses.
        """
        states = {state: sum(slot.state is state for slot in self.mine) for state in SlotState}
        n_submitted = states[SlotState.SUBMITTED] + states[SlotState.CANNOT_JUDGE]
        others = {slot.case_id for slot in self._ordered} - {slot.case_id for slot in self.mine}
        held = [lapse for case_id, lapse in lapses.items() if case_id in others]
        return QueueView(
            n_mine=len(self.mine),
            n_submitted=n_submitted,
            n_later=states[SlotState.LATER],
            n_left=len(self.mine) - n_submitted,
            states=states,
            n_held_by_others=len(held),
            next_release_at=min(held, default=None),
        )

    def _is_mine(self, slot: ReaderSlot) -> bool:
        if slot.holds_slot:
            return True
        if not self._takes_new or not slot.has_room:
            return False
        return slot.original_id is None or self._is_mine(self._by_case[slot.original_id])


def nothing_assigned() -> QueueView:
    """Count the cases of somebody who is not a reader of the study."""
    return QueueView(0, 0, 0, 0, dict.fromkeys(SlotState, 0), is_reader=False)


@lru_cache(maxsize=100_000)
def _draw(order_seed: int, person_id: PersonId, case_id: CaseId) -> bytes:
    return hashlib.sha256(f"{order_seed}/{person_id}/{case_id}".encode()).digest()


def _repeats_after_originals(drawn: list[ReaderSlot]) -> list[ReaderSlot]:
    """Let a repeat that was drawn before its original change places with it; both places stay random."""
    if not any(slot.repeat_number for slot in drawn):
        return drawn
    ordered = list(drawn)
    groups: dict[int, list[int]] = {}
    for at, slot in enumerate(drawn):
        groups.setdefault(slot.original_id or slot.case_id, []).append(at)
    for positions in groups.values():
        if len(positions) > 1:
            by_repeat = sorted((drawn[at] for at in positions), key=lambda slot: slot.repeat_number)
            for at, slot in zip(positions, by_repeat, strict=True):
                ordered[at] = slot
    return ordered


@dataclass(frozen=True)
class Reading:
    """A reader at a study, as of one unit of work."""

    terms: ReadingTerms
    cases: ReaderList

    def label(self, case_id: CaseId) -> str:
        """Return the reader's own name of a case: the reader's letter (A, B, ... Z, AA, ...) and the case's number."""
        letters, number = "", self.terms.number
        while number > 0:
            number, rest = divmod(number - 1, 26)
            letters = chr(ord("A") + rest) + letters
        return f"{letters}{self.cases.number(case_id)}"


def blinded_case(
    reading: Reading,
    shown: ShownCase,
    patients: PatientViews,
) -> BlindedCase:
    """Put together what a blinded reader sees of a case: what may be known, and the reader's own answer and draft."""
    row, current = shown.case, shown.current
    return BlindedCase(
        study_slug=reading.terms.slug,
        case_id=row.case_id,
        case_label=reading.label(row.case_id),
        position=reading.cases.position(row.case_id),
        n_cases=len(reading.cases.mine),
        task_name=row.task_name,
        kind=row.kind,
        decision=row.decision,
        decision_words=headline(row.task_name, row.words, row.decision),
        sex=row.sex,
        age_years=row.age_years,
        unit=row.unit,
        day_of_stay=row.day_of_stay,
        patient=patients.case(row.row_index, row.task_key),
        draft=_draft_view(shown.draft, current),
        version_seen=current.version if current else 0,
        form_key=uuid.uuid4().hex,
        is_judged=current is not None and current.answer is not None,
        gives_feedback=reading.terms.is_calibration,
    )


def own_row(reading: Reading, case: BlindedRow, judgment: Judgment) -> JudgmentRow:
    """Put together one of a reader's own current judgments."""
    if judgment.answer is None:
        raise StoreError(f"The current judgment of case {case.case_id} has no answer.")
    return JudgmentRow(
        study_slug=reading.terms.slug,
        case_id=case.case_id,
        case_label=reading.label(case.case_id),
        decision_words=headline(case.task_name, case.words, case.decision),
        answer=judgment.answer,
        certainty=judgment.certainty,
        comment=judgment.comment,
        saved_at=judgment.judged_at.astimezone(ZoneInfo(case.site_timezone)),
        version=judgment.version,
    )


def _draft_view(draft: DraftAnswer | None, current: OwnAnswer | None) -> DraftView:
    """Show the draft, else the saved answer, else nothing: nothing is preselected."""
    shown = draft or current
    return DraftView(shown.answer, shown.certainty, shown.comment) if shown else DraftView(None, None, "")
