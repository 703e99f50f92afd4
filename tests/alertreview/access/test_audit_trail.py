"""The audit trail for people: pages, filters, export with its head."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from alertreview.access.audit_trail import AuditTrailService
from alertreview.application import Application
from core.errors import InvalidInputError, SourceError, StoreError
from core.vocabulary import Role
from db.audit import AuditTrail
from db.database import Database
from db.maintenance.copies import contents
from tests.support.stored_site import EPOCH, Clock


@pytest.fixture
def trail(database: Database) -> AuditTrailService:
    """Twelve acts of two people and the command line; the first of them seals Ada."""
    with database.write() as uow:
        ada = uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH).id
        for number in range(12):
            actor = f"person {ada}" if number % 3 == 0 else "command line"
            uow.audit.append(EPOCH, actor, "acted" if number % 2 else "looked", f"thing {number}", {"reason": "=1+1"})
        uow.commit()
    return AuditTrailService(database, Clock())


def test_pages_put_together_are_the_whole_trail_newest_first(trail: AuditTrailService) -> None:
    sequences, before = [], None
    while True:
        page = trail.page(before, limit=5)
        sequences += [entry.sequence for entry in page]
        if page.before is None:
            break
        before = page.before
    assert sequences == list(range(12, 0, -1))


def test_filters_are_by_action_object_and_person_by_name_or_number(trail: AuditTrailService) -> None:
    assert trail.actions() == ("acted", "looked")
    assert {entry.action for entry in trail.page(action="acted")} == {"acted"}
    assert [entry.object for entry in trail.page(thing="thing 4")] == ["thing 4"]
    by_name = trail.page(person="Ada").entries
    assert [entry.name for entry in by_name] == ["Ada"] * 4
    assert trail.page(person=by_name[0].actor).entries == by_name
    assert trail.page(action="' OR 1=1 --").entries == ()


@pytest.mark.parametrize("limit", [0, 1001])
def test_a_page_has_a_size(trail: AuditTrailService, limit: int) -> None:
    with pytest.raises(InvalidInputError, match=f"1 to 1000 rows, not {limit}"):
        trail.page(limit=limit)


@pytest.mark.checklist("A1", "A3")
def test_the_export_holds_what_is_hashed_and_is_an_act_with_the_head(trail: AuditTrailService, tmp_path: Path) -> None:
    report = trail.export(tmp_path / "trail.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "trail.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["sequence"] for row in rows] == list(range(1, 13))
    assert rows[-1]["hash"] == report.head
    newest = trail.page(limit=1).entries[0]
    assert newest.action == "audit trail exported"
    assert newest.details == {"file": "trail.jsonl", "rows": 12, "head": report.head}
    assert trail.verify(report.head).problem == ""


@pytest.mark.checklist("D3")
def test_no_cell_of_the_export_becomes_a_formula(trail: AuditTrailService, tmp_path: Path) -> None:
    trail.export(tmp_path / "trail.csv")
    with (tmp_path / "trail.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 13
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for row in rows for cell in row)


def test_an_ending_and_a_place_that_do_not_fit_are_named(trail: AuditTrailService, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"\.jsonl or \.csv, not as trail\.xml"):
        trail.export(tmp_path / "trail.xml")
    with pytest.raises(SourceError, match="cannot be written"):
        trail.export(tmp_path / "none" / "trail.csv")
    assert list(tmp_path.glob("*trail*")) == []


@pytest.mark.checklist("A3")
def test_a_broken_trail_is_not_exported(
    trail: AuditTrailService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: AuditTrail, known_head: str | None = None) -> None:
        raise StoreError("Row 3 of the audit trail was changed or put in.")

    monkeypatch.setattr(AuditTrail, "require_whole", refuse)
    with pytest.raises(StoreError, match="Row 3"):
        trail.export(tmp_path / "trail.jsonl")
    assert list(tmp_path.glob("*.jsonl")) == []


@pytest.mark.checklist("A1")
def test_every_act_of_a_site_has_one_row(application: Application) -> None:
    """The rows of the tables against the rows of the trail, on a site that was imported, scored, set up and judged."""
    held = contents(application.database.url)
    acts = Counter(entry.action for entry in application.audit_trail.page(limit=1000))
    assert acts["judgment saved"] == held.n_rows["judgment"]
    assert acts["run published"] == len(application.worklist.runs())
    assert acts["records imported"] == held.n_rows["cohort_snapshot"]
    assert acts["study created"] == held.n_rows["study"]
    assert acts["study opened"] == held.n_rows["study"]
    assert application.audit_trail.verify().problem == ""
