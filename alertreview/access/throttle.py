"""Limits on attempts to sign in, kept in the memory of the process: by address, for everybody, by account and address.

Asked before a password is hashed, because hashing takes 64 MB and tens of milliseconds.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from alertreview.settings import Clock
from core.vocabulary import PersonId
from db.database import Database

FAILURES_OF_ADDRESS = 5
"""Failed attempts on one account from one address that close it there."""
LOCK = timedelta(minutes=15)
TOO_MANY = "Too many sign-in attempts. Wait a minute and try again."
QUIET = timedelta(minutes=10)
"""A burst is over when no attempt was refused for so long."""
MOST_REMEMBERED = 10_000
"""Addresses, and accounts at addresses, kept in memory; those not heard of for longest are forgotten."""
_KNOWN_FOR = timedelta(hours=12)


@dataclass(frozen=True)
class Rate:
    """So many attempts at once, and one more each so many seconds."""

    at_once: int
    seconds: float


OF_ADDRESS = Rate(20, 3.0)
OF_ALL = Rate(40, 1.0)
"""Of all addresses together from which nobody has signed in lately: a hash takes 0.1 to 0.2 s of processor time."""


@dataclass
class _Bucket:
    left: float
    at: datetime

    def take(self, rate: Rate, now: datetime) -> bool:
        passed = max(0.0, (now - self.at).total_seconds())
        self.left, self.at = min(float(rate.at_once), self.left + passed / rate.seconds), now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


@dataclass
class _Address:
    bucket: _Bucket
    signed_in_at: datetime | None = None
    refused_at: datetime | None = None

    def signed_in_lately(self, now: datetime) -> bool:
        return self.signed_in_at is not None and now - self.signed_in_at <= _KNOWN_FOR


@dataclass
class _Failures:
    n: int = 0
    locked_until: datetime | None = None


@dataclass(frozen=True)
class LockedPair:
    """An account that is closed to one address."""

    person_id: PersonId
    address: str
    until: datetime


class Throttle:
    """What is remembered of attempts to sign in; for many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mutex = Lock()
        self._all = _Bucket(OF_ALL.at_once, clock())
        self._addresses: LRUCache[str, _Address] = LRUCache(MOST_REMEMBERED)
        self._failures: LRUCache[tuple[PersonId, str], _Failures] = LRUCache(MOST_REMEMBERED)

    def admit(self, address: str) -> tuple[bool, bool]:
        """Count an attempt of an address.

        Return whether it may be looked at, and whether the refusal is the first of a burst.
        """
        now = self._clock()
        with self._mutex:
            known = self._address(network_of(address), now)
            may = known.bucket.take(OF_ADDRESS, now)
            if may and not known.signed_in_lately(now):
                may = self._all.take(OF_ALL, now)
            begins = not may and (known.refused_at is None or now - known.refused_at > QUIET)
            if not may:
                known.refused_at = now
        return may, begins

    def knows(self, address: str) -> bool:
        """Return whether somebody signed in from an address lately."""
        now = self._clock()
        with self._mutex:
            found = self._addresses.get(network_of(address))
            return found is not None and found.signed_in_lately(now)

    def count(self, person_id: PersonId, address: str) -> tuple[bool, bool]:
        """Count an attempt on an account from an address, before its password is looked at.

        Return whether it may be looked at, and whether it is the last one, so that failing closes the account to the
        address.
        """
        now, key = self._clock(), (person_id, network_of(address))
        with self._mutex:
            found = self._failures.setdefault(key, _Failures())
            if found.locked_until is not None and found.locked_until <= now:
                found.n, found.locked_until = 0, None
            if found.locked_until is not None:
                return False, False
            found.n += 1
            locks = found.n >= FAILURES_OF_ADDRESS
            if locks:
                found.locked_until = now + LOCK
        return True, locks

    def succeeded(self, person_id: PersonId, address: str) -> None:
        """Forget the failures of an account at an address, and remember the address as a good one."""
        now, network = self._clock(), network_of(address)
        with self._mutex:
            self._failures.pop((person_id, network), None)
            self._address(network, now).signed_in_at = now

    def forget(self, person_id: PersonId) -> None:
        """Open an account to every address."""
        with self._mutex:
            for key in [key for key in self._failures if key[0] == person_id]:
                del self._failures[key]

    def locked(self) -> list[LockedPair]:
        """Return the accounts that are closed to an address now."""
        now = self._clock()
        with self._mutex:
            return [
                LockedPair(person_id, address, found.locked_until)
                for (person_id, address), found in self._failures.items()
                if found.locked_until is not None and found.locked_until > now
            ]

    def _address(self, network: str, now: datetime) -> _Address:
        return self._addresses.setdefault(network, _Address(_Bucket(OF_ADDRESS.at_once, now)))


_SHARED: WeakKeyDictionary[Database, Throttle] = WeakKeyDictionary()


def throttle_of(database: Database, clock: Clock) -> Throttle:
    """Return the throttle of a database, shared by the services of a process."""
    return _SHARED.setdefault(database, Throttle(clock))


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, and of an IPv6 address the network that one customer has."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
