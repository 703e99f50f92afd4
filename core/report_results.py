"""The figures that follow from one way of labelling the cases: AUCs, comparisons, subgroups, true-alert rates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.alert_rate import true_alert_rate, weighted_share
from core.auc import delong_interval, delong_paired, task_macro_auc
from core.consensus import CaseLabels, Floats
from core.estimate import Estimate, not_computable
from core.roc import roc_curve
from core.study_input import StudyArrays
from core.study_report import (
    AlertRateCurve,
    CaseUse,
    PairedComparison,
    ResultSet,
    RocCurve,
    ScorerReport,
    SubgroupReport,
)
from core.vocabulary import CaseState, Decision, Kind
from core.weighted_auc import patient_jackknife, patient_jackknife_paired

GROUPINGS = {"kind": "kind", "decision": "decision", "sex": "sex", "age band": "age_band", "unit": "unit"}
"""What divides cases into subgroups, and the column that says so."""


@dataclass(frozen=True)
class Labelling:
    """One way of labelling the cases.

    Attributes
    ----------
    key, title : str
    labels : CaseLabels
    in_full : bool
        Whether to add curves and subgroups, or only the AUCs.
    """

    key: str
    title: str
    labels: CaseLabels
    in_full: bool

    def same_figures_as(self, other: "Labelling") -> bool:
        """Whether the other labelling gives the same figures and the same list of cases."""
        equal = np.array_equal(self.labels.label, other.labels.label, equal_nan=True)
        return equal and self.in_full == other.in_full and self.labels.why_not == other.labels.why_not


def result_set(study: StudyArrays, labelling: Labelling, states: tuple[CaseState, ...]) -> ResultSet:
    """Compute everything that follows from the labels.

    Parameters
    ----------
    study : StudyArrays
    labelling : Labelling
    states : tuple of CaseState
        State of every case, for the list of cases.

    Returns
    -------
    ResultSet
    """
    y, level = labelling.labels.label, study.source.level
    keys = list(study.scores)
    return ResultSet(
        key=labelling.key,
        title=labelling.title,
        n_used=labelling.labels.n,
        n_positive=int(np.nansum(y)) if y.size else 0,
        left_out=labelling.labels.left_out,
        prevalence_naive=weighted_share(y, study.patient, level=level),
        prevalence_weighted=weighted_share(y, study.patient, study.weight, level=level),
        scorers=tuple(_scorer_report(study, key, y, in_full=labelling.in_full) for key in keys),
        comparisons=tuple(_comparison(study, keys[0], other, y) for other in keys[1:]),
        alert_rates=_alert_rates(study, y) if labelling.in_full else (),
        cases=_case_uses(study, labelling.labels, states),
    )


def weighted_figure(study: StudyArrays, y: Floats, key: str, inside: NDArray[np.bool_] | None = None) -> Estimate:
    """Weighted AUC with its jackknife, or why there is none."""
    rows = np.ones(study.n, dtype=bool) if inside is None else inside
    if key in study.gone:
        return not_computable("no case has a score by this scorer; its run is gone", level=study.source.level)
    if rows.any() and np.isnan(study.weight[rows]).all():
        return not_computable("no case has an inclusion probability", level=study.source.level)
    score, patient, weight = study.scores[key][rows], study.patient[rows], study.weight[rows]
    return patient_jackknife(y[rows], score, patient, weight, level=study.source.level)


def naive_figure(study: StudyArrays, y: Floats, key: str, inside: NDArray[np.bool_] | None = None) -> Estimate:
    """AUC with DeLong's interval, or why there is none."""
    rows = np.ones(study.n, dtype=bool) if inside is None else inside
    if key in study.gone:
        return not_computable("no case has a score by this scorer; its run is gone", level=study.source.level)
    return delong_interval(y[rows], study.scores[key][rows], level=study.source.level)


def _scorer_report(study: StudyArrays, key: str, y: Floats, *, in_full: bool) -> ScorerReport:
    score, level = study.scores[key], study.source.level
    usable = np.isfinite(score) & ~np.isnan(y)
    nothing = RocCurve((), (), level=level, reason="not computable: see the AUC" if in_full else "not drawn")
    weighted = weighted_figure(study, y, key)
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
        subgroups=_subgroups(study, key, y) if in_full else (),
    )


def _subgroups(study: StudyArrays, key: str, y: Floats) -> tuple[SubgroupReport, ...]:
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
                    auc_weighted=weighted_figure(study, y, key, inside),
                )
            )
    return tuple(reports)


def _comparison(study: StudyArrays, first: str, other: str, y: Floats) -> PairedComparison:
    a, b, level = study.scores[first], study.scores[other], study.source.level
    naive = delong_paired(y, a, b, level=level)
    weighted = patient_jackknife_paired(y, a, b, study.patient, study.weight, level=level)
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


def _alert_rates(study: StudyArrays, y: Floats) -> tuple[AlertRateCurve, ...]:
    everything = np.ones(study.n, dtype=bool)
    curves = {"both": everything}
    curves |= {str(d): study.column("decision") == d for d in Decision}
    curves |= {str(k): study.column("kind") == k for k in Kind}
    return tuple(_alert_rate(study, name, inside, y) for name, inside in curves.items())


def _alert_rate(study: StudyArrays, name: str, inside: NDArray[np.bool_], y: Floats) -> AlertRateCurve:
    source = study.source
    primary = study.scores[next(iter(study.scores))][inside]
    patient, weight, labels = study.patient[inside], study.weight[inside], y[inside]
    share = weighted_share(labels, patient, weight, level=source.level)
    days = source.n_patient_days or source.n_instances
    if not days:
        return AlertRateCurve(name, (), share, "not computable: the number of patient-days is unknown")
    if not np.isfinite(primary).any():
        return AlertRateCurve(name, (), share, "not computable: no case of this kind has a score")
    minutes = float(np.median(study.seconds)) / 60.0 if study.seconds.size else None
    points = true_alert_rate(
        labels,
        primary,
        patient,
        weight,
        days,
        study.budgets_of(name),
        minutes_per_case=minutes,
        level=source.level,
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
