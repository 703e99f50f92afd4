"""Tokens of people for the read-only interface: given, looked up, revoked."""

from datetime import datetime

from sqlalchemy import select, update

from db.models import Account, ApiToken, HeldApiToken, Person
from db.queries.reading import Repository, given, select_records
from db.queries.seals import mark

_WITH_HOLDER = (
    select_records(ApiToken)
    .add_columns(
        Person.name, Person.role, Person.further_roles, Person.active, Person.all_units, Account.login, Account.source
    )
    .join(Person, Person.id == ApiToken.person_id)
    .outerjoin(Account, Account.person_id == Person.id)
)
_STANDING = ApiToken.revoked_at.is_(None)


class ApiTokens(Repository):
    """Tokens for the read-only interface."""

    def add(self, token: ApiToken) -> int:
        """Store a token and return its number."""
        return int(self._insert(token))

    def by_hash(self, token_hash: str) -> HeldApiToken | None:
        """Return a token with its holder, revoked or not; None when there is none."""
        return self._one(HeldApiToken, _WITH_HOLDER.where(ApiToken.token_hash == given("hash")), hash_=token_hash)

    def all(self) -> list[HeldApiToken]:
        """Return every token ever given, the newest first."""
        return self._all(HeldApiToken, _WITH_HOLDER.order_by(ApiToken.id.desc()))

    def revoke(self, token_id: int, at: datetime) -> bool:
        """Revoke a token; False when there is none, or it was revoked before."""
        if self._change(update(ApiToken).where(ApiToken.id == token_id, _STANDING).values(revoked_at=at)) != 1:
            return False
        mark(self._connection, "token", token_id)
        return True

    def revoke_everybodys(self, at: datetime) -> int:
        """Revoke every token, after a restore, and return how many there were."""
        standing = self._run(select(ApiToken.id).where(_STANDING)).scalars().all()
        return sum(self.revoke(token_id, at) for token_id in standing)
