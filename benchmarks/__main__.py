"""``./dev bench [NAME] [OPTIONS]``: run a slow proof or measurement by name or its beginning, or list them."""

import ast
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def titles() -> dict[str, str]:
    """First line of what each measurement says of itself, by name."""
    found = {}
    for path in sorted(FOLDER.glob("[a-z]*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.stem] = text.splitlines()[0] if text else ""
    return found


def main() -> int:
    """Run what the first argument names; without one, list everything."""
    names = titles()
    if len(sys.argv) < 2 or sys.argv[1] in {"-h", "--help"}:
        for name, title in names.items():
            print(f"{name:18} {title}")
        return 0
    name = sys.argv.pop(1)
    fitting = [known for known in names if known.startswith(name)]
    name = fitting[0] if len(fitting) == 1 else name
    if name not in names:
        print(f"bench: there is no measurement '{name}'; there are {', '.join(names)}", file=sys.stderr)
        return 2
    sys.argv[0] = f"benchmarks.{name}"
    runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
