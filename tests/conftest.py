"""What all tests share: open record sets, missing pieces that fail where all must run, and where coverage is traced."""

import os
import signal
from pathlib import Path

import hypothesis
import pytest

from tests.support.pieces import require

pytest_plugins = ("tests.support.traceability",)

ROOT = Path(__file__).resolve().parent.parent
NOT_TRACED = tuple(
    ROOT / "tests" / place
    for place in (
        # Their subject lies above or beside the packages that coverage is asked for.
        "dashboard",
        "browser",
        "architecture",
        # What they prove happens in other processes, which nobody traces.
        "alertreview/scoring/test_cluster.py",
        "alertreview/reports/test_signing_terminal.py",
        "alertreview/test_stopping.py",
        "db/test_kills.py",
        "db/test_load.py",
        # They send many inputs through lines that the tests of each part pass.
        "alertreview/access/test_hostile_text.py",
        "alertreview/records/test_importing_fuzzed.py",
        "alertreview/records/test_kinds_of_lies.py",
        "alertreview/records/test_lying_files.py",
        "alertreview/operations/test_corruption_fuzzed.py",
        "alertreview/operations/test_corruption_shown.py",
        "alertreview/exports/test_second_road.py",
        "alertreview/cli/test_demo_story.py",
        "alertreview/records/sources/test_agreement.py",
    )
)
"""Tests without a share in the coverage: tracing makes them half as long again, and a page twice as long."""

# How long an example takes says something about the machine and what else it does, not about what is tested.
hypothesis.settings.register_profile("without deadlines", deadline=None)
hypothesis.settings.load_profile("without deadlines")


# A shell starts what runs in the background deaf to Ctrl+C, and deaf would be the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave those untraced that add nothing to the coverage."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in NOT_TRACED):
            item.add_marker("no_cover")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the open record sets (ALERTREVIEW_REAL_DATA, else ../shared/data beside the checkout)."""
    folder = Path(os.environ.get("ALERTREVIEW_REAL_DATA", ROOT.parent / "shared" / "data"))
    require(folder.is_dir(), f"the folder of open record sets ({folder})", "set ALERTREVIEW_REAL_DATA to where it is")
    return folder


@pytest.fixture(scope="session")
def lying_files() -> Path:
    """Folder with small record files that lie (ALERTREVIEW_CASES, else ../shared/cases beside the checkout)."""
    folder = Path(os.environ.get("ALERTREVIEW_CASES", ROOT.parent / "shared" / "cases"))
    require(folder.is_dir(), f"the folder of small files that lie ({folder})", "set ALERTREVIEW_CASES to where it is")
    return folder
