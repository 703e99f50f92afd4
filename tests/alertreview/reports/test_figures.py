"""Figures as they are described, and their SVG."""

import re
import zlib
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
import typst

from alertreview.reports import figures
from alertreview.reports.plot import Anchor, Axis, Curve, Dots, Plot, Segment, Stroke, Words, draw_svg
from core.statistics.estimate import Estimate, not_computable
from core.studies.make_report import study_report
from core.studies.report import AgreementFigures, AgreementReport, FlowDiagram, PairAgreement, StudyReport
from core.studies.selection import SelectionDesign
from tests.support.simulated_study import simulate_study

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report() -> StudyReport:
    return study_report(simulate_study(seed=5, n_patients=20, n_per_patient=20, design=SelectionDesign(n_cases=60)))


def drawn(plot: Plot | None) -> ET.Element:
    assert plot is not None
    return ET.fromstring(draw_svg(plot))


def words(picture: ET.Element) -> list[str]:
    return [text.text or "" for text in picture.iter(f"{SVG}text")]


def every_figure(report: StudyReport) -> list[Plot]:
    primary = report.primary
    made = [
        figures.roc(primary, report.primary_scorer),
        figures.alert_rate(primary.alert_rates[0], 0.25),
        figures.auc_of_methods(primary, report.primary_scorer),
        figures.agreement_of_readers(report.agreement),
        figures.auc_by_reader(report.readers, report.primary_scorer),
        figures.flow(report.flow),
    ]
    return [plot for plot in made if plot is not None]


def test_every_figure_of_a_report_is_drawn_inside_its_frame_and_says_what_it_shows(report: StudyReport) -> None:
    assert len(every_figure(report)) == 6
    for plot in every_figure(report):
        picture = drawn(plot)
        width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
        for text in picture.iter(f"{SVG}text"):
            assert 0 <= float(text.attrib["x"]) <= width
            assert 0 <= float(text.attrib["y"]) <= height
        for line in picture.iter(f"{SVG}polyline"):
            for point in line.attrib["points"].split():
                x, y = map(float, point.split(","))
                assert -1 <= x <= width
                assert -1 <= y <= height
        assert picture.attrib["aria-label"] == plot.alt == picture.findtext(f"{SVG}title")
        assert plot.alt.endswith(".")
        assert draw_svg(plot) == draw_svg(plot)


def test_an_axis_of_intervals_is_no_wider_than_what_is_drawn(report: StudyReport) -> None:
    for plot in (
        figures.auc_of_methods(report.primary, report.primary_scorer),
        figures.agreement_of_readers(report.agreement),
        figures.auc_by_reader(report.readers, report.primary_scorer),
    ):
        assert plot is not None
        drawn = [end[0] for mark in plot.marks if isinstance(mark, Segment) for end in (mark.start, mark.end)]
        assert max(drawn) - min(drawn) > 0.8 * (plot.x.high - plot.x.low)


def test_the_primary_curve_comes_first_and_then_the_best(report: StudyReport) -> None:
    first = report.primary.scorers[0]
    scorers = tuple(
        replace(first, scorer=name, label=name, auc_weighted=Estimate(auc))
        for name, auc in (("weak", 0.6), ("ours", 0.7), ("strong", 0.8))
    )
    plot = figures.roc(replace(report.primary, scorers=scorers), "ours", most=2)
    assert plot is not None
    assert [key.name for key in plot.key] == ["ours", "strong", "Chance"]


def test_curves_without_weights_are_said_to_be_so(report: StudyReport) -> None:
    first = report.primary.scorers[0]
    empty = replace(first.roc_weighted, false_alert_fraction=(), found_fraction=(), reason="no weights")
    plot = figures.roc(replace(report.primary, scorers=(replace(first, roc_weighted=empty),)), first.scorer)
    assert plot is not None
    assert "without weights" in plot.alt
    assert first.auc_naive.text() in plot.alt


def test_a_figure_that_leaves_methods_out_says_so(report: StudyReport) -> None:
    few = figures.roc(report.primary, report.primary_scorer, most=1)
    assert few is not None
    assert f"best 1 of {len(report.primary.scorers)} methods" in " ".join(words(drawn(few)))
    curves = {f"method {number}": [Estimate(0.5), Estimate(0.6)] for number in range(9)}
    said = " ".join(words(drawn(figures.settings_curves(["1", "2"], curves, "nodes", "AUC"))))
    assert "method 6" in said
    assert "method 7" not in said
    assert "nodes; first 7 of 9 methods" in said


def test_what_cannot_be_computed_is_no_figure(report: StudyReport) -> None:
    none = not_computable("no positive case")
    first = report.primary.scorers[0]
    empty = replace(first.roc_weighted, false_alert_fraction=(), found_fraction=(), band_at=())
    nothing = replace(
        report.primary,
        scorers=(replace(first, auc_weighted=none, auc_naive=none, roc_weighted=empty, roc_naive=empty),),
    )
    assert figures.roc(nothing, first.scorer) is None
    assert figures.auc_of_methods(nothing, first.scorer) is None
    assert figures.alert_rate(replace(report.primary.alert_rates[0], points=()), 0.25) is None


