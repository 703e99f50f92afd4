"""Rows of the Admin page in words: details of an act, browsers, findings about the site."""

import re
from collections.abc import Mapping
from typing import Any

SYSTEMS = (
    ("Windows", "Windows"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
"""What a user agent contains, the more special first, and the name of it."""
_PROGRAM_OWN = frozenset({"sealed", "sealed further"})
"""Seals, which the check of the chain compares and nobody reads."""
_LABELS = {
    "n_alerts": "alerts",
    "sha256": "checksum",
    "content_hash": "checksum",
    "files": "checksum of the files",
    "head": "head of the trail",
}
_CHECKSUM = re.compile(r"[0-9a-f]{16,}")


def browser(user_agent: str) -> str:
    """Return browser and system of a user agent: "Firefox on Windows"."""
    named = next((name for part, name in BROWSERS if part in user_agent), "")
    system = next((name for part, name in SYSTEMS if part in user_agent), "")
    if not named:
        return "another program" if user_agent else "not known"
    return f"{named} on {system}" if system else named


def details(stored: Mapping[str, Any]) -> str:
    """Return what the details of an audit row say: the change, the other values, and the reason."""
    change = [_words(stored[name]) for name in ("before", "after") if name in stored]
    if change and not stored.get("before"):
        change = change[-1:]
    told = {"before", "after", "reason", *_PROGRAM_OWN}
    others = [f"{_label(name)}: {_words(value)}" for name, value in stored.items() if name not in told]
    reason = [f"because: {stored['reason']}"] if stored.get("reason") else []
    return "; ".join([" → ".join(change), *others, *reason] if change else [*others, *reason])


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " "))


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{_label(str(name))} {_words(each)}" for name, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_words(each) for each in value) or "none"
    if value is None or value == "":
        return "none"
    return _CHECKSUM.sub(lambda found: f"{found[0][:12]}…", str(value))
