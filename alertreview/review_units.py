"""Cases of units that are not a reader's never come to that reader."""

from db.rows import PlaceRow
from db.unit_of_work import UnitOfWork


def within_units(uow: UnitOfWork, study_id: int, person_id: int, places: list[PlaceRow]) -> list[PlaceRow]:
    """Leave out the cases whose patients lie in units that a reader may not see.

    Parameters
    ----------
    uow : UnitOfWork
    study_id, person_id : int
    places : list of PlaceRow
        The reader's place in each case of the study.
    """
    units = uow.units.of_person(person_id)
    if units is None:
        return places
    mine = uow.units.cases_within(study_id, units)
    return [place for place in places if place.case_id in mine]
