"""The words of the house: one word for one thing, the same in code, tables, screens and exports."""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Final, NewType

SNAPSHOT_HOUR: Final = 8
"""Hour of site time of the patient-state instances, where a site mapping sets no other."""

AlertId = NewType("AlertId", int)
CaseId = NewType("CaseId", int)
InstanceId = NewType("InstanceId", int)
JudgmentId = NewType("JudgmentId", int)
PersonId = NewType("PersonId", int)
RunId = NewType("RunId", int)
SessionId = NewType("SessionId", int)
SnapshotId = NewType("SnapshotId", int)
StudyId = NewType("StudyId", int)
TaskId = NewType("TaskId", int)


class Decision(StrEnum):
    """Which way an alert points: a decision that was not taken, or one that was."""

    OMISSION = "omission"
    COMMISSION = "commission"


class Split(StrEnum):
    """How instances are parted into past (learned from) and recent (scored)."""

    TIME = "time"  # everything before a date is past; for live sites with a true calendar
    PATIENT = "patient"  # a random share of the patients is past; never one patient on both sides
    FOLDS = "folds"  # every patient is recent once, against all other patients; for record sets with shifted calendars
    SOURCE = "source"  # the split that came with the data (MEDS subject splits): train is past, the rest recent


class RunStatus(StrEnum):
    """Life of a scoring run; readers only ever see published runs."""

    RUNNING = "running"
    PUBLISHED = "published"
    ABANDONED = "abandoned"


class Vote(StrEnum):
    """What an answer counts as in labels and figures."""

    NONE = "none"  # a judgment, but no vote
    USUAL = "usual"
    UNUSUAL = "unusual"  # positive under the second rule only
    RELEVANT = "relevant"  # positive under both rules


class Answer(IntEnum):
    """A reviewer's answer to a case, in the order of the page. One line registers an answer.

    Codes are stored: they count up from 0 and never change. Texts may change, because every study keeps its own copy. A
    new code needs a migration of the CHECK constraints in `db.models.judgments`. ``vote`` is what it counts as;
    ``text`` the words of its button, unless the study has its own, and of its code in exported files; ``short`` where
    there is little room; ``key`` the key that chooses it.
    """

    vote: Vote
    text: str
    short: str
    needs_reason: bool
    key: str

    # The defaults exist for type checkers only, which read the look-up `Answer(code)` as a call of this method.
    def __new__(
        cls, code: int, vote: Vote = Vote.NONE, text: str = "", short: str = "", needs_reason: bool = False
    ) -> "Answer":
        """Make a member whose value is its code."""
        answer = int.__new__(cls, code)
        answer._value_ = code
        answer.key = str(code)
        answer.vote, answer.text, answer.short, answer.needs_reason = vote, text, short, needs_reason
        return answer

    USUAL = 1, Vote.USUAL, "Usual", "Usual"
    UNUSUAL = 2, Vote.UNUSUAL, "Unusual, not clinically relevant", "Unusual, not relevant"
    RELEVANT = 3, Vote.RELEVANT, "Unusual and clinically relevant", "Unusual and relevant"
    CANNOT_JUDGE = 0, Vote.NONE, "Cannot judge", "Cannot judge", True

    @property
    def is_vote(self) -> bool:
        """Whether it counts in labels and figures."""
        return self.vote is not Vote.NONE

    @property
    def words(self) -> str:
        """Its text inside a sentence: "usual"."""
        return self.text[:1].lower() + self.text[1:]


VOTES = tuple(answer for answer in Answer if answer.is_vote)
NO_VOTES = tuple(answer for answer in Answer if not answer.is_vote)
NO_VOTE_WORDS = " or ".join(answer.words for answer in NO_VOTES)
"""Heading of counts of judgments that are no vote: "cannot judge"."""


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

    LOCAL = "local"  # a password of this site
    OIDC = "oidc"  # an identity provider (OpenID Connect)
    PROXY = "proxy"  # a reverse proxy that has signed the person in


READING = "reading"
"""Line of a study's design that says how its cases are read; a blinded study has no such line."""
OPEN_PANEL = "open panel: readers saw the scores"
"""What marks an open panel on pages, in reports and in exported files."""
OPEN_PANEL_LIMIT = (
    "Open panel: readers see the scores, and can see what the ward noted and what came later, before they judge. "
    "AUC and agreement are flattered by that, and do not replace those of a blinded study."
)
"""What an open panel's figures cannot say."""
BLINDED = "blinded"
"""How the cases of every other study are read."""


def reading(design: Mapping[str, str]) -> str:
    """Return how the cases of a study of a report's design are read: BLINDED or OPEN_PANEL."""
    return design.get(READING, BLINDED)


def is_open_panel(design: Mapping[str, str]) -> bool:
    """Tell from a study's design whether its readers saw the scores.

    Examples
    --------
    >>> is_open_panel({"reading": "open panel: readers saw the scores"})
    True
    >>> is_open_panel({"scoring run": "1"})
    False
    """
    return reading(design) == OPEN_PANEL
