"""The unit of the morning, run as it is documented, on both databases; those of backups: `test_backup.py`."""

from pathlib import Path

import pytest

from alertreview.cli.main import main
from db.database import Database
from tests.support.panel_site import write_ward
from tests.support.units import run_unit


@pytest.mark.checklist("E3")
def test_the_unit_of_the_morning_imports_and_scores_into_the_database_of_the_configuration(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "alertreview.toml").write_text(f'database = "{database.url}"\n', encoding="utf-8")
    assert main(["import", str(write_ward(tmp_path / "before", n_patients=14).parent), "--home", str(home)]) == 0
    folders = {
        "/var/lib/alertreview": home,
        "/var/lib/alertreview-inbox/today": write_ward(tmp_path / "today", n_patients=16).parent,
    }
    run_unit("alertreview-morning.service", folders, monkeypatch)
    assert not (home / "alertreview.db").exists()
    with database.read() as uow:
        run = uow.runs.latest_published()
        assert run is not None
        assert run.snapshot_id == 2
        uow.audit.require_whole()
