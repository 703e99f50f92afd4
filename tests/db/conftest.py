"""Databases and small stored sites for the tests of the store."""

from tests.support.demo_site import built_demo, demo_home
from tests.support.stored_site_fixtures import (
    database,
    database_file,
    database_of_release_0_1_0,
    postgresql_database,
    site,
    sqlite_database,
    template,
)

__all__ = [
    "built_demo",
    "database",
    "database_file",
    "database_of_release_0_1_0",
    "demo_home",
    "postgresql_database",
    "site",
    "sqlite_database",
    "template",
]
