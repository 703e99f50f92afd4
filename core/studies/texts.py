"""The sentences of a report: its headline, and warnings about what its figures cannot say."""

from collections.abc import Mapping

import numpy as np

from core.number_texts import counted, fixed_text, percent_text
from core.statistics.ceiling import NO_BETTER_THAN_CHANCE
from core.statistics.consensus import positive_votes, votes_of
from core.statistics.estimate import BudgetPoint, Ceiling, Estimate, not_computable
from core.studies.report import AgreementReport, AlertRateCurve, DawidSkeneReport, ResultSet
from core.studies.report_input import SAW_SCORE, STRATA_BY, StudyArrays
from core.studies.results import nearest_point
from core.vocabulary import NO_VOTE_WORDS, OPEN_PANEL_LIMIT, is_open_panel

UNEVEN = 0.5
"""Warn when unequal weights leave fewer than this share of the cases as an effective number."""
FEW_POSITIVE = 10


HEAVY = 0.1
"""A stratum with more than this share of all candidates carries the AUC: no headline if no case of it is positive."""
WIDEST = 0.5
"""A figure with a wider interval is no headline."""
FEW_JUDGED = 10
"""A figure needs this many judged cases to be a headline."""
NO_INTERVAL = "interval not computable: "
MUCH = 0.25
"""Share of the candidates from which on the report says that its intervals are about this run."""
CLEARLY = 3.0
"""Standard errors from which on votes are said not to be missing at random."""
MOST_ABOVE = 0.1
"""A budget that ends inside equal scores may hold this share more alerts than it has room for, and be a headline."""


def headline(study: StudyArrays, primary: ResultSet, agreement: AgreementReport, ceiling: Ceiling) -> tuple[str, ...]:
    """Return three sentences on how good the alerts are; **bold** marks the figures.

    A figure that its cases do not carry is withheld with the reason.
    """
    return (_ranking(study, primary), _alert_rate(study, primary), _agreement(primary, agreement, ceiling))


def _ranking(study: StudyArrays, primary: ResultSet) -> str:
    scorer = primary.scorers[0]
    figure, what = scorer.auc_weighted, ""
    if figure.value is None and study.n and np.isnan(study.weight).all():
        figure, what = scorer.auc_naive, " among these cases"
    if figure.value is None:
        return f"How well {scorer.label} ranks relevant cases is {figure.reason}."
    if why := _why_withheld(study, primary, figure):
        return f"How well {scorer.label} ranks relevant cases cannot be said in one figure: {why}."
    times = f"**{percent_text(figure.value).rstrip('%')} times in 100**"
    return f"{scorer.label} ranks a relevant case above another one{what} {times}{_interval(figure)}."


def _why_withheld(study: StudyArrays, primary: ResultSet, figure: Estimate) -> str:
    interval = f" of {figure.text()}" if figure.has_interval else ""
    if figure.n < FEW_JUDGED:
        return f"the AUC{interval} rests on {_cases(figure.n)}, fewer than {FEW_JUDGED}"
    if blind := blind_strata(study, primary):
        return f"{blind[0]}, and the AUC{interval} rests on that"
    if figure.low is None or figure.high is None:
        return figure.reason.removeprefix(NO_INTERVAL)
    if figure.high - figure.low > WIDEST:
        return (
            f"its {100 * figure.level:.0f}% interval runs from {100 * figure.low:.0f} to {100 * figure.high:.0f} in 100"
        )
    return ""


def blind_strata(study: StudyArrays, primary: ResultSet) -> list[str]:
    """Return sentences on strata with many candidates in which no decided case is positive, the largest first."""
    n_candidates = sum(n for _, n, _ in study.source.strata)
    names = study.column("stratum")
    labels = np.array([{"positive": 1.0, "negative": 0.0}.get(case.label, np.nan) for case in primary.cases])
    said = []
    for name, n, _ in sorted(study.source.strata, key=lambda stratum: -stratum[1]):
        inside = labels[names == name]
        n_decided, n_positive = int((~np.isnan(inside)).sum()), int(np.nansum(inside))
        if n <= HEAVY * n_candidates or n_positive or n_decided >= n:
            continue
        if not n_decided:
            said.append(f"no case of stratum '{name}' with {n:,} candidates is decided")
            continue
        # The largest share that leaves n cases without a positive one with probability 1 - level.
        most = 1.0 - (1.0 - study.source.level) ** (1.0 / n_decided)
        where = f"of stratum '{name}' was"
        none = f"none of {_cases(n_decided)} {where}" if n_decided > 1 else f"the only decided case {where} not"
        said.append(f"{none} relevant, up to {100 * most:.0f}% of its {n:,} candidates could be")
    return said


