"""Saved views: one's own and shared ones; they hold filters, never a patient or a place in the list."""

import pytest

from alertreview.alerts.triage_models import SavedViewService
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from tests.support.stored_site import StoredSite


@pytest.fixture
def people(site: StoredSite) -> tuple[SavedViewService, int, int]:
    return SavedViewService(site.database, site.clock), site.person("Anna"), site.person("Bert")


def test_a_view_is_its_owners_unless_it_is_shared(people: tuple[SavedViewService, int, int]) -> None:
    views, anna, bert = people
    views.save(anna, "  Night  round ", {"unit": "Ward A"})
    views.save(anna, "For all", {"kind": "MEDICATION"}, shared=True)
    assert [(view.name, view.is_mine, view.address) for view in views.offered_to(anna)] == [
        ("For all", True, {"kind": "MEDICATION"}),
        ("Night round", True, {"unit": "Ward A"}),
    ]
    assert [(view.name, view.owner, view.is_mine) for view in views.offered_to(bert)] == [("For all", "Anna", False)]


def test_a_view_never_holds_a_patient_or_a_place(people: tuple[SavedViewService, int, int]) -> None:
    views, anna, _ = people
    views.save(anna, "x", {"unit": "Ward A", "patient": "canary-1", "alert": "7", "after": "1-omission", "page": "2"})
    assert views.offered_to(anna)[0].address == {"unit": "Ward A"}


def test_a_name_is_replaced_only_when_asked(people: tuple[SavedViewService, int, int]) -> None:
    views, anna, bert = people
    views.save(anna, "x", {"unit": "Ward A"})
    with pytest.raises(ConflictError, match="view named 'x'"):
        views.save(anna, "x", {})
    views.save(anna, "x", {"cut": "1"}, replace=True)
    views.save(bert, "x", {})
    assert [view.address for view in views.offered_to(anna)] == [{"cut": "1"}]


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [("  ", RefusedError, "no name"), ("x" * 61, InvalidInputError, "60"), ("\0", InvalidInputError, "text")],
)
def test_a_name_that_is_none_is_refused(
    people: tuple[SavedViewService, int, int], name: str, error: type[Exception], words: str
) -> None:
    views, anna, _ = people
    with pytest.raises(error, match=words):
        views.save(anna, name, {})
    assert views.offered_to(anna) == ()


def test_only_the_owner_deletes_and_the_trail_says_so(
    site: StoredSite, people: tuple[SavedViewService, int, int]
) -> None:
    views, anna, bert = people
    views.save(anna, "x", {"unit": "Ward A"}, shared=True)
    with pytest.raises(NotFoundError, match="somebody else's"):
        views.delete(bert, "x")
    views.delete(anna, "x")
    assert views.offered_to(anna) == ()
    with site.database.read() as uow:
        acts = [(row.actor, row.action) for row in uow.audit.latest() if row.actor != "program"]
    assert acts == [(f"person {anna}", "view deleted"), (f"person {anna}", "view saved")]
