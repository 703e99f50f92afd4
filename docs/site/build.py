"""Build the documentation as a site: ``./dev docs [--out DIR]``.

The pages are laid out as they lie in the repository, so that their links hold; the Python reference comes from the
docstrings, the tutorial from its notebook.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "docs", "data")
PUBLIC = (
    "core.softhad",
    "core.conditional_detector",
    "core.baselines",
    "core.evaluation",
    "core.features",
    "core.graph",
    "core.scaling",
    "core.scoring.all_tasks",
    "core.scoring.parameters",
    "core.scoring.readout",
    "core.scoring.scorers",
    "core.scoring.scores",
    "core.scoring.variants",
    "core.statistics",
    "core.studies",
    "core.simulation.hospital",
    "core.errors",
    "alertreview.records.importing",
    "alertreview.exports.recompute",
)
"""Modules that others may build on; what they name in ``__all__`` or define in public is listed."""


def lay_out(source: Path) -> None:
    """Copy the pages into a folder as they lie in the repository, and write the generated ones."""
    for name in PAGES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("site", "__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    (source / "docs" / "tutorial.md").write_text(tutorial(), encoding="utf-8")
    reference = source / "reference"
    reference.mkdir()
    lines = ["# Python reference", "", "Public modules. Scores of every kind: higher is more unusual.", ""]
    for module in PUBLIC:
        (reference / f"{module}.md").write_text(f"# {module}\n\n::: {module}\n", encoding="utf-8")
        lines.append(f"- [`{module}`]({module}.md)")
    (reference / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def tutorial() -> str:
    """Return the notebook of the tutorial as a page."""
    notebook = json.loads((ROOT / "docs" / "examples" / "tutorial.ipynb").read_text(encoding="utf-8"))
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"]).replace("](../", "](")
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Build the site; any warning, a broken link among them, is an error."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="folder to write")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
        command += ["--config-file", str(ROOT / "docs" / "site" / "mkdocs.yml")]
        environment = {
            **os.environ,
            "MKDOCS_SITE_SOURCE": folder,
            "PYTHONPATH": str(ROOT),
            "NO_MKDOCS_2_WARNING": "1",
        }
        ended = subprocess.run(command, env=environment, check=False)
    if ended.returncode == 0:
        print(f"Open {out / 'index.html'}")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
