"""A study's report as files: JSON for programs, HTML that stands alone, PDF for the archive."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from alertreview.report_content import report_document
from alertreview.report_html import write_html
from alertreview.report_pdf import write_pdf
from alertreview.report_signing import Signature, canonical_json
from core.study_report import StudyReport


class ReportFormat(StrEnum):
    """File formats of a report."""

    JSON = "json"
    HTML = "html"
    PDF = "pdf"


@dataclass(frozen=True)
class ReportFile:
    """A written report."""

    path: Path
    format: ReportFormat
    n_bytes: int
    sha256: str


def json_document(report: StudyReport) -> str:
    """Return the report's JSON: exactly what its content hash is taken of."""
    return canonical_json(report).decode()


def html_document(report: StudyReport, signatures: Iterable[Signature] = ()) -> str:
    """Return the report as one HTML page that stands alone."""
    return write_html(report_document(report, signatures))


def pdf_document(report: StudyReport, signatures: Iterable[Signature] = ()) -> bytes:
    """Return the report as PDF."""
    return write_pdf(report_document(report, signatures))


def render_report(report: StudyReport, chosen: ReportFormat, signatures: Iterable[Signature] = ()) -> bytes:
    """Make the bytes of a report's file.

    Parameters
    ----------
    report : StudyReport
    chosen : ReportFormat
        JSON is the report itself, exactly what its content hash is taken of, and carries no signatures.
    signatures : iterable of Signature

    Returns
    -------
    bytes
        The same for the same report.
    """
    if chosen is ReportFormat.JSON:
        return canonical_json(report)
    if chosen is ReportFormat.HTML:
        return html_document(report, signatures).encode()
    return pdf_document(report, signatures)


def write_report(
    report: StudyReport, folder: Path, formats: Iterable[ReportFormat], signatures: Iterable[Signature] = ()
) -> tuple[ReportFile, ...]:
    """Write a report as ``report.json``, ``report.html``, ``report.pdf``, each whole or not at all.

    Parameters
    ----------
    report : StudyReport
    folder : Path
        Made if missing.
    formats : iterable of ReportFormat
    signatures : iterable of Signature

    Returns
    -------
    tuple of ReportFile
    """
    folder.mkdir(parents=True, exist_ok=True)
    signed = tuple(signatures)
    written = []
    for chosen in dict.fromkeys(formats):
        content = render_report(report, chosen, signed)
        path = folder / f"report.{chosen.value}"
        part = folder / f".{path.name}.part"
        part.write_bytes(content)
        part.replace(path)
        written.append(ReportFile(path, chosen, len(content), hashlib.sha256(content).hexdigest()))
    return tuple(written)
