"""One door for text: every identifier, code, name, unit, number and time comes in one spelling.

Different bytes that people read as the same become the same: composed and decomposed letters, the two micro signs,
blanks around a word, dashes, ``mg/dl`` and ``mg/dL``, ``4,8`` and ``4.8``.
"""

import re
import unicodedata
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

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


_AROUND_PARTS = re.compile(" ?// ?")
_NUMBER_AS_FLOAT = re.compile(r"(\d{4,15})\.0+|(\d)\.(\d+)e\+?(\d\d?)", re.ASCII | re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+", re.ASCII)
_AS_TEXT = re.compile(r"=\"(.*)\"|'(?=\d)(.*[^'])")
_ZEROS_BEFORE = re.compile(r"(?:(?<=//)|^)0+(?=\d+(?:$|//))", re.ASCII)
_QUOTES = "\"'\u201c\u201d\u201e\u00ab\u00bb\u2018"


def code_spelling(code: str) -> str:
    """Return a code in its one spelling: tidy, without blanks or a pair of quotes around its parts.

    A number that went through a spreadsheet or a column of floats is whole again; ICD-9 has no code of four digits and
    a point. One that lost digits there stays as it is; see `is_rounded_code`.

    Examples
    --------
    >>> code_spelling('LAB// "50912" //mg/dL'), code_spelling("LAB//50912.0"), code_spelling("ICD9//250.0")
    ('LAB//50912//mg/dL', 'LAB//50912', 'ICD9//250.0')
    >>> code_spelling("LAB//5.0912E+04"), code_spelling("LAB//50,912"), code_spelling("LAB//'050912")
    ('LAB//50912', 'LAB//50912', 'LAB//050912')
    """
    return "//".join(map(_part_spelling, _AROUND_PARTS.split(tidy(code))))


def _part_spelling(part: str) -> str:
    """Return a part of a code without what quotes, spreadsheets and columns of floats add to it."""
    if part.isalnum() and "e" not in part.lower():
        return part
    if match := _AS_TEXT.fullmatch(part):
        part = match.group(1) or match.group(2)
    part = _unquoted(part)
    if _GROUPED.fullmatch(part):
        return part.replace(",", "")
    if match := _NUMBER_AS_FLOAT.fullmatch(part):
        whole, first, decimals, power = match.groups()
        if whole:
            return str(whole)
        if len(decimals) >= int(power) and not decimals[int(power) :].strip("0"):
            return f"{first}{decimals[: int(power)]}"
    return part


def without_zeros(code: str) -> str:
    """Return a code without the zeros before numbers that are a part of it.

    Examples
    --------
    >>> without_zeros("LAB//0050912//mg/dL"), without_zeros("NDC//00093-3109-05")
    ('LAB//50912//mg/dL', 'NDC//00093-3109-05')
    """
    return _ZEROS_BEFORE.sub("", code)


def _unquoted(part: str) -> str:
    """Return a part of a code without its pair of quotes; one that holds more quotes is kept."""
    inside = part[1:-1].strip()
    is_quoted = inside != "" and part[0] in _QUOTES and part[-1] in _QUOTES
    return inside if is_quoted and not any(each in inside for each in _QUOTES) else part


def _visible(text: str) -> str:
    """Return a text without format and control characters; those that are blanks stay."""
    return "".join(each for each in text if each.isspace() or unicodedata.category(each) not in ("Cf", "Cc"))


_MISSING = frozenset(["n/a", "#n/a", "na", "<na>", "nan", "nat", "null", "(null)", "\\n", "."])
_NOTHING = _MISSING.union(["", "-", "--", "---", "?", "nil", "none", "unk", "unknown", "missing"])
NO_DATES = frozenset(["0000-00-00", "0000-00-00 00:00:00", "00000000", "00000000000000"])
"""Times that say that there is none."""


def stands_for_nothing(text: str) -> bool:
    r"""Return whether a cell of an identifier, time or unit, in its one spelling, says that there is none.

    Examples
    --------
    >>> stands_for_nothing("NULL"), stands_for_nothing("\\N"), stands_for_nothing("12")
    (True, True, False)
    """
    return text.casefold() in _NOTHING


def says_missing(text: str) -> bool:
    """Return whether a text is what programs write for a missing value; ``-`` and ``none`` may be results."""
    return len(text) <= _LONGEST_MISSING and tidy(text).casefold() in _MISSING


_LONGEST_MISSING = 10


_WHOLE_AS_FLOAT = re.compile(r"(\d{1,15})\.0+", re.ASCII)
_ROUNDED = re.compile(r"\d([.,]\d+)?e\+?\d+|\d{16,}\.0+", re.ASCII | re.IGNORECASE)
_ROUNDED_CODE = re.compile(r"\d[.,]\d+e\+\d+", re.ASCII | re.IGNORECASE)
"""Stricter than `_ROUNDED`: ICD-11 has codes such as 5E10."""
_UUID = re.compile(r"\{?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?", re.ASCII | re.IGNORECASE)


def identifier(text: str) -> str:
    """Return an identifier in its one spelling: without what a spreadsheet or a float column adds, UUIDs in lower case.

    Examples
    --------
    >>> identifier(" P001"), identifier("123.0"), identifier("'007")
    ('P001', '123', '007')
    >>> identifier("{0F8FAD5B-D9CB-469F-A165-70867728950E}")
    '0f8fad5b-d9cb-469f-a165-70867728950e'
    """
    text = tidy(text)
    if match := _UUID.fullmatch(text):
        return match.group(1).lower()
    if match := _WHOLE_AS_FLOAT.fullmatch(text):
        return match.group(1)
    return text[1:] if len(text) > 1 and text[0] == "'" else text


def is_rounded(text: str) -> bool:
    """Return whether an identifier lost digits in a spreadsheet, such as 1.23E+11 or 12345678901234567.0."""
    return _ROUNDED.fullmatch(text) is not None


def is_rounded_code(part: str) -> bool:
    """Return whether a part of a code, in its one spelling, lost digits in a spreadsheet, such as 9.3311E+07."""
    return _ROUNDED_CODE.fullmatch(part) is not None


_WORD = re.compile(r"[^\W\d_]{3,}")


def name_key(name: str) -> str:
    """Return what is the same for two spellings of one name: regardless of case, quotes around and points behind.

    Words of one or two letters keep their case: Anti-E is another antibody than Anti-e.

    Examples
    --------
    >>> name_key("CREATININE.") == name_key("Creatinine"), name_key("Anti-E") == name_key("Anti-e")
    (True, False)
    """
    bare = name.strip(_QUOTES).rstrip(".,;:").strip() or name
    return _WORD.sub(lambda match: match.group().casefold(), bare)


_NDC = re.compile(r"(\d{4,5})-(\d{3,4})-(\d{1,2})", re.ASCII)


def twin_key(name: str) -> str:
    """Return what is the same for two spellings of the name or code of an item, as `name_key` of a name.

    Zeros before a number, and the hyphens of an NDC, come and go on the way through tables.

    Examples
    --------
    >>> twin_key("0050912") == twin_key("50912"), twin_key("0093-3109-05") == twin_key("00093310905")
    (True, True)
    """
    if match := _NDC.fullmatch(name):
        labeler, product, package = match.groups()
        name = f"{labeler:0>5}{product:0>4}{package:0>2}"
    return name_key(without_zeros(name))


# Letters of other alphabets that look like Latin ones.
_LOOK = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0430\u0435\u043e\u0440\u0441\u0443\u0445"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "ABEKMHOPCTYXaeopcyxABEZHIKMNOPTYXo",
)
_BETWEEN = re.compile(r"[\s_.,/'()\[\]-]+")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")


