"""Set up a study from a published run in one go: choose cases over the score range, make people readers, open it."""

from collections.abc import Sequence

from alertreview.application import Application
from alertreview.records.snapshots import open_import
from alertreview.settings import now
from alertreview.studies.case_selection import choose_study_cases
from alertreview.studies.models import StudyView
from core.errors import InvalidInputError, NotFoundError
from core.number_texts import counted
from core.studies.selection import SelectionDesign
from core.vocabulary import PersonId, Role


def set_up_study(
    application: Application,
    slug: str,
    title: str,
    readers: Sequence[str],
    design: SelectionDesign,
    *,
    guidelines: str = "",
    is_open_panel: bool = False,
    n_repeats: int = 0,
) -> StudyView:
    """Choose cases, name readers and open a study on the last published run.

    Readers not known yet become reviewers of the site; each case gets `design.n_readers` of them. Readers of an open
    panel may see the scores before they judge; such a panel hides no repeats, cases shown twice to the same reader.
    Raise NotFoundError if nothing was scored yet, InvalidInputError if there are fewer readers than each case needs or
    a name is given twice, ConflictError if the short name is taken.
    """
    if len(set(readers)) != len(readers):
        raise InvalidInputError("A reader is named twice. Name each reader once.")
    if len(readers) < design.n_readers:
        raise InvalidInputError(
            f"{counted(len(readers), 'reader')} named; each case needs {design.n_readers}. "
            "Name more, or lower --readers-per-case."
        )
    with application.database.read() as uow:
        run = uow.runs.latest_published()
        if run is None:
            raise NotFoundError("There are no scores to choose cases from. Score the site first (alertreview score).")
        snapshot = open_import(application.settings, uow, uow.snapshots.get(run.snapshot_id).folder)
    preset = "quantiles of the score" if design.quantiles else "low, middle and high scores"
    cases, selection = choose_study_cases(
        application.database, snapshot, run, design, preset, n_repeats=0 if is_open_panel else n_repeats
    )
    studies = application.studies
    studies.create_study(
        slug,
        title,
        run.id,
        cases,
        n_slots=design.n_readers,
        order_seed=design.seed,
        guidelines=guidelines,
        selection_design=selection,
        is_open_panel=is_open_panel,
    )
    studies.add_readers(slug, people_named(application, readers))
    studies.open_study(slug)
    return application.studies.view(slug)


def people_named(application: Application, names: Sequence[str]) -> list[PersonId]:
    """Return the numbers of people by name; whoever is not known becomes a reviewer."""
    with application.database.write() as uow:
        numbers = []
        for name in names:
            person = uow.people.by_name(name)
            if person is None:
                person = uow.people.add(name, Role.REVIEWER, created_at=now())
                uow.audit.append(now(), "command line", "person added", f"person {person.id}", {"role": "reviewer"})
            numbers.append(person.id)
        uow.commit()
    return numbers
