"""All tables, split by subject; importing this package makes `Base.metadata` complete."""

from db.models.audit import AuditEvent
from db.models.base import Base
from db.models.judgments import Adjudication, Judgment
from db.models.people import Person
from db.models.records import CohortSnapshot, Instance, Task
from db.models.scoring import Alert, RunSensitivity, ScoringRun, TaskResult
from db.models.sessions import Account, SignInFlow, SignInSession, UnitScope
from db.models.signatures import ReportSignature
from db.models.studies import (
    Assignment,
    CaseScore,
    Draft,
    ReferenceAnswer,
    Rubric,
    ScoreSeen,
    Study,
    StudyCase,
    StudyReader,
)
from db.models.triage import SavedView, Triage, TriageAct, TriageNote

__all__ = [
    "Account",
    "Adjudication",
    "Alert",
    "Assignment",
    "AuditEvent",
    "Base",
    "CaseScore",
    "CohortSnapshot",
    "Draft",
    "Instance",
    "Judgment",
    "Person",
    "ReferenceAnswer",
    "ReportSignature",
    "Rubric",
    "RunSensitivity",
    "SavedView",
    "ScoreSeen",
    "ScoringRun",
    "SignInFlow",
    "SignInSession",
    "Study",
    "StudyCase",
    "StudyReader",
    "Task",
    "TaskResult",
    "Triage",
    "TriageAct",
    "TriageNote",
    "UnitScope",
]
