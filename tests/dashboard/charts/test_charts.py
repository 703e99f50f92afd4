"""Figures: what they contain, what they say in words, and what they must never carry."""

import json
import random
import re
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise

import plotly.graph_objects as go
import pytest
from plotly.io import to_json
from plotly.tools import return_figure_from_figure_or_data

from alertreview.alerts.models import AlertDetail, Timeline
from alertreview.reports import figures, plot
from alertreview.scoring.models import Histogram
from core.kinds import Kind
from core.statistics.estimate import Estimate, not_computable
from core.vocabulary import CaseState, Decision
from dashboard.charts import bars as charts_bars
from dashboard.charts.base import Chart
from dashboard.charts.counts import heights
from dashboard.charts.histogram import histogram
from dashboard.charts.judgments import judgments_over_time
from dashboard.charts.palette import DARK, LIGHT, Palette, palette
from dashboard.charts.plot import chart as plotly_chart
from dashboard.charts.raw_figure import RawFigure
from dashboard.charts.timeline import DESKTOP, PHONE, RANGES, Size, timeline
from dashboard.texts import short_time
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.records import HOSTILE, SNAPSHOT

MODES = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])


@pytest.fixture
def detail() -> AlertDetail:
    return FakeApplication().worklist.alert(1000)


PROGRESS = FakeApplication().studies.progress("demo")
REPORT = FakeApplication().reports.report("ward-2025")
PRIMARY = REPORT.primary
SCORER = PRIMARY.scorers[0]


def annotations(chart: Chart) -> list[dict]:
    return chart.figure["layout"]["annotations"]


def of_histogram(detail: AlertDetail, colours: Palette = LIGHT, **more: object) -> Chart:
    score = more.pop("score", detail.row.scaled_score)
    data = more.pop("data", detail.scaled_histogram)
    return histogram(data, score, detail.row.decision, colours, title="Scaled score", task_name="Troponin I", **more)


@MODES
def test_every_figure_is_one_that_plotly_accepts_and_has_a_sentence(detail: AlertDetail, colours: Palette) -> None:
    report = FakeApplication().reports.report("ward-2025")
    described = [
        figures.roc(report.primary, "softhad"),
        figures.alert_rate(report.primary.alert_rates[0], 0.25),
        figures.auc_of_methods(report.primary, "softhad"),
        figures.agreement_of_readers(report.agreement),
        figures.auc_by_reader(report.readers, "softhad"),
        figures.flow(report.flow),
        figures.settings_curves(
            ["1", "2"], {"A": [Estimate(0.7, 0.6, 0.8), not_computable("no case")]}, "x", "y", own=1
        ),
    ]
    charts = [
        of_histogram(detail, colours, budget=0.6),
        timeline(detail.patient.timeline, detail.row.kind, colours),
        timeline(detail.patient.timeline, Kind.MEDICATION, colours, size=PHONE),
        charts_bars.alerts_by_unit([("Medical ICU", 8, 1)], colours),
        charts_bars.case_states({CaseState.MAJORITY: 3, CaseState.OPEN: 1}, colours),
        judgments_over_time(PROGRESS, colours, is_open=True),
        *(plotly_chart(plot, colours, narrow=narrow) for plot in described for narrow in (False, True)),
    ]
    for chart in charts:
        assert chart is not None
        built = go.Figure(chart.figure)  # raises for an unknown property
        as_it_is = return_figure_from_figure_or_data(RawFigure(chart.figure), validate_figure=True)
        for part in ("data", "layout"):
            checked, drawn = (json.loads(to_json(one, validate=False))[part] for one in (built, as_it_is))
            if part == "layout":  # an empty template, which Plotly's Python adds
                checked.pop("template")
            assert checked == drawn
        assert chart.alt.endswith(".")
        assert len(chart.alt) > 20
        # Handed over twice, as Streamlit does, it is the same figure to Plotly and is drawn once.
        assert "template" not in chart.figure["layout"]
        assert "datarevision" in chart.figure["layout"]
        assert len(json.dumps(chart.figure)) < 20_000


