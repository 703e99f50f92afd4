"""Signatures under reports: appended, superseded once, guarded by the database; and the step that brought them."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from core.errors import StoreError
from db.models import ReportSignature
from tests.support.stored_site import EPOCH, StoredSite

TABLE = "report_signature"


def signature(study_id: int, person_id: int, **changes: object) -> ReportSignature:
    fields: dict[str, object] = {
        "study_id": study_id,
        "signer_id": person_id,
        "signer_name": "Dr Müller",
        "meaning": "I approve",
        "signed_at": EPOCH,
        "content_hash": "a" * 64,
    }
    return ReportSignature(**(fields | changes))  # type: ignore[arg-type]


def append(site: StoredSite, *new: ReportSignature) -> None:
    with site.database.write() as uow:
        for one in new:
            uow.signatures.append(one)
        uow.commit()


def stored(site: StoredSite) -> list[ReportSignature]:
    with site.database.read() as uow:
        return uow.signatures.of_study(1)


@pytest.fixture
def reader(site: StoredSite) -> int:
    return site.study(2, 3)[0]


def test_signatures_come_back_as_they_were_given_oldest_first(site: StoredSite, reader: int) -> None:
    append(site, signature(1, reader), signature(1, reader, meaning="I was there", content_hash="b" * 64))
    first, second = stored(site)
    assert (first.signer_name, first.meaning, first.signed_at) == ("Dr Müller", "I approve", EPOCH)
    assert (second.meaning, second.content_hash, second.superseded_at) == ("I was there", "b" * 64, None)


def test_only_what_stands_under_another_content_is_superseded_and_only_once(site: StoredSite, reader: int) -> None:
    append(site, signature(1, reader), signature(1, reader, content_hash="b" * 64))
    later = EPOCH + timedelta(hours=1)
    with site.database.write() as uow:
        assert uow.signatures.supersede(1, later, but_hash="b" * 64) == 1
        assert uow.signatures.supersede(1, later + timedelta(hours=1), but_hash="b" * 64) == 0
        assert uow.signatures.supersede(2, later) == 0
        uow.commit()
    assert [row.superseded_at for row in stored(site)] == [later, None]


@pytest.mark.parametrize(
    "change",
    [
        {"meaning": "something else"},
        {"content_hash": "c" * 64},
        {"signer_name": "Somebody"},
        {"signed_at": EPOCH + timedelta(days=1)},
        {"superseded_at": EPOCH, "meaning": "something else"},
        {"superseded_at": None},
    ],
    ids="+".join,
)
@pytest.mark.checklist("A5")
def test_the_database_refuses_to_change_a_signature(site: StoredSite, reader: int, change: dict[str, object]) -> None:
    append(site, signature(1, reader))
    with pytest.raises(sa.exc.IntegrityError, match="append-only"), site.database.engine.begin() as connection:
        connection.execute(sa.update(ReportSignature).values(change))
    assert stored(site)[0].meaning == "I approve"


def test_the_database_refuses_to_supersede_twice_and_to_delete(site: StoredSite, reader: int) -> None:
    append(site, signature(1, reader))
    again = sa.update(ReportSignature).values(superseded_at=EPOCH)
    with site.database.engine.begin() as connection:
        connection.execute(again)
    for statement in (again, sa.delete(ReportSignature)):
        with pytest.raises(sa.exc.IntegrityError, match="append-only"), site.database.engine.begin() as connection:
            connection.execute(statement)


@pytest.mark.parametrize("change", [{"meaning": ""}, {"signer_name": ""}, {"content_hash": "short"}, {"signer_id": 99}])
def test_an_incomplete_signature_is_no_row(site: StoredSite, reader: int, change: dict[str, object]) -> None:
    with pytest.raises((sa.exc.IntegrityError, StoreError)):
        append(site, signature(1, reader, **change))
    assert stored(site) == []
