"""The sentences of a report: its headline, and warnings about what its figures cannot say."""

from collections.abc import Mapping

import numpy as np

from core.statistics.consensus import votes_of
from core.statistics.estimate import BudgetPoint, Ceiling, Estimate, not_computable
from core.studies.report import AgreementReport, AlertRateCurve, DawidSkeneReport, ResultSet
from core.studies.report_input import StudyArrays
from core.vocabulary import NO_VOTE_WORDS, OPEN_PANEL_LIMIT, is_open_panel

UNEVEN = 0.5
"""Warn when unequal weights leave fewer than this share of the cases as an effective number."""
FEW_POSITIVE = 10


def headline(study: StudyArrays, primary: ResultSet, agreement: AgreementReport, ceiling: Ceiling) -> tuple[str, ...]:
    """Return up to three sentences on how good the alerts are; **bold** marks the figures."""
    return (_ranking(primary), _alert_rate(study, primary), _agreement(agreement, ceiling))


def _ranking(primary: ResultSet) -> str:
    scorer = primary.scorers[0]
    figure, what = (
        (scorer.auc_weighted, "") if scorer.auc_weighted.computable else (scorer.auc_naive, " among these cases")
    )
    if figure.value is None:
        return f"How well {scorer.label} ranks relevant cases is {figure.reason}."
    times = f"**{100 * figure.value:.0f} times in 100**"
    return f"{scorer.label} ranks a relevant case above another one{what} {times}{_interval(figure)}."


def _interval(figure: Estimate) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" ({100 * figure.level:.0f}% interval {100 * figure.low:.0f}–{100 * figure.high:.0f})"


def headline_point(primary: ResultSet, budget: float) -> BudgetPoint | None:
    """Return the point of the curve of all alerts that is nearest to the headline budget."""
    curve = next((c for c in primary.alert_rates if c.name == "both"), None)
    if curve is None or not curve.points:
        return None
    return min(curve.points, key=lambda p: abs(p.alerts_per_patient_day - budget))


def _alert_rate(study: StudyArrays, primary: ResultSet) -> str:
    point = headline_point(primary, study.source.headline_budget)
    rate = not_computable("") if point is None else point.rate
    if point is None or rate.value is None:
        reason = _curve_reason(primary.alert_rates) if point is None else rate.reason
        return f"The share of relevant alerts at a given budget is {reason}."
    ends = "" if rate.low is None or rate.high is None else f" ({100 * rate.low:.0f}–{100 * rate.high:.0f}%)"
    return (
        f"At a budget of {point.alerts_per_patient_day:g} alerts per patient-day "
        f"**about {_in_ten(rate.value)} alerts are relevant**{ends}."
    )


def _curve_reason(curves: tuple[AlertRateCurve, ...]) -> str:
    return next((c.reason for c in curves if c.reason), "not computable: no curve was drawn")


def _in_ten(share: float) -> str:
    if share < 0.05:
        return f"{100 * share:.0f} in 100"
    return f"{10 * share:.0f} in 10"


def _agreement(agreement: AgreementReport, ceiling: Ceiling) -> str:
    kappa, limit = agreement.positive.fleiss, ceiling.naive
    if kappa.value is None:
        raw = agreement.positive.raw
        beside = f" (raw agreement {raw.text(percent=True)})" if raw.computable else ""
        return f"How far readers agree beyond chance is {kappa.reason}{beside}."
    words = strength(kappa.value)
    if limit.value is None:
        return f"Readers agree {words} (Fleiss κ {kappa.value:.2f}); the highest AUC one can show is {limit.reason}."
    return f"Readers agree {words}, so no method can be shown to exceed an AUC of about {limit.value:.2f} here."


def strength(kappa: float) -> str:
    """Return the word for a kappa.

    References
    ----------
    Landis and Koch (1977), Biometrics 33, 159-174.
    """
    steps = ((0.0, "worse than by chance"), (0.2, "only slightly"), (0.4, "only fairly"), (0.6, "moderately"))
    more = ((0.8, "substantially"), (np.inf, "almost perfectly"))
    return next(word for limit, word in (*steps, *more) if kappa <= limit)


def warnings(
    study: StudyArrays,
    results: Mapping[str, ResultSet],
    agreement: AgreementReport,
    ceiling: Ceiling,
    dawid_skene: DawidSkeneReport,
) -> tuple[str, ...]:
    """Return sentences on what limits the figures or could not be computed."""
    primary = results["majority-3"]
    said = [
        *([OPEN_PANEL_LIMIT] if is_open_panel(study.source.design) else []),
        *_about_votes(study, primary),
        *_about_weights(study),
        *_about_scorers(study, primary),
        *_about_labels(study, results),
        *_about_limits(primary, agreement, ceiling),
    ]
    if dawid_skene.reason:
        said.append(f"Labels weighted by reader reliability (Dawid and Skene): {dawid_skene.reason}.")
    return tuple(said)


