"""Says a decision in words, from its task, kind and direction."""

from collections.abc import Sequence

from alertreview.alerts.models import AlertRow
from alertreview.alerts.triage_models import Grouping
from core.kinds import Kind
from core.vocabulary import Decision


def headline(task_name: str, kind: Kind, decision: Decision) -> str:
    """Say it as in a list.

    Examples
    --------
    >>> headline("Troponin I", Kind.LAB_ORDER, Decision.OMISSION)
    'Troponin I not ordered'
    """
    return f"{task_name} {'not ' if decision is Decision.OMISSION else ''}{kind.words.done}"


def sentence(task_name: str, kind: Kind, decision: Decision) -> str:
    """Say it in the past tense, as a reader is asked about it.

    Examples
    --------
    >>> sentence("Heparin", Kind.MEDICATION, Decision.COMMISSION)
    'Heparin was given'
    """
    return f"{task_name} was {'not ' if decision is Decision.OMISSION else ''}{kind.words.done}"


def line_words(members: Sequence[AlertRow], grouping: Grouping) -> str:
    """Say a line of the worklist: the decision alone, or what its members have in common and how many they are."""
    first, n = members[0], len(members)
    if n == 1:
        return first.decision_words
    if grouping is Grouping.EPISODE:
        return f"{first.decision_words}, {n} days"
    if grouping is Grouping.PATIENT_DAY:
        return f"{first.decision_words} and {n - 1} more"
    kinds = {member.kind for member in members}
    things = first.kind.words.items if len(kinds) == 1 else "decisions"
    verb = first.kind.words.done if len(kinds) == 1 else "taken"
    negation = "not " if first.decision is Decision.OMISSION else ""
    return f"{first.order_group}: {n} {things} {negation}{verb}"
