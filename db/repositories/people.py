"""People, never deleted; their accounts, sessions and tokens; and the units whose records each may see."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, func, or_, select, update

from core.errors import ConflictError, NotFoundError
from core.vocabulary import AlertId, CaseId, PersonId, Role, SessionId, SignInSource, StudyId
from db.models import (
    Account,
    Alert,
    ApiToken,
    HeldApiToken,
    Instance,
    Person,
    SignedInSession,
    SignInFlow,
    SignInSession,
    Study,
    StudyCase,
    UnitScope,
)
from db.queries.reading import Repository, given, select_records
from db.queries.seals import UNITS, mark

_BY_ID = select_records(Person).where(Person.id == given("person_id"))
_ALL = select_records(Person).order_by(Person.id)


class People(Repository):
    """People who use the dashboard, or did."""

    def add(self, name: str, role: Role, *, created_at: datetime, simulated: bool = False) -> Person:
        """Add somebody; raise ConflictError if the name is taken, also by somebody who was deactivated."""
        if self.by_name(name) is not None:
            raise ConflictError(
                f"There is a person named '{name}' already. Choose another name, or activate that person."
            )
        person_id = self._insert(Person(name=name, role=role, simulated=simulated, created_at=created_at))
        mark(self._connection, UNITS, person_id)
        return self.get(person_id)

    def get(self, person_id: PersonId) -> Person:
        """Return a person by number; raise NotFoundError if there is none."""
        return self._the(Person, _BY_ID, f"There is no person {person_id}.", person_id_=person_id)

    def by_name(self, name: str) -> Person | None:
        """Return a person by name, None when there is none."""
        return self._one(Person, select_records(Person).where(Person.name == name))

    def all(self, *, active_only: bool = False) -> list[Person]:
        """Return people in the order of joining."""
        return [person for person in self._all(Person, _ALL) if person.active or not active_only]

    def change(self, person_id: PersonId, *, role: Role, active: bool, further_roles: Collection[Role] = ()) -> Person:
        """Give somebody other roles, deactivate or activate; return the person as changed."""
        self.get(person_id)
        further = " ".join(one for one in Role if one in further_roles and one is not role)
        changed = update(Person).where(Person.id == person_id)
        self._run(changed.values(role=role, further_roles=further, active=active))
        mark(self._connection, "person", person_id)
        return self.get(person_id)


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


_HOLDER = (Person.name, Person.role, Person.further_roles, Person.active, Person.all_units, Account.login)
_OF_TOKEN = (
    select_records(SignInSession)
    .add_columns(*_HOLDER)
    .join(Person, Person.id == SignInSession.person_id)
    .outerjoin(Account, Account.person_id == Person.id)
    .where(SignInSession.token_hash == given("token_hash"))
)
_STILL_OPEN = SignInSession.ended_at.is_(None)


class Sessions(Repository):
    """Sessions and sign-ins on their way."""

    def begin(self, session: SignInSession) -> SessionId:
        """Store a session and return its number."""
        return SessionId(self._insert(session))

    def by_hash(self, token_hash: str) -> SignedInSession | None:
        """Return the session of a token with its person, ended or not; None when there is none."""
        return self._one(SignedInSession, _OF_TOKEN, token_hash_=token_hash)

    def get(self, session_id: SessionId) -> SignInSession | None:
        """Return a session by number."""
        return self._one(SignInSession, select_records(SignInSession).where(SignInSession.id == session_id))

    def open(self, *, seen_since: datetime, now: datetime) -> list[SignInSession]:
        """Return the sessions that still hold, the one seen last first."""
        statement = select_records(SignInSession).where(
            _STILL_OPEN, SignInSession.last_seen_at > seen_since, SignInSession.expires_at > now
        )
        return self._all(SignInSession, statement.order_by(SignInSession.last_seen_at.desc()))

    def seen(self, session_id: SessionId, at: datetime) -> None:
        """Note that its person did something; time never runs back, and an ended session stays ended."""
        own = update(SignInSession).where(SignInSession.id == session_id, _STILL_OPEN, SignInSession.last_seen_at < at)
        self._run(own.values(last_seen_at=at))

    def end(self, session_id: SessionId, at: datetime, reason: str) -> bool:
        """End a session; False when it had ended before."""
        own = update(SignInSession).where(SignInSession.id == session_id, _STILL_OPEN)
        return self._change(own.values(ended_at=at, end_reason=reason)) == 1

    def end_all(self, person_id: PersonId, at: datetime, reason: str, *, but: SessionId | None = None) -> int:
        """End every session of a person and return how many there were."""
        statement = update(SignInSession).where(SignInSession.person_id == person_id, _STILL_OPEN)
        if but is not None:
            statement = statement.where(SignInSession.id != but)
        return self._change(statement.values(ended_at=at, end_reason=reason))

    def end_everybodys(self, at: datetime, reason: str) -> int:
        """End every session, after a restore, and return how many there were."""
        return self._change(update(SignInSession).where(_STILL_OPEN).values(ended_at=at, end_reason=reason))

    def confirm(self, session_id: SessionId, at: datetime) -> None:
        """Note that fresh credentials were given."""
        self._run(update(SignInSession).where(SignInSession.id == session_id).values(confirmed_at=at))

    def use_confirmation(self, session_id: SessionId, *, since: datetime) -> bool:
        """Spend fresh credentials; False when there were none, or too long ago."""
        own = update(SignInSession).where(
            SignInSession.id == session_id, _STILL_OPEN, SignInSession.confirmed_at >= since
        )
        return self._change(own.values(confirmed_at=None)) == 1

    def keep_flow(self, flow: SignInFlow, *, drop_before: datetime) -> None:
        """Keep what a sign-in needs when the browser comes back, and drop what never did."""
        self._run(delete(SignInFlow).where(SignInFlow.created_at < drop_before))
        self._insert(flow)

    def take_flow(self, state_hash: str, *, since: datetime) -> SignInFlow | None:
        """Return a sign-in that came back, once; None when it is unknown, used or too old."""
        own = SignInFlow.state_hash == state_hash
        found = self._one(SignInFlow, select_records(SignInFlow).where(own, SignInFlow.created_at >= since))
        return found if self._change(delete(SignInFlow).where(own)) else None


_WITH_HOLDER = (
    select_records(ApiToken)
    .add_columns(*_HOLDER, Account.source)
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


_OF_CASES = select(Instance.unit).join(StudyCase, StudyCase.instance_id == Instance.id)


class Units(Repository):
    """Units of a hospital, and who may see their patients."""

    def of_person(self, person_id: PersonId) -> frozenset[str] | None:
        """Return the units whose patients a person may see; None for all of them."""
        if self._run(select(Person.all_units).where(Person.id == person_id)).scalar_one():
            return None
        return frozenset(self._run(select(UnitScope.unit).where(UnitScope.person_id == person_id)).scalars())

    def give(self, person_id: PersonId, units: Collection[str] | None) -> None:
        """Let a person see these units only; None for all of them, nothing at all for an empty collection."""
        self._run(delete(UnitScope).where(UnitScope.person_id == person_id))
        self._run(update(Person).where(Person.id == person_id).values(all_units=units is None))
        mark(self._connection, "person", person_id)
        mark(self._connection, UNITS, person_id)
        self._insert_all(UnitScope(person_id=person_id, unit=unit) for unit in sorted(set(units or ())))

    def all(self) -> tuple[str, ...]:
        """Return the units of the last import, by name."""
        latest = select(Instance.snapshot_id).order_by(Instance.snapshot_id.desc()).limit(1).scalar_subquery()
        found = self._run(select(Instance.unit).where(Instance.snapshot_id == latest).distinct())
        return tuple(sorted(unit for unit in found.scalars() if unit))

    def of_alert(self, alert_id: AlertId) -> str:
        """Return the unit of an alert; raise NotFoundError if there is no such alert."""
        unit: str | None = self._run(select(Alert.unit).where(Alert.id == alert_id)).scalar_one_or_none()
        if unit is None:
            raise NotFoundError(f"There is no alert {alert_id}. The link may come from another site.")
        return unit

    def of_case(self, case_id: CaseId) -> str | None:
        """Return the unit of a case; None when there is no such case."""
        return self._run(_OF_CASES.where(StudyCase.id == case_id)).scalar_one_or_none()

    def of_study(self, slug: str) -> frozenset[str]:
        """Return the units of a study's cases; empty for a study without cases, or that is not there."""
        of_study = _OF_CASES.join(Study, Study.id == StudyCase.study_id).where(Study.slug == slug)
        return frozenset(self._run(of_study.distinct()).scalars())

    def cases_within(self, study_id: StudyId, units: Collection[str]) -> frozenset[CaseId]:
        """Return the cases of a study whose patients lie in one of the units."""
        statement = (
            select(StudyCase.id)
            .join(Instance, Instance.id == StudyCase.instance_id)
            .where(StudyCase.study_id == study_id, Instance.unit.in_(units))
        )
        return frozenset(self._run(statement).scalars())
