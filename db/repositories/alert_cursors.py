"""Names of places in a list of alerts, for the page that follows."""

import re
from typing import NamedTuple

from core.errors import InvalidInputError
from core.vocabulary import Decision

_CURSOR = re.compile(rf"(-?\d{{1,11}})\.(\d{{1,11}})\.(\d{{1,11}})\.({'|'.join(Decision)})", re.ASCII)


class Place(NamedTuple):
    """Where an alert stands; places sort as their list does."""

    day: int
    """The moment in seconds, negative so that the newest is first; 0 in a list that does not go by day."""
    turn: int
    decision: str
    rank: int


def cursor_of(place: Place) -> str:
    """Name a place, for the page after it."""
    return f"{place.day}.{place.turn}.{place.rank}.{place.decision}"


def read_cursor(cursor: str) -> Place:
    """Read what `cursor_of` wrote; raise InvalidInputError if it was not written there."""
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidInputError(
            "The link to this page of the worklist is damaged: its place in the list cannot be read. "
            "Open the first page."
        )
    day, turn, rank, decision = found.groups()
    return Place(int(day), int(turn), decision, int(rank))
