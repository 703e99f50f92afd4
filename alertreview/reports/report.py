"""The report of a study: gather cases, votes, scores and design from the database, and hand them to the statistics."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from alertreview.records.snapshots import Snapshot
from alertreview.studies.case_selection import read_candidates
from alertreview.studies.models import CaseForReport
from alertreview.studies.results import repeats
from alertreview.studies.studies import StudyService
from core.scoring.scorers import label_of_scorer
from core.studies.make_report import StudyInput
from core.studies.report_input import REPEAT_COLUMNS, SAW_SCORE, STRATA_BY
from core.vocabulary import OPEN_PANEL, READING, CaseId, Decision, StudyId, StudyStatus
from db.database import Database
from db.models import Judgment, ScoringRun, Study
from db.unit_of_work import UnitOfWork

AGE_BANDS = (18, 40, 60, 80)


def gather_study(
    database: Database, studies: StudyService, open_snapshot: Callable[[str], Snapshot], slug: str
) -> StudyInput:
    """Gather everything that a study's report is computed from; hidden repeats are left out.

    Raise NotFoundError if there is no such study.
    """
    cases = studies.case_rows(slug)
    with database.read() as uow:
        study = uow.studies.by_slug(slug)
        votes = standing_versions(uow, study.id, {case.case_id for case in cases})
        run = uow.runs.get(study.run_id)
        question = uow.studies.rubric(study.id).question
        pairs = repeats(uow, slug)
        content_hash = uow.snapshots.get(run.snapshot_id).content_hash
    snapshot, design = open_snapshot(content_hash), study.selection_design
    return StudyInput(
        slug=study.slug,
        title=study.title,
        question=question,
        simulated=study.simulated,
        locked=study.status is StudyStatus.LOCKED,
        n_slots=study.n_slots,
        cases=_case_table(cases, snapshot),
        votes=pd.DataFrame(
            [
                (version.case_id, reader, int(version.answer), version.version, version.active_seconds)
                for reader, version in votes
                if version.answer is not None
            ],
            columns=["case_id", "reader", "answer", "version", "active_seconds"],
        ).astype({"active_seconds": float}),
        scores=pd.DataFrame(
            [
                {"case_id": case.case_id} | {name: says.scaled_score for name, says in case.scores.items()}
                for case in cases
            ]
        ),
        scorer_labels={name: label_of_scorer(name) for name in (run.scorer, *run.scorers)},
        strata=[(str(name), int(size), int(chosen)) for name, size, chosen in design.get("strata", [])],
        n_instances=run.n_recent,
        n_candidates=design.get("n_candidates"),
        n_patient_days=float(run.n_patient_days),
        budgets=read_candidates(database, snapshot, run).budgets(run.n_patient_days),
        snapshot_hour=snapshot.snapshot_hour,
        design=_design_texts(study, run, votes),
        repeats=pd.DataFrame(
            [(first.case_id, first.reader_code, int(first.answer), int(again.answer)) for first, again in pairs],
            columns=list(REPEAT_COLUMNS),
        ),
    )


def standing_versions(uow: UnitOfWork, study_id: StudyId, case_ids: set[CaseId]) -> list[tuple[str, Judgment]]:
    """Return every version of every judgment that stands, with its reader's code; who took an answer back has none.

    The cases are those that reports speak of: hidden repeats are not among them.
    """
    codes = {reader.person_id: reader.code for reader in uow.studies.readers(study_id)}
    versions = [version for version in uow.judgments.versions(study_id) if version.case_id in case_ids]
    newest = {(version.case_id, version.reviewer_id): version for version in versions}
    return [
        (codes[version.reviewer_id], version)
        for version in versions
        if version.answer is not None and newest[version.case_id, version.reviewer_id].answer is not None
    ]


def _case_table(cases: Sequence[CaseForReport], snapshot: Snapshot) -> pd.DataFrame:
    rows = [case.row_index for case in cases]
    persons = snapshot.instances.iloc[rows]
    return pd.DataFrame(
        {
            "case_id": [case.case_id for case in cases],
            "case_label": [case_label(case.case_number) for case in cases],
            "patient_id": [case.patient_id for case in cases],
            "task_key": [case.task_key for case in cases],
            "task_name": [case.task_name for case in cases],
            "kind": [case.kind.value for case in cases],
            "decision": [case.decision.value for case in cases],
            "unit": [case.unit for case in cases],
            "sex": persons["sex"].fillna("").astype(str).to_numpy(),
            "age_band": [age_band(age) for age in persons["age_years"]],
            "stratum": [case.stratum for case in cases],
            "inclusion_probability": [case.inclusion_probability for case in cases],
            "adjudicated_answer": [np.nan if case.adjudicated is None else float(case.adjudicated) for case in cases],
            "record_reference": _record_references(cases, snapshot),
        }
    )


def _record_references(cases: Sequence[CaseForReport], snapshot: Snapshot) -> list[float]:
    """Say what the record of the two following days speaks for: a late order makes up for an omission.

    1 when what was not done in the 24 h was done in the 48 h after, 0 when it was not, missing for commissions (nothing
    in the record takes an order back) and where the stay ended before.
    """
    at = snapshot.instances["snapshot_at"].to_numpy(dtype="datetime64[ns]")
    stays, days_of_stay = snapshot.instances["stay_id"], snapshot.instances.groupby("stay_id").indices
    columns = {key: column for column, key in enumerate(snapshot.tasks["task_key"])}

    def reference(case: CaseForReport) -> float:
        days = days_of_stay[stays.iloc[case.row_index]]
        hours = (at[days] - at[case.row_index]) / np.timedelta64(1, "h")
        later = days[(hours > 12) & (hours < 60)]
        if case.decision is Decision.COMMISSION or not later.size:
            return math.nan
        return float(snapshot.decisions[later, columns[case.task_key]].sum() > 0)

    return [reference(case) for case in cases]


def case_label(number: int) -> str:
    """Name a case for people; the same in reports and exports."""
    return f"C{number:03d}"


def age_band(age_years: float | None) -> str:
    """Put an age into a band wide enough to hide whose it is.

    Examples
    --------
    >>> age_band(71.2)
    '60-79'
    """
    if age_years is None or math.isnan(age_years):
        return ""
    if age_years < AGE_BANDS[0]:
        return f"under {AGE_BANDS[0]}"
    for low, high in pairwise(AGE_BANDS):
        if age_years < high:
            return f"{low}-{high - 1}"
    return f"{AGE_BANDS[-1]} and over"


def _design_texts(study: Study, run: ScoringRun, votes: Sequence[tuple[str, Judgment]]) -> dict[str, str]:
    texts = {
        "scoring run": str(run.id),
        "scorer": run.scorer,
        "split": run.split.value,
        "seed of the run": str(run.seed),
        "code version": run.code_version,
        "rubric version": str(study.rubric_version),
        "seed of the readers' orders": str(study.order_seed),
    }
    if study.is_open_panel:
        texts[READING] = OPEN_PANEL
    for key in ("preset", "seed", "edges", "quantiles", "balance_decisions", "half_in_largest"):
        if key in study.selection_design:
            texts[f"selection: {key}"] = str(study.selection_design[key])
    if (scorer := study.selection_design.get("strata_by", run.scorer)) != run.scorer:
        texts[STRATA_BY] = label_of_scorer(scorer)
    current = {(version.case_id, reader): version.saw_score_before for reader, version in votes}
    if (seen := sum(current.values())) and not study.is_open_panel:
        texts[SAW_SCORE] = str(seen)
    return texts
