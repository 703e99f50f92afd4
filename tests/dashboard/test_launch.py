"""Starting the dashboard: this machine or behind TLS, protecting settings in force, nothing said that should not be."""

import os
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from streamlit import config
from streamlit.web.server.starlette import starlette_routes

from alertreview.configuration import WebSettings
from core.errors import SettingsError
from dashboard import launch
from dashboard.gate import gate
from tests.support.served import command_line, free_port

ROOT = Path(__file__).resolve().parents[2]
CONFIG = tomllib.loads((ROOT / "dashboard" / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_an_address_that_others_can_reach_is_refused_with_a_sentence(address: str) -> None:
    with pytest.raises(SettingsError, match="listens only behind TLS") as refused:
        launch.settings(8501, address=address)
    assert repr(address) in str(refused.value)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"])
def test_loopback_addresses_are_taken(address: str) -> None:
    assert launch.settings(8501, address=address)["server.address"] == address


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(SettingsError, match=f"Port {port} is not between 1 and 65535"):
        launch.settings(port)


def test_a_taken_port_is_named_instead_of_silently_taking_the_next() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(SettingsError, match=f"Port {port} on 127.0.0.1 cannot be used"):
            launch.serve(port=port)


def test_the_config_file_and_the_settings_in_code_say_the_same() -> None:
    for name, value in gate.SETTINGS.items():
        section, key = name.split(".")
        assert CONFIG[section][key] == value, name
    assert CONFIG["server"]["address"] == "127.0.0.1"


def test_every_setting_exists_in_this_streamlit() -> None:
    for name in gate.SETTINGS:
        config.get_option(name)
    template = config._config_options_template
    flat = [f"{section}.{key}" for section in ("server", "runner", "browser", "client") for key in CONFIG[section]]
    assert [name for name in flat if name not in template] == []


def test_the_gate_refuses_an_open_address_however_the_server_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate.config, "get_option", lambda name: "0.0.0.0" if name == "server.address" else None)
    with pytest.raises(SettingsError, match="listens only behind TLS"):
        gate.check_settings()


def test_an_open_address_is_taken_behind_a_proxy_that_speaks_tls() -> None:
    web = WebSettings(hosts=("review.example",), tls_proxy="10.0.0.5")
    options = launch.settings(8501, address="0.0.0.0", web=web)
    assert options["server.address"] == "0.0.0.0"
    assert options["server.allowedHosts"] == ["127.0.0.1", "localhost", "[::1]", "::1", "review.example"]


def test_the_logo_is_outlines_and_no_file_of_the_theme_names_another_host() -> None:
    theme = ROOT / "dashboard" / "theme"
    for path in theme.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "<text" not in text
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []


def status_of(url: str) -> tuple[int, dict[str, str], bytes]:
    """Ask without a cookie, and follow nothing."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_given: object) -> None:
            return None

    try:
        with urllib.request.build_opener(Stay).open(url, timeout=30) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, {name.lower(): value for name, value in error.headers.items()}, error.read()


def routes_of_streamlit() -> set[str]:
    """Paths that Streamlit itself says it answers under."""
    named = {value for name, value in vars(starlette_routes).items() if re.match(r"(BASE_)?ROUTE_", name)}
    return {"/" + route.strip("/") for route in named if isinstance(route, str)}


@pytest.mark.checklist("B4", "B5")
@pytest.mark.parametrize("starter", ["streamlit", "uvicorn"])
def test_however_it_is_started_nobody_passes_who_is_not_signed_in(starter: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    command_line("init", "--home", str(home))
    port = free_port()
    commands = {
        # Told otherwise on the command line, the gate's settings hold all the same.
        "streamlit": [
            "run",
            str(ROOT / "dashboard" / "app.py"),
            f"--server.port={port}",
            "--client.showErrorDetails=full",
        ],
        "uvicorn": ["dashboard.app:app", f"--port={port}", f"--app-dir={ROOT}"],
    }
    environment = {**os.environ, "ALERTREVIEW_HOME": str(home), "ALERTREVIEW_DATABASE": ""}
    log = tmp_path / "log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", starter, *commands[starter]]
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                if status_of(f"{url}/_stcore/health")[0] == 200:
                    break
            except OSError:
                time.sleep(0.2)
        else:
            pytest.fail(log.read_text())
        routes = routes_of_streamlit()
        assert {"/_stcore/stream", "/media", "/_stcore/host-config"} <= routes | {"/_stcore/stream"}
        pages = {f"/{path}" for path in ("", "worklist", "alert?alert=1", "review", "admin", "export")}
        for path in (routes | pages | {f"{route}/x" for route in routes}) - {gate.STREAMLIT_HEALTH, *gate.HEALTH_PATHS}:
            status, headers, body = status_of(url + path)
            assert status in {303, 401}, path
            assert "default-src 'self'" in headers["content-security-policy"], path
            assert b"script" not in body, path
        status, headers, body = status_of(f"{url}/login")
        assert status == 200
        assert b"alertreview account create" in body
    finally:
        server.terminate()
        server.wait(timeout=60)


def test_streamlit_run_on_an_open_address_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "dashboard" / "app.py"), "--server.address=0.0.0.0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == SettingsError.exit_code
    assert "listens only behind TLS" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
