"""Starting the dashboard: loopback only, protecting settings in force, nothing said that should not be."""

import asyncio
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest
from streamlit import config

from core.errors import SettingsError
from dashboard import gate, launch

ROOT = Path(__file__).resolve().parents[2]
CONFIG = tomllib.loads((ROOT / "dashboard" / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_an_address_that_others_can_reach_is_refused_with_a_sentence(address: str) -> None:
    with pytest.raises(SettingsError, match="no sign-in yet") as refused:
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
    with pytest.raises(SettingsError, match="no sign-in yet"):
        gate.check_settings()


def scope(kind: str, client: str, host: str) -> dict[str, object]:
    return {"type": kind, "client": (client, 5), "headers": [(b"host", host.encode())], "path": "/"}


def answers_of(kind: str, client: str, host: str) -> list[dict[str, object]]:
    """Messages that the gate sends for a request; a passed one is answered by a stub behind it."""
    sent: list[dict[str, object]] = []

    async def behind(_scope: object, _receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"X-Frame-Options", b"ALLOW")]})  # type: ignore[operator]

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    asyncio.run(gate.LoopbackGate(behind)(scope(kind, client, host), receive, send))  # type: ignore[arg-type]
    return sent


@pytest.mark.parametrize(
    ("client", "host", "passes"),
    [
        ("127.0.0.1", "127.0.0.1:8501", True),
        ("127.0.0.1", "localhost:8501", True),
        ("::1", "[::1]:8501", True),
        ("192.168.1.9", "127.0.0.1:8501", False),
        ("127.0.0.1", "evil.example:8501", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "", False),
    ],
)
def test_the_gate_answers_only_this_machine_under_its_own_name(client: str, host: str, passes: bool) -> None:
    assert answers_of("http", client, host)[0]["status"] == (200 if passes else 403)
    websocket = answers_of("websocket", client, host)[0]
    assert (websocket["type"] == "websocket.close") is not passes


def test_the_gates_headers_win_over_others() -> None:
    headers = answers_of("http", "127.0.0.1", "localhost")[0]["headers"]
    assert dict(headers)[b"x-frame-options"] == b"DENY"  # type: ignore[arg-type]
    assert b"X-Frame-Options" not in dict(headers)  # type: ignore[arg-type]


def test_no_module_of_the_dashboard_is_named_like_one_of_the_standard_library() -> None:
    names = {path.stem for path in (ROOT / "dashboard").rglob("*.py")} - {"__init__", "__main__"}
    names |= {path.name for path in (ROOT / "dashboard").iterdir() if path.is_dir()}
    assert not names & set(sys.stdlib_module_names)
    assert "pages" not in names


def test_the_logo_is_outlines_and_no_file_of_the_theme_names_another_host() -> None:
    theme = ROOT / "dashboard" / "theme"
    for path in theme.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "<text" not in text
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []


def test_streamlit_run_serves_with_the_protecting_settings_from_any_folder(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "dashboard" / "app.py")]
    # Told otherwise on the command line, the gate's settings hold all the same.
    command += [f"--server.port={port}", "--client.showErrorDetails=full", "--browser.gatherUsageStats=true"]
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=tmp_path, stdout=output, stderr=output)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(150):
            try:
                with urllib.request.urlopen(f"{url}/_stcore/host-config", timeout=1) as answer:
                    body, headers = answer.read(), answer.headers
                    break
            except OSError:
                time.sleep(0.2)
        else:
            pytest.fail(log.read_text())
        assert "default-src 'self'" in headers["content-security-policy"]
        assert b"enableCustomParentMessages" in body
    finally:
        server.terminate()
        server.wait(timeout=15)


def test_streamlit_run_on_an_open_address_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "dashboard" / "app.py"), "--server.address=0.0.0.0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == SettingsError.exit_code
    assert "no sign-in yet" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
