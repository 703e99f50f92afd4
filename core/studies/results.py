"""The figures that follow from one way of labelling the cases: AUCs, comparisons, subgroups, true-alert rates."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.kinds import Kind
from core.statistics import candidate_figures
from core.statistics.agreement import (
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    raw_agreement,
    weighted_agreement,
)
from core.statistics.alert_rate import share_of_cases, true_alert_rate
from core.statistics.auc import PairedTest, delong_interval, delong_paired, roc_curve, task_macro_auc
from core.statistics.candidate_figures import Mask
from core.statistics.consensus import (
    UNUSUAL_OR_RELEVANT,
    CaseLabels,
    FloatArray,
    ReaderReliability,
    majority_label,
    positive_votes,
    votes_of,
)
from core.statistics.estimate import EQUAL_SCORES, BudgetPoint, Estimate, RocCurve, not_computable, usable_cases
from core.statistics.multi_reader import holm, obuchowski_rockette
from core.statistics.weighted_auc import WeightedPairs
from core.studies.report import (
    AgreementFigures,
    AgreementReport,
    AlertRateCurve,
    CalibrationBin,
    CaseUse,
    DawidSkeneReport,
    MultiReaderReport,
    NetBenefit,
    OperatingPoint,
    PairAgreement,
    PairedComparison,
    ReaderReport,
    RepeatReport,
    ResultSet,
    ScorerReport,
    SubgroupDifference,
    SubgroupReport,
    WeightedAgreement,
)
from core.studies.report_input import StudyArrays
from core.vocabulary import VOTES, CaseState, Decision


class CandidateFigures:
    """Weighted figures of one labelling of a study's cases: 1 positive, 0 negative, NaN undetermined."""

    def __init__(self, study: StudyArrays, y: FloatArray) -> None:
        self._study, self._level = study, study.source.level
        self._figures = candidate_figures.CandidateFigures(
            y, study.weight, study.patient, study.stratum, study.stratum_size, self._level
        )

    def auc(self, key: str, inside: Mask | None = None) -> Estimate:
        """Return the AUC of a scorer on the candidates, or on those of a subgroup."""
        if why := self._why_not(inside, key):
            return not_computable(why, level=self._level)
        return self._figures.auc(self._study.scores[key], inside)

    def difference(self, first: str, other: str) -> PairedTest:
        """Return the AUC of the first scorer less that of the other on the cases that both scored."""
        if why := self._why_not(None, first, other):
            return PairedTest(not_computable(why, level=self._level), None, None)
        return self._figures.difference(self._study.scores[first], self._study.scores[other])

    def share(self, inside: Mask | None = None) -> Estimate:
        """Return the share of positive candidates, of all or of a subgroup."""
        if why := self._why_not(inside):
            return not_computable(why, level=self._level)
        return self._figures.share(inside)

    def operating_point(self, key: str, threshold: float) -> dict[str, Estimate]:
        """Return sensitivity, specificity and negative predictive value of showing candidates from a score on."""
        return self._figures.operating_point(self._study.scores[key], threshold)

    def net_benefit(self, key: str, threshold: float, chance: float) -> Estimate:
        """Return the net benefit per candidate of showing candidates from a scaled score on."""
        return self._figures.net_benefit(self._study.scores[key], threshold, chance)

    def group_difference(self, key: str, group: Mask) -> PairedTest:
        """Return a scorer's AUC in a group less that among the others."""
        if why := self._why_not(None, key):
            return PairedTest(not_computable(why, level=self._level), None, None)
        return self._figures.group_difference(self._study.scores[key], group)

    def _why_not(self, inside: Mask | None, *keys: str) -> str:
        if any(key in self._study.gone for key in keys):
            return "no case has a score by this scorer; its run is gone"
        weight = self._study.weight if inside is None else self._study.weight[inside]
        if weight.size and np.isnan(weight).all():
            return "no case has an inclusion probability"
        return ""


GROUPINGS = {"kind": "kind", "decision": "decision", "sex": "sex", "age band": "age_band", "unit": "unit"}
"""What divides cases into subgroups, and the column that holds it."""


@dataclass(frozen=True)
class Labelling:
    """One way of labelling the cases."""

    key: str
    title: str
    labels: CaseLabels
    in_full: bool  # whether to add curves and subgroups, or only the AUCs

    def same_figures_as(self, other: "Labelling") -> bool:
        """Whether the other labelling gives the same figures and the same list of cases."""
        equal = np.array_equal(self.labels.label, other.labels.label, equal_nan=True)
        return equal and self.in_full == other.in_full and self.labels.why_not == other.labels.why_not


