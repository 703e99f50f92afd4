"""The words for what a report was made from; the report itself keeps the names and values of `SelectionDesign`."""

_NAMES = {
    "selection: preset": "choice of cases",
    "selection: seed": "seed of the choice",
    "selection: strata_by": "method whose scores divide the strata",
    "selection: edges": "edges of the strata",
    "selection: quantiles": "edges of the strata as quantiles",
    "selection: balance_decisions": "omissions and commissions half and half",
    "selection: half_in_largest": "half of the cases in the largest stratum",
}
_VALUES = {"True": "yes", "False": "no", "[]": "none"}


def design_in_words(name: str, value: str) -> tuple[str, str]:
    """Return the words for one entry of `StudyReport.design`."""
    return _NAMES.get(name, name), _VALUES.get(value, value.strip("[]"))
