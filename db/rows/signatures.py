"""Rows of signatures under reports."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSignature:
    """A signature to be stored."""

    study_id: int
    signer_id: int
    signer_name: str
    meaning: str
    signed_at: datetime
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureRow(NewSignature):
    """A stored signature; `superseded_at` is None while nothing ended it."""

    id: int
    superseded_at: datetime | None
