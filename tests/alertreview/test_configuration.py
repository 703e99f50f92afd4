"""Variables, the file of a home, and what both may say; half a setting is refused with a sentence."""

from pathlib import Path

import pytest

from alertreview.configuration import WebSettings, read_configuration
from alertreview.settings import load_settings, load_web_settings
from core.errors import SettingsError
from dashboard import launch
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ALERTREVIEW_HOME", str(tmp_path))
    return tmp_path


def given(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"ALERTREVIEW_{name}", value)


def test_by_default_only_this_machine_is_answered() -> None:
    web = load_web_settings()
    assert web.model_dump(exclude={"anchor", "database", "digest", "webhook"}) == WebSettings().model_dump()
    assert web.may_listen_on("127.0.0.1")
    assert not any(web.may_listen_on(address) for address in ("0.0.0.0", "::", "192.168.1.4", "example.org", ""))


@pytest.mark.parametrize(
    ("variables", "may"),
    [
        ({"HOSTS": "review.example"}, False),
        ({"TLS_PROXY": "10.0.0.5"}, False),
        ({"LISTEN_WITHOUT_TLS": "yes"}, False),
        ({"HOSTS": "review.example", "TLS_PROXY": "10.0.0.5"}, True),
        ({"HOSTS": "a.example, b.example", "LISTEN_WITHOUT_TLS": "yes"}, True),
        ({"HOSTS": "a.example", "LISTEN_WITHOUT_TLS": "no"}, False),
        ({"HOSTS": "", "TLS_PROXY": "", "LISTEN_WITHOUT_TLS": "", "OIDC_ISSUER": ""}, False),
    ],
)
def test_an_open_address_needs_a_name_and_tls_or_the_wish_to_go_without(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], may: bool
) -> None:
    given(monkeypatch, variables)
    assert load_web_settings().may_listen_on("0.0.0.0") is may


@pytest.mark.parametrize(
    ("text", "path"),
    [("", ""), ("/", ""), ("review", "/review"), ("/review/", "/review"), ("/wards/review.2", "/wards/review.2")],
)
def test_a_base_path_is_read_in_every_spelling(monkeypatch: pytest.MonkeyPatch, text: str, path: str) -> None:
    given(monkeypatch, {"BASE_PATH": text})
    web = load_web_settings()
    assert web.base_path == path
    options = launch.settings(8501, web=web)
    assert options.get("server.baseUrlPath", "") == path.removeprefix("/")


def test_every_variable_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x" * 30 + "\n")
    given(
        monkeypatch,
        {
            "ADDRESS": "0.0.0.0",
            "HOSTS": "Review.Example",
            "PROXY_HEADER": "X-Remote-User",
            "PROXY_PEER": "10.0.0.5",
            "PROXY_SECRET_FILE": str(secret),
            "OIDC_ISSUER": "https://id.example/realm/",
            "OIDC_CLIENT_ID": "alertreview",
            "OIDC_CLIENT_SECRET_FILE": str(secret),
        },
    )
    web = load_web_settings()
    assert (web.address, web.hosts) == ("0.0.0.0", ("review.example",))
    assert web.proxy is not None
    assert (web.proxy.header, web.proxy.peer, web.proxy.secret) == ("x-remote-user", "10.0.0.5", "x" * 30)
    assert web.oidc is not None
    assert (web.oidc.issuer, web.oidc.claim) == ("https://id.example/realm", "preferred_username")
    assert web.oidc.client_secret == "x" * 30
    assert "xxx" not in repr(web)


def test_the_file_says_the_same_as_the_variables(home: Path) -> None:
    (home / "secret").write_text("x" * 30)
    (home / "alertreview.toml").write_text(
        f"""
        database = "sqlite:///{home}/other.db"
        address = "0.0.0.0"
        hosts = ["review.example", "Other.Example"]
        tls_proxy = "10.0.0.5"
        listen_without_tls = false
        base_path = "/review"

        [proxy]
        header = "X-Remote-User"
        peer = "10.0.0.5"
        secret_file = "{home}/secret"

        [oidc]
        issuer = "https://id.example"
        client_id = "alertreview"
        client_secret_file = "{home}/secret"
        claim = "email"
        """
    )
    web = load_web_settings()
    assert (web.address, web.hosts) == ("0.0.0.0", ("review.example", "other.example"))
    assert (web.tls_proxy, web.listen_without_tls, web.base_path) == ("10.0.0.5", False, "/review")
    assert web.proxy is not None
    assert web.proxy.secret == "x" * 30
    assert web.oidc is not None
    assert (web.oidc.claim, web.oidc.client_secret) == ("email", "x" * 30)
    assert load_settings().database_url == f"sqlite:///{home}/other.db"


