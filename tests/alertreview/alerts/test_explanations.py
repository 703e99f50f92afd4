"""The most similar past instances of an alert: really past, really similar, counted against the decisions."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from alertreview.alerts import explanations
from alertreview.alerts.explanations import N_NEIGHBOURS, Explanation, Explanations, Past
from alertreview.alerts.models import CaseView, WorklistFilters
from alertreview.alerts.patient import SnapshotViews
from alertreview.application import Application, open_application
from alertreview.records.snapshots import Snapshot, elapsed_features
from alertreview.scoring.publish import last_import
from alertreview.scoring.resume import GROUP_WEIGHTS
from alertreview.scoring.splits import rows_of_fold
from core.cohort.feature_roles import FEATURE_GROUP_WEIGHTS, FeatureRoles
from core.errors import RefusedError
from core.graph.shared_graph import CosineMap
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import prepare_instances
from core.scoring.scorers import SHARED
from core.vocabulary import Decision
from db.models import ListedAlert


def test_neighbours_are_past_and_counted_as_they_decided(application: Application) -> None:
    run = application.worklist.run()
    assert run is not None
    for row in application.worklist.page(WorklistFilters(), limit=6).rows:
        detail = application.worklist.alert(row.alert_id)
        assert detail.compared.n_days == N_NEIGHBOURS
        assert 0 <= detail.compared.n_decided <= detail.compared.n_days
        similarities = [neighbour.similarity for neighbour in detail.neighbours]
        assert similarities == sorted(similarities, reverse=True)
        assert all(0 < similarity <= 1 for similarity in similarities)
        for neighbour in detail.neighbours:
            assert neighbour.snapshot_at < row.snapshot_at
            assert neighbour.decided == (neighbour.hours_to_decision is not None)


def test_similar_days_are_of_other_patients_and_own_days_are_counted_apart(application: Application) -> None:
    n_own = 0
    for row in application.worklist.page(WorklistFilters(), limit=12).rows:
        detail = application.worklist.alert(row.alert_id)
        assert row.patient_id not in {neighbour.patient_id for neighbour in detail.neighbours}
        assert 1 < detail.compared.n_patients <= detail.compared.n_days
        assert 0 <= detail.compared.n_own_decided <= detail.compared.n_own_days
        n_own += detail.compared.n_own_days
    assert n_own, "some of these patients were seen before, so that their own days could have been counted as others'"


def test_most_neighbours_of_a_top_alert_decided_the_other_way(application: Application) -> None:
    for decision in Decision:
        shares = []
        for row in application.worklist.page(WorklistFilters(decision=decision), limit=8).rows:
            detail = application.worklist.alert(row.alert_id)
            shares.append(detail.compared.n_decided / detail.compared.n_days)
        expected_high = decision is Decision.OMISSION
        assert (np.median(shares) > 0.5) == expected_high


def test_reasons_are_said_with_two_different_shares_at_this_patients_values(application: Application) -> None:
    n_lines = 0
    for decision in Decision:
        for row in application.worklist.page(WorklistFilters(decision=decision), limit=8).rows:
            reasons = application.worklist.alert(row.alert_id).reasons
            assert len(reasons.lines) <= 5
            assert len({line.finding for line in reasons.lines}) == len(reasons.lines)
            for line in reasons.lines:
                assert 0 <= line.share_without <= 1
                assert line.share_with != line.share_without
                assert re.match(r"(yes|no|no value)$|-?\d", line.here), line.here
            n_lines += len(reasons.lines)
    assert n_lines >= 8, "most of the highest alerts have a reason"


def test_histograms_count_every_scored_instance_of_the_task(application: Application) -> None:
    run = application.worklist.run()
    assert run is not None
    detail = application.worklist.alert(application.worklist.page(WorklistFilters(), limit=1).rows[0].alert_id)
    for histogram in (detail.score_histogram, detail.scaled_histogram):
        assert sum(histogram.counts) == run.n_past + run.n_recent
        assert len(histogram.edges) == len(histogram.counts) + 1


def test_explanations_are_computed_once_and_cached(own_home: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explanations, "CACHED_EXPLANATIONS", 2)
        site = open_application(own_home)
        worked_out: list[int] = []
        work_out = Explanations._explain

        def counted(self: Explanations, content_hash: str, record: ListedAlert, *given: Any) -> Explanation:
            worked_out.append(record.id)
            return work_out(self, content_hash, record, *given)

        patch.setattr(Explanations, "_explain", counted)
        first, second, third = [row.alert_id for row in site.worklist.page(WorklistFilters(), limit=3).rows]
        before = site.worklist.alert(first)
        again = site.worklist.alert(first, WorklistFilters(decision=before.row.decision))
        assert (again.patient.timeline, again.neighbours) == (before.patient.timeline, before.neighbours)
        assert worked_out == [first]
        site.worklist.read_ahead(second)
        assert worked_out == [first, second], "what comes next can be explained before it is opened"
        for alert_id in (second, third, second, first):
            assert site.worklist.alert(alert_id).row.alert_id == alert_id
        assert worked_out == [first, second, third, first], "the least recently used entry is dropped"
        site.close()


def test_the_next_case_is_read_ahead_once_and_held_by_nobody(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    look_up = SnapshotViews._case

    def counted(self: SnapshotViews, row_index: int, *given: Any) -> CaseView:
        looked_up.append(row_index)
        return look_up(self, row_index, *given)

    monkeypatch.setattr(SnapshotViews, "_case", counted)
    with open_application(own_home) as site:
        people = {person.person_id for person in site.site.people()}
        reader = max(people, key=lambda person_id: site.review.queue("demo", person_id).n_left)
        stranger = next(one for one in people if not site.review.queue("demo", one).is_reader)
        here = site.review.next_case("demo", reader)
        assert here is not None
        before = site.review.queue("demo", reader)
        site.review.read_ahead("demo", reader, here.case_id)
        assert len(looked_up) == 2
        assert site.review.queue("demo", reader) == before
        following = site.review.next_case("demo", reader, here.case_id)
        assert following is not None
        assert following.case_id != here.case_id
        assert len(looked_up) == 2
        with pytest.raises(RefusedError):
            site.review.read_ahead("demo", stranger, here.case_id)


@pytest.mark.parametrize("learned", [{}, {"stay": 0.6, "now": 0.1}], ids=["usual", "learned"])
def test_similar_days_of_the_shared_scorer_are_those_of_its_own_graph(
    application: Application, learned: dict[str, float]
) -> None:
    first = application.worklist.page(WorklistFilters(), limit=1).rows[0]
    with application.database.read() as uow:
        record = uow.alerts.get(first.alert_id)
        stored_run = uow.runs.get(record.run_id)
        result = uow.runs.past_of_task(stored_run, record.task_id, record.scorer)
        past = Past(stored_run, result, uow.runs.cached_folds(stored_run))
        content_hash = uow.snapshots.get(stored_run.snapshot_id).content_hash
    record = replace(record, scorer=SHARED.key)
    weights = FEATURE_GROUP_WEIGHTS | learned
    if learned:
        past = replace(past, run=replace(stored_run, parameters={**stored_run.parameters, GROUP_WEIGHTS: [weights]}))
    snapshot = last_import(application.settings, application.database).snapshot
    rows, recent = rows_of_fold(past.folds, 0)
    order = np.concatenate((rows, recent))
    prepared = prepare_instances(
        snapshot.features,
        snapshot.decisions,
        snapshot.feature_dictionary["is_flag"].to_numpy(dtype=bool),
        np.arange(len(past.folds)),
        rows,
        recent,
        ScoringParameters(),
        elapsed_features(snapshot),
    )
    columns = sparse.csr_array(prepared.columns)
    groups = FeatureRoles.of(snapshot.feature_dictionary, [], []).groups
    cosine = CosineMap.fit(columns[: len(rows)], groups, weights, len(rows), np.random.default_rng(0))
    coordinates = cosine.transform(columns).astype(float)
    similarity = coordinates[: len(rows)] @ coordinates[np.flatnonzero(order == record.row_index)[0]]
    patients = snapshot.instances["patient_id"].to_numpy()
    allowed = np.flatnonzero(patients[rows] != record.patient_id)
    expected = allowed[np.argsort(-similarity[allowed], kind="stable")[:N_NEIGHBOURS]]
    explanations_of = Explanations(application.settings, application.database)
    found = explanations_of.nearest(content_hash, record, past)
    np.testing.assert_allclose(found.similarities, similarity[expected], atol=1e-4)
    assert len(set(found.rows) & set(rows[expected])) >= N_NEIGHBOURS - 1, "equals but for a tie at the end"


def test_the_preview_says_what_the_alert_says_and_its_neighbours_are_searched_once(own_home: Path) -> None:
    with open_application(own_home) as site, pytest.MonkeyPatch.context() as patch:
        searched: list[int] = []
        search = Explanations._search

        def counted(*given: Any, **more: Any) -> Any:
            searched.append(1)
            return search(*given, **more)

        patch.setattr(Explanations, "_search", counted)
        for row in site.worklist.page(WorklistFilters(), limit=3).rows:
            before = len(searched)
            preview, detail = site.worklist.preview(row.alert_id), site.worklist.alert(row.alert_id)
            assert preview.compared == detail.compared
            assert preview.scaled_histogram == detail.scaled_histogram
            assert (preview.run_id, preview.day_of_stay) == (detail.run.run_id, detail.day_of_stay)
            assert len(searched) == before + 1


def test_the_preview_reads_no_events_of_any_patient(own_home: Path) -> None:
    with open_application(own_home) as site, pytest.MonkeyPatch.context() as patch:
        read: list[str] = []
        patch.setattr(Snapshot, "events_of", lambda _self, patient_id: read.append(patient_id))
        for row in site.worklist.page(WorklistFilters(), limit=3).rows:
            site.worklist.preview(row.alert_id)
        assert not read


def test_an_alert_knows_where_the_budget_ends_in_the_list_that_the_reader_came_from(application: Application) -> None:
    for filters in (WorklistFilters(), WorklistFilters(alerts_per_patient_day=0.05, decision=Decision.OMISSION)):
        page = application.worklist.page(filters, limit=1)
        row = page.rows[0]
        alert = application.worklist.alert(row.alert_id, filters)
        assert alert.lowest_scaled_score == page.lowest_scores[row.decision]


def test_a_reader_limited_to_units_is_not_told_whose_the_similar_stays_were(application: Application) -> None:
    alert_id = application.worklist.page(WorklistFilters(), limit=1).rows[0].alert_id
    whole = application.worklist.alert(alert_id).neighbours
    limited = application.worklist.alert(alert_id, WorklistFilters(within=("Ward",))).neighbours
    assert limited == tuple(replace(one, patient_id="not shown") for one in whole)
    assert whole != limited
