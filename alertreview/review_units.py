"""Cases of units that are not a reader's never come to that reader."""

from db.rows import PlaceRow, ReadingTerms
from db.unit_of_work import UnitOfWork


def within_units(uow: UnitOfWork, reader: ReadingTerms, places: list[PlaceRow]) -> list[PlaceRow]:
    """Leave out the cases whose patients lie in units that a reader may not see.

    Parameters
    ----------
    uow : UnitOfWork
    reader : ReadingTerms
        The reader at the study.
    places : list of PlaceRow
        The reader's place in each case of the study.
    """
    units = None if reader.all_units else uow.units.of_person(reader.person_id)
    if units is None:
        return places
    mine = uow.units.cases_within(reader.study_id, units)
    return [place for place in places if place.case_id in mine]