def result_set(study: StudyArrays, labelling: Labelling, states: tuple[CaseState, ...]) -> ResultSet:
    """Compute everything that follows from the labels; the states of the cases are for the list of cases."""
    y, level = labelling.labels.label, study.source.level
    keys, candidates = list(study.scores), CandidateFigures(study, y)
    comparisons = [_comparison(study, keys[0], other, y, candidates) for other in keys[1:]]
    adjusted = holm([c.p_value_weighted for c in comparisons])
    alert_rates = _alert_rates(study, y, candidates) if labelling.in_full else ()
    return ResultSet(
        key=labelling.key,
        title=labelling.title,
        n_used=labelling.labels.n,
        n_positive=int(np.nansum(y)) if y.size else 0,
        left_out=labelling.labels.left_out,
        prevalence_naive=share_of_cases(y, study.patient, level=level),
        prevalence_weighted=candidates.share(),
        scorers=tuple(_scorer_report(study, key, y, candidates, in_full=labelling.in_full) for key in keys),
        comparisons=tuple(replace(c, p_holm=p) for c, p in zip(comparisons, adjusted, strict=True)),
        alert_rates=alert_rates,
        cases=_case_uses(study, labelling.labels, states),
        operating_point=_operating_point(study, y, alert_rates, candidates),
        calibration=_calibration(study, y, candidates) if labelling.in_full else (),
        subgroup_differences=_subgroup_differences(study, keys[0], candidates) if labelling.in_full else (),
    )


CHANCES = (0.05, 0.1, 0.2, 0.5)
"""Chances of relevance from which on somebody might want to see an alert, for the net benefit."""


def _operating_point(
    study: StudyArrays, y: FloatArray, curves: tuple[AlertRateCurve, ...], candidates: CandidateFigures
) -> OperatingPoint | None:
    point = nearest_point(curves, study.source.headline_budget)
    if point is None:
        return None
    key = next(iter(study.scores))
    score = study.scores[key]
    usable = ~np.isnan(y) & np.isfinite(score) & np.isfinite(study.weight)
    shown, relevant = usable & (score >= point.threshold), y == 1.0
    lowest = float(score[np.isfinite(score)].min())
    return OperatingPoint(
        alerts_per_patient_day=point.alerts_per_patient_day,
        threshold=point.threshold,
        n_shown_relevant=int((shown & relevant).sum()),
        n_shown_other=int((shown & ~relevant).sum()),
        n_missed_relevant=int((usable & ~shown & relevant).sum()),
        n_cleared=int((usable & ~shown & ~relevant).sum()),
        positive_value=point.rate,
        **candidates.operating_point(key, point.threshold),
        net_benefit=tuple(
            NetBenefit(
                chance,
                candidates.net_benefit(key, point.threshold, chance),
                candidates.net_benefit(key, lowest, chance),
            )
            for chance in CHANCES
        ),
    )


def nearest_point(curves: tuple[AlertRateCurve, ...], budget: float) -> BudgetPoint | None:
    """Return the point of the curve of all alerts that is nearest to a budget."""
    curve = next((c for c in curves if c.name == "both"), None)
    if curve is None or not curve.points:
        return None
    return min(curve.points, key=lambda p: abs(p.alerts_per_patient_day - budget))


def _calibration(study: StudyArrays, y: FloatArray, candidates: CandidateFigures) -> tuple[CalibrationBin, ...]:
    score = study.scores[next(iter(study.scores))]
    usable = ~np.isnan(y) & np.isfinite(score) & np.isfinite(study.weight)
    bins = []
    for code in range(study.stratum_size.size):
        inside = usable & (study.stratum == code)
        if inside.any():
            name = str(study.column("stratum")[inside][0])
            mean = float(score[inside].mean())
            bins.append(CalibrationBin(name, int(inside.sum()), mean, candidates.share(inside)))
    return tuple(bins)


def _subgroup_differences(study: StudyArrays, key: str, candidates: CandidateFigures) -> tuple[SubgroupDifference, ...]:
    found = []
    for grouping, column in GROUPINGS.items():
        values = study.column(column)
        groups = sorted(set(values))
        # Of two groups the second says the same as the first.
        for group in groups if len(groups) > 2 else groups[: len(groups) - 1]:
            test = candidates.group_difference(key, values == group)
            found.append((grouping, str(group) or "unknown", test))
    adjusted = holm([test.p_value for *_, test in found])
    return tuple(
        SubgroupDifference(grouping, group, test.difference, test.p_value, p)
        for (grouping, group, test), p in zip(found, adjusted, strict=True)
    )


