"""Reports: how good the alerts are, by the judgments of a study."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from alertreview.access.site import PersonView
from alertreview.reports import figures
from alertreview.reports.blocks import Figure, Heading, Paragraph, Table
from alertreview.reports.design_words import design_in_words
from alertreview.reports.plot import Plot
from alertreview.reports.reviewer import reviewer_blocks
from alertreview.reports.signing import content_hash
from alertreview.rights import Action
from core.kinds import Kind
from core.statistics.estimate import not_computable
from core.studies.make_report import hidden_count
from core.studies.report import AlertRateCurve, ResultSet, StudyReport
from core.studies.texts import headline_point
from core.vocabulary import OPEN_PANEL, OPEN_PANEL_LIMIT
from dashboard import texts
from dashboard.charts.plot import chart
from dashboard.components import cards
from dashboard.components.acting import confirm_link, looking_as
from dashboard.components.studies import planner
from dashboard.components.studies.choice import choose_study, study_asked
from dashboard.context import application, colours, is_phone, looking_person, may, shown_errors

MIME = {"html": "text/html", "pdf": "application/pdf", "json": "application/json"}
CURVES = {
    "both": "Both",
    "omission": "Omissions",
    "commission": "Commissions",
    **{kind.value: kind.words.items.capitalize() for kind in Kind},
}
TITLE = "How good are the alerts?"


def page() -> None:
    """Draw the page."""
    app = application()
    studies = {study.slug: study for study in app.studies.all() if not study.is_calibration}
    if not studies:
        with cards.header(TITLE, "", simulated=app.site.simulated):
            pass
        with cards.empty_state(
            "No study yet", "A report needs a study whose cases were judged.", ":material/query_stats:"
        ):
            pass
        return
    slug = st.query_params.get("study") or next(iter(studies))
    study = study_asked(slug, TITLE)
    if study is None:
        return
    person = looking_person()
    head = st.empty()
    line = texts.plain(study.title, 60)
    with head.container(), cards.header(TITLE, line, simulated=app.site.simulated, key="header-first"):
        pass
    with st.spinner("Computing the report…", show_time=False):
        report = app.reports.report(slug, person.person_id if person else None)
    with head.container():
        _head(report, {key: texts.study_name(one) for key, one in studies.items()}, app.site.simulated)
    if report.is_open_panel:
        cards.open_panel_limit()
    # Beside each other, so that tiles and curves fit on the screen below.
    left, right = st.columns([7, 5])
    with left:
        if person is not None and app.review.is_blinded(slug, person.person_id):
            _blinded(report, person, app.review.queue(slug, person.person_id).n_left)
        elif report.headline:
            st.markdown(" ".join(texts.bold_only(sentence) for sentence in report.headline))
        result = _chosen_result(report)
    with right:
        warnings = [warning for warning in report.warnings if warning != OPEN_PANEL_LIMIT]
        lines = [f":small[:material/info: {cards.muted(texts.bold_only(warning))}]" for warning in warnings]
        st.markdown("  \n".join(lines))
    _tiles(report, result)
    if not report.hidden:
        _curves(report, result)
        _comparisons(report, result)
        _reviewer(report)
    _flow_and_cases(report, result)
    _methods(report, result)
    if not report.hidden:
        _signatures(report)
    planner.expander(report)


def _blinded(report: StudyReport, person: PersonView, n_left: int) -> None:
    """Say to a reader why the results are not here, and lead back to the cases."""
    cases = f"{texts.plural(n_left, 'case')} of this study left to judge" if n_left else "cases that may come back"
    why = f"who has {cases}: its results are hidden from this reader until the last one is judged, or the study is"
    if report.is_open_panel:
        why = "who is a reader of this panel: its results are hidden from all its readers until it is"
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="rp_blinded"):
        st.markdown(f":material/visibility_off: Reading as **{texts.plain(person.name, 40)}**, {why} locked.")
        if n_left and st.button("Continue judging", key="rp_review", icon=":material/rate_review:"):
            st.switch_page("views/review.py", query_params={"study": report.slug})


def _signatures(report: StudyReport) -> None:
    """Draw who signed the report, and the form to sign a locked one."""
    app, person = application(), looking_person()
    with cards.card("Signatures", "name, time and meaning under the report as it stands"):
        signatures = app.reports.signatures(report.slug, report)
        if signatures:
            cards.table(
                pd.DataFrame(
                    {
                        "Name": [texts.shorten(signature.name, 40) for signature in signatures],
                        "Meaning": [signature.meaning for signature in signatures],
                        "Signed": [texts.day_time(signature.signed_at) for signature in signatures],
                        "State": [signature.state(report) for signature in signatures],
                    }
                ),
                key="rp_signatures",
                alt="Signatures under this report, with whether they still hold",
            )
        else:
            nobody = "Nobody has signed this report." if report.locked else "It can be signed once the study is locked."
            st.markdown(cards.muted(nobody))
        if report.locked and person is not None and may(Action.SIGN):
            confirm_link(f"/reports?study={report.slug}")
            with st.form("rp_sign", border=False, clear_on_submit=True):
                meaning = st.text_input("Meaning", key="rp_meaning", placeholder="I approve this report", max_chars=300)
                if st.form_submit_button(f"Sign as {texts.plain(person.name, 40)}", icon=":material/signature:"):
                    with shown_errors():
                        seen = content_hash(report)
                        app.reports.sign(report.slug, person.person_id, meaning, seen_hash=seen)
                        st.rerun()


def _head(report: StudyReport, titles: dict[str, str], simulated: bool) -> None:
    line = texts.joined(
        texts.plain(report.title, 60),
        OPEN_PANEL if report.is_open_panel else "",
        "locked" if report.locked else "open",
        texts.plural(report.n_cases, "case"),
        texts.plural(report.n_patients, "patient"),
        f"{texts.plural(report.n_slots, 'reader')} each",
    )
    with cards.header(TITLE, line, simulated=simulated):
        choose_study(report.slug, titles, key="rp_study")
        looking_as()
        with st.popover("Download", icon=":material/download:", key="rp_downloads"):
            _downloads(report)


def _downloads(report: StudyReport) -> None:
    """Draw a button for each file format; a file is made when its button is pressed, not before."""
    app = application()

    def content(file_format: str) -> Callable[[], bytes]:
        return lambda: app.reports.file(report, file_format)

    for file_format in ("json",) if report.hidden else ("html", "pdf", "json"):
        st.download_button(
            file_format.upper(),
            data=content(file_format),
            file_name=f"report-{report.slug}.{file_format}",
            mime=MIME[file_format],
            icon=":material/download:",
            key=f"rp_download_{file_format}",
            on_click="ignore",
            width="stretch",
        )


def _chosen_result(report: StudyReport) -> ResultSet:
    """Draw the choice of labels when there is more than one way, and return the chosen result."""
    if len(report.results) == 1:
        return report.primary
    titles = {result.key: result.title for result in report.results}
    key = st.selectbox(
        "Labels",
        list(titles),
        key=f"rp_labels_{report.slug}",
        format_func=lambda key: texts.shorten(titles[key], 120),
        label_visibility="collapsed",
    )
    return report.result(key) or report.primary


def _curve(result: ResultSet, name: str = "both") -> AlertRateCurve | None:
    return next((curve for curve in result.alert_rates if curve.name == name), None)


def _tiles(report: StudyReport, result: ResultSet) -> None:
    """Draw four figures, each with its interval or the reason why it is missing."""
    tiles: tuple[tuple[str, str, str], ...]
    if report.hidden:
        tiles = (
            ("Cases", f"{report.n_cases:,}", f"of {texts.plural(report.n_patients, 'patient')}"),
            ("Votes", f"{report.n_votes:,}", "so far"),
            ("Readers", f"{report.n_readers:,}", f"{report.n_slots} wanted per case"),
            ("Figures", "hidden", "from readers until locked" if report.is_open_panel else "while readers are blinded"),
        )
    else:
        tiles = _figure_tiles(report, result)
    cards.tiles(tiles)


def _figure_tiles(report: StudyReport, result: ResultSet) -> tuple[tuple[str, str, str], ...]:
    scorer = result.scorer(report.primary_scorer)
    point = headline_point(result, report.headline_budget)
    return (
        texts.estimate_tile(
            "AUC, design-weighted",
            scorer.auc_weighted if scorer else None,
            f"resampled over {texts.plural(report.n_patients, 'patient')}" if report.n_patients > 1 else "",
        ),
        texts.estimate_tile(
            f"True-alert rate at {point.alerts_per_patient_day:g}" if point else "True-alert rate",
            point.rate if point else not_computable(_rate_reason(result)),
            "by alerts per patient-day",
            percentage=True,
        ),
        texts.estimate_tile(
            "Agreement, Fleiss κ", report.agreement.positive.fleiss, f"raw {report.agreement.positive.raw.text()}"
        ),
        texts.estimate_tile("Highest AUC one can show", report.ceiling.weighted, "by how far readers agree"),
    )


def _curves(report: StudyReport, result: ResultSet) -> None:
    left, right = st.columns([5, 7])
    scorer = result.scorer(report.primary_scorer)
    band = "band = 95% interval, patients resampled" if scorer and scorer.roc_weighted.band_at else ""
    with left, cards.card("ROC", band, height="stretch"):
        _figure(figures.roc(result, report.primary_scorer, most=2), "roc", otherwise=_roc_reason(report, result))
    with right, cards.card("True-alert rate by alert budget", "band = 95% interval", height="stretch"):
        names = [curve.name for curve in result.alert_rates]
        if not names:
            st.markdown(cards.muted("No decided case lies inside any budget."))
            return
        name = names[0]
        if len(names) > 1:
            name = (
                st.segmented_control(
                    "Alerts",
                    names,
                    default=names[0],
                    required=True,
                    key=f"rp_curve_{report.slug}",
                    format_func=lambda key: CURVES.get(key, key),
                    label_visibility="collapsed",
                )
                or names[0]
            )
        curve = _curve(result, name)
        if curve:
            why = curve.reason or "No decided case lies inside any budget."
            _figure(figures.alert_rate(curve, report.headline_budget), "alert-rate", otherwise=why)


def _rate_reason(result: ResultSet) -> str:
    reasons = (curve.reason.removeprefix("not computable: ") for curve in result.alert_rates)
    return next(reasons, "") or "no curve was drawn"


def _roc_reason(report: StudyReport, result: ResultSet) -> str:
    scorer = result.scorer(report.primary_scorer)
    return (scorer.auc_weighted.reason or scorer.roc_weighted.reason) if scorer else "No scorer was reported."


def _comparisons(report: StudyReport, result: ResultSet) -> None:
    left, right = st.columns([5, 7])
    primary = report.primary_scorer
    with left, cards.card("Methods", "AUC on the same cases", height="stretch"):
        _figure(figures.auc_of_methods(result, primary), "methods", otherwise=_roc_reason(report, result))
    with right, cards.card("Agreement of readers", "Fleiss κ of all, Cohen κ of pairs", height="stretch"):
        plot = figures.agreement_of_readers(report.agreement)
        _figure(plot, "agreement", otherwise=report.agreement.positive.fleiss.reason)


def _reviewer(report: StudyReport) -> None:
    """Draw what a reviewer asks, as in the HTML and PDF report."""
    blocks = reviewer_blocks(report)
    if not blocks:
        return
    with st.expander("Fourfold table, net benefit, calibration, differences between groups, readers at random"):
        for place, block in enumerate(blocks):
            match block:
                case Heading():
                    st.markdown(f"**{texts.plain(block.text, 100)}**")
                case Paragraph():
                    st.markdown(cards.muted(texts.plain(block.text, 600)))
                case Figure():
                    _figure(block.plot, f"reviewer-{place}", otherwise="")
                case Table():
                    frame = pd.DataFrame(block.rows, columns=[name or " " for name in _distinct(block.header)])
                    cards.table(frame, key=f"rp_reviewer_{place}", alt=block.caption)


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Return column names with spaces behind those that came before: a grid needs different ones."""
    return [name + " " * names[:place].count(name) for place, name in enumerate(names)]


