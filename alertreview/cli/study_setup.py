"""Set up a study from a published run in one go: choose cases over the score range, make people readers, open it."""

from collections.abc import Sequence

from alertreview.application import Application
from alertreview.settings import now
from alertreview.studies.models import Rubric, StudyPlan, StudyView
from core.errors import InvalidInputError
from core.number_texts import counted
from core.vocabulary import PersonId, Role


def set_up_study(
    application: Application,
    slug: str,
    title: str,
    readers: Sequence[str],
    plan: StudyPlan,
    *,
    is_open_panel: bool = False,
) -> StudyView:
    """Choose cases, name readers and open a study on the last published run.

    Readers not known yet become reviewers of the site; each case gets `plan.n_readers` of them. Readers of an open
    panel may see the scores before they judge. Raise NotFoundError if nothing was scored yet, InvalidInputError if
    there are fewer readers than each case needs or a name is given twice, ConflictError if the short name is taken.
    """
    if len(set(readers)) != len(readers):
        raise InvalidInputError("A reader is named twice. Name each reader once.")
    if len(readers) < plan.n_readers:
        raise InvalidInputError(
            f"{counted(len(readers), 'reader')} named; each case needs {plan.n_readers}. "
            "Name more, or lower --readers-per-case."
        )
    application.study_desk.set_up(slug, title, plan, Rubric(), [], is_open_panel=is_open_panel)
    application.studies.add_readers(slug, people_named(application, readers))
    application.studies.open_study(slug)
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
