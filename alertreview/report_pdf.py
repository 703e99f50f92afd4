"""Write a report document as PDF with Typst: tagged, fonts embedded, figures as vectors, nothing from outside."""

import dataclasses
import json
from pathlib import Path

from alertreview.report_blocks import Document, Table
from core.errors import AlertReviewError

TEMPLATE = Path(__file__).resolve().parent / "report_template.typ"


def write_pdf(document: Document) -> bytes:
    """Write the document; texts go in as data, never as markup, so a name can never become a command.

    Parameters
    ----------
    document : Document

    Returns
    -------
    bytes
        The same bytes for the same document.

    Raises
    ------
    AlertReviewError
        If the typesetter refuses the document.
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


def _plain(part: object) -> dict[str, object]:
    """Fields of a block or of the document, without the blocks inside."""
    if not dataclasses.is_dataclass(part):
        return {}
    plain: dict[str, object] = {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.name != "blocks"}
    if isinstance(part, Table):
        plain["numeric"] = sorted(part.numeric)
    return plain
