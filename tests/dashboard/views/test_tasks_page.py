"""The Tasks page: what it lists, what it hides, what its form changes, and what the audit trail then holds."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from alertreview.application import Application, open_application
from alertreview.cli.main import main
from alertreview.records import snapshots
from alertreview.records.catalogue import CHANGED, TaskSetting
from alertreview.rights import Actor, guarded
from alertreview.scoring.task_catalogue import TaskCatalogue
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from core.vocabulary import Role
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.catalogue import PANEL, TODAY
from tests.dashboard.doubles.sign_in import FakeCaller, FakeSessions
from tests.support.panel_site import write_ward

COORDINATOR = Actor(person_id=6, name="Ada", role=Role.COORDINATOR, session_id=1)


def table(page: AppTest) -> pd.DataFrame:
    return page.dataframe[0].value.set_index("Task")


def save(page: AppTest, key: str, what: str, reason: str) -> AppTest:
    page.selectbox(key="tasks_which").select(key).run()
    page.radio(key="tasks_what").set_value(what).run()
    page.text_input(key=f"tasks_reason_{key}").input(reason)
    return press(page)


def press(page: AppTest) -> AppTest:
    next(button for button in page.button if button.label == "Save the change").click().run()
    assert not page.exception
    return page


def test_every_task_is_listed_with_why_it_is_not_asked_about(open_page: OpenPage) -> None:
    page = open_page("tasks", FakeApplication())
    rows = table(page)
    assert dict(rows["Kind"]) == {
        "Sodium": "lab",
        "Lipase": "lab",
        "Blue Top Hold": "lab",
        "Heparin": "drug",
        "Basic metabolic panel": "panel",
    }
    assert dict(rows["Asked about"]) == {
        "Sodium": "no",
        "Lipase": "yes",
        "Blue Top Hold": "no",
        "Heparin": "yes",
        "Basic metabolic panel": "yes",
    }
    assert rows.loc["Blue Top Hold", "Why not"] == "It is a note on the specimen."
    assert ((rows["Why not"] == "") == (rows["Asked about"] == "yes")).all()
    assert rows.loc["Basic metabolic panel", "Members"] == "Sodium"
    assert dict(rows["Group"]) == {
        "Sodium": "Basic metabolic panel",
        "Lipase": "",
        "Blue Top Hold": "",
        "Heparin": "",
        "Basic metabolic panel": "Basic metabolic panel",
    }
    assert rows.loc["Heparin", "Decisions"] == 480
    assert rows.loc["Heparin", "Share"] == 20.0
    assert "5 of 5 tasks shown; 3 asked about, 2 off." in page.dataframe[0].proto.alt
    assert "next scoring" in words(page)
    assert page.code[0].value == "alertreview score --home '/srv/a ward'\"'\"'s site'"


@pytest.mark.parametrize(
    ("state", "find", "names"),
    [
        ("All", "", {"Sodium", "Lipase", "Blue Top Hold", "Heparin", "Basic metabolic panel"}),
        ("Asked about", "", {"Lipase", "Heparin", "Basic metabolic panel"}),
        ("Off", "", {"Sodium", "Blue Top Hold"}),
        ("All", " DRUG ", {"Heparin"}),
        ("All", "sodium", {"Sodium", "Basic metabolic panel"}),
        ("Off", "specimen", {"Blue Top Hold"}),
    ],
)
def test_filters_keep_what_they_say(open_page: OpenPage, state: str, find: str, names: set[str]) -> None:
    page = open_page("tasks", FakeApplication())
    page.segmented_control(key="tasks_state").set_value(state)
    page.text_input(key="tasks_find").input(find).run()
    assert nothing_failed(page)
    assert set(table(page).index) == names
    assert len(page.selectbox(key="tasks_which").options) == len(names)


def test_filters_that_hide_everything_can_be_cleared(open_page: OpenPage) -> None:
    page = open_page("tasks", FakeApplication())
    page.text_input(key="tasks_find").input("zzz").run()
    assert "No task matches" in words(page)
    page.button(key="tasks_all").click().run()
    assert len(table(page)) == 5


def test_the_form_switches_a_task_off_and_back_and_shows_the_reason(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = save(open_page("tasks", double), "MEDICATION/heparin", "Do not ask about it", "given to all")
    assert "next scoring" in page.success[0].value
    row = table(page).loc["Heparin"]
    assert (row["Asked about"], row["Why not"], row["Last reason"]) == ("no", "It was switched off.", "given to all")
    page = save(page, "MEDICATION/heparin", "Follow the import", "back")
    assert table(page).loc["Heparin", "Asked about"] == "yes"
    assert [(change[0], change[1].asked, change[2]) for change in double.catalogue.changes] == [
        ("MEDICATION/heparin", False, "given to all"),
        ("MEDICATION/heparin", None, "back"),
    ]


def test_the_form_mutes_a_task_in_units_until_a_day_and_ends_the_mute(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("tasks", double)
    unit = double.catalogue.view().units[0]
    page.selectbox(key="tasks_which").select(PANEL).run()
    page.radio(key="tasks_what").set_value("Mute it").run()
    page.date_input(key=f"tasks_until_{PANEL}").set_value(TODAY)
    page.multiselect(key=f"tasks_units_{PANEL}").set_value([unit])
    page.text_input(key=f"tasks_reason_{PANEL}").input("recall of tubes")
    press(page)
    assert double.catalogue.settings[PANEL] == TaskSetting(None, TODAY, (unit,))
    assert table(page).loc["Basic metabolic panel", "Muted"] == f"{unit}, to the end of 27 Nov 2026"
    page = save(page, PANEL, "End the mute", "tubes are back")
    assert double.catalogue.settings[PANEL] == TaskSetting()
    assert "Muted" not in table(page), "a column in which nothing is said is left out"


def test_the_form_renames_a_task_and_groups_labs(open_page: OpenPage) -> None:
    double, key = FakeApplication(), "LAB_ORDER/Lipase"
    page = open_page("tasks", double)
    page.selectbox(key="tasks_which").select(key).run()
    page.radio(key="tasks_what").set_value("Rename it").run()
    page.text_input(key=f"tasks_name_{key}").input("Pancreas")
    page.text_input(key=f"tasks_reason_{key}").input("our name")
    assert "next import" in press(page).success[0].value
    assert table(page).loc["Lipase", "From the next import on"] == "Named Pancreas."
    page.radio(key="tasks_what").set_value("Group it").run()
    page.selectbox(key=f"tasks_group_{key}").select("Basic metabolic panel")
    page.text_input(key=f"tasks_reason_{key}").input("one draw")
    press(page)
    assert double.catalogue.settings[key] == TaskSetting(name="Pancreas", group="Basic metabolic panel")
    assert "In the group Basic metabolic panel." in table(page).loc["Lipase", "From the next import on"]
    page.selectbox(key="tasks_which").select("MEDICATION/heparin").run()
    assert "Group it" not in page.radio(key="tasks_what").options


def test_a_mute_that_has_ended_says_so(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.catalogue.settings["MEDICATION/heparin"] = TaskSetting(None, TODAY - timedelta(days=1))
    assert table(open_page("tasks", double)).loc["Heparin", "Muted"] == "ended on 26 Nov 2026"


def test_a_change_without_a_reason_is_refused_and_one_that_changes_nothing_says_so(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = save(open_page("tasks", double), "MEDICATION/heparin", "Do not ask about it", "  ")
    assert "takes a reason" in page.error[0].value
    page = save(page, "MEDICATION/heparin", "Follow the import", "why not")
    assert "already so" in page.success[0].value
    assert double.catalogue.changes == []


def test_who_is_limited_to_units_sees_no_form_and_is_refused(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.sessions = FakeSessions(replace(COORDINATOR, units=frozenset({"Ward A"})))
    page = open_page("tasks", double)
    assert len(table(page)) == 5
    assert "not all units are yours" in words(page)
    assert not page.text_input(key="tasks_find").disabled
    assert all(box.key != "tasks_which" for box in page.selectbox)
    with pytest.raises(RefusedError, match="not all units are yours"):
        double.for_session(None).catalogue.switch("MEDICATION/heparin", False, "no")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ward") / "home"
    assert main(["import", str(write_ward(home.parent / "source")), "--format", "csv", "--home", str(home)]) == 0
    return home


@pytest.fixture
def ward(imported: Path, tmp_path: Path) -> Iterator[Application]:
    with open_application(shutil.copytree(imported, tmp_path / "home")) as application:
        yield application


def as_coordinator(ward: Application) -> TaskCatalogue:
    caller = FakeCaller(FakeSessions(COORDINATOR))
    found = guarded({"catalogue": ward.catalogue}, caller)["catalogue"]
    assert isinstance(found, TaskCatalogue)
    return found


def audit_rows(ward: Application) -> list[tuple[str, str, str, dict[str, object]]]:
    with ward.database.read() as uow:
        rows = reversed(uow.audit.latest(100, action=CHANGED))
        return [(row.actor, row.action, row.object, json.loads(row.details)) for row in rows]


def test_the_page_and_the_command_leave_the_same_audit_row(ward: Application, tmp_path: Path) -> None:
    page, key, home = as_coordinator(ward), "MEDICATION/heparin", str(ward.settings.home)
    until = date(2999, 1, 1)
    assert page.switch(key, False, "given to all")
    assert page.mute(key, until, ["Ward A"], "given to all")
    assert page.switch(key, None, "given to all")
    assert page.mute(key, None, [], "given to all")
    assert not page.mute(key, None, [], "given to all"), "nothing changes, so there is no row"
    edits = (
        "asked: false",
        "muted_until: 2999-01-01, muted_units: [Ward A]",
        "asked: default",
        "muted_until: null, muted_units: []",
    )
    for edit in edits:
        file = tmp_path / "tasks.yaml"
        file.write_text(f"{key}: {{{edit}}}", encoding="utf-8")
        assert main(["tasks", "apply", str(file), "--reason", "given to all", "--home", home]) == 0
    rows = audit_rows(ward)
    assert [row[0] for row in rows] == ["person 6"] * 4 + ["command line"] * 4
    assert [row[1:] for row in rows[:4]] == [row[1:] for row in rows[4:]]
    assert rows[1][3]["after"] == {"asked": False, "muted_until": "2999-01-01", "muted_units": ["Ward A"]}


def test_a_task_that_somebody_else_changed_meanwhile_is_not_overwritten(ward: Application) -> None:
    page, key = as_coordinator(ward), "MEDICATION/heparin"
    looked = next(entry.setting for entry in page.view().entries if entry.task_key == key)
    assert page.mute(key, date(2999, 1, 1), [], "recall", seen=looked)
    for change in (
        lambda: page.switch(key, False, "mine", seen=looked),
        lambda: page.mute(key, None, [], "mine", seen=looked),
    ):
        with pytest.raises(ConflictError, match="somebody else has changed"):
            change()
    assert len(audit_rows(ward)) == 1
    now = next(entry.setting for entry in page.view().entries if entry.task_key == key)
    assert page.switch(key, False, "mine", seen=now)


def test_the_form_says_that_somebody_else_changed_the_task_since(open_page: OpenPage) -> None:
    double, key = FakeApplication(), "MEDICATION/heparin"
    page = open_page("tasks", double)
    page.selectbox(key="tasks_which").select(key).run()
    page.radio(key="tasks_what").set_value("Do not ask about it").run()
    double.catalogue.mute(key, TODAY, (), "another coordinator")
    page.text_input(key=f"tasks_reason_{key}").input("mine")
    press(page)
    assert "somebody else has changed" in page.error[0].value
    assert page.text_input(key=f"tasks_reason_{key}").value == "mine"
    assert table(page).loc["Heparin", "Last reason"] == "another coordinator"
    press(page)
    assert double.catalogue.settings[key] == TaskSetting(False, TODAY, ())


def test_the_import_is_opened_once_however_often_the_page_is_drawn(
    ward: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    read = snapshots.read_snapshot

    def noted(folder: Path, checksum: str | None = None) -> snapshots.Snapshot:
        opened.append(folder)
        return read(folder, checksum)

    monkeypatch.setattr(snapshots, "read_snapshot", noted)
    page = as_coordinator(ward)
    assert page.view() == page.view()
    assert len(opened) == 1


def test_a_refused_change_leaves_no_row(ward: Application) -> None:
    page = as_coordinator(ward)
    view = page.view()
    assert view is not None
    assert view.units == ("Ward A", "Ward B")
    yesterday = view.today - timedelta(days=1)
    with pytest.raises(InvalidInputError, match="takes a reason"):
        page.switch("MEDICATION/heparin", False, " ")
    with pytest.raises(InvalidInputError, match="has passed"):
        page.mute("MEDICATION/heparin", yesterday, [], "why")
    with pytest.raises(InvalidInputError, match="not a care unit"):
        page.mute("MEDICATION/heparin", view.today, ["Ward Z"], "why")
    with pytest.raises(NotFoundError, match="no task"):
        page.switch("MEDICATION/none", False, "why")
    assert audit_rows(ward) == []


def test_the_catalogue_of_the_page_is_that_of_the_command(
    ward: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    page = as_coordinator(ward)
    page.switch("LAB_ORDER/Lipase", False, "too many")
    view = page.view()
    assert view is not None
    assert view.reasons == {"LAB_ORDER/Lipase": "too many"}
    capsys.readouterr()
    assert main(["tasks", "list", "--format", "json", "--home", str(ward.settings.home)]) == 0
    listed = {row["task_key"]: row for row in json.loads(capsys.readouterr().out)}
    assert {entry.task_key: (not entry.off, entry.off, entry.n_positive) for entry in view.entries} == {
        key: (row["asked"], row["why_not"], row["decisions"]) for key, row in listed.items()
    }


def test_a_site_without_an_import_has_no_catalogue(tmp_path: Path) -> None:
    assert main(["init", "--home", str(tmp_path / "new")]) == 0
    with open_application(tmp_path / "new") as application:
        assert as_coordinator(application).view() is None


def test_the_form_of_a_real_site_writes_the_row_in_the_name_of_who_is_signed_in(
    open_page: OpenPage, ward: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ward, "sessions", FakeSessions(COORDINATOR))
    page = open_page("tasks", ward)
    assert nothing_failed(page)
    assert "Simulated data" not in words(page)
    page = save(page, "MEDICATION/heparin", "Do not ask about it", "given to all")
    assert table(page).loc["Heparin", "Last reason"] == "given to all"
    ((actor, _, thing, details),) = audit_rows(ward)
    assert (actor, thing, details["reason"]) == ("person 6", "task MEDICATION/heparin", "given to all")
    page.radio(key="tasks_what").set_value("Mute it").run()
    page.multiselect(key="tasks_units_MEDICATION/heparin").set_value(["Ward B"])
    page.text_input(key="tasks_reason_MEDICATION/heparin").input("recall")
    press(page)
    muted = table(page).loc["Heparin"]
    assert muted["Muted"].startswith("Ward B, to the end of ")
    assert muted["Asked about"] == "no", "a mute leaves the switch as it is"
