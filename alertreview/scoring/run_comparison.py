"""Two scoring runs side by side: which alerts entered a list, which left it, and how far the others moved."""

from dataclasses import dataclass

import numpy as np

from alertreview.rights import Action, Service, requires
from core.errors import InvalidInputError, RefusedError
from core.kinds import Kind
from core.vocabulary import AlertId, Decision, PersonId, RunId, RunStatus
from db.models import RankedAlert

MOST = 5_000


@dataclass(frozen=True)
class MovedAlert:
    """One decision that is in at least one of the two lists."""

    task_name: str
    kind: Kind
    decision: Decision
    alert_id: AlertId  # in the newer run; in the older one when it has left the list
    rank_before: int | None  # None when it entered
    rank_after: int | None  # None when it left
    scaled_before: float | None
    scaled_after: float | None


@dataclass(frozen=True)
class ListComparison:
    """The first alerts of one list in two runs."""

    decision: Decision
    n_before: int
    n_after: int
    n_common: int
    entered: tuple[MovedAlert, ...]  # by rank in the newer run
    left: tuple[MovedAlert, ...]  # by rank in the older run
    moved: tuple[MovedAlert, ...]  # in both, those that moved furthest first
    rank_correlation: float | None  # spearman's, over the common alerts; None with fewer than three


class RunComparisons(Service):
    """Use cases of the comparison on the Runs page."""

    @requires(Action.SEE_RUNS)
    def compare(
        self, before_id: RunId, after_id: RunId, n_first: int = 100, person_id: PersonId | None = None
    ) -> tuple[ListComparison, ...]:
        """Compare the first alerts of two published runs; patient, time and task say which are the same.

        Decisions that a reader has still to judge without knowing their score are left out. Raise NotFoundError if
        there is no such run, RefusedError if one is not published, InvalidInputError if the lists are to be longer than
        can be shown.
        """
        if not 1 <= n_first <= MOST:
            raise InvalidInputError(f"The first {n_first} alerts cannot be compared; choose 1 to {MOST:,}.")
        with self._database.read() as uow:
            for run_id in (before_id, after_id):
                if uow.runs.get(run_id).status is not RunStatus.PUBLISHED:
                    raise RefusedError(f"Scoring run {run_id} is not published, so it has no list to compare.")
            awaited = uow.cases.awaited_of(person_id) if person_id is not None else set()

            def ranked(run_id: RunId, decision: Decision) -> list[RankedAlert]:
                return [one for one in uow.runs.ranked(run_id, decision, n_first) if _key(one) not in awaited]

            lists = {decision: (ranked(before_id, decision), ranked(after_id, decision)) for decision in Decision}
        return tuple(_compare(decision, before, after) for decision, (before, after) in lists.items())


def _compare(decision: Decision, before: list[RankedAlert], after: list[RankedAlert]) -> ListComparison:
    old, new = ({_key(alert): alert for alert in alerts} for alerts in (before, after))
    common = [key for key in new if key in old]
    both = [_moved(decision, old[key], new[key]) for key in common]
    return ListComparison(
        decision=decision,
        n_before=len(before),
        n_after=len(after),
        n_common=len(common),
        entered=tuple(_moved(decision, None, alert) for key, alert in new.items() if key not in old),
        left=tuple(_moved(decision, alert, None) for key, alert in old.items() if key not in new),
        moved=tuple(sorted((one for one in both if one.rank_before != one.rank_after), key=_by_distance)),
        rank_correlation=_spearman([old[key].rank for key in common], [new[key].rank for key in common]),
    )


def _key(alert: RankedAlert) -> tuple[object, ...]:
    return alert.patient_id, alert.snapshot_at, alert.task_key


def _by_distance(one: MovedAlert) -> tuple[int, int]:
    return -abs((one.rank_before or 0) - (one.rank_after or 0)), one.rank_after or 0


def _moved(decision: Decision, before: RankedAlert | None, after: RankedAlert | None) -> MovedAlert:
    shown = after or before
    if shown is None:
        raise InvalidInputError("An alert that is in neither list cannot have moved.")
    return MovedAlert(
        task_name=shown.task_name,
        kind=shown.kind,
        decision=decision,
        alert_id=shown.alert_id,
        rank_before=before.rank if before else None,
        rank_after=after.rank if after else None,
        scaled_before=before.scaled_score if before else None,
        scaled_after=after.scaled_score if after else None,
    )


def _spearman(before: list[int], after: list[int]) -> float | None:
    if len(before) < 3:
        return None
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(before), rankdata(after))[0, 1])
