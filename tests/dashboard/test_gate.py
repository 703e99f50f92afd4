"""The gate over HTTP and websocket: nobody passes who is not signed in, forms are tied to the browser, headers hold."""

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

from alertreview.web_settings import ProxySignIn, WebSettings
from core.errors import SettingsError, StoreError
from core.vocabulary import Role, SignInSource
from dashboard import gate
from dashboard.gate import Gate
from dashboard.headers import content_security_policy
from db.session import Database
from tests.dashboard.fake_sign_in import FakeSessions
from tests.sign_in_desk import PASSWORD, SignInDesk

STREAM = "ws://127.0.0.1:8501/_stcore/stream"
SECRET = "a secret of the proxy, long enough"
PAGE = (
    "<html><head><title>x</title></head><body><script>\n window.a = 1\n</script>"
    "<script src='a.js'></script></body></html>"
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


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site in which ada has an account, to be copied."""
    file = tmp_path_factory.mktemp("gate") / "site.db"
    with Database(f"sqlite:///{file}") as database:
        database.upgrade()
        SignInDesk(database, MovingClock()).account("ada")
    return file


@pytest.fixture
def desk(template: Path, tmp_path: Path, clock: MovingClock) -> Iterator[SignInDesk]:
    with Database(f"sqlite:///{shutil.copy(template, tmp_path / 'site.db')}") as database:
        yield SignInDesk(database, clock)


async def shown(request: Request) -> Response:
    if request.url.path.startswith("/media"):
        return PlainTextResponse("patient rows")
    return HTMLResponse(PAGE)


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    try:
        while True:
            await websocket.send_text(await websocket.receive_text())
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


@pytest.mark.checklist("B4")
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_without_a_session_nothing_answers_but_sign_in_and_health(
    browser: Callable[..., TestClient], method: str
) -> None:
    visitor = browser()
    for path in (
        "/",
        "/worklist?run=1",
        "/media/rows.csv",
        "/static/a.js",
        "/_stcore/host-config",
        "/_stcore/upload_file/x",
        "/component/x",
        "/logins",
        "/loginx/../media",
        "//media/x",
        "/%2e%2e/media",
        "/_stcore/health/x",
    ):
        answer = visitor.request(method, path)
        assert answer.status_code in {303, 401}, (method, path)
        assert "patient" not in answer.text
        assert "window.a" not in answer.text
    assert visitor.get("/_stcore/health").status_code == 200


@pytest.mark.checklist("B4", "B2")
def test_a_websocket_opens_only_for_a_session_and_closes_when_it_ends(
    browser: Callable[..., TestClient], desk: SignInDesk, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LOOK_AGAIN_SECONDS", 0.05)
    visitor = browser()
    with pytest.raises(WebSocketDisconnect), visitor.websocket_connect(STREAM):
        pass
    sign_in(visitor)
    with visitor.websocket_connect(STREAM) as stream:
        stream.send_text("vote")
        assert stream.receive_text() == "vote"
        desk.accounts.end_sessions(desk.accounts.find("ada").person_id)
        with pytest.raises(WebSocketDisconnect) as closed:
            stream.receive_text()  # nothing was sent: the gate closes by itself
        assert closed.value.code == gate.SIGNED_OUT_CODE
    sign_in(visitor)
    monkeypatch.setattr(gate, "LOOK_AGAIN_SECONDS", 60.0)
    with visitor.websocket_connect(STREAM) as stream:
        stream.send_text("vote")
        assert stream.receive_text() == "vote"
        clock.added += timedelta(minutes=16)
        stream.send_text("vote after the time-out")
        with pytest.raises(WebSocketDisconnect):
            stream.receive_text()


@pytest.mark.checklist("B2", "B3")
def test_pages_and_downloads_end_with_the_session(
    browser: Callable[..., TestClient], desk: SignInDesk, clock: MovingClock
) -> None:
    first, second = browser(), browser()
    for visitor in (first, second):
        assert sign_in(visitor).status_code == 303
        assert visitor.get("/media/rows.csv").text == "patient rows"
    clock.added += timedelta(minutes=10)
    assert first.get("/worklist").status_code == 200
    assert second.get("/session").status_code == 204
    clock.added += timedelta(minutes=6)
    assert first.get("/media/rows.csv").status_code == 200
    assert second.get("/media/rows.csv").status_code == 401
    assert second.get("/session").status_code == 401
    sign_in(second)
    key = form_key(first.get("/logout").text)
    assert first.post("/logout?everywhere=1", data={"form_key": key}).headers["location"] == "/login"
    assert second.get("/media/rows.csv").status_code == 401
    sign_in(first)
    desk.accounts.set_active(desk.accounts.find("ada").person_id, False)
    assert first.get("/").status_code == 303


def test_the_cookie_is_for_this_site_alone_and_new_at_every_sign_in(
    browser: Callable[..., TestClient], desk: SignInDesk
) -> None:
    visitor = browser()
    cookies = [sign_in(visitor).headers.get_list("set-cookie")[0] for _ in range(2)]  # type: ignore[attr-defined]
    for cookie in cookies:
        assert cookie.startswith(f"{desk.sessions.cookie_name}=")
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Max-Age" not in cookie
        assert "Secure" not in cookie
    assert cookies[0] != cookies[1]
    assert len(desk.accounts.sessions()) == 1
    far = browser(
        WebSettings(hosts=("review.example",), tls_proxy="10.0.0.5"), peer="10.0.0.5", url="https://review.example"
    )
    assert "Secure" in sign_in(far).headers.get_list("set-cookie")[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["/alert?alert=17", "/worklist?unit=Ward+A&budget=0.5", "/review?study=demo&case=3"])
def test_a_deep_link_survives_the_sign_in(browser: Callable[..., TestClient], path: str) -> None:
    visitor = browser()
    to_login = visitor.get(path).headers["location"]
    page = visitor.get(to_login).text
    target = re.search(r'name="next" value="([^"]*)"', page)
    assert target is not None
    data = {"form_key": form_key(page), "login": "ada", "password": PASSWORD, "next": target[1].replace("&amp;", "&")}
    assert visitor.post("/login", data=data).headers["location"] == path


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/a\r\nX: y",
        "",
        "/login",
        "/logout",
        "/" + "a" * 700,
        "/\u00e4",
    ],
)
def test_nobody_is_led_to_another_site_after_signing_in(browser: Callable[..., TestClient], target: str) -> None:
    assert sign_in(browser(), target=target).headers["location"] == "/"


def test_a_link_from_another_site_makes_the_browser_ask_again_from_here(browser: Callable[..., TestClient]) -> None:
    answer = browser().get("/alert?alert=1&x=%22%3E", headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/alert?alert=1&amp;x=%22%3E">' in answer.text


def test_forms_of_other_sites_and_other_browsers_are_refused(
    browser: Callable[..., TestClient], desk: SignInDesk
) -> None:
    visitor, other = browser(), browser()
    key, others = form_key(visitor.get("/login").text), form_key(other.get("/login").text)
    given = {"login": "ada", "password": PASSWORD}
    tries = [
        ({**given, "form_key": others}, {}),
        (given, {}),
        ({**given, "form_key": key}, {"origin": "https://evil.example"}),
        ({**given, "form_key": key}, {"origin": "null"}),
        ({**given, "form_key": key}, {"sec-fetch-site": "cross-site"}),
        ({**given, "form_key": key, "x": "y" * 20_000}, {}),
    ]
    for data, headers in tries:
        answer = visitor.post("/login", data=data, headers=headers)
        assert answer.status_code == 403, (data, headers)
        assert not any(name == desk.sessions.cookie_name for name in answer.cookies)
    assert desk.accounts.sessions() == ()
    sign_in(visitor)
    for path in ("/logout", "/logout?everywhere=1", "/password", "/confirm"):
        assert visitor.post(path, data={"form_key": "x", "password": PASSWORD}).status_code == 403
    assert visitor.get("/").status_code == 200


def test_a_wrong_password_says_the_same_as_an_unknown_login_and_never_what_was_typed(
    browser: Callable[..., TestClient],
) -> None:
    texts = set()
    for login in ("ada", "nobody", '"><script>alert(1)</script>'):
        answer = sign_in(browser(), login, "wrong <b>password</b>")
        assert answer.status_code == 401
        assert "wrong <b>" not in answer.text  # type: ignore[attr-defined]
        assert "<script>" not in answer.text  # type: ignore[attr-defined]
        texts.add(re.search(r'role="alert">(.*?)</p>', answer.text)[1])  # type: ignore[attr-defined,index]
    assert len(texts) == 1


@pytest.mark.checklist("B5")
def test_every_answer_carries_the_headers_and_a_page_allows_only_its_own_scripts(
    browser: Callable[..., TestClient],
) -> None:
    visitor = browser()
    answers = [visitor.get(path) for path in ("/", "/login", "/media/x", "/session", "/login/none", "/_stcore/health")]
    sign_in(visitor)
    answers += [visitor.get(path) for path in ("/", "/worklist", "/media/x", "/logout", "/password", "/confirm")]
    answers.append(browser(url="http://evil.example").get("/"))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        scripts = re.search(r"script-src ([^;]*);", policy)
        assert scripts is not None
        assert set(re.sub(r"'sha256-[\w+/=]+'", "", scripts[1]).split()) == {"'self'"}
        assert "unsafe-eval" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    page = visitor.get("/")
    assert page.headers["content-security-policy"].count("'sha256-") == 1
    assert '<script src="/login/watch.js" defer></script></head>' in page.text
    assert int(page.headers["content-length"]) == len(page.content)
    assert "'sha256-" not in content_security_policy()


def test_the_demonstration_opens_without_a_password_on_its_own_machine_only(browser: Callable[..., TestClient]) -> None:
    class Demo:
        sessions = FakeSessions()

    demo = Demo()
    here = browser(site=demo)
    page = here.get("/worklist")
    assert page.status_code == 200
    assert "watch.js" not in page.text
    with here.websocket_connect(STREAM) as stream:
        stream.send_text("hello")
        assert stream.receive_text() == "hello"
    for name in ("x-forwarded-for", "forwarded", "x-real-ip"):
        assert here.get("/", headers={name: "203.0.113.9"}).status_code == 303
    known = WebSettings(hosts=("review.example",), without_tls=True)
    assert browser(known, site=demo, peer="10.0.0.9", url="http://review.example").get("/").status_code == 303
    assert browser(known, site=demo).get("/").status_code == 303


def test_a_site_without_accounts_says_how_to_make_the_first(browser: Callable[..., TestClient], tmp_path: Path) -> None:
    with Database(f"sqlite:///{tmp_path / 'new.db'}") as database:
        database.upgrade()
        new = SignInDesk(database, MovingClock())
        visitor = browser(site=new)
        assert visitor.get("/").headers["location"] == "/login?next=%2F"
        page = visitor.get("/login").text
        assert "alertreview account create" in page
        assert "--role administrator" in page
        code = new.accounts.create("Root", Role.ADMINISTRATOR, login="root")
        key = form_key(visitor.get("/login/code").text)
        given = {"form_key": key, "login": "root", "code": code, "password": PASSWORD, "again": "something else"}
        assert "The two new passwords differ" in visitor.post("/login/code", data=given).text
        assert visitor.post("/login/code", data={**given, "again": PASSWORD}).status_code == 303
        assert visitor.get("/").status_code == 200


def test_a_store_that_cannot_be_opened_gives_a_sentence_and_no_page(browser: Callable[..., TestClient]) -> None:
    class Broken:
        @property
        def sessions(self) -> object:
            raise StoreError("There is no database at here. Run 'alertreview init' to make it.")

    answer = browser(site=Broken()).get("/")
    assert answer.status_code == 503
    assert "There is no database at here." in answer.text


def test_the_password_is_changed_and_credentials_are_confirmed_on_pages_of_their_own(
    browser: Callable[..., TestClient], desk: SignInDesk
) -> None:
    visitor = browser()
    sign_in(visitor)
    key = form_key(visitor.get("/confirm?next=/reports").text)
    assert "Login or password is wrong" in visitor.post("/confirm", data={"form_key": key, "password": "no"}).text
    done = visitor.post("/confirm", data={"form_key": key, "password": PASSWORD, "next": "/reports"})
    assert done.headers["location"] == "/reports"
    token = visitor.cookies[desk.sessions.cookie_name]
    assert desk.sessions.who(token).confirmed_at is not None
    new = "another five words here"
    key = form_key(visitor.get("/password").text)
    given = {"form_key": key, "old": PASSWORD, "password": new, "again": new}
    assert "The password is changed" in visitor.post("/password", data=given).text
    assert sign_in(browser(), password=PASSWORD).status_code == 401
    assert sign_in(browser(), password=new).status_code == 303


PROXY = WebSettings(
    hosts=("review.example",), tls_proxy="10.0.0.5", proxy=ProxySignIn("x-remote-user", "10.0.0.5", SECRET)
)


def test_the_proxy_header_counts_from_its_peer_with_its_secret_only(
    browser: Callable[..., TestClient], desk: SignInDesk
) -> None:
    desk.accounts.create("Vera", Role.VIEWER, login="vera", source=SignInSource.PROXY)
    named = {"x-remote-user": "Vera", "x-alertreview-proxy-secret": SECRET}
    visitor = browser(PROXY, peer="10.0.0.5", url="https://review.example")
    began = visitor.get("/alert?alert=3", headers=named)
    assert (began.status_code, began.headers["location"]) == (303, "/alert?alert=3")
    assert visitor.get("/alert?alert=3", headers=named).status_code == 200
    for headers in ({}, {**named, "x-remote-user": "other"}, {**named, "x-alertreview-proxy-secret": "no"}):
        assert visitor.get("/media/x", headers=headers).status_code == 401
    cases = [
        browser(peer="127.0.0.1"),
        browser(PROXY, peer="127.0.0.1"),
        browser(WebSettings(hosts=("review.example",), without_tls=True), peer="10.0.0.5", url="http://review.example"),
    ]
    for other in cases:
        assert other.get("/", headers=named).headers["location"].startswith("/login")
    unknown = browser(PROXY, peer="10.0.0.5", url="https://review.example")
    refused = unknown.get("/", headers={**named, "x-remote-user": "nobody<b>"})
    assert refused.status_code == 403
    assert "have no account here" in refused.text


@pytest.mark.parametrize(
    ("web", "peer", "url", "answers"),
    [
        (WebSettings(), "192.168.1.9", "http://127.0.0.1:8501", False),
        (WebSettings(), "127.0.0.1", "http://evil.example", False),
        (WebSettings(), "127.0.0.1", "http://127.0.0.1.evil.example", False),
        (WebSettings(), "::1", "http://[::1]:8501", True),
        (PROXY, "10.0.0.5", "https://review.example", True),
        (PROXY, "10.0.0.6", "https://review.example", False),
        (PROXY, "10.0.0.5", "https://other.example", False),
        (PROXY, "127.0.0.1", "https://review.example", True),
        (WebSettings(hosts=("review.example",)), "10.0.0.6", "http://review.example", False),
        (WebSettings(hosts=("review.example",), without_tls=True), "10.0.0.6", "http://review.example", True),
    ],
)
def test_only_known_names_from_known_peers_are_answered(
    browser: Callable[..., TestClient], web: WebSettings, peer: str, url: str, answers: bool
) -> None:
    visitor = browser(web, peer=peer, url=url)
    assert (visitor.get("/").status_code != 403) is answers
    with pytest.raises(WebSocketDisconnect), visitor.websocket_connect(f"{url.replace('http', 'ws')}/_stcore/stream"):
        pass


def test_a_bad_setting_keeps_the_app_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALERTREVIEW_PROXY_HEADER", "X-Remote-User")
    with pytest.raises(SettingsError, match="ALERTREVIEW_PROXY_PEER must be the address"):
        gate.check_settings()
