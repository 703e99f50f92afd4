"""Databases and small stored sites for the tests of the store."""

from tests.support.stored_site_fixtures import (
    database,
    database_file,
    postgresql_database,
    site,
    sqlite_database,
    template,
)

__all__ = ["database", "database_file", "postgresql_database", "site", "sqlite_database", "template"]
