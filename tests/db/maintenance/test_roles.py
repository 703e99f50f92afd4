"""An account of its own for the program on PostgreSQL: it can work, and it cannot touch the audit trail."""

from collections.abc import Iterator

import pytest

from core.errors import SettingsError
from core.vocabulary import Answer, Decision
from db.connection.engine import parse_url
from db.database import Database
from db.maintenance import bulk
from db.maintenance.inspection import inspect
from db.maintenance.roles import grant
from tests.support.postgresql import connected
from tests.support.stored_site import StoredSite, new_run

ROLE = "alertreview_tester"


@pytest.fixture
def account(postgresql_database: Database) -> Iterator[Database]:
    """The database, opened by an account with the rights that `grant` gives."""
    StoredSite(postgresql_database).study(3, 3)
    with connected() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {ROLE} LOGIN")
    try:
        rights = grant(postgresql_database, ROLE)
        assert rights["audit_event"] == rights["judgment"] == "SELECT, INSERT"
        assert rights["person"] == "SELECT, INSERT, UPDATE"
        url = parse_url(postgresql_database.url).set(username=ROLE)
        with Database(url.render_as_string(hide_password=False)) as opened:
            yield opened
    finally:
        with postgresql_database.engine.connect() as connection, connection.begin():
            connection.exec_driver_sql(f"DROP OWNED BY {ROLE}")
        with connected() as connection:
            connection.exec_driver_sql(f"DROP ROLE {ROLE}")


@pytest.mark.checklist("A2")
def test_the_account_can_do_its_work(account: Database) -> None:
    account.check()
    site = StoredSite.reopen(account)
    with account.read() as uow:
        reader = uow.studies.readers(uow.studies.by_slug("demo").id)[0].person_id
    case = site.review.next_case("demo", reader)
    assert case is not None
    site.review.submit_judgment(
        "demo", reader, case.case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key
    )
    with account.scoring_job():
        with account.write() as uow:
            run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
            uow.commit()
        bulk.store_results(account, run_id, [], (site.alert(row, 0, row + 1, Decision.OMISSION) for row in range(12)))
        with account.write() as uow:
            assert uow.runs.publish(run_id, published_at=site.clock(), floors={}).n_omissions == 12
            uow.commit()
    with account.read() as uow:
        uow.audit.require_whole()
    assert not inspect(account).may_do_too_much


@pytest.mark.checklist("A2")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_event SET actor = 'somebody else'",
        "DELETE FROM audit_event",
        "TRUNCATE audit_event",
        "ALTER TABLE audit_event DISABLE TRIGGER ALL",
        "DROP TRIGGER audit_event_refuses_update ON audit_event",
        "DROP TABLE audit_event",
        "UPDATE judgment SET answer = 1",
        "DELETE FROM person",
        "CREATE TABLE mine (id integer)",
        "UPDATE alembic_version SET version_num = '0001'",
    ],
)
def test_the_account_cannot_touch_what_must_stay(account: Database, statement: str) -> None:
    with (
        account.engine.connect() as connection,
        pytest.raises(Exception, match=r"permission denied|must be owner"),
        connection.begin(),
    ):
        connection.exec_driver_sql(statement)


def test_rights_are_refused_where_they_mean_nothing(sqlite_database: Database, postgresql_database: Database) -> None:
    with pytest.raises(SettingsError, match="of a PostgreSQL server"):
        grant(sqlite_database, ROLE)
    with pytest.raises(SettingsError, match="no role 'nobody; DROP TABLE person'"):
        grant(postgresql_database, "nobody; DROP TABLE person")
    with connected() as connection:
        ruler = connection.exec_driver_sql("SELECT current_user").scalar_one()
    with pytest.raises(SettingsError, match="rules over the server"):
        grant(postgresql_database, ruler)
    assert inspect(postgresql_database).may_do_too_much
