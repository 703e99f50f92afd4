"""A gate over a site in which ada has an account, with a small program behind it, and browsers that come to it."""

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from alertreview.configuration import ProxySignIn, WebSettings
from dashboard.gate.gate import Gate
from db.database import Database
from tests.support.identity_provider import SECRET_FILE
from tests.support.sign_in_desk import PASSWORD, SignInDesk

PAGE = (
    "<html><head><title>x</title></head><body><script>\n window.a = 1\n</script>"
    "<script src='a.js'></script></body></html>"
)
SECRET = SECRET_FILE.read_text(encoding="utf-8").strip()
PROXY = WebSettings(
    hosts=("review.example",),
    tls_proxy="10.0.0.5",
    proxy=ProxySignIn(header="X-Remote-User", peer="10.0.0.5", secret_file=SECRET_FILE),
)


class MovingClock:
    """The machine's clock, and what a test adds to it."""

    def __init__(self) -> None:
        self.added = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.added


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture(scope="session")
def site_with_ada(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site in which ada has an account, to be copied."""
    file = tmp_path_factory.mktemp("gate") / "site.db"
    with Database(f"sqlite:///{file}") as database:
        database.upgrade()
        SignInDesk(database, MovingClock()).account("ada")
    return file


@pytest.fixture
def desk(site_with_ada: Path, tmp_path: Path, clock: MovingClock) -> Iterator[SignInDesk]:
    with Database(f"sqlite:///{shutil.copy(site_with_ada, tmp_path / 'site.db')}") as database:
        yield SignInDesk(database, clock)


async def shown(request: Request) -> Response:
    if request.url.path.startswith("/media"):
        return PlainTextResponse("patient rows")
    return HTMLResponse(PAGE)


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    try:
        while True:
            heard = await websocket.receive()
            if heard["type"] == "websocket.receive":
                await websocket.send({**heard, "type": "websocket.send"})
            else:
                return
    except WebSocketDisconnect:
        return


BEHIND = Starlette(
    routes=[WebSocketRoute("/_stcore/stream", echo), Route("/{path:path}", shown, methods=["GET", "POST"])]
)


@pytest.fixture
def browser(desk: SignInDesk) -> Callable[..., TestClient]:
    """Open a browser at a gate over the desk."""

    def opening(
        web: WebSettings | None = None,
        *,
        site: object | None = None,
        peer: str = "127.0.0.1",
        url: str = "http://127.0.0.1:8501",
    ) -> TestClient:
        guarded = Gate(BEHIND, web or WebSettings(), lambda: site or desk)
        return TestClient(guarded, base_url=url, client=(peer, 5000), follow_redirects=False)

    return opening


def form_key(page: str) -> str:
    found = re.search(r'name="form_key" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def sign_in(browser: TestClient, login: str = "ada", password: str = PASSWORD, target: str = "/") -> Response:
    key = form_key(browser.get("/login/code").text)
    return browser.post("/login", data={"form_key": key, "login": login, "password": password, "next": target})  # type: ignore[return-value]
