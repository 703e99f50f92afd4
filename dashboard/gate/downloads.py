"""Files that pages hand out: each only to the session that its page was sent to, with the same rights as then.

Streamlit serves a file under an address that is a hash of its content, to whoever asks. Every address reaches the
browser over the websocket of a page, so the gate reads it there.
"""

import re
from collections import OrderedDict
from threading import Lock

from alertreview.rights import Actor

SESSIONS = 2_000
FILES = 500
"""Addresses remembered of a session; charts and pictures count too."""
_ADDRESS = re.compile(rb"/media/([\w.-]+)")
_PREFIX = "/media/"


class Downloads:
    """Which files were offered to which session."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._offered: OrderedDict[int, OrderedDict[str, str]] = OrderedDict()

    def note(self, actor: Actor, sent: bytes | str) -> None:
        """Remember the addresses in a message that is sent to a session."""
        found = _ADDRESS.findall(sent.encode("utf-8", "replace") if isinstance(sent, str) else sent)
        if not found:
            return
        with self._mutex:
            offered = self._offered.setdefault(actor.session_id, OrderedDict())
            self._offered.move_to_end(actor.session_id)
            for name in found:
                offered[name.decode("ascii", "replace")] = _rights(actor)
            while len(offered) > FILES:
                offered.popitem(last=False)
            while len(self._offered) > SESSIONS:
                self._offered.popitem(last=False)

    def may_have(self, actor: Actor, path: str) -> bool:
        """Return whether a session may fetch a path; every path that is no file of a page, yes."""
        if not path.startswith(_PREFIX):
            return True
        with self._mutex:
            offered = self._offered.get(actor.session_id)
            return offered is not None and offered.get(path.removeprefix(_PREFIX)) == _rights(actor)


def _rights(actor: Actor) -> str:
    units = "all" if actor.units is None else sorted(actor.units)
    return f"{actor.person_id} {sorted(actor.roles)} {units}"
