"""The blinded review: a reader's queue, one case at a time, drafts, and judgments that are saved or visibly not."""

from datetime import datetime, timedelta

from alertreview.alerts.patient import OpenPatientViews
from alertreview.review import judging
from alertreview.review.judging import AnswerInput, JudgmentForm
from alertreview.review.models import BlindedCase, DraftView, JudgmentRow, QueueView, SavedJudgment
from alertreview.review.reader_list import ReaderList, Reading, blinded_case, nothing_assigned, own_row
from alertreview.review.rules import (
    check_comment,
    no_case,
    no_place,
    require_active,
    require_case,
    require_open,
    require_reader,
    taken,
    within_units,
)
from alertreview.rights import Action, Service, requires
from alertreview.settings import Clock
from core.errors import NotFoundError, RefusedError
from core.vocabulary import Answer, CaseId, Certainty, PersonId, StudyStatus
from db.database import Database
from db.models import Draft, ReaderSlot, ReadingTerms, ShownCase
from db.unit_of_work import UnitOfWork


class ReviewService(Service):
    """Use cases of the review page; each is its own unit of work, and none knows of the web."""

    def __init__(self, database: Database, open_patient_views: OpenPatientViews, clock: Clock) -> None:
        super().__init__(database, clock)
        self._open_patient_views = open_patient_views

    @requires(Action.SEE_STUDIES)
    def queue(self, slug: str, person_id: PersonId) -> QueueView:
        """Count a reader's cases; all zero and `is_reader` false for somebody whom no coordinator has made a reader."""
        with self._database.read() as uow:
            terms = uow.studies.reader_at(slug, person_id)
            if terms is None:
                return nothing_assigned()
            reading = self._read(uow, require_active(terms, slug))
            return reading.cases.counts(uow.slots.holds_of_others(terms.study_id, person_id, self._clock()))

    @requires(Action.JUDGE)
    def next_case(
        self, slug: str, person_id: PersonId, after_case_id: CaseId | None = None, *, backwards: bool = False
    ) -> BlindedCase | None:
        """Return the case to read next, and hold it for this reader; None when nothing is left that way.

        `queue` says why. Forwards from the case just left: the next one not yet judged, round the end of the list,
        put-off cases last. Backwards: the reader's own case before it, judged or not. Raise RefusedError if the person
        is not a reader of the study, or the study takes no judgment.
        """
        with self._database.read() as uow:
            reading = self._read(uow, require_reader(uow, slug, person_id))
            way = reading.cases.before(after_case_id) if backwards else reading.cases.candidates(after_case_id)
            candidates = list(way)
            if not backwards:
                require_open(reading.terms)
            if not candidates:
                return None
            shown = _shown(uow, reading, candidates[0].case_id)
        held = self._hold_first(reading.terms, candidates)
        return None if held is None else self._show(reading, held, shown)

    @requires(Action.JUDGE)
    def read_ahead(self, slug: str, person_id: PersonId, after_case_id: CaseId) -> None:
        """Look up the patient of the case to read after one, so that it comes at once; the case is not held."""
        with self._database.read() as uow:
            reading = self._read(uow, require_reader(uow, slug, person_id))
            following = next(reading.cases.candidates(after_case_id), None)
            if following is None:
                return
            case = _shown(uow, reading, following.case_id).case
        self._open_patient_views(case.snapshot_hash).case(case.row_index, case.task_key)

    @requires(Action.JUDGE, unit_of="case_id")
    def case(self, slug: str, person_id: PersonId, case_id: CaseId) -> BlindedCase:
        """Return one case that is or may become this reader's, and hold it.

        Raise NotFoundError if the study has no such case, RefusedError if all its slots are taken by others, or the
        person is not a reader of the study.
        """
        with self._database.read() as uow:
            reading = self._read(uow, require_reader(uow, slug, person_id))
            slot = reading.cases.find(case_id)
            if slot is None:
                raise no_case(slug, case_id)
            may_open = slot.holds_slot or reading.cases.may_claim(slot)
            shown = _shown(uow, reading, case_id)
        if not may_open or self._hold_first(reading.terms, [slot]) is None:
            raise RefusedError(taken(case_id))
        return self._show(reading, case_id, shown)

    @requires(Action.JUDGE, unit_of="case_id")
    def save_draft(self, slug: str, person_id: PersonId, case_id: CaseId, draft: DraftView) -> None:
        """Keep what a reader has chosen and typed, and hold the case longer.

        Raise RefusedError if the hold lapsed and others took all slots (the draft is kept all the same), or the study
        is not open.
        """
        check_comment(draft.comment)
        now = self._clock()
        with self._database.write(case_id=case_id) as uow:
            terms = require_reader(uow, slug, person_id)
            require_open(terms)
            require_case(uow, terms, case_id)
            uow.drafts.put(Draft(case_id=case_id, reviewer_id=person_id, **vars(draft), written_at=now))
            has_place = _is_judged(uow, case_id, person_id) or _hold(uow, terms, case_id, now)
            uow.commit()
        if not has_place:
            raise RefusedError(f"{taken(case_id)} What you typed is kept.")

    @requires(Action.JUDGE, unit_of="case_id")
    def mark_later(self, slug: str, person_id: PersonId, case_id: CaseId) -> None:
        """Put a case off; it comes again when no other is left.

        Raise RefusedError if the reader holds no slot of the case, has judged it, or the study is not open.
        """
        now = self._clock()
        with self._database.write(case_id=case_id) as uow:
            terms = require_reader(uow, slug, person_id)
            require_open(terms)
            require_case(uow, terms, case_id)
            if _is_judged(uow, case_id, person_id):
                raise RefusedError(f"Case {case_id} is judged already; it cannot be put off.")
            until = now + timedelta(hours=terms.hold_hours)
            if not uow.slots.put_off(case_id, person_id, until=until, at=now):
                raise no_place(case_id)
            uow.commit()

    @requires(Action.JUDGE, unit_of="case_id")
    def take_up(self, slug: str, person_id: PersonId, case_id: CaseId) -> None:
        """Take a case that was put off among the others again; refused as `mark_later`."""
        now = self._clock()
        with self._database.write(case_id=case_id) as uow:
            terms = require_reader(uow, slug, person_id)
            require_open(terms)
            require_case(uow, terms, case_id)
            if _is_judged(uow, case_id, person_id):
                raise RefusedError(f"Case {case_id} is judged already; it need not be taken up again.")
            if not uow.slots.take_up(case_id, person_id, until=now + timedelta(hours=terms.hold_hours)):
                raise no_place(case_id)
            uow.commit()

    @requires(Action.JUDGE, unit_of="case_id")
    def submit_judgment(
        self,
        slug: str,
        person_id: PersonId,
        case_id: CaseId,
        *,
        answer: Answer | None,
        certainty: Certainty | None = None,
        comment: str = "",
        version_seen: int,
        form_key: str,
        reason: str = "",
        active_seconds: float | None = None,
    ) -> SavedJudgment:
        """Save a judgment in one transaction that may be repeated, and return what the database holds afterwards.

        A missing answer is refused: nothing is preselected, and nothing is guessed. `version_seen` and `form_key` are
        those of the `BlindedCase`: the same form is saved once, however often it is sent. A reason is needed for
        "cannot judge", and for changing a saved answer. Raise RefusedError if answer or reason is missing, the study is
        not open or does not offer the answer, or the reader holds no slot, ConflictError if the answer was changed
        elsewhere since the form was shown, DatabaseUnavailableError if it could not be kept; then nothing was.
        """
        form = JudgmentForm(slug, person_id, case_id, version_seen, form_key)
        given = AnswerInput(answer, certainty, comment, reason, active_seconds)
        return judging.save(self._database, self._clock(), form, given)

    @requires(Action.JUDGE, unit_of="case_id")
    def undo(self, slug: str, person_id: PersonId, case_id: CaseId, *, version_seen: int, form_key: str) -> BlindedCase:
        """Take back the version saved last: the one before counts again, or none; the choice comes back as a draft.

        Nothing is deleted: taking back is a separate version. Raise RefusedError if there is nothing to take back, or
        the study is not open, ConflictError if the answer was changed elsewhere since the form was shown.
        """
        form = JudgmentForm(slug, person_id, case_id, version_seen, form_key)
        judging.take_back(self._database, self._clock(), form)
        return self.case(slug, person_id, case_id)

    @requires(Action.SEE_STUDIES)
    def my_judgments(self, person_id: PersonId, slug: str | None = None) -> tuple[JudgmentRow, ...]:
        """Return a reader's own current judgments, of one study or of all, newest first."""
        with self._database.read() as uow:
            studies = [study for study in uow.studies.all() if slug is None or study.slug == slug]
            if slug is not None and not studies:
                raise NotFoundError(f"There is no study '{slug}'. See the Studies page for those there are.")
            rows: list[JudgmentRow] = []
            for study in studies:
                judgments = uow.judgments.of_person(person_id, study.id)
                if judgments:
                    reading = self._read(uow, require_reader(uow, study.slug, person_id))
                    cases = {case.case_id: case for case in uow.cases.blinded(study.id)}
                    rows += [own_row(reading, cases[judgment.case_id], judgment) for judgment in judgments]
        return tuple(sorted(rows, key=lambda row: row.saved_at, reverse=True))

    @requires(Action.JUDGE, unit_of="case_id")
    def feedback(self, slug: str, person_id: PersonId, case_id: CaseId) -> tuple[Answer, str] | None:
        """Return the reference answer and comment of a calibration case that the reader has judged; None without one.

        Raise RefusedError if the study counts, or the reader has not judged the case.
        """
        with self._database.read() as uow:
            terms = require_reader(uow, slug, person_id)
            require_case(uow, terms, case_id)
            if not terms.is_calibration:
                raise RefusedError(f"Study '{slug}' is not a calibration study; its readers get no feedback.")
            if not _is_judged(uow, case_id, person_id):
                raise RefusedError(f"Feedback on case {case_id} comes after saving: first your own judgment.")
            return uow.cases.reference(case_id)

    @requires(Action.SEE_STUDIES)
    def is_blinded(self, slug: str, person_id: PersonId | None) -> bool:
        """Return whether results of a study are still hidden from a person; never from None, the command line.

        They are hidden from the reader of an open study who has cases left; a case that others hold counts as left,
        because it may become this reader's when their hold lapses. From readers of an open panel they are hidden until
        it is locked, so that no answer is given or changed with the others' in view. Raise NotFoundError if there is no
        such study.
        """
        if person_id is None:
            return False
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
        if study.status is not StudyStatus.OPEN:
            return False
        queue = self.queue(slug, person_id)
        if study.is_open_panel:
            return queue.is_reader
        return queue.is_reader and queue.n_left + queue.n_held_by_others > 0

    def _hold_first(self, terms: ReadingTerms, candidates: list[ReaderSlot]) -> CaseId | None:
        """Hold the first case that is still to be had; writes only when something changes."""
        now = self._clock()
        first = candidates[0]
        if first.holds_slot and _is_safe(terms, first, now):
            return first.case_id
        # A hold promises nothing that a power failure could break: lost, it is taken again at the next look.
        for slot in candidates:
            with self._database.write(lasting=False, case_id=slot.case_id) as uow:
                if _may_open(uow, terms, slot, now):
                    uow.commit()
                    return slot.case_id
        return None

    def _show(self, reading: Reading, case_id: CaseId, shown: ShownCase) -> BlindedCase:
        """Put together what a blinded reader sees; the query behind it knows no score and no other reader."""
        if shown.case.case_id != case_id:
            with self._database.read() as uow:
                shown = _shown(uow, reading, case_id)
        return blinded_case(reading, shown, self._open_patient_views(shown.case.snapshot_hash))

    def _read(self, uow: UnitOfWork, terms: ReadingTerms) -> Reading:
        slots = within_units(uow, terms, uow.slots.of_reader(terms.study_id, terms.person_id, self._clock()))
        takes_new = terms.status is StudyStatus.OPEN
        return Reading(terms, ReaderList(slots, terms.order_seed, terms.person_id, takes_new=takes_new))