def multi_reader_report(study: StudyArrays) -> MultiReaderReport:
    """Analyse the AUCs that each reader's own votes give each scorer, readers and cases random."""
    level, keys = study.source.level, [key for key in study.scores if key not in study.gone]
    votes = positive_votes(study.answers)
    scored = np.isfinite(np.array([study.scores[key] for key in keys])).all(axis=0) if keys else np.zeros(study.n, bool)
    constant = [key for key in keys if scored.any() and np.ptp(study.scores[key][scored]) == 0.0]
    keys = [key for key in keys if key not in constant]
    usable = [
        column
        for column in range(votes.shape[1])
        if min((votes[scored, column] == 1.0).sum(), (votes[scored, column] == 0.0).sum()) >= 2
    ]
    if len(usable) < 2 or not keys:
        why = "fewer than two readers gave two votes for and two against relevance"
        if constant and not keys:
            why = EQUAL_SCORES
        return MultiReaderReport(len(usable), reason=f"not computable: {why}")
    rows = np.flatnonzero(scored)
    values, without = np.empty((len(keys), len(usable))), np.empty((rows.size, len(keys), len(usable)))
    for place, column in enumerate(usable):
        own = votes[rows, column]
        voted = ~np.isnan(own)
        for test, key in enumerate(keys):
            cases = usable_cases(own[voted], [study.scores[key][rows][voted]])
            pairs = WeightedPairs.of(cases, 0)
            values[test, place] = pairs.value
            without[:, test, place] = pairs.value
            without[voted, test, place] = pairs.value_without
    found = obuchowski_rockette(values, without, level=level, n=rows.size)
    primary = next(iter(study.scores))
    others = {keys[j]: test for (i, j), test in found.differences.items() if keys[i] == primary}
    flat = not_computable(EQUAL_SCORES, level=level, n=rows.size, method=found.means[0].method)
    means = dict(zip(keys, found.means, strict=True))
    return MultiReaderReport(
        len(usable),
        means={key: means.get(key, flat) for key in study.scores if key in means or key in constant},
        differences={key: test.difference for key, test in others.items()},
        p_values={key: test.p_value for key, test in others.items() if test.p_value is not None},
    )


def naive_figure(study: StudyArrays, y: FloatArray, key: str, inside: NDArray[np.bool_] | None = None) -> Estimate:
    """AUC with DeLong's interval, or why there is none."""
    rows = np.ones(study.n, dtype=bool) if inside is None else inside
    if key in study.gone:
        return not_computable("no case has a score by this scorer; its run is gone", level=study.source.level)
    return delong_interval(y[rows], study.scores[key][rows], level=study.source.level)


def _scorer_report(
    study: StudyArrays, key: str, y: FloatArray, candidates: CandidateFigures, *, in_full: bool
) -> ScorerReport:
    score, level = study.scores[key], study.source.level
    usable = np.isfinite(score) & ~np.isnan(y)
    nothing = RocCurve((), (), level=level, reason="not computable: see the AUC" if in_full else "not drawn")
    weighted = candidates.auc(key)
    naive = naive_figure(study, y, key)
    draw_naive, draw_weighted = in_full and naive.computable, in_full and weighted.computable
    return ScorerReport(
        scorer=key,
        label=study.source.scorer_labels[key],
        n=int(usable.sum()),
        n_positive=int((usable & (y == 1.0)).sum()),
        auc_naive=naive,
        auc_weighted=weighted,
        auc_task_mean=task_macro_auc(y, score, study.column("task_key")),
        roc_naive=roc_curve(y, score, band=False, level=level) if draw_naive else nothing,
        roc_weighted=roc_curve(y, score, patient=study.patient, weight=study.weight, level=level)
        if draw_weighted
        else nothing,
        subgroups=_subgroups(study, key, y, candidates) if in_full else (),
    )


def _subgroups(study: StudyArrays, key: str, y: FloatArray, candidates: CandidateFigures) -> tuple[SubgroupReport, ...]:
    reports = []
    for grouping, column in GROUPINGS.items():
        values = study.column(column)
        for group in sorted(set(values)):
            inside = values == group
            labelled = inside & ~np.isnan(y)
            reports.append(
                SubgroupReport(
                    grouping=grouping,
                    group=str(group) or "unknown",
                    n=int(labelled.sum()),
                    n_positive=int((labelled & (y == 1.0)).sum()),
                    auc_naive=naive_figure(study, y, key, inside),
                    auc_weighted=candidates.auc(key, inside),
                )
            )
    return tuple(reports)