@pytest.mark.parametrize(
    "rates", [(0.3, 0.5, 0.4, 0.6), (0.8, 0.6, 0.5, 0.2), (0.2, 0.4, 0.6, 0.85), (0.5, 0.4, 0.5, 0.4)]
)
@pytest.mark.parametrize("chosen", range(4))
def test_the_words_at_a_budget_stand_off_the_line_to_the_next_one(
    report: StudyReport, rates: tuple[float, ...], chosen: int
) -> None:
    curve, budgets = report.primary.alert_rates[0], (0.02, 0.1, 0.25, 0.5)
    points = tuple(
        replace(curve.points[0], alerts_per_patient_day=budget, rate=Estimate(rate))
        for budget, rate in zip(budgets, rates, strict=True)
    )
    plot = figures.alert_rate(replace(curve, points=points), budgets[chosen])
    assert plot is not None
    said = next(mark for mark in plot.marks if isinstance(mark, Words) and mark.bold)
    is_left = said.anchor is Anchor.END
    beside = chosen - 1 if is_left else chosen + 1
    if not 0 <= beside < len(rates):
        return
    rises_towards_it = rates[beside] > rates[chosen]
    assert (said.shift[1] < 0) is rises_towards_it, "below where the line comes from above, above where from below"


@pytest.mark.parametrize(
    "rates", [(0.3, 0.35, 0.5, 0.6), (0.6, 0.5, 0.35, 0.3), (0.25, 0.3, 0.3, 0.6), (0.9, 0.8, 0.7, 0.6)]
)
def test_the_words_of_the_share_among_all_stand_off_the_line(report: StudyReport, rates: tuple[float, ...]) -> None:
    curve, budgets = report.primary.alert_rates[0], (0.02, 0.1, 0.25, 0.5)
    points = tuple(
        replace(curve.points[0], alerts_per_patient_day=budget, rate=Estimate(rate))
        for budget, rate in zip(budgets, rates, strict=True)
    )
    plot = figures.alert_rate(replace(curve, points=points, positive_share=Estimate(0.3)), 0.25)
    assert plot is not None
    (said,) = (mark for mark in plot.marks if isinstance(mark, Words) and "among all" in mark.text)
    beside = rates[:2] if said.anchor is Anchor.START else rates[2:]
    assert min(abs(rate - 0.3 - (0.05 if said.shift[1] > 0 else -0.05)) for rate in beside) > 0.04


def test_a_hidden_number_of_decided_cases_stays_hidden() -> None:
    flow = FlowDiagram(100, 5000, 60, 50, 40, 37)
    plot = figures.flow(flow, hidden="hidden until it is locked")
    assert "37" not in " ".join(words(drawn(plot))) + plot.alt
    assert "decided" in figures.flow(flow).alt


def test_a_hostile_name_is_text() -> None:
    name = "<script>alert(1)</script>\"'&"
    picture = drawn(figures.settings_curves(["1", name], {name: [Estimate(0.7)] * 2}, name, name))
    assert {part.tag for part in picture.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "title", "text", "polyline", "path")
    }
    assert name in words(picture)


def test_a_value_is_drawn_where_its_axis_says() -> None:
    axis = Axis(0, 1, ticks=((0, "0"), (1, "1")))
    marks = (Curve(((0, 0), (1, 1)), Stroke(width=3)), Words((0, 1), "here", shift=(3, 4)))
    picture = drawn(Plot(marks, "A line.", axis, axis, height=100, width=200))
    curve = next(line for line in picture.iter(f"{SVG}polyline") if line.attrib["stroke-width"] == "3")
    (x0, y0), (x1, y1) = (tuple(map(float, point.split(","))) for point in curve.attrib["points"].split())
    assert (round(x1 - x0), round(y0 - y1)) == (200, 100)
    text = next(text for text in picture.iter(f"{SVG}text") if text.text == "here")
    assert (round(float(text.attrib["x"]) - x0), round(y1 - float(text.attrib["y"]))) == (3, 4)


def test_a_single_dot_is_there_in_a_pdf() -> None:
    """The typesetter leaves out a path without extent, which browsers draw as a dot."""
    plot = figures.agreement_of_readers(
        AgreementReport(answers=_kappa(0.3), positive=_kappa(0.3), pairs=(PairAgreement("a", "b", 9, KAPPA, KAPPA),))
    )
    assert plot is not None
    dots = [mark for mark in plot.marks if isinstance(mark, Dots)]
    assert len(dots) == 2
    svg = {"svg": draw_svg(plot)}
    pdf = typst.compile(b'#image(bytes(sys.inputs.svg), format: "svg")', format="pdf", sys_inputs=svg)
    packed = re.findall(rb"Flate.*?stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    streams = [zlib.decompress(stream) for stream in packed]
    widths = [float(width) for stream in streams for width in re.findall(rb"([\d.]+) w\b", stream)]
    assert widths.count(dots[0].size) == 2


KAPPA = Estimate(0.3, reason="interval not computable: all cases come from one patient")


def _kappa(value: float) -> AgreementFigures:
    found = replace(KAPPA, value=value)
    return AgreementFigures("all cases", 9, 27, raw=found, fleiss=found, alpha=found, ac1=found)


def test_a_band_is_named_only_where_one_is_drawn(report: StudyReport) -> None:
    curve = report.primary.alert_rates[0]
    bare = replace(curve, points=tuple(replace(p, rate=replace(p.rate, low=None, high=None)) for p in curve.points))
    for with_band, shown in ((True, curve), (False, bare)):
        plot = figures.alert_rate(shown, 0.25)
        assert plot is not None
        assert ("as a band" in plot.alt) == with_band
    none = {"band_at": (), "band_low": (), "band_high": ()}
    scorers = tuple(replace(s, roc_weighted=replace(s.roc_weighted, **none)) for s in report.primary.scorers)
    plot = figures.roc(replace(report.primary, scorers=scorers), report.primary_scorer)
    assert plot is not None
    assert "as a band" not in plot.alt


def test_intervals_are_named_by_their_level(report: StudyReport) -> None:
    scorers = tuple(replace(s, auc_weighted=replace(s.auc_weighted, level=0.9)) for s in report.primary.scorers)
    plot = figures.auc_of_methods(replace(report.primary, scorers=scorers), report.primary_scorer)
    assert plot is not None
    assert "90% intervals" in plot.alt
