"""The rooms inside the packages: few arrows between them, no cycles, and a picture that shows them as they are."""

from graphlib import TopologicalSorter
from statistics import median

import pytest

from tests.support import room_map


@pytest.mark.parametrize(("package", "most"), [("core", 60), ("alertreview", 70), ("db", 40), ("dashboard", 40)])
def test_a_package_has_few_arrows_between_its_rooms(package: str, most: int) -> None:
    assert sum(len(found) for found in room_map.arrows_between_rooms(package).values()) <= most


@pytest.mark.parametrize("package", room_map.PURPOSES)
def test_rooms_do_not_import_each_other_in_a_circle(package: str) -> None:
    TopologicalSorter(room_map.arrows_between_rooms(package)).prepare()


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    TopologicalSorter(room_map.imports()).prepare()


def test_most_modules_have_more_than_one_importer() -> None:
    assert median(room_map.importers().values()) > 1


def test_implied_arrows_are_left_out_of_the_picture() -> None:
    arrows = {"page": {"chart", "text"}, "chart": {"text"}, "text": set()}
    assert room_map.without_implied(arrows) == {"page": {"chart"}, "chart": {"text"}, "text": set()}


def test_the_picture_of_the_rooms_is_current() -> None:
    written = room_map.PICTURE.read_text(encoding="utf-8")
    assert written == room_map.picture(), "run: python -m tests.support.room_map"


@pytest.mark.parametrize("package", room_map.PURPOSES)
def test_the_architecture_page_lists_every_room(package: str) -> None:
    page = (room_map.ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for room in room_map.arrows_between_rooms(package):
        assert f"`{package}/{room}/`" in page or f"`{package}/{room}.py`" in page, f"{package}.{room}"
