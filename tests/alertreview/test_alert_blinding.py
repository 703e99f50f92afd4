"""Who has still to judge a decision blindly does not see its alert; who saw it first is marked in the judgment."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from alertreview.bootstrap import Application, open_application
from core.errors import RefusedError
from core.vocabulary import Answer, Role

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def own(own_home: Path) -> Application:
    return open_application(own_home)


def case_with_alert(own: Application) -> tuple[int, int]:
    """A case that the visitor may judge and that has an alert in the run: (case, alert)."""
    run = own.run()
    assert run is not None
    cases = {case.case_id: (case.row_index, case.task_key) for case in own.studies_service.case_rows("demo")}
    with own.database.read() as uow:
        slots = uow.slots.of_study(uow.studies.by_slug("demo").id)
        alerts = uow.alerts.ids_of_decisions(run.run_id, list(cases.values()))
    free = {slot.case_id for slot in slots if slot.reviewer_id is None}
    return next((case, alerts[place]) for case, place in cases.items() if case in free and place in alerts)


def visitor(own: Application) -> int:
    return next(person.person_id for person in own.people() if not person.simulated)


def test_a_reader_with_an_open_case_is_refused_and_sees_it_after_judging(own: Application) -> None:
    case, alert = case_with_alert(own)
    with pytest.raises(RefusedError, match="still to judge"):
        own.alert(alert, person_id=visitor(own))
    shown = own.case("demo", visitor(own), case)
    own.submit_judgment(
        "demo", visitor(own), case, answer=Answer.USUAL, version_seen=shown.version_seen, form_key=shown.form_key
    )
    assert own.alert(alert, person_id=visitor(own)).row.alert_id == alert
    vote = next(vote for vote in own.studies_service.votes("demo") if vote.reviewer_id == visitor(own))
    assert not vote.saw_score_before


def test_a_judgment_after_seeing_the_score_carries_the_mark(own: Application) -> None:
    case, alert = case_with_alert(own)
    with own.database.read() as uow:
        seen = uow.alerts.get(alert)
    with own.database.write() as uow:
        uow.cases.note_score_seen(visitor(own), seen.patient_id, seen.snapshot_at, seen.task_key, seen.snapshot_at)
        uow.commit()
    shown = own.case("demo", visitor(own), case)
    own.submit_judgment(
        "demo", visitor(own), case, answer=Answer.USUAL, version_seen=shown.version_seen, form_key=shown.form_key
    )
    vote = next(vote for vote in own.studies_service.votes("demo") if vote.reviewer_id == visitor(own))
    assert vote.saw_score_before


def test_somebody_who_is_no_reader_sees_every_alert(own: Application) -> None:
    _, alert = case_with_alert(own)
    with own.database.write() as uow:
        stranger = uow.people.add("Stranger", Role.VIEWER, created_at=NOW)
        uow.commit()
    assert own.alert(alert, person_id=stranger.id).row.alert_id == alert
