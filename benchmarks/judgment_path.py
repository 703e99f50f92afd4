"""The path of one judgment, from a page's call to its row and back, and of the alert page: files and Python calls.

A reader is signed in to a small demonstration, and nothing is looked up for the first time. Counted are calls of
Python functions in the four packages, comprehensions and resumed generators included. Of the alert page only what it
asks of the application counts, not how it is drawn. ``--calls`` prints every call in order.
"""

import argparse
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from unittest.mock import patch

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from alertreview.access.sessions import begin
from alertreview.application import Application, open_application
from alertreview.cli.demo import build_demo
from alertreview.settings import load_settings
from core.vocabulary import Answer, SignInSource
from dashboard import context
from tests.support.demo_site import SMALL

ROOT = Path(__file__).resolve().parents[1]
STUDY = "demo"
BELOW_THE_PAGE = ("alertreview", "db", "core")


@dataclass
class Followed:
    """Calls of Python functions in some packages, in order: file and qualified name."""

    packages: tuple[str, ...] = (*BELOW_THE_PAGE, "dashboard")
    calls: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call; a profile function of `sys.setprofile`."""
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(tuple(f"{ROOT}/{package}/" for package in self.packages)):
            self.calls.append((file.removeprefix(f"{ROOT}/"), frame.f_code.co_qualname))

    @property
    def files(self) -> Counter[str]:
        """Number of calls by file, in the order of first calls."""
        return Counter(file for file, _ in self.calls)

    @property
    def n_returns(self) -> int:
        """How often a call goes back into a file that was left before."""
        seen: set[str] = set()
        last, n_returns = "", 0
        for file, _ in self.calls:
            n_returns += file != last and file in seen
            seen.add(file)
            last = file
        return n_returns


def follow(act: Callable[[], object], *packages: str) -> Followed:
    """Return the calls that an act makes, in every thread that it starts."""
    followed = Followed(packages) if packages else Followed()
    threading.setprofile(followed)
    sys.setprofile(followed)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return followed


def sign_in(application: Application, person_id: int) -> str:
    """Begin a session of a person and return its token."""
    with application.database.write() as uow:
        token = begin(uow, uow.people.get(person_id), SignInSource.LOCAL, "path", datetime.now(UTC))
        uow.commit()
    return token


def follow_judgment(application: Application) -> Followed:
    """Save three judgments of the reader with most cases left, and return the calls of the last one."""
    people = application.site.people()
    reader = max(people, key=lambda one: application.review.queue(STUDY, one.person_id).n_left).person_id
    services = application.for_session(sign_in(application, reader))
    followed = Followed()
    for _ in range(3):
        case = services.review.next_case(STUDY, reader)
        if case is None:
            raise LookupError("the reader has no case left")
        given = {"answer": Answer.RELEVANT, "version_seen": case.version_seen, "form_key": case.form_key}
        followed = follow(partial(services.review.submit_judgment, STUDY, reader, case.case_id, **given))
    return followed


def follow_alert_page(application: Application) -> Followed:
    """Draw an alert's page twice for somebody who may see its score; return what the second one asks for."""
    viewer = next(one for one in application.site.people() if not application.review.queue(STUDY, one.person_id).n_left)
    token = sign_in(application, viewer.person_id)
    with patch.multiple(context, opened_site=lambda *_: application, _token=lambda: token):
        page = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=60)
        page._page_hash = calc_hash("alert")  # noqa: SLF001 - before the first run no page is registered
        page.query_params["alert"] = "1"
        page.run()
        followed = follow(page.run, *BELOW_THE_PAGE)
    if page.exception or page.error or not page.get("plotly_chart"):
        raise LookupError([one.value for one in (*page.exception, *page.error)])
    return followed


def report(title: str, followed: Followed, *, with_calls: bool) -> None:
    """Print how many calls and files, the files in order with their calls, and every call if asked."""
    print(f"{title}: {len(followed.calls)} calls, {len(followed.files)} files, {followed.n_returns} returns to a file")
    for file, n_calls in followed.files.items():
        print(f"  {n_calls:4} {file}")
    if with_calls:
        for file, name in followed.calls:
            print(f"       {file} {name}")


def main() -> None:
    """Print both paths."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--calls", action="store_true", help="print every call in order")
    arguments.add_argument("--home", type=Path, help="a small demonstration that may be changed; by default a new one")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = given.home or Path(folder) / "home"
        if given.home is None:
            for _ in build_demo(load_settings(home, create=True), SMALL):
                pass
        with open_application(home) as application:
            report("judgment", follow_judgment(application), with_calls=given.calls)
            report("alert page", follow_alert_page(application), with_calls=given.calls)


if __name__ == "__main__":
    main()
