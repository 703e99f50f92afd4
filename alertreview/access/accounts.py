"""Accounts: who may sign in, in which role, for which units. Every change has an audit row."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from alertreview.access.passwords import code_hash, new_code
from alertreview.access.sessions import IDLE, OWNER_LOGIN, holds, is_owner_without_password
from alertreview.access.sign_in import fold
from alertreview.access.throttle import throttle_of
from alertreview.rights import COMMAND_LINE, Action, Service, operator_only, requires, role_words
from core.errors import InvalidInputError, NotFoundError, RefusedError
from core.vocabulary import PersonId, Role, SessionId, SignInSource
from db.models import Account, Person
from db.unit_of_work import UnitOfWork

CODE_LASTS = timedelta(hours=24)
LONGEST_NAME = 120
FAILURES = ("sign-in failed", "account locked", "sign-ins refused")


@dataclass(frozen=True)
class AccountView:
    """A person; `login` is empty without an account, `units` is None for all units."""

    person_id: PersonId
    name: str
    role: Role
    active: bool
    simulated: bool
    login: str
    source: SignInSource | None
    units: tuple[str, ...] | None
    awaits_code: bool
    locked_until: datetime | None
    n_sessions: int
    further_roles: frozenset[Role] = frozenset()  # also held; rights combine

    @property
    def roles(self) -> frozenset[Role]:
        """Every role of the person."""
        return self.further_roles | {self.role}


@dataclass(frozen=True)
class SessionView:
    """An open session."""

    session_id: SessionId
    person_id: PersonId
    name: str
    source: SignInSource
    since: datetime
    last_seen_at: datetime
    browser: str


@dataclass(frozen=True)
class SignInFailure:
    """A failed sign-in, or the lock that followed."""

    at: datetime
    what: str
    whom: str
    way: str


class AccountService(Service):
    """Accounts, units and sessions of the people of a site."""

    @requires(Action.MANAGE_PEOPLE)
    def all(self) -> tuple[AccountView, ...]:
        """Return everybody, deactivated people last."""
        now = self._clock()
        closed: dict[int, datetime] = {}
        for pair in throttle_of(self._database, self._clock).locked():
            closed[pair.person_id] = max(pair.until, closed.get(pair.person_id, pair.until))
        with self._database.read() as uow:
            accounts = {account.person_id: account for account in uow.accounts.all()}
            open_sessions = [row.person_id for row in uow.sessions.open(seen_since=now - IDLE, now=now)]
            views = [
                _view(uow, person, accounts.get(person.id), now, open_sessions.count(person.id), closed.get(person.id))
                for person in uow.people.all()
            ]
        return tuple(sorted(views, key=lambda view: (not view.active, view.person_id)))

    @requires(Action.MANAGE_PEOPLE)
    def units(self) -> tuple[str, ...]:
        """Return the units of the last import."""
        with self._database.read() as uow:
            return uow.units.all()

    @operator_only
    def find(self, login: str) -> AccountView:
        """Return a person by login, whatever the source, or by name; raise NotFoundError if there is none."""
        people = self.all()
        found = [view for view in people if view.login == fold(login)] or [v for v in people if v.name == login]
        if not found:
            raise NotFoundError(f"There is no person with login or name '{login}'. See 'alertreview account list'.")
        return found[0]

    @requires(Action.MANAGE_PEOPLE)
    def create(
        self,
        name: str,
        role: Role,
        *,
        login: str = "",
        source: SignInSource = SignInSource.LOCAL,
        units: Collection[str] | None = None,
        further_roles: Collection[Role] = (),
        actor: str = COMMAND_LINE,
    ) -> str:
        """Create an account and return the one-time code for the first sign-in, shown once; empty for external sign-in.

        An existing person of that name who has no account gets it and keeps all judgments. Without a login, the name is
        the login; without units, the person sees patients of all of them; rights of several roles add up. Raise
        InvalidInputError if name or login cannot be used, ConflictError if the person has an account or the login is
        taken.
        """
        name, login = _checked_name(name), _checked_name(fold(login or name))
        now = self._clock()
        code = new_code() if source is SignInSource.LOCAL else ""
        with self._database.write() as uow:
            person = uow.people.by_name(name)
            if person is None:
                person = uow.people.add(name, role, created_at=now)
                person = uow.people.change(person.id, role=role, active=True, further_roles=further_roles)
                uow.audit.append(now, actor, "person added", f"person {person.id}", {"role": role_words(person.roles)})
            elif uow.accounts.get(person.id) is None:
                self._change(uow, person, actor, role=role, active=True, further_roles=further_roles)
            uow.accounts.add(
                Account(
                    person_id=person.id,
                    source=source,
                    login=login,
                    password_hash=None,
                    code_hash=code_hash(code) if code else None,
                    code_expires_at=now + CODE_LASTS if code else None,
                    failures=0,
                    locked_until=None,
                    created_at=now,
                )
            )
            uow.units.give(person.id, units)
            details = {"source": source.value, "role": role_words({role, *further_roles}), "units": _units_text(units)}
            uow.audit.append(now, actor, "account created", f"person {person.id}", details)
            uow.commit()
        return code

    @operator_only
    def owner_code(self, name: str) -> str:
        """Return a new one-time code of the owner of a site where nobody else has an account; empty for other sites.

        The owner, created if missing, holds every role. Once somebody has an account of her own, or the owner a
        password, everybody signs in; a site with simulated patients alone needs no owner, because its visitors need no
        account.
        """
        with self._database.read() as uow:
            accounts = uow.accounts.all()
            if uow.snapshots.are_a_demonstration() or not all(map(is_owner_without_password, accounts)):
                return ""
        if accounts:
            return self.reset(accounts[0].person_id)
        return self.create(name, Role.ADMINISTRATOR, login=OWNER_LOGIN, further_roles=tuple(Role))

    @requires(Action.MANAGE_PEOPLE)
    def reset(self, whom_id: PersonId, *, actor: str = COMMAND_LINE) -> str:
        """Return a new one-time code; the password becomes invalid, the lock is lifted, every session ends.

        Raise RefusedError if the person has no account with a password here.
        """
        code, now = new_code(), self._clock()
        with self._database.write() as uow:
            account = uow.accounts.get(whom_id)
            if account is None or account.source is not SignInSource.LOCAL:
                raise RefusedError(f"Person {whom_id} has no password here to reset.")
            uow.accounts.set_code(whom_id, code_hash(code), now + CODE_LASTS)
            n_ended = uow.sessions.end_all(whom_id, now, "account reset")
            uow.audit.append(now, actor, "one-time code given", f"person {whom_id}", {"sessions ended": n_ended})
            uow.commit()
        throttle_of(self._database, self._clock).forget(whom_id)
        return code

    @requires(Action.MANAGE_PEOPLE)
    def set_role(
        self,
        whom_id: PersonId,
        role: Role,
        *,
        further_roles: Collection[Role] = (),
        actor: str = COMMAND_LINE,
        reason: str = "",
    ) -> None:
        """Change the roles of a person, from the next action on; rights add up.

        Raise RefusedError if it is one's own, or the site would be left without an administrator.
        """
        with self._database.write() as uow:
            person = uow.people.get(whom_id)
            self._change(
                uow, person, actor, role=role, active=person.active, further_roles=further_roles, reason=reason
            )
            uow.commit()

    @requires(Action.MANAGE_PEOPLE)
    def set_active(self, whom_id: PersonId, active: bool, *, actor: str = COMMAND_LINE, reason: str = "") -> None:
        """Deactivate a person, which ends every session at once, or reactivate; nobody is ever deleted.

        Raise RefusedError if it is oneself, or the site would be left without an administrator.
        """
        with self._database.write() as uow:
            person = uow.people.get(whom_id)
            further = person.roles - {person.role}
            self._change(uow, person, actor, role=person.role, active=active, further_roles=further, reason=reason)
            if not active:
                uow.sessions.end_all(whom_id, self._clock(), "deactivated")
            uow.commit()

    @requires(Action.MANAGE_PEOPLE)
    def set_units(self, whom_id: PersonId, units: Collection[str] | None, *, actor: str = COMMAND_LINE) -> None:
        """Limit a person to units, None for all of them, from the next action on."""
        with self._database.write() as uow:
            uow.people.get(whom_id)
            before = uow.units.of_person(whom_id)
            if before == (None if units is None else frozenset(units)):
                return
            uow.units.give(whom_id, units)
            details = {"before": _units_text(before), "after": _units_text(units)}
            uow.audit.append(self._clock(), actor, "units changed", f"person {whom_id}", details)
            uow.commit()

    @requires(Action.MANAGE_PEOPLE)
    def sessions(self) -> tuple[SessionView, ...]:
        """Return the open sessions, most recently seen first."""
        now = self._clock()
        with self._database.read() as uow:
            names = {person.id: person.name for person in uow.people.all() if person.active}
            return tuple(
                SessionView(
                    row.id,
                    row.person_id,
                    names[row.person_id],
                    row.source,
                    row.created_at,
                    row.last_seen_at,
                    row.browser,
                )
                for row in uow.sessions.open(seen_since=now - IDLE, now=now)
                if row.person_id in names and holds(row, now)
            )

    @requires(Action.MANAGE_PEOPLE)
    def end_sessions(self, whom_id: PersonId, *, actor: str = COMMAND_LINE) -> int:
        """End every session of a person and return their number."""
        now = self._clock()
        with self._database.write() as uow:
            uow.people.get(whom_id)
            n_ended = uow.sessions.end_all(whom_id, now, "ended by an administrator")
            uow.audit.append(now, actor, "sessions ended", f"person {whom_id}", {"sessions": n_ended})
            uow.commit()
        return n_ended

    @requires(Action.MANAGE_PEOPLE)
    def failures(self, limit: int = 50) -> tuple[SignInFailure, ...]:
        """Return failed sign-ins and locks, newest first."""
        with self._database.read() as uow:
            names = {f"person {person.id}": person.name for person in uow.people.all()}
            rows = [row for action in FAILURES for row in uow.audit.latest(limit, action=action)]
        rows.sort(key=lambda row: row.sequence, reverse=True)
        return tuple(
            SignInFailure(row.moment, row.action, names.get(row.object, row.object), _way(row.details))
            for row in rows[:limit]
        )

    def _change(
        self,
        uow: UnitOfWork,
        person: Person,
        actor: str,
        *,
        role: Role,
        active: bool,
        further_roles: Collection[Role] = (),
        reason: str = "",
    ) -> None:
        roles = frozenset((role, *further_roles))
        if (person.role, person.roles, person.active) == (role, roles, active):
            return
        if actor == f"person {person.id}":
            raise RefusedError("You cannot change your own role or account. Ask another administrator.")
        uow.people.change(person.id, role=role, active=active, further_roles=further_roles)
        leaves = Role.ADMINISTRATOR in person.roles and person.active and not (Role.ADMINISTRATOR in roles and active)
        if leaves and uow.accounts.get(person.id) is not None and uow.accounts.n_active_administrators() == 0:
            raise RefusedError(f"Person {person.id} is the last administrator. Name another one first.")
        now, thing = self._clock(), f"person {person.id}"
        if person.roles != roles:
            details = {"before": role_words(person.roles), "after": role_words(roles), "reason": reason}
            uow.audit.append(now, actor, "role changed", thing, details)
        if person.active != active:
            done = "person activated" if active else "person deactivated"
            uow.audit.append(now, actor, done, thing, {"reason": reason})


def _checked_name(name: str) -> str:
    words = " ".join(name.split())
    if not words or len(words) > LONGEST_NAME or not words.isprintable():
        raise InvalidInputError(f"A name or login has 1 to {LONGEST_NAME} printable characters. Give another.")
    return words


def _units_text(units: Collection[str] | None) -> Any:
    return "all" if units is None else sorted(units)


def _way(details: str) -> str:
    return str(json.loads(details).get("way", ""))


def _view(
    uow: UnitOfWork,
    person: Person,
    account: Account | None,
    now: datetime,
    n_sessions: int,
    closed_until: datetime | None,
) -> AccountView:
    if account is not None and account.locked_until is not None and account.locked_until > now:
        closed_until = max(account.locked_until, closed_until or account.locked_until)
    units = uow.units.of_person(person.id)
    return AccountView(
        person_id=person.id,
        name=person.name,
        role=person.role,
        active=person.active,
        simulated=person.simulated,
        login=account.login if account else "",
        source=account.source if account else None,
        units=None if units is None else tuple(sorted(units)),
        awaits_code=account is not None and account.code_hash is not None,
        locked_until=closed_until,
        n_sessions=n_sessions,
        further_roles=person.roles - {person.role},
    )
