"""Training cases: decided cases of a locked study, its labels in turn, with the panel's answer as reference."""

from collections import Counter

import numpy as np

from alertreview.study_rows import ChosenCase
from alertreview.study_views import states_of_cases
from core.errors import InvalidInputError, RefusedError
from core.vocabulary import Answer, CaseState
from db.rows import CaseRow, StudyRow
from db.unit_of_work import UnitOfWork

_DECIDED = frozenset({CaseState.MAJORITY, CaseState.ADJUDICATED})


def training_cases(uow: UnitOfWork, source: StudyRow, n_cases: int, seed: int) -> list[ChosenCase]:
    """Choose training cases from the decided cases of a study, taking turns between its labels.

    Parameters
    ----------
    uow : UnitOfWork
        Open.
    source : StudyRow
        A locked study.
    n_cases : int
        Wanted; fewer when fewer are decided.
    seed : int

    Raises
    ------
    RefusedError
        If no case of the study is decided.
    """
    if n_cases < 1:
        raise InvalidInputError(f"A training study of {n_cases} cases is none; at least 1 is needed.")
    references = _references(uow, source)
    if not references:
        raise RefusedError(f"No case of study '{source.slug}' is decided, so there is nothing to train on.")
    cases = {case.id: case for case in uow.cases.in_study(source.id) if case.id in references}
    rng = np.random.default_rng(seed)
    shuffled = [list(cases)[at] for at in rng.permutation(len(cases))]
    of_label = [[c for c in shuffled if references[c][0] is answer] for answer in Answer]
    turns = [group[at] for at in range(len(shuffled)) for group in of_label if at < len(group)]
    return [_training_case(cases[case_id], references[case_id]) for case_id in turns[:n_cases]]


def _references(uow: UnitOfWork, source: StudyRow) -> dict[int, tuple[Answer, str]]:
    """Give label and a sentence on where it comes from, for each decided case."""
    states = states_of_cases(uow, source)
    adjudicated = {row.case_id: row for row in uow.adjudications.in_study(source.id)}
    answers: dict[int, list[int]] = {}
    for vote in uow.judgments.votes(source.id):
        answers.setdefault(vote.case_id, []).append(int(vote.answer))
    found: dict[int, tuple[Answer, str]] = {}
    for case_id, state in states.items():
        if state not in _DECIDED:
            continue
        settled = adjudicated.get(case_id)
        if settled is not None:
            found[case_id] = (settled.answer, settled.comment or "An adjudicator settled this case.")
            continue
        votes = answers[case_id]
        answer, n_same = Counter(votes).most_common(1)[0]
        # 1, 2 and 3 decide for "not relevant", and yet no answer of the three is the panel's.
        if 2 * n_same > len(votes):
            found[case_id] = (Answer(answer), f"{n_same} of {len(votes)} readers answered so.")
    return {case_id: reference for case_id, reference in found.items() if reference[0] is not Answer.CANNOT_JUDGE}


def _training_case(case: CaseRow, reference: tuple[Answer, str]) -> ChosenCase:
    return ChosenCase(
        row_index=case.row_index,
        task_key=case.task_key,
        decision=case.decision,
        stratum=case.stratum,
        stratum_size=case.stratum_size,
        inclusion_probability=case.inclusion_probability,
        reference=reference,
    )
