"""The sign-in pages look like the pages behind them."""

import re
import tomllib

import pytest

from dashboard.charts.base import FONT
from dashboard.gate import pages
from dashboard.gate.sign_in import THEME_FILES

CSS = (pages.THEME / "login.css").read_text(encoding="utf-8")
THEME = tomllib.loads((pages.THEME.parent / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
TOKENS = {
    "text": "textColor",
    "back": "backgroundColor",
    "soft": "secondaryBackgroundColor",
    "line": "borderColor",
    "main": "primaryColor",
    "bad": "redTextColor",
}


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_colours_are_those_of_the_pages(mode: str) -> None:
    light, dark = CSS.split("@media(prefers-color-scheme:dark)")
    block = light if mode == "light" else dark.split("*{")[0]
    for token, key in TOKENS.items():
        (colour,) = re.findall(rf"--{token}:\s*(#\w+)", block)
        full = "#" + "".join(2 * digit for digit in colour[1:]) if len(colour) == 4 else colour
        assert full == THEME[mode][key], token


def test_the_typeface_is_that_of_the_pages_and_served_with_them() -> None:
    assert f"font:{THEME['baseFontSize']}px/1.5 {FONT.split(',')[0]}" in CSS
    (source,) = re.findall(r"@font-face{[^}]*url\(([^)]+)\)", CSS)
    assert THEME_FILES[source] == "font/woff2"
    assert pages.typeface().read_bytes()[:4] == b"wOF2"
