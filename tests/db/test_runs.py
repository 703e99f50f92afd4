"""Scoring runs: out of sight until published, one at a time, swept when their job has died."""

import itertools
from datetime import timedelta

import numpy as np
import pytest

from core.errors import NotFoundError, RefusedError, StoreError
from core.vocabulary import Decision, RunStatus
from db.maintenance import bulk
from db.models import TaskResult
from tests.support.stored_site import (
    StoredSite,
    add_alerts,
    add_task_results,
    child,
    killed_after,
    new_run,
    swept_after_kill,
)


def result(task_id: int, *, scorer: str = "softhad", reason: str = "", shift: float = 0.0) -> TaskResult:
    vectors = (
        {}
        if reason
        else {
            name: np.array([0.5, np.nan, 1.5], np.float32) + np.float32(shift)
            for name in ("score", "scaled_score", "soft_label", "support")
        }
    )
    return TaskResult(
        task_id=task_id,
        scorer=scorer,
        reason=reason,
        n_past=6,
        n_past_positive=2,
        feature_columns=np.array([4, 2], np.int32),
        feature_weights=np.array([0.9, 0.8], np.float32),
        score_histogram={"edges": [0.0, 1.0], "counts": [3]},
        scaling={"low": 0.0, "high": 2.0},
        **vectors,
    )


def start(site: StoredSite) -> int:
    with site.database.write() as uow:
        run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
        uow.commit()
    return run_id


def test_a_running_run_is_seen_by_nobody(site: StoredSite) -> None:
    run_id = start(site)
    with site.database.write() as uow:
        add_alerts(uow, run_id, [site.alert(0, 0, 1, Decision.OMISSION)])
        uow.commit()
    with site.database.read() as uow:
        assert uow.runs.published() == []
        assert uow.runs.latest_published() is None
        assert [run.status for run in uow.runs.all()] == [RunStatus.RUNNING]
        with pytest.raises(NotFoundError, match="no alert 1"):
            uow.alerts.get(1)


def test_a_published_run_comes_back_with_its_counts(site: StoredSite) -> None:
    run_id = start(site)
    with site.database.write() as uow:
        add_task_results(uow, run_id, [result(site.tasks[0].id), result(site.tasks[1].id, reason="too few")])
        add_task_results(uow, run_id, [result(site.tasks[1].id, scorer="logistic")])
        add_alerts(uow, run_id, [site.alert(i, 0, i + 1, Decision.OMISSION) for i in range(3)])
        add_alerts(uow, run_id, [site.alert(4, 1, 1, Decision.COMMISSION)])
        run = uow.runs.publish(run_id, published_at=site.clock(), floors={Decision.OMISSION: 0.25})
        uow.commit()
    assert (run.n_omissions, run.n_commissions, run.n_tasks_scored, run.n_tasks_left_out) == (3, 1, 1, 1)
    assert (run.floor_omission, run.floor_commission, run.status) == (0.25, None, RunStatus.PUBLISHED)
    with site.database.read() as uow:
        assert uow.runs.latest_published() == run
        assert uow.runs.fold_of_row(run_id).tolist() == new_run(1, 12)[1].tolist()


def test_the_latest_run_is_the_one_published_last(site: StoredSite) -> None:
    first, second = site.publish([]), site.publish([])
    with site.database.read() as uow:
        assert [run.id for run in uow.runs.published()] == [second, first]


def test_vectors_come_back_and_summaries_leave_them_in_the_database(site: StoredSite) -> None:
    run_id = start(site)
    task_ids = [task.id for task in site.tasks[:2]]
    stored = [result(task_id, scorer=scorer, shift=task_id) for task_id in task_ids for scorer in ("pair", "softhad")]
    with site.database.write() as uow:
        add_task_results(uow, run_id, stored)
        uow.commit()
    with site.database.read() as uow:
        assert [(row.task_id, row.scorer) for row in uow.runs.task_results(run_id)] == [
            (task_id, scorer) for task_id in task_ids for scorer in ("pair", "softhad")
        ]
        assert not hasattr(uow.runs.task_results(run_id, "pair")[0], "score")
        found = uow.runs.task_result(run_id, task_ids[1])
        assert found.scorer == "softhad"
        np.testing.assert_array_equal(found.score, stored[3].score)
        np.testing.assert_array_equal(found.feature_columns, [4, 2])
        assert found.scaled_histogram is None
        assert found.score_histogram == {"edges": [0.0, 1.0], "counts": [3]}
        streamed = list(uow.runs.vectors(run_id, "soft_label", "pair"))
        assert [task_id for task_id, _ in streamed] == task_ids
        np.testing.assert_array_equal(streamed[0][1], stored[0].soft_label)
        with pytest.raises(NotFoundError, match="no result of scorer 'knn'"):
            uow.runs.task_result(run_id, task_ids[0], "knn")


def test_a_task_without_scores_streams_no_vector(site: StoredSite) -> None:
    run_id = start(site)
    with site.database.write() as uow:
        add_task_results(uow, run_id, [result(site.tasks[0].id, reason="3 positive past instances")])
        uow.commit()
    with site.database.read() as uow:
        assert list(uow.runs.vectors(run_id, "score")) == []
        assert uow.runs.task_result(run_id, site.tasks[0].id).score is None


def test_a_published_run_takes_no_more_results(site: StoredSite) -> None:
    run_id = site.publish([])
    with site.database.write() as uow:
        for act in (
            lambda: add_alerts(uow, run_id, []),
            lambda: add_task_results(uow, run_id, []),
        ):
            with pytest.raises(RefusedError, match="takes no more results: it is published"):
                act()
        with pytest.raises(RefusedError, match="cannot be published"):
            uow.runs.publish(run_id, published_at=site.clock(), floors={})


