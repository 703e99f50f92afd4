"""The colours of the pages and figures, light and dark; each pair was checked for contrast and colour vision."""

from dataclasses import dataclass

from core.vocabulary import Decision


@dataclass(frozen=True)
class Palette:
    """Colours of one mode.

    The accent never encodes data beside the omission / commission pair, and the pair never stands without its words:
    commission bars are hatched as well, badges carry an icon and the word.
    """

    mode: str
    page: str
    text: str
    muted: str
    accent: str
    accent_band: str
    omission: str
    omission_text: str
    commission: str
    commission_text: str
    attention: str
    bars: str
    bars_strong: str
    bars_faint: str
    ink: str
    band: str
    window: str
    grid: str
    axis: str

    def decision_bar(self, decision: Decision) -> str:
        """Fill for bars and boxes of an omission or a commission."""
        return self.omission if decision is Decision.OMISSION else self.commission

    def decision_text(self, decision: Decision) -> str:
        """Return the colour for words and lines of an omission or a commission."""
        return self.omission_text if decision is Decision.OMISSION else self.commission_text


LIGHT = Palette(
    mode="light",
    page="#FFFFFF",
    text="#0B1418",
    muted="#55646E",
    accent="#0B6B6B",
    accent_band="rgba(11,107,107,.14)",
    omission="#1F5FA8",
    omission_text="#1F5FA8",
    commission="#C2570F",
    commission_text="#A8470B",
    attention="#8A6100",
    bars="#8795A0",
    bars_strong="#63747E",
    bars_faint="#C5CDD2",
    ink="#33434C",
    band="#E6EBEE",
    window="rgba(31,95,168,.08)",
    grid="#E9EEF0",
    axis="#B9C4CA",
)

DARK = Palette(
    mode="dark",
    page="#10181C",
    text="#E3EAED",
    muted="#9DACB5",
    accent="#5CC4BE",
    accent_band="rgba(92,196,190,.18)",
    omission="#7DB3F0",
    omission_text="#7DB3F0",
    commission="#F0A063",
    commission_text="#F0A063",
    attention="#E3C069",
    bars="#5F707A",
    bars_strong="#8A9AA4",
    bars_faint="#3A4952",
    ink="#C6D1D6",
    band="#2A383F",
    window="rgba(125,179,240,.10)",
    grid="#233038",
    axis="#46565F",
)


def palette(mode: str | None) -> Palette:
    """Return the palette of a Streamlit theme type, by default light."""
    return DARK if mode == "dark" else LIGHT