def look_of(text: str) -> str:
    """Return what two texts share that people take for one: regardless of case, signs and leading zeros.

    Examples
    --------
    >>> look_of("P-007") == look_of("p7"), look_of("P7") == look_of("P70")
    (True, False)
    """
    return _ZEROS.sub("", _BETWEEN.sub("", text.translate(_LOOK).casefold()))


_COMMON_UNITS = """
    % mg/dL g/dL ug/dL ng/dL mmol/L umol/L nmol/L pmol/L mEq/L mOsm/kg mOsm/L U/L IU/L mIU/L kU/L U/mL IU/mL mIU/mL
    uIU/mL ng/mL pg/mL ug/mL mg/mL ug/L mg/L g/L ng/L K/uL 10^3/uL 10^6/uL 10^9/L 10^12/L cells/uL /uL mmHg kPa fL mL dL
    uL ug ng mL/min mL/min/1.73m2 mL/min/1.73m^2 mg/g ug/g mg/mmol kg/m2 kg/m^2 sec min
"""
_UNITS = {unit.casefold(): unit for unit in _COMMON_UNITS.split()}
_CELLS = {each: each.upper() for each in ("G/L", "G/l", "T/L", "T/l")}
"""10^9 and 10^12 per litre: a gram has a small letter."""
_LITRES = re.compile(r"(?:(?<=^)|(?<=[/ ])|(?<=[dmnuµ]))l(?=$|[/ ])")
_MICROGRAM = re.compile(r"(?:(?<=^)|(?<=[/ ]))mcg(?=$|[/ ])", re.IGNORECASE)
_BRACKETED = re.compile(r"\[([^\[\]]+)\]|\(([^()]+)\)|\{([^{}]+)\}")
_OTHER_SIGNS = (
    (re.compile(r"\[(iu|hg)\]", re.IGNORECASE), lambda match: "IU" if match.group(1).lower() == "iu" else "Hg"),
    (re.compile(r"\{1\.73_m2\}"), lambda match: "1.73m2"),
    (re.compile(r"^[x×*·] ?(?=10[\^*])", re.IGNORECASE), lambda match: ""),
    (re.compile(r"^10(?:\*\*?|e)(?=\d)", re.IGNORECASE), lambda match: "10^"),
    (re.compile(r" per ", re.IGNORECASE), lambda match: "/"),
    (re.compile(r"(?<=\w)[ ·.*]([dmu]?l|kg|min)\^?-1$", re.IGNORECASE), lambda match: f"/{match.group(1)}"),
    (re.compile(r"^([mu]?g)(?:/100 ?ml| ?%)$", re.IGNORECASE), lambda match: f"{match.group(1)}/dL"),
    (re.compile(r"/(?:mm\^?3|cu ?mm|cmm)$", re.IGNORECASE), lambda match: "/uL"),
    (re.compile(r"^(?:tsd\.?|thou|thousand|th)(?=/)", re.IGNORECASE), lambda match: "10^3"),
    (re.compile(r"^(?:mill?|million|mio\.?)(?=/)", re.IGNORECASE), lambda match: "10^6"),
    (re.compile(r"^(?:gm|gram|grams)(?=$|/)", re.IGNORECASE), lambda match: "g"),
    (re.compile(r"^(?:micro|mc)mol(?=$|/)", re.IGNORECASE), lambda match: "umol"),
    (re.compile(r"^mval(?=/)", re.IGNORECASE), lambda match: "mEq"),
    (re.compile(r"^(?:s|(?i:secs?|seconds?|sek))$"), lambda match: "sec"),
    (re.compile(r"^minutes?$", re.IGNORECASE), lambda match: "min"),
    (re.compile(r"^(?:percent|pct)$", re.IGNORECASE), lambda match: "%"),
    (re.compile(r"^(?:cel|° c)$", re.IGNORECASE), lambda match: "°C"),
)
"""Other ways to write a unit, the signs of UCUM among them."""


