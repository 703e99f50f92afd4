"""Passwords and other secrets: made, checked and hashed, and never logged."""

import hashlib
import hmac
import secrets
from functools import cached_property

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from core.errors import InvalidInputError

SHORTEST = 12
LONGEST = 200
FEWEST_DIFFERENT = 5
CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_GROUPS, GROUP_LENGTH = 4, 4


class Passwords:
    """Argon2id hashing.

    Parameters
    ----------
    hasher : PasswordHasher or None
        None takes the low-memory parameters of RFC 9106; tests use cheaper ones.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()

    @cached_property
    def _nobodys(self) -> str:
        """Hash of an unknown password, checked for unknown logins so that they take as long."""
        return self._hasher.hash(secrets.token_urlsafe(32))

    def hash(self, password: str) -> str:
        """Return the salted hash of a password."""
        return self._hasher.hash(password)

    def matches(self, stored: str | None, password: str) -> bool:
        """Return whether a password matches a stored hash, in the same time if there is none."""
        try:
            nobodys = self._nobodys  # made before the first comparison, which would otherwise take longer
            self._hasher.verify(stored or nobodys, password[: 4 * LONGEST])
        except (VerificationError, InvalidHashError):
            return False
        return stored is not None


def check_password(password: str, *known: str) -> None:
    """Raise InvalidInputError if a password is too easy to guess; `known` are login and name of the person."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInputError(f"A password has {SHORTEST} to {LONGEST} characters; a sentence of some words is best.")
    if len(set(password)) < FEWEST_DIFFERENT:
        raise InvalidInputError(f"A password has at least {FEWEST_DIFFERENT} different characters.")
    folded = password.casefold()
    if any(name and name.casefold() in folded for name in known):
        raise InvalidInputError("A password does not hold the login or the name. Choose another.")


def new_token() -> str:
    """Return a secret of 256 random bits."""
    return secrets.token_urlsafe(32)


def new_code() -> str:
    """Return a one-time code of 80 random bits that can be read out and typed."""
    groups = ("".join(secrets.choice(CODE_ALPHABET) for _ in range(GROUP_LENGTH)) for _ in range(CODE_GROUPS))
    return "-".join(groups)


def code_hash(code: str) -> str:
    """Return the hash of a one-time code; spaces, dashes and case make no difference."""
    return secret_hash("".join(character for character in code.upper() if character in CODE_ALPHABET))


def secret_hash(secret: str) -> str:
    """Return the hash of a random secret, which needs no salt."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def same_secret(one: str, other: str) -> bool:
    """Return whether two secrets are equal, in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
