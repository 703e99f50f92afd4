"""Use cases of reports: a study's report as a person may see it, its files, and the signatures under it."""

from functools import cached_property
from zoneinfo import ZoneInfo

from alertreview.reports.documents import ReportFormat, render_report
from alertreview.reports.report import gather_study
from alertreview.reports.signing import Signature, content_hash
from alertreview.rights import Action, requires
from alertreview.studies.models import zone_of
from alertreview.studies.studies import OfStudies
from core.errors import ConflictError, InvalidInputError, RefusedError
from core.studies.make_report import blinded_report, study_report
from core.studies.report import StudyReport
from core.vocabulary import PersonId, StudyStatus
from db.cache import Cache
from db.models import ReportSignature
from db.unit_of_work import UnitOfWork

CACHED_REPORTS = 8
MEANING_LENGTH = 300
"""Characters of a meaning; more belongs into a comment, and a signature must fit on a page."""


class ReportService(OfStudies):
    """Reports of studies, and the signatures under them."""

    _cache = cached_property[Cache[StudyReport]](lambda _: Cache(CACHED_REPORTS))

    @requires(Action.SEE_RESULTS, unit_of="slug")
    def report(self, slug: str, person_id: PersonId | None = None) -> StudyReport:
        """Return the report of a study from the judgments as they stand.

        Somebody who is still blinded gets counts only; at the command line, where nobody reads, nothing is hidden.
        Raise NotFoundError if there is no such study, RefusedError if it is for calibration.
        """
        report = self._whole(slug)
        return blinded_report(report) if self._is_blinded(slug, person_id) else report

    @requires(Action.SEE_RESULTS)
    def file(self, report: StudyReport, output_format: str) -> bytes:
        """Return a report as a file for a download.

        HTML and PDF print the signatures, but not those of a hidden report.
        """
        signatures = () if report.hidden else self.signatures(report.slug, report)
        return render_report(report, ReportFormat(output_format), signatures)

    @requires(Action.SIGN, unit_of="slug", fresh=True)
    def sign(self, slug: str, person_id: PersonId, meaning: str, *, seen_hash: str | None = None) -> Signature:
        """Sign the report of a locked study as it stands; signatures under another content are superseded.

        The meaning is what the signature says: "I approve this report"; the hash is that of the report the person was
        shown. Raise NotFoundError if there is no such study or person, InvalidInputError if the meaning is empty or too
        long, RefusedError if the study is not locked, its report is hidden from the person, the person was deactivated
        or has signed the same report with the same meaning, ConflictError if the report is no longer the one that was
        shown.
        """
        words = _checked_meaning(meaning)
        with self._database.read() as uow:
            _require_able(uow, slug, person_id)
        report = self.report(slug, person_id)
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

    @requires(Action.SEE_RESULTS)
    def signatures(self, slug: str, report: StudyReport | None = None) -> tuple[Signature, ...]:
        """Return the signatures under a study's reports, oldest first; those that no longer hold say so.

        A caller who has the whole report as it stands gives it. Raise NotFoundError if there is no such study.
        """
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            rows = uow.signatures.of_study(study.id)
            zone = zone_of(uow, study)
        if all(row.superseded_at is not None for row in rows):
            return tuple(_signature(row, zone, superseded=True) for row in rows)
        seal = content_hash(report or self._whole(slug))
        return tuple(
            _signature(row, zone, superseded=row.superseded_at is not None or row.content_hash != seal) for row in rows
        )

    def _whole(self, slug: str) -> StudyReport:
        """Return the whole report, cached; what a blinded person may not see is hidden afterwards."""
        before = self._stamp(slug)
        return self._cache.get(
            before,
            lambda: study_report(gather_study(self._database, self._studies, self._open_snapshot, slug)),
            # Judgments that arrive during the computation may be half in the report.
            is_current=lambda: self._stamp(slug) == before,
        )

    def _stamp(self, slug: str) -> tuple[object, ...]:
        """Return everything that a report depends on and that can change: votes, adjudications, readers, state."""
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            return (
                study.id,
                study.status,
                study.rubric_version,
                *uow.judgments.stamp(study.id),
                uow.adjudications.count(study.id),
                len(uow.studies.readers(study.id)),
                len(uow.cases.in_study(study.id)),
            )

    def _append(self, uow: UnitOfWork, slug: str, person_id: PersonId, meaning: str, seal: str) -> Signature:
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
            ReportSignature(
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
        return Signature(person.name, meaning, now.astimezone(zone_of(uow, study)), seal)


def _checked_meaning(meaning: str) -> str:
    words = " ".join(meaning.split())
    if not words:
        raise InvalidInputError("A signature needs a meaning, like 'I approve this report'.")
    if len(words) > MEANING_LENGTH:
        raise InvalidInputError(
            f"The meaning of a signature has {len(words)} characters; at most {MEANING_LENGTH} fit. Shorten it."
        )
    return words


def _require_able(uow: UnitOfWork, slug: str, person_id: PersonId) -> None:
    if uow.studies.by_slug(slug).status is not StudyStatus.LOCKED:
        raise RefusedError(f"Study '{slug}' is not locked; its report may still change. Lock the study, then sign.")
    if not uow.people.get(person_id).active:
        raise RefusedError(f"Person {person_id} was deactivated and cannot sign. Choose somebody else.")


def _signature(row: ReportSignature, zone: ZoneInfo, *, superseded: bool) -> Signature:
    return Signature(row.signer_name, row.meaning, row.signed_at.astimezone(zone), row.content_hash, superseded)
