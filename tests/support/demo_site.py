"""A small demonstration site, built once for all tests that only look at one."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from alertreview.application import Application, open_application
from alertreview.cli import demo
from alertreview.cli.demo import DemoSize, build_demo
from alertreview.settings import load_settings
from tests.support.built_once import built_once, shared_folder

SMALL = DemoSize(n_patients=60, n_cases=36, n_waiting=6)


def _build(folder: Path) -> None:
    """Build the demonstration; what had been stored when the votes were about to be is kept beside it."""
    record_votes = demo.record_votes

    def keep_and_record(*given: object) -> object:
        shutil.copytree(folder / "home", folder / "before-the-votes")
        return record_votes(*given)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "record_votes", keep_and_record)
        list(build_demo(load_settings(folder / "home", create=True), SMALL))


def small_demonstration(shared: Path) -> Path:
    """The folder that is copied: "home", and "before-the-votes", as a build leaves it that is stopped there."""
    return built_once(shared, "small-demonstration", _build)


@pytest.fixture(scope="session")
def built_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small demonstration, as it is built for all workers."""
    return small_demonstration(shared_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def demo_home(built_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of a small demonstration; tests must not change it."""
    return Path(shutil.copytree(built_demo / "home", tmp_path_factory.mktemp("demo") / "home"))


@pytest.fixture
def own_home(demo_home: Path, tmp_path: Path) -> Path:
    """Copy of the small demonstration that a test may change."""
    return Path(shutil.copytree(demo_home, tmp_path / "home"))


@pytest.fixture(scope="session")
def application(demo_home: Path) -> Iterator[Application]:
    """The small demonstration, opened for reading."""
    with open_application(demo_home) as opened:
        yield opened
