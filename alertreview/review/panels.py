"""Open panels: which of a reader's cases an alert is, so that the reader may judge it beside its score.

Judging itself goes through the use cases of the review, as from every other page.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from alertreview.review.models import DraftView
from alertreview.review.reader_list import ReaderList
from alertreview.review.rules import require_open, require_reader, within_units
from alertreview.rights import Action, Service, requires
from core.errors import RefusedError
from core.vocabulary import AlertId, Answer, CaseId, Certainty, PersonId
from db.models import DecisionKey, DraftAnswer, PanelSlot
from db.unit_of_work import UnitOfWork


@dataclass(frozen=True)
class PanelCase:
    """A decision that somebody may judge beside its score, as that reader's own rows tell it."""

    study_slug: str
    study_title: str
    case_id: CaseId
    question: str
    answer_texts: dict[Answer, str]
    answer: Answer | None  # the reader's saved answer; None while there is none, or once it was taken back
    certainty: Certainty | None  # of the saved answer
    comment: str  # of the saved answer
    saved_at: datetime | None  # when the saved answer was saved, in the site's zone
    draft: DraftView  # what was chosen or typed and not saved
    version_seen: int
    """Number of the reader's current judgment of this case, 0 when there is none; sent back when saving."""
    form_key: str  # idempotency key of this showing of the form


class PanelService(Service):
    """What the alert page asks about open panels."""

    @requires(Action.JUDGE, unit_of="alert_id")
    def cases(self, alert_id: AlertId, person_id: PersonId) -> tuple[PanelCase, ...]:
        """Return the cases that the decision of an alert is in open panels of a reader, newest study first.

        Only cases in which the reader has a slot or can get one; looking takes none. Nothing while the reader has still
        to judge the same decision blindly in another study. Raise NotFoundError if there is no such alert.
        """
        with self._database.read() as uow:
            decision = uow.alerts.keys([alert_id])[alert_id]
            if uow.cases.awaits_judgment_of(person_id, decision):
                return ()
            return tuple(
                _panel_case(uow, slot, person_id) for slot in uow.cases.in_panels(person_id, decision, self._clock())
            )

    @requires(Action.JUDGE)
    def next_alert(self, slug: str, person_id: PersonId, after_case_id: CaseId | None = None) -> AlertId | None:
        """Return the alert on the next case of an open panel that a reader has still to judge, or None.

        It takes no slot. The order is the reader's own, as on the page Review, from the case that the reader comes
        from. Cases below the floor of their run have no alert, and a decision that the reader has still to judge
        blindly shows none: both are passed over, and wait on the page Review. Raise NotFoundError if there is no such
        study, RefusedError if it is no open panel or not open, or the person is not a reader of it.
        """
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            if not study.is_open_panel:
                raise RefusedError(f"Study '{slug}' is blinded: its cases are judged on the page Review.")
            terms = require_reader(uow, slug, person_id)
            require_open(terms)
            slots = within_units(uow, terms, uow.slots.of_reader(study.id, person_id, self._clock()))
            waiting = ReaderList(slots, study.order_seed, person_id, takes_new=True).candidates(after_case_id)
            cases = {case.id: case for case in uow.cases.in_study(study.id)}
            alerts = uow.alerts.ids_of_decisions(
                study.run_id, [(case.row_index, case.task_key) for case in cases.values()]
            )
            awaited = uow.cases.awaited_of(person_id)
            for case in (cases[slot.case_id] for slot in waiting):
                alert_id = alerts.get((case.row_index, case.task_key))
                if alert_id and DecisionKey(case.patient_id, case.snapshot_at, case.task_key) not in awaited:
                    return alert_id
        return None


def _panel_case(uow: UnitOfWork, slot: PanelSlot, person_id: PersonId) -> PanelCase:
    """Put together what a reader is shown of a case, from own rows alone."""
    rubric = uow.studies.rubric(slot.study_id)
    current = uow.judgments.current(slot.case_id, person_id)
    draft = uow.drafts.get(slot.case_id, person_id) or DraftAnswer(None, None, "")
    stands = current if current is not None and current.answer is not None else None
    return PanelCase(
        study_slug=slot.slug,
        study_title=slot.title,
        case_id=slot.case_id,
        question=rubric.question,
        answer_texts=rubric.answers,
        answer=stands.answer if stands else None,
        certainty=stands.certainty if stands else None,
        comment=stands.comment if stands else "",
        saved_at=stands.judged_at.astimezone(ZoneInfo(slot.site_timezone)) if stands else None,
        draft=DraftView(draft.answer, draft.certainty, draft.comment),
        version_seen=current.version if current else 0,
        form_key=uuid.uuid4().hex,
    )
