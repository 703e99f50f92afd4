"""Says which unit an alert, a case or a study belongs to, for whoever checks units before a use case runs."""

from db.session import Database


class UnitLookup:
    """Units of things.

    Parameters
    ----------
    database : Database
        Of the site.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_alert(self, alert_id: int) -> str:
        """Give the unit of an alert.

        Raises
        ------
        NotFoundError
            If there is no such alert.
        """
        with self._database.read() as uow:
            return uow.units.of_alert(alert_id)

    def of_case(self, case_id: int) -> str | None:
        """Give the unit of a case; None when there is no such case."""
        with self._database.read() as uow:
            return uow.units.of_case(case_id)

    def of_study(self, slug: str) -> frozenset[str]:
        """Give the units of a study's cases; empty for a study that is not there."""
        with self._database.read() as uow:
            return uow.units.of_study(slug)