def test_a_second_run_at_the_same_time_is_refused(site: StoredSite) -> None:
    run_id = start(site)
    with pytest.raises(RefusedError, match=f"run {run_id} is being written"):
        start(site)


@pytest.mark.checklist("C8")
def test_a_second_scoring_job_at_the_same_time_is_refused(site: StoredSite) -> None:
    with site.database.scoring_job():
        with pytest.raises(RefusedError, match="Another scoring job"), site.database.scoring_job():
            raise AssertionError("two jobs at once")
        run_id = start(site)
        assert site.database.sweep() == 0
        with site.database.read() as uow:
            assert uow.runs.get(run_id).status is RunStatus.RUNNING
    with site.database.scoring_job(), site.database.read() as uow:
        assert uow.runs.get(run_id).status is RunStatus.ABANDONED


@pytest.mark.checklist("C4")
def test_a_killed_scoring_job_is_swept_and_the_published_run_stays(site: StoredSite) -> None:
    published = site.publish([site.alert(0, 0, 1, Decision.OMISSION)])
    job = child("score-for-ever", site.database.engine.url.render_as_string(hide_password=False))
    try:
        assert job.stdout is not None
        run_id = int(job.stdout.readline())
        assert site.database.sweep() == 0, "the job is alive"
    finally:
        killed_after(job, 0)
    assert swept_after_kill(site.database) == 1
    with site.database.read() as uow:
        assert uow.runs.get(run_id).status is RunStatus.ABANDONED
        latest = uow.runs.latest_published()
        assert latest is not None
        assert latest.id == published
        assert uow.alerts.count(published, include_cut_windows=True) == 1


def test_what_an_abandoned_run_left_behind_is_discarded_and_nothing_else(site: StoredSite) -> None:
    published = site.publish([site.alert(0, 0, 1, Decision.OMISSION)])
    run_id = start(site)
    alerts = (site.alert(i % 12, 0, i + 1, Decision.OMISSION) for i in range(6_000))
    bulk.store_results(site.database, run_id, [result(task.id) for task in site.tasks], alerts)
    assert site.database.sweep() == 1
    assert bulk.discard_abandoned(site.database) == 6_000 + len(site.tasks)
    with site.database.read() as uow:
        assert uow.alerts.count(run_id, include_cut_windows=True) == 0
        assert uow.runs.task_results(run_id) == []
        assert uow.alerts.count(published, include_cut_windows=True) == 1


def test_between_chunks_the_lock_is_free_as_long_as_it_was_held_counting_the_time_to_make_rows(
    site: StoredSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    pauses: list[float] = []
    chunks: list[list[int]] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock[0] += seconds

    def prepare(chunk: list[int]) -> list[int]:
        clock[0] += 1
        return sorted(chunk)

    def write(_uow: object, chunk: list[int]) -> None:
        clock[0] += 3
        chunks.append(chunk)

    moved: list[float] = []
    most = 12 if site.database.has_one_writer else 3
    monkeypatch.setattr(bulk, "HELD_SECONDS", 3)
    monkeypatch.setattr(bulk, "LOG_SECONDS", 5)
    monkeypatch.setattr(site.database, "shorten_log", lambda: moved.append(clock[0]))
    monkeypatch.setattr(bulk.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(bulk.time, "sleep", sleep)
    hashed: list[float] = []

    def meanwhile() -> None:
        hashed.append(clock[0])
        clock[0] += 1

    bulk.in_chunks(site.database, iter(range(7)), most, prepare, write, meanwhile)
    assert hashed == [104.0, 110.0, 116.0], "after each commit"
    assert chunks == [[0, 1, 2], [3, 4, 5], [6]]
    assert pauses == [0, 1, 1, 2], "in the pause"
    assert moved == [111.0], "once after two chunks that held the lock for 3 s each"


def test_a_chunk_has_as_many_rows_as_the_lock_may_be_held_for() -> None:
    pace = bulk.Pace(4_000)
    sizes = [pace.size]
    for rows_in_a_second in [200_000] * 3 + [1_000] * 8 + [10_000_000] * 5:
        pace.learn(sizes[-1], sizes[-1] / rows_in_a_second)
        sizes.append(pace.size)
    assert sizes[0] == 1_000
    assert sizes[3] == 4_000 == 200_000 * bulk.HELD_SECONDS
    assert sizes[11] == 400, "a tenth of the most, on a machine that does much else"
    assert max(sizes) == sizes[-1] == 4_000
    assert all(former // 2 <= size <= 2 * former for former, size in itertools.pairwise(sizes))
    free = bulk.Pace(4_000, has_one_writer=False)
    free.learn(4_000, 60)
    assert free.size == 4_000
    lonely = bulk.Pace(1)
    lonely.learn(1, 60)
    lonely.learn(1, 0)
    assert lonely.size == 1


def test_a_study_needs_a_run_that_exists(site: StoredSite) -> None:
    with site.database.read() as uow, pytest.raises(StoreError, match="no scoring run 5"):
        uow.runs.get(5)


def test_a_run_keeps_its_times_in_order(site: StoredSite) -> None:
    run_id = site.publish([])
    with site.database.read() as uow:
        run = uow.runs.get(run_id)
    assert run.published_at is not None
    assert timedelta(0) <= run.published_at - run.created_at < timedelta(seconds=1)
