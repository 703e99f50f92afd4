"""How a site is reached and who may vouch for people: settings of the dashboard's server, from the environment."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import SettingsError

ADDRESS = "ALERTREVIEW_ADDRESS"
BASE_PATH = "ALERTREVIEW_BASE_PATH"
HOSTS = "ALERTREVIEW_HOSTS"
TLS_PROXY = "ALERTREVIEW_TLS_PROXY"
WITHOUT_TLS = "ALERTREVIEW_LISTEN_WITHOUT_TLS"
PROXY_HEADER = "ALERTREVIEW_PROXY_HEADER"
PROXY_PEER = "ALERTREVIEW_PROXY_PEER"
PROXY_SECRET = "ALERTREVIEW_PROXY_SECRET_FILE"  # noqa: S105 - the name of a variable that names a file
OIDC_ISSUER = "ALERTREVIEW_OIDC_ISSUER"
OIDC_CLIENT = "ALERTREVIEW_OIDC_CLIENT_ID"
OIDC_SECRET = "ALERTREVIEW_OIDC_CLIENT_SECRET_FILE"  # noqa: S105 - the name of a variable that names a file
OIDC_CLAIM = "ALERTREVIEW_OIDC_CLAIM"
SHORTEST_SECRET = 24
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class ProxySignIn:
    """A reverse proxy that signs people in and names them in a header.

    Parameters
    ----------
    header : str
        Header that holds the login, in small letters.
    peer : str
        Address of the proxy; from anywhere else the header means nothing.
    secret : str
        What the proxy sends in the header ``x-alertreview-proxy-secret``.
    """

    header: str
    peer: str
    secret: str


@dataclass(frozen=True)
class OidcSettings:
    """An identity provider.

    Parameters
    ----------
    issuer : str
        Its URL; https, but on this machine.
    client_id, client_secret : str
        As registered there.
    claim : str
        Claim of the ID token that holds the login.
    """

    issuer: str
    client_id: str
    client_secret: str
    claim: str = "preferred_username"


@dataclass(frozen=True)
class WebSettings:
    """How the dashboard is reached.

    Parameters
    ----------
    address : str
        Address to listen on.
    hosts : tuple of str
        Names, beyond this machine's own, under which browsers reach the site.
    tls_proxy : str
        Address of the proxy that speaks TLS; only it and this machine may then connect.
    without_tls : bool
        Whether other machines may connect without TLS.
    base_path : str
        Path under which a proxy shows the site on a host that it shares, as ``/alertreview``; empty for none.
    proxy : ProxySignIn or None
    oidc : OidcSettings or None
    """

    address: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    tls_proxy: str = ""
    without_tls: bool = False
    base_path: str = ""
    proxy: ProxySignIn | None = None
    oidc: OidcSettings | None = None

    def may_listen_on(self, address: str) -> bool:
        """Return whether listening on an address is safe: this machine's, or behind TLS, or wanted in so many words."""
        return is_loopback(address) or bool(self.hosts and (self.tls_proxy or self.without_tls))

    def answers(self, client: str | None, host: str) -> bool:
        """Return whether a request from an address under a name is answered at all."""
        if is_loopback(host):
            return is_loopback(client) or client is None
        if host.lower() not in self.hosts:
            return False
        return self.without_tls or client is None or is_loopback(client) or client == self.tls_proxy

    def is_secure(self, host: str) -> bool:
        """Return whether browsers under a name speak TLS, so that the cookie may say so."""
        return not is_loopback(host) and not self.without_tls


def is_loopback(address: str | None) -> bool:
    """Return whether an address or host name means this machine only."""
    if not address:
        return False
    name = address.strip().strip("[]").lower()
    if name in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def load_web_settings(environment: Mapping[str, str] | None = None) -> WebSettings:
    """Read the settings from environment variables; all of them are optional.

    Raises
    ------
    SettingsError
        If one cannot be used, or half of a pair is missing.
    """
    given = os.environ if environment is None else environment
    found = {name: given.get(name, "").strip() for name in given if name.startswith("ALERTREVIEW_")}
    hosts = tuple(filter(None, (host.strip().lower() for host in found.get(HOSTS, "").split(","))))
    for host in hosts:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", host):
            raise SettingsError(f"{HOSTS} holds {host!r}; names like review.hospital.example are needed, without port.")
    without_tls = found.get(WITHOUT_TLS, "").lower()
    if without_tls not in {"", "yes", "no"}:
        raise SettingsError(f"{WITHOUT_TLS} is {without_tls!r}; 'yes' or 'no' is needed.")
    return WebSettings(
        address=found.get(ADDRESS) or "127.0.0.1",
        hosts=hosts,
        tls_proxy=_address(TLS_PROXY, found.get(TLS_PROXY, "")),
        without_tls=without_tls == "yes",
        base_path=_base_path(found.get(BASE_PATH, "")),
        proxy=_proxy(found),
        oidc=_oidc(found),
    )


def _proxy(found: Mapping[str, str]) -> ProxySignIn | None:
    header = found.get(PROXY_HEADER, "").lower()
    if not header:
        return None
    if not re.fullmatch(r"[a-z0-9-]+", header) or header in {"host", "cookie", "authorization"}:
        raise SettingsError(f"{PROXY_HEADER} is {header!r}; the name of a header like X-Remote-User is needed.")
    peer = _address(PROXY_PEER, found.get(PROXY_PEER, ""))
    if not peer:
        raise SettingsError(f"{PROXY_HEADER} is set, so {PROXY_PEER} must be the address of the proxy that sets it.")
    secret = _secret(PROXY_SECRET, found.get(PROXY_SECRET, ""))
    if len(secret) < SHORTEST_SECRET:
        raise SettingsError(
            f"The file in {PROXY_SECRET} holds {len(secret)} characters; at least {SHORTEST_SECRET} are needed. "
            "Make one with: openssl rand -base64 32"
        )
    return ProxySignIn(header, peer, secret)


def _oidc(found: Mapping[str, str]) -> OidcSettings | None:
    issuer = found.get(OIDC_ISSUER, "").rstrip("/")
    if not issuer:
        return None
    scheme, _, rest = issuer.partition("://")
    name = rest.split("/")[0].rsplit(":", 1)[0]
    if scheme != "https" and not (scheme == "http" and is_loopback(name)):
        raise SettingsError(f"{OIDC_ISSUER} is {issuer!r}; an address that begins with https:// is needed.")
    if not found.get(OIDC_CLIENT):
        raise SettingsError(f"{OIDC_ISSUER} is set, so {OIDC_CLIENT} must name this site as registered there.")
    secret = _secret(OIDC_SECRET, found.get(OIDC_SECRET, ""))
    return OidcSettings(issuer, found[OIDC_CLIENT], secret, found.get(OIDC_CLAIM) or "preferred_username")


def _base_path(text: str) -> str:
    inside = text.strip("/")
    if not inside:
        return ""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*", inside):
        raise SettingsError(f"{BASE_PATH} is {text!r}; a path like /alertreview is needed, as the proxy has it.")
    return f"/{inside}"


def _address(name: str, text: str) -> str:
    if not text:
        return ""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise SettingsError(f"{name} is {text!r}; an IP address is needed.") from error


def _secret(name: str, file: str) -> str:
    if not file:
        raise SettingsError(f"{name} is not set; it names the file that holds the secret.")
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The file {file} in {name} cannot be read. Check its path and its permissions.") from error