def _figure(plot: Plot | None, name: str, *, otherwise: str) -> None:
    cards.figure(chart(plot, colours(), narrow=is_phone()), name, colours(), otherwise=otherwise)


def _flow_and_cases(report: StudyReport, result: ResultSet) -> None:
    """Draw how many cases were used and list those that were left out."""
    left, right = st.columns([5, 7])
    with left, cards.card("From instances to labels", height="stretch"):
        _figure(figures.flow(report.flow, hidden=hidden_count(report)), "flow", otherwise="")
        if not report.hidden:
            used = "No case is decided."
            if result.n_used:
                used = f"{texts.plural(result.n_used, 'case')} used, {result.n_positive:,} of them positive."
            if result.left_out != report.flow.left_out:  # the figure lists those of the flow
                left_out = (
                    ", ".join(f"{texts.shorten(why)}: {n:,}" for why, n in result.left_out.items() if n) or "none"
                )
                used += f" Left out: {left_out}."
            st.markdown(f":small[{cards.muted(texts.plain(used, 300))}]")
    with right:
        with cards.card("Strata of the selection"):
            _strata(report)
        if report.readers and not report.hidden:
            # Beside the tall figure; over the whole width its bars would be long and its words tiny in print.
            with cards.card("Readers against the scores", "AUC when one reader alone gives the labels"):
                plot = figures.auc_by_reader(report.readers, report.primary_scorer)
                reasons = dict.fromkeys(reader.auc_against[report.primary_scorer].reason for reader in report.readers)
                _figure(plot, "readers", otherwise="; ".join(reasons))
    unused = [case for case in result.cases if not case.used]
    if unused:
        with st.expander(f"{texts.plural(len(unused), 'case')} not in the figures"):
            cards.table(
                pd.DataFrame(
                    {
                        "Case": [case.case_label for case in unused],
                        "State": [texts.CASE_TEXTS.get(case.state, str(case.state)) for case in unused],
                        "Why not": [case.why_not for case in unused],
                    }
                ),
                key="rp_unused",
                alt="Cases that are not in the figures, with the reason",
            )


