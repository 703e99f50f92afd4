"""The catalogue of an import: what a scoring asks about, and what pages show of a panel."""

from pathlib import Path

import pytest

from alertreview.alerts.models import WorklistFilters
from alertreview.alerts.patient import SnapshotViews
from alertreview.application import Application
from alertreview.cli.main import main
from alertreview.records.catalogue import CatalogueEntry, current_catalogue
from alertreview.records.snapshots import read_snapshot
from alertreview.scoring.resume import ScoringRequest
from alertreview.scoring.score_site import score_site
from core.kinds import Kind
from tests.support.panel_site import PANEL, write_ward

REQUEST = ScoringRequest(n_nodes=30, n_graphs=1, n_jobs=1, split="patient")
PANEL_KEY = "LAB_ORDER/panel:basic-metabolic-panel"


@pytest.fixture
def site(tmp_path: Path) -> Application:
    home = tmp_path / "home"
    assert main(["import", str(write_ward(tmp_path / "source")), "--format", "csv", "--home", str(home)]) == 0
    from alertreview.application import open_application

    return open_application(home)


def by_name(site: Application) -> dict[str, CatalogueEntry]:
    return {entry.name: entry for entry in current_catalogue(site.settings, site.database)}


def test_an_import_asks_about_panels_and_orders_alone(site: Application) -> None:
    entries = by_name(site)
    assert {name for name, entry in entries.items() if not entry.off} == {
        "Basic metabolic panel",
        "Lipase",
        "Heparin",
    }
    panel = entries["Basic metabolic panel"]
    assert panel.task_key == PANEL_KEY
    assert set(panel.members) == {f"LAB_ORDER/{name}" for name in PANEL}
    assert all("Basic metabolic panel" in entries[name].off for name in PANEL)
    assert panel.n_positive == entries["Sodium"].n_positive


def test_a_scoring_asks_about_no_other_task(site: Application) -> None:
    outcome = score_site(site.settings, site.database, REQUEST)
    asked = {name for name, entry in by_name(site).items() if not entry.off}
    rows = site.worklist.page(WorklistFilters(alerts_per_patient_day=1000), limit=1000).rows
    assert rows
    assert {row.task_name for row in rows} <= asked
    assert outcome.n_tasks_scored + len(outcome.left_out) == len(asked)
    assert outcome.n_not_asked == len(by_name(site)) - len(asked)
    assert any("not asked about" in line for line in outcome.lines())
    for name in ("Sodium", "NS 100ml"):
        with site.database.read() as uow:
            task = next(task for task in uow.snapshots.tasks(uow.snapshots.latest().id) if task.name == name)
            result = uow.runs.task_result(outcome.run_id, task.id, "shared")
        assert result.score is None
        assert f"Task '{name}' is not asked about" in result.reason


def test_a_panel_is_shown_with_the_orders_and_values_of_its_members(site: Application) -> None:
    snapshot = read_snapshot(next(site.settings.snapshots.iterdir()))
    views = SnapshotViews(snapshot)
    column = snapshot.tasks["task_key"].tolist().index(PANEL_KEY)
    decided = snapshot.decisions[:, [column]].toarray().ravel()
    assert set(decided) == {True, False}
    for row in range(len(snapshot.instances)):
        timeline = views.timeline(row, PANEL_KEY)
        assert bool(timeline.orders_in_window) == decided[row]
        assert (views.hours_to_decision(row, PANEL_KEY) is not None) == decided[row]
        if decided[row]:
            assert views.record_after(row, PANEL_KEY)[0].startswith("Basic metabolic panel was ordered")
        values = views.case(row, PANEL_KEY).last_values
        measured = {value.name for value in values if value.value is not None}
        # The panel has no value of its own; it stands in the list only where no member was measured.
        assert ("Basic metabolic panel" in {value.name for value in values}) == measured.isdisjoint(PANEL)
        if not measured.isdisjoint(PANEL):
            assert values[0].name in PANEL


def test_tasks_list_prints_every_task_and_why_it_is_not_asked_about(
    site: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["tasks", "list", "--not-asked", "--format", "csv", "--home", str(site.settings.home)]) == 0
    printed = capsys.readouterr().out
    assert "NS 100ml,MEDICATION,False" in printed
    assert "It is a fluid in which drugs are given." in printed
    assert "Lipase" not in printed
    assert main(["tasks", "list", "--home", str(site.settings.home)]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in by_name(site))


def test_tasks_list_without_an_import_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--home", str(tmp_path)]) == 0
    assert main(["tasks", "list", "--home", str(tmp_path)]) != 0
    assert "import health records first" in capsys.readouterr().err


def test_the_kinds_of_panels_are_those_of_labs(site: Application) -> None:
    assert {entry.kind for entry in by_name(site).values() if entry.members} == {Kind.LAB_ORDER}
