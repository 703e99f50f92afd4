"""Passwords and other secrets: how they are made, checked and hashed; nothing here is ever logged."""

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
    """Hashes passwords with Argon2id.

    Parameters
    ----------
    hasher : PasswordHasher or None
        None takes the parameters of RFC 9106 for servers with little memory; tests take cheaper ones.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()

    @cached_property
    def _nobodys(self) -> str:
        """Hash of a password that nobody knows: an unknown login is checked against it, so that it takes as long."""
        return self._hasher.hash(secrets.token_urlsafe(32))

    def hash(self, password: str) -> str:
        """Hash a password with a salt of its own."""
        return self._hasher.hash(password)

    def matches(self, stored: str | None, password: str) -> bool:
        """Return whether a password is the stored one; takes as long when there is none."""
        try:
            nobodys = self._nobodys  # made before the first comparison, or the first one would tell by its time
            self._hasher.verify(stored or nobodys, password[: 4 * LONGEST])
        except (VerificationError, InvalidHashError):
            return False
        return stored is not None


def check_password(password: str, *known: str) -> None:
    """Refuse a password that is too easy to guess.

    Parameters
    ----------
    password : str
    *known : str
        What others know of the person: login, name.

    Raises
    ------
    InvalidInputError
        The text names the rule and never the password.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInputError(f"A password has {SHORTEST} to {LONGEST} characters; a sentence of some words is best.")
    if len(set(password)) < FEWEST_DIFFERENT:
        raise InvalidInputError(f"A password has at least {FEWEST_DIFFERENT} different characters.")
    folded = password.casefold()
    if any(name and name.casefold() in folded for name in known):
        raise InvalidInputError("A password does not hold the login or the name. Choose another.")


def new_token() -> str:
    """Make the secret of a session, 256 bits."""
    return secrets.token_urlsafe(32)


def new_code() -> str:
    """Make a one-time code that can be read out and typed, 80 bits."""
    groups = ("".join(secrets.choice(CODE_ALPHABET) for _ in range(GROUP_LENGTH)) for _ in range(CODE_GROUPS))
    return "-".join(groups)


def code_hash(code: str) -> str:
    """Hash a one-time code as it was typed: spaces, dashes and small letters make no difference."""
    return secret_hash("".join(character for character in code.upper() if character in CODE_ALPHABET))


def secret_hash(secret: str) -> str:
    """Hash a secret that was drawn at random and needs no salt."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def same_secret(one: str, other: str) -> bool:
    """Compare two secrets in a time that says nothing."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