def test_the_rest_of_a_study_is_forecast_at_the_pace_so_far() -> None:
    begin = date(2026, 11, 1)
    data = replace(PROGRESS, n_slots=100, judged_by=((begin, 10), (begin + timedelta(days=4), 40)))
    data = replace(data, today=begin + timedelta(days=9))
    chart = judgments_over_time(data, LIGHT, is_open=True)
    assert chart is not None
    assert (
        chart.alt
        == "40 of 100 judgments by 10 Nov 2026, the first on 1 Nov 2026. At this pace the last comes on 25 Nov 2026."
    )
    assert [note["text"] for note in annotations(chart)] == ["all 100 judgments", "25 Nov 2026 at this pace"]
    assert chart.figure["data"][0]["y"] == [10, 40, 40], "who rests gets no further"
    assert [shape["x1"] for shape in chart.figure["layout"]["shapes"]] == ["2026-11-25", "2026-11-25"]
    never = replace(data, n_slots=100_000)
    for other, is_open in ((data, False), (replace(data, n_slots=40), True), (never, True)):
        chart = judgments_over_time(other, LIGHT, is_open=is_open)
        assert chart is not None
        assert "pace" not in chart.alt + str(annotations(chart))
    assert judgments_over_time(replace(data, judged_by=data.judged_by[:1]), LIGHT, is_open=True) is None


@pytest.mark.parametrize("score", [0.01, 0.33, 0.5, 0.97, 1.0])
def test_the_arrow_stands_at_the_score_and_on_top_of_its_bin(detail: AlertDetail, score: float) -> None:
    chart = of_histogram(detail, score=score)
    arrow = next(a for a in annotations(chart) if a["showarrow"])
    assert arrow["x"] == score
    place = min(int(score * 40), 39)
    assert arrow["y"] in heights(detail.scaled_histogram.counts[max(place - 1, 0) : place + 1])
    assert f"{score:.2f}" in arrow["text"]
    assert arrow["xanchor"] == ("right" if score > 0.8 else "left" if score < 0.2 else "center")


def test_the_words_of_an_arrow_at_the_tallest_bin_stand_beside_it(detail: AlertDetail) -> None:
    for place, side in ((3, "left"), (37, "right")):
        counts = [5] * 40
        counts[place] = 900
        data = replace(detail, scaled_histogram=replace(detail.scaled_histogram, counts=tuple(counts)))
        arrow = next(a for a in annotations(of_histogram(data, score=(place + 0.5) / 40)) if a["showarrow"])
        assert (arrow["ay"], arrow["xanchor"]) == (0, side), "above it they would be cut"


def test_the_arrow_has_the_colour_of_its_decision(detail: AlertDetail) -> None:
    omission = of_histogram(detail)
    commission = of_histogram(replace(detail, row=replace(detail.row, decision=Decision.COMMISSION)))
    assert next(a for a in annotations(omission) if a["showarrow"])["arrowcolor"] == LIGHT.omission_text
    assert next(a for a in annotations(commission) if a["showarrow"])["arrowcolor"] == LIGHT.commission_text


@pytest.mark.parametrize(("score", "side"), [(0.67, "left"), (0.3, "right"), (0.9, "right"), (0.741, "right")])
def test_the_words_at_the_budget_keep_clear_of_the_arrow_before_it(
    detail: AlertDetail, score: float, side: str
) -> None:
    words, arrow = of_histogram(detail, score=score, budget=0.74).figure["layout"]["annotations"]
    assert (words["text"], words["xanchor"]) == ("alert budget", side)
    if words["xanchor"] == "left" and 0 < 0.74 - score < 0.15:
        assert arrow["xanchor"] == "right", "in a narrow card words above the arrow reach over the line"


def test_a_histogram_carries_bins_only(detail: AlertDetail) -> None:
    chart = of_histogram(detail, budget=0.6)
    trace = chart.figure["data"][0]
    assert len(trace["x"]) == len(trace["y"]) == len(detail.scaled_histogram.counts)
    assert sum(trace["customdata"]) == sum(detail.scaled_histogram.counts)
    strong = [c == LIGHT.bars_strong for c in trace["marker"]["color"]]
    assert strong == [edge >= 0.6 for edge in detail.scaled_histogram.edges[:-1]]


