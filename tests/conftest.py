"""What all tests share: open record sets, missing pieces that fail where all must run, and where coverage is traced."""

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest

from tests.support.pieces import require

pytest_plugins = ("tests.support.traceability", "tests.support.compiled_once")

ROOT = Path(__file__).resolve().parent.parent
NOT_TRACED = frozenset(
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
        "core/numerics/test_compiled.py",
        "db/test_kills.py",
        "db/test_load.py",
        # Nearly all lines that they pass are passed by the tests of each part.
        "alertreview/access/test_hostile_text.py",
        "alertreview/alerts/test_explanations.py",
        "alertreview/alerts/test_patient.py",
        "alertreview/alerts/test_worklist.py",
        "alertreview/alerts/test_worklist_pages.py",
        "alertreview/cli/test_demo_story.py",
        "alertreview/exports/test_exports.py",
        "alertreview/exports/test_second_road.py",
        "alertreview/exports/test_study_rows.py",
        "alertreview/operations/test_corruption.py",
        "alertreview/operations/test_corruption_fuzzed.py",
        "alertreview/operations/test_corruption_shown.py",
        "alertreview/operations/test_full_disk.py",
        "alertreview/operations/test_nothing_leaves.py",
        "alertreview/operations/test_units.py",
        "alertreview/records/sources/test_agreement.py",
        "alertreview/records/sources/test_bombs.py",
        "alertreview/records/sources/test_converters.py",
        "alertreview/records/test_acts_of_sources.py",
        "alertreview/records/test_drug_intervals.py",
        "alertreview/records/test_importing.py",
        "alertreview/records/test_importing_fuzzed.py",
        "alertreview/records/test_importing_parts.py",
        "alertreview/records/test_kinds_of_lies.py",
        "alertreview/records/test_living.py",
        "alertreview/records/test_lying_files.py",
        "alertreview/records/test_lying_records.py",
        "alertreview/records/test_mutated_sources.py",
        "alertreview/records/test_spellings_of_sources.py",
        "alertreview/review/test_open_panel_files.py",
        "alertreview/review/test_review_blinding.py",
        "alertreview/review/test_review_counts.py",
        "alertreview/review/test_review_meanwhile.py",
        "alertreview/scoring/test_score_site.py",
        "core/scoring/test_reasons.py",
        "core/simulation/test_hospital.py",
        "core/statistics/test_design_planning.py",
        "core/studies/test_make_report.py",
        "db/maintenance/test_inspection.py",
        "db/queries/test_reader_slots.py",
        "db/test_alerts.py",
        "db/test_downgrades.py",
        "db/test_faults.py",
        "db/test_signatures.py",
    )
)
"""Tests without a share in the coverage: tracing makes them half as long again, and a page twice as long."""
IS_TRACED = pytest.StashKey[bool]()

# How long an example takes says something about the machine and what else it does, not about what is tested.
hypothesis.settings.register_profile("without deadlines", deadline=None)
hypothesis.settings.load_profile("without deadlines")


# A shell starts what runs in the background deaf to Ctrl+C, and deaf would be the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the browser: one worker has all of it, and what the others take over at the end is in small pieces."""
    items.sort(key=lambda item: not item.path.is_relative_to(ROOT / "tests" / "browser"))
    begun: set[str] = set()
    for item in items:
        # Further cases of a test pass the lines of its first one, and few others.
        test = item.nodeid.partition("[")[0]
        item.stash[IS_TRACED] = test not in begun and NOT_TRACED.isdisjoint((item.path, *item.path.parents))
        begun.add(test)


def pytest_collection_finish() -> None:
    """Let the garbage collector look no more at libraries and tests: it took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Leave those untraced that add nothing to the coverage, with their fixtures, and all threads."""
    plugin = item.config.pluginmanager.getplugin("_cov")
    tracer = plugin and plugin.cov_controller
    if tracer is None:
        return (yield)
    # CPython 3.11: of two threads that begin to be traced at the same moment, one may end with an error instead.
    threading.settrace(None)  # type: ignore[arg-type]
    if item.stash[IS_TRACED]:
        return (yield)
    tracer.pause()
    try:
        return (yield)
    finally:
        tracer.resume()


@pytest.fixture(scope="session", autouse=True)
def memory_is_given_back_later() -> Iterator[None]:
    """Leave out what a scoring of a whole hospital does to be small: here it looks through all that tests have made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.scoring.shared.gc", SimpleNamespace(collect=lambda: 0))
        yield


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
