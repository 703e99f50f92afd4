"""What stands between the network and the pages: loopback only, safe settings, headers; nothing leaves the machine."""

import gc
import ipaddress
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.middleware import Middleware
from streamlit import config

from core.errors import SettingsError

logger = logging.getLogger("alertreview.dashboard")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SETTINGS: dict[str, object] = {
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "server.enableStaticServing": False,
    "server.enableAgentApi": False,
    "server.showEmailPrompt": False,
    "runner.postScriptGC": False,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
}
"""Settings that hold however the dashboard is started; the same as in .streamlit/config.toml, and a test compares."""

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
REFUSAL = (
    "This version of the dashboard has no sign-in yet and answers only on this machine: "
    "open it at http://127.0.0.1, or through an SSH tunnel to that address."
)
# Streamlit's page has one inline script and its styles are made in the browser; figures and grids use blobs.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss:; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"referrer-policy": b"same-origin",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
}


def is_loopback(address: str | None) -> bool:
    """Whether an address or host name means this machine only."""
    if not address:
        return False
    name = address.strip().strip("[]").lower()
    if name in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_settings() -> None:
    """Refuse an open address, and put every protecting setting in force whatever files and variables say.

    Raises
    ------
    core.errors.SettingsError
        If the server was told to listen beyond this machine.
    """
    address = config.get_option("server.address")
    if address is not None and not is_loopback(str(address)):
        raise SettingsError(f"server.address is {address!r}. {REFUSAL}")
    for name, value in SETTINGS.items():
        if config.get_option(name) != value:
            config.set_option(name, value, "alertreview")


def middleware() -> Sequence[Middleware]:
    """Return the layers around every request and websocket."""
    return [Middleware(LoopbackGate)]


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """Move everything imported so far out of the collector's way: it lives as long as the process."""
    gc.collect()
    gc.freeze()
    yield


def on_script_error(error: Exception) -> bool:
    """Show one neutral sentence for what no page caught; the log names kind and place, never the text."""
    import streamlit as st

    from core.errors import AlertReviewError
    from dashboard.context import NEUTRAL_SENTENCE, where

    logger.error("script failed: %s", where(error))
    st.error(str(error) if isinstance(error, AlertReviewError) else NEUTRAL_SENTENCE, icon=":material/error:")
    return True


class LoopbackGate:
    """Answer only to this machine under its own name, and put the protecting headers on every answer.

    The check of the Host header keeps a foreign web page from reaching the dashboard through a name of its own that
    points to 127.0.0.1.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse with a sentence."""
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
        elif self._is_allowed(scope):
            await self.app(scope, receive, self._with_headers(scope, send))
        else:
            await self._refuse(scope, receive, send)

    @staticmethod
    def _is_allowed(scope: Scope) -> bool:
        client = scope.get("client")
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        return (client is None or is_loopback(client[0])) and is_loopback(name)

    @staticmethod
    def _with_headers(scope: Scope, send: Send) -> Send:
        static = str(scope.get("path", "")).startswith("/static/")

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name: value for name, value in HEADERS.items() if not (static and name == b"cache-control")}
                kept = [(name, value) for name, value in message.get("headers", []) if name.lower() not in own]
                message["headers"] = [*kept, *own.items()]
            await send(message)

        return sending

    @staticmethod
    async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "loopback only"})
            return
        body = REFUSAL.encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})
