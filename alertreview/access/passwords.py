"""Passwords and other secrets: made, checked and hashed, and never logged."""

import hmac
import re
import secrets
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from alertreview.access.sessions import secret_hash
from core.errors import InvalidInputError

SHORTEST = 12
LONGEST = 200
FEWEST_DIFFERENT = 5
FEWEST_UNGUESSED = 6
"""Characters beside common words, keys in a row, years and repetitions."""
_COMMON = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").split()
"""Words that people choose and words of this program's surroundings, longest first; our own list."""
_YEAR = re.compile(r"(19|20)\d\d")
_REPEATED = re.compile(r"(.{1,6}?)\1+")
_SHORTEST_RUN = 3
_SHORTEST_WORD = 4
"""Of the site's names: shorter ones are parts of many words."""
_FORWARDS = (
    "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn",
    "abcdefghijklmnopqrstuvwxyz", "01234567890", "1qaz2wsx3edc4rfv5tgb6yhn7ujm", "1q2w3e4r5t6y7u8i9o0p",
    "qaywsxedcrfvtgbzhnujm", "!@#$%^&*()", "!\"§$%&/()=",
)  # fmt: skip
_ROWS = (*_FORWARDS, *(row[::-1] for row in _FORWARDS))
_AS_LETTERS = str.maketrans("013457@$!|", "oieastasil")
"""Digits and signs in the place of letters: p4ssw0rd."""
CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_GROUPS, GROUP_LENGTH = 4, 4


class Passwords:
    """Argon2id hashing, by default with the low-memory parameters of RFC 9106; tests use cheaper ones."""

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


def check_password(password: str, *known: str, site: Iterable[str] = ()) -> None:
    """Raise InvalidInputError if a password is too easy to guess.

    Common words, words of the site's names, runs of the keyboard and repetitions count as one character each, as
    guessing programs try them first (NIST SP 800-63B, 3.1.1.2). It must not contain what is `known`: login and name of
    the person.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInputError(
            f"A password has {SHORTEST} to {LONGEST} characters; a sentence of a few words is best."
        )
    if len(set(password)) < FEWEST_DIFFERENT:
        raise InvalidInputError(f"A password needs at least {FEWEST_DIFFERENT} different characters.")
    folded, words = password.casefold(), _common_words(site)
    if any(name and name.casefold() in folded for name in known):
        raise InvalidInputError("A password must not contain the login or the name. Choose another.")
    if (
        min(_unguessed(folded, words), _unguessed(_without_runs(_YEAR.sub(" ", folded)).translate(_AS_LETTERS), words))
        < FEWEST_UNGUESSED
    ):
        raise InvalidInputError(
            "This password is made of common words, names of this site, keyboard sequences or repetitions, which are "
            "guessed first. A sentence of a few words is best."
        )


def _common_words(names: Iterable[str]) -> re.Pattern[str]:
    """Return what finds common words and the words of names, the longest first."""
    words = {word for name in names for word in re.split(r"[\W\d_]+", name.casefold()) if len(word) >= _SHORTEST_WORD}
    return re.compile("|".join([*sorted(map(re.escape, words), key=len, reverse=True), *_COMMON]))


def _unguessed(password: str, common: re.Pattern[str]) -> int:
    """Count what is left of a password when each common part is one character."""
    rest, n_parts = common.subn(" ", password)
    rest = _REPEATED.sub(r"\1", _YEAR.sub(" ", _without_runs(rest)))
    return len(re.sub(r"[\s\W_]+", "", rest)) + min(n_parts, 1)


def _without_runs(password: str) -> str:
    """Replace keys in a row, of the keyboard, the alphabet or the digits, forwards or backwards, by one space."""
    kept, at = "", 0
    while at < len(password):
        run = max((_length_of_run(password, at, row) for row in _ROWS), default=0)
        kept, at = (kept + " ", at + run) if run >= _SHORTEST_RUN else (kept + password[at], at + 1)
    return kept


def _length_of_run(password: str, at: int, row: str) -> int:
    length = 0
    while at + length < len(password) and password[at : at + length + 1] in row:
        length += 1
    return length


def new_code() -> str:
    """Return a one-time code of 80 random bits that can be read out and typed."""
    groups = ("".join(secrets.choice(CODE_ALPHABET) for _ in range(GROUP_LENGTH)) for _ in range(CODE_GROUPS))
    return "-".join(groups)


def code_hash(code: str) -> str:
    """Return the hash of a one-time code; spaces, dashes and case make no difference."""
    return secret_hash("".join(character for character in code.upper() if character in CODE_ALPHABET))


def same_secret(one: str, other: str) -> bool:
    """Return whether two secrets are equal, in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
