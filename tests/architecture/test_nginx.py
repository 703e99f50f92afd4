"""The example for nginx, in a real nginx on loopback: path, headers and websocket come through."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from tests.support.isolated import run_apart
from tests.support.served import free_port
from tests.support.served import nginx as running_nginx


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


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """A running nginx with the example's server, without its TLS; its port and that of what stands behind it."""
    behind = free_port()
    with running_nginx(tmp_path, behind) as port:
        yield port, behind


def test_pages_below_the_base_path_come_through_with_the_host_and_the_true_address(nginx: tuple[int, int]) -> None:
    port, behind = nginx
    server = ThreadingHTTPServer(("127.0.0.1", behind), Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        forged = {"X-Forwarded-For": "10.0.0.1", "Host": "alertreview.example"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/alertreview/worklist?run=1", headers=forged)
        with urllib.request.urlopen(request, timeout=60) as answer:
            seen = json.load(answer)
        assert seen["path"] == "/alertreview/worklist?run=1"
        assert seen["headers"]["host"] == "alertreview.example"
        assert seen["headers"]["x-forwarded-for"] == "127.0.0.1", "what a client writes there must not pass"
        assert seen["headers"]["x-forwarded-proto"] == "http"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/elsewhere", timeout=60)
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


@pytest.mark.checklist("B5")
def test_browsers_are_told_to_ask_with_tls_only_whatever_the_answer(nginx: tuple[int, int]) -> None:
    port, _ = nginx
    for path in ("/elsewhere", "/alertreview/worklist"):  # refused by nginx; nothing answers behind it
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60)
        with refused.value:
            [rule] = refused.value.headers.get_all("Strict-Transport-Security")
        assert int(rule.removeprefix("max-age=")) >= 31_536_000, path
