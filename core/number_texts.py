"""Numbers as people read them: a count with its noun, a share as a percentage."""


def counted(n: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> counted(1, "case"), counted(1204, "case"), counted(2, "study", "studies")
    ('1 case', '1,204 cases', '2 studies')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def measured_text(value: float, digits: int = 3) -> str:
    """Write a measured value with so many significant digits and no needless zeros.

    Examples
    --------
    >>> [measured_text(value) for value in (4.400000095, 138.0, 1240.2, -12.5, 0.00004, float("nan"))]
    ['4.4', '138', '1,240', '−12.5', '4e-05', '–']
    """
    if value != value:
        return "–"
    if abs(value) >= 10 ** (digits - 1):
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{digits}g}"
        if "e" in text and abs(value) >= 0.0001:
            text = f"{value:.4f}"
    return f"\N{MINUS SIGN}{text[1:]}" if text.startswith("-") else text


def fixed_text(value: float, places: int = 2) -> str:
    """Write a figure with so many decimals; what rounds to nothing has no sign.

    Examples
    --------
    >>> [fixed_text(value) for value in (0.625, -0.0876, -0.0004, float("nan"))]
    ['0.62', '−0.09', '0.00', '–']
    """
    return "–" if value != value else f"{value:z.{places}f}".replace("-", "\N{MINUS SIGN}")


def hours_text(hours: float) -> str:
    """Write a span of hours.

    Examples
    --------
    >>> [hours_text(hours) for hours in (0.4, 5.2, 72.0, 100.0)]
    ['24 min', '5 h', '72 h', '4 d']
    """
    if hours < 1:
        return f"{60 * hours:.0f} min"
    return f"{hours:.0f} h" if hours <= 72 else f"{hours / 24:.0f} d"


def percent_places(share: float) -> int:
    """Return the decimals a share needs as a percentage: one if without it the share would read as none or all."""
    return int(f"{100.0 * share:.0f}" in {"0", "100"} and share not in {0.0, 1.0})


def percent_text(share: float, places: int = 0) -> str:
    """Write a share as a percentage; 0% and 100% say none and all, so that one in a thousand is not lost.

    Examples
    --------
    >>> [percent_text(share) for share in (0.0, 0.00004, 0.004, 0.62, 0.9967, 0.99999, 1.0)]
    ['0%', '<0.1%', '0.4%', '62%', '99.7%', '>99.9%', '100%']
    """
    places = max(places, percent_places(share))
    text = f"{100.0 * share:.{places}f}"
    if 0.0 < share < 1.0 and float(text) in {0.0, 100.0}:
        unit = 10.0**-places
        return f"<{unit:.{places}f}%" if share < 0.5 else f">{100.0 - unit:.{places}f}%"
    return f"{text}%"
