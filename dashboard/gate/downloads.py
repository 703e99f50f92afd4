"""Files that pages hand out: each only to the session that its page was sent to, with the same rights as then.

Streamlit serves a file under an address that is a hash of its content, to whoever asks. Every address reaches the
browser over the websocket of a page, so the gate reads it there: in the fields of buttons and pictures alone, because a
page may also show an address as a text that somebody typed.
"""

import re
from collections.abc import Iterator
from threading import Lock

from cachetools import LRUCache
from google.protobuf.message import DecodeError, Message
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from alertreview.rights import Actor

SESSIONS = 2_000
FILES = 500
"""Addresses remembered of a session; charts and pictures count too."""
_PREFIX = "/media/"
_ADDRESS = re.compile(r".*/media/([\w.-]+)")
_FIELDS = {
    "DownloadButton": "url",
    "DeferredFileResponsePayload": "url",
    "Image": "url",
    "Logo": "image",
    "PageConfig": "favicon",
}
"""Fields in which Streamlit names a file, by message."""


class Downloads:
    """Which files were offered to which session."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._offered: LRUCache[int, LRUCache[str, str]] = LRUCache(SESSIONS)

    def note(self, actor: Actor, sent: bytes) -> None:
        """Remember the files that a message to a session offers."""
        found = list(_offered(sent)) if _PREFIX.encode() in sent else []
        if not found:
            return
        with self._mutex:
            offered = self._offered.setdefault(actor.session_id, LRUCache(FILES))
            offered.update(dict.fromkeys(found, _rights(actor)))

    def may_have(self, actor: Actor, path: str) -> bool:
        """Return whether a session may fetch a path; every path that is no file of a page, yes."""
        if not path.startswith(_PREFIX):
            return True
        with self._mutex:
            offered = self._offered.get(actor.session_id)
            return offered is not None and offered.get(path.removeprefix(_PREFIX)) == _rights(actor)


def _offered(sent: bytes) -> Iterator[str]:
    message = ForwardMsg()
    try:
        message.ParseFromString(sent)
    except DecodeError:
        return
    yield from _files(message)


def _files(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        if isinstance(value, str):
            found = _ADDRESS.fullmatch(value) if _FIELDS.get(message.DESCRIPTOR.name) == field.name else None
            if found:
                yield found[1]
        elif isinstance(value, Message):
            yield from _files(value)
        elif field.message_type is not None and field.is_repeated:
            for part in value:
                if isinstance(part, Message):
                    yield from _files(part)


def _rights(actor: Actor) -> str:
    units = "all" if actor.units is None else sorted(actor.units)
    return f"{actor.person_id} {sorted(actor.roles)} {units}"
