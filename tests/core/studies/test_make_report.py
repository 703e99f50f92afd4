"""The report of a study: its figures by a second road, what must not change them, and every kind of thin input."""

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from core.simulation.study import SimulatedPanel
from core.statistics.alert_rate import Budget
from core.statistics.auc import auc
from core.statistics.consensus import majority_label
from core.studies.make_report import HIDDEN_IN_PANEL, blinded_report, hidden_count, study_report
from core.studies.report import StudyReport
from core.studies.report_input import STRATA_BY, StudyInput, prepare
from core.studies.selection import SelectionDesign
from core.studies.texts import _in_ten, headline_point, strength
from core.vocabulary import NO_VOTE_WORDS, OPEN_PANEL, OPEN_PANEL_LIMIT, READING, CaseState
from tests.support.simulated_study import few_draws, simulate_study

__all__ = ["few_draws"]


@pytest.fixture(scope="module")
def study() -> StudyInput:
    return simulate_study(seed=3, n_patients=40, n_per_patient=30)


def without_subgroups(study) -> StudyInput:
    """Return the study of people of whom nothing is known, whose report takes half the time."""
    return dataclasses.replace(study, cases=study.cases.assign(unit="", sex="", age_band=""))


@pytest.fixture(scope="module")
def unknown_people() -> StudyInput:
    return without_subgroups(simulate_study(seed=3, n_patients=40, n_per_patient=30))


@pytest.fixture(scope="module")
def report(study) -> StudyReport:
    return study_report(study)


def changed(study, **changes) -> StudyReport:
    """Return the report of a changed study, of which every figure claims no more than it knows."""
    found = study_report(dataclasses.replace(study, **changes))
    for path, estimate in all_estimates(found.to_dict()):
        value, low, high, reason = (estimate[name] for name in ("value", "low", "high", "reason"))
        if value is None:
            assert reason.startswith("not computable: "), path
            continue
        assert abs(value) == 1.0 or abs(abs(value) - 1.0) > 1e-9, (path, value)
        if low is None or high is None:
            assert reason.startswith("interval not computable: ") or path.endswith("auc_task_mean"), (path, estimate)
        else:
            assert high - low > 1e-9, (path, low, high)
    point, rate = found.primary.operating_point, headline_point(found.primary, found.headline_budget)
    assert (point and point.positive_value) == (rate and rate.rate)
    return found


def all_estimates(value, path=""):
    """Yield path and every estimate of a plain report."""
    if isinstance(value, dict):
        if {"value", "low", "high", "reason"} <= value.keys():
            yield path, value
        for name, inner in value.items():
            yield from all_estimates(inner, f"{path}.{name}")
    if isinstance(value, list):
        for inner in value:
            yield from all_estimates(inner, path)


