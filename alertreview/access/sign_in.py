"""Sign-in by a local password, by a one-time code, or by a login that a provider or proxy vouches for."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from alertreview.access.passwords import Passwords, check_password, code_hash, same_secret
from alertreview.access.sessions import begin, holds, secret_hash
from alertreview.access.throttle import LOCK, network_of, throttle_of
from alertreview.rights import Actor
from alertreview.settings import Clock
from core.errors import RefusedError, SignedOutError
from core.vocabulary import PersonId, SessionId, SignInSource
from db.database import Database
from db.models import Account, Person, SignInFlow
from db.unit_of_work import UnitOfWork

MOST_FAILURES = 100
"""Failures in a row from any addresses that close an account everywhere (NIST SP 800-63B, 3.2.2)."""
FLOW_LASTS = timedelta(minutes=10)
"""Time within which a browser must come back from the identity provider."""
WRONG = (
    "Login or password is wrong, or the account is locked: after five failures it stays locked for 15 minutes. "
    "An administrator can give a new one-time code."
)
"""One answer for every failure, so that nobody learns which logins exist."""
WRONG_CODE = (
    "Login and one-time code do not belong together, the code was used or is too old, or the account "
    "is locked for 15 minutes after five failures. An administrator can give a new code."
)
WRONG_LINK = (
    "This link was used, is too old, or belongs to another start of the dashboard. Start it again "
    "(alertreview dashboard) and use the link that it prints."
)


class SignIn:
    """Ways to sign in; each returns the token of a new session.

    Words of the site's `hosts` do not count in passwords.
    """

    def __init__(self, database: Database, passwords: Passwords, clock: Clock, hosts: Sequence[str] = ()) -> None:
        self._database = database
        self._passwords = passwords
        self._clock = clock
        self._hosts = hosts
        self.throttle = throttle_of(database, clock)

    def note_refused(self, address: str) -> None:
        """Write the audit row of a burst of attempts from an address, when `Throttle.admit` says that one begins."""
        with self._database.write() as uow:
            uow.audit.append(self._clock(), "sign-in", "sign-ins refused", f"address {network_of(address)}", {})
            uow.commit()

    def with_password(self, login: str, password: str, browser: str = "", address: str = "") -> str:
        """Sign in with login and password; failures close the account to the address that they come from.

        Raise RefusedError with the same text after the same work, whatever was wrong.
        """
        person = self._checked(login, password, address)
        with self._database.write() as uow:
            uow.accounts.forgive(person.id)
            token = begin(uow, person, SignInSource.LOCAL, browser, self._clock())
            uow.commit()
        return token

    def with_code(self, login: str, code: str, password: str, browser: str = "", address: str = "") -> str:
        """Use a one-time code: set the password and sign in.

        Raise InvalidInputError if the new password is too easy to guess, RefusedError if login and code do not belong
        together, or the code was used, is too old or the account locked.
        """
        check_password(password, login, site=self._site_names())
        return self._use_code(login, code, password, browser, address, WRONG_CODE)

    def _site_names(self) -> list[str]:
        with self._database.read() as uow:
            latest = uow.snapshots.latest()
            return [*self._hosts, *uow.units.all(), latest.mapping_name if latest else ""]

    def with_link(self, login: str, code: str, browser: str = "", address: str = "") -> str:
        """Use a one-time code from a link, without setting a password; refused as in `with_code`."""
        return self._use_code(login, code, None, browser, address, WRONG_LINK)

    def _use_code(self, login: str, code: str, password: str | None, browser: str, address: str, refusal: str) -> str:
        """Spend a one-time code and sign in; with a password, set it."""
        now = self._clock()
        account, is_open, locks = self._attempt(login, address)
        stored = account.code_hash if account is not None and is_open and _code_holds(account, now) else None
        matches = same_secret(stored or "", code_hash(code))
        password_hash = None if password is None else self._passwords.hash(password)
        with self._database.write() as uow:
            person = None if account is None else uow.people.get(account.person_id)
            if (
                person is None
                or not person.active
                or stored is None
                or not matches
                or not uow.accounts.use_code(person.id, stored, password_hash)
            ):
                _note_failure(uow, now, account, "link" if password is None else "one-time code", locks=locks)
                uow.commit()
                raise RefusedError(refusal)
            if password is not None:
                uow.sessions.end_all(person.id, now, "password set")
                thing, details = f"person {person.id}", {"by": "one-time code"}
                uow.audit.append(now, thing, "password set", thing, details)
            token = begin(uow, person, SignInSource.LOCAL, browser, now)
            uow.commit()
        self.throttle.succeeded(person.id, address)
        return token

    def vouched(self, source: SignInSource, login: str, browser: str = "") -> str:
        """Sign in a person whom an identity provider or a proxy vouches for.

        Raise RefusedError if no active person has that login from that source.
        """
        now = self._clock()
        with self._database.write() as uow:
            account = uow.accounts.by_login(source, fold(login))
            person = None if account is None else uow.people.get(account.person_id)
            if person is None or not person.active:
                _note_failure(uow, now, account, source.value)
                uow.commit()
                raise RefusedError(
                    "Your sign-in was accepted, but you have no account here. Ask an administrator of this site."
                )
            token = begin(uow, person, source, browser, now)
            uow.commit()
        return token

    def change_password(self, actor: Actor, old: str, new: str) -> None:
        """Change the actor's password; the actor's other sessions end.

        Raise RefusedError if the old password is wrong or the person signs in elsewhere, InvalidInputError if the new
        one is too easy to guess.
        """
        account = self._own(actor)
        check_password(new, account.login, actor.name, site=self._site_names())
        person = self._checked(account.login, old)
        now = self._clock()
        with self._database.write() as uow:
            uow.accounts.forgive(person.id)
            uow.accounts.set_password(person.id, self._passwords.hash(new))
            uow.sessions.end_all(person.id, now, "password changed", but=actor.session_id)
            uow.audit.append(now, f"person {person.id}", "password set", f"person {person.id}", {"by": "password"})
            uow.commit()

    def confirm(self, actor: Actor, password: str) -> None:
        """Confirm the credentials of a session for a signature.

        Raise RefusedError if the password is wrong, or the person signs in elsewhere.
        """
        account = self._own(actor)
        person = self._checked(account.login, password)
        with self._database.write() as uow:
            uow.accounts.forgive(person.id)
            _confirm(uow, actor.session_id, person.id, self._clock())
            uow.commit()

    def confirm_vouched(self, session_id: SessionId, source: SignInSource, login: str) -> None:
        """Confirm the credentials of a session that an identity provider has just asked for.

        Raise RefusedError if it vouches for another person.
        """
        now = self._clock()
        with self._database.write() as uow:
            account = uow.accounts.by_login(source, fold(login))
            session = uow.sessions.get(session_id)
            if session is None or not holds(session, now):
                raise SignedOutError("You are signed out. Sign in again.")
            if account is None or session.person_id != account.person_id:
                raise RefusedError("You signed in there as somebody else; nothing was confirmed.")
            _confirm(uow, session_id, account.person_id, now)
            uow.commit()

    def keep_flow(self, state: str, nonce: str, verifier: str, target: str, confirms: SessionId | None) -> None:
        """Store a flow for when the browser comes back from the identity provider."""
        now = self._clock()
        with self._database.write() as uow:
            uow.sessions.keep_flow(
                SignInFlow(
                    state_hash=secret_hash(state),
                    nonce=nonce,
                    code_verifier=verifier,
                    target=target,
                    confirms_session_id=confirms,
                    created_at=now,
                ),
                drop_before=now - FLOW_LASTS,
            )
            uow.commit()

    def take_flow(self, state: str) -> SignInFlow | None:
        """Return and delete a flow; None if it is unknown, used or too old."""
        with self._database.write() as uow:
            found = uow.sessions.take_flow(secret_hash(state), since=self._clock() - FLOW_LASTS)
            uow.commit()
        return found

    def require_credentials(self, person_id: PersonId, ask: Callable[[], str]) -> None:
        """Require the password of a person who acts at the command line, once the site has accounts.

        The password is asked for only if it is needed. Raise RefusedError if it is wrong, or the person has none here.
        """
        with self._database.read() as uow:
            account = uow.accounts.get(person_id)
            if account is None and not uow.accounts.exist():
                return
        if account is None or account.source is not SignInSource.LOCAL:
            raise RefusedError(f"Person {person_id} has no password here. Sign on the Reports page.")
        person = self._checked(account.login, ask())
        with self._database.write() as uow:
            uow.accounts.forgive(person.id)
            thing = f"person {person_id}"
            uow.audit.append(self._clock(), thing, "credentials confirmed", "command line", {})
            uow.commit()

    def _own(self, actor: Actor) -> Account:
        with self._database.read() as uow:
            account = uow.accounts.get(actor.person_id)
        if account is None or account.source is not SignInSource.LOCAL:
            raise RefusedError("You have no password here: you sign in at your hospital's sign-in page.")
        return account

    def _checked(self, login: str, password: str, address: str = "") -> Person:
        """Return the person of a login and password, after the same work whatever is wrong."""
        account, is_open, locks = self._attempt(login, address)
        stored = account.password_hash if account is not None and is_open else None
        matches = self._passwords.matches(stored, password)
        now = self._clock()
        with self._database.write() as uow:
            person = None if account is None else uow.people.get(account.person_id)
            if person is not None and person.active and matches:
                self.throttle.succeeded(person.id, address)
                return person
            _note_failure(uow, now, account, "password", locks=locks)
            uow.commit()
        raise RefusedError(WRONG)

    def _attempt(self, login: str, address: str) -> tuple[Account | None, bool, bool]:
        """Count an attempt before anything is compared, so that of many at once no more than five are checked.

        Return the account, whether the attempt may be checked, and whether it is the last from this address.
        """
        now = self._clock()
        with self._database.write() as uow:
            account = uow.accounts.by_login(SignInSource.LOCAL, fold(login))
            if account is None:
                return None, False, False
            if account.locked_until is not None:
                if account.locked_until > now:
                    return account, False, False
                uow.accounts.forgive(account.person_id)
            is_open, locks = self.throttle.count(account.person_id, address)
            if not is_open:
                return account, False, False
            uow.accounts.count_attempt(account.person_id, most=MOST_FAILURES, locked_until=now + LOCK)
            uow.commit()
        return account, True, locks


def fold(login: str) -> str:
    """Return a login as it is stored: case-folded, without outer spaces and unprintable characters."""
    return "".join(character for character in login.strip().casefold() if character.isprintable())


def _confirm(uow: UnitOfWork, session_id: SessionId, person_id: PersonId, now: datetime) -> None:
    uow.sessions.confirm(session_id, now)
    uow.audit.append(now, f"person {person_id}", "credentials confirmed", f"session {session_id}", {})


def _code_holds(account: Account, now: datetime) -> bool:
    return account.code_expires_at is not None and account.code_expires_at > now


def _note_failure(uow: UnitOfWork, now: datetime, account: Account | None, way: str, *, locks: bool = False) -> None:
    """Write a failed sign-in to the audit trail, without the login, which may be a password typed there."""
    thing = "unknown account" if account is None else f"person {account.person_id}"
    uow.audit.append(now, "sign-in", "sign-in failed", thing, {"way": way})
    if account is None or account.source is not SignInSource.LOCAL:
        return
    counted = uow.accounts.get(account.person_id)
    everywhere = counted is not None and counted.failures == MOST_FAILURES and account.failures < MOST_FAILURES
    if counted is not None and (locks or everywhere):
        details = {"failures": counted.failures, "for": "every address" if everywhere else "one address"}
        uow.audit.append(now, "sign-in", "account locked", thing, details)
