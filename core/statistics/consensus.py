"""From the votes on a case to its label and state: by majority, never by chance, undetermined when votes do not decide.

Answers come as a matrix with one row for each case and one column for each reader (or slot): the codes of
`core.vocabulary.Answer`, NaN where there is no judgment. Some answers, such as "cannot judge", are judgments but no
votes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidInputError
from core.vocabulary import VOTES, Answer, CaseState, Vote

FloatArray = NDArray[np.float64]
RELEVANT_ONLY = frozenset(answer for answer in VOTES if answer.vote is Vote.RELEVANT)
"""First positive rule: unusual and clinically relevant."""
UNUSUAL_OR_RELEVANT = frozenset(answer for answer in VOTES if answer.vote is not Vote.USUAL)
"""Second positive rule: unusual, relevant or not."""


def check_answers(answers: ArrayLike) -> FloatArray:
    """Return the answers as a matrix of numbers.

    Raise InvalidInputError if the array is not two-dimensional or holds a code that is no answer.
    """
    matrix = np.asarray(answers, dtype=np.float64)
    if matrix.ndim != 2:
        raise InvalidInputError(f"Answers have {matrix.ndim} dimensions; give a row per case and a column per reader.")
    given = matrix[~np.isnan(matrix)]
    known = [int(answer) for answer in sorted(Answer)]
    if not np.isin(given, known).all():
        bad = given[~np.isin(given, known)][0]
        raise InvalidInputError(f"Answer {bad:g} does not exist; answers are {known}. Recode the judgments.")
    return matrix


def votes_of(answers: ArrayLike) -> FloatArray:
    """Return the answers with NaN in place of those that are no vote, such as "cannot judge".

    Examples
    --------
    >>> votes_of([[3, 0, 1]]).tolist()
    [[3.0, nan, 1.0]]
    """
    matrix = check_answers(answers)
    return np.where(np.isin(matrix, VOTES), matrix, np.nan)


def positive_votes(answers: ArrayLike, positive: Collection[Answer] = RELEVANT_ONLY) -> FloatArray:
    """Return 1 for a positive vote, 0 for a negative one, NaN for none, of shape (n_cases, n_readers).

    Raise InvalidInputError if `positive` is empty, holds every vote, or holds an answer that is no vote.
    """
    votes = votes_of(answers)
    if not positive or not set(positive) < set(VOTES):
        some = ", ".join(answer.key for answer in VOTES)
        raise InvalidInputError(
            f"Positive answers {sorted(map(int, positive))} leave no question; name some of {some}, not all."
        )
    return np.where(np.isnan(votes), np.nan, np.isin(votes, [*positive]).astype(np.float64))


@dataclass(frozen=True)
class CaseLabels:
    """Labels of cases and why some have none."""

    label: FloatArray  # shape (n_cases,): 1 positive, 0 negative, NaN undetermined
    why_not: tuple[str, ...]  # empty for a labelled case

    @property
    def n(self) -> int:
        """Labelled cases."""
        return int((~np.isnan(self.label)).sum())

    @property
    def left_out(self) -> dict[str, int]:
        """How many cases have no label, by reason."""
        reasons = sorted({why for why in self.why_not if why})
        return {why: self.why_not.count(why) for why in reasons}


def majority_label(answers: ArrayLike, positive: Collection[Answer] = RELEVANT_ONLY) -> CaseLabels:
    """Return each case's label by the majority of its votes on "positive or not", from answers (n_cases, n_readers).

    A side wins with at least two votes and more than the other side. Everything else is undetermined, the same on every
    run: no vote, one vote, one against one, two against two.

    Examples
    --------
    >>> labels = majority_label([[3, 3, 1], [1, 2, 3], [3, 1, 0]])
    >>> labels.label.tolist()
    [1.0, 0.0, nan]
    >>> labels.why_not[2]
    'votes do not decide (1 against 1)'
    """
    votes = positive_votes(answers, positive)
    n_positive, n_negative = (votes == 1.0).sum(axis=1), (votes == 0.0).sum(axis=1)
    label = np.full(len(votes), np.nan)
    label[(n_positive >= 2) & (n_positive > n_negative)] = 1.0
    label[(n_negative >= 2) & (n_negative > n_positive)] = 0.0
    why = tuple(
        "" if not np.isnan(value) else _why_undetermined(int(p), int(n))
        for value, p, n in zip(label, n_positive, n_negative, strict=True)
    )
    return CaseLabels(label, why)


def _why_undetermined(n_positive: int, n_negative: int) -> str:
    if n_positive + n_negative == 0:
        return "no vote"
    if n_positive + n_negative == 1:
        return "one vote only"
    return f"votes do not decide ({n_positive} against {n_negative})"


def without_open(labels: CaseLabels, is_open: Sequence[bool] | NDArray[np.bool_]) -> CaseLabels:
    """Remove the label of cases with unjudged slots: a later vote could still change it."""
    still_open = np.asarray(is_open, dtype=bool)
    why = tuple("judgments outstanding" if o else w for o, w in zip(still_open, labels.why_not, strict=True))
    return CaseLabels(np.where(still_open, np.nan, labels.label), why)


def adjudicated_label(
    majority: CaseLabels, adjudications: ArrayLike, positive: Collection[Answer] = RELEVANT_ONLY
) -> CaseLabels:
    """Replace the majority label by the adjudicator's answer where there is one, NaN where not.

    An answer that is no vote makes the case undetermined.
    """
    answers = check_answers(np.asarray(adjudications, dtype=np.float64).reshape(-1, 1))[:, 0]
    if answers.size != majority.label.size:
        raise InvalidInputError(
            f"{answers.size} adjudications for {majority.label.size} cases; give one for each case."
        )
    votes = positive_votes(answers.reshape(-1, 1), positive)[:, 0]
    decided = ~np.isnan(answers)
    label = np.where(decided, votes, majority.label)
    why = tuple(
        ("the adjudicator could not judge" if np.isnan(vote) else "") if done else reason
        for vote, done, reason in zip(votes, decided, majority.why_not, strict=True)
    )
    return CaseLabels(label, why)


def case_state(answers: Sequence[float | None], n_slots: int, *, adjudicated: bool = False) -> CaseState:
    """Return the state of a case, under the first positive rule, from one entry for each slot.

    An entry that is None or NaN is not submitted. OPEN until every slot is judged; then MAJORITY when the votes decide,
    DISPUTED when two or more stand on either side in equal number, UNDETERMINED when there are too few votes;
    ADJUDICATED whatever they said.

    Examples
    --------
    >>> case_state([3, 3, None], 3)
    <CaseState.OPEN: 'open'>
    >>> case_state([3, 1, 0], 3)
    <CaseState.UNDETERMINED: 'undetermined'>
    """
    if adjudicated:
        return CaseState.ADJUDICATED
    row = np.array([np.nan if a is None else float(a) for a in answers], dtype=np.float64).reshape(1, -1)
    if int((~np.isnan(row)).sum()) < n_slots:
        return CaseState.OPEN
    if majority_label(row).n == 1:
        return CaseState.MAJORITY
    votes = positive_votes(row)
    return CaseState.DISPUTED if int((votes == 1.0).sum()) >= 2 else CaseState.UNDETERMINED


@dataclass(frozen=True)
class ReaderReliability:
    """What the model found."""

    # Shape (n_cases,): probability that the case is positive given all votes; NaN without a vote.
    probability: FloatArray
    prevalence: float  # estimated share of positives; NaN when nothing could be estimated
    # `sensitivity` and `specificity`: shape (n_readers,): NaN for a reader without votes.
    sensitivity: FloatArray
    specificity: FloatArray
    n_iterations: int
    converged: bool
    n: int  # cases with a vote
    left_out: dict[str, int]
    reason: str = ""  # why nothing could be estimated; empty otherwise

    @property
    def label(self) -> FloatArray:
        """1 above a probability of one half, 0 below, NaN on it or without a vote."""
        return np.where(np.abs(self.probability - 0.5) < 1e-9, np.nan, np.heaviside(self.probability - 0.5, np.nan))


def dawid_skene(votes: ArrayLike, *, max_iterations: int = 500, tolerance: float = 1e-8) -> ReaderReliability:
    """Estimate labels and each reader's sensitivity and specificity together, by expectation-maximisation.

    Votes, of shape (n_cases, n_readers), are 1 positive, 0 negative, NaN none. Starts from the share of positive votes,
    stops when no probability moves by more than the tolerance, and is deterministic. One imaginary right and one
    imaginary wrong vote for each reader and class, half a vote each, keep a reader with few votes from being called
    perfect.

    References
    ----------
    Dawid and Skene (1979), Applied Statistics 28, 20-28.
    """
    matrix = np.asarray(votes, dtype=np.float64)
    if matrix.ndim != 2 or not np.isin(matrix[~np.isnan(matrix)], (0.0, 1.0)).all():
        raise InvalidInputError("Votes must be a matrix of 1, 0 and NaN, a row for each case. See `positive_votes`.")
    given = ~np.isnan(matrix)
    voted = given.any(axis=1)
    left_out = {"no vote": int((~voted).sum())} if not voted.all() else {}
    if why := _why_not(matrix, given):
        nothing = np.full(matrix.shape[1], np.nan)
        probability = np.full(len(matrix), np.nan)
        return ReaderReliability(probability, np.nan, nothing, nothing, 0, False, int(voted.sum()), left_out, why)
    positive = np.where(given, matrix, 0.0)[voted]
    negative = np.where(given, 1.0 - matrix, 0.0)[voted]
    belief = positive.sum(axis=1) / (positive + negative).sum(axis=1)
    converged, step = False, 0
    while step < max_iterations and not converged:
        step += 1
        prevalence, sensitivity, specificity = _maximise(belief, positive, negative)
        updated = _expect(prevalence, sensitivity, specificity, positive, negative)
        converged = bool(np.abs(updated - belief).max() < tolerance)
        belief = updated
    probability = np.full(len(matrix), np.nan)
    probability[voted] = belief
    silent = ~given.any(axis=0)
    sensitivity, specificity = np.where(silent, np.nan, sensitivity), np.where(silent, np.nan, specificity)
    n = int(voted.sum())
    return ReaderReliability(probability, float(prevalence), sensitivity, specificity, step, converged, n, left_out)


def _why_not(matrix: FloatArray, given: NDArray[np.bool_]) -> str:
    if not given.any():
        return "not computable: no votes"
    if given.any(axis=0).sum() < 3:
        return "not computable: fewer than three readers"
    if np.unique(matrix[given]).size < 2:
        return "not computable: all votes are equal"
    return ""


def _maximise(belief: FloatArray, positive: FloatArray, negative: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    doubt = 1.0 - belief
    sensitivity = (belief @ positive + 0.5) / (belief @ (positive + negative) + 1.0)
    specificity = (doubt @ negative + 0.5) / (doubt @ (positive + negative) + 1.0)
    prevalence = (belief.sum() + 0.5) / (belief.size + 1.0)
    return float(prevalence), sensitivity, specificity


def _expect(
    prevalence: float, sensitivity: FloatArray, specificity: FloatArray, positive: FloatArray, negative: FloatArray
) -> FloatArray:
    log_odds = np.log(prevalence / (1.0 - prevalence))
    log_odds = log_odds + positive @ np.log(sensitivity / (1.0 - specificity))
    log_odds = log_odds + negative @ np.log((1.0 - sensitivity) / specificity)
    belief: FloatArray = 1.0 / (1.0 + np.exp(-log_odds))
    return belief
