"""Votes that were given elsewhere, on paper or by simulated readers: all of them enter a study together, or none."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from alertreview.judging import Form, Given, append_judgment, standing_of
from alertreview.review_rules import require_judgeable, was_saved
from core.errors import RefusedError
from core.vocabulary import Answer, Certainty
from db.session import Database


@dataclass(frozen=True)
class OutsideVote:
    """One reader's answer to one case, given elsewhere."""

    person_id: int
    case_id: int
    answer: Answer
    certainty: Certainty | None = None
    comment: str = ""
    reason: str = ""
    active_seconds: float | None = None


def record_votes(database: Database, now: datetime, slug: str, votes: Iterable[OutsideVote]) -> int:
    """Record votes in one transaction, by the rules of the review page; votes recorded before are left as they are.

    Parameters
    ----------
    database : Database
        The site's database.
    now : datetime
        Aware.
    slug : str
        Short name of an open study.
    votes : iterable of OutsideVote
        Each reader must be one of the study, and each case must have a slot left for them.

    Returns
    -------
    int
        Number of votes that were new.

    Raises
    ------
    RefusedError
        If a case has no slot left, a reader is none of the study, or the study is not open; then nothing was kept.
    """
    n_new = 0
    with database.write() as uow:
        study = uow.studies.by_slug(slug)
        for vote in votes:
            form_key = f"outside-{study.id}-{vote.case_id}-{vote.person_id}"
            form = Form(slug, vote.person_id, vote.case_id, 0, form_key)
            standing = standing_of(uow, form)
            if was_saved(standing, vote.case_id, vote.person_id):
                continue
            terms = require_judgeable(standing, slug, vote.case_id)
            until = now + timedelta(hours=terms.hold_hours)
            if not uow.slots.hold(terms.study_id, vote.case_id, vote.person_id, now=now, until=until):
                raise RefusedError(
                    f"Case {vote.case_id} of study '{slug}' has no slot left for person {vote.person_id}."
                )
            given = Given(vote.answer, vote.certainty, vote.comment, vote.reason, vote.active_seconds)
            append_judgment(uow, now, form, given, standing)
            n_new += 1
        uow.commit()
    return n_new