class TestFigures:
    def test_the_naive_auc_is_that_of_the_majority_labels(self, study, report):
        arrays = prepare(study)
        labels = majority_label(arrays.answers).label
        assert report.primary.scorer("softhad").auc_naive.value == auc(labels, arrays.scores["softhad"]).value

    def test_naive_and_weighted_stand_side_by_side_for_every_scorer(self, report):
        assert [s.label for s in report.primary.scorers] == ["SoftHAD", "Weighted k-NN"]
        for scorer in report.primary.scorers:
            assert scorer.auc_naive.has_interval
            assert scorer.auc_weighted.has_interval
            assert scorer.auc_naive.value != scorer.auc_weighted.value

    def test_with_equal_weights_the_weighted_figures_are_the_naive_ones(self, study):
        cases = study.cases.assign(inclusion_probability=0.25)
        found = changed(study, cases=cases)
        for result in found.results:
            assert_allclose(result.prevalence_naive.value, result.prevalence_weighted.value)
            for scorer in result.scorers:
                assert_allclose(scorer.auc_naive.value, scorer.auc_weighted.value)
        assert_allclose(found.ceiling.naive.value, found.ceiling.weighted.value)

    def test_there_is_a_result_for_every_way_of_labelling(self, report):
        assert [r.key for r in report.results] == [
            "majority-3",
            "adjudicated-3",
            "majority-2-3",
            "adjudicated-2-3",
            "dawid-skene-3",
            "record",
        ]

    def test_used_and_left_out_cases_add_up_and_each_case_is_listed(self, report):
        for result in report.results:
            assert result.n_used + sum(result.left_out.values()) == len(result.cases) == report.n_cases
            assert sum(case.used for case in result.cases) == result.n_used
            assert all(case.used == (not case.why_not) for case in result.cases)
            assert sum(case.label == "positive" for case in result.cases) == result.n_positive

    def test_the_flow_only_narrows(self, report):
        flow = report.flow
        counts = [flow.n_candidates, flow.n_chosen, flow.n_judged, flow.n_complete, flow.n_decided]
        assert counts == sorted(counts, reverse=True)
        assert flow.n_chosen - flow.n_decided == sum(flow.left_out.values())

    def test_strata_add_up_to_the_study(self, report):
        assert sum(s.n_chosen for s in report.strata) == report.n_cases
        assert sum(s.n_decided for s in report.strata) == report.primary.n_used
        assert sum(s.n_positive for s in report.strata) == report.primary.n_positive

    def test_subgroups_of_a_grouping_add_up(self, report):
        groups = report.primary.scorers[0].subgroups
        assert {g.grouping for g in groups} == {"kind", "decision", "sex", "age band", "unit"}
        for grouping in {g.grouping for g in groups}:
            assert sum(g.n for g in groups if g.grouping == grouping) == report.primary.n_used

    def test_agreement_is_given_by_kind_decision_task_and_pair(self, report):
        found = report.agreement
        assert [f.name for f in found.by_kind] == ["LAB_ORDER", "MEDICATION"]
        assert [f.name for f in found.by_decision] == ["omission", "commission"]
        assert len(found.by_task) == 4
        assert [(p.reader_a, p.reader_b) for p in found.pairs] == [
            ("reader-1", "reader-2"),
            ("reader-1", "reader-3"),
            ("reader-2", "reader-3"),
        ]
        assert sum(f.n_votes for f in found.by_kind) == found.positive.n_votes

    def test_true_alert_rates_come_apart_for_omissions_commissions_labs_and_drugs(self, report):
        assert [c.name for c in report.primary.alert_rates] == [
            "both",
            "omission",
            "commission",
            "LAB_ORDER",
            "MEDICATION",
        ]
        assert all(p.minutes_per_patient_day > 0 for c in report.primary.alert_rates for p in c.points)

    def test_thresholds_counted_over_the_run_are_used_as_given(self, study):
        found = changed(study, budgets={"both": [Budget(0.05, 0.5, 321)]})
        points = found.primary.alert_rates[0].points
        assert [(p.threshold, p.n_alerts) for p in points] == [(0.5, 321)]

    def test_each_reader_is_reported_alone_and_left_out(self, report):
        for reader in report.readers:
            assert reader.auc_against["softhad"].computable
            assert reader.auc_without["softhad"].computable
            assert reader.n_votes + reader.n_cannot_judge == report.n_cases

    def test_adjudication_is_a_second_result_and_leaves_the_first_alone(self, study, report):
        answers = study.cases["adjudicated_answer"].copy()
        undecided = [i for i, c in enumerate(report.primary.cases) if not c.used]
        answers.iloc[undecided] = 3
        found = changed(study, cases=study.cases.assign(adjudicated_answer=answers))
        assert found.primary.scorers == report.primary.scorers
        adjudicated = found.result("adjudicated-3")
        assert adjudicated.n_used == found.n_cases
        assert adjudicated.n_positive == report.primary.n_positive + len(undecided)
        assert found.primary.cases[undecided[0]].state is CaseState.ADJUDICATED


class TestInvariance:
    def test_the_order_of_rows_changes_no_byte(self, study, report):
        shuffled = changed(
            study,
            cases=study.cases.sample(frac=1, random_state=0),
            votes=study.votes.sample(frac=1, random_state=1),
            scores=study.scores.sample(frac=1, random_state=2),
        )
        assert json.dumps(shuffled.to_dict()) == json.dumps(report.to_dict())

    def test_other_names_of_readers_change_no_figure(self, study, report):
        renamed = study.votes.assign(reader=study.votes["reader"].map(lambda r: f"z{9 - int(r[-1])}"))
        found = changed(study, votes=renamed)
        assert found.primary.scorers == report.primary.scorers
        assert_allclose(found.agreement.positive.fleiss.value, report.agreement.positive.fleiss.value)
        assert_allclose(found.ceiling.naive.value, report.ceiling.naive.value)

    def test_json_brings_the_report_back(self, report):
        assert StudyReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report

    def test_no_nan_is_anywhere_and_what_is_missing_has_a_reason(self, report):
        text = json.dumps(report.to_dict(), allow_nan=False)
        assert "NaN" not in text
        for _, estimate in all_estimates(report.to_dict()):
            assert estimate["value"] is not None or estimate["reason"].startswith("not computable: ")


