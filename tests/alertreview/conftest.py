"""Databases, small stored sites and a demonstration for the tests of the use cases."""

from tests.support.demo_site import application, built_demo, demo_home, own_home
from tests.support.reports_once import reports_once
from tests.support.stored_site_fixtures import (
    database,
    database_file,
    postgresql_database,
    site,
    sqlite_database,
    template,
)

__all__ = [
    "application",
    "built_demo",
    "database",
    "database_file",
    "demo_home",
    "own_home",
    "postgresql_database",
    "reports_once",
    "site",
    "sqlite_database",
    "template",
]
