"""The Export page over the double: counted first, written only when asked, never shown to a blinded reader."""

import hashlib

import pytest

from core.errors import DatabaseUnavailableError
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.exports import FakeExports

LOCKED = {"study": "ward-2025"}


def file_names(double: FakeApplication) -> list[str]:
    return [past.file_name for past in double.exported]


def test_opening_the_page_counts_rows_and_runs_no_export(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("export", double, **LOCKED)
    assert nothing_failed(page)
    assert double.exported == []
    assert not page.get("download_button")
    assert f"**{3 * double.n_cases} rows** of {3 * double.n_cases}" in words(page)
    assert "Nothing was exported yet" in words(page)


def test_a_prepared_file_is_offered_with_its_checksum_and_listed(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("export", double, **LOCKED)
    page.selectbox(key="ex_format").select("parquet").run()
    page.button(key="ex_prepare_table").click().run()
    assert nothing_failed(page)
    assert file_names(double) == ["ward-2025-long.parquet"]
    (download,) = page.get("download_button")
    assert "ward-2025-long.parquet" in download.proto.label.replace("\\", "")
    assert download.proto.ignore_rerun, "a download must not run the page anew and clear what is chosen"
    past = page.dataframe[0].value.iloc[0]
    assert past["SHA-256"] in words(page)
    assert past["SHA-256"] == hashlib.sha256(f"ward-2025-long.parquet: {past['Rows']} rows".encode()).hexdigest()
    assert past["Who"] == "Coordinator"


def test_a_file_made_for_other_choices_or_another_person_is_never_offered(open_page: OpenPage) -> None:
    page = open_page("export", FakeApplication(), **LOCKED)
    page.button(key="ex_prepare_table").click().run()
    assert len(page.get("download_button")) == 1
    page.selectbox(key="ex_format").select("xlsx").run()
    assert not page.get("download_button")
    page.button(key="ex_prepare_table").click().run()
    page.selectbox(key="w_person").select(2).run()
    assert not page.get("download_button")


def test_a_filter_that_leaves_nothing_warns_with_counts_by_state_and_writes_nothing(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("export", double, **LOCKED)
    page.multiselect(key="ex_states").select("adjudicated").run()
    (warning,) = page.warning
    assert "No row matches" in warning.value
    assert "majority" in warning.value
    assert page.button(key="ex_prepare_table").disabled
    page.multiselect(key="ex_states").select("majority").run()
    assert not page.warning
    assert not page.button(key="ex_prepare_table").disabled


def test_everything_for_a_paper_is_one_zip(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("export", double, **LOCKED)
    page.multiselect(key="ex_formats").select("parquet").run()
    page.button(key="ex_prepare_study").click().run()
    assert file_names(double) == ["ward-2025-study.zip"]
    assert double.exported[0].what == "study, csv, parquet"
    page.multiselect(key="ex_formats").unselect("csv").unselect("parquet").run()
    assert page.button(key="ex_prepare_study").disabled


def test_a_reader_with_cases_left_gets_no_file_and_no_count(open_page: OpenPage) -> None:
    page = open_page("export", FakeApplication(), study="demo")
    page.selectbox(key="w_person").select(1).run()
    assert nothing_failed(page)
    assert "still judges cases of this study" in words(page)
    assert "By state of the case" not in words(page)
    assert [button.key for button in page.button] == ["ex_review"]
    page.selectbox(key="w_person").select(5).run()
    assert "By state of the case" in words(page)


def test_a_failed_export_says_so_and_offers_nothing(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_place: object, **_options: object) -> tuple[str, bytes]:
        raise DatabaseUnavailableError("The database is busy. Nothing was written; try again in a minute.")

    monkeypatch.setattr(FakeExports, "labels_download", fails)
    page = open_page("export", FakeApplication(), **LOCKED)
    page.button(key="ex_prepare_table").click().run()
    assert not page.exception
    assert "The database is busy" in words(page)
    assert not page.get("download_button")


def test_a_study_without_rows_says_so(open_page: OpenPage) -> None:
    page = open_page("export", FakeApplication(n_cases=0), **LOCKED)
    assert nothing_failed(page)
    assert "This study has no such rows yet." in words(page)
