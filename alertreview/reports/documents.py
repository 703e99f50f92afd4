"""A study's report as files: JSON for programs, HTML that stands alone, PDF for the archive."""

import dataclasses
import json
import re
from collections.abc import Iterable
from enum import StrEnum
from html import escape
from pathlib import Path

from alertreview.reports.blocks import Block, Bullets, Cards, Document, Figure, Heading, Paragraph, Table
from alertreview.reports.content import report_document
from alertreview.reports.plot import draw_svg
from alertreview.reports.signing import Signature, canonical_json
from core.errors import AlertReviewError
from core.studies.report import StudyReport

STYLE = """
:root{color-scheme:light}
body{font:15px/1.5 "Source Sans 3","Source Sans Pro",system-ui,sans-serif;color:#0B1418;background:#FFF;margin:0 auto;
max-width:60rem;padding:1.5rem 1.25rem 3rem;font-variant-numeric:tabular-nums}
h1{font-size:1.6rem;font-weight:600;margin:0}h2{font-size:1.2rem;font-weight:600;margin:2rem 0 .5rem}
h3{font-size:1.05rem;font-weight:600;margin:1.5rem 0 .5rem}
.sub,figcaption,caption,footer,.rest{color:#55646E}.sub{margin:.25rem 0 1rem}
.banner{border:1px solid #8A6100;background:#FBF3DC;color:#7A5600;padding:.5rem .75rem;border-radius:4px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(12rem,1fr));gap:1rem;margin:1rem 0}
.card{border:1px solid #D5DDE1;border-radius:4px;padding:.75rem 1rem}.card b{display:block;font-size:1.5rem}
.wrap{overflow-x:auto}table{border-collapse:collapse;width:100%;margin:1rem 0;font-size:13.5px}
caption{text-align:left;padding:.25rem 0}th,td{text-align:left;padding:.3rem .6rem .3rem 0;vertical-align:top;
border-bottom:1px solid #D5DDE1;overflow-wrap:anywhere}th{font-weight:600}.n{text-align:right}
figure{margin:1rem 0}figure svg{max-width:100%;height:auto}footer{margin-top:2rem;font-size:12px;overflow-wrap:anywhere}
@media print{body{max-width:none;padding:0}h2,h3{break-after:avoid}figure,.card,tr{break-inside:avoid}}
""".strip()


def write_html(document: Document) -> str:
    """Return the document as a whole HTML page; every text is escaped, so a name can never become markup."""
    banner = f'<p class="banner" role="note">{escape(document.banner)}</p>' if document.banner else ""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    body = "\n".join(_block(block) for block in document.blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(f'{document.title} {document.subtitle}')}</title>\n<style>\n{STYLE}\n</style>\n</head>\n"
        f"<body>\n<header>\n{banner}\n<h1>{escape(document.title)}</h1>\n"
        f'<p class="sub">{escape(document.subtitle)}</p>\n</header>\n'
        f"<main>\n{body}\n</main>\n<footer>{escape(document.footer)}</footer>\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
        case Paragraph():
            return f"<p>{_rich(block.text)}</p>"
        case Bullets():
            return "<ul>" + "".join(f"<li>{_rich(item)}</li>" for item in block.items) + "</ul>"
        case Cards():
            return '<div class="cards">' + "".join(_card(*item) for item in block.items) + "</div>"
        case Figure():
            return f"<figure>{draw_svg(block.plot)}<figcaption>{escape(block.caption)}</figcaption></figure>"
        case Table():
            return _table(block)


def _rich(text: str) -> str:
    """Return the escaped text with **bold** set."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))


def _card(name: str, value: str, rest: str) -> str:
    return f'<div class="card">{escape(name)}<b>{escape(value)}</b><span class="rest">{escape(rest)}</span></div>'


def _table(table: Table) -> str:
    head = _row(table, table.header, '<th scope="col"', "th")
    rows = "\n".join(_row(table, row, "<td", "td") for row in table.rows)
    return (
        f'<div class="wrap"><table><caption>{escape(table.caption)}</caption><thead>{head}</thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(table: Table, cells: tuple[str, ...], opening: str, tag: str) -> str:
    made = (
        f"{opening}{' class=n' if column in table.numeric else ''}>{escape(cell)}</{tag}>"
        for column, cell in enumerate(cells)
    )
    return f"<tr>{''.join(made)}</tr>"


TEMPLATE = Path(__file__).resolve().parent / "report_template.typ"


def write_pdf(document: Document) -> bytes:
    """Return the document as PDF; texts go in as data, never as markup, so a name can never become a command.

    Raise AlertReviewError if the typesetter refuses the document.
    """
    import typst

    blocks = [{"kind": type(block).__name__, **_plain(block)} for block in document.blocks]
    data = {**_plain(document), "blocks": blocks}
    try:
        made = typst.compile(
            TEMPLATE.read_bytes(), format="pdf", sys_inputs={"document": json.dumps(data)}, ignore_system_fonts=True
        )
    except typst.TypstError as problem:
        raise AlertReviewError(f"The PDF could not be set ({problem}). Use the HTML report; it prints too.") from None
    return bytes(made)


def _plain(part: Block | Document) -> dict[str, object]:
    """Return the fields of a block or of the document, without the blocks inside."""
    plain: dict[str, object] = {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.name != "blocks"}
    match part:
        case Table():
            plain["numeric"] = sorted(part.numeric)
        case Figure():
            plain |= {"plot": None, "svg": draw_svg(part.plot)}
    return plain


class ReportFormat(StrEnum):
    """File formats of a report."""

    JSON = "json"
    HTML = "html"
    PDF = "pdf"


def render_report(report: StudyReport, chosen: ReportFormat, signatures: Iterable[Signature] = ()) -> bytes:
    """Return a report's file, the same bytes for the same report.

    JSON is the report itself, exactly what its content hash is taken of, and carries no signatures.
    """
    if chosen is ReportFormat.JSON:
        return canonical_json(report)
    document = report_document(report, signatures)
    return write_html(document).encode() if chosen is ReportFormat.HTML else write_pdf(document)


def write_report(
    report: StudyReport, folder: Path, formats: Iterable[ReportFormat], signatures: Iterable[Signature] = ()
) -> None:
    """Write a report as ``report.json``, ``report.html``, ``report.pdf``, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    signed = tuple(signatures)
    for chosen in dict.fromkeys(formats):
        part = folder / f".report.{chosen.value}.part"
        part.write_bytes(render_report(report, chosen, signed))
        part.replace(folder / f"report.{chosen.value}")
