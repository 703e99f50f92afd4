"""The registry of scorers: every one explained, marked where it looks back or only compares, its evidence run once."""

import dataclasses

from core.scoring import scorers as module
from core.scoring.scorers import (
    COMPARISONS,
    NEW_INSTANCE_SCORERS,
    SCORERS,
    describe_scorer,
    is_retrospective,
    label_of_scorer,
    task_evidence,
    times_support,
)


def test_every_scorer_is_explained_and_marked_when_it_looks_back_or_only_compares():
    assert all(describe_scorer(key) != key and label_of_scorer(key) != key for key in SCORERS)
    assert [key for key in SCORERS if is_retrospective(key)] == ["day-adjusted", "shared-looking-back"]
    assert describe_scorer("day-adjusted").endswith("[retrospective]")
    assert all(describe_scorer(key).endswith("[comparison]") for key in COMPARISONS)
    assert [key for key in SCORERS if times_support(key)] == ["softhad", "pair", "day-adjusted"]


def test_a_scorer_of_another_version_is_only_named():
    assert describe_scorer("newer") == label_of_scorer("newer") == "newer"
    assert not is_retrospective("newer")
    assert not times_support("newer")


def test_new_instances_are_scored_by_scorers_of_the_state_alone():
    assert NEW_INSTANCE_SCORERS == ("shared", "softhad", "softhad-paper", "logistic", "pair")


def test_evidence_that_scorers_share_is_computed_once_and_no_other(monkeypatch):
    called = []

    def evidence(key):
        return lambda data: called.append(key) or {key: data}

    shared = evidence("logistic")
    for key in SCORERS:
        function = shared if key in ("logistic", "pair") else evidence(key)
        monkeypatch.setitem(SCORERS, key, dataclasses.replace(SCORERS[key], evidence=function))
    monkeypatch.setattr(module, "graph_evidence", SCORERS["softhad"].evidence)
    assert task_evidence(7, ("pair", "logistic", "softhad")) == {"softhad": 7, "logistic": 7}
    assert called == ["softhad", "logistic"]
