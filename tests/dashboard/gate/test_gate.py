"""The gate over HTTP and websocket: nothing passes without a session, and headers hold."""

import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server import server_util
from threadpoolctl import threadpool_info, threadpool_limits

from alertreview.configuration import WebSettings
from alertreview.rights import Actor
from core.errors import DatabaseUnavailableError, SettingsError, StoreError
from core.vocabulary import PersonId, Role, SessionId
from dashboard.gate import downloads, gate
from dashboard.gate.headers import content_security_policy
from tests.dashboard.doubles.sign_in import FakeSessions
from tests.dashboard.guarded import PROXY, MovingClock, form_key, sign_in
from tests.support.isolated import run_apart
from tests.support.sign_in_desk import SignInDesk

STREAM = "ws://127.0.0.1:8501/_stcore/stream"
ROUNDABOUT = ("/media/rows.csv", "/%6dedia/rows.csv", "/media/%72ows.csv", "/media/./rows.csv", "/x/../media/rows.csv")


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


def button(path: str) -> bytes:
    """Return the message with which Streamlit shows a button for a file."""
    message = ForwardMsg()
    message.delta.new_element.download_button.url = path
    return message.SerializeToString()


def shown(path: str) -> bytes:
    """Return messages in which a path stands as text, as where a page repeats what somebody typed."""
    message = ForwardMsg()
    message.delta.new_element.markdown.body = path
    return message.SerializeToString()


def offer(visitor: TestClient, sent: bytes) -> None:
    """Let the page of a session be sent a message."""
    with visitor.websocket_connect(STREAM) as stream:
        stream.send_bytes(sent)
        assert stream.receive_bytes() == sent


@pytest.mark.checklist("B2", "B3")
def test_a_file_is_handed_only_to_the_session_that_its_page_was_sent_to_and_with_the_same_rights(
    browser: Callable[..., TestClient], desk: SignInDesk
) -> None:
    desk.account("eve")
    own, others = browser(), browser()
    sign_in(own)
    sign_in(others, "eve")
    assert own.get("/media/rows.csv").status_code == 403
    offer(own, button("/media/rows.csv"))
    assert own.get("/media/rows.csv").text == "patient rows"
    for path in ROUNDABOUT:
        for method in ("GET", "HEAD"):
            answer = others.request(method, path, headers={"range": "bytes=0-3"})
            assert "patient" not in answer.text, path
    assert others.get("/media/rows.csv").status_code == 403
    for sent in (shown("/media/rows.csv"), shown("see /media/rows.csv"), b"/media/rows.csv"):
        offer(others, sent)
        assert others.get("/media/rows.csv").status_code == 403, "who types an address is offered nothing"
    assert own.get("/media/rows.csv?x=1").status_code == 200
    assert own.get("/media/../media/rows.csv2").status_code == 403
    desk.accounts.set_units(desk.accounts.find("ada").person_id, ["ICU"])
    answer = own.get("/media/rows.csv")
    assert answer.status_code in {401, 403}
    assert "patient" not in answer.text
    own.post("/logout", data={"form_key": form_key(own.get("/logout").text)})
    sign_in(own)
    assert own.get("/media/rows.csv").status_code == 403, "a new session was offered nothing"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_sent_to_what_is_behind_sign_in(browser: Callable[..., TestClient], method: str) -> None:
    visitor = browser()
    sign_in(visitor)
    for path in ("/", "/_stcore/upload_file/1/2", "/media/rows.csv"):
        answer = visitor.request(method, path, content=b"x" * 10)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_what_is_remembered_of_offered_files_is_bounded() -> None:
    offered = downloads.Downloads()
    actor = Actor(PersonId(1), "Ada", Role.REVIEWER, session_id=SessionId(1))
    for number in range(downloads.FILES + 10):
        offered.note(actor, button(f"/media/{number}.csv"))
    assert not offered.may_have(actor, "/media/0.csv")
    assert offered.may_have(actor, f"/media/{downloads.FILES}.csv")
    for number in range(2, downloads.SESSIONS + 10):
        offered.note(replace(actor, session_id=SessionId(number)), button("/media/a.csv"))
    assert not offered.may_have(actor, f"/media/{downloads.FILES}.csv")


@pytest.mark.checklist("B2", "B3")
def test_pages_and_downloads_end_with_the_session(
    browser: Callable[..., TestClient], desk: SignInDesk, clock: MovingClock
) -> None:
    first, second = browser(), browser()
    for visitor in (first, second):
        assert sign_in(visitor).status_code == 303
        offer(visitor, button("/media/rows.csv"))
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


