"""Tasks of a run: every number once more by a plain road, over the small demonstration."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.application import Application, open_application
from alertreview.records.snapshots import read_snapshot
from core.errors import NotFoundError
from core.vocabulary import Answer, Decision, TriageState

WIDE = WorklistFilters(alerts_per_patient_day=2.0, include_cut_windows=True)


def rows_of(application: Application, filters: WorklistFilters) -> list[AlertRow]:
    page = application.worklist.page(filters, limit=5_000)
    assert page.next_cursor is None
    return list(page.rows)


def busiest(application: Application) -> str:
    """The task with the most alerts of both decisions."""
    rows = rows_of(application, WIDE)
    counts = {key: [0, 0] for key in {row.task_key for row in rows}}
    for row in rows:
        counts[row.task_key][row.decision is Decision.OMISSION] += 1
    return max(counts, key=lambda key: (min(counts[key]), key))


def test_counts_and_marks_are_those_of_the_worklist(application: Application) -> None:
    key = busiest(application)
    for filters in (WIDE, replace(WIDE, alerts_per_patient_day=0.05), replace(WIDE, include_cut_windows=False)):
        asked = replace(filters, task_key=key)
        view, rows = application.tasks.view(asked), rows_of(application, asked)
        for decision in Decision:
            mine = [row for row in rows if row.decision is decision]
            assert view.n_alerts[decision] == len(mine)
            for histogram, marks, scores in (
                (view.scaled_histogram, view.scaled_marks, [row.scaled_score for row in mine]),
                (view.score_histogram, view.score_marks, [row.score for row in mine]),
            ):
                edges = histogram.edges
                last = len(edges) - 2
                by_hand = [0] * (last + 1)
                for score in scores:
                    place = max((i for i in range(last + 1) if edges[i] <= score), default=0)
                    by_hand[place] += 1
                assert list(marks.of(decision)) == by_hand
                assert all(mark <= count for mark, count in zip(marks.of(decision), histogram.counts, strict=True))
            if mine:
                assert view.thresholds[decision] <= min(row.scaled_score for row in mine)
        assert sum(view.triage.values()) == len(rows)


def test_thresholds_end_the_lists_of_the_whole_run(application: Application) -> None:
    filters = replace(WIDE, alerts_per_patient_day=0.1)
    view = application.tasks.view(replace(filters, task_key=busiest(application)))
    for decision in Decision:
        whole = rows_of(application, replace(filters, decision=decision))
        assert view.thresholds[decision] == min(row.scaled_score for row in whole)


def test_a_mute_is_said_as_long_as_it_lasts(own_home: Path) -> None:
    with open_application(own_home) as application:
        task_key = busiest(application)
        seen = application.catalogue.view()
        assert seen is not None
        application.catalogue.mute(task_key, seen.today, (), "Trial")
        assert application.tasks.view(replace(WIDE, task_key=task_key)).muted.startswith("all units, to the end of ")
        application.catalogue.mute(task_key, None, (), "Trial over")
        assert application.tasks.view(replace(WIDE, task_key=task_key)).muted == ""


def test_every_past_and_scored_instance_stands_in_both_histograms(application: Application) -> None:
    run = application.worklist.run()
    assert run is not None
    choices = application.tasks.choices(run.run_id)
    assert sum(one.is_scored for one in choices) == run.n_tasks_scored
    assert len(choices) == run.n_tasks_scored + run.n_tasks_left_out
    for choice in choices[:12]:
        view = application.tasks.view(replace(WIDE, task_key=choice.task_key))
        n_recent, n_past = (run.n_recent, run.n_past) if choice.is_scored else (0, 0)
        assert sum(view.scaled_histogram.counts) == sum(view.score_histogram.counts) == n_recent + n_past
        assert view.n_scored == n_recent
        assert bool(view.reason) is not choice.is_scored


def test_drift_counts_ordering_alerts_and_quantiles_of_each_run(application: Application) -> None:
    run, key = application.worklist.run(), busiest(application)
    assert run is not None
    (point,) = application.tasks.drift(replace(WIDE, task_key=key))
    with application.database.read() as uow:
        stored = uow.runs.get(run.run_id)
        snapshot = read_snapshot(application.settings.snapshots / uow.snapshots.get(stored.snapshot_id).folder)
        task = uow.snapshots.task(stored.snapshot_id, key)
        assert task is not None
        folds = uow.runs.fold_of_row(run.run_id)
        scaled = uow.runs.task_result(run.run_id, task.id).scaled_score
    assert scaled is not None
    column = snapshot.decisions[:, [task.column_index]].toarray().ravel() > 0
    assert point.recent_share == pytest.approx(column[folds >= 0].mean())
    assert point.past_share == pytest.approx(column[folds == -1].mean())
    ordered = sorted(scaled)
    assert ordered[int(0.9 * (len(ordered) - 1))] <= point.scores["9 in 10 lie below"]
    assert point.scores["9 in 10 lie below"] <= ordered[int(np.ceil(0.9 * (len(ordered) - 1)))]
    assert point.n_alerts == application.tasks.view(replace(WIDE, task_key=key)).n_alerts
    (whole,) = application.tasks.drift(WIDE)
    assert sum(whole.n_alerts.values()) == run.n_alerts
    recent = (snapshot.decisions.toarray() > 0)[folds >= 0]
    assert whole.recent_share == pytest.approx(recent.mean())


def test_a_run_whose_import_is_gone_has_no_share(own_home: Path, application: Application) -> None:
    key = busiest(application)
    for folder in (own_home / "snapshots").iterdir():
        shutil.rmtree(folder)
    with open_application(own_home) as own:
        (point,) = own.tasks.drift(replace(WIDE, task_key=key))
        assert point.recent_share is None
        assert point.past_share is not None


def test_what_is_unknown_is_not_found(application: Application) -> None:
    for filters in (replace(WIDE, task_key="nothing"), replace(WIDE, task_key="", run_id=99), WIDE):
        with pytest.raises(NotFoundError):
            application.tasks.view(filters)
        with pytest.raises(NotFoundError):
            application.tasks.judged(filters)
    with pytest.raises(NotFoundError):
        application.tasks.choices(99)
    assert application.tasks.drift(replace(WIDE, task_key="nothing")) == ()
    assert application.tasks.drift(replace(WIDE, scorer="nobody")) == ()


def test_triage_states_add_up_and_blinded_decisions_are_not_counted(own_home: Path) -> None:
    with open_application(own_home) as own:
        reader = next(person for person in own.site.people() if not person.simulated).person_id
        mine = {row.alert_id for row in rows_of(own, replace(WIDE, reader=reader))}
        withheld = next(row for row in rows_of(own, WIDE) if row.alert_id not in mine)
        asked = replace(WIDE, task_key=withheld.task_key)
        everybody, readers = own.tasks.view(asked), own.tasks.view(replace(asked, reader=reader))
        assert sum(readers.n_alerts.values()) == len(rows_of(own, replace(asked, reader=reader)))
        assert sum(readers.n_alerts.values()) < sum(everybody.n_alerts.values())
        row = rows_of(own, replace(asked, reader=reader))[0] if mine else withheld
        own.triage.act(reader, {row.alert_id: 0}, TriageState.ACTIONED, form_key="one")
        after = own.tasks.view(asked)
        assert after.triage[TriageState.ACTIONED] == 1
        assert sum(after.triage.values()) == sum(everybody.n_alerts.values())
        (point,) = own.tasks.drift(replace(asked, reader=reader))
        assert point.n_alerts == readers.n_alerts


def test_the_auc_waits_for_a_judged_study_and_then_counts_pairs(own_home: Path) -> None:
    with open_application(own_home) as own:
        cases = own.studies.case_rows("demo")
        key = max({case.task_key for case in cases}, key=lambda k: sum(case.task_key == k for case in cases))
        asked = replace(WIDE, task_key=key)
        assert own.tasks.judged(asked).auc.reason == "not computable: no study of this run is complete or locked yet"
        own.studies.lock_study("demo", reason="the panel is done")
        found = own.tasks.judged(asked)
        assert found.study
        votes = [vote for vote in own.studies.votes("demo") if vote.answer is not Answer.CANNOT_JUDGE]
        positives, negatives = [], []
        for case in cases:
            answers = [vote.answer is Answer.RELEVANT for vote in votes if vote.case_id == case.case_id]
            if case.task_key == key and len(answers) >= 2 and sum(answers) * 2 != len(answers):
                pair = (case.scores["shared"].scaled_score, 1 / case.inclusion_probability)
                (positives if sum(answers) * 2 > len(answers) else negatives).append(pair)
        if positives and negatives:
            won = sum((p > n) * wp * wn + 0.5 * (p == n) * wp * wn for p, wp in positives for n, wn in negatives)
            total = sum(wp * wn for _, wp in positives for _, wn in negatives)
            assert found.auc.value == pytest.approx(won / total)
        else:
            assert "one class only" in found.auc.reason
        unjudged = next(
            choice.task_key
            for choice in own.tasks.choices(own.worklist.runs()[0].run_id)
            if choice.task_key not in {case.task_key for case in cases}
        )
        assert "no case of this task" in own.tasks.judged(replace(WIDE, task_key=unjudged)).auc.reason
