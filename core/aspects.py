"""The aspects of a patient's state: what is said about every lab, every drug and the stay, in words for people."""

from dataclasses import dataclass

LOOK_BACK_HOURS = 24
"""What came up to a day before admission (emergency room, pre-operative visit) belongs to the stay."""
PENDING_HOURS = 48
"""An order without a result is pending for this long."""
RECENT_HOURS = 24


@dataclass(frozen=True)
class Aspect:
    """One thing said about an item.

    Parameters
    ----------
    key : str
        Stable name, ``"last_value"``.
    words : str
        For people, after the item's name: "Potassium, last value".
    meaning : str
        A sentence for the feature dictionary.
    is_flag : bool
        A flag or count: not stored means 0. Otherwise not stored means "not measured".
    unit : str
        ``"{unit}"`` is the item's own.
    """

    key: str
    words: str
    meaning: str
    is_flag: bool
    unit: str


VALUE_ASPECTS = (
    Aspect("last_value", "last value", "Last known value", False, "{unit}"),
    Aspect("change", "change", "Last known value minus the one before", False, "{unit}"),
    Aspect("hours_between", "hours between last two", "Hours between the last two values", False, "h"),
    Aspect("slope_24h", "slope over 24 h", "Least-squares slope over the last 24 h", False, "{unit}/d"),
    Aspect("slope_stay", "slope over the stay", "Least-squares slope over the stay", False, "{unit}/d"),
    Aspect("min_stay", "minimum of the stay", "Smallest value of the stay so far", False, "{unit}"),
    Aspect("max_stay", "maximum of the stay", "Largest value of the stay so far", False, "{unit}"),
    Aspect("mean_stay", "mean of the stay", "Mean value of the stay so far", False, "{unit}"),
    Aspect("first_stay", "first of the stay", "First value of the stay", False, "{unit}"),
    Aspect("change_from_first", "change since first", "Last value minus the first of the stay", False, "{unit}"),
    Aspect("is_high", "high", "1 if the last value is above the central 90 % at this site", True, ""),
    Aspect("is_low", "low", "1 if the last value is below the central 90 % at this site", True, ""),
)
RESULT_ASPECTS = (
    Aspect("hours_since_last", "hours since last", "Hours since the last known result", False, "h"),
    Aspect("count_24h", "results in 24 h", "Number of results known in the last 24 h", True, ""),
    Aspect("count_stay", "results in the stay", "Number of results known in the stay", True, ""),
    Aspect("measured_24h", "measured in 24 h", "1 if a result became known in the last 24 h", True, ""),
    Aspect("ever", "ever measured", "1 if a result was ever known", True, ""),
)
PENDING_ASPECTS = (Aspect("pending", "pending", "1 if ordered or taken in the last 48 h and not known yet", True, ""),)
DRUG_ASPECTS = (
    Aspect("on_now", "on now", "1 if ordered in this stay and not stopped, or given in the last 24 h", True, ""),
    Aspect(
        "given_24h", "given in 24 h", "1 if given (or, without administrations, ordered) in the last 24 h", True, ""
    ),
    Aspect("hours_since_start", "hours since start", "Hours since the last start", False, "h"),
    Aspect("hours_since_last", "hours since last", "Hours since it was last started or given", False, "h"),
    Aspect(
        "count_starts", "starts in the stay", "Number of starts in the stay (administrations without orders)", True, ""
    ),
    Aspect("ever", "ever", "1 if it was ever started or given", True, ""),
)

PATIENT = "Patient"
STAY = "Stay"
UNIT = "Care unit"
ADMISSION = "Admission"
STAY_ASPECTS = (
    (PATIENT, Aspect("age_years", "age", "Age at the snapshot", False, "years")),
    (PATIENT, Aspect("is_female", "female", "1 if female", True, "")),
    (PATIENT, Aspect("is_male", "male", "1 if male", True, "")),
    (STAY, Aspect("hours_since_admission", "hours since admission", "Hours since admission", False, "h")),
    (STAY, Aspect("day_of_stay", "day of stay", "Day of the stay, 1 = day of admission", False, "d")),
    (STAY, Aspect("previous_stays", "previous stays", "Number of stays that ended before this one began", True, "")),
    (
        STAY,
        Aspect("hours_since_discharge", "hours since last discharge", "Hours since the stay before ended", False, "h"),
    ),
    (UNIT, Aspect("hours_on_unit", "hours on the unit", "Hours since arrival on the care unit", False, "h")),
)