def test_a_link_from_another_site_makes_the_browser_ask_again_from_here(browser: Callable[..., TestClient]) -> None:
    answer = browser().get("/alert?alert=1&x=%22%3E", headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/alert?alert=1&amp;x=%22%3E">' in answer.text


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
    assert (
        '<head><script src="/login/page.js" defer></script><script src="/login/watch.js" defer></script>' in page.text
    )
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
    assert '<head><script src="/login/page.js" defer></script><title>' in page.text
    with here.websocket_connect(STREAM) as stream:
        stream.send_text("hello")
        assert stream.receive_text() == "hello"
    for name in ("x-forwarded-for", "forwarded", "x-real-ip"):
        assert here.get("/", headers={name: "203.0.113.9"}).status_code == 303
    known = WebSettings(hosts=("review.example",), listen_without_tls=True)
    assert browser(known, site=demo, peer="10.0.0.9", url="http://review.example").get("/").status_code == 303
    assert browser(known, site=demo).get("/").status_code == 303


def test_a_store_that_cannot_be_opened_gives_a_sentence_and_no_page(browser: Callable[..., TestClient]) -> None:
    class Broken:
        @property
        def sessions(self) -> object:
            raise StoreError("There is no database at here. Run 'alertreview init' with the same --home.")

    answer = browser(site=Broken()).get("/")
    assert answer.status_code == 503
    assert "There is no database at here." in answer.text


def test_a_page_whose_database_is_away_stays_open_and_what_was_sent_waits(
    browser: Callable[..., TestClient], desk: SignInDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LOOK_AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(gate, "ASK_AGAIN_SECONDS", 0.02)
    visitor = browser()
    sign_in(visitor)
    real, asked = type(desk.sessions).who, []

    def away(*given: object, **options: object) -> object:
        asked.append(1)
        if len(asked) < 10:
            raise DatabaseUnavailableError("The database server cannot be reached or went away.")
        return real(*given, **options)  # type: ignore[arg-type]

    with visitor.websocket_connect(STREAM) as stream:
        monkeypatch.setattr(type(desk.sessions), "who", away)
        assert visitor.get("/session").status_code == 503
        stream.send_text("vote")
        assert stream.receive_text() == "vote"
    assert len(asked) >= 10
    assert "what you typed is kept" in visitor.get("/login/watch.js").text


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
        (WebSettings(hosts=("review.example",), listen_without_tls=True), "10.0.0.6", "http://review.example", True),
    ],
)
def test_only_known_names_from_known_peers_are_answered(
    browser: Callable[..., TestClient], web: WebSettings, peer: str, url: str, answers: bool
) -> None:
    visitor = browser(web, peer=peer, url=url)
    assert (visitor.get("/").status_code != 403) is answers
    with pytest.raises(WebSocketDisconnect), visitor.websocket_connect(f"{url.replace('http', 'ws')}/_stcore/stream"):
        pass


@pytest.mark.checklist("B4")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8643@evil.example",
        "127.0.0.1:8643:1",
        "127.0.0.1 evil.example",
        "[::1]evil.example",
        "",
        "127.0.0.1/x",
    ],
)
def test_a_host_header_that_is_no_name_with_a_port_is_refused(browser: Callable[..., TestClient], host: str) -> None:
    assert browser().get("/login", headers={"host": host}).status_code == 403


@pytest.mark.checklist("B4")
@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:9999",
        "http://127.0.0.1",
        "http://localhost:8501",
        "http://evil.example",
        "http://127.0.0.1:8501@evil.example",
        "null",
        "",
        "http://[",
        "http://127.0.0.1:8501/",
        "http://127.0.0.1:8501, http://evil.example",
    ],
)
def test_a_page_of_another_origin_gets_nothing_with_the_readers_cookie(
    browser: Callable[..., TestClient], origin: str
) -> None:
    visitor = browser()
    sign_in(visitor)
    with pytest.raises(WebSocketDisconnect), visitor.websocket_connect(STREAM, headers={"origin": origin}):
        pass
    for method in ("GET", "POST", "PUT", "OPTIONS"):
        assert visitor.request(method, "/worklist", headers={"origin": origin}).status_code == 403
    with visitor.websocket_connect(STREAM, headers={"origin": "http://127.0.0.1:8501"}) as stream:
        stream.send_text("vote")
        assert stream.receive_text() == "vote"
    assert visitor.get("/worklist").status_code == 200


@pytest.mark.checklist("B5")
def test_no_address_is_looked_up_before_an_origin_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_address: object, **_options: object) -> None:
        raise AssertionError("something was looked up")

    gate.check_settings()
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    for origin in ("http://evil.example", "http://127.0.0.1.evil.example", "null"):
        assert not server_util.is_url_from_allowed_origins(origin)


def test_a_bad_setting_keeps_the_app_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALERTREVIEW_PROXY_HEADER", "X-Remote-User")
    with pytest.raises(SettingsError, match=r"ALERTREVIEW_PROXY_PEER, or 'proxy\.peer' in .*, is missing"):
        gate.check_settings()


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_sums_of_products_are_taken_by_the_thread_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    with threadpool_limits(2), ThreadPoolExecutor(max_workers=1) as page:
        gate.compute_in_one_thread()
        assert blas_threads()
        assert set(blas_threads()) == set(page.submit(blas_threads).result()) == {1}

    def no_site() -> None:
        raise StoreError("There is no database.")

    async def started() -> None:
        async with gate.lifespan(None):
            assert told == [1]

    told: list[int] = []
    monkeypatch.setattr(gate, "compute_in_one_thread", lambda: told.append(1))
    monkeypatch.setattr(gate, "site_of_process", no_site)
    monkeypatch.setattr(gate.gc, "freeze", lambda: None)
    run_apart(started())
