"""Every figure of a report again, by plain loops over the exported CSV files alone."""

import csv
from collections import defaultdict
from itertools import combinations

import pytest

from alertreview.exports.formats import ExportFormat
from core.studies.make_report import study_report
from tests.alertreview.exports.test_study_rows import export, small_study

LABELS = {"majority-3": "3", "majority-2-3": "23"}
GROUPINGS = {"kind": "kind", "decision": "decision", "sex": "sex", "age band": "age_band", "unit": "unit"}


class Export:
    """The CSV files as dictionaries, and plain functions of them."""

    def __init__(self, folder):
        def rows(name):
            with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))

        self.cases = {row["case_id"]: row for row in rows("cases")}
        self.strata, self.budgets, self.repeats = rows("strata"), rows("budgets"), rows("repeats")
        self.figures = {row["figure"]: row for row in rows("figures")}
        self.scores = defaultdict(dict)
        for row in rows("scores"):
            self.scores[row["scorer"]][row["case_id"]] = float(row["score"]) if row["score"] else None
        newest = {}
        for row in rows("judgments"):
            key = row["case_id"], row["reader"]
            if row["answer"] and (key not in newest or int(row["version"]) > newest[key][0]):
                newest[key] = int(row["version"]), row["answer"]
        self.answers = {key: answer for key, (_, answer) in newest.items()}
        self.readers = sorted({reader for _, reader in self.answers})
        self.weight = {case: 1 / float(row["inclusion_probability"]) for case, row in self.cases.items()}

    def votes(self, positive, reader=None):
        """By case: 1 or 0 for each vote."""
        found = defaultdict(list)
        for (case, who), answer in sorted(self.answers.items()):
            if answer != "0" and reader in (None, who):
                found[case].append(int(answer in positive))
        return found

    def majority(self, positive):
        label = {}
        for case, votes in self.votes(positive).items():
            n_yes, n_no = sum(votes), len(votes) - sum(votes)
            if max(n_yes, n_no) >= 2 and n_yes != n_no:
                label[case] = int(n_yes > n_no)
        return label

    def auc(self, label, scorer, inside=lambda case: True, weighted=True):
        won = every = 0.0
        score = self.scores[scorer]
        usable = [case for case in label if score[case] is not None and inside(case)]
        for i in usable:
            for j in usable:
                if label[i] == 1 and label[j] == 0:
                    pair = self.weight[i] * self.weight[j] if weighted else 1.0
                    every += pair
                    won += pair * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
        return won / every if every else None

    def share(self, label, inside=lambda case: True, of=1):
        hit = sum(self.weight[case] for case in label if inside(case) and label[case] == of)
        every = sum(self.weight[case] for case in label if inside(case))
        return hit / every if every else None


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("road")
    export(small_study(), folder, (ExportFormat.CSV,))
    return Export(folder)


def plain_figures(e):
    """Yield (name in the table of figures, value by plain loops)."""
    first, second = "softhad", "weighted_knn"
    for key, positive in LABELS.items():
        label, at = e.majority(positive), f"results/{key}"
        yield f"{at}/prevalence_weighted", e.share(label)
        yield f"{at}/prevalence_naive", sum(label.values()) / len(label)
        for scorer in (first, second):
            yield f"{at}/scorers/{scorer}/auc_weighted", e.auc(label, scorer)
            yield f"{at}/scorers/{scorer}/auc_naive", e.auc(label, scorer, weighted=False)
            for grouping, column in GROUPINGS.items():
                for group in sorted({row[column] for row in e.cases.values()}):

                    def inside(case, column=column, group=group):
                        return e.cases[case][column] == group

                    name = f"{at}/scorers/{scorer}/subgroups/{grouping}={group or 'unknown'}"
                    yield f"{name}/auc_weighted", e.auc(label, scorer, inside)
                    yield f"{name}/auc_naive", e.auc(label, scorer, inside, weighted=False)
        both = {case: one for case, one in label.items() if e.scores[second][case] is not None}
        apart = e.auc(both, first) - e.auc(both, second)
        yield f"{at}/comparisons/{second}/difference_weighted", apart
        plain = e.auc(both, first, weighted=False) - e.auc(both, second, weighted=False)
        yield f"{at}/comparisons/{second}/difference_naive", plain
        for stratum in e.strata:
            name = stratum["stratum"]
            value = e.share(label, lambda case, name=name: e.cases[case]["stratum"] == name)
            yield f"{at}/calibration/{name}/relevant_share", value
        yield from operating_point(e, label, at, first)
        for grouping, column in GROUPINGS.items():
            groups = sorted({row[column] for row in e.cases.values()})
            for group in groups if len(groups) > 2 else groups[:-1]:
                own = e.auc(label, first, lambda case, c=column, g=group: e.cases[case][c] == g)
                others = e.auc(label, first, lambda case, c=column, g=group: e.cases[case][c] != g)
                value = None if own is None or others is None else own - others
                yield f"{at}/subgroup_differences/{grouping}={group or 'unknown'}/difference", value
    yield from agreement(e)
    for reader in e.readers:
        own = {case: votes[0] for case, votes in e.votes("3", reader).items()}
        yield f"readers/{reader}/share_positive", sum(own.values()) / len(own)
        for scorer in (first, second):
            yield f"readers/{reader}/auc_against/{scorer}", e.auc(own, scorer)
    scored = {case for case in e.cases if e.scores[second][case] is not None}
    for scorer in (first, second):
        areas = [
            e.auc({c: v[0] for c, v in e.votes("3", reader).items() if c in scored}, scorer, weighted=False)
            for reader in e.readers
        ]
        yield f"multi_reader/means/{scorer}", sum(areas) / len(areas)


