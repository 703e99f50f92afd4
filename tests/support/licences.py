"""Lists the licences of what is installed to run alertreview; ``python -m tests.support.licences`` writes the page."""

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "licences.md"
PINNED = ROOT / "requirements" / "app.txt"
ELSEWHERE = {"colorama": "BSD-3-Clause", "greenlet": "MIT AND PSF-2.0", "tzdata": "Apache-2.0"}
"""Of packages that only other systems install, as their own pages say."""

_WORDS = (
    ("apache", "Apache-2.0"),
    ("mozilla public license 2", "MPL-2.0"),
    ("mpl", "MPL-2.0"),
    ("gnu lesser", "LGPL"),
    ("gnu general", "GPL"),
    ("python software foundation", "PSF-2.0"),
    ("3-clause bsd", "BSD-3-Clause"),
    ("bsd 3-clause", "BSD-3-Clause"),
    ("2-clause bsd", "BSD-2-Clause"),
    ("bsd 2-clause", "BSD-2-Clause"),
    ("bsd", "BSD"),
    ("mit", "MIT"),
)
HEADING = """# Licences

What `requirements/app.txt` installs beside alertreview itself (BSD 3-Clause), with the licence each package declares.
`python -m tests.support.licences` writes this page anew after a change of the requirements.

| package | licence |
|---|---|
"""


def pinned() -> list[str]:
    """Names of the packages that a site installs, in alphabetical order."""
    return sorted(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", PINNED.read_text(encoding="utf-8"), re.MULTILINE))


def licence(package: str) -> str:
    """Licence that a package declares, by its short name; empty when it declares none."""
    try:
        found = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return ELSEWHERE.get(package, "")
    if expression := found.get("License-Expression"):
        return str(expression)
    said = [line for line in found.get_all("Classifier", []) if line.startswith("License ::")]
    text = " ".join([str(found.get("License") or "").strip().split("\n")[0], *said]).lower()
    return next((short for words, short in _WORDS if words in text), "")


def page() -> str:
    """The page as it should be."""
    return HEADING + "".join(f"| {name} | {licence(name)} |\n" for name in pinned())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
