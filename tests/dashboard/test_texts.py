"""Words and numbers, and links that hold nothing of a person."""

from dataclasses import replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alertreview.alerts.models import FilterChoices, WorklistFilters
from alertreview.alerts.triage_models import Grouping, ListOrder, TriageChoice
from core.kinds import Kind, task_key
from core.statistics.estimate import Estimate, not_computable
from core.vocabulary import Decision
from dashboard import texts
from dashboard.components import links
from dashboard.components.filters import BUDGETS, PAGE_DEFAULTS


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.7, "1 min 0 s"), (112.4, "1 min 52 s"), (3599.6, "1 h 0 min")]
)
def test_durations_are_rounded_before_they_are_divided(seconds: float, text: str) -> None:
    assert texts.duration(seconds) == text


CHOICES = FilterChoices(
    ("Medical ICU", "Neuro ICU"),
    (("lab:k", "Potassium"), ("med:hep", "Heparin, IV"), (task_key(Kind.LABEL, "fall"), "Falls")),
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.62, "0.62"),
        (138.4, "138"),
        (1240.0, "1,240"),
        (5.234, "5.23"),
        (0.00004, "4e-05"),
        (0.0012, "0.0012"),
        (-3.25, "−3.25"),
    ],
)
def test_measured_values_have_three_digits_and_no_needless_zeros(value: float, text: str) -> None:
    assert texts.number(value) == text


def test_a_missing_value_is_a_dash() -> None:
    assert texts.number(float("nan")) == "–"


def test_scores_get_as_many_digits_as_tell_them_apart() -> None:
    assert texts.score_digits([0.97, 0.95, 0.91]) == 2
    assert texts.score_digits([0.9991, 0.9981, 0.9972, 0.9963]) == 3
    assert texts.score_digits([0.99991, 0.99985, 0.99979, 0.99969]) == 4


def test_times_and_counts_read_as_sentences_do() -> None:
    when = datetime(2026, 11, 7, 8, 5, tzinfo=ZoneInfo("Europe/Vienna"))
    assert texts.day_time(when) == "7 Nov 2026, 08:05"
    assert texts.hours(0.5) == "30 min"
    assert texts.hours(19.2) == "19 h"
    assert texts.hours(100) == "4 d"
    assert texts.plural(1, "alert") == "1 alert"
    assert texts.plural(1204, "alert") == "1,204 alerts"
    assert texts.person("F", 71.9) == "71 y, female"
    assert texts.person("", None) == ""
    assert texts.minutes_left(0) == "nothing left"
    assert texts.minutes_left(12) == "about 25 min"
    assert texts.minutes_left(200) == "about 6.7 h"


@given(st.text(max_size=200))
def test_text_from_outside_keeps_no_working_markdown(text: str) -> None:
    shown = texts.plain(text, 500)
    for place, letter in enumerate(shown):
        if letter in "*_[]<>`$:#|~!":
            assert shown[place - 1] == "\\"
    unescaped = shown.replace("\u2060", "")
    assert unescaped.count("\n") == 0


@given(st.text(min_size=1, max_size=2000), st.integers(2, 90))
def test_shortened_text_is_never_longer_than_asked(text: str, limit: int) -> None:
    assert len(texts.shorten(text, limit)) <= limit


def test_addresses_in_names_are_not_made_into_links() -> None:
    shown = texts.plain("see http://example.org or www.example.org or a@example.org")
    assert "http\u2060" in shown
    assert "www\u2060" in shown
    assert "a\u2060" in shown


def test_guidelines_and_headlines_keep_bold_words_only() -> None:
    assert texts.guideline("- **Usual**: [x](http://y)").startswith("- **Usual**")
    assert "[x]" not in texts.guideline("- **Usual**: [x](http://y)")
    assert texts.bold_only("ranks **78 times in 100** <b>") == r"ranks **78 times in 100** \<b\>"


def test_a_tile_shows_the_reason_where_a_figure_is_missing() -> None:
    label, value, line = texts.estimate_tile("AUC", not_computable("no positive case"), "about")
    assert (label, value) == ("AUC", "–")
    assert "no positive case" in line
    assert texts.estimate_tile("Rate", Estimate(0.62, 0.51, 0.72), "by budget", percentage=True)[1] == "62%"
    assert texts.estimate_tile("κ", Estimate(-0.23, -0.3, -0.16), "raw")[2] == "−0.30 to −0.16, raw"


filters = st.builds(
    WorklistFilters,
    run_id=st.just(2),
    decision=st.none() | st.sampled_from(Decision),
    kind=st.none() | st.sampled_from(Kind),
    unit=st.sampled_from(["", *CHOICES.units]),
    task_key=st.sampled_from(["", *(key for key, _ in CHOICES.tasks)]),
    text=st.sampled_from(["", "hep", "Potass"]),
    alerts_per_patient_day=st.sampled_from(BUDGETS),
    include_cut_windows=st.booleans(),
)


