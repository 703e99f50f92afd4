"""Signing in at the gate: cookies, deep links, passwords, the proxy header, forms tied to the browser."""

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import httpx
import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from alertreview.access.throttle import OF_ADDRESS, TOO_MANY
from alertreview.configuration import WebSettings
from core.errors import RefusedError
from core.vocabulary import Role, SignInSource
from dashboard.gate import visits
from dashboard.gate.gate import Gate
from dashboard.gate.sign_in import CHECKS_AT_ONCE
from db.database import Database
from tests.dashboard.guarded import BEHIND, PROXY, SECRET, MovingClock, form_key, sign_in
from tests.support.isolated import run_apart
from tests.support.sign_in_desk import PASSWORD, SignInDesk


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


def test_a_form_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "SLOWEST_FORM_SECONDS", 0.01)

    async def never() -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    request = Request({"type": "http", "method": "POST", "headers": []}, never)
    with pytest.raises(RefusedError, match="did not arrive in time"):
        run_apart(visits.form_of(request))


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
        browser(
            WebSettings(hosts=("review.example",), listen_without_tls=True),
            peer="10.0.0.5",
            url="http://review.example",
        ),
    ]
    for other in cases:
        assert other.get("/", headers=named).headers["location"].startswith("/login")
    unknown = browser(PROXY, peer="10.0.0.5", url="https://review.example")
    refused = unknown.get("/", headers={**named, "x-remote-user": "nobody<b>"})
    assert refused.status_code == 403
    assert "have no account here" in refused.text


@pytest.mark.checklist("B4")
def test_a_burst_is_refused_without_a_look_or_a_thread_and_writes_one_row(
    browser: Callable[..., TestClient], desk: SignInDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = browser(peer="127.0.0.9")
    form = {"form_key": form_key(visitor.get("/login").text), "login": "nobody", "password": "bad", "next": "/"}
    tried = [visitor.post("/login", data=form).status_code for _ in range(OF_ADDRESS.at_once)]
    assert tried == [401] * OF_ADDRESS.at_once
    begins = visitor.post("/login", data=form)
    looks, threads = desk.passwords.n_looks, []
    monkeypatch.setattr(anyio.to_thread, "run_sync", lambda *given, **_options: threads.append(given))
    for refused in [begins, *(visitor.post("/login", data=form) for _ in range(50))]:
        assert refused.status_code == 403
        assert TOO_MANY in refused.text
    assert (desk.passwords.n_looks, threads) == (looks, [])
    assert desk.acts(60).count(("sign-in", "sign-ins refused", "address 127.0.0.9")) == 1
    assert "sign-ins refused" in {failure.what for failure in desk.accounts.failures()}


@pytest.mark.checklist("B4")
def test_a_known_address_does_not_queue_behind_strangers(desk: SignInDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = Gate(BEHIND, WebSettings(), lambda: desk)
    hashing, go_on, real = [], threading.Event(), desk.passwords.matches

    def slow(stored: str | None, password: str) -> bool:
        if password == "bad":
            hashing.append(password)
            assert go_on.wait(60)
        return real(stored, password)

    monkeypatch.setattr(desk.passwords, "matches", slow)

    async def attempt(address: str, password: str) -> int:
        transport = httpx.ASGITransport(guarded, client=(address, 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8501") as visitor:
            key = form_key((await visitor.get("/login/code")).text)
            form = {"form_key": key, "login": "ada", "password": password, "next": "/"}
            return (await visitor.post("/login", data=form)).status_code

    async def scenario() -> None:
        assert await attempt("127.0.0.2", PASSWORD) == 303
        async with anyio.create_task_group() as strangers:
            for number in range(6):
                strangers.start_soon(attempt, f"127.0.1.{number}", "bad")
            try:
                with anyio.fail_after(30):
                    while len(hashing) < CHECKS_AT_ONCE:
                        await anyio.sleep(0.01)
                    assert await attempt("127.0.0.2", PASSWORD) == 303
                assert len(hashing) == CHECKS_AT_ONCE
            finally:
                go_on.set()

    run_apart(scenario())
