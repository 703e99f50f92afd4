"""The documents of this repository, taken apart: links, anchors of headings, and the commands they show."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "data").rglob("*.md")])


def identify(path: Path) -> str:
    """Path below the root of the repository."""
    return str(path.relative_to(ROOT))


def links_in(document: Path) -> list[tuple[str, str]]:
    """Targets inside this repository with their anchors; a target is empty for a place in the same document."""
    found = re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", without_code(document.read_text(encoding="utf-8")))
    return [(target, anchor) for target, anchor in found if "://" not in target]


def anchors(document: Path) -> set[str]:
    """Names that a link can jump to: headings in small letters, without punctuation, blanks as hyphens."""
    headings = re.findall(r"^#+ (.*)$", without_code(document.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def without_code(text: str) -> str:
    """Text without its fenced blocks, in which a # begins a remark."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def shown_commands(document: Path) -> list[str]:
    """Lines of the fenced blocks that run this program or its script, in order, without remarks."""
    text = document.read_text(encoding="utf-8")
    lines = [
        line.split(" #")[0].strip()
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        if language in {"", "sh", "console"}
        for line in block.splitlines()
    ]
    return [line for line in lines if line.startswith(("alertreview ", "./dev "))]


def commands_in(document: Path) -> list[str]:
    """Shown commands and those that are mentioned inside a sentence; of the list of commands itself, none."""
    if document.name == "command-line.md":
        return []
    mentioned = re.findall(r"`((?:alertreview|\./dev) [^`]+)`", document.read_text(encoding="utf-8"))
    return [*shown_commands(document), *mentioned]
