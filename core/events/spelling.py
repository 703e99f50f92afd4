"""One door for text: every identifier, code, name, unit, number and time comes in one spelling.

Different bytes that people read as the same become the same: composed and decomposed letters, the two micro signs,
blanks around a word, dashes, ``mg/dl`` and ``mg/dL``, ``4,8`` and ``4.8``.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_SUPERSCRIPT = re.compile("(?<=[0-9])[\u207b\u2212]?[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")
_TWINS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2019\u02bc\u2032", "'"),
        **dict.fromkeys("\u2044\u2215", "/"),
    }
)


def tidy(text: str) -> str:
    """Return a text in its one spelling: NFKC, without invisible characters, blanks squeezed and trimmed.

    Examples
    --------
    >>> tidy(" Cre\u0301atinine\u00a0 serum ") == "Créatinine serum"
    True
    >>> tidy("10\u2079/L")
    '10^9/L'
    """
    if text.isascii():
        return " ".join(text.split()) if text.isprintable() else " ".join(_visible(text).split())
    text = _SUPERSCRIPT.sub(lambda match: "^" + match.group(), text)
    text = unicodedata.normalize("NFKC", text).translate(_TWINS)
    return " ".join(_visible(text).split())


def _visible(text: str) -> str:
    """Return a text without format and control characters; those that are blanks stay."""
    return "".join(each for each in text if each.isspace() or unicodedata.category(each) not in ("Cf", "Cc"))


_COMMON_UNITS = """
    % mg/dL g/dL ug/dL ng/dL mmol/L umol/L nmol/L pmol/L mEq/L mOsm/kg mOsm/L U/L IU/L mIU/L kU/L U/mL IU/mL mIU/mL
    uIU/mL ng/mL pg/mL ug/mL mg/mL ug/L mg/L g/L ng/L K/uL 10^3/uL 10^6/uL 10^9/L 10^12/L cells/uL /uL mmHg kPa fL mL dL
    uL ug ng mL/min mL/min/1.73m2 mL/min/1.73m^2 mg/g ug/g mg/mmol kg/m2 kg/m^2 sec min