@pytest.mark.parametrize("peak", [0, 1, 9, 17, 1_599, 2_000_000])
def test_a_bar_of_thousands_leaves_a_single_instance_visible(detail: AlertDetail, peak: int) -> None:
    chart = of_histogram(detail, data=Histogram((0.0, 0.5, 1.0), (peak, min(peak, 1))), score=0.75)
    tall, small = chart.figure["data"][0]["y"]
    assert tall**2 == pytest.approx(peak, abs=0.5, rel=1e-6)
    assert small == min(peak, 1)
    counts = chart.figure["layout"]["yaxis"]
    # Each tick stands where a bar of its count ends.
    assert counts["tickvals"] == pytest.approx(
        [int(text.replace(",", "")) ** 0.5 for text in counts["ticktext"]], abs=1e-4
    )
    assert counts["range"][1] > tall
    assert peak < 16 or len(counts["tickvals"]) == 4


def test_the_sentence_of_a_histogram_counts_what_lies_above() -> None:
    edges = tuple(i / 10 for i in range(11))
    data = Histogram(edges, (5, 4, 3, 2, 1, 0, 0, 0, 2, 1))
    detail = FakeApplication().worklist.alert(1000)
    chart = of_histogram(detail, data=data, score=0.75)
    assert "18 scores" in chart.alt
    assert "3 instances lie in bins above it" in chart.alt
    assert "No scores" in of_histogram(detail, data=Histogram((0.0, 1.0), (0,))).alt


def test_a_score_outside_the_bins_widens_the_axis(detail: AlertDetail) -> None:
    low, high = of_histogram(detail, score=1.7).figure["layout"]["xaxis"]["range"]
    assert low == 0.0
    assert high > 1.7


def test_the_time_line_places_hours_from_the_snapshot(detail: AlertDetail) -> None:
    chart = timeline(detail.patient.timeline, Kind.LAB_ORDER, LIGHT)
    orders = chart.figure["data"][0]
    assert orders["x"] == [-50.0, -38.0, -27.0, -19.0]
    ticks = chart.figure["layout"]["xaxis"]
    assert ticks["tickvals"] == [-56.0, -32.0, -8.0, 16.0]
    assert ticks["ticktext"] == ["25 Nov", "26 Nov", "27 Nov", "28 Nov"]
    assert any("08:00" in a["text"] for a in annotations(chart))


def test_an_omission_is_an_empty_dashed_box_and_a_commission_diamonds_at_its_times() -> None:
    omission, commission = FakeApplication().worklist.alert(1000), FakeApplication().worklist.alert(1003)

    def boxes(chart: Chart) -> list[dict]:
        return [s for s in chart.figure["layout"]["shapes"] if s.get("yref") == "y" and s["type"] == "rect"]

    empty = timeline(omission.patient.timeline, omission.row.kind, LIGHT)
    assert [box["line"]["dash"] for box in boxes(empty)] == ["dash"]
    assert any("not ordered" in a["text"] for a in annotations(empty))
    at_night = SNAPSHOT + timedelta(hours=22, minutes=26)
    taken = replace(commission.patient.timeline, orders_in_window=(at_night, at_night + timedelta(minutes=90)))
    filled = timeline(taken, Kind.MEDICATION, LIGHT)
    assert not boxes(filled), "nothing is drawn from the snapshot on, when it was done later"
    diamonds = filled.figure["data"][0]
    assert diamonds["x"][-2:] == [22.433, 23.933]
    assert diamonds["marker"]["color"][-2:] == [LIGHT.commission] * 2
    assert diamonds["customdata"][-2] == "28 Nov 06:26"
    (words,) = [a for a in annotations(filled) if "28 Nov 06:26, 2×" in a["text"]]
    assert words["xanchor"] == "right", "from the diamond on it would leave the chart"
    assert diamonds["cliponaxis"] is False, "a diamond late in the window would lose its right half"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("back", list(RANGES))
