"""Makes what a reader sees, from rows that hold nothing else: a blinded case, and the reader's own judgments."""

import uuid
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from alertreview.decision_words import sentence
from alertreview.patient_views import PatientViews
from alertreview.read_models import BlindedCase, DraftView, JudgmentRow
from alertreview.reader_list import ReaderList
from core.errors import StoreError
from db.rows import BlindedRow, DraftRow, JudgmentVersion, OwnAnswer, ReadingTerms, ShownRow


@dataclass(frozen=True)
class Reading:
    """A reader at a study, as of one unit of work."""

    terms: ReadingTerms
    cases: ReaderList

    def label(self, case_id: int) -> str:
        """Give the reader's own name of a case: the reader's letter (A, B, ... Z, AA, ...) and the case's number."""
        letters, number = "", self.terms.number
        while number > 0:
            number, rest = divmod(number - 1, 26)
            letters = chr(ord("A") + rest) + letters
        return f"{letters}{self.cases.number(case_id)}"


def blinded_case(
    reading: Reading,
    shown: ShownRow,
    patients: PatientViews,
) -> BlindedCase:
    """Put together what a blinded reader sees of a case.

    Parameters
    ----------
    reading : Reading
        The reader at the study.
    shown : ShownRow
        All that may be known of the case, and the reader's own answer and draft.
    patients : PatientViews
        Of the import that the case was chosen from.
    """
    row, current = shown.case, shown.current
    return BlindedCase(
        study_slug=reading.terms.slug,
        case_id=row.case_id,
        case_label=reading.label(row.case_id),
        position=reading.cases.position(row.case_id),
        n_cases=len(reading.cases.mine),
        task_name=row.task_name,
        kind=row.kind,
        decision=row.decision,
        decision_words=sentence(row.task_name, row.kind, row.decision),
        sex=row.sex,
        age_years=row.age_years,
        unit=row.unit,
        day_of_stay=row.day_of_stay,
        window_hours=row.window_hours,
        timeline=patients.timeline(row.row_index, row.task_key),
        last_values=patients.last_values(row.row_index),
        draft=_draft_view(shown.draft, current),
        version_seen=current.version if current else 0,
        form_key=uuid.uuid4().hex,
        is_judged=current is not None and current.answer is not None,
    )


def own_row(reading: Reading, case: BlindedRow, judgment: JudgmentVersion) -> JudgmentRow:
    """Put together one of a reader's own current judgments."""
    if judgment.answer is None:
        raise StoreError(f"The current judgment of case {case.case_id} has no answer.")
    return JudgmentRow(
        study_slug=reading.terms.slug,
        case_id=case.case_id,
        case_label=reading.label(case.case_id),
        decision_words=sentence(case.task_name, case.kind, case.decision),
        answer=judgment.answer,
        certainty=judgment.certainty,
        comment=judgment.comment,
        saved_at=judgment.judged_at.astimezone(ZoneInfo(case.site_timezone)),
        version=judgment.version,
    )


def _draft_view(draft: DraftRow | None, current: OwnAnswer | None) -> DraftView:
    """Show the draft, else the saved answer, else nothing: nothing is preselected."""
    shown = draft or current
    return DraftView(shown.answer, shown.certainty, shown.comment) if shown else DraftView(None, None, "")
