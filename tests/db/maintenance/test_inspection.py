"""What a database says of itself, and rows that point nowhere."""

import pytest
import sqlalchemy as sa

from core.errors import StoreError
from db.database import Database
from db.maintenance.inspection import check_pages
from db.models import Record
from tests.support.corruptions import without_guards
from tests.support.stored_site import StoredSite

PARENTS = sorted(
    {key.referred_table.name for table in Record.metadata.sorted_tables for key in table.foreign_key_constraints}
)


@pytest.mark.checklist("C5")
def test_a_row_that_points_nowhere_is_found_on_every_database(database: Database) -> None:
    StoredSite(database).study(2, 3)
    check_pages(database)
    n_tried = 0
    for parent in PARENTS:
        with database.engine.connect() as connection:
            kept = connection.execute(sa.select(Record.metadata.tables[parent])).mappings().all()
        if not kept:
            continue
        with without_guards(database.engine) as connection:
            connection.execute(sa.delete(Record.metadata.tables[parent]))
        with pytest.raises(StoreError, match=f"point to rows of {parent} that are gone"):
            check_pages(database)
        with without_guards(database.engine) as connection:
            connection.execute(sa.insert(Record.metadata.tables[parent]), [dict(row) for row in kept])
        check_pages(database)
        n_tried += 1
    assert n_tried >= 5
