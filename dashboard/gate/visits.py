"""What a request to the gate claims: who makes it, where it wants to go, whether a person made it."""

import asyncio
import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from alertreview.access.passwords import same_secret
from alertreview.access.sign_in import fold
from alertreview.configuration import WebSettings, is_loopback
from alertreview.rights import Actor
from core.errors import RefusedError, SignedOutError
from core.vocabulary import SignInSource

if TYPE_CHECKING:
    from alertreview.application import Application

FORM_COOKIE = "alertreview_form"
LARGEST_FORM = 10_000
SLOWEST_FORM_SECONDS = 20.0
LONGEST_TARGET = 600
SECRET_HEADER = "x-alertreview-proxy-secret"  # noqa: S105 - the name of a header
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
"""Headers that a proxy adds: whoever sent the request does not sit at this machine."""
MACHINERY = ("/static/", "/_stcore/", "/media/", "/component/", "/vendor/")
"""Paths that no person types: files and calls of the page."""
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
TARGET = re.compile(r"/(?![/\\])[\x21-\x7e]*")


@dataclass(frozen=True)
class Visit:
    """One request or websocket at the gate."""

    connection: HTTPConnection
    web: WebSettings
    base: str = ""  # path under which a proxy shows the site, without a slash at its end; empty for none

    @property
    def path(self) -> str:
        """Path inside the site."""
        path = str(self.connection.scope.get("path", "/"))
        return path.removeprefix(self.base) or "/" if f"{path}/".startswith(f"{self.base}/") else path

    @property
    def target(self) -> str:
        """Path and query, as the browser has to ask for them again."""
        query = self.connection.scope.get("query_string", b"").decode("latin-1")
        return safe_target(f"{self.base}{self.path}" + (f"?{query}" if query else ""), self.base)

    @property
    def is_page(self) -> bool:
        """Whether a person opened a page, rather than the page a file."""
        scope = self.connection.scope
        return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and not self.path.startswith(MACHINERY)

    @property
    def is_act(self) -> bool:
        """Whether this extends an idle session: opening a page and downloading do."""
        return self.is_page or self.path.startswith("/media/")

    @property
    def is_from_elsewhere(self) -> bool:
        """Whether a link on another site led here; the browser then withholds the session's cookie."""
        return self.connection.headers.get("sec-fetch-site") == "cross-site"

    @property
    def browser(self) -> str:
        """User agent."""
        return self.connection.headers.get("user-agent", "")

    @property
    def address(self) -> str:
        """Address of the browser, as the TLS proxy names it or as it connected."""
        client = self.connection.client.host if self.connection.client else ""
        forwarded = self.connection.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        by_proxy = self.web.hosts and (client == self.web.tls_proxy or is_loopback(client))
        return forwarded if by_proxy and forwarded else client

    @property
    def is_secure(self) -> bool:
        """Whether the browser reaches the site over TLS."""
        return self.web.is_secure(host_name(self.connection))

    @property
    def proxy_identity(self) -> str:
        """Login that the signing-in proxy vouches for; empty from anybody else, or when it vouches for nobody."""
        proxy, client, headers = self.web.proxy, self.connection.client, self.connection.headers
        if proxy is None or client is None or client.host != proxy.peer:
            return ""
        return fold(headers.get(proxy.header, "")) if same_secret(headers.get(SECRET_HEADER, ""), proxy.secret) else ""

    @cached_property
    def form_key(self) -> str:
        """Key that ties the next form to this browser: the one it has, or a new one."""
        known = self.connection.cookies.get(FORM_COOKIE, "")
        return known if re.fullmatch(r"[\w-]{20,60}", known) else secrets.token_urlsafe(24)

    def next_page(self, form: dict[str, str]) -> str:
        """Return the page to open afterwards, as the form or the address asks."""
        return safe_target(form.get("next") or self.connection.query_params.get("next"), self.base)

    def token(self, site: "Application") -> str | None:
        """Return the session token that the browser claims."""
        return self.connection.cookies.get(site.sessions.cookie_name)

    def who(self, site: "Application", *, is_act: bool = False) -> Actor:
        """Return who is signed in; `is_act` extends the session.

        Raise SignedOutError if nobody is, a demonstration is opened from elsewhere, or the proxy names somebody else
        now.
        """
        actor = site.sessions.who(self.token(site), is_act=is_act)
        if actor.is_demo and not is_at_this_machine(self.connection, self.web):
            raise SignedOutError("The demonstration is open on its own machine only.")
        if actor.source is SignInSource.PROXY and actor.login != self.proxy_identity:
            raise SignedOutError("The proxy now names a different person.")
        return actor

    def set_cookie(self, response: Response, name: str, value: str) -> None:
        """Set a session cookie that scripts cannot read and other sites cannot send."""
        response.set_cookie(name, value, path=f"{self.base}/", httponly=True, samesite="strict", secure=self.is_secure)


def safe_target(text: str | None, base: str = "") -> str:
    """Return a path on this site to open after signing in; anything else leads to the first page."""
    target = text or ""
    if len(target) > LONGEST_TARGET or not TARGET.fullmatch(target) or not target.startswith(f"{base}/"):
        return f"{base}/"
    parts = urlsplit(target)
    inside = parts.path.removeprefix(base)
    if parts.scheme or parts.netloc or inside.startswith(("/login", "/logout", "/session", "/_stcore", "/media")):
        return f"{base}/"
    return target


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that this site has shown.

    Raise RefusedError if it is too large or too slow, comes from another site, or its key does not match the browser's
    cookie.
    """
    body = b""
    try:
        async with asyncio.timeout(SLOWEST_FORM_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > LARGEST_FORM:
                    raise RefusedError("The form is too large.")
    except TimeoutError:
        raise RefusedError("The form did not arrive in time. Send it again.") from None
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
    except ValueError:
        raise RefusedError("The form has too many fields.") from None
    form = {name: values[-1] for name, values in fields.items()}
    key = request.cookies.get(FORM_COOKIE, "")
    if not comes_from_here(request) or request.headers.get("sec-fetch-site") == "cross-site" or not key:
        raise RefusedError("This form did not come from this site, or is too old. Open the page again.")
    if not same_secret(key, form.get("form_key", "")):
        raise RefusedError("This form is too old. Open the page again.")
    return form


def host_name(connection: HTTPConnection) -> str:
    """Return the name in the Host header, without port; empty unless there is one header with a name and a port."""
    hosts = connection.headers.getlist("host")
    found = HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return found["name"] if found else ""


def comes_from_here(connection: HTTPConnection) -> bool:
    """Return whether no page of another origin asks; another port of the same machine is another origin.

    Browsers name the origin with every websocket, form and call between origins. Programs name none.
    """
    origins = connection.headers.getlist("origin")
    return all(origin.partition("://")[2] == connection.headers.get("host") for origin in origins)


def is_at_this_machine(connection: HTTPConnection, web: WebSettings) -> bool:
    """Return whether somebody sits at this machine: not through a proxy, and not at a site that others can reach."""
    client = connection.client
    return (
        not web.hosts
        and (client is None or is_loopback(client.host))
        and is_loopback(host_name(connection))
        and not any(name in connection.headers for name in FORWARDED)
    )
