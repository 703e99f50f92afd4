"""A disk that is full at any file that an act writes: a plain sentence, nothing half done, and the act works later."""

import random
import resource
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from alertreview.access.audit_trail import AuditTrailService
from alertreview.operations.backup import Backups
from alertreview.operations.upgrade import open_database
from alertreview.records.import_site import import_records
from alertreview.scoring.resume import ScoringRequest, StoredEvidence
from alertreview.scoring.score_site import score_site
from alertreview.settings import Settings, load_settings
from core.errors import AlertReviewError, SourceError
from tests.support.panel_site import write_ward

N_LIMITS = 3
"""Files of each act at which the disk is full, drawn by chance, the same in each run."""


def now() -> datetime:
    return datetime.now(UTC)


def import_ward(settings: Settings) -> None:
    with open_database(settings) as database:
        import_records(settings, database, settings.home.parent / "other" / "ward.csv", "csv")


def score(settings: Settings) -> None:
    with open_database(settings) as database:
        score_site(settings, database, ScoringRequest(scorers=("logistic",)))


def back_up(settings: Settings) -> None:
    Backups(settings, now).create()


def export_trail(settings: Settings) -> None:
    with open_database(settings) as database:
        AuditTrailService(database, now).export(settings.home / "trail.jsonl")


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home with an import, and another ward beside it."""
    folder = tmp_path_factory.mktemp("ward")
    write_ward(folder / "other", n_patients=9, n_days=3)
    settings = load_settings(folder / "home", create=True)
    with open_database(settings, upgrade=True) as database:
        import_records(settings, database, write_ward(folder / "first", n_patients=40), "csv")
    return folder


@contextmanager
def no_file_beyond(n_bytes: int) -> Iterator[None]:
    """Let this process write no file longer than so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, former)


def said_with(n_bytes: int, act: Callable[[Settings], None], settings: Settings) -> str:
    """Act while no file may be longer, and return the error's sentence; empty if the act came through."""
    try:
        with no_file_beyond(n_bytes):
            act(settings)
    except AlertReviewError as error:
        return str(error)
    return ""


def files(home: Path) -> dict[Path, int]:
    return {path.relative_to(home): path.stat().st_size for path in home.rglob("*") if path.is_file()}


def stored(home: Path) -> list[object]:
    """Return what readers see of a site: its published runs, imports and audit rows."""
    with closing(sqlite3.connect(home / "alertreview.db")) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        questions = (
            "SELECT id FROM scoring_run WHERE status = 'published'",
            "SELECT id, folder FROM cohort_snapshot",
            "SELECT count(*) FROM audit_event",
        )
        return [raw.execute(question).fetchall() for question in questions]


# joblib's generator warns when it is dropped because a task could not be kept.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.checklist("C5")
@pytest.mark.parametrize("act", [import_ward, score, back_up, export_trail])
def test_a_disk_full_at_any_file_of_an_act_keeps_nothing_of_it(
    ward: Path, tmp_path: Path, act: Callable[[Settings], None]
) -> None:
    def copied(name: str) -> Settings:
        shutil.copytree(ward, tmp_path / name)
        return load_settings(tmp_path / name / "home")

    done = copied("done")
    before = files(done.home)
    act(done)
    written = sorted({size for path, size in files(done.home).items() if before.get(path) != size})
    for limit in random.Random(act.__name__).sample(written, min(N_LIMITS, len(written))):
        full = copied(f"full-{limit}")
        kept, names = stored(full.home), set(files(full.home))
        said = said_with(limit - 1, act, full)
        assert "\n" not in said, "no plain sentence"
        if said:
            assert stored(full.home) == kept, f"something was kept at {limit}"
            kept_on_purpose = ("alertreview.db", "unfinished-scoring/")
            new = {path for path in set(files(full.home)) - names if not str(path).startswith(kept_on_purpose)}
            assert not new, f"left behind at {limit}"
        act(full)


def test_a_task_that_cannot_be_kept_is_a_plain_sentence_and_leaves_no_half_file(tmp_path: Path) -> None:
    evidence = StoredEvidence(tmp_path / "tasks")
    with (
        no_file_beyond(300),
        pytest.raises(SourceError, match=r"cannot be written \(File too large\).*keeps the tasks"),
    ):
        evidence[3] = {"values": np.arange(1000.0)}
    assert list((tmp_path / "tasks").iterdir()) == []
    evidence[3] = {"values": np.arange(1000.0)}
    assert list(evidence) == [3]
