"""Names of places in a list of alerts, for the page that follows: by key, never by offset."""

from datetime import UTC, datetime

from core.errors import InvalidInputError
from core.vocabulary import Decision
from db.models import ListedAlert

MOST_DIGITS = 11
"""Of a moment in a cursor, in seconds."""


def cursor_of(record: ListedAlert) -> str:
    """Name an alert's place in the order of ranks, for the page after it."""
    return f"{record.rank}-{record.decision.value}"


def day_cursor_of(record: ListedAlert) -> str:
    """Name an alert's place in the order of days, for the page after it."""
    return f"{record.snapshot_at.timestamp():.0f}-{cursor_of(record)}"


def read_day_cursor(cursor: str) -> tuple[datetime, int, Decision]:
    """Read what `day_cursor_of` wrote; raise InvalidInputError if it was not written there."""
    moment, _, place = cursor.partition("-")
    rank, decision = read_cursor(place)
    if not moment.isdigit() or len(moment) > MOST_DIGITS:
        read_cursor("")
    return datetime.fromtimestamp(int(moment), UTC), rank, decision


def read_cursor(cursor: str) -> tuple[int, Decision]:
    """Read what `cursor_of` wrote; raise InvalidInputError if it was not written there."""
    rank, _, decision = cursor.partition("-")
    try:
        return int(rank), Decision(decision)
    except ValueError:
        raise InvalidInputError(
            "The link to this page of the worklist is damaged: its place in the list cannot be read. "
            "Open the first page."
        ) from None
