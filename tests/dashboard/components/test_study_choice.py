"""Which open study somebody goes on with when no address names one."""

from dataclasses import replace

import pytest

from alertreview.review.models import QueueView
from alertreview.review.review import ReviewService
from alertreview.studies.models import StudyView
from alertreview.studies.studies import StudyService
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.review import FakeReview
from tests.dashboard.doubles.sign_in import guarded_as
from tests.dashboard.doubles.studies import FakeStudies


@guarded_as(StudyService)
class TwoOpenStudies(FakeStudies):
    """The study of the double, and a newer open one."""

    def all(self) -> tuple[StudyView, ...]:
        found = super().all()
        return (replace(found[0], slug="newer", study_id=9, title="Newer study"), *found)


@guarded_as(ReviewService)
class ReviewOfTwo(FakeReview):
    """The queue of everybody in the newer study is given."""

    newer: QueueView

    def queue(self, slug: str, person_id: int) -> QueueView:
        return self.newer if slug == "newer" else super().queue(slug, person_id)


def with_newer(n_mine: int, n_submitted: int, *, is_reader: bool) -> FakeApplication:
    double = FakeApplication()
    double.studies, double.review = TwoOpenStudies(double), (review := ReviewOfTwo(double))
    review.newer = QueueView(n_mine, n_submitted, 0, n_mine - n_submitted, {}, is_reader=is_reader)
    return double


@pytest.mark.parametrize(("n_mine", "n_submitted", "is_reader"), [(0, 0, False), (0, 0, True), (12, 12, True)], ids=str)
def test_a_newer_study_without_work_for_me_does_not_hide_my_list(
    open_page: OpenPage, n_mine: int, n_submitted: int, is_reader: bool
) -> None:
    double = with_newer(n_mine, n_submitted, is_reader=is_reader)
    home = open_page("home", double)
    assert nothing_failed(home)
    assert "ICU pilot 2026** " in words(home).split("your reading list")[0]
    assert "mine: 0 of 0" not in words(home), "of a study in which nothing is mine, only the whole is counted"
    review = open_page("review", double)
    assert nothing_failed(review)
    assert review.session_state["review"].case is not None


def test_every_list_with_cases_left_has_its_button_and_the_begun_one_comes_first(open_page: OpenPage) -> None:
    for n_submitted, first in ((3, "Newer study"), (0, "Newer study"), (12, "ICU pilot 2026")):
        double = with_newer(12, n_submitted, is_reader=True)
        home = open_page("home", double)
        assert nothing_failed(home)
        assert first in words(home).split("your reading list")[0]
        keys = {str(button.key) for button in home.button if str(button.key).startswith("home_continue")}
        others = {"home_continue_demo"} if n_submitted < 12 else set()
        assert keys == {"home_continue", *others}
    begun = with_newer(12, 0, is_reader=True)
    begun.votes["demo", 1, begun.case_ids()[0]] = begun.votes.pop(next(key for key in begun.votes if key[0] == "demo"))
    home = open_page("home", begun)
    assert "ICU pilot 2026" in words(home).split("your reading list")[0]
    assert home.button(key="home_continue_newer").label == "Start reviewing"


def test_the_newest_study_that_waits_for_me_comes_first(open_page: OpenPage) -> None:
    home = open_page("home", with_newer(12, 3, is_reader=True))
    assert "Newer study" in words(home).split("your reading list")[0]
    assert "9 left" in words(home)