class TestThinInput:
    @pytest.fixture
    def study(self, unknown_people) -> StudyInput:
        return unknown_people

    def no_votes(self, study):
        return {"votes": study.votes.iloc[:0]}

    def test_no_votes(self, study):
        found = changed(study, **self.no_votes(study))
        assert found.primary.n_used == 0
        assert found.primary.scorers[0].auc_naive.reason == "not computable: no case has both a label and a score"
        assert "No case has a judgment yet." in found.warnings
        assert found.primary.left_out == {"no vote": found.n_cases}
        assert found.readers == ()

    def test_one_judgment(self, study):
        found = changed(study, votes=study.votes.iloc[:1])
        assert found.n_votes == 1
        assert found.headline == (
            "How well SoftHAD ranks relevant cases is not computable: no case has both a label and a score.",
            "The share of relevant alerts at a given budget is not computable: no decided case is inside this budget.",
            "How far readers agree beyond chance is not computable: one reader only.",
        )
        assert found.ceiling.weighted.reason == "not computable: no case has two votes"
        assert found.primary.prevalence_weighted.reason == "not computable: no labelled case"
        assert any("222 of 222 cases lack judgments" in w for w in found.warnings)

    def test_one_patient(self, study):
        found = changed(study, cases=study.cases.assign(patient_id="1"))
        alone = "interval not computable: all cases come from one patient"
        weighted = found.primary.scorers[0].auc_weighted
        assert (weighted.low, weighted.high, weighted.reason) == (None, None, alone)
        assert found.ceiling.weighted.reason == alone
        assert {pair.cohen.reason for pair in found.agreement.pairs} == {alone}
        assert all(
            sentence.endswith("cannot be said in one figure: all cases come from one patient.")
            for sentence in found.headline[:2]
        )

    @pytest.mark.parametrize(("sign", "value"), [(1.0, 1.0), (-1.0, 0.0)])
    def test_complete_separation(self, study, sign, value):
        label = study.votes.groupby("case_id")["answer"].apply(lambda answers: float((answers == 3).sum() >= 2))
        score = 0.5 + sign * (study.scores["case_id"].map(label) - 0.5 + study.scores["softhad"] / 10) / 2
        found = changed(study, scores=study.scores.assign(softhad=score))
        weighted = found.primary.scorers[0].auc_weighted
        # Exactly: a last bit below 1 would be a figure that is not there.
        assert weighted.value == value
        assert value in (weighted.low, weighted.high)
        assert 0.0 < weighted.high - weighted.low < 0.2

    def test_one_relevant_candidate_in_a_hundred(self, study):
        label = study.votes.groupby("case_id")["answer"].apply(lambda answers: (answers == 3).sum() >= 2)
        two = label[label].index[:2]
        other = ~study.votes["case_id"].isin(two) & (study.votes["answer"] == 3)
        found = changed(study, votes=study.votes.assign(answer=study.votes["answer"].mask(other, 2)))
        assert found.primary.n_positive == 2
        assert "Only 2 decided cases are relevant; intervals are wide." in found.warnings
        weighted = found.primary.scorers[0].auc_weighted
        assert weighted.high - weighted.low > 0.3
        assert "**" not in found.headline[0]
        assert found.primary.prevalence_weighted.high < 0.1

    def test_votes_that_are_missing_in_a_pattern(self, study):
        taken = study.cases.loc[study.cases["decision"] == "commission", "case_id"]
        missing = study.votes["case_id"].isin(taken) & study.votes["reader"].isin(["reader-1", "reader-2"])
        found = changed(study, votes=study.votes[~missing])
        assert any(f"{len(taken)} of 222 cases lack judgments" in w for w in found.warnings)
        rates = {curve.name: curve for curve in found.primary.alert_rates}
        assert rates["commission"].positive_share.reason == "not computable: no labelled case"
        assert rates["omission"].positive_share.has_interval
        assert found.primary.n_used <= 222 - len(taken)
        assert sum(found.primary.left_out.values()) == 222 - found.primary.n_used

    def test_one_reader(self, study):
        found = changed(study, votes=study.votes[study.votes["reader"] == "reader-1"])
        assert found.agreement.positive.fleiss.reason == "not computable: one reader only"
        assert any("One reader only" in w for w in found.warnings)
        assert found.readers[0].auc_against["softhad"].computable
        assert "fewer than two" in found.readers[0].auc_without["softhad"].reason

    def test_one_class(self, study):
        found = changed(study, votes=study.votes.assign(answer=1))
        assert "one class only (0 positive" in found.primary.scorers[0].auc_weighted.reason
        assert found.agreement.positive.raw.value == 1.0
        assert found.agreement.positive.fleiss.reason == "not computable: one category only"
        assert any("have the same label" in w for w in found.warnings)
        assert found.headline[0].startswith("How well SoftHAD ranks relevant cases is not computable")
        assert "(raw agreement 100%" in found.headline[2]

    def test_all_cannot_judge(self, study):
        found = changed(study, votes=study.votes.assign(answer=0))
        assert found.n_votes == 0
        assert found.n_cannot_judge == len(study.votes)
        assert any(f"Every judgment is '{NO_VOTE_WORDS}'" in w for w in found.warnings)
        assert {c.state for c in found.primary.cases} == {CaseState.UNDETERMINED}
        assert found.headline[2] == "How far readers agree beyond chance is not computable: no votes."
        assert found.result("dawid-skene-3").left_out == {"no votes": 222}

    def test_ties(self, study):
        found = changed(study, scores=study.scores.assign(softhad=study.scores["softhad"].round(1)))
        assert found.primary.scorers[0].auc_naive.has_interval
        assert any("such ties count half" in w for w in found.warnings)

    def test_all_scores_equal(self, study):
        found = changed(study, scores=study.scores.assign(softhad=0.5))
        first, second = found.primary.scorers
        assert first.auc_naive.reason == first.auc_weighted.reason == "not computable: all scores equal"
        assert {group.auc_naive.value for group in first.subgroups} == {first.auc_task_mean.value} == {None}
        assert second.auc_naive.has_interval
        assert found.multi_reader.means["softhad"].reason == "not computable: all scores equal"
        assert found.multi_reader.differences == {}

    def test_missing_scores_of_a_scorer(self, study):
        scores = study.scores.copy()
        scores.loc[:9, "weighted_knn"] = np.nan
        found = changed(study, scores=scores)
        assert any("Weighted k-NN has no score for 10 of 222 cases" in w for w in found.warnings)
        assert found.primary.scorer("weighted_knn").n < found.primary.scorer("softhad").n
        assert found.primary.comparisons[0].n == found.primary.scorer("weighted_knn").n

    def test_a_study_whose_run_is_gone(self, study):
        found = changed(study, scores=pd.DataFrame({"case_id": []}), n_instances=None, n_candidates=None)
        assert "its run is gone" in found.primary.scorers[0].auc_weighted.reason
        assert any("SoftHAD has no score for any case: its run is gone." in w for w in found.warnings)
        assert found.agreement.positive.fleiss.computable
        assert found.primary.alert_rates[0].reason.startswith("not computable")

    def test_strata_with_nothing_chosen(self, study):
        found = changed(study, strata=[*study.strata, ("lowest", 5000, 0)])
        assert any("No case was chosen from stratum 'lowest' (5,000 candidates)" in w for w in found.warnings)
        assert found.strata[-1].inclusion_probability == 0.0

    def test_weights_that_explode(self, study):
        probability = study.cases["inclusion_probability"].copy()
        probability.iloc[:3] = 1e-6
        found = changed(study, cases=study.cases.assign(inclusion_probability=probability))
        (uneven,) = [warning for warning in found.warnings if warning.startswith("Weights are uneven")]
        assert "222 cases count like 3 in" in uneven
        assert "the 11 cases with the largest weights carry >99.9% of" in uneven
        weighted = found.primary.scorers[0].auc_weighted
        assert weighted.value is None or 0 <= weighted.value <= 1

    def test_unknown_weights(self, study):
        found = changed(study, cases=study.cases.assign(inclusion_probability=np.nan))
        assert "no case has an inclusion probability" in found.primary.scorers[0].auc_weighted.reason
        assert "among these cases" in found.headline[0]
        assert any("222 of 222 cases have no inclusion probability" in w for w in found.warnings)
        why, weighted = "not computable: no case has an inclusion probability", re.compile(r"[._]weighted(\.|$)")
        assert f"the highest AUC one can show is {why}." in found.headline[2]
        assert found.headline[1].endswith(f"{why}.")
        assert found.primary.prevalence_weighted.reason == why
        assert {estimate["reason"] for path, estimate in all_estimates(found.to_dict()) if weighted.search(path)} == {
            why,
            "not computable: no case has two votes and a weight",
        }

    def test_no_cases_at_all(self, study):
        found = changed(
            study, cases=study.cases.iloc[:0], votes=study.votes.iloc[:0], scores=study.scores.iloc[:0], strata=()
        )
        assert found.n_cases == 0
        assert len(found.headline) == 3
        assert StudyReport.from_dict(json.loads(json.dumps(found.to_dict()))) == found

    def test_open_cases_wait_until_the_study_is_locked(self, study):
        votes = study.votes[~((study.votes["reader"] == "reader-3") & (study.votes["case_id"] <= 50))]
        live, closed = (changed(study, votes=votes, locked=locked) for locked in (False, True))
        assert live.primary.left_out["judgments outstanding"] == 50
        assert any("50 of 222 cases lack judgments; they wait" in w for w in live.warnings)
        assert closed.primary.n_used > live.primary.n_used
        assert "judgments outstanding" not in closed.primary.left_out

    def test_a_task_without_positive_majority_is_left_out_of_the_mean_which_says_so(self, study):
        votes, cases = study.votes.copy(), study.cases
        quiet = set(cases.loc[cases["task_key"] == "MEDICATION/heparin", "case_id"])
        votes.loc[votes["case_id"].isin(quiet), "answer"] = 1
        mean = changed(study, votes=votes).primary.scorers[0].auc_task_mean
        assert mean.n == 3
        assert mean.left_out == {"0 positive": 1}

    def test_nearly_unanimous_votes_warn_against_kappa(self, study):
        votes = study.votes.assign(answer=1)
        votes.loc[votes.index[::45], "answer"] = 3
        assert any("Read Gwet's AC1 beside it" in w for w in changed(study, votes=votes).warnings)


