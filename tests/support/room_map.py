"""Map of the rooms: ``python -m tests.support.room_map`` draws docs/pictures/rooms.svg from the imports.

A room is a sub-package, or a module, directly below one of the four packages. Imports under TYPE_CHECKING and inside
functions count like any other.
"""

from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"
PURPOSES = {
    "dashboard": "Streamlit pages",
    "alertreview": "use cases, command line",
    "db": "tables and queries",
    "core": "numbers and rules",
}

Arrows = dict[str, set[str]]
"""For each room, or module, those that it imports."""


@cache
def imports() -> Arrows:
    """Return for each module of the four packages the modules of ours that it imports."""
    graph = grimp.build_graph(*PURPOSES, exclude_type_checking_imports=False, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def importers() -> dict[str, int]:
    """Return how many modules import each module; packages and entry points (`__main__`) are left out."""
    files = [module for module in imports() if (ROOT / f"{module.replace('.', '/')}.py").exists()]
    counts = Counter(module for found in imports().values() for module in found)
    return {module: counts[module] for module in files if "__main__" not in module}


def arrows_between_rooms(package: str) -> Arrows:
    """Return which rooms of a package import which other ones; the package's own `__init__` is no room."""
    inside = {module: found for module, found in imports().items() if module.startswith(f"{package}.")}
    arrows: Arrows = {room_of(module): set() for module in inside}
    for module, found in inside.items():
        arrows[room_of(module)] |= {room_of(other) for other in found if other in inside} - {room_of(module)}
    return arrows


def room_of(module: str) -> str:
    """Return the second part of a dotted name."""
    return module.split(".")[1]


def without_implied(arrows: Arrows) -> Arrows:
    """Return the arrows that no longer path implies (transitive reduction)."""

    @cache
    def below(room: str) -> frozenset[str]:
        return frozenset(arrows[room]).union(*(below(other) for other in arrows[room]))

    return {
        room: {one for one in found if not any(one in below(other) for other in found)}
        for room, found in arrows.items()
    }


BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT, GAP = 96, 26, 46, 16
HEADER, MARGIN = 52, 16
SMALL = 16
"""Width that an arrow takes where it passes a row of boxes."""


class Panel:
    """Layered drawing of one package: imports run down; long arrows pass each row at a place of their own."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.arrows = without_implied(arrows_between_rooms(package))
        levels = self._levels()
        top = max(levels.values())
        self.rows: list[list[str]] = [[] for _ in range(top + 1)]
        for room in sorted(levels):
            self.rows[top - levels[room]].append(room)
        self.lines = self._lines({room: top - level for room, level in levels.items()})
        self.x = self._places()
        self.width = max(self.x[one] + self._width(one) / 2 for row in self.rows for one in row)
        self.height = HEADER + len(self.rows) * ROW_HEIGHT

    def _levels(self) -> dict[str, int]:
        """Height of each room above the ground; rooms that few others need stand right below their importer."""

        @cache
        def level(room: str) -> int:
            return 1 + max((level(other) for other in self.arrows[room]), default=-1)

        levels = {room: level(room) for room in self.arrows}
        importers = defaultdict(set)
        for room, found in self.arrows.items():
            for other in found:
                importers[other].add(room)
        for room in sorted(levels, key=lambda one: -levels[one]):
            if len(importers[room]) > len(self.arrows[room]):
                levels[room] = min(levels[one] for one in importers[room]) - 1
        return levels

    def _lines(self, row_of: dict[str, int]) -> list[list[str]]:
        """Each arrow as the places it runs through, which are added to the rows."""
        lines = []
        for room, found in sorted(self.arrows.items()):
            for other in sorted(found):
                passed = [f"{room}>{other}@{row}" for row in range(row_of[room] + 1, row_of[other])]
                for place, row in zip(passed, range(row_of[room] + 1, row_of[other]), strict=True):
                    self.rows[row].append(place)
                lines.append([room, *passed, other])
        return lines

    def _width(self, place: str) -> float:
        return SMALL if "@" in place else BOX_WIDTH

    def _places(self) -> dict[str, float]:
        """Middle of each place: near what it is joined to, without overlaps."""
        joined = defaultdict(list)
        for line in self.lines:
            for upper, lower in pairwise(line):
                joined[lower].append(upper)
                joined[upper].append(lower)
        x = {place: float(BOX_WIDTH * number) for row in self.rows for number, place in enumerate(row)}
        for _ in range(100):
            for row in [*self.rows, *reversed(self.rows)]:
                wanted = {one: sum(x[other] for other in joined[one]) / len(joined[one]) for one in row if joined[one]}
                row.sort(key=lambda one: (wanted.get(one, x[one]), one))
                edge = float("-inf")
                for one in row:
                    x[one] = max(wanted.get(one, x[one]), edge + GAP + self._width(one) / 2)
                    edge = x[one] + self._width(one) / 2
                shift = sum(wanted.get(one, x[one]) - x[one] for one in row) / len(row)
                for one in row:
                    x[one] += shift
        left = min(x[one] - self._width(one) / 2 for row in self.rows for one in row)
        return {place: round(middle - left) for place, middle in x.items()}

    def draw(self, left: float, top: float, width: float, height: float) -> list[str]:
        """Return the SVG elements of the panel in its frame."""
        inset = left + (width - self.width) / 2
        y = {one: top + HEADER + number * ROW_HEIGHT for number, row in enumerate(self.rows) for one in row}
        parts = [
            f'<rect class="panel" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="8"/>',
            f'<text class="name" x="{left + MARGIN:g}" y="{top + 26:g}">{self.package}</text>',
            f'<text class="purpose" x="{left + width - MARGIN:g}" y="{top + 26:g}">{PURPOSES[self.package]}</text>',
        ]
        for line in self.lines:
            points = [(inset + self.x[place], y[place] + BOX_HEIGHT / 2) for place in line]
            points[0] = (points[0][0], y[line[0]] + BOX_HEIGHT)
            points[-1] = (points[-1][0], y[line[-1]] - 2)
            parts.append(arrow(points))
        for room in sorted(self.arrows):
            kind = "room" if (ROOT / self.package / room).is_dir() else "module"
            middle = inset + self.x[room]
            parts.append(
                f'<rect class="{kind}" x="{middle - BOX_WIDTH / 2:g}" y="{y[room]:g}" width="{BOX_WIDTH}"'
                f' height="{BOX_HEIGHT}" rx="4"/>'
                f'<text class="{kind}" x="{middle:g}" y="{y[room] + 17:g}">{room}</text>'
            )
        return parts


def arrow(points: list[tuple[float, float]]) -> str:
    """Return a smooth line through points, vertical at both ends, with a head at its end."""
    slopes = [0.0] + [(after[0] - before[0]) / 2 for before, after in zip(points, points[2:], strict=False)] + [0.0]
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for number, ((x, y), (next_x, next_y)) in enumerate(pairwise(points)):
        third = (next_y - y) / (3 if len(points) > 2 else 2)
        path += (
            f"C{x + slopes[number] / 3:.0f} {y + third:.0f} {next_x - slopes[number + 1] / 3:.0f} {next_y - third:.0f}"
            f" {next_x:g} {next_y:g}"
        )
    return f'<path class="arrow" d="{path}"/>'


STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2933; text-anchor: middle }
.name { font-size: 17px; font-weight: 600; text-anchor: start }
.purpose { font-size: 13px; text-anchor: end; fill: #52606d }
.panel { fill: #f5f7fa; stroke: #cbd2d9 }
rect.room { fill: #fff; stroke: #334e68; stroke-width: 1.4 }
text.room { font-weight: 600 }
rect.module { fill: #fff; stroke: #9fb3c8 }
.arrow { fill: none; stroke: #627d98; stroke-width: 1.2; marker-end: url(#head) }
.between { fill: none; stroke: #1f2933; stroke-width: 4; marker-end: url(#wide) }
"""


def head(name: str, size: int, colour: str) -> str:
    """Return the definition of an arrow head."""
    return (
        f'<marker id="{name}" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="{size}" markerHeight="{size}"'
        f' markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L6 3L0 6z" fill="{colour}"/></marker>'
    )


def picture() -> str:
    """Return the SVG: dashboard above db on the left, alertreview on the right, core below all."""
    panels = {package: Panel(package) for package in PURPOSES}
    space = 36
    left = max(panels["dashboard"].width, panels["db"].width) + 2 * MARGIN
    right = panels["alertreview"].width + 2 * MARGIN
    width = max(left + space + right, panels["core"].width + 2 * MARGIN)
    right = width - left - space
    upper = max(panels["dashboard"].height + space + panels["db"].height, panels["alertreview"].height)
    db_top = upper - panels["db"].height
    parts = [
        *panels["dashboard"].draw(0, 0, left, db_top - space),
        *panels["db"].draw(0, db_top, left, panels["db"].height),
        *panels["alertreview"].draw(left + space, 0, right, upper),
        *panels["core"].draw(0, upper + space, width, panels["core"].height),
    ]
    for x, y, next_x, next_y in (
        (left, 100, left + space - 3, 100),
        (left + space, db_top + 100, left + 3, db_top + 100),
        (left / 2, upper, left / 2, upper + space - 3),
        (left + space + right / 2, upper, left + space + right / 2, upper + space - 3),
    ):
        parts.append(f'<path class="between" d="M{x:g} {y:g}L{next_x:g} {next_y:g}"/>')
    height = upper + space + panels["core"].height
    box = f"-1 -1 {width + 2:g} {height + 2:g}"
    heads = head("head", 8, "#627d98") + head("wide", 16, "#1f2933")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{width + 2:g}" height="{height + 2:g}">',
            "<title>Rooms of the four packages; arrows show what imports what</title>",
            f"<style>{STYLE}</style><defs>{heads}</defs>",
            f'<rect x="-1" y="-1" width="{width + 2:g}" height="{height + 2:g}" fill="#fff"/>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
