"""A small demonstration site, built once for all tests that only look at one."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from alertreview.bootstrap import Application, open_application
from alertreview.demo import DemoSize, build_demo
from alertreview.settings import load_settings

SMALL = DemoSize(n_patients=60, n_cases=36, n_waiting=6)


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of a small demonstration; tests must not change it."""
    home = tmp_path_factory.mktemp("demo") / "home"
    list(build_demo(load_settings(home, create=True), SMALL))
    return home


@pytest.fixture
def own_home(demo_home: Path, tmp_path: Path) -> Path:
    """Copy of the small demonstration that a test may change."""
    return Path(shutil.copytree(demo_home, tmp_path / "home"))


@pytest.fixture(scope="session")
def application(demo_home: Path) -> Iterator[Application]:
    """The small demonstration, opened for reading."""
    with open_application(demo_home) as opened:
        yield opened
