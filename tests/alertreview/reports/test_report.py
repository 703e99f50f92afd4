"""The report of a study is that of the run its cases were chosen from, whatever is scored between vote and report."""

from pathlib import Path

import pytest

from alertreview import __version__
from alertreview.alerts.models import WorklistFilters
from alertreview.application import open_application
from alertreview.cli.demo import STUDY
from alertreview.cli.main import main
from alertreview.scoring import resume, score_site


@pytest.mark.parametrize("change", ["version", "parameters", "judged tasks are not asked about"])
def test_a_run_scored_later_changes_nothing(own_home: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = ["--home", str(own_home)]
    with open_application(own_home) as site:
        before, first = site.reports.report(STUDY), site.worklist.run()
        judged = {case.task_key for case in site.studies.case_rows(STUDY)}
    if change == "version":
        for module in (resume, score_site):
            monkeypatch.setattr(module, "__version__", f"{__version__}.later")
    elif change != "parameters":
        edited = own_home / "tasks.yaml"
        edited.write_text("".join(f"{key}: {{asked: false}}\n" for key in sorted(judged)[1:]), encoding="utf-8")
        assert main(["tasks", "apply", str(edited), "--reason", "not in our house", *home]) == 0
    assert main(["score", "--scorer", "logistic", "--seed", "99", *home]) == 0
    with open_application(own_home) as site:
        newest = site.worklist.run()
        assert first is not None
        assert newest is not None
        assert newest.run_id > first.run_id
        after = site.reports.report(STUDY)
        assert after == before
        assert after.design["scoring run"] == str(first.run_id)
        assert site.alert_lists.expected_rate(WorklistFilters()) is None, "a study speaks of its own run's alerts alone"
