"""A report of a study with invented figures, for page tests."""

from alertreview.studies.models import StudyView
from core.number_texts import counted
from core.statistics.estimate import BudgetPoint, Ceiling, Estimate, RocCurve, not_computable
from core.studies.report import (
    AgreementFigures,
    AgreementReport,
    AlertRateCurve,
    CaseUse,
    DawidSkeneReport,
    FlowDiagram,
    PairAgreement,
    PairedComparison,
    ReaderReport,
    ResultSet,
    ScorerReport,
    StratumReport,
    StudyReport,
    SubgroupReport,
)
from core.vocabulary import OPEN_PANEL, READING, CaseState, StudyStatus

SCORERS = (
    ("softhad", "SoftHAD", 0.78),
    ("svm-rbf", "SVM, RBF", 0.71),
    ("knn", "Weighted k-NN", 0.66),
    ("oc-svm", "One-class SVM", 0.55),
)
CURVES = ("both", "omission", "commission", "LAB_ORDER", "MEDICATION")
READERS = ("reader-1", "reader-2", "reader-3")


def estimate(value: float, spread: float = 0.065, n: int = 222) -> Estimate:
    """An estimate with an interval inside [0, 1]."""
    return Estimate(value, max(0.0, value - spread), min(1.0, value + spread), n=n, method="invented")


CEILING = Ceiling(estimate(0.88, 0.03), estimate(0.86, 0.03), 0.14, 3)


def _roc(power: float) -> RocCurve:
    at = tuple(i / 40 for i in range(41))
    found = tuple(x**power for x in at)
    return RocCurve(
        false_alert_fraction=at,
        found_fraction=found,
        band_at=at,
        band_low=tuple(max(0.0, y - 0.08 * (1 - x)) for x, y in zip(at, found, strict=True)),
        band_high=tuple(min(1.0, y + 0.08 * (1 - x)) for x, y in zip(at, found, strict=True)),
        weighted=True,
    )


def _scorer(key: str, label: str, auc: float) -> ScorerReport:
    groups = tuple(
        SubgroupReport("kind", group, 111, 30, estimate(auc - 0.02), estimate(auc - 0.02))
        for group in ("LAB_ORDER", "MEDICATION")
    )
    return ScorerReport(
        key, label, 210, 66, estimate(auc - 0.01), estimate(auc), Estimate(auc - 0.03, n=9), _roc((1 - auc) / auc),
        _roc((1 - auc) / auc), groups,
    )  # fmt: skip


def _rates(name: str) -> AlertRateCurve:
    budgets = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5)
    points = tuple(
        BudgetPoint(b, 0.95 - 0.08 * i, 20 + 20 * i, 612 * b, estimate(0.71 - 0.03 * i, 0.1), 2.1 * b)
        for i, b in enumerate(budgets)
    )
    return AlertRateCurve(name, points, estimate(0.12, 0.04))


def _agreement(name: str, kappa: float) -> AgreementFigures:
    return AgreementFigures(
        name, 210, 630, estimate(0.66), estimate(kappa), estimate(kappa + 0.01), estimate(kappa + 0.2)
    )


AGREEMENT = AgreementReport(
    answers=_agreement("all cases", 0.31),
    positive=_agreement("all cases", 0.35),
    by_kind=(_agreement("LAB_ORDER", 0.33), _agreement("MEDICATION", 0.28)),
    pairs=tuple(
        PairAgreement(a, b, 200, estimate(0.68), estimate(k))
        for a, b, k in (
            ("reader-1", "reader-2", 0.36),
            ("reader-1", "reader-3", 0.30),
            ("reader-2", "reader-3", 0.27),
        )
    ),
)


def simulated_report(study: StudyView) -> StudyReport:
    """The report that the double answers with; hidden (counts only) while the study is open."""
    hidden = study.status is not StudyStatus.LOCKED
    n_cases = study.n_cases
    decided = study.case_states[CaseState.MAJORITY]
    primary = ResultSet(
        key="majority-3",
        title="Majority of the readers; positive: unusual and clinically relevant",
        n_used=decided,
        n_positive=decided // 3,
        left_out={"undetermined": n_cases - decided},
        prevalence_naive=estimate(0.31),
        prevalence_weighted=estimate(0.12, 0.04),
        scorers=() if hidden else tuple(_scorer(*row) for row in SCORERS),
        comparisons=() if hidden else (_comparison(decided),),
        alert_rates=() if hidden else tuple(_rates(name) for name in CURVES),
        cases=tuple(_case(number, decided) for number in range(1, n_cases + 1)),
    )
    none = not_computable("the study is not locked; figures stay hidden while readers are blinded")
    return StudyReport(
        format_version=1,
        slug=study.slug,
        title=study.title,
        simulated=study.simulated,
        locked=not hidden,
        hidden=hidden,
        question=study.question,
        positive_texts=("unusual and clinically relevant", "unusual"),
        primary_scorer="softhad",
        n_cases=n_cases,
        n_patients=n_cases - 2,
        n_readers=3,
        n_slots=study.n_slots,
        n_votes=3 * n_cases,
        n_cannot_judge=2,
        headline=(f"{decided} of {counted(n_cases, 'case')} decided so far.",)
        if hidden
        else (
            "SoftHAD ranks a relevant case above another one **78 times in 100** (95% interval 71–84).",
            "At a budget of 0.25 alerts per patient-day **about 6 in 10 alerts are relevant** (46–66%).",
            "Readers agree only fairly, so no method can be shown to exceed an AUC of about **0.86** here.",
        ),
        warnings=("Figures stay hidden until the study is locked, so that no reader is influenced.",)
        if hidden
        else ("Only 66 cases are positive: intervals are wide.",),
        results=(primary,),
        agreement=AgreementReport(_hidden(none), _hidden(none)) if hidden else AGREEMENT,
        ceiling=Ceiling(none, none, None, 3) if hidden else CEILING,
        readers=() if hidden else tuple(_reader(code, number) for number, code in enumerate(READERS)),
        dawid_skene=DawidSkeneReport(decided, 0.3, {}, {}, 12, converged=True, n_changed=3),
        flow=FlowDiagram(3012, 36144, n_cases, n_cases, n_cases - 3, decided, {"undetermined": n_cases - decided}),
        strata=tuple(
            StratumReport(
                name, population, n_cases // 3, n_cases / 3 / population, decided // 3, min(positive, decided // 3)
            )
            for name, population, positive in (("high", 900, 9), ("medium", 5000, 5), ("low", 30244, 2))
        ),
        design={"run": "2", "scorer": "softhad 0.1", "seed": "7", "selection: edges": "[0.33, 0.67]"}
        | ({READING: OPEN_PANEL} if study.is_open_panel else {}),
    )


def _comparison(n: int) -> PairedComparison:
    return PairedComparison("softhad", "knn", n, estimate(0.12), 2.6, 0.01, estimate(0.12), 0.012)


def _case(number: int, decided: int) -> CaseUse:
    used = number <= decided
    state = CaseState.MAJORITY if used else CaseState.UNDETERMINED
    label = "positive" if number % 3 == 0 else "negative"
    return CaseUse(f"C{number}", state, label, used, "" if used else "fewer than two equal votes")


def _reader(code: str, number: int) -> ReaderReport:
    against = {"softhad": estimate(0.74 + 0.01 * number)}
    return ReaderReport(code, 222, 2, estimate(0.3), against, {"softhad": estimate(0.75)})


def _hidden(none: Estimate) -> AgreementFigures:
    return AgreementFigures("all cases", 0, 0, none, none, none, none)
