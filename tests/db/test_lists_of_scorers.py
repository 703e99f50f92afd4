"""A run holds lists of its own for each of its scorers; an older database keeps what it had under its first scorer."""

from dataclasses import replace

import pytest

from core.vocabulary import Decision
from tests.support.stored_site import StoredSite, add_alerts, new_run


@pytest.fixture
def two_scorers(site: StoredSite) -> tuple[StoredSite, int]:
    """A run whose second scorer ranks the same decisions the other way round, and one more."""
    run, folds = new_run(site.snapshot.id, len(site.instances))
    first = [site.alert(row, 0, row + 1, Decision.OMISSION, 0.9 - row / 10) for row in range(3)]
    second = [site.alert(3 - row, 0, row + 1, Decision.OMISSION, 0.8 - row / 10, "day-adjusted") for row in range(4)]
    with site.database.write() as uow:
        run_id = uow.runs.start(replace(run, scorers={"day-adjusted": {}}), folds)
        add_alerts(uow, run_id, [*first, *second])
        uow.runs.publish(
            run_id,
            published_at=site.clock(),
            floors={Decision.OMISSION: 0.7},
            other_floors={"day-adjusted": {Decision.OMISSION: 0.5}},
        )
        uow.commit()
    return site, run_id


def test_a_question_is_about_the_first_scorer_unless_another_is_named(two_scorers: tuple[StoredSite, int]) -> None:
    site, run_id = two_scorers
    with site.database.read() as uow:
        for scorer, rows in (("", [0, 1, 2]), ("softhad", [0, 1, 2]), ("day-adjusted", [3, 2, 1, 0]), ("none", [])):
            lists = {"scorer": scorer, "include_cut_windows": True}
            found = uow.alerts.page(run_id, **lists).rows  # type: ignore[arg-type]
            assert [record.row_index for record in found] == rows
            assert uow.alerts.count(run_id, **lists) == len(rows)  # type: ignore[arg-type]
            ranks = uow.alerts.ranks_of_first(run_id, 4, include_cut_windows=True, scorer=scorer)
            assert ranks.get(Decision.OMISSION) == (4 if scorer == "day-adjusted" else None)
            assert uow.alerts.filter_choices(run_id, scorer)[1] == ((("LAB_ORDER/0", "Troponin I"),) if rows else ())
        assert uow.alerts.ids_of_decisions(run_id, [(3, "LAB_ORDER/0")]) == {}
        assert uow.alerts.count(run_id, scorer="\0", include_cut_windows=True) == 0


def test_neighbours_stay_in_the_list_of_the_alert_s_own_scorer(two_scorers: tuple[StoredSite, int]) -> None:
    site, run_id = two_scorers
    with site.database.read() as uow:
        listed = uow.alerts.page(run_id, scorer="day-adjusted", include_cut_windows=True).rows
        before, after = uow.alerts.neighbours(listed[1], scorer="softhad", include_cut_windows=True)
    assert (before, after) == (listed[0].id, listed[2].id)


def test_the_run_tells_floors_and_lengths_of_every_scorer_s_lists(two_scorers: tuple[StoredSite, int]) -> None:
    site, run_id = two_scorers
    with site.database.read() as uow:
        run = uow.runs.get(run_id)
    assert run.all_scorers == ("softhad", "day-adjusted")
    assert run.floors() == run.floors("softhad") == {Decision.OMISSION: 0.7}
    assert run.floors("day-adjusted") == {Decision.OMISSION: 0.5}
    assert run.n_alerts() == {Decision.OMISSION: 3, Decision.COMMISSION: 0}
    assert run.n_alerts("day-adjusted") == {Decision.OMISSION: 4, Decision.COMMISSION: 0}
    assert (run.base_run_id, run.model_folder) == (None, "")
