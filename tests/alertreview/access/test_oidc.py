"""Signing in at an identity provider: the whole way over a small one on loopback, and tokens that do not hold."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from alertreview.access.oidc import Provider
from core.errors import ProviderUnavailableError, RefusedError, SignedOutError
from core.vocabulary import Role, SignInSource
from tests.support.identity_provider import CALLBACK, OTHER_KEY, SmallProvider
from tests.support.sign_in_desk import SignInDesk
from tests.support.stored_site import StoredSite


@pytest.fixture
def provider() -> Iterator[SmallProvider]:
    small = SmallProvider()
    yield small
    small.server.shutdown()
    small.server.server_close()


@pytest.fixture
def desk(site: StoredSite) -> SignInDesk:
    opened = SignInDesk(site.database, site.clock)
    opened.accounts.create("Vera", Role.COORDINATOR, login="vera@clinic", source=SignInSource.OIDC)
    return opened


@pytest.fixture
def client(provider: SmallProvider, desk: SignInDesk) -> Provider:
    return Provider(provider.settings(), desk.sign_in)


@pytest.mark.checklist("A1")
def test_the_whole_way_with_a_deep_link_opens_a_session(
    provider: SmallProvider, desk: SignInDesk, client: Provider
) -> None:
    away = client.begin("/alert?alert=17", CALLBACK)
    query = provider.authorize(away.address)
    assert provider.asked["code_challenge_method"] == "S256"
    assert (provider.asked["response_type"], provider.asked["redirect_uri"]) == ("code", CALLBACK)
    back = client.returned(query, away.state, CALLBACK, "Browser")
    assert back.target == "/alert?alert=17"
    actor = desk.sessions.who(back.token)
    assert (actor.name, actor.role, actor.source) == ("Vera", Role.COORDINATOR, SignInSource.OIDC)
    with pytest.raises(RefusedError, match="too old, was used, or was begun in another browser"):
        client.returned(query, away.state, CALLBACK)


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another site"},
        {"iss": "https://evil.example"},
        {"exp": 1_000_000},
        {"exp": None},
        {"iat": 4_000_000_000},
        {"preferred_username": None},
        {"preferred_username": ["vera@clinic"]},
        {"preferred_username": ""},
        {"preferred_username": "nobody@clinic"},
    ],
)
def test_a_token_that_does_not_hold_opens_nothing(
    provider: SmallProvider, desk: SignInDesk, client: Provider, claims: dict[str, Any]
) -> None:
    provider.claims = claims
    away = client.begin("/", CALLBACK)
    with pytest.raises(RefusedError):
        client.returned(provider.authorize(away.address), away.state, CALLBACK)
    assert desk.accounts.sessions() == ()


def test_a_token_signed_by_another_key_opens_nothing(provider: SmallProvider, client: Provider) -> None:
    provider.key = OTHER_KEY
    away = client.begin("/", CALLBACK)
    with pytest.raises(RefusedError, match="does not hold"):
        client.returned(provider.authorize(away.address), away.state, CALLBACK)


def test_another_browser_a_wrong_code_or_a_refusal_opens_nothing(
    provider: SmallProvider, desk: SignInDesk, client: Provider, site: StoredSite
) -> None:
    for bend in ("cookie", "code", "refusal", "late", "no state"):
        away = client.begin("/", CALLBACK)
        query = provider.authorize(away.address)
        if bend == "code":
            query["code"] = "guessed"
        elif bend == "refusal":
            query = {"state": query["state"], "error": "access_denied"}
        elif bend == "late":
            site.clock.pass_hours(0.2)
        elif bend == "no state":
            query["state"] = ""
        with pytest.raises(RefusedError):
            client.returned(query, "" if bend in {"cookie", "no state"} else away.state, CALLBACK)
    assert desk.accounts.sessions() == ()


@pytest.mark.checklist("A5")
def test_fresh_credentials_are_asked_for_there_and_must_be_fresh_and_the_same_persons(
    provider: SmallProvider, desk: SignInDesk, client: Provider
) -> None:
    desk.accounts.create("Other", Role.VIEWER, login="other@clinic", source=SignInSource.OIDC)
    token = desk.sign_in.vouched(SignInSource.OIDC, "vera@clinic")
    number = desk.sessions.who(token).session_id
    for claims in ({"auth_time": int(time.time()) - 3600}, {"auth_time": None}, {"preferred_username": "other@clinic"}):
        provider.claims = claims
        away = client.begin("/reports", CALLBACK, number)
        with pytest.raises(RefusedError):
            client.returned(provider.authorize(away.address), away.state, CALLBACK)
        assert (provider.asked["prompt"], provider.asked["max_age"]) == ("login", "0")
    assert desk.sessions.who(token).confirmed_at is None
    provider.claims = {}
    away = client.begin("/reports", CALLBACK, number)
    back = client.returned(provider.authorize(away.address), away.state, CALLBACK)
    assert (back.target, back.token) == ("/reports", "")
    desk.sessions.use_confirmation(desk.sessions.who(token))
    desk.sessions.log_out(token)
    away = client.begin("/reports", CALLBACK, number)
    with pytest.raises(SignedOutError):
        client.returned(provider.authorize(away.address), away.state, CALLBACK)


def test_a_provider_that_is_away_or_calls_itself_otherwise_is_named(desk: SignInDesk, provider: SmallProvider) -> None:
    gone = Provider(provider.settings().model_copy(update={"issuer": "http://127.0.0.1:9"}), desk.sign_in)
    with pytest.raises(ProviderUnavailableError, match="does not answer"):
        gone.begin("/", CALLBACK)
    with pytest.raises(RefusedError, match="calls itself otherwise"):
        Provider(provider.settings("/realm"), desk.sign_in).begin("/", CALLBACK)
    with pytest.raises(RefusedError, match="no identity provider"):
        Provider(None, desk.sign_in)