@pytest.mark.parametrize("n_taken", [0, 1, 3])
@pytest.mark.parametrize("days", [1, 3, 20, 400])
@pytest.mark.parametrize("window_hours", [0.4, 9.0, 17.0, 24.0])
def test_the_words_of_a_decision_stand_once_and_within_the_chart(
    detail: AlertDetail, size: Size, back: str, n_taken: int, days: int, window_hours: float
) -> None:
    cut = replace(detail.patient.timeline, admitted_at=SNAPSHOT - timedelta(days=days), window_hours=window_hours)
    for hour in (20,) if n_taken != 1 else range(24):
        taken = tuple(SNAPSHOT + timedelta(hours=hour + i) for i in range(n_taken))
        words_within(replace(cut, orders_in_window=taken), size, back)


def words_within(data: Timeline, size: Size, back: str) -> None:
    taken = data.orders_in_window
    chart = timeline(data, Kind.LAB_ORDER, LIGHT, size=size, back=back)
    start, end = chart.figure["layout"]["xaxis"]["range"]
    pixels_an_hour = (195 if size.phone else 490) / (end - start)
    (words,) = [a for a in annotations(chart) if (short_time(taken[0]) if taken else "not ordered") in a["text"]]
    text = re.sub("<br>", "\n", words["text"])
    n_letters = len(re.sub("<[^>]*>", "", text).splitlines()[-1])
    if words.get("xref") == "paper":
        assert 6.2 * n_letters <= size.left
        return
    width = 6 * n_letters
    left = {"left": 0, "center": width / 2, "right": width}[words.get("xanchor", "center")]
    x = words["x"] * pixels_an_hour + words.get("xshift", 0) - left
    assert x >= 0, "the words would cross the line of the snapshot"
    assert x + width <= (end * pixels_an_hour) + size.right


def test_a_window_cut_short_is_drawn_and_called_as_long_as_it_is(detail: AlertDetail) -> None:
    for window_hours, said in ((24.0, "24 h"), (9.2, "9 h"), (0.4, "24 min")):
        chart = timeline(replace(detail.patient.timeline, window_hours=window_hours), Kind.LAB_ORDER, LIGHT)
        window = chart.figure["layout"]["shapes"][0]
        assert (window["x0"], window["x1"]) == (0, window_hours)
        assert f"next {said}" in [one["text"] for one in annotations(chart)]
        assert f"the {said} decision window" in chart.alt


def test_labs_and_drugs_without_a_lane_are_counted(detail: AlertDetail) -> None:
    data = detail.patient.timeline
    assert len(data.labs) > DESKTOP.n_labs
    more = replace(data, drugs=tuple(replace(data.drugs[-1], name=f"Drug {i}") for i in range(DESKTOP.n_drugs + 2)))
    words = f"+ {len(data.labs) - DESKTOP.n_labs} labs, 2 drugs"
    assert words in [a["text"] for a in annotations(timeline(more, Kind.LAB_ORDER, LIGHT))]
    few = replace(data, labs=data.labs[:2], drugs=data.drugs[:1])
    assert not [a for a in annotations(timeline(few, Kind.LAB_ORDER, LIGHT)) if a["text"].startswith("+")]


@pytest.mark.parametrize(("back", "start"), [("24 h", -24.0), ("72 h", -72.0), ("7 d", -168.0), ("Stay", -302.0)])
def test_a_range_shows_that_much_of_the_stay(detail: AlertDetail, back: str, start: float) -> None:
    data = replace(detail.patient.timeline, admitted_at=SNAPSHOT - timedelta(hours=300))
    axis = timeline(data, Kind.LAB_ORDER, LIGHT, back=back).figure["layout"]["xaxis"]
    assert axis["range"][0] == start
    assert 2 <= len(axis["tickvals"]) <= 10