def _cases(n: int) -> str:
    return counted(n, "decided case")


def _interval(figure: Estimate) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" ({100 * figure.level:.0f}% interval {100 * figure.low:.0f}–{100 * figure.high:.0f})"


def headline_point(primary: ResultSet, budget: float) -> BudgetPoint | None:
    """Return the point of the curve of all alerts that is nearest to the headline budget."""
    return nearest_point(primary.alert_rates, budget)


def _alert_rate(study: StudyArrays, primary: ResultSet) -> str:
    point = headline_point(primary, study.source.headline_budget)
    rate = not_computable("") if point is None else point.rate
    if point is None or rate.value is None:
        reason = _curve_reason(primary.alert_rates) if point is None else rate.reason
        return f"The share of relevant alerts at a given budget is {reason}."
    at = f"a budget of {point.alerts_per_patient_day:g} alerts per patient-day"
    days = study.source.n_patient_days or study.source.n_instances or 0
    if why := _why_too_many(point, days) or why_no_rate(rate, point.n_cases):
        return f"The share of relevant alerts at {at} cannot be said in one figure: {why}."
    ends = rate.text(percent=True).partition(" ")[2]
    return f"At {at} **about {_in_ten(rate.value)} alerts are relevant** {ends}."


def _why_too_many(point: BudgetPoint, n_patient_days: float) -> str:
    """Return why a budget cannot be told from a larger one; empty if it can."""
    fit = point.alerts_per_patient_day * n_patient_days
    if point.n_alerts <= (1.0 + MOST_ABOVE) * fit + 1.0:
        return ""
    return f"{point.n_alerts:,.0f} alerts reach the score of its last one, and {fit:,.0f} fit"


def why_no_rate(rate: Estimate, n_cases: int) -> str:
    """Return why a true-alert rate is not quoted by itself; empty if it may be.

    Parameters
    ----------
    rate : Estimate
        With a value.
    n_cases : int
        Decided cases inside the budget.
    """
    if n_cases < FEW_JUDGED:
        return f"{_cases(n_cases)} inside it, fewer than {FEW_JUDGED}"
    if rate.low is None or rate.high is None:
        return rate.reason.removeprefix(NO_INTERVAL)
    if rate.high - rate.low > WIDEST:
        return f"its interval runs from {100 * rate.low:.0f} to {100 * rate.high:.0f}%"
    return ""


def _curve_reason(curves: tuple[AlertRateCurve, ...]) -> str:
    return next((c.reason for c in curves if c.reason), "not computable: no curve was drawn")


def _in_ten(share: float) -> str:
    if 0.1 <= share < 0.95:
        return f"{10 * share:.0f} in 10"
    return f"{percent_text(share).rstrip('%')} in 100"


def _agreement(primary: ResultSet, agreement: AgreementReport, ceiling: Ceiling) -> str:
    kappa, limit = agreement.positive.fleiss, ceiling.weighted
    if kappa.value is None:
        raw = agreement.positive.raw
        beside = f" (raw agreement {raw.text(percent=True)})" if raw.computable else ""
        return f"How far readers agree beyond chance is {kappa.reason}{beside}."
    if kappa.n < FEW_JUDGED:
        have = "1 case has" if kappa.n == 1 else f"{kappa.n} cases have"
        return f"How far readers agree cannot be said in one figure: {have} two votes, fewer than {FEW_JUDGED}."
    if agreement.positive.raw.value == 1.0:
        return f"Readers agree whether each of {kappa.n} cases is relevant, so disagreement sets no limit to an AUC."
    words = strength(kappa.value)
    if limit.value is None and kappa.value > 0.0 and NO_BETTER_THAN_CHANCE in limit.reason:
        # Kappa also takes from cases with one vote how common an answer is.
        return (
            f"How far readers agree cannot be said in one figure: Fleiss κ is {fixed_text(kappa.value)}, but the "
            f"{kappa.n} cases with two votes show no agreement beyond chance."
        )
    if limit.value is None:
        words += f" (Fleiss κ {fixed_text(kappa.value)})"
        if NO_BETTER_THAN_CHANCE in limit.reason:
            return f"Readers agree {words}, {NO_BETTER_THAN_CHANCE.partition(', ')[2]}."
        return f"Readers agree {words}; the highest AUC one can show is {limit.reason}."
    best = primary.scorers[0].auc_weighted.value
    above = "; the AUC lies above it, so that one of the two is off" if best is not None and best > limit.value else ""
    return f"Readers agree {words}, so no method can be shown to exceed an AUC of about {limit.text()} here{above}."


