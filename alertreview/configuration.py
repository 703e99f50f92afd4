"""Configuration of a site: environment variables, then the file ``alertreview.toml`` in the home, then defaults."""

import ipaddress
import os
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from core.errors import SettingsError

PREFIX = "ALERTREVIEW_"
CONFIG_FILE = "alertreview.toml"
SHORTEST_SECRET = 24


def is_loopback(address: str | None) -> bool:
    """Return whether an address or host name means this machine only."""
    if not address:
        return False
    name = address.strip().strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _issuer(text: str) -> str:
    scheme, _, rest = text.partition("://")
    host = rest.split("/")[0].rsplit(":", 1)[0]
    if scheme != "https" and not (scheme == "http" and is_loopback(host)):
        raise ValueError(text)
    return text.rstrip("/")


def _header(text: str) -> str:
    if text in {"host", "cookie", "authorization"}:
        raise ValueError(text)
    return text


def _base_path(text: object) -> object:
    return "/" + text.strip().strip("/") if isinstance(text, str) and text.strip("/ ") else ""


def _hosts(given: object) -> object:
    return [host for host in given.split(",") if host.strip()] if isinstance(given, str) else given


Text = Annotated[str, StringConstraints(min_length=1)]
SiteAddress = Annotated[str, StringConstraints(pattern=r"^https?://[^\s?#]+$")]
MailAddress = Annotated[str, StringConstraints(pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+$", max_length=254)]
Address = Annotated[str, AfterValidator(lambda text: str(ipaddress.ip_address(text)))]
Host = Annotated[str, StringConstraints(to_lower=True, pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$")]
BasePath = Annotated[
    str, StringConstraints(pattern=r"^((/[A-Za-z0-9_-][A-Za-z0-9._-]*)+)?$"), BeforeValidator(_base_path)
]


class _Section(BaseModel):
    """Values of one table of the file; each description completes "expected ..." in an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class ProxySignIn(_Section):
    """A reverse proxy that signs people in and names them in a header."""

    header: Annotated[str, StringConstraints(to_lower=True, pattern="^[a-zA-Z0-9-]+$"), AfterValidator(_header)] = (
        Field(description="the name of the header that holds the login, such as X-Remote-User")
    )
    peer: Address = Field(description="the IP address of the proxy; from any other address the header is ignored")
    secret_file: Path = Field(
        description=f"a file with {SHORTEST_SECRET} characters or more, which the proxy sends along"
    )

    @cached_property
    def secret(self) -> str:
        """Return what the proxy sends in the header ``x-alertreview-proxy-secret``.

        Raise SettingsError if the file cannot be read or holds too little.
        """
        return _read_own_secret(self.secret_file)


class OidcSettings(_Section):
    """An identity provider (OpenID Connect)."""

    issuer: Annotated[str, AfterValidator(_issuer)] = Field(
        description="the address of the identity provider, which begins with https://"
    )
    client_id: Text = Field(description="the id of this site as registered with the provider")
    client_secret_file: Path = Field(description="a file that holds the client secret")
    claim: Text = Field("preferred_username", description="the claim of the ID token that holds the login")

    @cached_property
    def client_secret(self) -> str:
        """Return the client secret as registered with the provider; raise SettingsError if the file cannot be read."""
        return _read_secret(self.client_secret_file)


class MetricsSettings(_Section):
    """Figures for Prometheus under ``/metrics``, to whoever shows the token."""

    token_file: Path = Field(
        description=f"a file with {SHORTEST_SECRET} characters or more, which Prometheus sends as its bearer token"
    )

    @cached_property
    def token(self) -> str:
        """Return what Prometheus sends in the header ``authorization``, after ``Bearer``.

        Raise SettingsError if the file cannot be read or holds too little.
        """
        return _read_own_secret(self.token_file)


class DigestSettings(_Section):
    """The mail server and the addresses of ``alertreview digest``."""

    smtp: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.-]+(:[0-9]{1,5})?$")] = Field(
        description="the name of a mail server, with its port unless it is 587"
    )
    sender: MailAddress = Field(description="the address that digests come from")
    site: SiteAddress = Field(description="the address of the dashboard, which begins with https:// or http://")
    security: Literal["starttls", "tls", "none"] = Field("starttls", description="'starttls', 'tls' or 'none'")
    user: str = Field("", description="the name by which the mail server knows this site, if it asks for one")
    password_file: Path | None = Field(None, description="a file that holds the password of that user")
    addresses: dict[str, MailAddress] = Field(default_factory=dict, description="a table of mail addresses by login")

    @property
    def password(self) -> str:
        """Return the password of the user at the mail server; raise SettingsError if the file cannot be read."""
        return _read_secret(self.password_file) if self.password_file else ""


class WebhookSettings(_Section):
    """Where ``alertreview digest`` posts how much waits in all studies."""

    url_file: Path = Field(description="a file that holds the address of the webhook, which begins with https://")
    site: SiteAddress = Field(description="the address of the dashboard, which begins with https:// or http://")

    @property
    def url(self) -> str:
        """Return the address; raise SettingsError if the file cannot be read or holds no address."""
        try:
            return _issuer(_read_secret(self.url_file))
        except ValueError:
            raise SettingsError(
                f"The file {self.url_file} holds no address that begins with https://. Write the webhook's into it."
            ) from None


class WebSettings(_Section):
    """How the dashboard is reached and who else may vouch for people."""

    address: Text = Field("127.0.0.1", description="an address to listen on")
    hosts: Annotated[tuple[Host, ...], NoDecode, BeforeValidator(_hosts)] = Field(
        (), description="host names such as review.hospital.example, without port"
    )
    tls_proxy: Address | None = Field(None, description="an IP address, that of the proxy that speaks TLS")
    listen_without_tls: bool = Field(False, description="'yes' or 'no': whether other machines may connect without TLS")
    base_path: BasePath = Field("", description="a path like /alertreview, as the proxy has it")
    proxy: ProxySignIn | None = Field(None, description="a table with header, peer and secret_file")
    oidc: OidcSettings | None = Field(None, description="a table with issuer, client_id and client_secret_file")
    metrics: MetricsSettings | None = Field(None, description="a table with token_file")

    def check_secrets(self) -> None:
        """Raise SettingsError if the file of a secret cannot be used, before the server starts."""
        if self.proxy is not None:
            _ = self.proxy.secret
        if self.oidc is not None:
            _ = self.oidc.client_secret
        if self.metrics is not None:
            _ = self.metrics.token
            if find_spec("prometheus_client") is None:
                raise SettingsError(
                    "The setting 'metrics' needs the package prometheus-client. Run: pip install 'alertreview[metrics]'"
                )

    @property
    def is_for_this_machine(self) -> bool:
        """Whether only browsers of this machine reach the site, and nobody else vouches for people."""
        return is_loopback(self.address) and not self.hosts and self.proxy is None and self.oidc is None

    def may_listen_on(self, address: str) -> bool:
        """Return whether listening on an address is safe: loopback, behind TLS, or explicitly without."""
        return is_loopback(address) or bool(self.hosts and (self.tls_proxy or self.listen_without_tls))

    def answers(self, client: str | None, host: str) -> bool:
        """Return whether a request from a client address for a host name is answered at all."""
        if is_loopback(host):
            return is_loopback(client) or client is None
        if host.lower() not in self.hosts:
            return False
        return self.listen_without_tls or client is None or is_loopback(client) or client == self.tls_proxy

    def is_secure(self, host: str) -> bool:
        """Return whether browsers reach a host name over TLS, so that cookies can be marked secure."""
        return not is_loopback(host) and not self.listen_without_tls


class Configuration(BaseSettings, WebSettings):
    """Everything that environment variables and the file of a home may set; see `read_configuration`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="_", env_nested_max_split=1, env_ignore_empty=True
    )
    database: str = Field("", description="an SQLAlchemy URL")
    anchor: Path | None = Field(
        None, description="a file outside the home, to which heads of the audit trail are added"
    )

    digest: DigestSettings | None = Field(None, description="a table with smtp, sender and site")
    webhook: WebhookSettings | None = Field(None, description="a table with url_file and site")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources, strongest first."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


_SECTIONS: dict[str, type[_Section]] = {
    "proxy": ProxySignIn,
    "oidc": OidcSettings,
    "metrics": MetricsSettings,
    "digest": DigestSettings,
    "webhook": WebhookSettings,
}


def read_configuration(home: Path, **given: Any) -> Configuration:
    """Read the configuration of a site; neither the home nor the file has to exist.

    Values of the command line, where they are not None, take precedence. Raise SettingsError if a value cannot be used,
    a key is unknown, or the file cannot be read.
    """
    file = home / CONFIG_FILE

    class OfHome(Configuration):
        model_config = SettingsConfigDict(toml_file=file)

    try:
        return OfHome(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise _explained(error, file) from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read ({error}). Correct or remove it.") from error
    except RecursionError:
        raise SettingsError(f"{file} cannot be read (nested too deeply). Correct or remove it.") from None


def _explained(error: ValidationError, file: Path) -> SettingsError:
    """Return the first error as a sentence: where the value comes from, the value, the rule, the next step."""
    first = error.errors()[0]
    keys = [str(part) for part in first["loc"] if isinstance(part, str)]
    variable, key = PREFIX + "_".join(keys).upper(), ".".join(keys)
    field = _field(keys)
    source = variable if variable in os.environ and (field or len(keys) > 1) else f"'{key}' in {file}"
    if field is None:
        return SettingsError(f"{source} is not a setting. Correct its name or remove it.")
    if first["type"] == "missing":
        return SettingsError(f"{variable}, or '{key}' in {file}, is missing; expected {field.description}.")
    return SettingsError(f"{source} is {first['input']!r}; expected {field.description}. Correct or remove it.")


def _field(keys: list[str]) -> FieldInfo | None:
    fields = Configuration.model_fields
    if keys[0] in _SECTIONS and len(keys) > 1:
        fields = _SECTIONS[keys[0]].model_fields
    return fields.get(keys[-1])


def _read_own_secret(file: Path) -> str:
    """Read a secret that the site chose itself, and refuse one that can be guessed."""
    secret = _read_secret(file)
    if len(secret) < SHORTEST_SECRET:
        raise SettingsError(
            f"The secret in {file} has {len(secret)} characters; at least {SHORTEST_SECRET} are needed. "
            "Make one with: openssl rand -base64 32"
        )
    return secret


def _read_secret(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The secret in {file} cannot be read. Check the path and its permissions.") from error