def test_the_example_of_the_guide_sets_every_value_of_the_file(home: Path) -> None:
    guide = (ROOT / "docs" / "administrators.md").read_text(encoding="utf-8")
    (home / "alertreview.toml").write_text(guide.split("```toml\n")[1].split("```")[0])
    found = read_configuration(home)
    assert found.model_fields_set == set(type(found).model_fields)
    for section in (found.oidc, found.proxy, found.metrics, found.digest, found.webhook):
        assert section is not None
        assert section.model_fields_set == set(type(section).model_fields)


def test_options_precede_variables_precede_the_file_precedes_defaults(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    assert load_settings().database_url == f"sqlite:///{home}/alertreview.db"
    (home / "alertreview.toml").write_text(
        'database = "sqlite:///file.db"\naddress = "10.0.0.1"\n[oidc]\nissuer = "https://a"\nclient_id = "file"\n'
        'client_secret_file = "s"'
    )
    assert load_settings().database_url == "sqlite:///file.db"
    given(monkeypatch, {"DATABASE": "sqlite:///variable.db", "ADDRESS": "10.0.0.2", "OIDC_CLIENT_ID": "variable"})
    assert load_settings().database_url == "sqlite:///variable.db"
    assert load_settings(database="sqlite:///option.db").database_url == "sqlite:///option.db"
    found = read_configuration(home)
    assert found.oidc is not None
    assert (found.address, found.oidc.issuer, found.oidc.client_id) == ("10.0.0.2", "https://a", "variable")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"HOSTS": "https://review.example"}, "names such as review.hospital.example"),
        ({"HOSTS": "review.example:443"}, r"ALERTREVIEW_HOSTS is 'review.example:443'; .*without port\. Correct or"),
        ({"BASE_PATH": "https://host/review"}, "https://host/review'; expected a path like"),
        ({"BASE_PATH": "/a/../b"}, "a path like /alertreview"),
        ({"BASE_PATH": "/a b"}, "a path like /alertreview"),
        ({"BASE_PATH": "//a//b"}, "a path like /alertreview"),
        ({"TLS_PROXY": "proxy.example"}, "ALERTREVIEW_TLS_PROXY is 'proxy.example'; expected an IP address"),
        ({"LISTEN_WITHOUT_TLS": "perhaps"}, "'yes' or 'no'"),
        ({"PROXY_HEADER": "X-Remote-User"}, "ALERTREVIEW_PROXY_PEER, or 'proxy.peer' in .*, is missing"),
        ({"PROXY_HEADER": "Cookie", "PROXY_PEER": "10.0.0.5"}, "name of the header"),
        ({"PROXY_HEADER": "X-U", "PROXY_PEER": "10.0.0.5"}, "PROXY_SECRET_FILE, or .* is missing"),
        ({"OIDC_ISSUER": "http://id.example"}, "begins with https"),
        ({"OIDC_ISSUER": "https://id.example"}, "ALERTREVIEW_OIDC_CLIENT_ID, or .* is missing; expected the id of"),
        ({"OIDC_CLIENT_ID": "a"}, "ALERTREVIEW_OIDC_ISSUER, or .* is missing"),
        (
            {"OIDC_ISSUER": "https://id.example", "OIDC_CLIENT_ID": "a", "OIDC_CLIENT_SECRET_FILE": "/nowhere/at/all"},
            "/nowhere/at/all cannot be read",
        ),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    given(monkeypatch, variables)
    with pytest.raises(SettingsError, match=message):
        load_web_settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts = ['a:1']", r"'hosts' in .*alertreview\.toml is 'a:1'; expected host names"),
        ("databse = 'sqlite:///x.db'", r"'databse' in .*alertreview\.toml is not a setting\. Correct its name"),
        ("home = '/x'", "'home' in .* is not a setting"),
        ("[oidc]\nclient_secret = 'hunter2'", "'oidc.issuer' in .* is missing"),
        (
            "[oidc]\nissuer = 'https://a'\nclient_id = 'a'\nclient_secret_file = 'x'\nclient_secret = 'hunter2'",
            "'oidc.client_secret' in .* is not a setting",
        ),
        ("database = 5", "'database' in .* is 5; expected an SQLAlchemy URL"),
        ("oidc = 5", "'oidc' in .* is 5; expected a table with issuer"),
        ("hosts =", r"alertreview\.toml cannot be read \(Invalid value"),
    ],
)
def test_a_value_of_the_file_that_cannot_be_used_stops_every_command(home: Path, text: str, message: str) -> None:
    (home / "alertreview.toml").write_text(text)
    with pytest.raises(SettingsError, match=message) as refused:
        load_settings()
    assert "hunter2" not in str(refused.value)
    with pytest.raises(SettingsError, match=message):
        load_web_settings()


def test_a_short_secret_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2")
    given(monkeypatch, {"PROXY_HEADER": "X-User", "PROXY_PEER": "10.0.0.5", "PROXY_SECRET_FILE": str(file)})
    with pytest.raises(SettingsError, match="at least 24 are needed") as refused:
        load_web_settings()
    assert "hunter2" not in str(refused.value)
