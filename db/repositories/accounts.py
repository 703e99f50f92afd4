"""Accounts: how people sign in, with attempts counted and locked by single updates."""

from datetime import datetime

from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import Connection

from core.errors import ConflictError
from core.vocabulary import Role, SignInSource
from db.models import Account, Person
from db.queries.reading import change, columns, read_all, read_one, run, values
from db.queries.runs import account_of_person, any_account
from db.rows import AccountRow


class Accounts:
    """Accounts of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def exist(self) -> bool:
        """Return whether anybody has an account."""
        return run(self._connection, any_account()).first() is not None

    def add(self, account: AccountRow) -> None:
        """Add an account to a person without one.

        Raises
        ------
        ConflictError
            If the person has one, or the login is another person's.
        """
        if self.get(account.person_id) is not None:
            raise ConflictError(f"Person {account.person_id} has an account already. Reset it to give a new code.")
        if self.by_login(account.source, account.login) is not None:
            raise ConflictError(f"The login '{account.login}' is taken. Choose another with --login.")
        self._connection.execute(insert(Account).values(values(account)))

    def get(self, person_id: int) -> AccountRow | None:
        """Return a person's account, None without one."""
        return read_one(self._connection, AccountRow, account_of_person(), person_id_=person_id)

    def by_login(self, source: SignInSource, login: str) -> AccountRow | None:
        """Return the account with a login of a source, None when there is none."""
        statement = select(*columns(Account, AccountRow)).where(Account.source == source, Account.login == login)
        return read_one(self._connection, AccountRow, statement)

    def all(self) -> list[AccountRow]:
        """Return every account in the order of people."""
        return read_all(self._connection, AccountRow, select(*columns(Account, AccountRow)).order_by(Account.person_id))

    def count_attempt(self, person_id: int, *, most: int, locked_until: datetime) -> int:
        """Count an attempt before its password is looked at; the last one allowed locks the account.

        Returns
        -------
        int
            Attempts since the last success, this one included.
        """
        counted = update(Account).where(Account.person_id == person_id)
        self._connection.execute(counted.values(failures=Account.failures + 1))
        self._connection.execute(counted.where(Account.failures >= most).values(locked_until=locked_until))
        return self._connection.execute(select(Account.failures).where(Account.person_id == person_id)).scalar_one()

    def forgive(self, person_id: int) -> None:
        """Forget the attempts, after a success or when the lock has run out."""
        self._change(person_id, failures=0, locked_until=None)

    def set_code(self, person_id: int, code_hash: str, expires_at: datetime) -> None:
        """Return a one-time code; the password before it no longer opens anything."""
        self._change(
            person_id,
            code_hash=code_hash,
            code_expires_at=expires_at,
            password_hash=None,
            failures=0,
            locked_until=None,
        )

    def use_code(self, person_id: int, code_hash: str, password_hash: str) -> bool:
        """Spend a one-time code for a password; False when it was spent meanwhile."""
        statement = (
            update(Account)
            .where(Account.person_id == person_id, Account.code_hash == code_hash)
            .values(code_hash=None, code_expires_at=None, password_hash=password_hash, failures=0, locked_until=None)
        )
        return change(self._connection, statement) == 1

    def set_password(self, person_id: int, password_hash: str) -> None:
        """Keep another password."""
        self._change(person_id, password_hash=password_hash)

    def n_active_administrators(self) -> int:
        """Count active administrators who can sign in."""
        statement = (
            select(func.count())
            .select_from(Person)
            .join(Account, Account.person_id == Person.id)
            .where(Person.role == Role.ADMINISTRATOR, Person.active)
        )
        return self._connection.execute(statement).scalar_one()

    def _change(self, person_id: int, **changes: object) -> None:
        self._connection.execute(update(Account).where(Account.person_id == person_id).values(changes))