def unit_spelling(text: str) -> str:
    """Return a unit in its one spelling: micro is ``u``, litre ``L``; common units whatever their case.

    Examples
    --------
    >>> unit_spelling("\u00b5mol/l"), unit_spelling("\u03bcmol/L"), unit_spelling("MG/DL"), unit_spelling("mcg/ml")
    ('umol/L', 'umol/L', 'mg/dL', 'ug/mL')
    >>> unit_spelling("mg per dl"), unit_spelling("mmol\u00b7L\u207b\u00b9"), unit_spelling("10*3/uL")
    ('mg/dL', 'mmol/L', '10^3/uL')
    """
    unit = tidy(text).replace("\u03bc", "u")
    if unit != "%":
        for sign, written in _OTHER_SIGNS:
            unit = sign.sub(written, unit)
    if match := _BRACKETED.fullmatch(unit):
        unit = next(filter(None, match.groups()))
    unit = _MICROGRAM.sub("ug", unit.removesuffix("."))
    known = _CELLS.get(unit)
    if not known and (len(unit) > 1 or unit == "%"):
        known = _UNITS.get(unit.replace(" ", "").casefold())
    return known or _LITRES.sub("L", unit)


_SAME_SIZE = (
    ("K/uL", "10^3/uL", "10^9/L", "Gpt/L", "G/L"),
    ("10^6/uL", "M/uL", "10^12/L", "T/L", "Tpt/L"),
    ("/uL", "cells/uL", "10^6/L"),
    ("ng/mL", "ug/L"),
    ("ug/mL", "mg/L"),
    ("mg/mL", "g/L"),
    ("pg/mL", "ng/L"),
    ("U/L", "IU/L", "mU/mL", "mIU/mL"),
    ("mU/L", "mIU/L", "uIU/mL", "uU/mL"),
    ("U/mL", "IU/mL", "kU/L"),
    ("fL", "um3", "um^3"),
)
_SIZES = {unit: group[0] for group in _SAME_SIZE for unit in group}