class TestMuchJudged:
    """Where much of a run is judged, its intervals say little of other runs: the report tells."""

    @pytest.fixture
    def census(self) -> StudyInput:
        """Every candidate is chosen and decided."""
        made = simulate_study(seed=6, n_patients=8, n_per_patient=6, design=SelectionDesign(n_cases=48))
        votes = made.votes.assign(answer=made.votes["answer"].mask(made.votes["answer"] == 0, 1))
        return without_subgroups(dataclasses.replace(made, votes=votes))

    def test_all_candidates(self, census):
        found = study_report(census)
        assert found.primary.n_used == found.n_cases == sum(s.n_population for s in found.strata)
        words = "All candidates are decided: figures of this run are exact, and intervals are those of runs like it."
        assert words in found.warnings
        assert "Only 9 decided cases are relevant." in found.warnings

    def test_all_but_one(self, census):
        """The interval is narrow, and nothing says that it is wide."""
        first = census.votes["case_id"] == 1
        found = study_report(dataclasses.replace(census, votes=census.votes[~first]))
        assert (
            "98% of all candidates are decided: intervals are about this run, and other runs vary more."
            in found.warnings
        )
        figure = found.primary.scorers[0].auc_weighted
        assert figure.high - figure.low < 0.1
        assert not any("intervals are wide" in words for words in found.warnings)

    def test_many_alerts_inside_the_budget(self, unknown_people):
        score = unknown_people.scores["softhad"].nlargest(30).min()
        for n_alerts, told in ((60, True), (6000, False)):
            found = changed(unknown_people, budgets={"both": [Budget(0.25, float(score), n_alerts)]})
            assert any("of the alerts at 0.25 per patient-day are decided" in w for w in found.warnings) == told


