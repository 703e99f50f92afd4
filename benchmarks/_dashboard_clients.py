"""Browser sessions without a browser: each speaks the dashboard's own websocket protocol and presses one button."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.util import calc_hash
from websockets.asyncio.client import ClientConnection, connect

BUTTONS = ("wl_next", "wl_previous")
AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36"


@dataclass
class Session:
    """One open worklist."""

    socket: ClientConnection
    buttons: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Key of a button -> widget id and fragment."""
    seconds: list[float] = field(default_factory=list)
    n_failed: int = 0
    turn: int = 0

    async def load(self) -> None:
        """Open the page as a browser does."""
        message = BackMsg()
        message.rerun_script.page_script_hash = calc_hash("worklist")
        message.rerun_script.context_info.timezone = "UTC"
        message.rerun_script.context_info.url = "http://127.0.0.1/worklist"
        await self._run(message)

    async def press(self) -> float:
        """Press a button and wait until the page is whole again; gives the seconds."""
        widget, fragment = self.buttons[BUTTONS[self.turn % 4 // 3]]
        self.turn += 1
        message = BackMsg()
        message.rerun_script.page_script_hash = calc_hash("worklist")
        message.rerun_script.fragment_id = fragment
        message.rerun_script.widget_states.widgets.append(WidgetState(id=widget, trigger_value=True))
        began = time.perf_counter()
        await self._run(message)
        return time.perf_counter() - began

    async def _run(self, message: BackMsg) -> None:
        await self.socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg()
            answer.ParseFromString(await asyncio.wait_for(self.socket.recv(), 60))
            self._note(answer)
            if answer.WhichOneof("type") == "script_finished":
                if answer.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    self.n_failed += 1
                if answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    return

    def _note(self, answer: ForwardMsg) -> None:
        if answer.WhichOneof("type") != "delta" or answer.delta.WhichOneof("type") != "new_element":
            return
        element = answer.delta.new_element
        if element.WhichOneof("type") == "exception":
            self.n_failed += 1
        if element.WhichOneof("type") == "button":
            for key in BUTTONS:
                if element.button.id.endswith(f"-{key}"):
                    self.buttons[key] = (element.button.id, answer.delta.fragment_id)


async def opened(port: int) -> Session:
    """Open a session with the worklist drawn."""
    socket = await connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        origin=f"http://127.0.0.1:{port}",  # type: ignore[arg-type]
        subprotocols=["streamlit"],  # type: ignore[list-item]
        user_agent_header=AGENT,
        max_size=None,
        compression=None,
    )
    session = Session(socket)
    await session.load()
    return session


async def acting(session: Session, every: float, until: float, first: float) -> None:
    """Press once every so many seconds until a moment."""
    await asyncio.sleep(first)
    while time.monotonic() < until:
        began = time.monotonic()
        session.seconds.append(await session.press())
        await asyncio.sleep(max(0.0, every - (time.monotonic() - began)))


@dataclass(frozen=True)
class Crowd:
    """What a crowd of sessions met.

    Parameters
    ----------
    seconds : list of float
        Of each act.
    n_failed : int
        Runs of a page that ended in an error.
    level_mb : float
        Memory of the server at the end, while all sessions were still open.
    """

    seconds: list[float]
    n_failed: int
    level_mb: float


async def crowd(port: int, n_sessions: int, every: float, seconds: float, memory_mb: Callable[[], float]) -> Crowd:
    """Let sessions act for a while, each once every so many seconds, evenly spread."""
    sessions = [await opened(port) for _ in range(n_sessions)]
    until = time.monotonic() + seconds
    starts = [every * number / n_sessions for number in range(n_sessions)]
    await asyncio.gather(*(acting(s, every, until, first) for s, first in zip(sessions, starts, strict=True)))
    level = memory_mb()
    for session in sessions:
        await session.socket.close()
    return Crowd(
        [one for session in sessions for one in session.seconds], sum(session.n_failed for session in sessions), level
    )
