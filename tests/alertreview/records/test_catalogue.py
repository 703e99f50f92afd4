"""The catalogue of an import: what a scoring asks about, and what pages show of a panel."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.alerts.patient import SnapshotViews
from alertreview.application import Application, open_application
from alertreview.cli.main import main
from alertreview.records.catalogue import CHANGED, CatalogueEntry, current_catalogue
from alertreview.records.snapshots import read_snapshot
from alertreview.scoring.resume import ScoringRequest
from alertreview.scoring.score_site import published_already, score_site
from core.kinds import Kind
from tests.support.panel_site import PANEL, write_ward

REQUEST = ScoringRequest(n_nodes=30, n_graphs=1, n_jobs=1, split="patient")
PANEL_KEY = "LAB_ORDER/panel:basic-metabolic-panel"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ward") / "home"
    assert main(["import", str(write_ward(home.parent / "source")), "--format", "csv", "--home", str(home)]) == 0
    return home


@pytest.fixture
def site(imported: Path, tmp_path: Path) -> Iterator[Application]:
    home = shutil.copytree(imported, tmp_path / "home")
    with open_application(home) as application:
        yield application


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
    # The ward's records hold results and doses, and no order.
    assert {row.words.done for row in rows} <= {"measured", "given"}
    for row in rows:
        assert row.decision_words.endswith(" measured" if row.kind is Kind.LAB_ORDER else " given")
    for row in rows[::5]:
        assert site.worklist.alert(row.alert_id).patient.timeline.done == row.done
    assert outcome.n_tasks_scored + len(outcome.left_out) == len(asked)
    assert outcome.n_not_asked == len(by_name(site)) - len(asked)
    assert any(line.startswith("Not asked about: ") for line in outcome.lines())
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
    looked_at = range(0, len(snapshot.instances), 7)  # a patient has six days: each day and both wards are among them
    assert set(decided[looked_at]) == {True, False}
    for row in looked_at:
        timeline = views.timeline(row, PANEL_KEY)
        assert bool(timeline.orders_in_window) == decided[row]
        assert (views.hours_to_decision(row, PANEL_KEY) is not None) == decided[row]
        if decided[row]:
            assert views.record_after(row, PANEL_KEY)[0].startswith("Basic metabolic panel measured")
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


def applied(site: Application, text: str, *, reason: str = "not in our house") -> int:
    file = site.settings.home / "tasks.yaml"
    file.write_text(text, encoding="utf-8")
    return main(["tasks", "apply", str(file), "--reason", reason, "--home", str(site.settings.home)])


def asked(site: Application) -> set[str]:
    return {name for name, entry in by_name(site).items() if not entry.off}


def test_an_edited_catalogue_is_followed_by_the_next_scoring(site: Application) -> None:
    first = score_site(site.settings, site.database, REQUEST)
    assert published_already(site.settings, site.database, REQUEST) is not None
    assert applied(site, "LAB_ORDER/Lipase: {asked: false}\nLAB_ORDER/Sodium: {asked: true}\n") == 0
    assert asked(site) == {"Basic metabolic panel", "Heparin", "Sodium"}
    assert by_name(site)["Lipase"].off == "It was switched off."
    # What was scored with another catalogue is not what would be scored now.
    assert published_already(site.settings, site.database, REQUEST) is None
    second = score_site(site.settings, site.database, REQUEST)
    assert second.run_id != first.run_id
    with site.database.read() as uow:
        tasks = {task.id: task.name for task in uow.snapshots.tasks(uow.snapshots.latest().id)}
        reasons = {tasks[one.task_id]: one.reason for one in uow.runs.task_results(second.run_id)}
    assert {name for name, reason in reasons.items() if not reason} == asked(site)
    assert "switched off" in reasons["Lipase"]
    assert applied(site, "LAB_ORDER/Lipase: {asked: default}\nLAB_ORDER/Sodium: {asked: default}\n") == 0
    assert asked(site) == {"Basic metabolic panel", "Heparin", "Lipase"}


def test_a_task_that_stands_twice_in_a_catalogue_is_refused(
    site: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    assert applied(site, "LAB_ORDER/Lipase: {asked: false}\nLAB_ORDER/Lipase: {asked: true}\n") != 0
    assert "line 2: the key 'LAB_ORDER/Lipase' stands twice" in capsys.readouterr().err


def test_every_change_is_a_row_of_the_audit_trail_with_its_reason(site: Application) -> None:
    assert applied(site, "LAB_ORDER/Lipase: {asked: false}", reason="the lab stopped it") == 0
    with site.database.read() as uow:
        rows = uow.audit.latest(10, action=CHANGED)
    assert [row.object for row in rows] == ["task LAB_ORDER/Lipase"]
    details = json.loads(rows[0].details)
    assert details["reason"] == "the lab stopped it"
    assert (details["before"]["asked"], details["after"]["asked"]) == (None, False)


def listed(site: Application) -> list[AlertRow]:
    score_site(site.settings, site.database, REQUEST)
    return list(site.worklist.page(WorklistFilters(alerts_per_patient_day=1000), limit=1000).rows)


def test_a_mute_keeps_alerts_of_a_unit_out_of_the_lists_until_its_day(site: Application) -> None:
    before = listed(site)
    name = "Heparin"
    assert {row.unit for row in before if row.task_name == name} == {"Ward A", "Ward B"}
    mute = "MEDICATION/heparin: {{muted_until: {}, muted_units: [Ward A]}}"
    assert applied(site, mute.format("2999-01-01")) == 0
    muted = listed(site)
    assert {row.unit for row in muted if row.task_name == name} == {"Ward B"}
    others = {(row.patient_id, row.snapshot_at) for row in before if row.unit == "Ward B"}
    assert {(row.patient_id, row.snapshot_at) for row in muted if row.task_name == name} == others
    assert applied(site, mute.format("2000-01-01")) == 0
    assert len(listed(site)) == len(before)
    assert applied(site, "MEDICATION/heparin: {muted_until: 2999-01-01, muted_units: []}") == 0
    assert name not in {row.task_name for row in listed(site)}


def test_what_is_exported_changes_nothing_when_it_is_applied(
    site: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    assert applied(site, "MEDICATION/heparin: {muted_until: 2999-01-01, muted_units: [Ward A], asked: true}") == 0
    assert "1 task changed." in capsys.readouterr().out
    assert main(["tasks", "export", "--home", str(site.settings.home)]) == 0
    text = capsys.readouterr().out
    assert "LAB_ORDER/panel:basic-metabolic-panel" in text
    before = by_name(site)
    assert applied(site, text, reason="") == 0
    assert "0 tasks changed." in capsys.readouterr().out
    assert by_name(site) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("LAB_ORDER/Nothing: {asked: false}", "no such task"),
        ("LAB_ORDER/Lipase: {asked: maybe}", "expected true, false or default"),
        ("LAB_ORDER/Lipase: {aksed: false}", "'aksed' is not a key"),
        ("LAB_ORDER/Lipase: off", "expected keys"),
        ("LAB_ORDER/Lipase: {muted_until: tomorrow}", "expected a day"),
        ("LAB_ORDER/Lipase: {muted_until: 2026-01-01 10:00:00}", "expected a day"),
        ("LAB_ORDER/Lipase: {muted_units: [Ward A]}", "needs muted_until"),
        ("LAB_ORDER/Lipase: {muted_until: 2999-01-01, muted_units: [Ward Z]}", "'Ward Z' is not a care unit"),
        ("LAB_ORDER/Lipase: {muted_until: 2999-01-01, muted_units: Ward A}", "list of care units"),
        ("LAB_ORDER/Lipase: {task: Sodium}", "called 'Sodium' already"),
        ("LAB_ORDER/Lipase: {task: '42'}", "is not a name"),
        ("LAB_ORDER/Lipase: {task: ' Lipase'}", "no blanks around it"),
        ("LAB_ORDER/Lipase: {task: [a]}", "expected a text"),
        ("LAB_ORDER/Lipase: {kind: MEDICATION}", "cannot be changed"),
        ("MEDICATION/heparin: {group: Anticoagulants}", "only single labs are grouped"),
        ("LAB_ORDER/panel:basic-metabolic-panel: {group: Draws}", "only single labs are grouped"),
        ("[1, 2]", "names no task"),
        ("a: b: c", "is not YAML"),
    ],
)
def test_a_wrong_catalogue_is_refused_as_a_whole(
    site: Application, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    good = "MEDICATION/heparin: {asked: false}\n" if text.startswith("LAB") else ""
    before = asked(site)
    assert applied(site, good + text) != 0
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert asked(site) == before


def imported_again(site: Application) -> dict[str, CatalogueEntry]:
    source = write_ward(site.settings.home.parent / "again")
    assert main(["import", str(source), "--format", "csv", "--home", str(site.settings.home)]) == 0
    return by_name(site)


def test_names_and_groups_hold_from_the_next_import_on_everywhere(
    site: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    before = by_name(site)
    edits = f"LAB_ORDER/Lipase: {{task: Pancreas, group: Draw}}\nLAB_ORDER/{PANEL[0]}: {{group: Draw}}\n"
    edits += "MEDICATION/heparin: {task: Heparin drip, muted_until: 2999-01-01, muted_units: [Ward A]}\n"
    edits += f"{PANEL_KEY}: {{task: Chemistry}}\n"
    assert applied(site, edits) == 0
    assert set(by_name(site)) == set(before)
    assert main(["tasks", "export", "--home", str(site.settings.home)]) == 0
    exported = capsys.readouterr().out
    assert applied(site, exported[exported.index("#") :], reason="") == 0, "what is exported changes nothing"
    after = imported_again(site)
    assert {"Pancreas", "Heparin drip", "Chemistry", "Draw"} <= set(after)
    assert {"Lipase", "Heparin", "Basic metabolic panel"}.isdisjoint(after)
    assert set(after["Draw"].members) == {"LAB_ORDER/Lipase", f"LAB_ORDER/{PANEL[0]}"}
    assert set(after["Chemistry"].members) == {f"LAB_ORDER/{name}" for name in PANEL[1:]}
    assert asked(site) == {"Draw", "Chemistry", "Heparin drip"}
    assert after["Heparin drip"].setting.muted_units == ("Ward A",)
    outcome = score_site(site.settings, site.database, REQUEST)
    with site.database.read() as uow:
        names = {task.id: task.name for task in uow.snapshots.tasks(uow.snapshots.latest().id)}
        scored = {names[one.task_id] for one in uow.runs.task_results(outcome.run_id) if not one.reason}
    assert "Heparin drip" in scored
    assert scored <= asked(site)
    rows = site.worklist.page(WorklistFilters(alerts_per_patient_day=1000), limit=1000).rows
    assert {row.unit for row in rows if row.task_name == "Heparin drip"} == {"Ward B"}
    capsys.readouterr()
    assert main(["alerts", "--top", "1000", "--format", "csv", "--home", str(site.settings.home)]) == 0
    exported = capsys.readouterr().out
    assert "Heparin drip" in exported
    assert "Lipase" not in exported
    snapshot = read_snapshot(site.settings.snapshots / site_folder(site))
    column = snapshot.tasks["name"].tolist().index("Draw")
    members = [snapshot.tasks["task_key"].tolist().index(key) for key in after["Draw"].members]
    assert (snapshot.decisions[:, column].toarray().ravel() == snapshot.decisions[:, members].toarray().any(1)).all()
    assert any(name.startswith("Pancreas") for name in snapshot.feature_dictionary["name"])


def test_a_lab_joins_a_panel_and_what_was_decided_about_a_panel_goes_with_its_name(site: Application) -> None:
    assert applied(site, f"{PANEL_KEY}: {{asked: false, task: Chemistry}}\nLAB_ORDER/Lipase: {{group: Chemistry}}") == 0
    after = imported_again(site)
    assert set(after["Chemistry"].members) == {"LAB_ORDER/Lipase", *(f"LAB_ORDER/{name}" for name in PANEL)}
    assert after["Chemistry"].off == "It was switched off."
    assert applied(site, "LAB_ORDER/Lipase: {group: ''}") == 0
    after = imported_again(site)
    assert set(after["Chemistry"].members) == {f"LAB_ORDER/{name}" for name in PANEL}
    assert "Lipase" in asked(site)
    # There and back is another import, not the first: the last one counts.
    back = f"{after['Chemistry'].task_key}: {{task: Basic metabolic panel}}\nLAB_ORDER/Lipase: {{group: default}}"
    assert applied(site, back) == 0
    assert imported_again(site)["Basic metabolic panel"].off == "It was switched off."


def site_folder(site: Application) -> str:
    with site.database.read() as uow:
        return uow.snapshots.latest().folder


def test_a_change_without_a_reason_is_refused(site: Application, capsys: pytest.CaptureFixture[str]) -> None:
    assert applied(site, "LAB_ORDER/Lipase: {asked: false}", reason=" ") != 0
    assert "needs a reason" in capsys.readouterr().err
