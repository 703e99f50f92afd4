"""Tables and what is read of them, as frozen records; importing this package makes `Record.metadata` complete."""

# ruff: noqa: F401
# mypy: implicit-reexport

from db.models.audit import AuditEvent
from db.models.base import UNSAVED, Record
from db.models.judgments import (
    Adjudication,
    CastVote,
    FormState,
    Judgment,
    OwnAnswer,
    ReportSignature,
    SavedForm,
    ShownCase,
)
from db.models.people import (
    Account,
    ApiToken,
    HeldApiToken,
    Person,
    SignedInSession,
    SignInFlow,
    SignInSession,
    UnitScope,
)
from db.models.records import CohortSnapshot, Instance, Task
from db.models.scoring import (
    Alert,
    AlertFilters,
    AlertPage,
    ListedAlert,
    RankedAlert,
    RunSensitivity,
    ScoringRun,
    TaskPast,
    TaskResult,
    TaskSummary,
)
from db.models.studies import (
    Assignment,
    BlindedRow,
    CaseScore,
    Draft,
    DraftAnswer,
    ListedCase,
    NamedReader,
    PanelSlot,
    ReaderSlot,
    ReadingTerms,
    ReferenceAnswer,
    Rubric,
    ScoreSeen,
    Slot,
    Study,
    StudyCase,
    StudyReader,
)
from db.models.triage import DecisionKey, OwnedView, SavedView, SignedAct, SignedNote, Triage, TriageAct, TriageNote