def size_of(unit: str) -> str:
    """Return a unit of the same size, the same for all that may stand for each other without conversion.

    Examples
    --------
    >>> size_of("10^9/L") == size_of("K/uL"), size_of("mg/L") == size_of("mg/dL")
    (True, False)
    """
    return _SIZES.get(unit, unit)


_SIGNS = str.maketrans(
    {"\u2264": "<=", "\u2265": ">=", "\u2a7d": "<=", "\u2a7e": ">=", "\u2212": "-", "\u066b": ".", "\u066c": ","}
)
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("=<", "<="), ("=>", ">="))
_SIGN = re.compile(r"^(?:[~\u2248] ?|(?:ca\.?|approx\.?) )?([<>]?) ?(=?) ?(?:(-) (?=\d))?", re.IGNORECASE)
_COMPARED = (
    (re.compile(r"^(?:less than|below|under) (?=\d)", re.IGNORECASE), "<"),
    (re.compile(r"^(?:greater than|more than|above|over) (?=\d)", re.IGNORECASE), ">"),
)
_WRAPPED = re.compile(r'^=?"(.*)"$|^\'(?=[\d<>+.-])')
_FLAG_BEFORE = re.compile(r"^(?:\((?:HH?|LL?|N)\)|(?:HH?|LL?)(?= )|\*+|[\u2191\u2193]+) ?(?=[<>+-]?\d)")
_FLAG = re.compile(r"(?<=\d)(?: ?\((?:HH?|LL?|N)\)| ?(?:HH?|LL?)| ?\*+| ?[\u2191\u2193]+)$")
_TIMES_TEN = re.compile(r"(?<=\d) ?(?:[x\u00d7*\u00b7\u22c5] ?10(?:\^|\*\*?|e))([+-]?\d{1,2})(?!\d)", re.IGNORECASE)
_MIDDLE_POINT = re.compile("(?<=\\d)[\u00b7\u2219\u22c5](?=\\d)")
_SPACED = re.compile(r"(?<![\d.,' ])(\d{1,3})((?:[ ']\d{3})+)(?![\d ])")
_WITH_UNIT = re.compile(r"([<>]?=?[+-]?[\d.,]*\d(?:[eE][+-]?\d{1,3})?) ?([^\d\s.,+*:-].*)")
_STARTS = re.compile(r"[^\w]{0,3}\d")
_OF_SPREADSHEET = re.compile(r"#{2,}|#(?:VALUE!|REF!|DIV/0!|NUM!|NAME\?|NULL!)", re.IGNORECASE)
"""What stands in a cell whose number a spreadsheet could not compute or show."""
_EXPONENT = r"(?:[eE][+-]?\d{1,3})?"
_NUMBER = re.compile(rf"[<>]?=?([+-]?(?:\d+(?:\.\d*)?|\.\d+){_EXPONENT})")
_WITH_COMMA = re.compile(rf"[<>]?=?([+-]?)(\d{{1,3}}(?:\.\d{{3}})+|\d+),(\d+{_EXPONENT})")
_THOUSANDS = re.compile(r"[<>]?=?[+-]?\d{1,3}(?:,\d{3})+")
_THOUSANDS_AND_POINT = re.compile(r"([<>]?=?[+-]?)(\d{1,3}(?:,\d{3})+)(\.\d*)")
_POINTED = re.compile(r"[<>]?=?[+-]?[1-9]\d{0,2}(?:\.\d{3})+")

PLAIN, COMMA, DOUBTFUL, UNREAD = range(4)
"""How a number was written: plainly, with a decimal comma, as 1,234, which may be a thousand or a decimal, or in a way
that is not understood."""


