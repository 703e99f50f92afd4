"""Accounts: how people sign in, with attempts counted and locked by single updates."""

from datetime import datetime

from sqlalchemy import func, or_, select, update

from core.errors import ConflictError
from core.vocabulary import PersonId, Role, SignInSource
from db.models import Account, Person
from db.queries.reading import Repository, given, select_records
from db.queries.seals import mark

_SEALED = "account of person"
_ANY = select(Account.person_id).limit(1)
_OF_PERSON = select_records(Account).where(Account.person_id == given("person_id"))


class Accounts(Repository):
    """Accounts of people."""

    def exist(self) -> bool:
        """Return whether anybody has an account."""
        return self._run(_ANY).first() is not None

    def add(self, account: Account) -> None:
        """Add an account to a person; raise ConflictError if the person has one, or the login is another person's."""
        if self.get(account.person_id) is not None:
            raise ConflictError(f"Person {account.person_id} has an account already. Reset it to give a new code.")
        if self.by_login(account.source, account.login) is not None:
            raise ConflictError(f"The login '{account.login}' is taken. Choose another with --login.")
        self._insert(account)

    def get(self, person_id: PersonId) -> Account | None:
        """Return a person's account, None without one."""
        return self._one(Account, _OF_PERSON, person_id_=person_id)

    def by_login(self, source: SignInSource, login: str) -> Account | None:
        """Return the account with a login of a source, None when there is none."""
        return self._one(Account, select_records(Account).where(Account.source == source, Account.login == login))

    def all(self) -> list[Account]:
        """Return every account in the order of people."""
        return self._all(Account, select_records(Account).order_by(Account.person_id))

    def count_attempt(self, person_id: PersonId, *, most: int, locked_until: datetime) -> int:
        """Count an attempt before its password is looked at; the last one allowed locks the account.

        Return the attempts since the last success, this one included.
        """
        counted = update(Account).where(Account.person_id == person_id)
        self._run(counted.values(failures=Account.failures + 1))
        self._run(counted.where(Account.failures >= most).values(locked_until=locked_until))
        return int(self._run(select(Account.failures).where(Account.person_id == person_id)).scalar_one())

    def forgive(self, person_id: PersonId) -> None:
        """Forget the attempts, after a success or when the lock has run out."""
        self._run(update(Account).where(Account.person_id == person_id).values(failures=0, locked_until=None))

    def set_code(self, person_id: PersonId, code_hash: str, expires_at: datetime) -> None:
        """Set a one-time code; the password before it no longer opens anything."""
        code = {"code_hash": code_hash, "code_expires_at": expires_at}
        self._update(person_id, **code, password_hash=None, failures=0, locked_until=None)

    def use_code(self, person_id: PersonId, code_hash: str, password_hash: str | None) -> bool:
        """Spend a one-time code, for a password if there is one; False when it was spent meanwhile."""
        statement = (
            update(Account)
            .where(Account.person_id == person_id, Account.code_hash == code_hash)
            .values(code_hash=None, code_expires_at=None, password_hash=password_hash, failures=0, locked_until=None)
        )
        if self._change(statement) != 1:
            return False
        mark(self._connection, _SEALED, person_id)
        return True

    def set_password(self, person_id: PersonId, password_hash: str) -> None:
        """Keep another password."""
        self._update(person_id, password_hash=password_hash)

    def n_active_administrators(self) -> int:
        """Count active administrators who can sign in."""
        is_administrator = or_(
            Person.role == Role.ADMINISTRATOR, Person.further_roles.contains(Role.ADMINISTRATOR.value)
        )
        statement = (
            select(func.count())
            .select_from(Person)
            .join(Account, Account.person_id == Person.id)
            .where(is_administrator, Person.active)
        )
        return int(self._run(statement).scalar_one())

    def _update(self, person_id: PersonId, **changes: object) -> None:
        self._run(update(Account).where(Account.person_id == person_id).values(changes))
        mark(self._connection, _SEALED, person_id)
