"""A browser's session without a browser: it speaks the dashboard's own websocket protocol and presses its buttons."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.util import calc_hash
from websockets.asyncio.client import ClientConnection, connect

from tests.support.served import START_SECONDS

AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36"
ANSWER_SECONDS = 120


@dataclass
class PageSession:
    """One open page.

    Parameters
    ----------
    link : ClientConnection
        To a dashboard that asks for no password.
    page : str
        Path of the page.
    query : str
        What follows the question mark in its address.
    """

    link: ClientConnection
    page: str
    query: str = ""
    buttons: dict[str, str] = field(default_factory=dict)
    """Key of a button -> its widget, as the page was last drawn."""
    choosers: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    """Key of a select box -> its widget and its choices."""
    texts: list[str] = field(default_factory=list)
    """What stands on the page as text, as it was last drawn."""
    failures: list[str] = field(default_factory=list)

    async def load(self) -> None:
        """Have the page drawn, as a browser does when it opens the address."""
        await self._run([])

    async def press(self, key: str) -> None:
        """Press a button and wait until the page is whole again."""
        await self._run([WidgetState(id=self.buttons[key], trigger_value=True)])

    async def choose(self, key: str, choice: str) -> None:
        """Choose in a select box and wait until the page is whole again."""
        widget, choices = self.choosers[key]
        if choice not in choices:
            raise LookupError(f"{choice!r} is none of {choices}")
        await self._run([WidgetState(id=widget, string_value=choice)])

    async def _run(self, states: list[WidgetState]) -> None:
        message = BackMsg()
        message.rerun_script.query_string = self.query
        message.rerun_script.page_script_hash = calc_hash(self.page)
        message.rerun_script.context_info.timezone = "UTC"
        message.rerun_script.context_info.url = f"http://127.0.0.1/{self.page}"
        message.rerun_script.widget_states.widgets.extend(states)
        self.buttons, self.choosers, self.texts = {}, {}, []
        await self.link.send(message.SerializeToString())
        while True:
            answer = ForwardMsg()
            answer.ParseFromString(await asyncio.wait_for(self.link.recv(decode=False), ANSWER_SECONDS))
            self._note(answer)
            if answer.WhichOneof("type") == "script_finished":
                if answer.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    self.failures.append("the page could not be compiled")
                if answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    return

    def _note(self, answer: ForwardMsg) -> None:
        kind = answer.WhichOneof("type")
        if kind == "page_info_changed":
            self.query = answer.page_info_changed.query_string
        if kind == "new_session":
            self.buttons, self.choosers, self.texts = {}, {}, []
        if kind != "delta" or answer.delta.WhichOneof("type") != "new_element":
            return
        element = answer.delta.new_element
        what = element.WhichOneof("type")
        if what == "exception":
            self.failures.append(element.exception.message)
        elif what == "button":
            self.buttons[_key(element.button.id)] = element.button.id
        elif what == "selectbox":
            self.choosers[_key(element.selectbox.id)] = (element.selectbox.id, list(element.selectbox.options))
        elif what == "markdown":
            self.texts.append(element.markdown.body)
        elif what == "alert":
            self.texts.append(element.alert.body)


def _key(widget: str) -> str:
    """Return the key that the page gave a widget: Streamlit puts it after a hash."""
    return re.sub(r"^\$\$ID-[0-9a-f]+-", "", widget)


@asynccontextmanager
async def open_page(port: int, page: str, query: str = "") -> AsyncIterator[PageSession]:
    """Open a session on a dashboard of this machine with a page drawn; close it afterwards."""
    async with connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        origin=f"http://127.0.0.1:{port}",  # type: ignore[arg-type]
        subprotocols=["streamlit"],  # type: ignore[list-item]
        user_agent_header=AGENT,
        max_size=None,
        compression=None,
        proxy=None,
        ping_interval=None,  # a machine that is busy answers late
        open_timeout=START_SECONDS,
    ) as link:
        session = PageSession(link, page, query)
        await session.load()
        yield session
