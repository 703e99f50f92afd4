"""The numbers of a whole report by the plainest road, in the report's own structure; see `second_road`."""

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
from scipy import stats

from tests.support.second_road import (
    BUDGETS,
    FIRST,
    SECOND,
    Labelled,
    curve,
    delong,
    delong_estimate,
    estimate,
    holm,
    majority,
    plain_share,
    task_mean,
    usable,
    why_undetermined,
)
from tests.support.second_road_readers import (
    agreement_figures,
    ceiling,
    cohen,
    dawid_skene,
    given_votes,
    multi_reader,
    weighted_agreement,
)

TEXTS = {"headline", "warnings", "positive_texts", "design"}


def differences(report: object, second: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield every number of a plain report with its place, and in words how the second road has another, or none.

    What is None in the report has to be None on the second road. A pair on the second road is the least and the largest
    value allowed.
    """
    if isinstance(report, dict):
        if isinstance(second, dict):
            yield from ((f"{place}/{name}", "is on the second road only") for name in second.keys() - report.keys())
        for name, own in report.items():
            if isinstance(own, str) or name in TEXTS:
                continue
            if not isinstance(second, dict) or name not in second:
                yield f"{place}/{name}", "has no second road"
            else:
                yield from differences(own, second[name], f"{place}/{name}")
    elif isinstance(report, list):
        if not isinstance(second, list) or len(second) != len(report):
            yield place, f"has {len(report)} members, on the second road {second!r:.80}"
        else:
            for number, (own, other) in enumerate(zip(report, second, strict=True)):
                yield from differences(own, other, f"{place}/{number}")
    else:
        yield place, "" if _is_same(report, second) else f"is {report!r}, on the second road {second!r}"


def _is_same(number, second) -> bool:
    if number is None or second is None or isinstance(number, bool):
        return number is second or (isinstance(number, bool) and number == second)
    least, largest = second if isinstance(second, tuple) else (second, second)
    slack = 1e-9 + 1e-7 * abs(number)
    return math.isfinite(least) and math.isfinite(largest) and least - slack <= number <= largest + slack


def second_report(study):
    """Return every number of the report of a study; texts are left out."""
    votes, wider = study.votes(FIRST), study.votes(SECOND)
    labels = labellings(study, votes, wider)
    first, why = labels["majority-3"]
    judged = (~np.isnan(study.answers)).sum(axis=1)
    return {
        "format_version": 2,
        "simulated": study.settings["simulated"],
        "locked": study.settings["locked"],
        "hidden": False,
        "n_cases": study.n,
        "n_patients": len(set(study.patient)),
        "n_readers": len(study.readers),
        "n_slots": study.n_slots,
        "n_votes": sum(len(given_votes(row)) for row in votes),
        "n_cannot_judge": int((study.answers == 0.0).sum()),
        "level": study.level,
        "headline_budget": study.settings["headline_budget"],
        "results": results(study, labels),
        "agreement": agreement(study, votes, wider),
        "ceiling": ceiling(study, votes),
        "ceiling_second_rule": ceiling(study, wider),
        "readers": [reader_figures(study, votes, j) for j in range(len(study.readers))],
        "dawid_skene": reliability(study, votes, first),
        "multi_reader": multi_reader(study, votes),
        "flow": {
            "n_instances": study.settings["n_instances"],
            "n_candidates": study.settings["n_candidates"],
            "n_chosen": study.n,
            "n_judged": int((judged > 0).sum()),
            "n_complete": int((judged >= study.n_slots).sum()),
            "n_decided": int((~np.isnan(first)).sum()),
            "left_out": dict(Counter(filter(None, why))),
        },
        "strata": [stratum_counts(study, h, row, first) for h, row in enumerate(study.strata)],
    }


def labellings(study, votes, wider):
    """Return label and reason of each case for every way of labelling."""
    adjudicated, record = study.numbers("adjudicated_answer"), study.numbers("record_reference")
    found = {}
    for key, own, positive in (("3", votes, FIRST), ("2-3", wider, SECOND)):
        label = majority(own)
        why = ["" if value == value else why_undetermined(row) for value, row in zip(label, own, strict=True)]
        found[f"majority-{key}"] = open_left_out(study, label, why)
        label, why = (list(values) for values in found[f"majority-{key}"])
        for i, answer in enumerate(adjudicated):
            if not np.isnan(answer):
                label[i] = float(answer in positive) if answer else np.nan
                why[i] = "" if answer else "the adjudicator could not judge"
        found[f"adjudicated-{key}"] = np.array(label), why
    label = dawid_skene(votes)[0]
    found["dawid-skene-3"] = open_left_out(study, label, ["" if v == v else "votes do not decide" for v in label])
    if not np.isnan(record).all():
        found["record"] = record, ["" if v == v else "the record does not tell" for v in record]
    return found


def open_left_out(study, label, why):
    is_open = (~np.isnan(study.answers)).sum(axis=1) < (0 if study.settings["locked"] else study.n_slots)
    why = ["judgments outstanding" if waits else one for waits, one in zip(is_open, why, strict=True)]
    return np.where(is_open, np.nan, label), why


def results(study, labels):
    found, known = [], {}
    for key, (label, why) in labels.items():
        same = label.tobytes(), tuple(why), key == "dawid-skene-3"
        if same not in known:
            known[same] = result(study, label, why, in_full=key != "dawid-skene-3")
        found.append(known[same])
    return found


def result(study, y, why, *, in_full):
    keys, of = list(study.scores), Labelled(study, y)
    comparisons = [comparison(study, y, of, keys[0], other) for other in keys[1:]]
    adjusted = holm([own["p_value_weighted"] for own in comparisons])
    rates = alert_rates(study, y, of) if in_full else []
    return {
        "n_used": int((~np.isnan(y)).sum()),
        "n_positive": int((y == 1.0).sum()),
        "left_out": dict(Counter(filter(None, why))),
        "prevalence_naive": plain_share(study, y, study.patient),
        "prevalence_weighted": of.share(),
        "scorers": [scorer(study, y, of, key, in_full) for key in keys],
        "comparisons": [own | {"p_holm": p} for own, p in zip(comparisons, adjusted, strict=True)],
        "alert_rates": rates,
        "cases": [{"used": not one} for one in why],
        "operating_point": operating_point(study, y, of, rates) if in_full else None,
        "calibration": calibration(study, y, of) if in_full else [],
        "subgroup_differences": subgroup_differences(study, of, keys[0]) if in_full else [],
    }


def scorer(study, y, of, key, in_full):
    score = study.scores[key]
    used = np.isfinite(score) & ~np.isnan(y)
    nothing = {"false_alert_fraction": [], "found_fraction": [], "band_at": [], "band_low": [], "band_high": []}
    shared = {"level": study.level}
    alike, drawn = np.ones(study.n), in_full
    subgroups = []
    for _, groups in study.groups() if in_full else ():
        for _, inside in groups:
            counts = {"n": int((inside & ~np.isnan(y)).sum()), "n_positive": int((inside & (y == 1.0)).sum())}
            figures = {"auc_naive": delong_estimate(study, y, [score], inside), "auc_weighted": of.auc(key, inside)}
            subgroups.append(counts | figures)
    return {
        "n": int(used.sum()),
        "n_positive": int((y[used] == 1.0).sum()),
        "auc_naive": delong_estimate(study, y, [score]),
        "auc_weighted": of.auc(key),
        "auc_task_mean": task_mean(study, y, score),
        "roc_naive": (curve(study, y, score, alike, band=False) if drawn else nothing) | shared | {"weighted": False},
        "roc_weighted": (curve(study, y, score, study.weight, band=True) if drawn else nothing)
        | shared
        | {"weighted": drawn},
        "subgroups": subgroups,
    }


def comparison(study, y, of, first, other):
    scores = [study.scores[first], study.scores[other]]
    value, variance, n, _ = delong(study, y, scores)
    z = None if variance is None or variance <= 1e-15 else value / variance**0.5
    weighted, p_weighted = of.difference(first, other)
    return {
        "n": n,
        "difference_naive": delong_estimate(study, y, scores),
        "z": z,
        "p_value": None if z is None else float(2 * stats.norm.sf(abs(z))),
        "difference_weighted": weighted,
        "p_value_weighted": p_weighted,
    }


def subgroup_differences(study, of, key):
    found = []
    for _, groups in study.groups():
        for _, inside in groups if len(groups) > 2 else groups[:-1]:
            found.append(of.group_difference(key, inside))
    adjusted = holm([p for _, p in found])
    return [{"difference": own, "p_value": p, "p_holm": q} for (own, p), q in zip(found, adjusted, strict=True)]


def alert_rates(study, y, of):
    decision, kind = study.column("decision"), study.column("kind")
    curves = {"both": np.ones(study.n, dtype=bool)}
    curves |= {name: decision == name for name in ("omission", "commission")}
    curves |= {name: kind == name for name in sorted(set(kind))}
    return [rate_curve(study, y, of, name, inside) for name, inside in curves.items()]


def rate_curve(study, y, of, name, inside):
    score = study.scores[next(iter(study.scores))]
    days = study.settings["n_patient_days"] or study.settings["n_instances"]
    given = [
        (float(row["alerts_per_patient_day"]), row["threshold"], row["n_alerts"])
        for row in study.budgets
        if row["curve"] == name
    ]
    standing = [i for i in range(study.n) if inside[i] and np.isfinite(score[i]) and np.isfinite(study.weight[i])]
    points = []
    for budget, threshold, n_alerts in sorted(given or [(budget, "", "") for budget in BUDGETS]):
        allowed = budget * days
        if threshold:
            threshold, n_alerts = float(threshold), float(n_alerts) if n_alerts else allowed
        else:
            threshold, n_alerts = reach(study, score, standing, allowed)
        keep, _ = usable(study, y, inside, [score])
        n_cases = int((score[keep] >= threshold).sum())
        rate = of.share(inside & (score >= threshold)) if n_cases else estimate(study, None)
        minutes = None if study.minutes is None else study.minutes * budget
        points.append(
            {
                "alerts_per_patient_day": budget,
                "threshold": float(threshold),
                "n_cases": n_cases,
                "n_alerts": float(n_alerts),
                "rate": rate,
                "minutes_per_patient_day": minutes,
            }
        )
    return {"points": points, "positive_share": of.share(inside)}


def reach(study, score, standing, allowed):
    """Return the lowest score whose alerts fit a budget, and their number; the highest score if none fits."""
    found = None
    for threshold in sorted({score[i] for i in standing}, reverse=True):
        n_alerts = sum(study.weight[i] for i in standing if score[i] >= threshold)
        if found is not None and n_alerts > allowed * (1 + 1e-12):
            break
        found = threshold, n_alerts
    return found


def operating_point(study, y, of, rates):
    point = min(rates[0]["points"], key=lambda p: abs(p["alerts_per_patient_day"] - study.settings["headline_budget"]))
    key = next(iter(study.scores))
    score, cut = study.scores[key], point["threshold"]
    about = np.ones(study.n, dtype=bool)
    keep, _ = usable(study, y, about, [score])
    fields = Counter((bool(score[i] >= cut), bool(y[i] == 1.0)) for i in keep)

    def part(hit, among):
        return of.ratio(hit, among, about, [score])

    return {
        "alerts_per_patient_day": point["alerts_per_patient_day"],
        "threshold": cut,
        "n_shown_relevant": fields[True, True],
        "n_shown_other": fields[True, False],
        "n_missed_relevant": fields[False, True],
        "n_cleared": fields[False, False],
        "sensitivity": part(lambda yes, i: yes and score[i] >= cut, lambda yes, i: yes),
        "specificity": part(lambda yes, i: not yes and score[i] < cut, lambda yes, i: not yes),
        "positive_value": of.share(score >= cut),
        "negative_value": part(lambda yes, i: not yes and score[i] < cut, lambda yes, i: score[i] < cut),
        "net_benefit": [
            {
                "chance": chance,
                "within_budget": of.net_benefit(key, cut, chance),
                "all_shown": of.net_benefit(key, np.nanmin(score), chance),
            }
            for chance in (0.05, 0.1, 0.2, 0.5)
        ],
    }


def calibration(study, y, of):
    score, found = study.scores[next(iter(study.scores))], []
    for h in range(study.size.size):
        keep, _ = usable(study, y, study.stratum == h, [score])
        if keep.size:
            inside = np.isin(np.arange(study.n), keep)
            mean = sum(score[keep]) / keep.size
            found.append({"n": int(keep.size), "mean_score": mean, "relevant_share": of.share(inside)})
    return found


def agreement(study, votes, wider):
    answers = np.where(study.answers == 0.0, np.nan, study.answers)
    kind, decision, task = (study.column(name) for name in ("kind", "decision", "task_key"))

    def each(values, names):
        return [agreement_figures(study, votes, 2, values == name) for name in names if (values == name).any()]

    pairs = []
    for a in range(len(study.readers)):
        for b in range(a + 1, len(study.readers)):
            both = votes[:, [a, b]]
            own = agreement_figures(study, both, 2)
            n_both = int((~np.isnan(both)).all(axis=1).sum())
            pairs.append({"n_cases": n_both, "raw": own["raw"], "cohen": cohen(study, votes[:, a], votes[:, b])})
    return {
        "answers": agreement_figures(study, answers, 3),
        "positive": agreement_figures(study, votes, 2),
        "second_rule": agreement_figures(study, wider, 2),
        "by_kind": each(kind, sorted(set(kind))),
        "by_decision": each(decision, ("omission", "commission")),
        "by_task": each(task, sorted(set(task))),
        "pairs": pairs,
        "weighted": weighted_agreement(study, votes),
        "repeats": repeats(study) if study.repeats else None,
    }


def repeats(study):
    first, again = (np.array([float(row[name]) for row in study.repeats]) for name in ("first_answer", "repeat_answer"))
    patient = np.array([study.patient[study.place[row["case_id"]]] for row in study.repeats])
    reader = np.array([row["reader"] for row in study.repeats])
    same = (first == again).astype(float)
    relevant = [np.where(answers == 0.0, np.nan, answers == 3.0) for answers in (first, again)]
    by_reader = {
        code: plain_share(study, same[reader == code], patient[reader == code]) for code in sorted(set(reader))
    }
    return {
        "n_pairs": len(same),
        "same_answer": plain_share(study, same, patient),
        "kappa": cohen(study, *relevant),
        "by_reader": by_reader,
    }


def reader_figures(study, votes, j):
    own, others = Labelled(study, votes[:, j]), Labelled(study, majority(np.delete(votes, j, axis=1)))
    return {
        "n_votes": len(given_votes(votes[:, j])),
        "n_cannot_judge": int((study.answers[:, j] == 0.0).sum()),
        "share_positive": plain_share(study, votes[:, j], study.patient),
        "auc_against": {key: own.auc(key) for key in study.scores},
        "auc_without": {key: others.auc(key) for key in study.scores},
    }


def reliability(study, votes, first):
    label, n_cases, share, right, steps, converged = dawid_skene(votes)
    both = ~np.isnan(label) & ~np.isnan(first)
    return {
        "n_cases": n_cases,
        "prevalence": share,
        "sensitivity": {reader: right[j, 1.0] for j, reader in enumerate(study.readers)},
        "specificity": {reader: right[j, 0.0] for j, reader in enumerate(study.readers)},
        "n_iterations": steps,
        "converged": converged,
        "n_changed": int((label[both] != first[both]).sum()),
    }


def stratum_counts(study, h, row, first):
    population, chosen = int(row["n_population"]), int(row["n_chosen"])
    inside = study.stratum == h
    return {
        "n_population": population,
        "n_chosen": chosen,
        "inclusion_probability": chosen / population if population else 0.0,
        "n_decided": int((inside & ~np.isnan(first)).sum()),
        "n_positive": int((inside & (first == 1.0)).sum()),
    }
