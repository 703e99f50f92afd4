"""Lets a command that is told to stop end as it does after Ctrl+C: locks are given back, temporary files go."""

import signal
from types import FrameType

EXIT_INTERRUPTED = 130
"""What a shell reports for a program that Ctrl+C ended."""
EXIT_TERMINATED = 143
"""What a shell reports for a program that SIGTERM ended."""


class Terminated(BaseException):
    """The program was told to stop; like KeyboardInterrupt it is no error that anybody should handle on the way."""


def stop_in_order() -> None:
    """Raise Terminated at SIGTERM from now on; whoever had the signal ignored or handled before keeps it so."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the program at once
    raise Terminated
