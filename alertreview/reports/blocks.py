"""The blocks a report document is made of; HTML and PDF are two ways of writing the same blocks."""

from dataclasses import dataclass

from alertreview.reports.plot import Plot


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 or 3."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; **double asterisks** mark what stands out."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Cards:
    """Key figures: (name, value, what it rests on)."""

    items: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table; columns named in `numeric` are set to the right."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Figure:
    """A figure and its caption."""

    plot: Plot
    caption: str


Block = Heading | Paragraph | Bullets | Cards | Table | Figure


@dataclass(frozen=True)
class Document:
    """A report ready to be written in any format."""

    title: str
    subtitle: str
    banner: str  # what stands above everything, "Simulated data"; empty when there is nothing to say
    blocks: tuple[Block, ...]
    footer: str