def _strata(report: StudyReport) -> None:
    if report.hidden:
        why = "they would tell you what to expect of the next case."
        st.markdown(cards.muted(f"{hidden_count(report).capitalize()}: {why}"))
        return
    cards.table(
        pd.DataFrame(
            {
                "Stratum": [texts.shorten(s.stratum, 40) for s in report.strata],
                "Candidates": [s.n_population for s in report.strata],
                "Chosen": [s.n_chosen for s in report.strata],
                "Inclusion probability": [s.inclusion_probability for s in report.strata],
                "Decided": [s.n_decided for s in report.strata],
                "Positive": [s.n_positive for s in report.strata],
            }
        ),
        key="rp_strata",
        columns={"Inclusion probability": st.column_config.NumberColumn(format="%.2g")},
        alt="Strata from which cases were chosen, with inclusion probabilities",
    )


def _methods(report: StudyReport, result: ResultSet) -> None:
    """Draw how the figures were computed."""
    with st.expander("Methods text"):
        st.markdown(f"**Labels.** {texts.plain(result.title, 300)}.")
        scorer = result.scorer(report.primary_scorer)
        if scorer is not None and not report.hidden:
            st.markdown(f"**AUC, design-weighted.** {texts.plain(scorer.auc_weighted.method, 600)}")
            naive = f"{scorer.auc_naive.full_text()} – {scorer.auc_naive.method}"
            st.markdown(f"**AUC, naive.** {texts.plain(naive, 800)}")
        design = [design_in_words(name, value) for name, value in report.design.items()]
        st.markdown("\n".join(f"- {texts.plain(name, 60)}: {texts.plain(value, 200)}" for name, value in design))


page()