class TestPatterns:
    """Votes and scores with a pattern that no figure corrects for: the report names it."""

    @pytest.fixture
    def study(self, unknown_people) -> StudyInput:
        return unknown_people

    def test_no_pattern_is_named_where_there_is_none(self, study):
        rng = np.random.default_rng(1)
        found = changed(study, votes=study.votes[rng.random(len(study.votes)) > 0.1])
        assert not any("missing at random" in w or "same answer" in w for w in found.warnings)

    @pytest.mark.parametrize(("silent_on_relevant", "more"), [(True, "less"), (False, "more")])
    def test_votes_that_are_missing_with_the_answer(self, study, silent_on_relevant, more):
        """Who stands alone against two others keeps silent."""
        says = study.votes["answer"] == 3
        alike = says.groupby(study.votes["case_id"]).transform("sum") - says
        alone = (says & (alike == 0)) if silent_on_relevant else (~says & (alike == 2))
        found = changed(study, votes=study.votes[~alone])
        words = [w for w in found.warnings if w.startswith("Votes are not missing at random")]
        assert len(words) == 1
        assert f"relevant {more} often" in words[0]

    @pytest.mark.parametrize("answer", [1, 3])
    def test_a_reader_who_always_gives_one_answer(self, study, answer):
        always = study.votes["answer"].mask(study.votes["reader"] == "reader-2", answer)
        found = changed(study, votes=study.votes.assign(answer=always))
        assert "reader-2 gave the same answer to each of 222 cases, which tells no case from another." in found.warnings
        assert found.multi_reader.n_readers == 2

    def test_each_case_with_a_tied_score_is_counted(self, study):
        ranks = study.scores["softhad"].rank(method="first")
        found = changed(study, scores=study.scores.assign(softhad=np.ceil(ranks / 2) / 222))
        assert "SoftHAD gives 222 cases the score of another one; such ties count half." in found.warnings

    def test_cases_that_lack_judgments_are_not_called_labelled_where_votes_do_not_decide(self, study):
        found = changed(study, votes=study.votes[study.votes["reader"] == "reader-1"])
        assert found.primary.n_used == 0
        assert "222 of 222 cases lack judgments; 0 of them decided by the votes there are." in found.warnings


