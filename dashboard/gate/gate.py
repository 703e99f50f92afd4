"""What stands between the network and the pages: who may connect, who is signed in, safe settings, headers."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from streamlit import config
from threadpoolctl import threadpool_limits

from alertreview.configuration import WebSettings
from alertreview.rights import Actor
from alertreview.settings import load_web_settings
from core.errors import AlertReviewError, SettingsError, SignedOutError
from core.vocabulary import SignInSource
from dashboard.gate.headers import protecting
from dashboard.gate.health import ALIVE, READY, HealthRoutes
from dashboard.gate.sign_in import bounce, sign_in_app, sign_in_by_proxy, site_of_process, unavailable
from dashboard.gate.visits import Visit, host_name, is_at_this_machine, proxy_identity

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
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
}
"""Settings that hold however the dashboard is started; the same as in .streamlit/config.toml, and a test compares."""

OPEN_PATHS = frozenset({"/_stcore/health", "/health", "/ready"})
"""What answers without anybody signed in, beside the sign-in pages: whether the server is well, and nothing else."""
SIGN_IN_PATHS = frozenset({"/login", "/logout", "/password", "/confirm", "/session"})
REFUSAL = (
    "The dashboard does not answer under this address or name: open it at http://127.0.0.1 on its own machine, "
    "through an SSH tunnel to that address, or under the name in ALERTREVIEW_HOSTS through a proxy that speaks TLS."
)
OPEN_ADDRESS = (
    "It can be reached from other machines. Beyond this machine the dashboard listens only behind TLS: set "
    "ALERTREVIEW_HOSTS to the name browsers use and ALERTREVIEW_TLS_PROXY to the address of the proxy that speaks TLS "
    "(or, knowing that passwords then cross the network readable, ALERTREVIEW_LISTEN_WITHOUT_TLS=yes)."
)
LOOK_AGAIN_SECONDS = 5.0
"""How often an open websocket is asked whether its session still holds."""
SIGNED_OUT_CODE = 4401
FINISH_SECONDS = 35.0
"""How long a save that has begun may take after the order to stop: longer than it may wait for the database."""


def check_settings() -> WebSettings:
    """Refuse an open address without TLS, and put every protecting setting in force whatever files and variables say.

    Raises
    ------
    core.errors.SettingsError
        If the server was told to listen beyond this machine without protection, or a setting cannot be used.
    """
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
    """Return the names that Streamlit, too, shall answer under."""
    return ["127.0.0.1", "localhost", "[::1]", "::1", *web.hosts]


def middleware(web: WebSettings | None = None) -> Sequence[Middleware]:
    """Return the layers around every request and websocket."""
    return [Middleware(Gate, web=web or load_web_settings())]


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """Open the site before a visitor waits for it, and keep what lives as long as the process from the collector.

    In the end it lets saves that have begun end: the process that a signal stops waits for no thread of a page.
    """
    with suppress(AlertReviewError):  # who visits is told why
        await run_in_threadpool(site_of_process)
    compute_in_one_thread()
    gc.collect()
    gc.freeze()
    yield
    with suppress(AlertReviewError):
        site = await run_in_threadpool(site_of_process)
        if not await run_in_threadpool(site.finish_writing, FINISH_SECONDS):
            logger.error("stopped while a save was still waiting; nothing of it was kept")


def compute_in_one_thread() -> None:
    """Let sums of products be taken by the thread that asks for them; to be called by the main thread.

    Those behind one alert are too small to share out: the other threads would spin while they wait for the next ones,
    and double what an act costs.
    """
    threadpool_limits(1, user_api="blas")


def on_script_error(error: Exception) -> bool:
    """Show one neutral sentence for what no page caught; the log names kind and place, never the text."""
    import streamlit as st

    from dashboard.context import NEUTRAL_SENTENCE, where

    logger.error("script failed: %s", where(error))
    st.error(str(error) if isinstance(error, AlertReviewError) else NEUTRAL_SENTENCE, icon=":material/error:")
    return True


class Gate:
    """Answer under known names only, let nobody in who is not signed in, and put protecting headers on every answer.

    The check of the Host header keeps a foreign web page from reaching the dashboard through a name of its own that
    points to 127.0.0.1.

    Parameters
    ----------
    app : callable
        What stands behind the gate.
    web : WebSettings
        How the site is reached.
    site : callable
        Gives the application; it is asked at every request.
    """

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        web: WebSettings | None = None,
        site: "Callable[[], Application]" = site_of_process,
    ) -> None:
        self.app = app
        self.web = web or WebSettings()
        self.site = site
        self.sign_in = sign_in_app(self.web, site)
        self.health = HealthRoutes(lambda: site().health)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, send to the sign-in page, or refuse with a sentence."""
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        client = scope["client"][0] if scope.get("client") else None
        if not self.web.answers(client, host_name(connection)):
            await self._refuse(scope, receive, protecting(scope, send), PlainTextResponse(REFUSAL, 403))
            return
        visit = Visit(connection, self.web, base_path())
        if scope["type"] == "http" and _first(visit.path) in SIGN_IN_PATHS:
            inner = {**scope, "path": visit.path, "root_path": "", "raw_path": visit.path.encode(), "base": visit.base}
            await self.sign_in(inner, receive, protecting(scope, send))
        elif scope["type"] == "http" and visit.path in (ALIVE, READY):
            await self.health(scope, receive, protecting(scope, send))
        elif visit.path in OPEN_PATHS:
            await self.app(scope, receive, protecting(scope, send))
        else:
            await self._behind_sign_in(scope, receive, send, visit)

    async def _behind_sign_in(self, scope: Scope, receive: Receive, send: Send, visit: Visit) -> None:
        try:
            actor = await self._who(visit, is_act=visit.is_act)
        except SignedOutError:
            answer = await self._to_sign_in(scope, visit)
            await self._refuse(scope, receive, protecting(scope, send), answer)
            return
        except AlertReviewError as error:
            await self._refuse(scope, receive, protecting(scope, send), unavailable(str(error), visit.base))
            return
        if scope["type"] == "websocket":
            await self._watched(scope, receive, send, visit)
        else:
            watch = "" if actor.is_demo else f"{visit.base}/login/watch.js"
            await self.app(_unpacked(scope, visit), receive, protecting(scope, send, watch=watch))

    async def _who(self, visit: Visit, *, is_act: bool) -> Actor:
        """Return who is signed in; raises SignedOutError for nobody, and for a demonstration seen from elsewhere."""
        site = await run_in_threadpool(self.site)
        token = visit.token(site)
        actor = await run_in_threadpool(lambda: site.sessions.who(token, is_act=is_act))
        if actor.is_demo and not is_at_this_machine(visit.connection, self.web):
            raise SignedOutError("The demonstration is open on its own machine only.")
        if actor.source is SignInSource.PROXY and actor.login != proxy_identity(visit.connection, self.web):
            raise SignedOutError("The proxy names somebody else now.")
        return actor

    async def _to_sign_in(self, scope: Scope, visit: Visit) -> Response:
        if scope["type"] == "websocket" or not visit.is_page:
            return PlainTextResponse("Sign in first.", 401)
        if visit.is_from_elsewhere:
            return bounce(visit.target, visit.base)
        if proxy_identity(visit.connection, self.web):
            return await sign_in_by_proxy(visit, self.site)
        return RedirectResponse(f"{visit.base}/login?next={quote(visit.target, safe='')}", 303)

    async def _watched(self, scope: Scope, receive: Receive, send: Send, visit: Visit) -> None:
        """Pass a websocket on; when its session has ended, close it and hear nothing more of it."""
        over = asyncio.Event()

        async def still_holds() -> bool:
            try:
                await self._who(visit, is_act=False)
            except AlertReviewError:
                over.set()
            return not over.is_set()

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
                await send(message)

        looking = asyncio.ensure_future(look_again())
        try:
            await self.app(scope, receiving, sending)
        finally:
            looking.cancel()

    @staticmethod
    async def _refuse(scope: Scope, receive: Receive, send: Send, answer: Response) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
            return
        await answer(scope, receive, send)


def _first(path: str) -> str:
    return "/" + path.lstrip("/").split("/", 1)[0]


def _unpacked(scope: Scope, visit: Visit) -> Scope:
    """Ask for a page as plain text, whole: its inline scripts are looked at on the way out."""
    if not visit.is_page:
        return scope
    asked = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
    return {**scope, "headers": [(name, value) for name, value in scope["headers"] if name.lower() not in asked]}