def strength(kappa: float) -> str:
    """Return the word for a kappa.

    References
    ----------
    Landis and Koch (1977), Biometrics 33, 159-174.
    """
    steps = ((0.0, "no better than by chance"), (0.2, "only slightly"), (0.4, "only fairly"), (0.6, "moderately"))
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
        *_about_strata(study, primary),
        *_about_the_run(study, primary),
        *_about_scorers(study, primary),
        *_about_labels(study, results),
        *_about_limits(primary, agreement, ceiling),
    ]
    if dawid_skene.reason:
        said.append(f"Labels weighted by reader reliability (Dawid and Skene): {dawid_skene.reason}.")
    return tuple(said)


def _about_strata(study: StudyArrays, primary: ResultSet) -> list[str]:
    if primary.scorers[0].auc_weighted.value is None:
        return []
    # Only relevant candidates below all others are certain to lower the AUC.
    known = study.source.strata and STRATA_BY not in study.source.design
    lowest = f"'{study.source.strata[0][0]}'" if known else ""
    return [
        f"{words[0].upper()}{words[1:]}: the AUC may be far {'lower' if lowest and lowest in words else 'off'}."
        for words in blind_strata(study, primary)
    ]


def _about_the_run(study: StudyArrays, primary: ResultSet) -> list[str]:
    """Say where so much of a run is decided that intervals are much narrower than those of other runs would be."""
    n, point = sum(size for _, size, _ in study.source.strata), headline_point(primary, study.source.headline_budget)
    if n and primary.n_used >= n:
        return ["All candidates are decided: figures of this run are exact, and intervals are those of runs like it."]
    about = "about this run, and other runs vary more"
    if primary.n_used > MUCH * n > 0.0:
        return [f"{percent_text(primary.n_used / n)} of all candidates are decided: intervals are {about}."]
    if point is not None and point.rate.has_interval and point.n_cases > MUCH * point.n_alerts > 0.0:
        share = percent_text(min(point.n_cases / point.n_alerts, 1.0))
        inside = f"alerts at {point.alerts_per_patient_day:g} per patient-day"
        return [f"{share} of the {inside} are decided: the interval of their rate is {about}."]
    return []


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
        one = open_cases == 1
        lack, wait = ("lacks", "it waits and is") if one else ("lack", "they wait and are")
        labelled = np.array([case.used for case in primary.cases])[judged < study.source.n_slots].sum()
        waiting = (
            f"{labelled} of them decided by the votes there are"
            if study.source.locked
            else f"{wait} not in the figures"
        )
        said.append(f"{open_cases} of {counted(study.n, 'case')} {lack} judgments; {waiting}.")
    if seen := int(study.source.design.get(SAW_SCORE, 0)):
        judgments = counted(seen, "judgment")
        said.append(f"{judgments} came after the reader had seen the score of the case, and may lean towards it.")
    said += [*_about_readers(study), *_about_missing(study)]
    if primary.n_used and not 0 < primary.n_positive < primary.n_used:
        all_cases = (
            f"All {primary.n_used} decided cases have the same label" if primary.n_used > 1 else "1 decided case"
        )
        said.append(f"{all_cases}; no AUC can be computed.")
    elif 0 < min(primary.n_positive, primary.n_used - primary.n_positive) < FEW_POSITIVE:
        fewer = min(primary.n_positive, primary.n_used - primary.n_positive)
        side = "relevant" if fewer == primary.n_positive else "not relevant"
        wide = "; intervals are wide" if primary.n_used < MUCH * sum(n for _, n, _ in study.source.strata) else ""
        said.append(f"Only {_cases(fewer)} {'is' if fewer == 1 else 'are'} {side}{wide}.")
    return said


