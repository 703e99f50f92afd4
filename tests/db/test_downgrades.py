"""From the first schema with data to this version's and back, on both databases; refused where something gets lost."""

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
    """A site with rows in every table of the first schema that people fill."""
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
            sa.text("INSERT INTO unit_scope (person_id, unit) VALUES (1, 'Ward A')"),
        )
        uow._connection.execute(sa.text("UPDATE person SET all_units = :no WHERE id = 1"), {"no": False})
        uow.commit()
    before = contents(filled.url)
    words = r"1 row of table unit_scope.*the values of column person\.all_units.*--discard"
    with pytest.raises(RefusedError, match=words):
        filled.downgrade("0002")
    assert contents(filled.url) == before
    lost = filled.downgrade("0002", discard=True)
    assert lost == ["1 row of table unit_scope", "the values of column person.all_units"]
    filled.upgrade()
    filled.check()


def test_how_a_study_is_read_is_not_forgotten_without_a_word(filled: Database) -> None:
    site = StoredSite.reopen(filled)
    with filled.read() as uow:
        run_id = uow.studies.by_slug("demo").run_id
    assert filled.downgrade("0006") == [], "every study is blinded, as it was before"
    filled.upgrade()
    site.studies.create_study("panel", "Panel", run_id, [site.case(0)], is_open_panel=True)
    with pytest.raises(RefusedError, match=r"the values of column study\.is_open_panel.*--discard"):
        filled.downgrade("0006")
    with filled.read() as uow:
        assert [study.is_open_panel for study in uow.studies.all()] == [True, False]


@pytest.mark.parametrize("revision", ["9999", "", "base", "0001; DROP TABLE person"])
def test_a_schema_that_there_is_not_is_refused_by_name(database: Database, revision: str) -> None:
    with pytest.raises(ForeignDatabaseError, match=re.escape(f"cannot go back to {revision!r}")):
        database.downgrade(revision)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_upgrade_copies_an_older_database_first_and_only_then(filled: Database, tmp_path: Path) -> None:
    settings = Settings(tmp_path, filled.url)
    copy, lost = downgrade_site(settings, filled, "0001", EPOCH)
    assert lost == []
    assert (copy / "database.sqlite").is_file()
    copied = upgrade_site(settings, filled, EPOCH)
    assert copied is not None
    assert copied.name.endswith("before-upgrade-0001")
    assert contents(f"sqlite:///{copied / 'database.sqlite'}").revision == "0001"
    assert upgrade_site(settings, filled, EPOCH) is None


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_refused_downgrade_leaves_no_copy_behind(filled: Database, tmp_path: Path) -> None:
    settings = Settings(tmp_path, filled.url)
    with pytest.raises(ForeignDatabaseError):
        downgrade_site(settings, filled, "9999", EPOCH)
    assert list(settings.backups.iterdir()) == []
