"""Says a decision in words, from its task, kind and direction."""

from core.vocabulary import Decision, Kind

_VERB = {Kind.LAB_ORDER: "ordered", Kind.MEDICATION: "given"}


def headline(task_name: str, kind: Kind, decision: Decision) -> str:
    """Say it as in a list.

    Examples
    --------
    >>> headline("Troponin I", Kind.LAB_ORDER, Decision.OMISSION)
    'Troponin I not ordered'
    """
    return f"{task_name} {'not ' if decision is Decision.OMISSION else ''}{_VERB[kind]}"


def sentence(task_name: str, kind: Kind, decision: Decision) -> str:
    """Say it in the past tense, as a reader is asked about it.

    Examples
    --------
    >>> sentence("Heparin", Kind.MEDICATION, Decision.COMMISSION)
    'Heparin was given'
    """
    return f"{task_name} was {'not ' if decision is Decision.OMISSION else ''}{_VERB[kind]}"
