"""The part of a report that is about the readers: how far they agree, and how the scorers fare against each of them."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.agreement import cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha, raw_agreement
from core.alert_rate import weighted_share
from core.consensus import Floats, majority_label, positive_votes, votes_of
from core.dawid_skene import ReaderReliability
from core.estimate import Estimate, not_computable
from core.report_results import weighted_figure
from core.study_input import StudyArrays
from core.study_report import AgreementFigures, AgreementReport, DawidSkeneReport, PairAgreement, ReaderReport
from core.vocabulary import Answer, Decision, Kind


def agreement_report(study: StudyArrays) -> AgreementReport:
    """Agreement on the answers and on "positive or not": overall, by kind, decision, task and pair of readers."""
    votes, positive = votes_of(study.answers), positive_votes(study.answers)
    tasks, names = study.column("task_key"), study.column("task_name")
    by_task = [(str(names[tasks == key][0]), tasks == key) for key in sorted(set(tasks))]
    by_kind = [(str(kind), study.column("kind") == kind) for kind in Kind]
    by_decision = [(str(decision), study.column("decision") == decision) for decision in Decision]
    return AgreementReport(
        answers=agreement_figures(study, "all cases", votes, n_categories=3),
        positive=agreement_figures(study, "all cases", positive, n_categories=2),
        by_kind=_each(study, positive, by_kind),
        by_decision=_each(study, positive, by_decision),
        by_task=_each(study, positive, by_task),
        pairs=_pairs(study, positive),
    )


def agreement_figures(
    study: StudyArrays, name: str, votes: Floats, *, n_categories: int, inside: NDArray[np.bool_] | None = None
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
    study: StudyArrays, votes: Floats, groups: Iterable[tuple[str, NDArray[np.bool_]]]
) -> tuple[AgreementFigures, ...]:
    return tuple(
        agreement_figures(study, name, votes, n_categories=2, inside=inside) for name, inside in groups if inside.any()
    )


def _pairs(study: StudyArrays, votes: Floats) -> tuple[PairAgreement, ...]:
    pairs = []
    for a, b in combinations(range(len(study.readers)), 2):
        both = ~np.isnan(votes[:, [a, b]]).any(axis=1)
        if not both.any():
            continue
        raw = raw_agreement(votes[:, [a, b]], patient=study.patient, level=study.source.level)
        cohen = cohen_kappa(votes[:, a], votes[:, b], level=study.source.level)
        pairs.append(PairAgreement(study.readers[a], study.readers[b], int(both.sum()), raw, cohen))
    return tuple(pairs)


def reader_reports(study: StudyArrays) -> tuple[ReaderReport, ...]:
    """How every scorer fares against each reader alone, and against the majority of the others."""
    positive = positive_votes(study.answers)
    reports = []
    for column, reader in enumerate(study.readers):
        own = positive[:, column]
        others = majority_label(np.delete(study.answers, column, axis=1)).label
        answered = study.answers[:, column]
        reports.append(
            ReaderReport(
                reader=reader,
                n_votes=int((~np.isnan(own)).sum()),
                n_cannot_judge=int((answered == Answer.CANNOT_JUDGE).sum()),
                share_positive=weighted_share(own, study.patient, level=study.source.level),
                auc_against={key: weighted_figure(study, own, key) for key in study.scores},
                auc_without={key: _without(study, others, key) for key in study.scores},
            )
        )
    return tuple(reports)


def _without(study: StudyArrays, others: Floats, key: str) -> Estimate:
    if len(study.readers) < 3:
        return not_computable("the other readers are fewer than two", level=study.source.level)
    return weighted_figure(study, others, key)


def dawid_skene_report(study: StudyArrays, found: ReaderReliability, majority: Floats) -> DawidSkeneReport:
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
