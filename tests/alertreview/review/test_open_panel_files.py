"""What leaves the site of an open panel says so: its report in every format, its files, the command line's answer."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from alertreview.application import Application, open_application
from alertreview.cli.main import main
from alertreview.studies.models import ANSWER_TEXTS, Rubric, StudyPlan
from core.errors import InvalidInputError, RefusedError
from core.vocabulary import OPEN_PANEL, OPEN_PANEL_LIMIT, READING, Answer, Role

RUBRIC = Rubric("Unusual?", {**ANSWER_TEXTS, Answer.CANNOT_JUDGE: "Cannot"}, "As known at 08:00.")


@pytest.fixture
def own(own_home: Path) -> Iterator[Application]:
    """A demonstration with an open panel of twelve cases, open."""
    with open_application(own_home) as opened:
        readers = [person.person_id for person in opened.site.people() if person.role is Role.REVIEWER]
        plan = StudyPlan(n_cases=12, seed=5)
        opened.study_desk.set_up("panel", "Panel", plan, RUBRIC, readers[:3], is_open_panel=True)
        opened.study_desk.set_up("blind", "Blind", plan, RUBRIC, readers[:3])
        opened.studies.open_study("panel")
        yield opened


def test_cases_are_chosen_as_for_any_other_study(own: Application) -> None:
    chosen = [
        [(case.row_index, case.task_key, case.inclusion_probability) for case in own.studies.case_rows(slug)]
        for slug in ("panel", "blind")
    ]
    assert chosen[0] == chosen[1]


def test_a_plan_with_repeats_is_refused(own: Application) -> None:
    with pytest.raises(InvalidInputError, match="leave hidden repeats out"):
        own.study_desk.set_up("x", "X", StudyPlan(n_cases=6, n_repeats=2), RUBRIC, [], is_open_panel=True)


def test_report_and_files_carry_the_mark_and_readers_get_them_once_it_is_locked(own: Application) -> None:
    reader = own.studies.progress("panel").readers[0].person_id
    while (case := own.review.next_case("panel", reader)) is not None:
        own.review.submit_judgment(
            "panel", reader, case.case_id, answer=Answer.RELEVANT, version_seen=0, form_key=case.form_key
        )
    hidden = own.reports.report("panel", reader)
    assert hidden.hidden
    assert OPEN_PANEL_LIMIT in hidden.warnings
    with pytest.raises(RefusedError, match="would show the others' answers"):
        own.exports.study_download("panel", ["csv"], person_id=reader)
    own.studies.lock_study("panel")
    report = own.reports.report("panel", reader)
    assert not report.hidden
    assert (report.design[READING], report.warnings[0]) == (OPEN_PANEL, OPEN_PANEL_LIMIT)
    assert OPEN_PANEL_LIMIT in own.reports.file(report, "html").decode()
    _, content = own.exports.study_download("panel", ["csv"], person_id=reader)
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        manifest = json.loads(packed.read("panel-study/manifest.json"))
        labels = packed.read("panel-study/labels.csv").decode()
    assert manifest["study"]["design"][READING] == OPEN_PANEL
    assert labels.count(OPEN_PANEL) == 12
    assert READING not in own.reports.report("demo").design


def test_the_command_line_makes_one_and_says_what_it_costs(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make = ["study", "create", "--title", "Ward", "--cases", "6", "--readers-per-case", "1", "--home", str(own_home)]
    assert main([*make, "--study", "ward", "--reader", "A", "--open-panel"]) == 0
    assert OPEN_PANEL_LIMIT in capsys.readouterr().out
    assert main([*make, "--study", "blind", "--reader", "A"]) == 0
    assert "panel" not in capsys.readouterr().out
    with open_application(own_home) as opened:
        assert {study.slug: study.is_open_panel for study in opened.studies.all()} == {
            "ward": True,
            "blind": False,
            "demo": False,
        }
