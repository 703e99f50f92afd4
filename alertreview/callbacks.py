"""Functions that use cases are given: the clock, and whoever hears how far they are."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]
"""Gives the time now, aware."""

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many steps are done, of how many."""
