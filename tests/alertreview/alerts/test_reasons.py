"""Reasons in words: each sentence says what its feature measures, and of when."""

import numpy as np
import pandas as pd
import pytest

from alertreview.alerts.reasons import ReasonLine, reasons_in_words
from core.scoring.reasons import Finding, Reason, Reasons
from core.vocabulary import Decision

DICTIONARY = pd.DataFrame(
    [
        ("Glucose, last change", "Glucose", "change", "mg/dL"),
        ("Glucose, last value", "Glucose", "last_value", "mg/dL"),
        ("IgM, ever measured", "IgM", "ever", ""),
        ("Stay: hours on this unit", "Stay", "hours_on_unit", "h"),
    ],
    columns=["name", "source", "aspect", "unit"],
)


def line(column: int, threshold: float | None, value: float, *, here: bool, in_stay: set[str]) -> ReasonLine:
    finding = Finding(column=column, threshold=threshold, below=False)
    reason = Reason(
        finding=finding, here=here, value=value, share_with=0.2, share_without=0.7, n_with=9, n_without=9, weight=1.0
    )
    (said,) = reasons_in_words(Reasons((reason,), None, False), DICTIONARY, Decision.OMISSION, in_stay).lines
    return said


def test_numbers_are_written_as_on_the_rest_of_the_page_and_limits_say_their_side() -> None:
    said = line(0, -11.0, -158.00000001, here=False, in_stay={"Glucose"})
    assert (said.finding, said.here) == ("Glucose, last change at most −11 mg/dL", "−158 mg/dL")
    said = line(1, 1e6, 1_234_567.0, here=True, in_stay={"Glucose"})
    assert (said.finding, said.here) == ("Glucose above 1,000,000 mg/dL", "1,234,567 mg/dL")
    said = line(3, 38.0, 20.53, here=True, in_stay=set())
    assert (said.finding, said.here) == ("Time on the unit above 38 h", "20.5 h")


def test_a_finding_of_the_whole_past_is_not_said_to_be_of_this_stay() -> None:
    assert line(2, None, np.nan, here=True, in_stay=set()).finding == "Had IgM before"
    assert line(1, 100.0, 250.0, here=True, in_stay=set()).here == "250 mg/dL, before this stay"
    assert line(1, 100.0, 250.0, here=True, in_stay={"Glucose"}).here == "250 mg/dL"


@pytest.mark.parametrize("column", [0, 1])
def test_what_has_no_number_is_not_said_to_be_unmeasured_or_of_another_time(column: int) -> None:
    assert line(column, 100.0, np.nan, here=False, in_stay=set()).here == "no value"
