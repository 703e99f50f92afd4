"""Pages, reports and the choice of cases on an import whose files changed: the same as before, or the file is named."""

import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from alertreview import files
from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application, open_application
from alertreview.studies.desk import StudyPlan
from core.errors import SourceError
from tests.alertreview.operations.test_corruption import cut, flip, remove

EVERYTHING = WorklistFilters(alerts_per_patient_day=1.0, include_cut_windows=True)
MAY_CHANGE_UNSEEN = {"patients.parquet", "corrections.parquet", "import_report.json"}
"""No use case below reads them from the folder: what pages show of the import report is in the database."""


def uses_of(site: Application) -> dict[str, Callable[[], object]]:
    """Return a call for everything that is shown of an import, by name."""
    [line] = site.worklist.page(EVERYTHING, limit=1).lines
    alert = line.members[0].alert_id
    with site.database.read() as uow:
        readers = uow.studies.readers(uow.studies.by_slug("demo").id)
    return {
        "alert": lambda: site.worklist.alert(alert, EVERYTHING),
        "past instance": lambda: site.alert_lists.past_instance(alert, 0),
        "cases": lambda: [
            case.patient for reader in readers if (case := site.review.next_case("demo", reader.person_id))
        ],
        "runs": lambda: site.tasks.drift(EVERYTHING),
        "report": lambda: site.reports.report("demo"),
        "choice of cases": lambda: site.study_desk.preview(StudyPlan()),
    }


def shown(site: Application) -> dict[str, str]:
    """Return what each use shows, or the error that says why it does not."""
    found = {}
    for name, use in uses_of(site).items():
        try:
            with np.printoptions(threshold=sys.maxsize):
                found[name] = repr(use())
        except SourceError as error:
            found[name] = f"refused: {error}"
    return found


@pytest.fixture
def folder(own_home: Path) -> Path:
    return next((own_home / "snapshots").iterdir())


def damaged(folder: Path) -> Iterator[str]:
    """Damage one file after the other, in all ways by turns, each mended before the next, and yield its name."""
    for path, harm in zip(sorted(folder.iterdir()), cycle((flip, cut, remove)), strict=False):
        sound = path.read_bytes()
        harm(path)
        yield path.name
        path.write_bytes(sound)


@pytest.mark.checklist("C5")
def test_nothing_is_shown_of_a_file_that_changed_before_it_was_opened(own_home: Path, folder: Path) -> None:
    with open_application(own_home) as site:
        before = shown(site)
    assert not [text for text in before.values() if text.startswith("refused")]
    for name in damaged(folder):
        with open_application(own_home) as site:
            now = shown(site)
        refused = {use for use, text in now.items() if text.startswith("refused") and name in text}
        assert {use for use in now if now[use] != before[use]} == refused, name
        assert refused or name in MAY_CHANGE_UNSEEN, name


@pytest.mark.checklist("C5")
def test_a_change_under_an_open_site_is_found_at_the_next_use_and_mended_without_a_restart(
    own_home: Path, folder: Path, tmp_path: Path
) -> None:
    with open_application(own_home) as site:
        with site.database.read() as uow:
            content_hash = uow.snapshots.all()[0].content_hash
        snapshot = site._explanations.snapshot(content_hash)
        patient = str(snapshot.patients["patient_id"].iloc[0])
        reads: dict[str, Callable[[], object]] = {
            "features_data.npy": lambda: float(snapshot.features.sum()),
            "features_indices.npy": lambda: float(snapshot.features.sum()),
            "features_indptr.npy": lambda: float(snapshot.features.sum()),
            "events.parquet": lambda: snapshot.events_of(patient).to_csv(),
        }
        before = {name: read() for name, read in reads.items()}
        for name, read in reads.items():
            sound = shutil.copy(folder / name, tmp_path / name)
            flip(folder / name)
            with pytest.raises(SourceError, match=name):
                read()
            # Once written into the file, once put in its place: the damaged one must not stay open.
            shutil.copy(sound, folder / name)
            assert read() == before[name]
            flip(folder / name)
            with pytest.raises(SourceError, match=name):
                read()
            shutil.move(sound, folder / name)
            assert read() == before[name]


def test_a_file_is_compared_once_while_it_stays_the_same(
    own_home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    sha256_of = files.sha256_of

    def count(path: Path) -> str:
        hashed.append(path.name)
        return sha256_of(path)

    monkeypatch.setattr(files, "sha256_of", count)
    with open_application(own_home) as site:
        uses = uses_of(site)
        uses["alert"]()
        assert "events.parquet" in hashed
        hashed.clear()
        for alert in site.worklist.page(EVERYTHING, limit=9).lines:
            site.worklist.alert(alert.members[0].alert_id, EVERYTHING)
    assert hashed == []
