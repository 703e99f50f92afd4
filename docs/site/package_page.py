"""The README as the page of the package: its links lead to the site of the documentation, wherever that is published.

hatchling calls this while it builds. ``ALERTREVIEW_SITE`` is the address of the site that ``./dev docs`` builds.
Without it, links become plain words and pictures go: a path of the repository leads nowhere from a package index.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[((?:!\[[^\]]*\]\([^)]*\)|[^\]])*)\]\(([^)\s]+)\)")


class PackagePage(MetadataHookInterface):
    """The description of the package, made from the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        page = package_page(text, os.environ.get("ALERTREVIEW_SITE", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": page}


def package_page(text: str, site: str) -> str:
    """Return the README with absolute links, or without links into the repository where there is no site.

    Parameters
    ----------
    text : str
        Markdown.
    site : str
        Address of the site, or nothing.
    """

    def absolute(found: re.Match[str]) -> str:
        mark, label, target = found[1], _LINK.sub(absolute, found[2]), found[3]
        if not re.match(r"https?://|#", target):
            if not site:
                return "" if mark else label
            page = re.sub(r"\bREADME\.md(?=#|$)", "index.md", target)
            target = f"{site.rstrip('/')}/" + re.sub(r"\.md(?=#|$)", ".html", page)
        return f"{mark}[{label}]({target})"

    return _LINK.sub(absolute, text)
