"""Counts of a study for pages and reports, all from one query of its slots."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from alertreview.read_models import StudyView
from core.consensus import case_state
from core.vocabulary import CaseState
from db.rows import SlotRow, StudyRow
from db.unit_of_work import UnitOfWork


def study_view(uow: UnitOfWork, study: StudyRow) -> StudyView:
    """Give a study with the states of its cases, which add up to their number; hidden repeats do not count."""
    rubric = uow.studies.rubric(study.id)
    states = states_of_cases(uow, study)
    counted = Counter(states.values())
    return StudyView(
        study_id=study.id,
        slug=study.slug,
        title=study.title,
        status=study.status,
        simulated=study.simulated,
        question=rubric.question,
        guidelines=rubric.guidelines,
        answer_texts={int(code): text for code, text in rubric.answer_texts.items()},
        n_slots=study.n_slots,
        n_cases=len(states),
        n_complete=len(states) - counted[CaseState.OPEN],
        case_states={state: counted[state] for state in CaseState},
        is_calibration=study.is_calibration,
        is_open_panel=study.is_open_panel,
    )


def states_of_cases(uow: UnitOfWork, study: StudyRow) -> dict[int, CaseState]:
    """Say for each case of a study where it stands; hidden repeats are left out."""
    adjudicated = {adjudication.case_id for adjudication in uow.adjudications.in_study(study.id)}
    slots = [slot for slot in uow.slots.of_study(study.id) if not slot.repeat_number]
    return {
        case_id: state_of_case(list(group), adjudicated=case_id in adjudicated)
        for case_id, group in groupby(slots, key=lambda slot: slot.case_id)
    }


def state_of_case(slots: Sequence[SlotRow], *, adjudicated: bool) -> CaseState:
    """Say where a case stands, from its slots."""
    answers = sorted(-1 if slot.answer is None else int(slot.answer) for slot in slots)
    return _state_of_answers(tuple(answers), adjudicated)


@lru_cache(maxsize=1_000)
def _state_of_answers(answers: tuple[int, ...], adjudicated: bool) -> CaseState:
    """Few combinations occur in many cases; -1 stands for no answer yet."""
    given = [None if answer < 0 else answer for answer in answers]
    return case_state(given, len(given), adjudicated=adjudicated)