def _comparison(
    study: StudyArrays, first: str, other: str, y: FloatArray, candidates: CandidateFigures
) -> PairedComparison:
    a, b, level = study.scores[first], study.scores[other], study.source.level
    naive = delong_paired(y, a, b, level=level)
    weighted = candidates.difference(first, other)
    return PairedComparison(
        scorer_a=first,
        scorer_b=other,
        n=naive.difference.n,
        difference_naive=naive.difference,
        z=naive.z,
        p_value=naive.p_value,
        difference_weighted=weighted.difference,
        p_value_weighted=weighted.p_value,
    )


def _alert_rates(study: StudyArrays, y: FloatArray, candidates: CandidateFigures) -> tuple[AlertRateCurve, ...]:
    everything = np.ones(study.n, dtype=bool)
    curves = {"both": everything}
    curves |= {str(d): study.column("decision") == d for d in Decision}
    curves |= dict(_by_kind(study))
    return tuple(_alert_rate(study, name, inside, y, candidates) for name, inside in curves.items())


def _alert_rate(
    study: StudyArrays, name: str, inside: NDArray[np.bool_], y: FloatArray, candidates: CandidateFigures
) -> AlertRateCurve:
    source, share = study.source, candidates.share(inside)
    score = np.where(inside, study.scores[next(iter(study.scores))], np.nan)
    days = source.n_patient_days or source.n_instances
    if not days:
        return AlertRateCurve(name, (), share, "not computable: the number of patient-days is unknown")
    if not np.isfinite(score).any():
        return AlertRateCurve(name, (), share, "not computable: no case of this kind has a score")
    if np.isnan(study.weight[inside]).all():
        return AlertRateCurve(name, (), share, share.reason)
    minutes = float(np.median(study.seconds)) / 60.0 if study.seconds.size else None
    budgets, level = study.budgets_of(name), source.level
    points = true_alert_rate(
        y, score, study.weight, days, budgets, candidates.share, minutes_per_case=minutes, level=level
    )
    return AlertRateCurve(name, points, share)


def _case_uses(study: StudyArrays, labels: CaseLabels, states: tuple[CaseState, ...]) -> tuple[CaseUse, ...]:
    words = {1.0: "positive", 0.0: "negative"}
    return tuple(
        CaseUse(str(label), state, words.get(float(value), "undetermined"), not why, why)
        for label, state, value, why in zip(
            study.column("case_label"), states, labels.label, labels.why_not, strict=True
        )
    )


def _by_kind(study: StudyArrays) -> list[tuple[str, NDArray[np.bool_]]]:
    """Mark the cases of every kind of decision that has any."""
    kinds = study.column("kind")
    return [(kind.value, kinds == kind) for kind in Kind if (kinds == kind).any()]


def agreement_report(study: StudyArrays) -> AgreementReport:
    """Agreement on the answers and on "positive or not": overall, by kind, decision, task and pair of readers."""
    votes, positive = votes_of(study.answers), positive_votes(study.answers)
    tasks, names = study.column("task_key"), study.column("task_name")
    by_task = [(str(names[tasks == key][0]), tasks == key) for key in sorted(set(tasks))]
    by_decision = [(str(decision), study.column("decision") == decision) for decision in Decision]
    return AgreementReport(
        answers=agreement_figures(study, "all cases", votes, n_categories=len(VOTES)),
        positive=agreement_figures(study, "all cases", positive, n_categories=2),
        by_kind=_each(study, positive, _by_kind(study)),
        by_decision=_each(study, positive, by_decision),
        by_task=_each(study, positive, by_task),
        pairs=_pairs(study, positive),
        second_rule=agreement_figures(
            study, "all cases", positive_votes(study.answers, UNUSUAL_OR_RELEVANT), n_categories=2
        ),
        weighted=WeightedAgreement(
            *weighted_agreement(positive, study.weight, n_categories=2, patient=study.patient, level=study.source.level)
        ),
        repeats=_repeats(study),
    )


def _repeats(study: StudyArrays) -> RepeatReport | None:
    """Compare the answers to hidden repeats with the first ones; None where the study has none."""
    level = study.source.level
    pairs = study.source.repeats.sort_values(["reader", "case_id"], key=lambda column: column.astype(str))
    if not len(pairs):
        return None
    first, again = (pairs[name].to_numpy(dtype=np.float64) for name in ("first_answer", "repeat_answer"))
    patient_of = dict(zip(study.cases["case_id"], study.patient.tolist(), strict=True))
    patient = np.array([patient_of[case] for case in pairs["case_id"]], dtype=np.int64)
    same, reader = (first == again).astype(np.float64), pairs["reader"].astype(str).to_numpy()
    relevant = [positive_votes(answers.reshape(-1, 1))[:, 0] for answers in (first, again)]
    return RepeatReport(
        n_pairs=len(pairs),
        same_answer=share_of_cases(same, patient, level=level),
        kappa=cohen_kappa(*relevant, patient=patient, level=level),
        by_reader={
            str(code): share_of_cases(same[reader == code], patient[reader == code], level=level)
            for code in sorted(set(reader))
        },
    )


