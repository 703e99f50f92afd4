"""The pictures of `./dev screenshots`: of every page, full and empty, and whole."""

from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser

from benchmarks._picture_sites import LOGINS
from benchmarks._pictures import DOCUMENTED, Picture, pictures
from benchmarks.screenshots import N_COLOURS, _window
from dashboard import frame

pytestmark = pytest.mark.browser


def test_every_page_of_the_frame_is_taken_full_and_empty_under_a_name_of_its_own(demo_home: Path) -> None:
    taken = pictures({"demonstration": demo_home})
    names = [one.name for one in taken]
    assert len(names) == len(set(names))
    for name, *_ in (*frame.OFFERED, *frame.REACHED_FROM_OTHERS):
        page = name.replace("_", "-")
        assert {page, f"{page}-empty"} <= set(names)
    assert set(DOCUMENTED) <= set(names)
    assert {one.login for one in taken} <= {"", *LOGINS}


def test_a_picture_holds_the_whole_page_and_one_for_the_documents_only_few_colours(
    chromium: Browser, demo_url: str, tmp_path: Path
) -> None:
    wanted = [Picture("task", "demonstration", "", "task")]
    for docs in (False, True):
        assert _window(chromium, wanted, {"demonstration": demo_url}, "dark", "390", tmp_path, docs=docs) == []
    with Image.open(tmp_path / "task_dark_390.png") as whole, Image.open(tmp_path / "task-dark.png") as first_screen:
        assert whole.width == first_screen.width == 390
        assert whole.height > first_screen.height == 844
        assert len(first_screen.getcolors()) <= N_COLOURS
        red, green, blue = whole.convert("RGB").getpixel((2, 400))
        assert red + green + blue < 200, "dark"


def test_a_page_that_cannot_be_drawn_is_named(chromium: Browser, demo_url: str, tmp_path: Path) -> None:
    def fail(_page: object) -> None:
        _page.get_by_text("nowhere on this page").click(timeout=100)  # type: ignore[attr-defined]

    wanted = [Picture("home", "demonstration", "", "", fail)]
    failed = _window(chromium, wanted, {"demonstration": demo_url}, "light", "1280", tmp_path, docs=False)
    assert [one.split(":")[0] for one in failed] == ["home light 1280"]
    assert not list(tmp_path.iterdir())
