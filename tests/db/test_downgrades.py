"""From the schema of release 0.1.0, with data, to this one and back, on both databases."""

import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from alertreview.operations.upgrade import downgrade_site, upgrade_site
from alertreview.settings import Settings
from core.errors import ForeignDatabaseError, RefusedError
from core.vocabulary import Answer, Decision
from db import schema
from db.database import Database
from db.maintenance.copies import contents
from tests.support.stored_site import EPOCH, StoredSite


@pytest.fixture
def filled(database: Database) -> Database:
    """A site with rows in every table of that schema that people fill."""
    site = StoredSite(database)
    site.publish([site.alert(row, 0, row + 1, Decision.OMISSION) for row in range(12)])
    readers = site.study(6, 3)
    for reader in readers:
        for _ in range(2):
            case = site.review.next_case("demo", reader)
            assert case is not None
            site.review.submit_judgment(
                "demo", reader, case.case_id, answer=Answer.RELEVANT, version_seen=0, form_key=case.form_key
            )
    return database


def test_every_schema_is_reached_downwards_and_upwards_with_all_rows(filled: Database) -> None:
    before = contents(filled.url)
    for revision in reversed(schema.revisions()[:-1]):
        assert filled.downgrade(revision) == []
        assert filled.state().revision == revision
    first = contents(filled.url)
    assert {table: before.n_rows[table] for table in first.n_rows} == first.n_rows
    assert first.audit_head == before.audit_head
    filled.upgrade()
    filled.check()
    assert contents(filled.url) == before
    with filled.read() as uow:
        uow.audit.require_whole(before.audit_head)
        assert len(uow.judgments.votes(uow.studies.by_slug("demo").id)) == 6


def test_what_would_be_lost_is_named_and_nothing_is_touched(filled: Database) -> None:
    with filled.write() as uow:
        uow._connection.execute(
            sa.text(
                "INSERT INTO api_token (token_hash, person_id, purpose, created_at, expires_at) "
                "VALUES (:hash, 1, 'labels', :at, :at)"
            ),
            {"hash": "a" * 64, "at": "2026-03-02 08:00:00.000000"},
        )
        uow._connection.execute(sa.text("UPDATE person SET further_roles = 'viewer' WHERE id = 1"))
        uow.commit()
    before = contents(filled.url)
    words = r"1 row of table api_token.*the values of column person\.further_roles.*--discard"
    with pytest.raises(RefusedError, match=words):
        filled.downgrade("0009")
    assert contents(filled.url) == before
    lost = filled.downgrade("0009", discard=True)
    assert lost == ["1 row of table api_token", "the values of column person.further_roles"]
    filled.upgrade()
    filled.check()


@pytest.mark.parametrize("revision", ["9999", "", "base", "0006", "0007; DROP TABLE person"])
def test_a_schema_that_there_is_not_is_refused_by_name(database: Database, revision: str) -> None:
    with pytest.raises(ForeignDatabaseError, match=re.escape(f"cannot go back to {revision!r}")):
        database.downgrade(revision)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_upgrade_copies_an_older_database_first_and_only_then(filled: Database, tmp_path: Path) -> None:
    settings = Settings(tmp_path, filled.url)
    copy, lost = downgrade_site(settings, filled, "0007", EPOCH)
    assert lost == []
    assert (copy / "database.sqlite").is_file()
    copied = upgrade_site(settings, filled, EPOCH)
    assert copied is not None
    assert copied.name.endswith("before-upgrade-0007")
    assert contents(f"sqlite:///{copied / 'database.sqlite'}").revision == "0007"
    assert upgrade_site(settings, filled, EPOCH) is None


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_refused_downgrade_leaves_no_copy_behind(filled: Database, tmp_path: Path) -> None:
    settings = Settings(tmp_path, filled.url)
    with pytest.raises(ForeignDatabaseError):
        downgrade_site(settings, filled, "9999", EPOCH)
    assert list(settings.backups.iterdir()) == []