def _about_votes(study: StudyArrays, primary: ResultSet) -> list[str]:
    said = []
    judged = (~np.isnan(study.answers)).sum(axis=1)
    if study.source.simulated:
        said.append("Simulated: no figure of this report says anything about real patients or real readers.")
    if not judged.any():
        said.append("No case has a judgment yet.")
    elif np.isnan(votes_of(study.answers)).all():
        said.append(f"Every judgment is '{NO_VOTE_WORDS}': no case has a vote.")
    if len(study.readers) == 1:
        said.append("One reader only: no majority label, and agreement cannot be computed.")
    open_cases = int((judged < study.source.n_slots).sum())
    if open_cases and judged.any():
        waiting = "are labelled from the votes there are" if study.source.locked else "wait and are not in the figures"
        said.append(f"{open_cases} of {study.n} cases lack judgments; they {waiting}.")
    if primary.n_used and not 0 < primary.n_positive < primary.n_used:
        said.append(f"All {primary.n_used} decided cases have the same label; no AUC can be computed.")
    elif 0 < min(primary.n_positive, primary.n_used - primary.n_positive) < FEW_POSITIVE:
        fewer = min(primary.n_positive, primary.n_used - primary.n_positive)
        side = "relevant" if fewer == primary.n_positive else "not relevant"
        said.append(f"Only {fewer} decided cases are {side}; intervals are wide and not to be trusted to the digit.")
    return said


def _about_weights(study: StudyArrays) -> list[str]:
    said = [
        f"No case was chosen from stratum '{name}' ({n} candidates); weighted figures leave it out."
        for name, n, chosen in study.source.strata
        if n and not chosen
    ]
    unknown = int(np.isnan(study.weight).sum())
    if unknown:
        said.append(f"{unknown} of {study.n} cases have no inclusion probability; weighted figures leave them out.")
    known = study.weight[~np.isnan(study.weight)]
    if known.size:
        effective = float(known.sum() ** 2 / np.sum(known**2))
        if effective < UNEVEN * known.size:
            share = float(np.sort(known)[-max(known.size // 20, 1) :].sum() / known.sum())
            said.append(
                f"Weights are uneven: {known.size} cases count like {effective:.0f} in weighted figures, and the "
                f"twentieth with the largest weights carries {100 * share:.0f}% of them."
            )
    return said


def _about_scorers(study: StudyArrays, primary: ResultSet) -> list[str]:
    labels = study.source.scorer_labels
    said = [f"{labels[key]} has no score for any case: its run is gone." for key in study.gone]
    for scorer in primary.scorers:
        missing = int((~np.isfinite(study.scores[scorer.scorer])).sum())
        if missing and scorer.scorer not in study.gone:
            said.append(f"{scorer.label} has no score for {missing} of {study.n} cases; its figures leave them out.")
        score = study.scores[scorer.scorer]
        ties = score.size - np.unique(score[np.isfinite(score)]).size - missing
        if ties > 0.2 * max(score.size - missing, 1) and scorer.scorer not in study.gone:
            said.append(f"{scorer.label} gives {ties} cases the score of another one; such ties count half.")
    return said


def _about_labels(study: StudyArrays, results: Mapping[str, ResultSet]) -> list[str]:
    said = []
    if study.n and np.isnan(study.numbers("adjudicated_answer")).all():
        said.append("No case was adjudicated: the adjudicated result is the majority result.")
    if "record" not in results:
        said.append("The record of the next 24–72 h was not consulted as a second reference.")
    return said


def _about_limits(primary: ResultSet, agreement: AgreementReport, ceiling: Ceiling) -> list[str]:
    said = []
    kappa, raw = agreement.positive.fleiss, agreement.positive.raw
    if kappa.value is not None and raw.value is not None and raw.value > 0.85 and kappa.value < 0.4:
        said.append(
            f"Readers gave the same answer in {100 * raw.value:.0f}% of pairs although kappa is {kappa.value:.2f}: "
            "nearly all cases got one answer, and then kappa says little. Read Gwet's AC1 beside it."
        )
    best = primary.scorers[0].auc_naive.value
    limit = ceiling.naive.value
    if best is not None and limit is not None and best > limit:
        said.append(
            "The primary scorer's AUC lies above the ceiling: the ceiling's model (two classes, equal readers) does "
            "not fit these votes, or readers saw what the scorer saw."
        )
    return said
