"""The load that other settings lose votes under, in small: readers vote while another process writes a scoring run."""

import threading
import time

import pytest

from core.vocabulary import Answer
from db.database import Database
from tests.support.stored_site import StoredSite, child

N_READERS = 6
N_ALERTS = 5_000


@pytest.fixture(params=["sqlite", "postgresql"])
def durable(request: pytest.FixtureRequest) -> Database:
    """A database as a site has it: an SQLite file that waits for the disk, or one of a server."""
    if request.param == "sqlite":
        return Database(f"sqlite:///{request.getfixturevalue('database_file')}")
    server: Database = request.getfixturevalue("postgresql_database")
    return server


@pytest.mark.checklist("C1")
def test_no_vote_is_lost_while_another_process_writes_many_rows(durable: Database) -> None:
    site = StoredSite(durable, n_instances=60, n_tasks=4)
    readers = site.study(200, N_READERS, n_slots=N_READERS)
    writer = child("score", durable.url, N_ALERTS)
    acknowledged: list[list[int]] = [[] for _ in readers]
    seconds: list[float] = []
    failures: list[BaseException] = []

    def vote(at: int) -> None:
        try:
            while writer.poll() is None and (case := site.review.next_case("demo", readers[at])) is not None:
                began = time.perf_counter()
                site.review.submit_judgment(
                    "demo",
                    readers[at],
                    case.case_id,
                    answer=Answer.RELEVANT,
                    version_seen=0,
                    form_key=case.form_key,
                )
                seconds.append(time.perf_counter() - began)
                acknowledged[at].append(case.case_id)
                time.sleep(0.05)
        except Exception as error:  # noqa: BLE001 - a failed vote of any kind is what this test looks for
            failures.append(error)

    threads = [threading.Thread(target=vote, args=(at,)) for at in range(N_READERS)]
    for thread in threads:
        thread.start()
    printed, errors = writer.communicate()
    for thread in threads:
        thread.join()

    assert failures == []
    assert errors == ""
    run_id = int(printed.split()[0])
    n_votes = sum(map(len, acknowledged))
    assert n_votes >= N_READERS, "the readers did vote"
    with durable.read() as uow:
        votes = uow.judgments.votes(1)
        uow.audit.require_whole()
        n_acts = sum(event["actor"] != "program" for event in uow.audit.all())
        run = uow.runs.latest_published()
        assert uow.alerts.count(run_id, include_cut_windows=True) == N_ALERTS
    assert {(vote.reviewer_id, vote.case_id) for vote in votes} == {
        (reader, case_id) for reader, cases in zip(readers, acknowledged, strict=True) for case_id in cases
    }
    assert n_acts == 3 + n_votes
    assert run is not None
    assert (run.id, run.n_omissions) == (run_id, N_ALERTS)
    assert max(seconds) < 30
    durable.dispose()