"""
_UNITS = {unit.casefold(): unit for unit in _COMMON_UNITS.split()}
_LITRES = re.compile(r"(?:(?<=^)|(?<=[/ ])|(?<=[dmnuµ]))l(?=$|[/ ])")
_MICROGRAM = re.compile(r"(?:(?<=^)|(?<=[/ ]))mcg(?=$|[/ ])", re.IGNORECASE)


def unit_spelling(text: str) -> str:
    """Return a unit in its one spelling: micro is ``u``, litre ``L``; common units whatever their case.

    Examples
    --------
    >>> unit_spelling("\u00b5mol/l"), unit_spelling("\u03bcmol/L"), unit_spelling("MG/DL"), unit_spelling("mcg/ml")
    ('umol/L', 'umol/L', 'mg/dL', 'ug/mL')
    """
    unit = _MICROGRAM.sub("ug", tidy(text).replace("\u03bc", "u"))
    known = _UNITS.get(unit.replace(" ", "").casefold()) if len(unit) > 1 or unit == "%" else None
    return known or _LITRES.sub("L", unit)


_SIGNS = str.maketrans({"\u2264": "<=", "\u2265": ">=", "\u2a7d": "<=", "\u2a7e": ">=", "\u2212": "-"})
_SIGN = re.compile("^([<>]?) ?(=?) ?")
_NUMBER = re.compile(r"[<>]?=?([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)")
_WITH_COMMA = re.compile(r"[<>]?=?([+-]?)(\d{1,3}(?:\.\d{3})+|\d+),(\d+)")
_THOUSANDS = re.compile(r"[<>]?=?[+-]?\d{1,3}(?:,\d{3})+")
_THOUSANDS_AND_POINT = re.compile(r"([<>]?=?[+-]?)(\d{1,3}(?:,\d{3})+)(\.\d*)")

PLAIN, COMMA, DOUBTFUL = range(3)
"""How a number was written: plainly, with a decimal comma, or as 1,234, which may be a thousand or a decimal."""


def number_in_text(text: str) -> float:
    """Read a number, also a censored one: the bound stands for the value.

    Parameters
    ----------
    text : str
        ``"4.1"``, ``"<0.01"``, ``"\u2264 50"``, ``"4,8"``; anything else ("HOLD", "1+") has no number.

    Returns
    -------
    float
        NaN when there is no number.

    Examples
    --------
    >>> number_in_text("<0.01"), number_in_text("\u22645"), number_in_text("4,8")
    (0.01, 5.0, 4.8)
    >>> number_in_text("1+"), number_in_text("1,234")
    (nan, nan)
    """
    return float(numbers_in_texts([text])[0][0])


def numbers_in_texts(texts: Sequence[str]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]:
    """Read the numbers of the texts of one source.

    Where some numbers have a decimal comma that can be nothing else and none has a decimal point, ``1,234`` has a
    decimal comma too; otherwise it is doubtful and no number.

    Parameters
    ----------
    texts : sequence of str
        Each once.

    Returns
    -------
    values : array of float, shape (n_texts,)
        NaN where there is none.
    written : array of int8, shape (n_texts,)
        `PLAIN`, `COMMA` or `DOUBTFUL`.
    """
    bare = [_SIGN.sub(r"\1\2", tidy(text.translate(_SIGNS))) if _has_digit(text) else "" for text in texts]
    values, written = np.full(len(bare), np.nan), np.full(len(bare), PLAIN, dtype=np.int8)
    points = False
    for i, text in enumerate(bare):
        if match := _NUMBER.fullmatch(text):
            values[i] = float(match.group(1))
            points |= "." in match.group(1)
        elif match := _THOUSANDS_AND_POINT.fullmatch(text):
            values[i] = float(match.group(1).lstrip("<>=") + match.group(2).replace(",", "") + match.group(3))
            points = True
        elif _THOUSANDS.fullmatch(text) and not text.lstrip("<>=+-").startswith("0,"):
            if text.count(",") > 1:
                values[i] = float(text.lstrip("<>=").replace(",", ""))
            else:
                written[i] = DOUBTFUL
        elif match := _WITH_COMMA.fullmatch(text):
            values[i], written[i] = _decimal(match), COMMA
    if not points and (written == COMMA).any():
        for i in np.flatnonzero(written == DOUBTFUL).tolist():
            if match := _WITH_COMMA.fullmatch(bare[i]):
                values[i], written[i] = _decimal(match), COMMA
    return np.where(np.isfinite(values), values, np.nan), written


def _has_digit(text: str) -> bool:
    return any(each.isdigit() for each in text)


def _decimal(match: "re.Match[str]") -> float:
    sign, whole, decimals = match.groups()
    return float(f"{sign}{whole.replace('.', '')}.{decimals}")


_ZONE = r"(?P<zone> ?(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?))?"
_TIME = re.compile(
    r"(?P<y>\d{4})(?P<d>[-/])(?P<m>\d{2})(?P=d)(?P<day>\d{2})"
    rf"(?:[T ](?P<h>\d{{2}}):(?P<min>\d{{2}})(?::(?P<s>\d{{2}})(?:[.,](?P<f>\d{{1,9}}))?)?{_ZONE})?",
    re.IGNORECASE | re.ASCII,
)
_COMPACT = re.compile(
    r"(?P<y>\d{4})(?P<m>\d{2})(?P<day>\d{2})"
    r"(?:T?(?P<h>\d{2})(?P<min>\d{2})(?:(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?(?P<zone>Z|[+-]\d{4})?)?",
    re.IGNORECASE | re.ASCII,
)
TIME_SPELLINGS = "2026-02-28, 2026-02-28 06:15, 2026-02-28T06:15:00.5+01:00, 20260228061500"


def time_in_text(text: str) -> tuple[str, int | None] | None:
    """Read a time in one of the spellings that leave no doubt.

    Parameters
    ----------
    text : str
        Year first, with dashes, slashes or nothing between; the time of day after a blank or T; then a zone or none.

    Returns
    -------
    iso : str
        ``"2026-02-28T06:15:00.000000"``, as written.
    offset : int or None
        Seconds of the zone ahead of UTC; None without a zone.
        None instead of both for every other text, "now" included.

    Examples
    --------
    >>> time_in_text("2026-02-28 06:15:00-05")
    ('2026-02-28T06:15:00.000000', -18000)
    >>> time_in_text("28.2.2026") is None
    True
    """
    match = _TIME.fullmatch(text) or _COMPACT.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    fraction = (part["f"] or "").ljust(6, "0")[:6]
    clock = f"{part['h'] or '00'}:{part['min'] or '00'}:{part['s'] or '00'}.{fraction}"
    return f"{part['y']}-{part['m']}-{part['day']}T{clock}", _offset(part["zone"])


def _offset(zone: str | None) -> int | None:
    if not zone:
        return None
    zone = zone.strip().upper()
    if zone in ("Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = (int(digits[i : i + 2]) for i in (0, 2, 4))
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if zone[0] == "-" else 1)


def shape_of(text: str) -> str:
    """Return a text for an error without what it says of a patient: every digit is a 9, the length is bounded.

    Examples
    --------
    >>> shape_of("28.2.1950 6h")
    '99.9.9999 9h'
    """
    shape = re.sub(r"\d", "9", text)
    return shape if len(shape) <= 40 else shape[:40] + "..."
