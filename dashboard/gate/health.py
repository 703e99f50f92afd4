"""The two routes that answer without a sign-in: alive, and ready; one word each, nothing of what the site holds."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

ALIVE = "/health"
READY = "/ready"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Watched(Protocol):
    """What is asked whether it is ready."""

    def ready(self) -> bool:
        """Return whether the site can work now."""
        ...


class HealthRoutes:
    """An ASGI application for `ALIVE` and `READY`; below a base path too, because only the end of the path counts.

    Parameters
    ----------
    watched : callable
        Gives what is asked; called at each question, so that a site that cannot be opened is "not ready", not an error.
    """

    def __init__(self, watched: Callable[[], Watched]) -> None:
        self._watched = watched

    def answers(self, path: str) -> bool:
        """Return whether a path, with or without a base path before it, is one of the two."""
        return path.endswith((ALIVE, READY))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer GET and HEAD: 200 when all is well, 503 when the site cannot work, 405 for anything else."""
        if scope["method"] not in {"GET", "HEAD"}:
            await _reply(send, 405, "not allowed", (b"allow", b"GET, HEAD"))
            return
        if scope["path"].endswith(ALIVE):
            await _reply(send, 200, "alive", body=scope["method"] == "GET")
            return
        is_ready = await asyncio.to_thread(self._ask)
        await _reply(
            send, 200 if is_ready else 503, "ready" if is_ready else "not ready", body=scope["method"] == "GET"
        )

    def _ask(self) -> bool:
        try:
            return self._watched().ready()
        except Exception:  # noqa: BLE001 - whatever it is, the watchdog hears "not ready" and nothing else
            return False


async def _reply(send: Send, status: int, word: str, *headers: tuple[bytes, bytes], body: bool = True) -> None:
    content = json.dumps({"status": word}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(content)).encode()),
                (b"cache-control", b"no-store"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": content if body else b""})
