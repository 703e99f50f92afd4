"""Databases and small stored sites for the tests of the store."""

from tests.support.demo_site import built_demo, demo_home
from tests.support.stored_site_fixtures import (
    database,
    database_file,
    postgresql_database,
    site,
    sqlite_database,
    template,
)

__all__ = [
    "built_demo",
    "database",
    "database_file",
    "demo_home",
    "postgresql_database",
    "site",
    "sqlite_database",
    "template",
]