def test_what_was_measured_before_the_admission_is_drawn_whole(detail: AlertDetail) -> None:
    first = SNAPSHOT - timedelta(hours=35)  # in the emergency room
    lab = replace(detail.patient.timeline.labs[0], times=(first,), values=(1.0,))
    data = replace(detail.patient.timeline, admitted_at=SNAPSHOT - timedelta(hours=33), labs=(lab,))
    start, _ = timeline(data, Kind.LAB_ORDER, LIGHT).figure["layout"]["xaxis"]["range"]
    assert start <= -36, "at the very edge a dot is cut in half"


def test_a_stay_of_a_year_has_a_tick_now_and_then(detail: AlertDetail) -> None:
    data = replace(detail.patient.timeline, admitted_at=SNAPSHOT - timedelta(days=400))
    for size in (DESKTOP, PHONE):
        axis = timeline(data, Kind.LAB_ORDER, LIGHT, size=size, back="Stay").figure["layout"]["xaxis"]
        assert len(axis["tickvals"]) <= 10


def test_without_a_reference_range_nothing_is_flagged(detail: AlertDetail) -> None:
    lab = detail.patient.timeline.labs[0]
    bare = replace(lab, low=None, high=None, usual_low=lab.values[0], usual_high=lab.values[0])
    chart = timeline(replace(detail.patient.timeline, labs=(bare,)), Kind.LAB_ORDER, LIGHT)
    assert set(chart.figure["data"][1]["marker"]["symbol"]) == {"circle"}
    assert not any(arrow in a["text"] for a in annotations(chart) for arrow in ("↑", "↓"))
    assert "high" not in chart.alt
    assert "low" not in chart.alt


def test_marker_shapes_say_in_range_above_and_below(detail: AlertDetail) -> None:
    chart = timeline(detail.patient.timeline, Kind.LAB_ORDER, LIGHT)
    for trace, lab in zip(chart.figure["data"][1:5], detail.patient.timeline.labs, strict=False):
        for value, symbol in zip(trace["y"], trace["marker"]["symbol"], strict=True):
            expected = "triangle-up" if value > lab.high else "triangle-down" if value < lab.low else "circle"
            assert symbol == expected


def test_no_drug_bar_reaches_past_the_snapshot(detail: AlertDetail) -> None:
    drug = detail.patient.timeline.drugs[0]
    late = replace(drug, periods=((SNAPSHOT - timedelta(hours=4), SNAPSHOT + timedelta(hours=9)),))
    chart = timeline(replace(detail.patient.timeline, drugs=(late,)), Kind.LAB_ORDER, LIGHT)
    bars = [
        s for s in chart.figure["layout"]["shapes"] if s["type"] == "rect" and s.get("fillcolor") == LIGHT.bars_strong
    ]
    assert [(bar["x0"], bar["x1"]) for bar in bars] == [(-4.0, 0.0)]


def test_a_time_line_with_nothing_known_still_shows_the_decision(detail: AlertDetail) -> None:
    bare = replace(detail.patient.timeline, labs=(), drugs=(), past_orders=())
    chart = timeline(bare, Kind.MEDICATION, LIGHT)
    go.Figure(chart.figure)
    assert chart.figure["layout"]["xaxis"]["range"][0] == -18.0
    assert "0 administrations before, none in the window" in chart.alt


def test_lanes_never_overlap_for_any_number_of_labs_and_drugs(detail: AlertDetail) -> None:
    for n_labs in range(5):
        for n_drugs in range(5):
            data = replace(
                detail.patient.timeline,
                labs=detail.patient.timeline.labs[:n_labs],
                drugs=detail.patient.timeline.drugs[:n_drugs],
            )
            layout = timeline(data, Kind.LAB_ORDER, LIGHT, size=DESKTOP).figure["layout"]
            domains = sorted(v["domain"] for k, v in layout.items() if k.startswith("yaxis"))
            assert domains[0][0] >= -1e-9
            assert all(share == round(share, 3) for pair in domains for share in pair), "none looks like a score"
            assert domains[-1][1] <= 1.0
            assert all(below[1] <= above[0] + 1e-9 for below, above in pairwise(domains))