def number_in_text(text: str) -> float:
    """Return the number of a text, also a censored one, whose bound stands for the value; NaN when there is none.

    Examples
    --------
    >>> number_in_text("<0.01"), number_in_text("≤5"), number_in_text("4,8"), number_in_text("1 234,5")
    (0.01, 5.0, 4.8, 1234.5)
    >>> number_in_text("1+"), number_in_text("1,234")
    (nan, nan)
    """
    return float(numbers_in_texts([text]).values[0])


class Numbers(NamedTuple):
    """Numbers of texts: values, NaN where there is none; how they are written; the common unit after each, or "".

    A text stands for any number from `low` to `high`: people round, and write ``<0.01``.
    """

    values: npt.NDArray[np.float64]
    written: npt.NDArray[np.int8]
    units: list[str]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def numbers_in_texts(texts: Sequence[str]) -> Numbers:
    """Read the numbers of the texts of one source, each given once.

    Where some numbers have a decimal comma that can be nothing else and none has a decimal point, ``1,234`` has a
    decimal comma too, and ``1.234`` is a thousand; otherwise ``1,234`` is doubtful and no number.
    """
    split = [_number_and_unit(text) if _has_digit(text) else ("", "") for text in texts]
    bare = [number for number, _ in split]
    values, written = np.full(len(bare), np.nan), np.full(len(bare), PLAIN, dtype=np.int8)
    points = False
    for i, text in enumerate(bare):
        if match := _NUMBER.fullmatch(text):
            values[i] = float(match.group(1))
            points |= "." in match.group(1) and not _POINTED.fullmatch(text)
        elif match := _THOUSANDS_AND_POINT.fullmatch(text):
            values[i] = float(match.group(1).lstrip("<>=") + match.group(2).replace(",", "") + match.group(3))
            points = True
        elif _POINTED.fullmatch(text):
            values[i] = _whole(text, ".")
        elif _THOUSANDS.fullmatch(text) and not text.lstrip("<>=+-").startswith("0,"):
            if text.count(",") > 1:
                values[i] = _whole(text, ",")
            else:
                written[i] = DOUBTFUL
        elif match := _WITH_COMMA.fullmatch(text):
            values[i], written[i] = _decimal(match), COMMA
        elif _STARTS.match(text) or _OF_SPREADSHEET.fullmatch(texts[i].strip()):
            written[i] = UNREAD
    if not points and (written == COMMA).any():
        for i in np.flatnonzero(written == DOUBTFUL).tolist():
            if match := _WITH_COMMA.fullmatch(bare[i]):
                values[i], written[i] = _decimal(match), COMMA
        for i in np.flatnonzero(written == PLAIN).tolist():
            if _POINTED.fullmatch(bare[i]):
                values[i], written[i] = _whole(bare[i], "."), COMMA
    values[~np.isfinite(values)] = np.nan
    rounded = np.array([_rounding(text, value) for text, value in zip(bare, values.tolist(), strict=True)])
    signs = np.array([text[:1] for text in bare], dtype="U1")
    with np.errstate(over="ignore"):
        low = np.where(signs == "<", -np.inf, values - rounded)
        high = np.where(signs == ">", np.inf, values + rounded)
    return Numbers(values, written, [unit for _, unit in split], low, high)


def _rounding(text: str, value: float) -> float:
    """Return by how much a number may differ from what was measured, given its text."""
    if value != value or "e" in text.lower():
        return abs(value) / 100
    decimals = len(re.split("[.,]", text)[-1]) if value % 1 else text.rpartition(".")[2].count("0") * ("." in text)
    return 0.5001 * 10.0**-decimals


def _number_and_unit(text: str) -> tuple[str, str]:
    """Return a text without what people write around a number, and the common unit after it."""
    for sign, written in _ENTITIES:
        text = text.replace(sign, written)
    text = _WRAPPED.sub(r"\1", tidy(text.translate(_SIGNS).strip()))
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(each, each)) for each in text)
    for words, sign in _COMPARED:
        text = words.sub(sign, text)
    text = _FLAG_BEFORE.sub("", text)
    text = _FLAG.sub("", _SIGN.sub(r"\1\2\3", text, count=1))
    text = _MIDDLE_POINT.sub(".", _TIMES_TEN.sub(r"e\1", text))
    text = _SPACED.sub(lambda match: match.group(1) + re.sub("[ ']", "", match.group(2)), text)
    if match := _WITH_UNIT.fullmatch(text):
        unit = unit_spelling(match.group(2))
        if unit in _KNOWN_UNITS:
            return match.group(1), unit
    return text, ""