def _shown(uow: UnitOfWork, reading: Reading, case_id: CaseId) -> ShownCase:
    """Read what a reader is shown of a case."""
    shown = uow.cases.shown(reading.terms.study_id, case_id, reading.terms.person_id)
    if shown is None:
        raise no_case(reading.terms.slug, case_id)
    return shown


def _is_judged(uow: UnitOfWork, case_id: CaseId, person_id: PersonId) -> bool:
    current = uow.judgments.current(case_id, person_id)
    return current is not None and current.answer is not None


def _is_safe(terms: ReadingTerms, slot: ReaderSlot, now: datetime) -> bool:
    """Return whether a slot stays its reader's for some time without being held again."""
    if terms.status is not StudyStatus.OPEN or slot.held_until is None:
        return True
    return slot.held_until > now + timedelta(hours=1)


def _may_open(uow: UnitOfWork, terms: ReadingTerms, slot: ReaderSlot, now: datetime) -> bool:
    """Hold a case, if it can be had; a slot of his own is enough for a reader once the study takes nothing new."""
    if _hold(uow, terms, slot.case_id, now):
        return True
    return slot.holds_slot and uow.studies.by_slug(terms.slug).status is not StudyStatus.OPEN


def _hold(uow: UnitOfWork, terms: ReadingTerms, case_id: CaseId, now: datetime) -> bool:
    """Renew the reader's hold of a case, or take a free slot; False when there is none."""
    until = now + timedelta(hours=terms.hold_hours)
    return uow.slots.hold(terms.study_id, case_id, terms.person_id, now=now, until=until)
