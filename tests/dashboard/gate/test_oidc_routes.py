"""Signing in at an identity provider through the routes of the gate: deep link, provider, callback, deep link."""

import html
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from alertreview.configuration import WebSettings
from core.vocabulary import Role, SignInSource
from dashboard.gate.gate import Gate
from dashboard.gate.sign_in import FLOW_COOKIE
from db.database import Database
from tests.support.identity_provider import OTHER_KEY, SmallProvider
from tests.support.sign_in_desk import SignInDesk

DEEP = "/alert?alert=17&run=2"
HOST = "http://127.0.0.1:8501"


async def shown(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"page {request.url.path}")


@pytest.fixture
def provider() -> Iterator[SmallProvider]:
    small = SmallProvider()
    yield small
    small.server.shutdown()
    small.server.server_close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site in which Vera has an account at the provider, to be copied."""
    file = tmp_path_factory.mktemp("oidc") / "site.db"
    with Database(f"sqlite:///{file}") as database:
        database.upgrade()
        desk = SignInDesk(database, lambda: datetime.now(UTC))
        desk.accounts.create("Vera", Role.COORDINATOR, login="vera@clinic", source=SignInSource.OIDC)
    return file


@pytest.fixture
def browser(provider: SmallProvider, template: Path, tmp_path: Path) -> Iterator[Callable[[], TestClient]]:
    """Open a browser at the gate of that site."""
    web = WebSettings(oidc=provider.settings())
    behind = Starlette(routes=[Route("/{path:path}", shown)])
    with Database(f"sqlite:///{shutil.copy(template, tmp_path / 'site.db')}") as database:
        desk = SignInDesk(database, lambda: datetime.now(UTC))
        yield lambda: TestClient(
            Gate(behind, web, lambda: desk), base_url=HOST, client=("127.0.0.1", 5000), follow_redirects=False
        )


def away(browser: TestClient, provider: SmallProvider) -> dict[str, str]:
    """Follow the sign-in page of a deep link to the provider, and sign in there."""
    asked = browser.get(DEEP)
    assert (asked.status_code, urlsplit(asked.headers["location"]).path) == (303, "/login")
    page = browser.get(asked.headers["location"])
    found = re.search(r'href="(/login/oidc[^"]*)"', page.text)
    assert found is not None
    link = html.unescape(found[1])
    sent = browser.get(link)
    assert sent.status_code == 303
    assert sent.headers["location"].startswith(f"{provider.url}/authorize?")
    return provider.authorize(sent.headers["location"])


@pytest.mark.checklist("A1")
def test_a_deep_link_survives_the_way_to_the_provider_and_back(
    browser: Callable[[], TestClient], provider: SmallProvider
) -> None:
    visitor = browser()
    query = away(visitor, provider)
    assert parse_qs(urlsplit(provider.asked["redirect_uri"]).query) == {}
    back = visitor.get("/login/oidc/callback", params=query)
    assert back.status_code == 200
    assert DEEP.replace("&", "&amp;") in back.text
    assert FLOW_COOKIE not in visitor.cookies
    assert visitor.get(DEEP).text == "page /alert"
    again = visitor.get("/login/oidc/callback", params=query)
    assert (again.status_code, "expired, was already used" in again.text) == (403, True)


def bent_state(_provider: SmallProvider, _visitor: TestClient, query: dict[str, str]) -> dict[str, str]:
    return {**query, "state": query["state"][::-1]}


def no_cookie(_provider: SmallProvider, visitor: TestClient, query: dict[str, str]) -> dict[str, str]:
    visitor.cookies.clear()
    return query


def wrong_nonce(provider: SmallProvider, _visitor: TestClient, query: dict[str, str]) -> dict[str, str]:
    provider.claims["nonce"] = "another"
    return query


def expired_code(_provider: SmallProvider, _visitor: TestClient, query: dict[str, str]) -> dict[str, str]:
    return {**query, "code": "an old code"}


def refused_there(_provider: SmallProvider, _visitor: TestClient, query: dict[str, str]) -> dict[str, str]:
    return {"state": query["state"], "error": "access_denied"}


def forged(provider: SmallProvider, _visitor: TestClient, query: dict[str, str]) -> dict[str, str]:
    provider.key = OTHER_KEY
    return query


def stranger(provider: SmallProvider, _visitor: TestClient, query: dict[str, str]) -> dict[str, str]:
    provider.claims["preferred_username"] = "nobody@clinic"
    return query


@pytest.mark.checklist("A1")
@pytest.mark.parametrize("bend", [bent_state, no_cookie, wrong_nonce, expired_code, refused_there, forged, stranger])
def test_whoever_comes_back_otherwise_stays_outside_with_a_sentence(
    browser: Callable[[], TestClient],
    provider: SmallProvider,
    bend: Callable[[SmallProvider, TestClient, dict[str, str]], dict[str, str]],
) -> None:
    visitor = browser()
    query = bend(provider, visitor, away(visitor, provider))
    back = visitor.get("/login/oidc/callback", params=query)
    assert back.status_code == 403
    assert "Not possible" in back.text
    assert "Traceback" not in back.text
    assert visitor.get(DEEP).status_code == 303


def test_a_provider_that_is_away_is_said_and_the_page_stays_whole(
    browser: Callable[[], TestClient], provider: SmallProvider
) -> None:
    provider.server.shutdown()
    provider.server.server_close()
    answer = browser().get("/login/oidc")
    assert answer.status_code == 503
    assert "identity provider" in answer.text
