"""The coordinator's desk: a plan is previewed and becomes a draft; a study that ended trains the next readers."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from alertreview.rights import COMMAND_LINE, Action, requires
from alertreview.scoring.models import Histogram
from alertreview.studies.case_selection import Candidates, cases_of, read_candidates
from alertreview.studies.models import (
    ANSWER_TEXTS,
    ChosenCase,
    PlanPreview,
    Rubric,
    SelfAgreement,
    StratumProgress,
    StudyPaper,
    StudyPlan,
    StudyView,
    history_of,
    states_of_cases,
)
from alertreview.studies.results import repeats
from alertreview.studies.studies import OfStudies
from core.errors import InvalidInputError, NotFoundError, RefusedError
from core.number_texts import counted
from core.statistics.design_planning import ExpectedReaders, Forecast, expected_strata, forecast, plan_designs
from core.vocabulary import Answer, CaseId, CaseState, PersonId, RunId, StudyStatus
from db.models import ListedCase, ScoringRun, Study
from db.unit_of_work import UnitOfWork

_DECIDED = frozenset({CaseState.MAJORITY, CaseState.ADJUDICATED})


def training_cases(uow: UnitOfWork, source: Study, n_cases: int, seed: int) -> list[ChosenCase]:
    """Choose training cases from the decided cases of a locked study, taking turns between its labels.

    There are fewer where the study has fewer. Raise RefusedError if no case of it is decided.
    """
    if n_cases < 1:
        raise InvalidInputError(f"A training study needs at least 1 case, not {n_cases}.")
    references = _references(uow, source)
    if not references:
        raise RefusedError(f"No case of study '{source.slug}' is decided, so there is nothing to train on.")
    cases = {case.id: case for case in uow.cases.in_study(source.id) if case.id in references}
    rng = np.random.default_rng(seed)
    shuffled = [list(cases)[at] for at in rng.permutation(len(cases))]
    of_label = [[c for c in shuffled if references[c][0] is answer] for answer in Answer]
    turns = [group[at] for at in range(len(shuffled)) for group in of_label if at < len(group)]
    return [_training_case(cases[case_id], references[case_id]) for case_id in turns[:n_cases]]


def _references(uow: UnitOfWork, source: Study) -> dict[CaseId, tuple[Answer, str]]:
    """Return label and a sentence on where it comes from, for each decided case."""
    states = states_of_cases(uow, source)
    adjudicated = {row.case_id: row for row in uow.adjudications.in_study(source.id)}
    answers: dict[CaseId, list[int]] = {}
    for vote in uow.judgments.votes(source.id):
        answers.setdefault(vote.case_id, []).append(int(vote.answer))
    found: dict[CaseId, tuple[Answer, str]] = {}
    for case_id, state in states.items():
        if state not in _DECIDED:
            continue
        settled = adjudicated.get(case_id)
        if settled is not None:
            found[case_id] = (settled.answer, settled.comment or "An adjudicator settled this case.")
            continue
        votes = answers[case_id]
        answer, n_same = Counter(votes).most_common(1)[0]
        # 1, 2 and 3 decide for "not relevant", and yet no answer of the three is the panel's.
        if 2 * n_same > len(votes):
            found[case_id] = (Answer(answer), f"{n_same} of {counted(len(votes), 'reader')} answered so.")
    return {case_id: reference for case_id, reference in found.items() if reference[0].is_vote}


def _training_case(case: ListedCase, reference: tuple[Answer, str]) -> ChosenCase:
    return ChosenCase(
        row_index=case.row_index,
        task_key=case.task_key,
        decision=case.decision,
        stratum=case.stratum,
        stratum_size=case.stratum_size,
        inclusion_probability=case.inclusion_probability,
        reference=reference,
    )


N_BINS = 40
CACHED_CANDIDATES = 2


class StudyDesk(OfStudies):
    """Use cases of the set-up page."""

    # Published runs never change, so what was read of one stays right.
    _candidates = cached_property(lambda self: lru_cache(maxsize=CACHED_CANDIDATES)(self._read_candidates))

    @requires(Action.MANAGE_STUDIES, all_units=True)
    def preview(self, plan: StudyPlan) -> PlanPreview:
        """Return what a plan would choose from the last published run; nothing is stored.

        Raise NotFoundError if nothing was scored yet, InvalidInputError if the plan breaks a rule.
        """
        run = self._run()
        scorer = plan.scorer or run.scorer
        candidates = self._candidates(run.id, scorer)
        selection = candidates.choose(plan.design)
        chosen = [
            (int(candidates.row[index]), candidates.tasks[candidates.task[index]].task_key) for index in selection.index
        ]
        with self._database.read() as uow:
            alerts = uow.alerts.ids_of_decisions(run.id, chosen)
        return PlanPreview(
            run_id=run.id,
            scorer=scorer,
            candidates=_histogram(candidates.scores()),
            strata=selection.strata,
            n_candidates=selection.n_candidates,
            n_chosen=len(selection.index),
            n_patients=len(np.unique(candidates.patient[selection.index])),
            n_alerts=len(alerts),
            left_out=dict(selection.left_out),
            notes=selection.notes,
        )

    @requires(Action.MANAGE_STUDIES, all_units=True)
    def plan_pilot(
        self, plan: StudyPlan, auc: float, relevant_share: float, half_width: float
    ) -> tuple[Forecast, tuple[Forecast, ...]]:
        """Return what to expect of a study before anybody has judged a case, by simulating it.

        The first answer is about the plan as it stands; then comes, for each allocation, the study that reaches the
        half width of the AUC's interval, the recommended one first. AUC and share are assumed of the panel's labels on
        all candidates. The plan's strata of the last published run are simulated; omissions and commissions of one
        range are one stratum. Raise NotFoundError if nothing was scored yet, InvalidInputError if the plan breaks a
        rule, or an assumption lies outside its range.
        """
        run = self._run()
        candidates = self._candidates(run.id, plan.scorer or run.scorer)
        by_range: dict[float, list[int]] = {}
        for stratum in candidates.choose(plan.design).strata:
            counts = by_range.setdefault(stratum.low, [0, 0])
            counts[0], counts[1] = counts[0] + stratum.n_population, counts[1] + stratum.n_chosen
        kept = [counts for counts in by_range.values() if counts[0]]
        expected = expected_strata([n_candidates for n_candidates, _ in kept], auc, relevant_share)
        n_patients = len(np.unique(candidates.patient))
        readers = ExpectedReaders(plan.n_readers)
        chosen = [n_chosen for _, n_chosen in kept]
        own = forecast(expected, chosen, n_patients=n_patients, readers=readers, allocation="as planned")
        return own, plan_designs(expected, half_width, n_patients=n_patients, readers=readers)

    @requires(Action.MANAGE_STUDIES, all_units=True)
    def set_up(
        self,
        slug: str,
        title: str,
        plan: StudyPlan,
        rubric: Rubric,
        reader_ids: Sequence[PersonId],
        *,
        is_open_panel: bool = False,
        actor: str = COMMAND_LINE,
    ) -> StudyView:
        """Make a draft with chosen cases and readers; `StudyService.open_study` starts it.

        Readers of an open panel may see the scores before they judge; it never changes afterwards. Raise
        InvalidInputError, ConflictError or NotFoundError if a value breaks a rule, the short name is taken, or nothing
        was scored yet.
        """
        run = self._run()
        scorer = plan.scorer or run.scorer
        cases, design = cases_of(self._database, run, self._candidates(run.id, scorer), plan, scorer)
        self._studies.create_study(
            slug,
            title,
            run.id,
            cases,
            n_slots=plan.n_readers,
            order_seed=plan.seed,
            rubric=rubric,
            selection_design=design,
            is_open_panel=is_open_panel,
            actor=actor,
        )
        return self._with_readers(slug, reader_ids, actor)

    @requires(Action.MANAGE_STUDIES, unit_of="from_slug")
    def set_up_training(
        self,
        slug: str,
        title: str,
        from_slug: str,
        n_cases: int,
        reader_ids: Sequence[PersonId],
        *,
        seed: int = 1,
        actor: str = COMMAND_LINE,
    ) -> StudyView:
        """Make a training study of the decided cases of a locked study: each reader reads all, with feedback.

        Its votes never enter a report. The label that the panel found is the reference. Raise RefusedError if the study
        is not locked, or has no decided case.
        """
        with self._database.read() as uow:
            source = uow.studies.by_slug(from_slug)
            if source.status is not StudyStatus.LOCKED:
                raise RefusedError(
                    f"Study '{from_slug}' is {source.status}: its answers would be given away. Train on a locked one."
                )
            rubric = uow.studies.rubric(source.id)
            chosen = training_cases(uow, source, n_cases, seed)
        if not reader_ids:
            raise InvalidInputError("A training study needs the readers who are to be trained. Choose at least one.")
        self._studies.create_study(
            slug,
            title,
            source.run_id,
            chosen,
            n_slots=len(reader_ids),
            order_seed=seed,
            rubric=Rubric(rubric.question, {**ANSWER_TEXTS, **rubric.answers}, rubric.guidelines),
            selection_design={"preset": f"training on decided cases of study {from_slug}"},
            is_calibration=True,
            actor=actor,
        )
        return self._with_readers(slug, reader_ids, actor)

    @requires(Action.MANAGE_STUDIES, unit_of="slug")
    def paper(self, slug: str) -> StudyPaper:
        """Return what a study was set up with, and its history with reasons; raise NotFoundError if there is none."""
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            rubric = uow.studies.rubric(study.id)
            return StudyPaper(
                slug=slug,
                rubric=Rubric(rubric.question, rubric.answers, rubric.guidelines),
                rubric_version=study.rubric_version,
                run_id=study.run_id,
                order_seed=study.order_seed,
                design=dict(study.selection_design),
                reader_ids=tuple(reader.person_id for reader in uow.studies.readers(study.id)),
                n_repeats=sum(case.repeat_number > 0 for case in uow.cases.in_study(study.id)),
                is_calibration=study.is_calibration,
                history=history_of(uow, study),
            )

    @requires(Action.MANAGE_STUDIES, unit_of="slug")
    def self_agreement(self, slug: str, person_id: PersonId | None = None) -> tuple[SelfAgreement, ...]:
        """Count how often each reader answered a hidden repeat as the first time.

        Raise RefusedError if results of the study are still hidden from the person, or it is for training.
        """
        if self._is_blinded(slug, person_id):
            raise RefusedError("How readers agree with themselves is shown once your own cases are judged.")
        with self._database.read() as uow:
            pairs = repeats(uow, slug)
        n_pairs = Counter(first.reader_code for first, _ in pairs)
        n_same = Counter(first.reader_code for first, again in pairs if first.answer is again.answer)
        return tuple(SelfAgreement(code, n_pairs[code], n_same[code]) for code in sorted(n_pairs))

    @requires(Action.MANAGE_STUDIES, unit_of="slug")
    def strata(self, slug: str, person_id: PersonId | None = None) -> tuple[StratumProgress, ...]:
        """Count where the cases of each stratum stand, highest scores first; hidden repeats do not count.

        Raise RefusedError if results of the study are still hidden from the person: strata tell what to expect.
        """
        if self._is_blinded(slug, person_id):
            raise RefusedError("Strata are shown once your own cases are judged: they tell what to expect of the next.")
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            states = states_of_cases(uow, study)
            stratum = {case.id: case.stratum for case in uow.cases.in_study(study.id) if case.id in states}
            scorer = study.selection_design.get("strata_by") or uow.runs.get(study.run_id).scorer
            scores: dict[str, list[float]] = {name: [] for name in stratum.values()}
            for row in uow.cases.scores(study.id):
                if row.scorer == scorer and row.case_id in stratum:
                    scores[stratum[row.case_id]].append(row.scaled_score)
        counts = {name: Counter(states[case_id] for case_id, one in stratum.items() if one == name) for name in scores}
        return tuple(
            StratumProgress(
                name,
                n_open=n[CaseState.OPEN],
                n_decided=(done := sum(n[state] for state in _DECIDED)),
                n_undecided=n.total() - n[CaseState.OPEN] - done,
            )
            for name, n in sorted(counts.items(), key=lambda one: -max(scores[one[0]], default=0.0))
        )

    def _with_readers(self, slug: str, reader_ids: Sequence[PersonId], actor: str) -> StudyView:
        if reader_ids:
            self._studies.add_readers(slug, reader_ids, actor=actor)
        return self._studies.view(slug)

    def _run(self) -> ScoringRun:
        with self._database.read() as uow:
            run = uow.runs.latest_published()
        if run is None:
            raise NotFoundError("There are no scores to choose cases from. Score the site first (alertreview score).")
        return run

    def _read_candidates(self, run_id: RunId, scorer: str) -> Candidates:
        with self._database.read() as uow:
            run = uow.runs.get(run_id)
            content_hash = uow.snapshots.get(run.snapshot_id).content_hash
        return read_candidates(self._database, self._open_snapshot(content_hash), run, scorer)


def _histogram(scores: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> Histogram:
    counts, edges = np.histogram(scores, bins=N_BINS)
    if any(b <= a for a, b in pairwise(edges)):
        return Histogram((float(edges[0]), float(edges[-1])), (int(counts.sum()),))
    return Histogram(tuple(float(edge) for edge in edges), tuple(int(count) for count in counts))
