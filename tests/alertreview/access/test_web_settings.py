"""How a site may be reached: this machine, or behind TLS, or wanted in so many words; half a setting is refused."""

from pathlib import Path

import pytest

from alertreview.access.web_settings import WebSettings, load_web_settings
from core.errors import SettingsError
from dashboard import launch


def test_without_any_setting_only_this_machine_is_answered() -> None:
    web = load_web_settings({})
    assert web == WebSettings()
    assert web.may_listen_on("127.0.0.1")
    assert not any(web.may_listen_on(address) for address in ("0.0.0.0", "::", "192.168.1.4", "example.org", ""))


@pytest.mark.parametrize(
    ("given", "may"),
    [
        ({"ALERTREVIEW_HOSTS": "review.example"}, False),
        ({"ALERTREVIEW_TLS_PROXY": "10.0.0.5"}, False),
        ({"ALERTREVIEW_LISTEN_WITHOUT_TLS": "yes"}, False),
        ({"ALERTREVIEW_HOSTS": "review.example", "ALERTREVIEW_TLS_PROXY": "10.0.0.5"}, True),
        ({"ALERTREVIEW_HOSTS": "a.example, b.example", "ALERTREVIEW_LISTEN_WITHOUT_TLS": "yes"}, True),
        ({"ALERTREVIEW_HOSTS": "a.example", "ALERTREVIEW_LISTEN_WITHOUT_TLS": "no"}, False),
    ],
)
def test_an_open_address_needs_a_name_and_tls_or_the_wish_to_go_without(given: dict[str, str], may: bool) -> None:
    assert load_web_settings(given).may_listen_on("0.0.0.0") is may


@pytest.mark.parametrize(
    ("given", "path"),
    [("", ""), ("/", ""), ("review", "/review"), ("/review/", "/review"), ("/wards/review.2", "/wards/review.2")],
)
def test_a_base_path_is_read_in_every_spelling(given: str, path: str) -> None:
    web = load_web_settings({"ALERTREVIEW_BASE_PATH": given})
    assert web.base_path == path
    options = launch.settings(8501, web=web)
    assert options.get("server.baseUrlPath", "") == path.removeprefix("/")


def test_all_settings_are_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x" * 30 + "\n")
    web = load_web_settings(
        {
            "ALERTREVIEW_ADDRESS": "0.0.0.0",
            "ALERTREVIEW_HOSTS": "Review.Example",
            "ALERTREVIEW_PROXY_HEADER": "X-Remote-User",
            "ALERTREVIEW_PROXY_PEER": "10.0.0.5",
            "ALERTREVIEW_PROXY_SECRET_FILE": str(secret),
            "ALERTREVIEW_OIDC_ISSUER": "https://id.example/realm/",
            "ALERTREVIEW_OIDC_CLIENT_ID": "alertreview",
            "ALERTREVIEW_OIDC_CLIENT_SECRET_FILE": str(secret),
        }
    )
    assert (web.address, web.hosts) == ("0.0.0.0", ("review.example",))
    assert web.proxy is not None
    assert (web.proxy.header, web.proxy.peer, web.proxy.secret) == ("x-remote-user", "10.0.0.5", "x" * 30)
    assert web.oidc is not None
    assert (web.oidc.issuer, web.oidc.claim) == ("https://id.example/realm", "preferred_username")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ALERTREVIEW_HOSTS": "https://review.example"}, "names like review.hospital.example"),
        ({"ALERTREVIEW_HOSTS": "review.example:443"}, "without port"),
        (
            {"ALERTREVIEW_BASE_PATH": "https://host/review"},
            "is 'https://host/review'; a path like",
        ),
        ({"ALERTREVIEW_BASE_PATH": "/a/../b"}, "a path like /alertreview"),
        ({"ALERTREVIEW_BASE_PATH": "/a b"}, "a path like /alertreview"),
        ({"ALERTREVIEW_BASE_PATH": "//a//b"}, "a path like /alertreview"),
        ({"ALERTREVIEW_TLS_PROXY": "proxy.example"}, "ALERTREVIEW_TLS_PROXY is 'proxy.example'; an IP address"),
        ({"ALERTREVIEW_LISTEN_WITHOUT_TLS": "perhaps"}, "'yes' or 'no'"),
        ({"ALERTREVIEW_PROXY_HEADER": "X-Remote-User"}, "ALERTREVIEW_PROXY_PEER must be"),
        ({"ALERTREVIEW_PROXY_HEADER": "Cookie", "ALERTREVIEW_PROXY_PEER": "10.0.0.5"}, "name of a header"),
        ({"ALERTREVIEW_PROXY_HEADER": "X-U", "ALERTREVIEW_PROXY_PEER": "10.0.0.5"}, "SECRET_FILE is not set"),
        ({"ALERTREVIEW_OIDC_ISSUER": "http://id.example"}, "begins with https"),
        ({"ALERTREVIEW_OIDC_ISSUER": "https://id.example"}, "ALERTREVIEW_OIDC_CLIENT_ID must name"),
        (
            {
                "ALERTREVIEW_OIDC_ISSUER": "https://id.example",
                "ALERTREVIEW_OIDC_CLIENT_ID": "a",
                "ALERTREVIEW_OIDC_CLIENT_SECRET_FILE": "/nowhere/at/all",
            },
            "cannot be read",
        ),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_web_settings(given)


def test_a_short_secret_is_refused_without_being_shown(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2")
    given = {
        "ALERTREVIEW_PROXY_HEADER": "X-User",
        "ALERTREVIEW_PROXY_PEER": "10.0.0.5",
        "ALERTREVIEW_PROXY_SECRET_FILE": str(file),
    }
    with pytest.raises(SettingsError, match="at least 24 are needed") as refused:
        load_web_settings(given)
    assert "hunter2" not in str(refused.value)