class TestHeadline:
    @pytest.fixture
    def study(self, unknown_people) -> StudyInput:
        return unknown_people

    def test_it_says_ranking_alerts_and_agreement(self, study):
        ranking, alerts, agreement = changed(study, headline_budget=0.5).headline
        assert ranking.startswith("SoftHAD ranks a relevant case above another one **")
        assert "% interval" in ranking
        assert "0.5 alerts per patient-day **about" in alerts
        assert agreement.startswith("Readers agree only fairly, so no method can be shown to exceed an AUC of about 0.")

    def test_a_heavy_stratum_without_a_relevant_case_withholds_the_auc(self, study):
        name, n, _ = max(study.strata, key=lambda stratum: stratum[1])
        quiet = set(study.cases.loc[study.cases["stratum"] == name, "case_id"])
        votes = study.votes.copy()
        votes.loc[votes["case_id"].isin(quiet), "answer"] = 1
        found = changed(study, votes=votes)
        n_decided = len(quiet)
        most = 100 * (1 - 0.05 ** (1 / n_decided))
        words = f"one of {n_decided} decided cases of stratum '{name}' was relevant, up to {most:.0f}% of its {n:,} "
        assert f"cannot be said in one figure: n{words}candidates could be, and the AUC of " in found.headline[0]
        assert any(w.startswith(f"N{words}") for w in found.warnings)
        # Of the lowest scores of another method nobody knows that they are low scores of this one.
        first = study.strata[0][0]
        low = votes.assign(
            answer=votes["answer"].mask(
                votes["case_id"].isin(study.cases["case_id"][study.cases["stratum"] == first]), 1
            )
        )
        for design, end in (({}, "lower."), ({STRATA_BY: "SoftHAD"}, "off.")):
            said = [w for w in changed(study, votes=low, design=design).warnings if f"of stratum '{first}'" in w]
            assert len(said) == 1
            assert said[0].endswith(f"the AUC may be far {end}")
        assert "**" not in found.headline[0]

    def test_a_light_stratum_without_a_relevant_case_withholds_nothing(self, study):
        strata = [*study.strata, ("tiny", 10, 0)]
        assert "**" in changed(study, strata=strata).headline[0]

    @pytest.mark.parametrize(("n", "level"), [(3, 0.95), (4, 0.999)])
    def test_few_cases_and_a_wide_interval_withhold_the_auc(self, study, n, level):
        few = study.cases.groupby("stratum").head(n)
        ids = set(few["case_id"])
        votes, scores = (table[table["case_id"].isin(ids)] for table in (study.votes, study.scores))
        found = changed(study, cases=few, votes=votes, scores=scores, level=level)
        figure = found.primary.scorers[0].auc_weighted
        assert "**" not in found.headline[0]
        if figure.n < 10:
            assert f"rests on {figure.n} decided cases, fewer than 10" in found.headline[0]
            assert "agree cannot be said in one figure: 9 cases have two votes, fewer than 10." in found.headline[2]
        else:
            assert figure.high - figure.low > 0.5

    def test_fewer_than_ten_judged_cases_withhold_the_rate(self, study):
        found = changed(study, budgets={"both": [Budget(0.25, float(study.scores["softhad"].nlargest(9).min()), 9)]})
        n = found.primary.alert_rates[0].points[0].n_cases
        assert 1 < n < 10
        assert f"cannot be said in one figure: {n} decided cases inside it, fewer than 10" in found.headline[1]

    @pytest.mark.parametrize(
        ("n", "n_relevant", "words"),
        [(20, 1, "5 in 100"), (25, 2, "8 in 100"), (20, 2, "1 in 10"), (20, 19, "95 in 100")],
    )
    def test_the_words_for_a_share_round_it_and_never_say_none(self, n, n_relevant, words):
        assert _in_ten(n_relevant / n) == words

    def test_a_stratum_of_which_all_is_judged_hides_nothing(self, study):
        """Its relevant candidates are counted, so that nothing has to be feared of the others: there are none."""
        name, _, chosen = max(study.strata, key=lambda stratum: stratum[1])
        quiet = study.cases["case_id"][study.cases["stratum"] == name]
        votes = study.votes.assign(answer=study.votes["answer"].mask(study.votes["case_id"].isin(quiet), 1))
        known = study.cases["inclusion_probability"].mask(study.cases["stratum"] == name, 1.0)
        strata = [(one, chosen if one == name else size, k) for one, size, k in study.strata]
        cases = study.cases.assign(inclusion_probability=known)
        found = study_report(dataclasses.replace(study, votes=votes, strata=strata, cases=cases))
        share = next(one.relevant_share for one in found.primary.calibration if one.stratum == name)
        assert (share.n, share.value, share.low, share.high) == (chosen, 0.0, 0.0, 0.0)
        assert "**" in found.headline[0]
        assert not any("could be" in words for words in (*found.headline, *found.warnings))

    def test_the_only_decided_case_of_a_stratum_is_one(self, study):
        name = max(study.strata, key=lambda stratum: stratum[1])[0]
        inside = study.cases["stratum"] == name
        case = study.cases["case_id"][inside].iloc[0]
        votes = study.votes[
            ~study.votes["case_id"].isin(study.cases["case_id"][inside]) | (study.votes["case_id"] == case)
        ]
        votes = votes.assign(answer=votes["answer"].mask(votes["case_id"] == case, 1))
        words = f"the only decided case of stratum '{name}' was not relevant, up to 95% of its "
        assert words in changed(study, votes=votes).headline[0]

    def test_agreement_on_relevant_or_not_is_not_called_the_same_answer(self, study):
        unlike = study.votes["answer"].mask(study.votes["answer"] == 3, 2)
        first = study.votes["case_id"] == study.cases["case_id"].iloc[0]
        found = changed(study, votes=study.votes.assign(answer=unlike.mask(first, 3)))
        assert found.agreement.positive.raw.value == 1.0 > found.agreement.answers.raw.value
        assert found.headline[2].startswith("Readers agree whether each of ")

    def test_kappa_and_ceiling_never_contradict_each_other_in_one_sentence(self, study):
        """Single votes say how common an answer is: they can lift kappa where pairs of votes show no agreement."""
        gone = (study.votes["answer"] == 3) & (study.votes["reader"] != "reader-1")
        found = changed(study, votes=study.votes[~gone])
        assert found.agreement.positive.fleiss.value > 0.2
        assert "no better than chance" in found.ceiling.weighted.reason
        assert "show no agreement beyond chance" in found.headline[2]

    def test_readers_who_agree_by_chance_are_said_to_once(self, study):
        against = np.where(study.votes["reader"] == "reader-1", 3, 1)
        found = changed(study, votes=study.votes.assign(answer=against))
        chance = "Readers agree no better than by chance (Fleiss κ −0.50)"
        assert found.headline[2] == f"{chance}, so no detector can be shown to be better than chance."

    @pytest.mark.parametrize(
        ("kappa", "words"), [(-0.02, "no better than by chance"), (0.0, "no better than by chance")]
    )
    def test_a_kappa_about_zero_is_not_called_worse_than_chance(self, kappa, words):
        assert strength(kappa) == words

    def test_equal_scores_give_no_figure_at_all(self, study):
        found = changed(study, scores=study.scores.assign(softhad=0.5))
        assert found.headline[0].endswith("is not computable: all scores equal.")
        assert found.headline[1].endswith("in one figure: 1,200 alerts reach the score of its last one, and 75 fit.")

    def test_an_auc_above_the_ceiling_is_said_beside_both(self, study):
        label = study.votes.groupby("case_id")["answer"].apply(lambda answers: float((answers == 3).sum() >= 2))
        perfect = study.scores["case_id"].map(label) + study.scores["softhad"] / 10
        found = changed(study, scores=study.scores.assign(softhad=perfect))
        assert found.primary.scorers[0].auc_weighted.value > found.ceiling.weighted.value
        assert found.headline[2].endswith("the AUC lies above it, so that one of the two is off.")
        assert any("lies above the ceiling" in warning for warning in found.warnings)

    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize("error", [0.05, 0.2, 0.38])
    @pytest.mark.parametrize("follows", [0.0, 1.0])
    def test_no_auc_stands_above_a_ceiling_in_silence(self, seed, error, follows):
        """Whatever readers and scorer: either the AUC is at most the ceiling, or headline and warning say so."""
        simulated = simulate_study(
            seed=seed,
            n_patients=20,
            n_per_patient=20,
            design=SelectionDesign(n_cases=60),
            panel=SimulatedPanel(error_rate=error),
        )
        made = without_subgroups(simulated)
        label = made.votes.groupby("case_id")["answer"].apply(lambda answers: float((answers == 3).sum() >= 2))
        score = made.scores["softhad"] + follows * made.scores["case_id"].map(label)
        found = changed(made, scores=made.scores.assign(softhad=score / 2.0))
        ceiling, figure = found.ceiling.weighted, found.primary.scorers[0].auc_weighted
        if ceiling.value is None:
            assert ceiling.reason.startswith("not computable: ")
            assert "no method can be shown to exceed" not in found.headline[2]
            return
        assert ceiling.value > 0.5
        above = figure.value is not None and figure.value > ceiling.value
        assert above == ("the AUC lies above it" in found.headline[2])
        assert above == any("lies above the ceiling" in warning for warning in found.warnings)

    def test_one_decided_case_is_not_called_cases(self, study):
        first = study.cases["case_id"].iloc[0]
        found = changed(study, votes=study.votes[study.votes["case_id"] == first])
        assert not any(re.search(r"\b1 (decided )?cases\b", words) for words in (*found.warnings, *found.headline))

    def test_a_simulated_study_says_so_first(self, unknown_people):
        assert changed(unknown_people).warnings[0].startswith("Simulated: ")


