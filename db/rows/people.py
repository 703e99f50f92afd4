"""Rows of people."""

from dataclasses import dataclass
from datetime import datetime

from core.vocabulary import Role


@dataclass(frozen=True, slots=True)
class PersonRow:
    """Somebody who uses, or used, the dashboard."""

    id: int
    name: str
    role: Role
    simulated: bool
    active: bool
    created_at: datetime
    all_units: bool = True
