"""Figures for Prometheus against the database's own rows, and what they must never name."""

import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from alertreview.application import Application, open_application
from alertreview.cli.main import cli, main
from alertreview.operations.backup import BACKUP_MADE, Backups
from alertreview.operations.metrics import metrics_text
from core.vocabulary import CaseState, RunStatus
from db.models import ScoringRun

RUN = (
    *("snapshot_id", "scorer", "scorers", "parameters", "seed", "code_version", "split"),
    *("n_past", "n_recent", "n_patient_days"),
)


def samples(content: bytes) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(content.decode())
    return {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}


def counted(home: Path, query: str) -> list[tuple]:
    engine = sa.create_engine(f"sqlite:///{home / 'alertreview.db'}")
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(sa.text(query))]
    engine.dispose()
    return rows


def test_figures_are_those_of_the_tables(application: Application, demo_home: Path) -> None:
    found = samples(metrics_text(application))
    for status, n in counted(demo_home, "SELECT status, COUNT(*) FROM scoring_run GROUP BY status"):
        assert found["alertreview_runs", status] == n
    for decision, n in counted(
        demo_home,
        "SELECT a.decision, COUNT(*) FROM alert a JOIN scoring_run r ON r.id = a.run_id AND r.scorer = a.scorer "
        "WHERE r.id = (SELECT MAX(id) FROM scoring_run WHERE status = 'published') GROUP BY a.decision",
    ):
        assert found["alertreview_alerts", decision] == n
    for slug, n_slots, n_judged in counted(
        demo_home,
        "SELECT s.slug, s.n_slots * COUNT(DISTINCT c.id), COUNT(DISTINCT j.case_id || ' ' || j.reviewer_id) "
        "FROM study s JOIN study_case c ON c.study_id = s.id LEFT JOIN judgment j ON j.case_id = c.id "
        "WHERE s.status <> 'draft' GROUP BY s.slug, s.n_slots",
    ):
        assert found["alertreview_slots", slug] == n_slots
        assert found["alertreview_judged_slots", slug] == n_judged
    (n_rows,) = counted(demo_home, "SELECT COUNT(*) FROM audit_event")[0]
    assert found["alertreview_audit_rows",] == n_rows


def test_labels_are_words_of_the_program_and_names_of_studies(application: Application) -> None:
    words = {"omission", "commission", *RunStatus, *CaseState} | {study.slug for study in application.studies.all()}
    given = set(re.findall(r'"([^"]*)"', metrics_text(application).decode()))
    assert given
    assert given <= words


def test_no_identifier_of_a_patient_stands_in_them(application: Application, demo_home: Path) -> None:
    text = metrics_text(application).decode()
    numbers = set(re.findall(r"[\w.+-]+", text))
    for column, table in (("patient_id", "instance"), ("stay_id", "instance"), ("name", "person")):
        values = {str(value) for (value,) in counted(demo_home, f"SELECT DISTINCT {column} FROM {table}")}
        assert values
        # An identifier that is a small number may equal a count; one that is long cannot by chance.
        assert not {value for value in values if len(value) > 4} & numbers


def test_they_are_read_while_an_import_holds_the_database(own_home: Path) -> None:
    with open_application(own_home) as site, site.database.write() as uow:
        before = samples(metrics_text(site))
        snapshot = uow.snapshots.latest()
        assert snapshot is not None
        uow.audit.append(snapshot.created_at, "test", "half done", "import", {})
        assert samples(metrics_text(site)) == before


def test_the_command_writes_a_file_at_once_or_to_standard_output(demo_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "alertreview.prom"
    assert CliRunner().invoke(cli, ["metrics", "--home", str(demo_home), "--out", str(out)]).exit_code == 0
    printed = CliRunner().invoke(cli, ["metrics", "--home", str(demo_home)])
    assert samples(printed.stdout_bytes) == samples(out.read_bytes()) != {}


def test_a_missing_package_is_a_sentence_with_its_command(
    demo_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert main(["metrics", "--home", str(demo_home)]) > 0
    assert "pip install 'alertreview[metrics]'" in capsys.readouterr().err


def test_an_unpublished_run_is_counted_and_none_of_its_alerts_and_a_backup_wherever_it_is(own_home: Path) -> None:
    with open_application(own_home) as site:
        before = samples(metrics_text(site))
        with site.database.write() as uow:
            run = uow.runs.latest_published()
            assert run is not None
            begun = ScoringRun(**{name: getattr(run, name) for name in RUN}, created_at=run.created_at)
            uow.runs.start(begun, uow.runs.fold_of_row(run.id))
            uow.audit.append(run.created_at, "test", BACKUP_MADE, "backup elsewhere", {})
            uow.commit()
        after = samples(metrics_text(site))
    assert after.pop(("alertreview_runs", "running")) == before.pop(("alertreview_runs", "running")) + 1
    assert after.pop(("alertreview_backup_timestamp_seconds",)) == run.created_at.timestamp()
    assert after.pop(("alertreview_audit_rows",)) > before.pop(("alertreview_audit_rows",))
    assert after == before


def test_the_time_of_the_last_backup_is_that_of_one_in_its_place(own_home: Path, tmp_path: Path) -> None:
    moment = ("alertreview_backup_timestamp_seconds",)
    with open_application(own_home) as site:
        made = [
            Backups(site.settings, lambda hour=hour: datetime(2026, 1, 1, hour, tzinfo=UTC)).create(
                tmp_path / "elsewhere"
            )
            for hour in (1, 2)
        ]
        for backup in reversed(made):
            assert samples(metrics_text(site))[moment] == backup.manifest.made_at.timestamp()
            shutil.rmtree(backup.folder)
        assert moment not in samples(metrics_text(site))
