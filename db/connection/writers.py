"""Counts the transactions that write, so that a program that is to end lets them end first."""

import threading

from core.errors import DatabaseUnavailableError

_ENDING = "The program is being stopped, so nothing of this change was kept. Do it again when it is back."


class Writers:
    """Who is writing in this process; after `finish` nobody begins."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._n_at_work = 0
        self._is_ending = False

    def begin(self) -> None:
        """Count one more; raise DatabaseUnavailableError if the program is being stopped."""
        with self._changed:
            if self._is_ending:
                raise DatabaseUnavailableError(_ENDING)
            self._n_at_work += 1

    def end(self) -> None:
        """Count one less."""
        with self._changed:
            self._n_at_work -= 1
            self._changed.notify_all()

    def finish(self, within_seconds: float) -> bool:
        """Refuse new writers and wait for the active ones; return whether all have ended."""
        with self._changed:
            self._is_ending = True
            return self._changed.wait_for(lambda: self._n_at_work == 0, within_seconds)
