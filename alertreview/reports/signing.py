"""A signature under a report: name, time, meaning, and a hash of the content; any change ends it."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

from core.errors import InvalidInputError
from core.studies.report import StudyReport


def canonical_json(report: StudyReport) -> bytes:
    """Write a report as JSON with one possible spelling: what is stored, and what is hashed."""
    return json.dumps(
        report.to_dict(), ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    ).encode()


def content_hash(report: StudyReport) -> str:
    """Return the SHA-256 of the report's canonical JSON, in hexadecimal digits."""
    return hashlib.sha256(canonical_json(report)).hexdigest()


@dataclass(frozen=True)
class Signature:
    """A person's signature under a report."""

    name: str  # of the person, as it was at signing
    meaning: str  # what the signature says: "I approve this report"
    signed_at: datetime  # with zone
    content_hash: str  # of the report that was signed
    superseded: bool = False  # whether a reopened study or a change ended it for good

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.meaning.strip():
            raise InvalidInputError("A signature needs a name and a meaning, like 'I approve this report'.")
        if self.signed_at.utcoffset() is None:
            raise InvalidInputError("The time of a signature needs a zone. Give an aware datetime.")

    def holds_for(self, report: StudyReport) -> bool:
        """Return whether the report is still the one that was signed, and nothing ended the signature meanwhile."""
        return not self.superseded and self.content_hash == content_hash(report)

    def state(self, report: StudyReport) -> str:
        """Return "valid", or "superseded" if anything in the report changed or the study was reopened."""
        if self.holds_for(report):
            return "valid"
        same = self.content_hash == content_hash(report)
        return f"superseded: the {'study was reopened' if same else 'report changed'} after signing"
