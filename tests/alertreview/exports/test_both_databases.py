"""One site on SQLite and on PostgreSQL: equal labels in every layout, and the same digest."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from alertreview.application import Application, open_application
from alertreview.configuration import WebhookSettings
from alertreview.review import digest
from core.vocabulary import Role, SignInSource
from db.database import Database
from tests.support.postgresql import copy_rows, own_database

MORNING = datetime(2026, 11, 30, 6, tzinfo=UTC)


@pytest.fixture
def both(own_home: Path) -> Iterator[list[Application]]:
    """The demonstration with a reader who has open work, on SQLite and with the same rows on PostgreSQL."""
    file = f"sqlite:///{own_home / 'alertreview.db'}"
    with open_application(own_home) as on_sqlite, own_database() as url:
        on_sqlite.accounts.create("Rita", Role.REVIEWER, login="rita", source=SignInSource.OIDC)
        on_sqlite.studies.add_readers("demo", [on_sqlite.site.person_named("Rita").person_id])
        with Database(url) as database:
            copy_rows(file, database)
        with open_application(own_home, url) as on_postgresql:
            assert on_postgresql.database.engine.dialect.name == "postgresql"
            yield [on_sqlite, on_postgresql]


def test_labels_and_digest_are_the_same_on_both(
    both: list[Application], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for layout in ("long", "wide"):
        files = [tmp_path / f"{layout}-{n}.parquet" for n in range(2)]
        for application, file in zip(both, files, strict=True):
            assert application.exports.labels("demo", "parquet", layout, file) > 30
        one, other = map(pq.read_table, files)
        assert one.schema == other.schema
        assert one.equals(other)
    posted: list[dict[str, Any]] = []
    monkeypatch.setattr(digest, "post", lambda _hook, body: posted.append(body))
    (tmp_path / "url").write_text("https://hook.hospital.example/x")
    hook = WebhookSettings(url_file=tmp_path / "url", site="https://review.hospital.example/")
    for site in both:
        digests = digest.Digests(
            site.database, site.studies, site.review, site.adjudication, None, lambda: MORNING, hook
        )
        assert [digests.send().n_posted for _ in range(2)] == [1, 0]
    assert posted[0] == posted[1]
    assert posted[0]["studies"][0]["judgments"] > 0
