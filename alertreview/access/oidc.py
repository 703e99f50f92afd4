"""Signing in at an identity provider: OpenID Connect, authorization code with PKCE, every claim checked."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx
from authlib.integrations.httpx_client import OAuth2Client  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from alertreview.access.passwords import new_token, same_secret
from alertreview.access.sign_in import SignIn
from alertreview.configuration import OidcSettings, is_loopback
from core.errors import ProviderUnavailableError, RefusedError
from core.vocabulary import SignInSource

if TYPE_CHECKING:
    from joserfc.jwk import KeySetSerialization

SCOPE = "openid profile email"
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Signatures by a key pair only: with a shared key, whoever can check could also sign."""
LEEWAY_SECONDS = 60
FRESH_SECONDS = 300
TIMEOUT_SECONDS = 10.0
CLOCK_WORDS = (
    "Compare the clocks of both machines, and the settings ALERTREVIEW_OIDC_... with what is registered there."
)


@dataclass(frozen=True)
class Away:
    """A browser that is sent to the provider: where to, and what it must bring back."""

    address: str
    state: str


@dataclass(frozen=True)
class Back:
    """A browser that came back: where it wanted to go, and its session; without a token, credentials were confirmed."""

    target: str
    token: str


class Provider:
    """The identity provider of a site.

    Parameters
    ----------
    settings : OidcSettings or None
    sign_in : SignIn
        Keeps what is on its way, and knows who has an account.

    Raises
    ------
    RefusedError
        If the site has no provider.
    """

    def __init__(self, settings: OidcSettings | None, sign_in: SignIn) -> None:
        if settings is None:
            raise RefusedError("This site has no identity provider. Sign in with a password.")
        self._settings = settings
        self._sign_in = sign_in

    def begin(self, target: str, callback: str, confirms: int | None = None) -> Away:
        """Send a browser to the provider.

        Parameters
        ----------
        target : str
            Page to open afterwards.
        callback : str
            Address to which the provider leads the browser back.
        confirms : int or None
            Number of a session whose person gives fresh credentials, instead of beginning a new one.
        """
        state, nonce, verifier = new_token(), new_token(), new_token() + new_token()
        metadata = self._metadata()
        again = {} if confirms is None else {"prompt": "login", "max_age": "0"}
        with self._client(callback) as client:
            address, _ = client.create_authorization_url(
                metadata["authorization_endpoint"], state=state, nonce=nonce, code_verifier=verifier, **again
            )
        self._sign_in.keep_flow(state, nonce, verifier, target, confirms)
        return Away(address, state)

    def returned(self, query: Mapping[str, str], cookie: str, callback: str, browser: str = "") -> Back:
        """Take a browser back: begin a session, or confirm credentials.

        Parameters
        ----------
        query : mapping
            Parameters with which the provider led the browser here.
        cookie : str
            What this browser was given on its way out: a link sent by somebody else does not have it.
        callback : str
            As given to `begin`.
        browser : str
            What the browser says it is.

        Raises
        ------
        RefusedError
            If the browser was not sent by us, the provider refused, its token does not hold, or nobody here has the
            name it vouches for.
        """
        state = query.get("state", "")
        flow = self._sign_in.take_flow(state) if state and same_secret(state, cookie) else None
        if flow is None:
            raise RefusedError("This sign-in is too old, was used, or was begun in another browser. Begin again.")
        if "code" not in query:
            raise RefusedError("The identity provider did not sign you in. Begin again, or ask whoever runs it.")
        claims = self._claims(query["code"], callback, flow.code_verifier, flow.nonce)
        login = claims.get(self._settings.claim)
        if not isinstance(login, str) or not login:
            raise RefusedError(f"The identity provider gave no claim '{self._settings.claim}', which names the login.")
        if flow.confirms_session_id is None:
            return Back(flow.target, self._sign_in.vouched(SignInSource.OIDC, login, browser))
        if time.time() - int(claims.get("auth_time", 0)) > FRESH_SECONDS:
            raise RefusedError("The identity provider did not ask for your credentials again; nothing was confirmed.")
        self._sign_in.confirm_vouched(flow.confirms_session_id, SignInSource.OIDC, login)
        return Back(flow.target, "")

    def _claims(self, code: str, callback: str, verifier: str, nonce: str) -> dict[str, Any]:
        metadata = self._metadata()
        try:
            with self._client(callback) as client:
                answer = client.fetch_token(metadata["token_endpoint"], code=code, code_verifier=verifier)
            keys = KeySet.import_key_set(cast("KeySetSerialization", self._get(metadata["jwks_uri"])))
            token = jwt.decode(answer["id_token"], keys, algorithms=ALGORITHMS)
            rules = jwt.JWTClaimsRegistry(
                leeway=LEEWAY_SECONDS,
                iss={"essential": True, "value": metadata["issuer"]},
                aud={"essential": True, "value": self._settings.client_id},
                exp={"essential": True},
                iat={"essential": True},
                nonce={"essential": True, "value": nonce},
            )
            rules.validate(token.claims)
        except (JoseError, httpx.HTTPError, KeyError, ValueError) as error:
            raise RefusedError(
                f"What the identity provider answered does not hold ({type(error).__name__}). {CLOCK_WORDS}"
            ) from error
        except Exception as error:
            if not type(error).__module__.startswith("authlib"):
                raise
            raise RefusedError("The identity provider did not take our question. " + CLOCK_WORDS) from error
        return dict(token.claims)

    def _metadata(self) -> dict[str, Any]:
        """Ask the provider where its doors are; they must all be its own, over TLS."""
        found = self._get(f"{self._settings.issuer}/.well-known/openid-configuration")
        if str(found.get("issuer", "")).rstrip("/") != self._settings.issuer:
            raise RefusedError("The identity provider calls itself otherwise than ALERTREVIEW_OIDC_ISSUER says.")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            address = httpx.URL(str(found.get(name, "")))
            if address.scheme != "https" and not is_loopback(address.host):
                raise RefusedError(f"The identity provider's {name} is not over TLS.")
        return found

    def _get(self, address: str) -> dict[str, Any]:
        try:
            with httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False) as client:
                answer = client.get(address).raise_for_status().json()
        except (httpx.HTTPError, ValueError) as error:
            raise ProviderUnavailableError(
                "The identity provider does not answer. Try again, or sign in with a password if you have one."
            ) from error
        if not isinstance(answer, dict):
            raise RefusedError("The identity provider answered something else than it should.")
        return answer

    def _client(self, callback: str) -> OAuth2Client:
        return OAuth2Client(
            client_id=self._settings.client_id,
            client_secret=self._settings.client_secret,
            scope=SCOPE,
            redirect_uri=callback,
            code_challenge_method="S256",
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )
