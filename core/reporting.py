"""The report of a study, from votes and scores to figures: one pure function over arrays."""

from core.estimate import Estimate
from core.study_report import (
    AgreementFigures,
    AgreementReport,
    AlertRateCurve,
    BudgetPoint,
    CaseUse,
    Ceiling,
    DawidSkeneReport,
    FlowDiagram,
    PairAgreement,
    PairedComparison,
    ReaderReport,
    ResultSet,
    RocCurve,
    ScorerReport,
    StratumReport,
    StudyReport,
    SubgroupReport,
)

__all__ = [
    "AgreementFigures",
    "AgreementReport",
    "AlertRateCurve",
    "BudgetPoint",
    "CaseUse",
    "Ceiling",
    "DawidSkeneReport",
    "Estimate",
    "FlowDiagram",
    "PairAgreement",
    "PairedComparison",
    "ReaderReport",
    "ResultSet",
    "RocCurve",
    "ScorerReport",
    "StratumReport",
    "StudyReport",
    "SubgroupReport",
]
