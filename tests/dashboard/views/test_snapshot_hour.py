"""A site whose days begin at 06:00 says so everywhere: on pages, in reports, in exports and in their dictionary."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application, open_application
from alertreview.cli import demo
from alertreview.cli.demo import STUDY, DemoSize, build_demo
from alertreview.exports.formats import ExportFormat
from alertreview.files import data_folder
from alertreview.rights import Action, Actor, roles_that_may
from alertreview.settings import load_settings
from core.simulation import hospital, population
from core.vocabulary import Role
from dashboard import frame
from tests.dashboard.conftest import OpenPage
from tests.dashboard.doubles.sign_in import FakeSessions

HOUR, USUAL = "06:00", "08:00"
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]08:00|\d{1,2} [A-Z][a-z]{2}( \d{4})?(,| at)? 08:00")
EVERY_ALERT = WorklistFilters(alerts_per_patient_day=5.0, include_cut_windows=True)


def _build(home: Path) -> None:
    preset = (data_folder() / "mappings" / "simulated.yaml").read_text(encoding="utf-8")
    lines = [line for line in preset.splitlines() if not line.startswith("snapshot_hour")]
    mapping = home.with_name("early.yaml")
    mapping.write_text("\n".join([*lines, "snapshot_hour: 6"]), encoding="utf-8")

    def import_early(settings, database, source, source_format, _mapping, progress):  # type: ignore[no-untyped-def]
        return demo_import(settings, database, source, source_format, str(mapping), progress)

    demo_import = demo.import_records
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "import_records", import_early)
        patch.setattr(demo, "SCORERS", ("softhad",))
        # The simulation knows the truth at the hour at which the instances are.
        patch.setattr(population, "SNAPSHOT_HOUR", 6)
        patch.setattr(hospital, "SNAPSHOT_HOUR", 6)
        list(build_demo(load_settings(home, create=True), DemoSize(n_patients=30, n_cases=24, n_waiting=4)))


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    home = tmp_path_factory.mktemp("early") / "home"
    _build(home)
    with open_application(home) as opened:
        yield opened


def told(page: AppTest) -> str:
    """Everything that a page sends: tables as their values, the rest as protobuf."""
    pieces = []
    waiting = [page._tree]
    while waiting:
        node = waiting.pop()
        waiting += getattr(node, "children", {}).values()
        proto = getattr(node, "proto", None)
        pieces.append(node.value.to_csv() if getattr(node, "type", "") == "arrow_data_frame" else str(proto or ""))
    return "\n".join(pieces)


def wrong_in(text: str) -> list[str]:
    """Lines that name the usual hour; a moment with its date may be 08:00 by chance."""
    return [line for line in MOMENT.sub("", text).splitlines() if USUAL in line]


def pages(site: Application) -> list[tuple[str, Role, dict[str, str]]]:
    """Every page with a role that may see it and the address of something to show."""
    row = site.worklist.page(EVERY_ALERT, limit=1).rows[0]
    params = {"alert": {"alert": str(row.alert_id)}, "task": {"task": row.task_key}, "reports": {"study": STUDY}}
    return [
        (name, Role.REVIEWER if action in (None, Action.JUDGE) else min(roles_that_may(action)), params.get(name, {}))
        for name, *_, action in (*frame.OFFERED, *frame.REACHED_FROM_OTHERS)
    ]


def test_every_page_says_the_hour_of_the_site(early: Application, open_page: OpenPage, monkeypatch) -> None:
    wrong, right = [], set()
    for name, role, params in pages(early):
        person = next((one for one in early.site.people() if one.role is role and not one.simulated), None)
        actor = Actor(person.person_id if person else None, "Ada", role, session_id=1)
        monkeypatch.setattr(early, "sessions", FakeSessions(actor))
        page = open_page(name, early, **params)
        assert not page.exception, name
        said = told(page)
        right |= {name} if HOUR in said else set()
        wrong += [f"{name}: {line}" for line in wrong_in(said)]
    assert wrong == []
    assert {"alert", "review", "study_setup"} <= right, right


def test_every_sentence_about_an_alert_says_it(early: Application) -> None:
    rows = early.worklist.page(EVERY_ALERT, limit=15).rows
    sentences = [text for row in rows for text in early.worklist.alert(row.alert_id).record_after]
    assert any(HOUR in text for text in sentences)
    assert wrong_in("\n".join(sentences)) == []


@pytest.mark.parametrize("output_format", ["json", "html"])
def test_reports_do_not_say_another(early: Application, output_format: str) -> None:
    report = early.reports.report(STUDY)
    assert wrong_in(early.reports.file(report, output_format).decode()) == []


def test_the_dictionary_in_every_export_says_it(early: Application, tmp_path: Path) -> None:
    early.exports.study(STUDY, list(ExportFormat), tmp_path / "study")
    files = [path for path in (tmp_path / "study").rglob("*") if path.is_file()]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files if path.suffix not in {".xlsx", ".parquet"}}
    texts |= {path.name: str(pq.read_schema(path)) for path in files if path.suffix == ".parquet"}
    assert {name: wrong for name, text in texts.items() if (wrong := wrong_in(text))} == {}
    assert HOUR in texts["dictionary.csv"]
    assert HOUR in texts["cases.parquet"]
    assert not any("{snapshot_hour}" in text for text in texts.values())


def test_the_guideline_of_the_demonstration_says_it(early: Application) -> None:
    with early.database.read() as uow:
        guidelines = uow.studies.rubric(uow.studies.by_slug(STUDY).id).guidelines
    assert HOUR in guidelines
    assert wrong_in(guidelines) == []


def test_the_import_report_says_it(early: Application) -> None:
    run = early.worklist.run()
    assert run is not None
    assert run.import_summary["snapshot_hour"] == 6
