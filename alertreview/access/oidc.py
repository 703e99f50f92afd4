"""Sign-in at an identity provider: OpenID Connect, authorization code flow with PKCE.

authlib makes the requests and validates the ID token. The flow itself is a row of the database, taken once, because
authlib would keep it in a cookie that can be read and replayed.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import BaseApp, OAuth2Mixin, OpenIDMixin
from authlib.integrations.httpx_client import OAuth2Client
from joserfc.errors import JoseError

from alertreview.access.passwords import same_secret
from alertreview.access.sign_in import SignIn
from alertreview.configuration import OidcSettings, is_loopback
from core.errors import ProviderUnavailableError, RefusedError
from core.vocabulary import SessionId, SignInSource

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Key pairs only: with a shared key, whoever can check a signature could also make one."""
LEEWAY_SECONDS = 60
FRESH_SECONDS = 300
CONNECTION: dict[str, Any] = {"timeout": 10.0, "trust_env": False}

logging.getLogger("authlib").setLevel(logging.INFO)  # its debug messages hold the code verifier


class Client(OAuth2Mixin, OpenIDMixin, BaseApp):
    """authlib's OpenID Connect client over httpx."""

    client_cls = OAuth2Client


class Provider:
    """The identity provider of a site; raises RefusedError if the site has none."""

    def __init__(self, settings: OidcSettings | None, sign_in: SignIn) -> None:
        if settings is None:
            raise RefusedError("This site has no identity provider. Sign in with a password.")
        self._settings = settings
        self._sign_in = sign_in

    def begin(self, target: str, callback: str, confirms: SessionId | None = None) -> tuple[str, str]:
        """Start a flow; return the address at the provider, and a secret.

        The browser must bring the secret back in a cookie as well. The provider sends it back to `callback`; `target`
        is the page to open afterwards. With `confirms`, the person of that session gives fresh credentials instead of
        beginning a new session.
        """
        again = {} if confirms is None else {"prompt": "login", "max_age": "0"}
        sent = self._client().create_authorization_url(callback, **again)
        self._sign_in.keep_flow(sent["state"], sent["nonce"], sent["code_verifier"], target, confirms)
        return sent["url"], sent["state"]

    def complete(self, query: Mapping[str, str], cookie: str, callback: str, browser: str = "") -> tuple[str, str]:
        """Complete a flow: begin a session, or confirm credentials.

        Return the page to open, and the token of a new session or "". The cookie holds the state that `begin` gave this
        browser; somebody who follows a foreign link does not have it. Raise RefusedError if this browser began no such
        flow, the provider refused, its token is not valid, or the login it vouches for has no account.
        """
        state = query.get("state", "")
        flow = self._sign_in.take_flow(state) if state and same_secret(state, cookie) else None
        if flow is None:
            raise RefusedError("This sign-in has expired, was already used, or began in another browser. Start again.")
        if "code" not in query:
            raise RefusedError("The identity provider did not sign you in. Start again, or ask whoever runs it.")
        claims = self._claims(query["code"], callback, flow.code_verifier, flow.nonce)
        login = claims.get(self._settings.claim)
        if not isinstance(login, str) or not login:
            raise RefusedError(f"The identity provider sent no claim '{self._settings.claim}', which names the login.")
        if flow.confirms_session_id is None:
            return flow.target, self._sign_in.vouched(SignInSource.OIDC, login, browser)
        if time.time() - (claims.get("auth_time") or 0) > FRESH_SECONDS:
            raise RefusedError("The identity provider did not ask for your credentials again; nothing was confirmed.")
        self._sign_in.confirm_vouched(flow.confirms_session_id, SignInSource.OIDC, login)
        return flow.target, ""

    def _claims(self, code: str, callback: str, verifier: str, nonce: str) -> dict[str, Any]:
        """Return the claims of the ID token; authlib by itself would accept one issued to another client."""
        client = self._client()
        expected = {
            "iss": {"essential": True, "value": client.server_metadata["issuer"]},
            "aud": {"essential": True, "value": self._settings.client_id},
        }
        try:
            token = client.fetch_access_token(callback, code=code, code_verifier=verifier)
            return dict(client.parse_id_token(token, nonce, expected, leeway=LEEWAY_SECONDS) or {})
        except (AuthlibBaseError, JoseError, httpx.HTTPError, KeyError, TypeError, ValueError) as error:
            raise RefusedError(
                f"The answer of the identity provider is not valid ({type(error).__name__}). Compare the clocks of "
                "both machines, and the settings ALERTREVIEW_OIDC_... with what is registered there."
            ) from error

    def _client(self) -> Client:
        """Return a client of the provider's endpoints, which must be its own and over TLS; authlib does not check."""
        found = self._metadata()
        if str(found.get("issuer", "")).rstrip("/") != self._settings.issuer:
            raise RefusedError("The identity provider's issuer does not match ALERTREVIEW_OIDC_ISSUER.")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            address = httpx.URL(str(found.get(name, "")))
            if address.scheme != "https" and not is_loopback(address.host):
                raise RefusedError(f"The identity provider's {name} does not use TLS.")
        return Client(
            None,
            client_id=self._settings.client_id,
            client_secret=self._settings.client_secret,
            authorize_url=found["authorization_endpoint"],
            access_token_url=found["token_endpoint"],
            client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256", **CONNECTION},
            issuer=found["issuer"],
            jwks_uri=found["jwks_uri"],
            id_token_signing_alg_values_supported=ALGORITHMS,
        )

    def _metadata(self) -> dict[str, Any]:
        try:
            with httpx.Client(**CONNECTION) as client:
                answer = client.get(f"{self._settings.issuer}/.well-known/openid-configuration")
                return dict(answer.raise_for_status().json())
        except (httpx.HTTPError, TypeError, ValueError) as error:
            raise ProviderUnavailableError(
                "The identity provider does not answer. Try again, or sign in with a password if you have one."
            ) from error