def agreement_figures(
    study: StudyArrays, name: str, votes: FloatArray, *, n_categories: int, inside: NDArray[np.bool_] | None = None
) -> AgreementFigures:
    """All coefficients on some of the cases; raw agreement always stands beside them."""
    rows = np.ones(study.n, dtype=bool) if inside is None else inside
    own, patient, level = votes[rows], study.patient[rows], study.source.level
    return AgreementFigures(
        name=name,
        n_cases=int(((~np.isnan(own)).sum(axis=1) >= 2).sum()) if own.size else 0,
        n_votes=int((~np.isnan(own)).sum()),
        raw=raw_agreement(own, patient=patient, level=level),
        fleiss=fleiss_kappa(own, patient=patient, level=level),
        alpha=krippendorff_alpha(own, patient=patient, level=level),
        ac1=gwet_ac1(own, n_categories=n_categories, patient=patient, level=level),
    )


def _each(
    study: StudyArrays, votes: FloatArray, groups: Iterable[tuple[str, NDArray[np.bool_]]]
) -> tuple[AgreementFigures, ...]:
    return tuple(
        agreement_figures(study, name, votes, n_categories=2, inside=inside) for name, inside in groups if inside.any()
    )


def _pairs(study: StudyArrays, votes: FloatArray) -> tuple[PairAgreement, ...]:
    pairs = []
    for a, b in combinations(range(len(study.readers)), 2):
        both = ~np.isnan(votes[:, [a, b]]).any(axis=1)
        if not both.any():
            continue
        raw = raw_agreement(votes[:, [a, b]], patient=study.patient, level=study.source.level)
        cohen = cohen_kappa(votes[:, a], votes[:, b], patient=study.patient, level=study.source.level)
        pairs.append(PairAgreement(study.readers[a], study.readers[b], int(both.sum()), raw, cohen))
    return tuple(pairs)


def reader_reports(study: StudyArrays) -> tuple[ReaderReport, ...]:
    """How every scorer fares against each reader alone, and against the majority of the others."""
    positive = positive_votes(study.answers)
    reports = []
    for column, reader in enumerate(study.readers):
        own = positive[:, column]
        others = majority_label(np.delete(study.answers, column, axis=1)).label
        reports.append(
            ReaderReport(
                reader=reader,
                n_votes=int((~np.isnan(own)).sum()),
                n_cannot_judge=int((~np.isnan(study.answers[:, column]) & np.isnan(own)).sum()),
                share_positive=share_of_cases(own, study.patient, level=study.source.level),
                auc_against=_against(study, own),
                auc_without=_without(study, others),
            )
        )
    return tuple(reports)


def _against(study: StudyArrays, labels: FloatArray) -> dict[str, Estimate]:
    candidates = CandidateFigures(study, labels)
    return {key: candidates.auc(key) for key in study.scores}


def _without(study: StudyArrays, others: FloatArray) -> dict[str, Estimate]:
    if len(study.readers) < 3:
        too_few = not_computable("the other readers are fewer than two", level=study.source.level)
        return dict.fromkeys(study.scores, too_few)
    return _against(study, others)


def dawid_skene_report(study: StudyArrays, found: ReaderReliability, majority: FloatArray) -> DawidSkeneReport:
    """Put the model of reader reliability into the report's words."""
    if found.reason:
        return DawidSkeneReport(found.n, None, {}, {}, found.n_iterations, found.converged, 0, found.reason)
    both = ~np.isnan(majority) & ~np.isnan(found.label)
    known = [
        (r, float(a), float(b)) for r, a, b in zip(study.readers, found.sensitivity, found.specificity, strict=True)
    ]
    return DawidSkeneReport(
        n_cases=found.n,
        prevalence=found.prevalence,
        sensitivity={reader: a for reader, a, _ in known if not np.isnan(a)},
        specificity={reader: b for reader, _, b in known if not np.isnan(b)},
        n_iterations=found.n_iterations,
        converged=found.converged,
        n_changed=int((majority[both] != found.label[both]).sum()),
    )
