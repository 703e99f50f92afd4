"""The two routes that answer without a sign-in: one word each, whatever happens behind them."""

import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from dashboard.gate.health import HealthRoutes
from tests.support.isolated import run_apart


class Site:
    """A site that is ready, not ready, or cannot even be asked."""

    def __init__(self, state: bool | Exception) -> None:
        self._state = state

    def ready(self) -> bool:
        if isinstance(self._state, Exception):
            raise self._state
        return self._state


def ask(routes: HealthRoutes, path: str, method: str = "GET") -> tuple[int, bytes, dict[bytes, bytes]]:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b""}

    run_apart(routes({"type": "http", "path": path, "method": method}, receive, send))
    return sent[0]["status"], sent[1]["body"], dict(sent[0]["headers"])


@pytest.mark.parametrize(
    ("state", "status", "word"),
    [
        (True, 200, "ready"),
        (False, 503, "not ready"),
        (RuntimeError("canary of a patient"), 503, "not ready"),
    ],
)
def test_ready_is_one_word_and_never_the_reason(state: bool | Exception, status: int, word: str) -> None:
    code, body, headers = ask(HealthRoutes(lambda: Site(state)), "/ready")
    assert (code, json.loads(body)) == (status, {"status": word})
    assert headers[b"cache-control"] == b"no-store"
    assert int(headers[b"content-length"]) == len(body)


def test_a_site_that_cannot_be_opened_is_alive_and_not_ready() -> None:
    def cannot() -> Site:
        raise OSError("canary")

    routes = HealthRoutes(cannot)
    assert ask(routes, "/base/health")[:2] == (200, b'{"status": "alive"}')
    assert ask(routes, "/base/ready")[0] == 503


def test_head_has_no_body_and_nothing_else_is_allowed() -> None:
    routes = HealthRoutes(lambda: Site(True))
    assert ask(routes, "/ready", "HEAD")[:2] == (200, b"")
    code, _body, headers = ask(routes, "/ready", "POST")
    assert (code, headers[b"allow"]) == (405, b"GET, HEAD")


@pytest.mark.parametrize(
    ("path", "is_ours"), [("/health", True), ("/a/ready", True), ("/", False), ("/health/x", False)]
)
def test_only_the_two_paths_are_answered(path: str, is_ours: bool) -> None:
    assert HealthRoutes(lambda: Site(True)).answers(path) is is_ours