def operating_point(e, label, at, scorer):
    budget = next(b for b in e.budgets if b["curve"] == "both" and b["alerts_per_patient_day"] == "0.2")
    assert not budget["threshold"], "the threshold of this budget is estimated from the weights"
    threshold = float(e.threshold)

    def shown(case):
        return e.scores[scorer][case] >= threshold

    name = f"{at}/operating_point"
    yield f"{name}/positive_value", e.share(label, shown)
    yield f"{name}/negative_value", e.share(label, lambda case: not shown(case), of=0)
    relevant = sum(e.weight[case] for case in label if label[case])
    yield f"{name}/sensitivity", sum(e.weight[case] for case in label if label[case] and shown(case)) / relevant
    others = sum(e.weight[case] for case in label if not label[case])
    yield f"{name}/specificity", sum(e.weight[case] for case in label if not label[case] and not shown(case)) / others
    for chance in (0.05, 0.1, 0.2, 0.5):
        for which, inside in (("within_budget", shown), ("all_shown", lambda case: True)):
            benefit = sum(
                e.weight[case] * (1.0 if label[case] else -chance / (1 - chance)) for case in label if inside(case)
            )
            yield f"{name}/net_benefit/{chance}/{which}", benefit / (relevant + others)


def agreement(e):
    def raw(votes, weight):
        kept = {case: own for case, own in votes.items() if len(own) >= 2}
        per_case = {case: [a == b for a, b in combinations(own, 2)] for case, own in kept.items()}
        every = sum(weight[case] for case in kept)
        return sum(weight[case] * sum(same) / len(same) for case, same in per_case.items()) / every, kept, every

    def kappa(votes, weight):
        observed, kept, every = raw(votes, weight)
        yes = sum(weight[case] * sum(own) / len(own) for case, own in kept.items()) / every
        chance = yes**2 + (1 - yes) ** 2
        ac1 = 2 * yes * (1 - yes)
        return (observed - chance) / (1 - chance), (observed - ac1) / (1 - ac1)

    alike = dict.fromkeys(e.cases, 1.0)
    for name, positive in (("positive", "3"), ("second_rule", "23")):
        votes = e.votes(positive)
        yield f"agreement/{name}/raw", raw(votes, alike)[0]
        yield f"agreement/{name}/fleiss", kappa(votes, alike)[0]
        yield f"agreement/{name}/ac1", kappa(votes, alike)[1]
    votes = e.votes("3")
    yield "agreement/weighted/raw", raw(votes, e.weight)[0]
    yield "agreement/weighted/fleiss", kappa(votes, e.weight)[0]
    yield "agreement/weighted/ac1", kappa(votes, e.weight)[1]
    same = [row["first_answer"] == row["repeat_answer"] for row in e.repeats]
    yield "agreement/repeats/same_answer", sum(same) / len(same)


def test_every_figure_by_plain_loops_over_the_files(exported):
    report = study_report(small_study())
    exported.threshold = report.primary.operating_point.threshold
    compared = 0
    for name, value in plain_figures(exported):
        found = exported.figures[name]["value"]
        if value is None:
            assert not found, name
            assert exported.figures[name]["reason"].startswith("not computable: "), name
        elif found:
            assert float(found) == pytest.approx(value, rel=1e-9, abs=1e-12), name
        else:
            assert "not computable" in exported.figures[name]["reason"], name
        compared += 1
    assert compared > 150


def test_every_interval_of_the_files_holds_its_value(exported):
    for name, row in exported.figures.items():
        if row["low"] and row["high"]:
            assert float(row["low"]) <= float(row["value"]) + 1e-12, name
            assert float(row["value"]) <= float(row["high"]) + 1e-12, name
        if not row["value"]:
            assert row["reason"].startswith("not computable: "), name
