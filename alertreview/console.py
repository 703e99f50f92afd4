"""How the command line talks: progress with time left, figures for people, and one line for an error."""

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from alertreview.callbacks import Progress


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Yield a callback (done, total) that draws a bar with the time left, or nothing without a terminal."""
    bar = tqdm(desc=title, unit="", disable=None, leave=False, dynamic_ncols=True, file=sys.stderr)

    def report(done: int, total: int) -> None:
        if bar.total != total:
            bar.total = total
        bar.update(done - bar.n)

    try:
        yield report
    finally:
        bar.close()


def write_technical_log(log_file: Path, error: BaseException) -> None:
    """Append where an unexpected error came from; the message itself may hold patient data and is left out."""
    logger = logging.getLogger("alertreview.technical")
    handler = logging.FileHandler(log_file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    try:
        frames = traceback.extract_tb(error.__traceback__)
        places = "\n".join(f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames)
        logger.error("%s\n%s", type(error).__name__, places)
    finally:
        logger.removeHandler(handler)
        handler.close()
