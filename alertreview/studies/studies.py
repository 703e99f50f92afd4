"""Study set-up: cases and rubric, frozen on opening; readers, lock and reopening; the rows that reports start from."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from alertreview.records.snapshots import Snapshot
from alertreview.rights import COMMAND_LINE, Action, Service, operator_only, requires
from alertreview.settings import Clock
from alertreview.studies import results
from alertreview.studies.models import (
    CaseForReport,
    ChosenCase,
    Rubric,
    StudyHead,
    StudyProgress,
    StudyView,
    study_head,
    study_view,
)
from core.errors import InvalidInputError, RefusedError
from core.number_texts import counted
from core.vocabulary import Answer, PersonId, RunId, RunStatus, SnapshotId, StudyId, StudyStatus
from db.database import Database
from db.models import CaseScore, CastVote, Instance, ReferenceAnswer, ScoringRun, Study, StudyCase, Task
from db.models import Rubric as RubricVersion
from db.unit_of_work import UnitOfWork

HOLD_HOURS = 24.0
"""Time after which an opened case that nobody judged is free again."""
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?")


class StudyService(Service):
    """Use cases of coordinators and researchers."""

    @operator_only
    def create_study(
        self,
        slug: str,
        title: str,
        run_id: RunId,
        cases: Sequence[ChosenCase],
        *,
        n_slots: int = 3,
        order_seed: int = 0,
        rubric: Rubric = Rubric(),  # noqa: B008 - frozen
        selection_design: Mapping[str, Any] | None = None,
        is_calibration: bool = False,
        is_open_panel: bool = False,
        actor: str = COMMAND_LINE,
    ) -> StudyView:
        """Make a study as a draft, from cases that somebody chose by the scores of a published run.

        The short name, for links, has lower-case letters, digits and hyphens. `n_slots` readers read each case; an
        opened, unjudged one becomes free again after a day. The rubric, with a text for every answer code, is
        version 1; how the cases were chosen, as JSON knows it, is printed in reports. A calibration study is for
        training: readers get feedback, and no report ever takes the votes. Readers of an open panel may see the scores
        before they judge; it is never changed: who saw a score has seen it. Raise InvalidInputError, ConflictError or
        RefusedError if a value breaks a rule or names what the run's import lacks, the name is taken, or the run is
        unpublished.
        """
        _check_study(slug, title, n_slots)
        if is_open_panel and is_calibration:
            raise InvalidInputError(f"Study '{slug}' cannot be for training and an open panel. Choose one of them.")
        now = self._clock()
        with self._database.write() as uow:
            run = _published(uow, run_id)
            new = Study(
                slug=slug,
                title=title,
                run_id=run_id,
                n_slots=n_slots,
                order_seed=order_seed,
                hold_hours=HOLD_HOURS,
                simulated=uow.snapshots.get(run.snapshot_id).simulated,
                is_calibration=is_calibration,
                is_open_panel=is_open_panel,
                selection_design=dict(selection_design or {}),
                created_at=now,
            )
            study = uow.studies.add(new)
            uow.studies.add_rubric(_first_version(study.id, rubric, now))
            n_cases = _add_cases(uow, study, run.snapshot_id, cases)
            details = {"cases": n_cases, "slots": n_slots, "seed": order_seed, "run": run_id}
            details |= {"open_panel": True} if is_open_panel else {}
            uow.audit.append(now, actor, "study created", f"study {slug}", details)
            view = study_view(uow, study)
            uow.commit()
        return view

    @requires(Action.MANAGE_STUDIES, unit_of="slug")
    def add_readers(self, slug: str, person_ids: Sequence[PersonId], *, actor: str = COMMAND_LINE) -> None:
        """Let people take slots of a study; those who may already stay as they are.

        Raise NotFoundError if there is no such person, RefusedError if somebody was deactivated, or the study is
        locked.
        """
        with self._database.write() as uow:
            study = uow.studies.by_slug(slug)
            if study.status is StudyStatus.LOCKED:
                raise RefusedError(f"Study '{slug}' is locked. Reopen it before adding readers.")
            for person_id in person_ids:
                if not uow.people.get(person_id).active:
                    raise RefusedError(f"Person {person_id} was deactivated. Activate the person, or choose another.")
            before = [reader.person_id for reader in uow.studies.readers(study.id)]
            uow.studies.add_readers(study.id, person_ids)
            after = [reader.person_id for reader in uow.studies.readers(study.id)]
            details = {"before": before, "after": after}
            uow.audit.append(self._clock(), actor, "readers added", f"study {slug}", details)
            uow.commit()

    @requires(Action.MANAGE_STUDIES, unit_of="slug")
    def open_study(self, slug: str, *, actor: str = COMMAND_LINE) -> None:
        """Freeze run, cases, rubric and seed of a draft, and let its readers judge.

        Raise RefusedError if the study is no draft, has no case, or fewer readers than a case has slots.
        """
        with self._database.write() as uow:
            study = uow.studies.by_slug(slug)
            if study.status is not StudyStatus.DRAFT:
                raise RefusedError(
                    f"Study '{slug}' was opened: its run, cases, rubric and seed are frozen. Make a new study."
                )
            n_readers = len(uow.studies.readers(study.id))
            if not uow.cases.in_study(study.id):
                raise RefusedError(f"Study '{slug}' has no case. Choose cases before opening it.")
            if n_readers < study.n_slots:
                raise RefusedError(
                    f"Study '{slug}' has {counted(n_readers, 'reader')} and wants {study.n_slots} for each case. "
                    "Add readers before opening it."
                )
            self._set_status(uow, study, StudyStatus.OPEN, actor, "study opened", "")
            uow.commit()

    @requires(Action.MANAGE_STUDIES, unit_of="slug")
    def lock_study(self, slug: str, *, actor: str = COMMAND_LINE, reason: str = "") -> None:
        """Take no more judgments; raise RefusedError if the study is not open."""
        with self._database.write() as uow:
            study = uow.studies.by_slug(slug)
            if study.status is not StudyStatus.OPEN:
                raise RefusedError(f"Study '{slug}' is {study.status}; only an open study can be locked.")
            self._set_status(uow, study, StudyStatus.LOCKED, actor, "study locked", reason)
            uow.commit()

    @requires(Action.MANAGE_STUDIES, unit_of="slug")
    def reopen_study(self, slug: str, *, reason: str, actor: str = COMMAND_LINE) -> None:
        """Take judgments again; signatures under the report are superseded for good.

        Raise RefusedError if no reason is given, or the study is not locked.
        """
        if not reason.strip():
            raise RefusedError("Reopening a locked study needs a reason, which the audit trail keeps.")
        with self._database.write() as uow:
            study = uow.studies.by_slug(slug)
            if study.status is not StudyStatus.LOCKED:
                raise RefusedError(f"Study '{slug}' is {study.status}; only a locked study can be reopened.")
            self._set_status(uow, study, StudyStatus.OPEN, actor, "study reopened", reason)
            uow.signatures.supersede(study.id, self._clock())
            uow.commit()

    @requires(Action.SEE_STUDIES)
    def all(self) -> tuple[StudyView, ...]:
        """Return every study, newest first."""
        with self._database.read() as uow:
            return tuple(study_view(uow, study) for study in uow.studies.all())

    @requires(Action.SEE_STUDIES)
    def head(self, slug: str) -> StudyHead:
        """Return what a study asks, by its short name, without counting its judgments.

        Raise NotFoundError if there is none.
        """
        with self._database.read() as uow:
            return study_head(uow, uow.studies.by_slug(slug))

    @requires(Action.SEE_STUDIES)
    def view(self, slug: str) -> StudyView:
        """Return a study by its short name; raise NotFoundError if there is none."""
        with self._database.read() as uow:
            return study_view(uow, uow.studies.by_slug(slug))

    @operator_only
    def votes(self, slug: str) -> tuple[CastVote, ...]:
        """Return the current judgments of a study, by case and reader, without hidden repeats.

        Raise RefusedError if the study is for calibration: no report ever takes its votes.
        """
        with self._database.read() as uow:
            return results.votes(uow, slug)

    @operator_only
    def case_rows(self, slug: str) -> tuple[CaseForReport, ...]:
        """Return the cases of a study with how they were chosen and what scorers say, without hidden repeats.

        Raise RefusedError if the study is for calibration.
        """
        with self._database.read() as uow:
            return results.case_rows(uow, slug)

    @requires(Action.MANAGE_STUDIES, unit_of="slug")
    def progress(self, slug: str) -> StudyProgress:
        """Count how far a study and its readers have come; hidden repeats do not count."""
        with self._database.read() as uow:
            return results.progress(uow, slug, self._clock())

    def _set_status(
        self, uow: UnitOfWork, study: Study, status: StudyStatus, actor: str, action: str, reason: str
    ) -> None:
        now = self._clock()
        uow.studies.set_status(
            study.id,
            status,
            opened_at=study.opened_at or now,
            locked_at=now if status is StudyStatus.LOCKED else None,
        )
        details = {"before": study.status.value, "after": status.value, "reason": reason}
        uow.audit.append(now, actor, action, f"study {study.slug}", details)


class OfStudies(Service):
    """Base of services that look into studies and imports, and hide results from whoever has still to judge."""

    def __init__(
        self,
        database: Database,
        studies: StudyService,
        open_snapshot: Callable[[str], Snapshot],
        is_blinded: Callable[[str, PersonId | None], bool],
        clock: Clock,
    ) -> None:
        super().__init__(database, clock)
        self._studies = studies
        self._open_snapshot = open_snapshot
        self._is_blinded = is_blinded


def _check_study(slug: str, title: str, n_slots: int) -> None:
    if not _SLUG.fullmatch(slug):
        raise InvalidInputError(
            f"The short name '{slug[:60]}' cannot be used: lower-case letters, digits and hyphens, at most 60."
        )
    if not title.strip():
        raise InvalidInputError(f"Study '{slug}' has no title. Give it one that readers understand.")
    if n_slots < 1:
        raise InvalidInputError(f"Study '{slug}' wants {n_slots} readers for each case; at least 1 is needed.")


def _published(uow: UnitOfWork, run_id: RunId) -> ScoringRun:
    run = uow.runs.get(run_id)
    if run.status is not RunStatus.PUBLISHED:
        raise RefusedError(f"Scoring run {run_id} is {run.status}; a study needs a published run.")
    return run


def _first_version(study_id: StudyId, rubric: Rubric, now: datetime) -> RubricVersion:
    if set(rubric.answer_texts) != set(Answer) or not all(text.strip() for text in rubric.answer_texts.values()):
        raise InvalidInputError(f"Every answer code, 0 to {max(Answer):d}, needs a text, and there are no others.")
    return RubricVersion(
        study_id=study_id,
        version=1,
        question=rubric.question,
        guidelines=rubric.guidelines,
        answer_texts={answer.key: rubric.answer_texts[answer] for answer in sorted(Answer)},
        created_at=now,
    )


def _add_cases(uow: UnitOfWork, study: Study, snapshot_id: SnapshotId, chosen: Sequence[ChosenCase]) -> int:
    if study.is_open_panel and any(case.repeat_number for case in chosen):
        raise InvalidInputError(
            f"Study '{study.slug}' is an open panel, whose readers would know a case again: leave hidden repeats out."
        )
    tasks = {task.task_key: task for task in uow.snapshots.tasks(snapshot_id)}
    instances = uow.snapshots.instances_at(snapshot_id, [case.row_index for case in chosen])
    new = [_new_case(case, instances.get(case.row_index), tasks.get(case.task_key)) for case in chosen]
    _check_distinct([(case.instance_id, case.task_id, case.repeat_number) for case in new])
    case_ids = uow.cases.add(study.id, 1, new, study.n_slots)
    uow.cases.add_scores(
        CaseScore(case_id=case_id, scorer=scorer, **vars(says))
        for case_id, case in zip(case_ids, chosen, strict=True)
        for scorer, says in case.scores.items()
    )
    uow.cases.add_references(
        ReferenceAnswer(case_id=case_id, answer=case.reference[0], comment=case.reference[1])
        for case_id, case in zip(case_ids, chosen, strict=True)
        if case.reference
    )
    return len(case_ids)


def _new_case(case: ChosenCase, instance: Instance | None, task: Task | None) -> StudyCase:
    if instance is None:
        raise InvalidInputError(f"The import of the run has no instance in row {case.row_index}. Choose cases from it.")
    if task is None:
        raise InvalidInputError(f"The import of the run has no task '{case.task_key}'. Choose cases from its tasks.")
    if not 0 < case.inclusion_probability <= 1:
        raise InvalidInputError(
            f"The case in row {case.row_index}, task '{case.task_key}', has inclusion probability "
            f"{case.inclusion_probability}; it must be above 0 and at most 1."
        )
    return StudyCase(
        instance_id=instance.id,
        task_id=task.id,
        patient_id=instance.patient_id,
        snapshot_at=instance.snapshot_at,
        task_key=task.task_key,
        decision=case.decision,
        stratum=case.stratum,
        stratum_size=case.stratum_size,
        inclusion_probability=case.inclusion_probability,
        repeat_number=case.repeat_number,
    )


def _check_distinct(keys: Sequence[tuple[int, int, int]]) -> None:
    if len(set(keys)) != len(keys):
        raise InvalidInputError("A case was chosen twice. Choose each instance x task once, or number its repeats.")
    firsts = {(instance, task) for instance, task, repeat in keys if repeat == 0}
    if any((instance, task) not in firsts for instance, task, repeat in keys if repeat):
        raise InvalidInputError("A hidden repeat has no first showing in the study. Add the case itself as well.")
