"""What every page starts from: the services as this person may use them, who is reading, and what the browser is."""

import logging
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from alertreview.access.site import PersonView
from alertreview.rights import Action, Actor, roles_that_may
from core.errors import AlertReviewError
from core.vocabulary import PersonId, Role
from dashboard.charts.palette import Palette, palette

if TYPE_CHECKING:
    from alertreview.application import Application, Services
    from alertreview.settings import Settings

HOME_VARIABLE = "ALERTREVIEW_HOME"
DATABASE_VARIABLE = "ALERTREVIEW_DATABASE"
NEUTRAL_SENTENCE = (
    "Something went wrong on the server, and what you just did may not be saved. Reload the page to see what is "
    "stored; if it happens again, ask whoever runs this site to look at its log."
)
READER_ROLES = frozenset({Role.REVIEWER, Role.ADJUDICATOR})
_PERSON = "person_id"
_OWNER = "owner"
_PAGE = "page"
_ARRIVED = "arrived"
_GOING = "going"
_AHEAD = "ahead"

Result = TypeVar("Result")

logger = logging.getLogger("alertreview.dashboard")

_sites: dict[tuple[str, str], "Application"] = {}
_opening = Lock()
_looking_ahead = Lock()


def opened_site(home: str, database: str) -> "Application":
    """Open the application once for the process; it holds no data of a person.

    Kept here and not by Streamlit, which would take longer to find it than the application to answer.
    """
    found = _sites.get((home, database))
    if found is not None:
        return found
    from alertreview.application import open_application

    with _opening:
        if (home, database) not in _sites:
            _sites[home, database] = open_application(Path(home) if home else None, database or None)
        return _sites[home, database]


def site_of_process() -> "Application":
    """Return the application of this process."""
    return opened_site(os.environ.get(HOME_VARIABLE, ""), os.environ.get(DATABASE_VARIABLE, ""))


def settings() -> "Settings":
    """Return where the site of this process lies; whoever uses it checks the right first."""
    return site_of_process().settings


def command(words: str) -> str:
    """Return a command of `alertreview` for this site, as somebody types it on the server.

    A database that the environment names stands there as its variable, because its address may hold a password; a shell
    in which the variable is not set refuses the command, which would otherwise work on a database in the home.
    """
    database = f' --database "${{{DATABASE_VARIABLE}:?}}"' if os.environ.get(DATABASE_VARIABLE) else ""
    return f"alertreview {words} --home {shlex.quote(str(settings().home))}{database}"


def _token() -> str | None:
    """Return the token of this browser session, from the cookie that came with its websocket through the gate."""
    return st.context.cookies.get(site_of_process().sessions.cookie_name)


def application() -> "Services":
    """Return the services of the site named by ALERTREVIEW_HOME, as the person who is signed in may use them.

    Every call of a use case asks the session again who that is; see `alertreview.rights`.
    """
    return site_of_process().for_session(_token())


def signed_in() -> Actor:
    """Return who is signed in, as the session says, a demonstration's visitor too.

    Raise SignedOutError if nobody is.
    """
    return site_of_process().sessions.who(_token())


def may(action: Action) -> bool:
    """Return whether the role of who is signed in allows an action, to hide what would be refused."""
    return signed_in().may(action)


def keep_apart() -> None:
    """Forget what a browser session held for somebody else: a window may outlive the person in front of it."""
    person_id = signed_in().person_id
    if st.session_state.get(_OWNER, person_id) != person_id:
        st.session_state.clear()
    st.session_state[_OWNER] = person_id


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show errors as sentences: ours as they are, anything else as one neutral sentence with its kind in the log.

    Texts of foreign errors may hold values of a row, so neither the page nor the log repeats them.
    """
    try:
        yield
    except AlertReviewError as error:
        st.error(_literal(str(error)), icon=":material/error:")
    except Exception as error:
        if steers_streamlit(error):
            raise
        logger.error("page failed: %s", where(error))  # noqa: TRY400 - a traceback may hold values of a row
        st.error(NEUTRAL_SENTENCE, icon=":material/error:")


def attempt(act: "Callable[[Services], Result]") -> "tuple[Result | None, str]":
    """Do one act and return its answer, or None and the sentence that says why it failed."""
    try:
        return act(application()), ""
    except AlertReviewError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - the reader must hear of every failed save, whatever failed
        logger.error("act failed: %s", where(error))  # noqa: TRY400 - a traceback may hold values of a row
        return None, NEUTRAL_SENTENCE


def read_ahead(what: object, act: "Callable[[Services], object]") -> None:
    """Do in the background what fills the caches for the page that is likely to come next.

    It is done with the rights of who is signed in, once for each `what` of a session, and left out while another one
    is under way: nobody waits for it.
    """
    if st.session_state.get(_AHEAD) == what or not _looking_ahead.acquire(blocking=False):
        return
    st.session_state[_AHEAD] = what
    Thread(target=_read_ahead, args=(application(), act), daemon=True, name="read-ahead").start()


def _read_ahead(services: "Services", act: "Callable[[Services], object]") -> None:
    try:
        act(services)
    except Exception as error:  # noqa: BLE001 - whatever failed, the page itself will meet it and say so
        logger.info("nothing read ahead: %s", where(error))
    finally:
        _looking_ahead.release()


def steers_streamlit(error: BaseException) -> bool:
    """Return whether Streamlit uses this exception to rerun, stop or change the page."""
    return type(error).__module__.startswith("streamlit.runtime.scriptrunner")


def where(error: BaseException) -> str:
    """Kind and place of an error, without its text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "unknown place"
    return f"{type(error).__name__} at {place}"