def test_commission_bars_are_hatched_and_both_are_named(detail: AlertDetail) -> None:
    chart = charts_bars.alerts_by_unit([("Medical ICU", 8, 1), ("Neuro ICU", 0, 3)], LIGHT)
    omissions, commissions = chart.figure["data"]
    assert commissions["marker"]["pattern"]["shape"] == "/"
    assert "pattern" not in omissions["marker"]
    assert [a["text"] for a in annotations(chart)] == ["■ Omission", "▨ Commission"]
    assert {(a["x"], a["xanchor"]) for a in annotations(chart)} == {(1, "right")}, "a phone has no room right of them"
    assert "Medical ICU: 8 omissions, 1 commission" in chart.alt


def test_states_of_cases_add_up() -> None:
    random_ = random.Random(1)
    for _ in range(20):
        states = {state: random_.randrange(0, 30) for state in CaseState}
        chart = charts_bars.case_states(states, LIGHT)
        assert sum(bar["x"][0] for bar in chart.figure["data"]) == sum(states.values())


def test_no_tag_from_a_name_reaches_a_figure() -> None:
    double = FakeApplication(hostile=True)
    detail = double.worklist.alert(1001)
    charts = [
        timeline(detail.patient.timeline, detail.row.kind, LIGHT),
        charts_bars.alerts_by_unit([(HOSTILE, 3, 1)], LIGHT),
    ]
    for chart in charts:
        text = json.dumps(chart.figure)
        assert "<img" not in text
        assert "<a " not in text
        assert len(text) < 20_000


def interval_plot(**rows: Estimate) -> plot.Plot | None:
    scorers = [replace(SCORER, scorer=name, label=name, auc_weighted=found) for name, found in rows.items()]
    return figures.auc_of_methods(replace(PRIMARY, scorers=tuple(scorers)), "A")


def test_a_value_without_interval_is_drawn_without_one() -> None:
    chart = plotly_chart(interval_plot(A=Estimate(0.7), B=Estimate(0.6, 0.5, 0.7)), LIGHT)
    assert chart is not None
    assert len([s for s in chart.figure["layout"]["shapes"] if s["y0"] == s["y1"]]) == 1


def test_on_a_phone_values_stand_under_the_names_where_they_cover_no_dot() -> None:
    found = Estimate(0.98, 0.95, 0.99)
    wide, narrow = (plotly_chart(interval_plot(A=found), LIGHT, narrow=one) for one in (False, True))
    assert wide is not None
    assert narrow is not None
    assert [found.text() in a["text"] for a in annotations(wide)] == [False, True]
    assert [a["text"] for a in annotations(narrow)] == ["chance"]
    assert narrow.figure["layout"]["yaxis"]["ticktext"] == [f"A<br>{found.text()}"]
    assert narrow.alt == wide.alt


def test_the_roc_is_square_and_names_its_curves() -> None:
    chart = plotly_chart(figures.roc(PRIMARY, "softhad"), LIGHT)
    assert chart is not None
    assert chart.figure["layout"]["yaxis"]["scaleanchor"] == "x"
    text = " ".join(a["text"] for a in annotations(chart))
    assert "<b>SoftHAD</b>" in text
    assert "dashed" in text
    assert "Chance" in text


def test_page_and_document_have_the_same_colours() -> None:
    assert {tone: getattr(LIGHT, tone) for tone in plot.Tone} == plot.LIGHT


def test_an_unknown_mode_is_light() -> None:
    assert palette(None) is LIGHT
    assert palette("dark") is DARK


def luminance(colour: str) -> float:
    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@MODES
def test_words_and_bars_keep_their_contrast_to_the_page(colours: Palette) -> None:
    for name in ("text", "muted", "accent", "omission_text", "commission_text", "attention"):
        assert contrast(getattr(colours, name), colours.page) >= 4.5, name
    for name in ("bars", "bars_strong", "omission", "commission", "ink"):
        assert contrast(getattr(colours, name), colours.page) >= 3.0, name