_KNOWN_UNITS = frozenset({*_UNITS.values(), *_CELLS.values()})


def is_common_unit(text: str) -> bool:
    """Return whether a unit, in any spelling, is one of those that laboratories commonly use."""
    return unit_spelling(text) in _KNOWN_UNITS


def is_pointed(text: str) -> bool:
    """Return whether a number such as 1.234 may be a thousand."""
    return _POINTED.fullmatch(text) is not None


def has_decimal_comma(text: str) -> bool:
    """Return whether a number has a decimal comma that can be nothing else."""
    return _WITH_COMMA.fullmatch(text) is not None and not _THOUSANDS.fullmatch(text)


def _whole(text: str, between: str) -> float:
    return float(text.lstrip("<>=").replace(between, ""))


def _has_digit(text: str) -> bool:
    return any(each.isdigit() for each in text)


def _decimal(match: "re.Match[str]") -> float:
    sign, whole, decimals = match.groups()
    return float(f"{sign}{whole.replace('.', '')}.{decimals}")


_ZONE = r"(?P<zone> ?(?:Z|UTC|GMT|[+-](?:0\d|1[0-5])(?::?[0-5]\d(?::?[0-5]\d)?)?))?"
"""No clock is 16 hours or more away from UTC."""
_TIME = re.compile(
    r"'?(?P<y>\d{4})(?P<d>[-/.])(?P<m>\d{2})(?P=d)(?P<day>\d{2})"
    rf"(?:[T ](?P<h>\d{{1,2}}):(?P<min>\d{{2}})(?::(?P<s>\d{{2}})(?:[.,](?P<f>\d{{1,9}}))?)?"
    rf"(?: ?(?P<half>[ap])\.?m\.?)?{_ZONE}(?:\[[\w/+-]+\])?)?'?",
    re.IGNORECASE | re.ASCII,
)
_COMPACT = re.compile(
    r"(?P<y>\d{4})(?P<m>\d{2})(?P<day>\d{2})"
    r"(?:T?(?P<h>\d{2})(?P<min>\d{2})(?:(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?(?P<zone>Z|[+-](?:0\d|1[0-5])[0-5]\d)?)?",
    re.IGNORECASE | re.ASCII,
)
TIME_SPELLINGS = "2026-02-28, 2026-02-28 06:15, 2026-02-28T06:15:00.5+01:00, 20260228061500"


_INFINITE = {"infinity": "9999-12-31T00:00:00.000000", "-infinity": "0001-01-01T00:00:00.000000"}
"""How PostgreSQL writes "without end"; both are dates that stand for none."""


def time_in_text(text: str) -> tuple[str, int | None] | None:
    """Read a time in one of the spellings that leave no doubt: ISO text, and seconds of its zone ahead of UTC or None.

    Year first, with dashes, slashes, points or nothing between; the time of day after a blank or T, on a clock of 24
    hours or of 12 with AM or PM; then a zone or none. PostgreSQL's infinity is a sentinel date. Every other text, "now"
    included, is none.

    Examples
    --------
    >>> time_in_text("2026-02-28 06:15:00-05")
    ('2026-02-28T06:15:00.000000', -18000)
    >>> time_in_text("2026-02-28 24:00")
    ('2026-03-01T00:00:00.000000', None)
    >>> time_in_text("2026-02-08 6:15 PM")
    ('2026-02-08T18:15:00.000000', None)
    >>> time_in_text("28.2.2026") is None
    True
    """
    if text.casefold() in _INFINITE:
        return _INFINITE[text.casefold()], None
    match = _TIME.fullmatch(text) or _COMPACT.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    day = f"{part['y']}-{part['m']}-{part['day']}"
    if half := part.get("half"):
        if not 1 <= int(part["h"]) <= 12:
            return None
        part["h"] = f"{int(part['h']) % 12 + 12 * (half in 'pP')}"
    if part["h"] == "24" and not (part["min"] + (part["s"] or "") + (part["f"] or "")).strip("0"):
        try:
            last = date.fromisoformat(day)
        except ValueError:
            return None
        day, part["h"] = (str(last + timedelta(1)) if last < date.max else day), "00"
    fraction = (part["f"] or "").ljust(6, "0")[:6]
    clock = f"{part['h'] or '00':0>2}:{part['min'] or '00'}:{part['s'] or '00'}.{fraction}"
    return f"{day}T{clock}", _offset(part["zone"])


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
