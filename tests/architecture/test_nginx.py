"""The example for nginx, in a real nginx on loopback: path, headers and websocket come through."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from tests.apart import run_apart
from tests.conftest import require

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "deploy" / "nginx.conf"


class Echo(BaseHTTPRequestHandler):
    """Answers with what arrived."""

    def do_GET(self) -> None:
        body = json.dumps({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Keep quiet."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """A running nginx with the example's server, without its TLS; its port and that of what stands behind it."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin")
    require(program is not None, "nginx")
    port, behind = free_port(), free_port()
    site = EXAMPLE.read_text(encoding="utf-8")
    for shipped, here in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("    ssl_certificate     /etc/ssl/certs/alertreview.pem;\n", ""),
        ("    ssl_certificate_key /etc/ssl/private/alertreview.key;\n", ""),
        ("    ssl_protocols TLSv1.2 TLSv1.3;\n", ""),
        ("http://127.0.0.1:8501", f"http://127.0.0.1:{behind}"),
    ):
        assert shipped in site, shipped
        site = site.replace(shipped, here)
    paths = "".join(f"{kind}_temp_path {tmp_path};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = tmp_path / "nginx.conf"
    config.write_text(
        f"daemon off;\npid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}{site}}}\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([str(program), "-c", str(config), "-p", str(tmp_path)], stderr=subprocess.PIPE)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        yield port, behind
    finally:
        process.terminate()
        process.communicate()


def test_pages_below_the_base_path_come_through_with_the_host_and_the_true_address(nginx: tuple[int, int]) -> None:
    port, behind = nginx
    server = ThreadingHTTPServer(("127.0.0.1", behind), Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        forged = {"X-Forwarded-For": "10.0.0.1", "Host": "alertreview.example"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/alertreview/worklist?run=1", headers=forged)
        with urllib.request.urlopen(request, timeout=10) as answer:
            seen = json.load(answer)
        assert seen["path"] == "/alertreview/worklist?run=1"
        assert seen["headers"]["host"] == "alertreview.example"
        assert seen["headers"]["x-forwarded-for"] == "127.0.0.1", "what a client writes there must not pass"
        assert seen["headers"]["x-forwarded-proto"] == "http"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/elsewhere", timeout=10)
    finally:
        server.shutdown()
        server.server_close()


def test_the_websocket_comes_through(nginx: tuple[int, int]) -> None:
    port, behind = nginx

    async def talk() -> list[str]:
        async with (
            serve(_echo, "127.0.0.1", behind),
            connect(f"ws://127.0.0.1:{port}/alertreview/_stcore/stream", proxy=None) as link,
        ):
            for word in ("one", "two"):
                await link.send(word)
            return [str(await link.recv()) for _ in range(2)]

    assert run_apart(talk()) == ["one", "two"]


async def _echo(link: object) -> None:
    async for message in link:  # type: ignore[attr-defined]
        await link.send(message)  # type: ignore[attr-defined]
