"""The two routes that answer without a sign-in: one word each, whatever happens behind them."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from core.errors import StoreError
from dashboard.gate import gate


class Site:
    """A site that is ready, not ready, or cannot even be asked."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    @property
    def database(self) -> "Site":
        return self

    def check(self) -> None:
        if self._error is not None:
            raise self._error


class Closed:
    """A site that cannot be opened."""

    @property
    def database(self) -> Site:
        raise OSError("canary")


@pytest.mark.parametrize(
    ("site", "status", "word"),
    [
        (Site(), 200, "ready"),
        (Site(StoreError("The database is older.")), 503, "not ready"),
        (Site(RuntimeError("canary of a patient")), 503, "not ready"),
        (Closed(), 503, "not ready"),
    ],
)
def test_ready_is_one_word_and_never_the_reason(
    browser: Callable[..., TestClient], site: object, status: int, word: str
) -> None:
    answer = browser(site=site).get("/ready")
    assert (answer.status_code, answer.json()) == (status, {"status": word})
    assert answer.headers["cache-control"] == "no-store"


def test_a_site_that_cannot_be_opened_is_alive(
    browser: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "base_path", lambda: "/base")
    visitor = browser(site=Closed())
    for path in ("/health", "/base/health"):
        answer = visitor.get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


def test_head_has_no_body_and_nothing_else_is_allowed(browser: Callable[..., TestClient]) -> None:
    visitor = browser(site=Site())
    head = visitor.head("/ready")
    assert (head.status_code, head.content) == (200, b"")
    refused = visitor.post("/ready")
    assert refused.status_code == 405
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize("path", ["/health/x", "/a/ready", "/ready/"])
def test_only_the_two_paths_are_answered(browser: Callable[..., TestClient], path: str) -> None:
    assert browser().get(path).status_code == 303