class TestWhileBlinded:
    def test_no_vote_label_or_figure_is_left(self, report):
        hidden = blinded_report(report)
        plain = hidden.to_dict()
        assert hidden.hidden
        assert all(e["value"] is None for _, e in all_estimates(plain))
        assert hidden.readers == hidden.primary.scorers == hidden.primary.cases == ()
        assert hidden.n_cannot_judge == hidden.primary.n_positive == hidden.flow.n_decided == 0
        assert not hidden.strata
        assert report.strata
        chosen = dataclasses.replace(report, design={"scorer": "softhad", "selection: edges": "0.2, 0.8"})
        assert blinded_report(chosen).design == {"scorer": "softhad"}
        assert "reader-1" not in json.dumps(plain)

    def test_progress_stays_visible(self, report):
        hidden = blinded_report(report)
        assert (hidden.n_cases, hidden.flow.n_judged) == (report.n_cases, report.flow.n_judged)
        assert "hidden while readers are blinded" in hidden.headline[0]
        assert (hidden_count(report), hidden_count(hidden)) == ("", "hidden until you have finished")

    def test_it_survives_json(self, report):
        hidden = blinded_report(report)
        assert StudyReport.from_dict(json.loads(json.dumps(hidden.to_dict()))) == hidden


class TestOpenPanel:
    def test_it_says_so_in_words_and_nothing_else_differs(self, study, report):
        panel = changed(study, design={**study.design, READING: OPEN_PANEL})
        assert panel.is_open_panel
        assert not report.is_open_panel
        assert panel.warnings == (OPEN_PANEL_LIMIT, *report.warnings)
        assert dataclasses.replace(panel, warnings=report.warnings, design=report.design) == report

    def test_a_blinded_report_is_what_it_was_before_there_were_panels(self, report):
        assert READING not in report.design, "a line more would end every signature"
        assert "panel" not in json.dumps(report.to_dict())

    def test_its_hidden_version_says_so_too(self, study):
        hidden = blinded_report(changed(study, design={READING: OPEN_PANEL}))
        assert OPEN_PANEL_LIMIT in hidden.warnings
        assert hidden.is_open_panel
        assert hidden.headline == ("Results are hidden from the readers of an open panel until it is locked.",)
        assert hidden_count(hidden) == "hidden until it is locked"
        assert {found["reason"] for _, found in all_estimates(hidden.to_dict())} == {HIDDEN_IN_PANEL}
