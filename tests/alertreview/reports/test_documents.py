"""The report as files: JSON that is the report, HTML that stands alone, PDF; hidden, signed, and with hostile names."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest

from alertreview.reports.blocks import Bullets, Cards, Figure, Paragraph, Table
from alertreview.reports.checklists import checklist_items
from alertreview.reports.content import report_document
from alertreview.reports.documents import ReportFormat, render_report, write_report
from alertreview.reports.signing import Signature, canonical_json, content_hash
from core.errors import InvalidInputError
from core.kinds import Kind
from core.studies.make_report import blinded_report, study_report
from core.studies.report import StudyReport
from core.studies.report_input import STRATA_BY, StudyInput
from core.studies.selection import SelectionDesign
from core.vocabulary import OPEN_PANEL, OPEN_PANEL_LIMIT, READING
from tests.support.documents import ROOT
from tests.support.simulated_study import simulate_study

HOSTILE = '<img src=x onerror=alert(1)> #read("/etc/passwd") **b** "\'&'


@pytest.fixture(scope="module")
def study() -> StudyInput:
    return simulate_study(seed=5, n_patients=20, n_per_patient=20, design=SelectionDesign(n_cases=60))


@pytest.fixture(scope="module")
def report(study) -> StudyReport:
    return study_report(study)


@pytest.fixture(scope="module")
def panel(study) -> StudyReport:
    return study_report(dataclasses.replace(study, design={**study.design, READING: OPEN_PANEL}))


@pytest.fixture(scope="module")
def thin(study) -> StudyReport:
    """A report in which hardly anything can be computed."""
    return study_report(dataclasses.replace(study, votes=study.votes.iloc[:0]))


def html_document(report: StudyReport, signatures: Iterable[Signature] = ()) -> str:
    return render_report(report, ReportFormat.HTML, signatures).decode()


def pdf_document(report: StudyReport) -> bytes:
    return render_report(report, ReportFormat.PDF)


class Tags(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attr) for attr in attrs]

    def handle_data(self, data):
        self.words.append(data)


class TestHtml:
    def test_no_number_has_a_hyphen_for_a_minus_sign(self, study):
        """Readers who answer at random have figures below nothing in every table."""
        votes = study.votes.assign(answer=np.random.default_rng(1).permutation(study.votes["answer"].to_numpy()))
        page = html_document(study_report(dataclasses.replace(study, votes=votes)))
        words = "\n".join([*Tags(page).words, *(str(value) for _, _, value in Tags(page).attributes)])
        words = re.sub(r"[\d.,]+ [\d.,]+|viewBox.*|<style>.*</style>", "", words)
        assert words.count("−0.") > 3
        assert re.findall(r"(?<![\w–-])-\d.{0,20}", words) == []

    def test_it_writes_words_where_the_program_has_keys(self, report):
        words = " ".join(Tags(html_document(report)).words)
        keys = {*(kind.value for kind in Kind), *(d.group for d in report.primary.subgroup_differences)}
        assert {"LAB_ORDER", "commission"} <= keys
        assert not re.findall(r"\bLAB_ORDER|\bMEDICATION\b|\bcommission\b|\bomission\b", words)

    def test_it_stands_alone(self, report):
        page = Tags(html_document(report))
        assert not {"script", "link", "iframe", "img", "object"} & set(page.tags)
        outside = [a for a in page.attributes if a[1] in ("src", "href", "xlink:href", "action")]
        assert outside == []
        assert not re.search(r"url\(|@import", html_document(report))
        assert "default-src 'none'" in html_document(report)

    def test_naive_and_weighted_figures_are_side_by_side(self, report):
        words = " ".join(Tags(html_document(report)).words)
        scorer = report.primary.scorers[0]
        assert scorer.auc_naive.text() in words
        assert scorer.auc_weighted.text() in words
        assert "AUC, naive (DeLong)" in words

    def test_every_figure_says_what_it_shows(self, report):
        page = Tags(html_document(report))
        labels = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
        assert len(labels) == page.tags.count("svg") == 5
        assert all(len(label) > 20 for label in labels)

    def test_a_simulated_report_says_so_at_the_top(self, report):
        page = html_document(report)
        assert page.index("Simulated: no figure") < page.index("<h1>")

    def test_every_case_is_listed_with_why_it_was_not_used(self, report):
        table = next(b for b in report_document(report).blocks if isinstance(b, Table) and "each case" in b.caption)
        assert len(table.rows) == report.n_cases
        assert sum(row[3] == "yes" for row in table.rows) == report.primary.n_used
        assert all(bool(row[4]) == (row[3] == "no") for row in table.rows)

    def test_a_hostile_name_is_text(self, study):
        hostile = dataclasses.replace(
            study,
            title=HOSTILE,
            scorer_labels={"softhad": HOSTILE, "weighted_knn": HOSTILE},
            cases=study.cases.assign(task_name=HOSTILE, unit=HOSTILE, case_label=HOSTILE, stratum=HOSTILE),
            design={HOSTILE: HOSTILE},
        )
        made = study_report(hostile)
        page = Tags(html_document(made))
        assert "img" not in page.tags
        assert not [a for a in page.attributes if a[1].startswith("on")]
        assert pdf_document(made).startswith(b"%PDF")


class TestPdf:
    @pytest.mark.parametrize("which", ["report", "thin"])
    def test_it_is_a_pdf_and_the_same_every_time(self, which, request):
        made = request.getfixturevalue(which)
        first = pdf_document(made)
        assert first.startswith(b"%PDF-")
        assert first == pdf_document(made)
        assert b"/StructTreeRoot" in first


WITHOUT_INTERVAL = {
    "Chance to be chosen",
    "Per patient-day",
    "Reading, min/day",
    "p",
    "p, Holm",
    "Mean over tasks, no interval",
    "Mean scaled score",
    "Sensitivity",
    "Specificity",
    "An alert is worth reading from a chance of",
}
"""Columns of numbers that are no estimates, or say that they have no interval."""


class TestThin:
    def test_a_report_without_figures_still_makes_a_document_with_reasons(self, thin):
        words = " ".join(Tags(html_document(thin)).words)
        assert "No case has a judgment yet." in words
        assert "not computable: no case has both a label and a score" in words
        assert "nan" not in words.lower().split()

    @pytest.mark.parametrize(
        "change",
        [
            lambda study: {"votes": study.votes.iloc[:1]},
            lambda study: {"votes": study.votes[study.votes["reader"] == "reader-1"]},
            lambda study: {"votes": study.votes[study.votes["case_id"] == study.votes["case_id"].iloc[0]]},
            lambda study: {"votes": study.votes.assign(answer=1)},
            lambda study: {"cases": study.cases.assign(patient_id="p")},
            lambda study: {"scores": study.scores.assign(softhad=0.5)},
        ],
        ids=["one judgment", "one reader", "one case", "all alike", "one patient", "constant"],
    )
    def test_sentences_stay_sentences_where_figures_are_missing(self, study, change):
        unknown = study.cases.assign(unit="", sex="", age_band="")
        found = study_report(dataclasses.replace(study, **{"cases": unknown, **change(study)}))
        blocks = report_document(found).blocks
        cards = [rest for block in blocks if isinstance(block, Cards) for *_, rest in block.items]
        words = [block.text for block in blocks if isinstance(block, Paragraph)] + cards
        words += [words for block in blocks if isinstance(block, Bullets) for words in block.items]
        for table in (block for block in blocks if isinstance(block, Table)):
            for name, cell in (pair for row in table.rows for pair in zip(table.header, row, strict=True)):
                # A figure by itself would claim to be exact.
                assert name in WITHOUT_INTERVAL or not re.fullmatch(r"[<>-]?\d+(\.\d+%?|%)", cell), (name, cell)
        for sentence in words:
            assert not re.search(r"\b(finds|clears|are relevant:|is relevant:) not computable", sentence)
            assert not re.search(r"not computable: [^.;]* on all candidates", sentence)
            assert not re.search(r"\b1 \w+ ?(cases|readers|patients)\b|\b1 (cases|readers|patients)\b", sentence)
        if found.primary.scorers[0].auc_weighted.value is None:
            assert not any("the AUC may be far lower" in sentence for sentence in words)
        elif not found.primary.scorers[0].auc_weighted.has_interval:
            assert "interval not computable" in cards[0]

    def test_a_hidden_report_shows_counts_and_no_figure(self, report):
        hidden = blinded_report(report)
        page = html_document(hidden)
        words = " ".join(Tags(page).words)
        assert "Results are hidden while readers are blinded" in words
        assert "reader-1" not in page
        assert report.primary.scorers[0].auc_weighted.text() not in words
        assert [type(b) for b in report_document(hidden).blocks].count(Figure) == 1
        assert pdf_document(hidden).startswith(b"%PDF")


class TestJson:
    def test_it_is_the_report(self, report):
        assert StudyReport.from_dict(json.loads(canonical_json(report))) == report

    def test_files_are_whole_and_named(self, report, tmp_path):
        write_report(report, tmp_path, list(ReportFormat))
        written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert written == {f"report.{one.value}": render_report(report, one) for one in ReportFormat}
        assert hashlib.sha256(written["report.json"]).hexdigest() == content_hash(report)


class TestSignature:
    def signed(self, report, **changes):
        at = datetime(2026, 11, 28, 9, tzinfo=UTC)
        whole = {"name": "Dr A", "meaning": "I approve", "signed_at": at, "content_hash": content_hash(report)}
        return Signature(**(whole | changes))

    def test_it_holds_until_a_vote_changes(self, study, report):
        signature = self.signed(report)
        assert signature.state(report) == "valid"
        votes = study.votes.copy()
        votes.loc[0, "answer"] = 2 if votes.loc[0, "answer"] != 2 else 1
        after = study_report(dataclasses.replace(study, votes=votes))
        assert signature.state(after).startswith("superseded")

    def test_it_survives_storing_and_reading_the_report(self, report):
        again = StudyReport.from_dict(json.loads(canonical_json(report)))
        assert self.signed(report).holds_for(again)

    def test_the_document_shows_who_signed_what_when_and_whether_it_holds(self, report):
        words = " ".join(
            Tags(html_document(report, [self.signed(report), self.signed(report, content_hash="0")])).words
        )
        for part in ("Dr A", "I approve", "2026-11-28T09:00:00+00:00", "valid", "superseded", content_hash(report)):
            assert part in words

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"name": " "}, "needs a name and a meaning"),
            ({"meaning": ""}, "needs a name and a meaning"),
            ({"signed_at": datetime(2026, 1, 1)}, "needs a zone"),  # noqa: DTZ001
        ],
    )
    def test_a_signature_is_complete_or_refused(self, report, changes, message):
        with pytest.raises(InvalidInputError, match=message):
            self.signed(report, **changes)


class TestChecklists:
    def test_four_lists_are_there_and_what_only_people_can_answer_is_left_to_them(self, report):
        items = checklist_items(report)
        lists = {i.checklist for i in items}
        assert lists == {"STARD 2015", "TRIPOD+AI", "DECIDE-AI", "GRRAS"}
        told = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8").split("## Reporting checklists\n")[1]
        assert all(name in told.split("\n## ")[0] for name in lists)
        assert len({(i.checklist, i.number) for i in items}) == len(items)
        open_items = {i.topic for i in items if not i.answer}
        assert "limitations" in open_items
        assert "funding" in open_items

    def test_filled_items_quote_the_report(self, report):
        items = {(i.checklist, i.number): i.answer for i in checklist_items(report)}
        assert report.primary.scorers[0].auc_weighted.text() in items["STARD 2015", "24"]
        assert f"{report.flow.n_decided} decided" in items["STARD 2015", "19"]
        assert report.positive_texts[0] in items["TRIPOD+AI", "8a"]

    def test_a_thin_report_fills_them_with_reasons(self, thin):
        items = {(i.checklist, i.number): i.answer for i in checklist_items(thin)}
        assert "not computable" in items["STARD 2015", "24"]


class TestOpenPanel:
    @pytest.mark.parametrize("hidden", [False, True])
    def test_every_document_says_it_once_before_any_figure(self, panel, hidden):
        shown = blinded_report(panel) if hidden else panel
        page = html_document(shown)
        assert f"· {OPEN_PANEL} ·" in page
        text = page.partition("<main>")[2]
        assert text.lstrip().startswith(f"<p><b>{OPEN_PANEL_LIMIT}</b></p>")
        checklist = 0 if hidden else 1
        assert text.count(OPEN_PANEL_LIMIT) == 1 + checklist
        assert pdf_document(shown).startswith(b"%PDF")
        plain = json.loads(canonical_json(shown))
        assert plain["design"][READING] == OPEN_PANEL
        assert plain["warnings"][0] == OPEN_PANEL_LIMIT

    def test_the_checklist_says_what_readers_knew(self, panel, report):
        def known(shown: StudyReport) -> str:
            return next(i.answer for i in checklist_items(shown) if (i.checklist, i.number) == ("STARD 2015", "13b"))

        assert known(panel) == OPEN_PANEL_LIMIT
        assert known(report) == "Readers saw no score before they judged (setting of the study)"

    def test_agreement_of_people_and_system_is_left_open_where_people_did_not_see_the_system(self, panel, report):
        for shown in (panel, report):
            items = {(i.checklist, i.number): i.answer for i in checklist_items(shown)}
            assert items["DECIDE-AI", "12"] == ""
            assert items["STARD 2015", "21a"] == ""
        real = dataclasses.replace(panel, simulated=False)
        assert {(i.checklist, i.number): i.answer for i in checklist_items(real)}["DECIDE-AI", "12"]

    def test_the_fourfold_table_adds_up_to_the_decided_cases(self, report):
        point = report.primary.operating_point
        fields = (point.n_shown_relevant, point.n_shown_other, point.n_missed_relevant, point.n_cleared)
        assert sum(fields) == report.primary.scorers[0].n
        answer = {(i.checklist, i.number): i.answer for i in checklist_items(report)}["STARD 2015", "23"]
        assert all(str(n) in answer for n in fields)

    def test_a_blinded_report_says_nothing_of_it(self, report):
        assert "panel" not in html_document(report).lower()


def test_what_is_looked_up_and_not_read_comes_last(report: StudyReport) -> None:
    signed = html_document(
        report, (Signature("Ada", "approved", datetime(2026, 1, 2, tzinfo=UTC), content_hash(report)),)
    )
    parts = [
        "Methods</h2>",
        "Design and origin</h2>",
        "Signatures</h2>",
        "Reporting checklists</h2>",
        "Every case</h2>",
    ]
    assert [signed.index(part) for part in parts] == sorted(signed.index(part) for part in parts)


def test_every_fact_of_a_choice_of_cases_is_in_words(report: StudyReport) -> None:
    choice = dataclasses.asdict(SelectionDesign()) | {"preset": "as in the paper"}
    shown = ("preset", "seed", "edges", "quantiles", "balance_decisions", "half_in_largest")
    facts = {key: list(choice[key]) if isinstance(choice[key], tuple) else choice[key] for key in shown}
    told = dataclasses.replace(report, design={f"selection: {key}": str(value) for key, value in facts.items()})
    page = html_document(told)
    told_in_words = page[page.index("Design and origin") :]
    assert "half of the cases in the largest stratum" in told_in_words
    told = dataclasses.replace(report, design={STRATA_BY: "Logistic regression"})
    assert "Stratified by scaled score of Logistic regression" in html_document(told)
    assert "method whose scores divide the strata" in html_document(told)
    assert not re.search(r">\s*(True|False|None|\[.*\])\s*<", told_in_words)
    assert "balance_decisions" not in page
