"""ASGI middleware between the network and the pages: who may connect, who is signed in, safe settings, headers."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from streamlit import config, net_util
from threadpoolctl import threadpool_limits

from alertreview.configuration import WebSettings
from alertreview.settings import load_web_settings
from core.errors import AlertReviewError, DatabaseUnavailableError, SettingsError, SignedOutError
from dashboard.context import NEUTRAL_SENTENCE, site_of_process, where
from dashboard.gate import pages
from dashboard.gate.api import API_PATH, Api
from dashboard.gate.downloads import Downloads
from dashboard.gate.headers import protecting
from dashboard.gate.metrics import METRICS_PATH, answered, page_failed, scrape
from dashboard.gate.sign_in import HEALTH_PATHS, SIGN_IN_PATHS, Routes, unavailable
from dashboard.gate.visits import Visit, comes_from_here, host_name
from dashboard.gate.whole_acts import finish_every_act, keep_acts_in_order

if TYPE_CHECKING:
    from alertreview.application import Application

logger = logging.getLogger("alertreview.dashboard")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

SETTINGS: dict[str, object] = {
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "server.enableStaticServing": False,
    "server.enableAgentApi": False,
    "server.showEmailPrompt": False,
    "runner.postScriptGC": False,
    "runner.fastReruns": False,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
}
"""Streamlit settings that hold however the dashboard is started; a test compares them with .streamlit/config.toml."""

STREAMLIT_HEALTH = "/_stcore/health"
REFUSAL = (
    "The dashboard does not answer under this address or name: open it at http://127.0.0.1 on its own machine, "
    "through an SSH tunnel to that address, or under the name in ALERTREVIEW_HOSTS through a proxy that speaks TLS."
)
FOREIGN = "This did not come from this site. Open the page again."
NOT_OFFERED = "This file was not made for you, or your rights have changed. Open the page and prepare it again."
TAKES_NOTHING = "Nothing can be sent to this address."
OPEN_ADDRESS = (
    "It can be reached from other machines. Beyond this machine the dashboard listens only behind TLS: set "
    "ALERTREVIEW_HOSTS to the name browsers use and ALERTREVIEW_TLS_PROXY to the address of the proxy that speaks TLS "
    "(or, knowing that passwords then cross the network readable, ALERTREVIEW_LISTEN_WITHOUT_TLS=yes)."
)
LOOK_AGAIN_SECONDS = 5.0
"""Interval at which the session of an open websocket is checked."""
ASK_AGAIN_SECONDS = 1.0
SIGNED_OUT_CODE = 4401
FINISH_SECONDS = 35.0
"""Time that a pending save has after SIGTERM: longer than it may wait for the database."""


def check_settings() -> WebSettings:
    """Return how the site is reached, with every protecting Streamlit setting in force, whatever files say.

    Raise SettingsError if the server would listen beyond this machine without protection, or a setting cannot be used.
    """
    # Streamlit would ask a server on the internet for this machine's address before it refuses a foreign origin.
    net_util.get_external_ip = net_util.get_internal_ip = lambda: None
    web = load_web_settings()
    address = config.get_option("server.address")
    if address is not None and not web.may_listen_on(str(address)):
        raise SettingsError(f"server.address is {address!r}. {OPEN_ADDRESS}")
    for name, value in {**SETTINGS, "server.allowedHosts": allowed_hosts(web)}.items():
        if config.get_option(name) != value:
            config.set_option(name, value, "alertreview")
    if web.base_path and base_path() != web.base_path:
        config.set_option("server.baseUrlPath", web.base_path.strip("/"), "alertreview")
    return web


def base_path() -> str:
    """Return the path under which a proxy shows the site, as ``/alertreview``; empty for none."""
    inside = str(config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{inside}" if inside else ""


def allowed_hosts(web: WebSettings) -> list[str]:
    """Return the host names that Streamlit answers."""
    return ["127.0.0.1", "localhost", "[::1]", "::1", *web.hosts]


def middleware(web: WebSettings) -> Sequence[Middleware]:
    """Return the layers around every request and websocket."""
    return [Middleware(Gate, web=web)]


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """Open the site before the first visitor; at the end wait for saves that have begun.

    The process waits for no page thread when a signal stops it, so pending saves must be finished here. What lives as
    long as the process is frozen, so that the garbage collector does not visit it.
    """
    with suppress(AlertReviewError):  # the visitor is told why
        await run_in_threadpool(site_of_process)
    compute_in_one_thread()
    finish_every_act()
    keep_acts_in_order()
    gc.collect()
    gc.freeze()
    yield
    with suppress(AlertReviewError):
        site = await run_in_threadpool(site_of_process)
        if not await run_in_threadpool(site.finish_writing, FINISH_SECONDS):
            logger.error("stopped while a save was still waiting; nothing of it was kept")


def compute_in_one_thread() -> None:
    """Limit BLAS to the calling thread; call it from the main thread.

    The products behind one alert are too small to share out: further threads would spin and double the CPU time.
    """
    threadpool_limits(1, user_api="blas")


def on_script_error(error: Exception) -> bool:
    """Show one neutral sentence for what no page caught; the log names kind and place, never the text."""
    page_failed()
    logger.error("script failed: %s", where(error))
    st.error(str(error) if isinstance(error, AlertReviewError) else NEUTRAL_SENTENCE, icon=":material/error:")
    return True


class Gate:
    """ASGI middleware: answer known host names only, admit signed-in people only, protect every answer by headers.

    The check of the Host header keeps a foreign web page from reaching the dashboard through a name of its own that
    points to 127.0.0.1, the check of the Origin header a page on another port, which browsers send our cookie to.
    """

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        web: WebSettings,
        site: "Callable[[], Application]" = site_of_process,
    ) -> None:
        self.app = app
        self.web = web
        self.site = site
        self.routes = Routes(web, site)
        self.api = Api(site)
        self._downloads = Downloads()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, redirect to sign-in, or refuse with a sentence."""
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        send = _counting(scope, send)
        client = scope["client"][0] if scope.get("client") else None
        if not self.web.answers(client, host_name(connection)):
            await self._answer(scope, receive, send, PlainTextResponse(REFUSAL, 403))
            return
        if not comes_from_here(connection):
            await self._answer(scope, receive, send, PlainTextResponse(FOREIGN, 403))
            return
        visit = Visit(connection, self.web, base_path())
        first = "/" + visit.path.lstrip("/").split("/", 1)[0]
        if scope["type"] == "http" and (first in SIGN_IN_PATHS or visit.path in HEALTH_PATHS):
            inner = {**scope, "path": visit.path, "root_path": "", "raw_path": visit.path.encode(), "base": visit.base}
            await self.routes.app(inner, receive, protecting(scope, send))
        elif scope["type"] == "http" and first == API_PATH:
            inner = {**scope, "path": visit.path, "root_path": "", "raw_path": visit.path.encode()}
            await self.api.app(inner, receive, protecting(scope, send))
        elif scope["type"] == "http" and visit.path == METRICS_PATH:
            answer = await run_in_threadpool(scrape, connection, self.web.metrics, self.site)
            await self._answer(scope, receive, send, answer)
        elif visit.path == STREAMLIT_HEALTH:
            await self.app(scope, receive, protecting(scope, send))
        else:
            await self._behind_sign_in(scope, receive, send, visit)

    async def _behind_sign_in(self, scope: Scope, receive: Receive, send: Send, visit: Visit) -> None:
        try:
            actor = await run_in_threadpool(lambda: visit.who(self.site(), is_act=visit.is_act))
        except SignedOutError:
            await self._answer(scope, receive, send, await self._to_sign_in(scope, visit))
            return
        except AlertReviewError as error:
            await self._answer(scope, receive, send, unavailable(str(error), visit.base))
            return
        if scope["type"] == "websocket":
            await self._watched(scope, receive, send, visit, lambda sent: self._downloads.note(actor, sent))
        elif scope["method"] not in {"GET", "HEAD"}:
            await self._answer(scope, receive, send, PlainTextResponse(TAKES_NOTHING, 405, {"Allow": "GET, HEAD"}))
        elif not self._downloads.may_have(actor, visit.path):
            await self._answer(scope, receive, send, PlainTextResponse(NOT_OFFERED, 403))
        else:
            files = ("page.js",) if actor.is_demo else ("page.js", "watch.js")
            scripts = tuple(f"{visit.base}/login/{name}" for name in files)
            await self.app(_uncompressed(scope, visit), receive, protecting(scope, send, scripts=scripts))

    async def _to_sign_in(self, scope: Scope, visit: Visit) -> Response:
        if scope["type"] == "websocket" or not visit.is_page:
            return PlainTextResponse("Sign in first.", 401)
        if visit.is_from_elsewhere:
            # Ask again from this site itself: only then does the browser send the session's cookie.
            return pages.go_on(visit.target, "One moment", base=visit.base)
        if visit.proxy_identity:
            return await run_in_threadpool(self.routes.by_proxy, visit)
        return RedirectResponse(f"{visit.base}/login?next={quote(visit.target, safe='')}", 303)

    async def _watched(
        self, scope: Scope, receive: Receive, send: Send, visit: Visit, note: Callable[[bytes], None]
    ) -> None:
        """Pass a websocket on, note what is sent, and close it when its session ends."""
        over = asyncio.Event()

        async def still_holds() -> bool:
            """Ask until the database answers: meanwhile the page stays as it is, with what was typed."""
            while not over.is_set():
                try:
                    await run_in_threadpool(lambda: visit.who(self.site()))
                except DatabaseUnavailableError:
                    await asyncio.sleep(ASK_AGAIN_SECONDS)
                except AlertReviewError:
                    over.set()
                else:
                    return True
            return False

        async def look_again() -> None:
            while await still_holds():
                await asyncio.sleep(LOOK_AGAIN_SECONDS)

        async def receiving() -> Message:
            heard, ended = asyncio.ensure_future(receive()), asyncio.ensure_future(over.wait())
            await asyncio.wait({heard, ended}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            if heard.done() and (heard.result()["type"] != "websocket.receive" or await still_holds()):
                return heard.result()
            heard.cancel()
            await send({"type": "websocket.close", "code": SIGNED_OUT_CODE, "reason": "signed out"})
            return {"type": "websocket.disconnect", "code": SIGNED_OUT_CODE}

        async def sending(message: Message) -> None:
            if not over.is_set():
                if message["type"] == "websocket.send":
                    note(message.get("bytes") or b"")
                await send(message)

        looking = asyncio.ensure_future(look_again())
        try:
            await self.app(scope, receiving, sending)
        finally:
            looking.cancel()

    @staticmethod
    async def _answer(scope: Scope, receive: Receive, send: Send, answer: Response) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
            return
        await answer(scope, receive, protecting(scope, send))


def _counting(scope: Scope, send: Send) -> Send:
    """Return `send`, wrapped to count the answers to requests."""
    if scope["type"] != "http":
        return send

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            answered(message["status"])
        await send(message)

    return sending


def _uncompressed(scope: Scope, visit: Visit) -> Scope:
    """Request a page uncompressed, because its inline scripts are hashed."""
    if not visit.is_page:
        return scope
    asked = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
    return {**scope, "headers": [(name, value) for name, value in scope["headers"] if name.lower() not in asked]}
