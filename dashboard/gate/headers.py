"""Headers on every answer: nothing from other sites, only the page's own inline scripts, no caching."""

import base64
import hashlib
import html
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

HEADERS = {
    b"referrer-policy": b"same-origin",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    b"cache-control": b"no-store",
}
INLINE_SCRIPT = re.compile(r"<script(?![^>]*\ssrc\s*=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
LARGEST_PAGE = 2_000_000
"""Bytes of the largest page searched for inline scripts; a larger one is allowed none."""


def content_security_policy(script_hashes: Iterable[str] = ()) -> str:
    """Return the policy of a page.

    Scripts come from this site, or are inline with a known hash (SHA-256 in base64); `eval` is blocked. Styles may be
    inline, because widgets create theirs in the browser. Figures and grids use blobs and data images.
    """
    scripts = " ".join(["'self'", *(f"'sha256-{one}'" for one in script_hashes)])
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; media-src 'self' blob:; frame-src 'none'; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def protecting(scope: MutableMapping[str, Any], send: Send, *, scripts: tuple[str, ...] = ()) -> Send:
    """Return `send`, wrapped to add the headers to every answer, and to a page its policy and scripts by address."""
    if scope["type"] != "http":
        return send
    is_static = "/static/" in str(scope.get("path", ""))
    started: list[Message] = []
    parts: list[bytes] = []

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            if _is_html(message):
                started.append(message)
                return
            await send(_with_headers(message, content_security_policy(), is_static=is_static))
        elif started:
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                page, policy = _prepared(b"".join(parts), scripts)
                start = _with_headers(started[0], policy, is_static=False, length=len(page))
                await send(start)
                await send({"type": "http.response.body", "body": page})
        else:
            await send(message)

    return sending


def _is_html(message: Message) -> bool:
    kinds = [value for name, value in message.get("headers", []) if name.lower() == b"content-type"]
    return any(kind.startswith(b"text/html") for kind in kinds)


@lru_cache(maxsize=64)
def _prepared(page: bytes, scripts: tuple[str, ...]) -> tuple[bytes, str]:
    """Return a page with further scripts, and the policy for its inline scripts."""
    text = page.decode("utf-8", "replace")
    hashes = [] if len(page) > LARGEST_PAGE else [_hash(script) for script in INLINE_SCRIPT.findall(text)]
    if scripts:
        tags = "".join(f'<script src="{html.escape(script)}" defer></script>' for script in scripts)
        # Ahead of Streamlit's own, which reads what they set.
        page = text.replace("<head>", f"<head>{tags}", 1).encode()
    return page, content_security_policy(hashes)


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _with_headers(message: Message, policy: str, *, is_static: bool, length: int | None = None) -> Message:
    own = {**HEADERS, b"content-security-policy": policy.encode()}
    if is_static:
        del own[b"cache-control"]
    if length is not None:
        own[b"content-length"] = str(length).encode()
    kept = [(name, value) for name, value in message.get("headers", []) if name.lower() not in own]
    return {**message, "headers": [*kept, *own.items()]}
