"""The Reports page over the double: who is blinded, who signed, and how many cases a next study needs."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from alertreview.reports.signing import content_hash
from core.errors import RefusedError
from core.statistics import design_planning
from core.statistics.design_planning import ALLOCATIONS
from core.statistics.planning import required_cases, required_cases_to_compare
from core.studies.make_report import study_report
from core.studies.next_study import plan_next
from core.studies.report import StudyReport
from dashboard.components.studies.planner import LOWEST, rival
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.exports import FakeReports
from tests.support.simulated_study import simulate_study

LOCKED = {"study": "ward-2025"}


def test_a_reader_with_cases_left_is_told_why_results_are_hidden(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    report = FakeReports.report

    def noted(self: FakeReports, slug: str, person_id: int | None = None) -> StudyReport:
        asked.append(person_id)
        return report(self, slug, person_id)

    monkeypatch.setattr(FakeReports, "report", noted)
    page = open_page("reports", FakeApplication(), study="demo")
    assert "Reading as" not in words(page), "somebody who judges nothing looks at reports unless a reader is chosen"
    page.selectbox(key="w_person").select(1).run()
    assert nothing_failed(page)
    assert asked == [5, 1]
    assert "Reading as **Demonstration reviewer**, who has 24 cases of this study left to judge" in words(page)
    assert "Decided" not in words(page)
    page.button(key="rp_review").click().run()
    assert "Case 1 of 24" in words(page)


def test_somebody_who_is_no_reader_is_not_told_so(open_page: OpenPage) -> None:
    page = open_page("reports", FakeApplication(), study="demo")
    page.selectbox(key="w_person").select(5).run()
    assert "left to judge" not in words(page)


def test_a_locked_report_is_signed_as_the_person_and_the_content_that_was_shown(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("reports", double, **LOCKED)
    assert "Nobody has signed" in words(page)
    page.selectbox(key="w_person").select(1).run()
    page.text_input(key="rp_meaning").input("I approve this report")
    next(button for button in page.button if button.label.startswith("Sign as")).click().run()
    assert nothing_failed(page)
    (signature,) = double.signed
    assert signature.content_hash == content_hash(double.reports.report("ward-2025"))
    table = next(frame.value for frame in page.dataframe if "Meaning" in frame.value)
    assert table.to_dict("records") == [
        {
            "Name": "Demonstration reviewer",
            "Meaning": "I approve this report",
            "Signed": "27 Nov 2026, 09:00",
            "State": "valid",
        }
    ]


def test_a_refused_signature_is_a_sentence_and_the_report_stays(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_place: object, **_options: object) -> object:
        raise RefusedError("Study 'ward-2025' is not locked. Lock the study, then sign.")

    monkeypatch.setattr(FakeReports, "sign", refuses)
    page = open_page("reports", FakeApplication(), **LOCKED)
    next(button for button in page.button if button.label.startswith("Sign as")).click().run()
    assert "Lock the study, then sign" in words(page)
    assert "AUC, design-weighted" in words(page)


def test_a_whole_report_is_offered_in_three_formats_and_a_hidden_one_as_counts(open_page: OpenPage) -> None:
    for study, formats in (("ward-2025", ["HTML", "PDF", "JSON"]), ("demo", ["JSON"])):
        page = open_page("reports", FakeApplication(), study=study)
        buttons = page.get("download_button")
        assert [button.proto.label for button in buttons] == formats
        assert all(button.proto.ignore_rerun for button in buttons)


def test_the_planner_starts_from_the_report_and_answers_like_the_core(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("reports", double, **LOCKED)
    primary = double.reports.report("ward-2025").primary
    key = "pl_ward-2025_whole"
    assert page.number_input(key=f"{key}_auc").value == 0.78
    assert page.number_input(key=f"{key}_effect").value == 1.0
    assert page.number_input(key=f"{key}_relevant").value == round(100 * primary.n_positive / primary.n_used)
    page.number_input(key=f"{key}_width").set_value(0.05)
    page.number_input(key=f"{key}_relevant").set_value(30.0)
    page.number_input(key=f"{key}_undecided").set_value(10.0)
    page.number_input(key=f"{key}_effect").set_value(1.5).run()
    plan = required_cases(0.78, 0.3, 0.05, design_effect=1.5, undecided_share=0.1)
    assert f"**{plan.n_cases:,} cases**" in words(page)
    assert f"{plan.n_judgments:,} judgments" in words(page)


def test_the_planner_simulates_the_strata_of_the_report(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    # How many studies are simulated is all one to what the page takes from the report and shows of the answer.
    monkeypatch.setattr(design_planning, "N_STUDIES", 5)
    monkeypatch.setattr(design_planning, "LAST_CASES", 600)
    double = FakeApplication()
    page = open_page("reports", double, **LOCKED)
    key = "pl_ward-2025_whole"
    page.number_input(key=f"{key}_width").set_value(0.2)
    page.button(key=f"{key}_simulate").click().run()
    readers, undecided = (page.number_input(key=f"{key}_{name}").value for name in ("readers", "undecided"))
    report = double.reports.report("ward-2025")
    plans = plan_next(report, 0.2, n_readers=int(readers), undecided_share=undecided / 100)
    table = next(one.value for one in page.dataframe if "Cases are divided" in one.value.columns)
    assert set(table["Cases are divided"]) == set(ALLOCATIONS)
    assert table["Cases are divided"].tolist() == [plan.allocation for plan in plans]
    assert table["Cases"].tolist() == [plan.n_cases for plan in plans]
    assert table["Interval, plus or minus"].tolist() == [plan.half_width for plan in plans]


def test_the_planner_says_how_many_cases_tell_two_scorers_apart(open_page: OpenPage) -> None:
    page = open_page("reports", FakeApplication(), **LOCKED)
    key = "pl_ward-2025_whole"
    page.number_input(key=f"{key}_relevant").set_value(30.0)
    page.number_input(key=f"{key}_other").set_value(0.7).run()
    assert f"**{required_cases_to_compare(0.78, 0.7, 0.3):,} decided cases** show the difference" in words(page)
    page.number_input(key=f"{key}_other").set_value(0.78).run()
    assert "Equal AUCs cannot be told apart." in words(page)
    page.number_input(key=f"{key}_auc").set_value(LOWEST).run()
    nothing_failed(page)


def test_every_auc_that_a_plan_takes_has_another_to_compare_with() -> None:
    for hundredths in range(51, 100):
        auc = hundredths / 100
        assert LOWEST <= rival(auc) <= 0.99
        assert rival(auc) != auc


def test_the_page_has_its_title_while_the_report_is_computed(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = FakeApplication()

    def slow(*_: object, **__: object) -> None:
        raise RefusedError("Not yet.")

    monkeypatch.setattr(type(double.reports), "report", slow)
    page = open_page("reports", double, **LOCKED)
    assert words(page).startswith("# How good are the alerts?")
    assert "Ward pilot 2025" in words(page)


def test_the_page_has_one_auc_one_budget_and_one_ceiling(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    report = replace(study_report(simulate_study(seed=3, n_patients=40, n_per_patient=30)), slug="demo")
    monkeypatch.setattr(FakeReports, "report", lambda *_: report)
    page = open_page("reports", FakeApplication(), study="demo")
    tiles = {metric.label: metric.value for metric in page.metric}
    headline = next(one.value for one in page.markdown if "times in 100" in one.value).replace("\\", "")
    budgets = re.findall(r"budget of ([\d.]+\d)", headline) + re.findall(r"rate at ([\d.]+)", " ".join(tiles))
    assert len(budgets) == 2
    assert len(set(budgets)) == 1
    (hundredths,) = re.findall(r"(\d+) times in 100", headline)
    assert tiles["AUC, design-weighted"] == f"0.{hundredths}"
    assert re.findall(r"AUC of about \**([\d.]+\d)", headline) == [tiles["Highest AUC one can show"]]
    roc, methods = (json.loads(page.get("plotly_chart")[place].proto.spec) for place in (0, 2))
    for figure in (roc, methods):
        assert f"{tiles['AUC, design-weighted']} (" in json.dumps(figure), "the figures say the same"


def test_the_planner_of_a_hidden_report_takes_nothing_from_it(open_page: OpenPage) -> None:
    page = open_page("reports", FakeApplication(), study="demo")
    assert page.number_input(key="pl_demo_hidden_auc").value == 0.75
    assert page.number_input(key="pl_demo_hidden_relevant").value == 25.0


@pytest.mark.parametrize(
    ("change", "shown", "hidden"),
    [
        (
            {"scores": 0.5},
            ("not computable: all scores equal",),
            ("No reader judged", "No AUC could", "see the AUC"),
        ),
        (
            {"votes": 0},
            ("No decided case lies inside any budget.", "no case has both a label and a score"),
            ("see the",),
        ),
        (
            {"inclusion_probability": np.nan},
            ("no case has an inclusion probability",),
            ("No AUC", "patients resampled"),
        ),
        ({"patient_id": "1"}, ("0.79", "all cases come from one patient"), ("resampled",)),
    ],
)
def test_a_card_without_a_figure_has_the_reason_and_claims_no_band(
    open_page: OpenPage,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, object],
    shown: tuple[str, ...],
    hidden: tuple[str, ...],
) -> None:
    study = simulate_study(seed=3, n_patients=40, n_per_patient=30)
    cases = study.cases.assign(unit="", sex="", age_band="")
    cases = cases.assign(**{name: value for name, value in change.items() if name in cases})
    study = replace(study, cases=cases, votes=study.votes.iloc[: change.get("votes")])
    if "scores" in change:
        study = replace(study, scores=study.scores.assign(softhad=change["scores"]))
        study = replace(study, scores=study.scores[["case_id", "softhad"]], scorer_labels={"softhad": "SoftHAD"})
    report = replace(study_report(study), slug="demo")
    monkeypatch.setattr(FakeReports, "report", lambda *_: report)
    page = open_page("reports", FakeApplication(), study="demo")
    assert nothing_failed(page)
    for part in shown:
        assert part in words(page)
    for part in hidden:
        assert part not in words(page)