def _about_readers(study: StudyArrays) -> list[str]:
    """Name readers who always give one answer where the others give several."""
    given = ~np.isnan(study.answers)
    if not given.any() or np.ptp(study.answers[given]) == 0.0:
        return []
    return [
        f"{reader} gave the same answer to each of {n} cases, which tells no case from another."
        for reader, answers, own in zip(study.readers, study.answers.T, given.T, strict=True)
        if (n := int(own.sum())) >= FEW_JUDGED and np.ptp(answers[own]) == 0.0
    ]


def _about_missing(study: StudyArrays) -> list[str]:
    """Say if cases that lack votes differ from the others in how often their votes are positive."""
    votes = positive_votes(study.answers)
    n_votes = (~np.isnan(votes)).sum(axis=1)
    lacks, full = (n_votes > 0) & (n_votes < study.source.n_slots), n_votes >= study.source.n_slots
    if min(lacks.sum(), full.sum()) < FEW_JUDGED:
        return []
    shares = [np.nanmean(votes[rows], axis=1) for rows in (lacks, full)]
    apart = float(shares[0].mean() - shares[1].mean())
    error = float(np.sqrt(sum(share.var(ddof=1) / share.size for share in shares)))
    if abs(apart) <= CLEARLY * error:
        return []
    more = "more" if apart > 0.0 else "less"
    here, there = (percent_text(float(share.mean())) for share in shares)
    pattern = f"where a case lacks one, the others say relevant {more} often ({here}) than elsewhere ({there})"
    return [f"Votes are not missing at random: {pattern}. Undecided cases are left out, so shares may be off."]


def _about_weights(study: StudyArrays) -> list[str]:
    said = [
        f"No case was chosen from stratum '{name}' ({counted(n, 'candidate')}); weighted figures leave it out."
        for name, n, chosen in study.source.strata
        if n and not chosen
    ]
    unknown = int(np.isnan(study.weight).sum())
    if unknown:
        have = "has" if unknown == 1 else "have"
        left_out = "no inclusion probability; weighted figures leave them out."
        said.append(f"{unknown} of {counted(study.n, 'case')} {have} {left_out}")
    known = study.weight[~np.isnan(study.weight)]
    if known.size:
        effective = float(known.sum() ** 2 / np.sum(known**2))
        if effective < UNEVEN * known.size:
            heaviest = max(known.size // 20, 1)
            share = percent_text(float(np.sort(known)[-heaviest:].sum() / known.sum()))
            most = f"{heaviest} cases with the largest weights carry" if heaviest > 1 else "heaviest carries"
            said.append(
                f"Weights are uneven: {counted(known.size, 'case')} count like {effective:.0f} in weighted figures, "
                f"and the {most} {share} of all weight."
            )
    return said


def _about_scorers(study: StudyArrays, primary: ResultSet) -> list[str]:
    labels = study.source.scorer_labels
    said = [f"{labels[key]} has no score for any case: its run is gone." for key in study.gone]
    for scorer in primary.scorers:
        missing = int((~np.isfinite(study.scores[scorer.scorer])).sum())
        if missing and scorer.scorer not in study.gone:
            said.append(
                f"{scorer.label} has no score for {missing} of {counted(study.n, 'case')}; its figures leave them out."
            )
        scores = study.scores[scorer.scorer][np.isfinite(study.scores[scorer.scorer])]
        alike = np.unique(scores, return_counts=True)[1]
        ties = int(alike[alike > 1].sum())
        if ties > 0.2 * max(scores.size, 1):
            said.append(f"{scorer.label} gives {counted(ties, 'case')} the score of another one; such ties count half.")
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
            f"Pairs of votes agree on relevant or not in {percent_text(raw.value)} although kappa is "
            f"{fixed_text(kappa.value)}: nearly all votes are alike, and then kappa says little. "
            "Read Gwet's AC1 beside it."
        )
    best, limit = primary.scorers[0].auc_weighted.value, ceiling.weighted.value
    if best is not None and limit is not None and best > limit:
        said.append(
            "The primary scorer's AUC lies above the ceiling: the AUC is too high for want of relevant cases among low "
            "scores, the ceiling's model (two classes, readers alike) does not fit, or readers saw what the scorer saw."
        )
    return said
