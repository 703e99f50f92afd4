"""Who waits for whom: on a server, writers of one case for each other and for whoever decides about more."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from db.database import Database
from tests.support.review_acts import at_once

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LONG, SHORT = 20.0, 0.3
"""Seconds within which somebody who need not wait is through, and for which somebody who must is watched."""


@dataclass(frozen=True)
class Writer:
    """Somebody who writes in a thread of his own: set once he may begin, and to be set when he shall end."""

    begun: threading.Event = field(default_factory=threading.Event)
    finish: threading.Event = field(default_factory=threading.Event)


@contextmanager
def writing(database: Database, **options: Any) -> Iterator[Writer]:
    """Begin to write and keep at it."""
    writer = Writer()

    def write() -> None:
        with database.write(**options):
            writer.begun.set()
            writer.finish.wait(LONG)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield writer
    finally:
        writer.finish.set()
        thread.join()


@pytest.mark.parametrize(
    ("first", "second"),
    [({"case_id": 1}, {"case_id": 1}), ({"case_id": 1}, {}), ({}, {"case_id": 1}), ({}, {})],
    ids=["the same case", "case, then all", "all, then case", "all"],
)
def test_those_who_decide_about_the_same_take_turns(
    database: Database, first: dict[str, Any], second: dict[str, Any]
) -> None:
    with writing(database, **first) as one:
        assert one.begun.wait(LONG)
        with writing(database, **second) as other:
            assert not other.begun.wait(SHORT)
            one.finish.set()
            assert other.begun.wait(LONG)


def test_those_of_different_cases_wait_for_each_other_only_where_the_database_has_one_writer(
    database: Database,
) -> None:
    with writing(database, case_id=1) as one:
        assert one.begun.wait(LONG)
        with writing(database, case_id=2) as other:
            assert other.begun.wait(SHORT if database.has_one_writer else LONG) is not database.has_one_writer
            one.finish.set()


def test_acts_on_different_cases_at_once_leave_one_whole_trail(database: Database) -> None:
    n_acts = 15

    def act(case_id: int) -> None:
        for number in range(n_acts):
            with database.write(case_id=case_id) as uow:
                uow.audit.append(NOW, f"person {case_id}", "judgment saved", f"case {case_id}", {"number": number})
                uow.commit()

    assert at_once(*(partial(act, case_id) for case_id in range(1, 5))) == [None] * 4
    with database.read() as uow:
        report = uow.audit.verify()
        assert (report.problem, report.n_events) == ("", 4 * n_acts)
        assert uow.audit.count() == 4 * n_acts
