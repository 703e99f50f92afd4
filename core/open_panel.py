"""What is said of an open panel, a study whose readers may see the scores: the mark and the sentence, in one place."""

from collections.abc import Mapping

READING = "reading"
"""Line of a study's design that says how its cases are read; a blinded study has no such line."""
OPEN_PANEL = "open panel: readers saw the scores"
"""What marks an open panel on pages, in reports and in exported files."""
OPEN_PANEL_LIMIT = (
    "Open panel: readers see the scores, and can see what the ward noted and what came later, before they judge. "
    "AUC and agreement are flattered by that, and do not replace those of a blinded study."
)
"""What an open panel's figures cannot say."""
BLINDED = "blinded"
"""How the cases of every other study are read."""


def reading(design: Mapping[str, str]) -> str:
    """Say how the cases of a study are read: BLINDED or OPEN_PANEL.

    Parameters
    ----------
    design : mapping of str to str
        Of the study's report.
    """
    return design.get(READING, BLINDED)


def is_open_panel(design: Mapping[str, str]) -> bool:
    """Tell from a study's design whether its readers saw the scores.

    Examples
    --------
    >>> is_open_panel({"reading": "open panel: readers saw the scores"})
    True
    >>> is_open_panel({"scoring run": "1"})
    False
    """
    return reading(design) == OPEN_PANEL
