"""What all tests share: open record sets, missing pieces that fail where all must run, and where coverage is traced."""

import os
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ("tests.traceability",)

ROOT = Path(__file__).resolve().parent.parent
NOT_TRACED = (ROOT / "tests" / "dashboard", ROOT / "tests" / "browser")
"""Their subject lies above the packages that coverage is asked for, and tracing doubles the time of a page."""

# How long an example takes says something about the machine and what else it does, not about what is tested.
hypothesis.settings.register_profile("without deadlines", deadline=None)
hypothesis.settings.load_profile("without deadlines")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Draw pages untraced."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in NOT_TRACED):
            item.add_marker("no_cover")


def require(present: bool, what: str) -> None:
    """Skip by name when a piece is missing, or fail where ALERTREVIEW_REQUIRE_ALL=1 says nothing may be missing."""
    if present:
        return
    if os.environ.get("ALERTREVIEW_REQUIRE_ALL") == "1":
        pytest.fail(f"{what} is required here and missing")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the open record sets (ALERTREVIEW_REAL_DATA, else ../shared/data beside the checkout)."""
    folder = Path(os.environ.get("ALERTREVIEW_REAL_DATA", ROOT.parent / "shared" / "data"))
    require(folder.is_dir(), f"the folder of open record sets, {folder},")
    return folder
