"""What all tests share: the open record sets, and the rule that missing pieces fail where everything must run."""

import os
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ("tests.traceability",)

ROOT = Path(__file__).resolve().parent.parent

# How long an example takes says something about the machine and what else it does, not about what is tested.
hypothesis.settings.register_profile("without deadlines", deadline=None)
hypothesis.settings.load_profile("without deadlines")


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
