"""What a reader does in the review, for tests over a stored site: take the next case, save, many at once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import sqlalchemy as sa

from alertreview.review.models import BlindedCase, SavedJudgment
from core.errors import AlertReviewError
from core.vocabulary import Answer
from db.database import Database
from tests.support.stored_site import StoredSite


def save(
    site: StoredSite, reader: int, case: BlindedCase, answer: Answer = Answer.RELEVANT, **more: object
) -> SavedJudgment:
    given_fields: dict[str, object] = {"version_seen": case.version_seen, "form_key": case.form_key, "answer": answer}
    return site.review.submit_judgment("demo", reader, case.case_id, **(given_fields | more))  # type: ignore[arg-type]


def withdraw(site: StoredSite, answer: Answer) -> None:
    """Add a version of the rubric without an answer, as a study that is older than the answer has it."""
    with site.database.write() as uow:
        study = uow.studies.by_slug("demo")
        rubric = uow.studies.rubric(study.id)
        texts = {code: text for code, text in rubric.answer_texts.items() if code != answer.key}
        uow.studies.add_rubric(replace(rubric, version=rubric.version + 1, answer_texts=texts))
        uow.commit()


def url(site: StoredSite) -> str:
    return site.database.engine.url.render_as_string(hide_password=False)


def next_case(site: StoredSite, reader: int, after: int | None = None) -> BlindedCase:
    case = site.review.next_case("demo", reader, after)
    assert case is not None
    return case


def rows(site: StoredSite, table: str) -> int:
    with site.database.engine.connect() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


@contextmanager
def captured(database: Database) -> Iterator[list[str]]:
    statements: list[str] = []

    def capture(_c: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", capture)
    yield statements
    sa.event.remove(database.engine, "before_cursor_execute", capture)


def at_once(*acts: Callable[[], object]) -> list[object]:
    """Run acts in threads that start together; give what each returned or raised."""
    barrier = threading.Barrier(len(acts))
    results: list[object] = [None] * len(acts)

    def run(at: int) -> None:
        barrier.wait()
        try:
            results[at] = acts[at]()
        except AlertReviewError as error:
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
