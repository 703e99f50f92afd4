"""Sign-in over a stored site: accounts, sessions and a clock that tests move; cheap hashing, the same code."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from argon2 import PasswordHasher

from alertreview.access.accounts import AccountService
from alertreview.access.passwords import Passwords
from alertreview.access.sessions import SessionService
from alertreview.access.sign_in import SignIn
from core.vocabulary import Role
from db.database import Database

PASSWORD = "four boats in winter"


class CountingPasswords(Passwords):
    """Counts how often a password was looked at."""

    def __init__(self) -> None:
        super().__init__(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        self.n_looks = 0

    def matches(self, stored: str | None, password: str) -> bool:
        self.n_looks += 1
        return super().matches(stored, password)


class SignInDesk:
    """Everything about signing in, over one database.

    Parameters
    ----------
    database : Database
        With its tables made.
    clock : callable
        Gives the time now.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database = database
        self.passwords = CountingPasswords()
        self.sessions = SessionService(database, clock)
        self.accounts = AccountService(database, clock)
        self.sign_in = SignIn(database, self.passwords, clock)

    def account(self, login: str, role: Role = Role.REVIEWER, units: Collection[str] | None = None) -> int:
        """Return somebody an account with the common password; gives the person's number."""
        code = self.accounts.create(f"Person {login}", role, login=login, units=units)
        self.sessions.log_out(self.sign_in.with_code(login, code, PASSWORD))
        return self.accounts.find(login).person_id

    def enter(self, login: str) -> str:
        """Sign in and give the token."""
        return self.sign_in.with_password(login, PASSWORD, "Test browser")

    def acts(self, limit: int = 30) -> list[tuple[str, str, str]]:
        """Return actor, action and object of the newest audit rows, newest first."""
        with self.database.read() as uow:
            return [(row.actor, row.action, row.object) for row in uow.audit.latest(limit)]


def minutes(number: float) -> timedelta:
    """Return so many minutes."""
    return timedelta(minutes=number)