def _literal(text: str) -> str:
    from dashboard.texts import plain

    return plain(text, 2000)


def note_arrival(page: str) -> None:
    """Remember that the reader came to another page; the frame calls it in every run.

    In the middle of a page the address that comes with a key press may be older than what the server has set since:
    two fast presses carry the same one. So a page reads its address when the reader arrives, and keeps its own state
    from then on.
    """
    if st.session_state.get(_PAGE) != page:
        st.session_state[_PAGE] = page
        st.session_state[_ARRIVED] = True


def go(page: str, address: dict[str, str]) -> None:
    """Go to another page (a file below `dashboard`): for the callback of a button, where Streamlit itself cannot."""
    st.session_state[_GOING] = page, address


def leave() -> None:
    """Follow `go`: once the pages are known, before anything of the page that is left is asked for again."""
    going = st.session_state.pop(_GOING, None)
    if going is not None:
        page, address = going
        st.switch_page(page, query_params=address)


def has_arrived() -> bool:
    """Whether the reader has just come to this page; true once for each arrival."""
    return bool(st.session_state.pop(_ARRIVED, False))


def colours() -> Palette:
    """Palette of the browser's mode; figures carry the mode in their keys."""
    return palette(getattr(st.context.theme, "type", None))


def is_phone() -> bool:
    """Whether the browser says it is a phone; the server never learns the width of the window."""
    return "Mobi" in (st.context.headers.get("User-Agent") or "")


def people_who_read() -> tuple[PersonView, ...]:
    """Return whom this session may judge cases as: who is signed in, or all people of a demonstration."""
    return _who_read(signed_in())


def _who_read(me: Actor) -> tuple[PersonView, ...]:
    if not me.is_demo:
        return (_view_of(me),) if me.may(Action.JUDGE) else ()
    readers = [p for p in application().site.people() if p.roles & roles_that_may(Action.JUDGE)]
    return tuple(sorted(readers, key=lambda p: (p.simulated, p.role is not Role.REVIEWER)))


def _view_of(me: Actor) -> PersonView:
    return PersonView(me.person_id, me.name, me.role, simulated=False, further_roles=me.further_roles)


def acting_person() -> PersonView | None:
    """Return who is reading in this session; None when nobody may judge yet."""
    return _chosen_of(people_who_read())


def _chosen_of(people: tuple[PersonView, ...]) -> PersonView | None:
    chosen = st.session_state.get(_PERSON)
    return next((p for p in people if p.person_id == chosen), people[0] if people else None)


@dataclass(frozen=True)
class Acting:
    """Who acts in one run of a page or of a part of it; asked once for the run, and never kept beyond it.

    What it hides or shows is a courtesy: every use case asks the session again.
    """

    person_id: PersonId | None
    may_triage: bool


def acting() -> Acting:
    """Return who acts in this session as it stands at this moment."""
    me = signed_in()
    person = _chosen_of(_who_read(me))
    return Acting(person.person_id if person else None, person is not None and me.may(Action.TRIAGE))


def acting_id() -> PersonId | None:
    """Return the number of who is reading in this session; None when nobody may judge yet."""
    person = acting_person()
    return person.person_id if person else None


def people_who_look() -> tuple[PersonView, ...]:
    """Return whom this session may look at reports as; in a demonstration those who judge no cases first."""
    me = signed_in()
    if not me.is_demo:
        return (_view_of(me),)
    return tuple(sorted(application().site.people(), key=lambda p: (p.role in READER_ROLES, p.simulated)))


def looking_person() -> PersonView | None:
    """Return who looks at reports in this session.

    That is whom the session reads as, once somebody was chosen; before, it is somebody who judges no cases and from
    whom no result has to be hidden, if there is one.
    """
    return _chosen_of(people_who_look())


def read_as(person_id: PersonId) -> None:
    """Keep the choice of who is reading for this session."""
    st.session_state[_PERSON] = person_id
