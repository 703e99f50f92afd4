"""Sign-in at an identity provider: complete flows against a small one on loopback, and invalid tokens."""

import logging
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
def test_a_complete_flow_with_a_deep_link_opens_a_session(
    provider: SmallProvider, desk: SignInDesk, client: Provider
) -> None:
    address, state = client.begin("/alert?alert=17", CALLBACK)
    query = provider.authorize(address)
    assert provider.asked["code_challenge_method"] == "S256"
    assert (provider.asked["response_type"], provider.asked["redirect_uri"]) == ("code", CALLBACK)
    target, session = client.complete(query, state, CALLBACK, "Browser")
    assert target == "/alert?alert=17"
    actor = desk.sessions.who(session)
    assert (actor.name, actor.role, actor.source) == ("Vera", Role.COORDINATOR, SignInSource.OIDC)
    with pytest.raises(RefusedError, match="expired, was already used, or began in another browser"):
        client.complete(query, state, CALLBACK)


INVALID_CLAIMS: tuple[dict[str, Any], ...] = (
    {"nonce": "another"},
    {"nonce": None},
    {"aud": "another site"},
    {"aud": "another site", "azp": "alertreview"},
    {"aud": ["another site", "alertreview"], "azp": "another site"},
    {"iss": "https://evil.example"},
    {"exp": 1_000_000},
    {"exp": None},
    {"iat": 4_000_000_000},
    {"preferred_username": None},
    {"preferred_username": ["vera@clinic"]},
    {"preferred_username": ""},
    {"preferred_username": "nobody@clinic"},
)


def test_an_invalid_token_opens_nothing(provider: SmallProvider, desk: SignInDesk, client: Provider) -> None:
    for claims in INVALID_CLAIMS:
        provider.claims = claims
        address, state = client.begin("/", CALLBACK)
        query = provider.authorize(address)
        try:
            client.complete(query, state, CALLBACK)
        except RefusedError:
            assert desk.accounts.sessions() == (), claims
        else:
            pytest.fail(f"{claims} opened a session")


@pytest.mark.parametrize("algorithm", ["RS256", "HS256", "none"])
def test_a_token_that_the_provider_did_not_sign_opens_nothing(
    provider: SmallProvider, client: Provider, algorithm: str
) -> None:
    provider.key = OTHER_KEY
    provider.header["alg"] = algorithm
    address, state = client.begin("/", CALLBACK)
    with pytest.raises(RefusedError, match="not valid"):
        client.complete(provider.authorize(address), state, CALLBACK)


def test_another_browser_a_wrong_code_or_a_refusal_opens_nothing(
    provider: SmallProvider, desk: SignInDesk, client: Provider, site: StoredSite
) -> None:
    for bend in ("cookie", "code", "refusal", "late", "no state"):
        address, state = client.begin("/", CALLBACK)
        query = provider.authorize(address)
        if bend == "code":
            query["code"] = "guessed"
        elif bend == "refusal":
            query = {"state": query["state"], "error": "access_denied"}
        elif bend == "late":
            site.clock.pass_hours(0.2)
        elif bend == "no state":
            query["state"] = ""
        with pytest.raises(RefusedError):
            client.complete(query, "" if bend in {"cookie", "no state"} else state, CALLBACK)
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
        address, state = client.begin("/reports", CALLBACK, number)
        with pytest.raises(RefusedError):
            client.complete(provider.authorize(address), state, CALLBACK)
        assert (provider.asked["prompt"], provider.asked["max_age"]) == ("login", "0")
    assert desk.sessions.who(token).confirmed_at is None
    provider.claims = {}
    address, state = client.begin("/reports", CALLBACK, number)
    target, session = client.complete(provider.authorize(address), state, CALLBACK)
    assert (target, session) == ("/reports", "")
    desk.sessions.use_confirmation(desk.sessions.who(token))
    desk.sessions.log_out(token)
    address, state = client.begin("/reports", CALLBACK, number)
    with pytest.raises(SignedOutError):
        client.complete(provider.authorize(address), state, CALLBACK)


def test_an_unreachable_or_misnamed_provider_is_reported(desk: SignInDesk, provider: SmallProvider) -> None:
    gone = Provider(provider.settings().model_copy(update={"issuer": "http://127.0.0.1:9"}), desk.sign_in)
    with pytest.raises(ProviderUnavailableError, match="does not answer"):
        gone.begin("/", CALLBACK)
    with pytest.raises(RefusedError, match="does not match ALERTREVIEW_OIDC_ISSUER"):
        Provider(provider.settings("/realm"), desk.sign_in).begin("/", CALLBACK)
    with pytest.raises(RefusedError, match="no identity provider"):
        Provider(None, desk.sign_in)


def test_endpoints_without_tls_are_refused(
    monkeypatch: pytest.MonkeyPatch, provider: SmallProvider, client: Provider
) -> None:
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        with monkeypatch.context() as patch:
            found = {**provider.metadata(), name: "http://id.example/x"}
            patch.setattr(provider, "metadata", lambda found=found: found)
            with pytest.raises(RefusedError, match=f"{name} does not use TLS"):
                client.begin("/", CALLBACK)


def test_no_secret_of_a_flow_is_logged(
    caplog: pytest.LogCaptureFixture, provider: SmallProvider, desk: SignInDesk, client: Provider
) -> None:
    caplog.set_level(logging.DEBUG)
    kept: list[str] = []
    desk.sign_in.keep_flow = lambda *given: kept.extend(map(str, given[:3]))  # type: ignore[method-assign]
    address, state = client.begin("/", CALLBACK)
    assert state in kept
    assert all(secret not in caplog.text for secret in kept)
    assert all(secret in address for secret in kept[:2])
