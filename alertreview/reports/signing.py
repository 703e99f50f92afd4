"""Signed reports: a person puts name, time and meaning under a report as it stands; a change ends the signature."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from alertreview.settings import Clock
from core.errors import ConflictError, InvalidInputError, RefusedError
from core.studies.report import StudyReport
from core.vocabulary import StudyStatus
from db.database import Database
from db.rows import NewSignature, SignatureRow, StudyRow
from db.unit_of_work import UnitOfWork


def canonical_json(report: StudyReport) -> bytes:
    """Write a report as JSON with one possible spelling: what is stored, and what is hashed."""
    return json.dumps(
        report.to_dict(), ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    ).encode()


def content_hash(report: StudyReport) -> str:
    """SHA-256 of the report's canonical JSON, in hexadecimal digits; any changed vote, score or weight changes it."""
    return hashlib.sha256(canonical_json(report)).hexdigest()


@dataclass(frozen=True)
class Signature:
    """A person's signature under a report.

    Attributes
    ----------
    name : str
        Of the person, as it was at signing.
    meaning : str
        What the signature says: "I approve this report".
    signed_at : datetime
        With zone.
    content_hash : str
        Of the report that was signed.
    superseded : bool
        Whether a reopened study or a change ended it for good.
    """

    name: str
    meaning: str
    signed_at: datetime
    content_hash: str
    superseded: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.meaning.strip():
            raise InvalidInputError("A signature needs a name and a meaning, like 'I approve this report'.")
        if self.signed_at.utcoffset() is None:
            raise InvalidInputError("The time of a signature needs a zone. Give an aware datetime.")

    def holds_for(self, report: StudyReport) -> bool:
        """Whether the report is still the one that was signed, and nothing ended the signature meanwhile."""
        return not self.superseded and self.content_hash == content_hash(report)

    def state(self, report: StudyReport) -> str:
        """Say "valid", or "superseded" when a vote or anything else changed, or the study was reopened."""
        if self.holds_for(report):
            return "valid"
        same = self.content_hash == content_hash(report)
        return f"superseded: the {'study was reopened' if same else 'report changed'} after signing"


MEANING_LENGTH = 300
"""Characters of a meaning; more belongs into a comment, and a signature must fit on a page."""


class ReportSigning:
    """Signatures under the reports of a site.

    Parameters
    ----------
    database : Database
        The site's database.
    report_of : callable
        Gives the report of a study as it stands, and as a person may see it; None as person gives the whole report.
    clock : callable
        Gives the time now, aware.
    """

    def __init__(self, database: Database, report_of: Callable[[str, int | None], StudyReport], clock: Clock) -> None:
        self._database = database
        self._report_of = report_of
        self._clock = clock

    def sign_report(self, slug: str, person_id: int, meaning: str, *, seen_hash: str | None = None) -> Signature:
        """Sign the report of a locked study as it stands; signatures under another content are superseded.

        Parameters
        ----------
        slug : str
            Short name of the study.
        person_id : int
            Who signs.
        meaning : str
            What the signature says: "I approve this report".
        seen_hash : str or None
            Content hash of the report that the person was shown.

        Returns
        -------
        Signature

        Raises
        ------
        NotFoundError
            If there is no such study or person.
        InvalidInputError
            If the meaning is empty or too long.
        RefusedError
            If the study is not locked, its report is hidden from the person, the person was deactivated, or has signed
            the same report with the same meaning.
        ConflictError
            If the report is no longer the one that was shown.
        """
        words = _checked_meaning(meaning)
        with self._database.read() as uow:
            _require_able(uow, slug, person_id)
        report = self._report_of(slug, person_id)
        if report.hidden:
            raise RefusedError(
                f"The report of study '{slug}' is hidden from person {person_id}, who still judges its cases. "
                "Judge them, or lock the study; then sign."
            )
        seal = content_hash(report)
        if seen_hash is not None and seen_hash != seal:
            raise ConflictError(f"The report of study '{slug}' changed since it was shown. Read it again, then sign.")
        with self._database.write() as uow:
            # Looked at again: the study may have been reopened while its report was computed.
            _require_able(uow, slug, person_id)
            signature = self._append(uow, slug, person_id, words, seal)
            uow.commit()
        return signature

    def signatures(self, slug: str, report: StudyReport | None = None) -> tuple[Signature, ...]:
        """Return the signatures under a study's reports, oldest first; those that no longer hold say so.

        Parameters
        ----------
        slug : str
            Short name of the study.
        report : StudyReport or None
            The whole report as it stands, when the caller has it already.

        Raises
        ------
        NotFoundError
            If there is no such study.
        """
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            rows = uow.signatures.of_study(study.id)
            zone = _site_zone(uow, study)
        if all(row.superseded_at is not None for row in rows):
            return tuple(_signature(row, zone, superseded=True) for row in rows)
        seal = content_hash(report or self._report_of(slug, None))
        return tuple(
            _signature(row, zone, superseded=row.superseded_at is not None or row.content_hash != seal) for row in rows
        )

    def _append(self, uow: UnitOfWork, slug: str, person_id: int, meaning: str, seal: str) -> Signature:
        now = self._clock()
        study, person = uow.studies.by_slug(slug), uow.people.get(person_id)
        if any(
            (row.signer_id, row.meaning, row.content_hash, row.superseded_at) == (person_id, meaning, seal, None)
            for row in uow.signatures.of_study(study.id)
        ):
            raise RefusedError(
                f"Person {person_id} has signed this report of study '{slug}' with this meaning already."
            )
        n_superseded = uow.signatures.supersede(study.id, now, but_hash=seal)
        uow.signatures.append(
            NewSignature(
                study_id=study.id,
                signer_id=person_id,
                signer_name=person.name,
                meaning=meaning,
                signed_at=now,
                content_hash=seal,
            )
        )
        details = {"meaning": meaning, "content_hash": seal, "superseded": n_superseded}
        uow.audit.append(now, f"person {person_id}", "report signed", f"study {slug}", details)
        return Signature(person.name, meaning, now.astimezone(_site_zone(uow, study)), seal)


def _checked_meaning(meaning: str) -> str:
    words = " ".join(meaning.split())
    if not words:
        raise InvalidInputError("A signature needs a meaning, like 'I approve this report'.")
    if len(words) > MEANING_LENGTH:
        raise InvalidInputError(
            f"The meaning of a signature has {len(words)} characters; at most {MEANING_LENGTH} fit. Shorten it."
        )
    return words


def _require_able(uow: UnitOfWork, slug: str, person_id: int) -> None:
    if uow.studies.by_slug(slug).status is not StudyStatus.LOCKED:
        raise RefusedError(f"Study '{slug}' is not locked; its report may still change. Lock the study, then sign.")
    if not uow.people.get(person_id).active:
        raise RefusedError(f"Person {person_id} was deactivated and cannot sign. Choose somebody else.")


def _signature(row: SignatureRow, zone: ZoneInfo, *, superseded: bool) -> Signature:
    return Signature(row.signer_name, row.meaning, row.signed_at.astimezone(zone), row.content_hash, superseded)


def _site_zone(uow: UnitOfWork, study: StudyRow) -> ZoneInfo:
    return ZoneInfo(uow.snapshots.get(uow.runs.get(study.run_id).snapshot_id).site_timezone)
