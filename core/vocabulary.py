"""The words of the house: one word for one thing, the same in code, tables, screens and exports."""

from enum import IntEnum, StrEnum


class Kind(StrEnum):
    """What kind of act a task is."""

    LAB_ORDER = "LAB_ORDER"
    MEDICATION = "MEDICATION"


class Decision(StrEnum):
    """Which way an alert points: a decision that was not taken, or one that was."""

    OMISSION = "omission"
    COMMISSION = "commission"


class Split(StrEnum):
    """How instances are parted into past (learned from) and recent (scored)."""

    TIME = "time"
    """Everything before a date is past; for live sites with a true calendar."""
    PATIENT = "patient"
    """A random share of the patients is past; never one patient on both sides."""
    FOLDS = "folds"
    """Every patient is recent once, against all other patients; for record sets with shifted calendars."""
    SOURCE = "source"
    """The split that came with the data (MEDS subject splits): train is past, the rest recent."""


class RunStatus(StrEnum):
    """Life of a scoring run; readers only ever see published runs."""

    RUNNING = "running"
    PUBLISHED = "published"
    ABANDONED = "abandoned"


class Answer(IntEnum):
    """A reviewer's answer to a case; the codes never change, their texts may."""

    CANNOT_JUDGE = 0
    USUAL = 1
    UNUSUAL = 2
    RELEVANT = 3


class Certainty(StrEnum):
    """How sure a reviewer was; optional."""

    CERTAIN = "certain"
    UNCERTAIN = "uncertain"


class SlotState(StrEnum):
    """Where one reviewer's place in a case stands."""

    FREE = "free"
    OPENED = "opened"
    DRAFT = "draft"
    LATER = "later"
    SUBMITTED = "submitted"
    CANNOT_JUDGE = "cannot_judge"


class CaseState(StrEnum):
    """Where a case stands, from its votes alone until it is adjudicated."""

    OPEN = "open"
    MAJORITY = "majority"
    DISPUTED = "disputed"
    UNDETERMINED = "undetermined"
    ADJUDICATED = "adjudicated"


class StudyStatus(StrEnum):
    """Life of a study; a locked study takes no judgment."""

    DRAFT = "draft"
    OPEN = "open"
    LOCKED = "locked"


class Role(StrEnum):
    """What a person may do."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    ADJUDICATOR = "adjudicator"
    COORDINATOR = "coordinator"
    RESEARCHER = "researcher"
    ADMINISTRATOR = "administrator"


class TriageState(StrEnum):
    """What the ward did with an alert; never a label."""

    NEW = "new"
    IN_REVIEW = "in_review"
    ACTIONED = "actioned"
    DISMISSED = "dismissed"
    SNOOZED = "snoozed"


class SignInSource(StrEnum):
    """Who vouches for a person who signs in."""

    LOCAL = "local"
    """A password of this site."""
    OIDC = "oidc"
    """An identity provider (OpenID Connect)."""
    PROXY = "proxy"
    """A reverse proxy that has signed the person in."""