@given(filters)
def test_filters_survive_the_address(given_filters: WorklistFilters) -> None:
    params = links.params_of(given_filters, CHOICES, latest_run=2)
    assert links.filters_from(params, CHOICES, 2) == given_filters


def test_default_filters_leave_the_address_empty() -> None:
    assert links.params_of(replace(PAGE_DEFAULTS, run_id=2), CHOICES, latest_run=2) == {}
    assert links.params_of(replace(PAGE_DEFAULTS, run_id=1), CHOICES, latest_run=2) == {"run": "1"}


def test_every_filter_but_the_patient_survives_the_address() -> None:
    choices = replace(CHOICES, days=(date(2026, 1, 1), date(2026, 12, 31)), scores=(0.304, 0.981))
    filters = replace(
        PAGE_DEFAULTS,
        run_id=2,
        scorer="pair",
        triage=TriageChoice.SNOOZED,
        first_day=date(2026, 3, 1),
        last_day=date(2026, 3, 2),
        lowest_score=0.5,
        highest_score=0.75,
        grouping=Grouping.EPISODE,
        order=ListOrder.NEWEST,
        include_cut_windows=True,
        patient_id="canary",
    )
    params = links.params_of(filters, choices, latest_run=2)
    assert "canary" not in str(params)
    read = links.filters_from(params, choices, 2, patient="canary", scorers=("softhad", "pair"))
    assert read == filters


def test_days_and_scores_that_the_run_does_not_have_are_not_filtered_by() -> None:
    choices = replace(CHOICES, days=(date(2026, 1, 1), date(2026, 12, 31)), scores=(0.3, 0.9))
    wild = {"from": "2025-12-31", "to": "soon", "least": "0.2", "most": "nan", "group": "x", "scorer": "magic"}
    assert links.filters_from(wild, choices, 2, scorers=("softhad",)) == replace(PAGE_DEFAULTS, run_id=2)


@given(st.text(min_size=1, max_size=30))
def test_a_search_text_stands_in_the_address_only_when_it_is_part_of_a_tasks_name(text: str) -> None:
    params = links.params_of(WorklistFilters(text=text), CHOICES)
    part = any(text.lower() in name.lower() for _, name in CHOICES.tasks)
    assert ("find" in params) == part


def test_what_the_widgets_do_not_offer_is_not_filtered_by() -> None:
    wild = {"decision": "both", "kind": "x", "unit": "Elsewhere", "task": "lab:none", "budget": "nan", "cut": "yes"}
    assert links.filters_from(wild, CHOICES, 2) == replace(PAGE_DEFAULTS, run_id=2)
    assert links.filters_from({"budget": "0.3"}, CHOICES, 2).alerts_per_patient_day == 0.25
    assert links.filters_from({"budget": "many"}, CHOICES, 2).alerts_per_patient_day == 0.25


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("-1", None), ("1e3", None), ("", None), (None, None), ("٣", None), ("9" * 20, None)],
)
def test_an_id_is_a_whole_number_or_nothing(text: str | None, number: int | None) -> None:
    assert links.whole_number(text, int) == number


def test_clearing_one_filter_keeps_the_others() -> None:
    both = WorklistFilters(unit="Neuro ICU", kind=Kind.LAB_ORDER)
    assert links.without(both, "unit") == WorklistFilters(kind=Kind.LAB_ORDER)
    assert links.next_budget(WorklistFilters(alerts_per_patient_day=0.25)) == 0.5
    assert links.next_budget(WorklistFilters(alerts_per_patient_day=5.0)) is None


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("10^9/L", "10⁹/L"),
        ("10*3/uL", "10³/µL"),
        ("m^-2", "m^-2"),
        ("degC", "°C"),
        ("ug/kg/min", "µg/kg/min"),
        ("uIU/mL", "µIU/mL"),
        ("units/h", "units/h"),
        ("mmol/L", "mmol/L"),
        ("%", "%"),
        ("", ""),
    ],
)
def test_units_are_written_as_they_are_printed(given: str, printed: str) -> None:
    assert texts.unit(given) == printed


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Heparin not given", "Heparin not given"),
        ("Basic metabolic panel, blood count, minerals not measured", "Basic metabolic panel,… not measured"),
        ("Basic metabolic panel and minerals: 8 labs not ordered", "Basic metabolic…: 8 labs not ordered"),
        ("Vancomycin trough level in serum given, 3 days", "Vancomycin trough lev… given, 3 days"),
        ("Vancomycin trough level in serum given and 12 more", "Vancomycin trough… given and 12 more"),
    ],
)
def test_a_line_that_is_too_long_still_says_what_was_decided(words: str, shown: str) -> None:
    assert texts.decision_line(words) == shown
