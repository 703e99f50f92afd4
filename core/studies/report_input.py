"""What a report is made from: cases, votes, scores and the design of one study, checked and turned into arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import InvalidInputError
from core.statistics.alert_rate import BUDGETS, HEADLINE_BUDGET, Budget
from core.statistics.consensus import FloatArray, check_answers
from core.statistics.estimate import check_level

CASE_COLUMNS = (
    "case_id",
    "case_label",
    "patient_id",
    "task_key",
    "task_name",
    "kind",
    "decision",
    "unit",
    "sex",
    "age_band",
    "stratum",
    "inclusion_probability",
    "adjudicated_answer",
    "record_reference",
)
VOTE_COLUMNS = ("case_id", "reader", "answer", "version")
STRATA_BY = "selection: strata_by"
"""Entry of a report's design with the scorer whose scores divide the strata, where it is not the primary one."""
SAW_SCORE = "judgments after the reader had seen the score"
"""Entry of a report's design with how many current judgments these are, in a blinded study that has any."""
REPEAT_COLUMNS = ("case_id", "reader", "first_answer", "repeat_answer")


@dataclass(frozen=True)
class StudyInput:
    """One study, as arrays and tables."""

    slug: str
    title: str
    question: str
    simulated: bool  # whether any of cases, scores or votes is simulated
    # A locked study takes no more votes: incomplete cases are labelled from the votes that are there. In an open one
    # they wait.
    locked: bool
    n_slots: int  # readers wanted for each case
    # One row for each chosen case, all columns required: ``case_id`` (int or str, unique), ``case_label`` (str, for
    # people), ``patient_id`` (str), ``task_key``, ``task_name`` (str), ``kind`` (value of `Kind`), ``decision`` (value
    # of `Decision`), ``unit``, ``sex``, ``age_band`` (str, "" when unknown), ``stratum`` (str, name as in `strata`),
    # ``inclusion_probability`` (float in (0, 1], missing when unknown), ``adjudicated_answer`` (Answer code, missing
    # when not adjudicated), ``record_reference`` (1 when the record of the next 24-72 h speaks for "unusual", 0 when
    # against, missing when it does not tell).
    cases: pd.DataFrame
    # One row for each version of a judgment: ``case_id``, ``reader`` (str, a code), ``answer`` (Answer code),
    # ``version`` (int from 1; the highest counts; (case, reader, version) is unique), and, if measured,
    # ``active_seconds`` (float).
    votes: pd.DataFrame
    # ``case_id`` and one column of scores for each scorer, by its key; higher = more unusual; missing where a scorer
    # has no score. A scorer without a column is reported as "its run is gone".
    scores: pd.DataFrame
    # Scorer key to its name for people; the first one is the primary scorer, by whose scores alerts are shown.
    scorer_labels: Mapping[str, str]
    # (name, candidates, chosen) of every stratum, those with nothing chosen included; empty when unknown.
    strata: Sequence[tuple[str, int, int]] = ()
    # `n_instances` and `n_candidates`: patient-state instances behind the run, and candidates the cases were chosen
    # from.
    n_instances: int | None = None
    n_candidates: int | None = None
    n_patient_days: float | None = None  # patient-days over which alerts are counted; `n_instances` when left out
    # Curve name ("both", "omission", "commission", or the key of a kind) to its budgets with thresholds counted over
    # the whole run. A curve that is missing gets its thresholds from the weights.
    budgets: Mapping[str, Sequence[Budget]] = field(default_factory=dict)
    headline_budget: float = HEADLINE_BUDGET  # alerts per patient-day quoted in the headline
    # What counts as positive in words, first rule and second.
    positive_texts: tuple[str, ...] = ("unusual and clinically relevant", "unusual, clinically relevant or not")
    # Run, versions, seed, hashes: printed and stored with the report.
    design: Mapping[str, str] = field(default_factory=dict)
    level: float = 0.95
    snapshot_hour: str = "the snapshot hour"  # time of day of the instances in words: "06:00"
    # One row for each case that a reader answered twice: ``case_id``, ``reader``, ``first_answer``, ``repeat_answer``
    # (Answer codes).
    repeats: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(REPEAT_COLUMNS)))


@dataclass(frozen=True)
class StudyArrays:
    """A checked `StudyInput`, by case in the order of its ids, so that the order of rows changes nothing."""

    source: StudyInput
    cases: pd.DataFrame
    texts: dict[str, NDArray[np.object_]]  # shape (n_cases,): columns of the cases as text, "" where missing
    patient: NDArray[np.int64]  # shape (n_cases,): code of each case's patient
    answers: FloatArray  # shape (n_cases, n_readers): current answers; NaN where there is no judgment
    readers: tuple[str, ...]  # codes, sorted
    scores: dict[str, FloatArray]  # shape (n_cases,)
    weight: FloatArray  # shape (n_cases,): inverse inclusion probability; NaN when unknown
    # Shape (n_cases,): position in `stratum_size`. Where the strata are unknown, cases of one inclusion probability are
    # one.
    stratum: NDArray[np.int64]
    stratum_size: FloatArray  # shape (n_strata,): candidates of each stratum
    seconds: FloatArray  # active seconds of the current judgments that have them
    gone: tuple[str, ...]  # scorers without any score

    @property
    def n(self) -> int:
        """Number of cases."""
        return len(self.cases)

    def column(self, name: str) -> NDArray[np.object_]:
        """One column of the cases as text."""
        return self.texts[name]

    def numbers(self, name: str) -> FloatArray:
        """One column of the cases as numbers, NaN where missing."""
        return _numbers(self.cases[name], f"cases.{name}")

    def budgets_of(self, curve: str) -> Sequence[Budget | float]:
        """Budgets of one curve of true-alert rates."""
        return self.source.budgets.get(curve) or BUDGETS


def prepare(study: StudyInput) -> StudyArrays:
    """Check a study's tables and turn them into arrays.

    Raise InvalidInputError, naming table, column and value, if a column is missing, an id is not unique or unknown, or
    a number is impossible.
    """
    check_level(study.level)
    _demand_columns("cases", study.cases, CASE_COLUMNS)
    _demand_columns("votes", study.votes, VOTE_COLUMNS)
    _demand_columns("scores", study.scores, ("case_id",))
    if not study.scorer_labels:
        raise InvalidInputError("The study names no scorer. Give at least one in 'scorer_labels'.")
    _demand_unique("cases", study.cases, ["case_id"])
    _demand_unique("votes", study.votes, ["case_id", "reader", "version"])
    _demand_unique("scores", study.scores, ["case_id"])
    cases = study.cases.iloc[_in_order(study.cases["case_id"])].reset_index(drop=True)
    known = pd.Index(cases["case_id"])
    _demand_known("votes", study.votes, known)
    _demand_known("scores", study.scores, known)
    _demand_columns("repeats", study.repeats, REPEAT_COLUMNS)
    _demand_known("repeats", study.repeats, known)
    probability = _numbers(cases["inclusion_probability"], "cases.inclusion_probability")
    if bad := probability[~np.isnan(probability) & ~((probability > 0.0) & (probability <= 1.0))].tolist():
        raise InvalidInputError(
            f"Inclusion probability {bad[0]:g} is not above 0 and at most 1. A chosen case had a chance to be chosen."
        )
    answers, readers, seconds = _current_answers(study.votes, known)
    by_case = study.scores.set_index("case_id").reindex(known)
    scores = {
        key: _numbers(by_case[key], f"scores.{key}") if key in by_case else np.full(len(known), np.nan)
        for key in study.scorer_labels
    }
    gone = tuple(key for key, values in scores.items() if not np.isfinite(values).any())
    texts = {name: cases[name].astype("object").fillna("").astype(str).to_numpy(dtype=object) for name in CASE_COLUMNS}
    patient = np.unique(texts["patient_id"], return_inverse=True)[1].astype(np.int64)
    weight = 1.0 / probability
    stratum, stratum_size = _strata(study, texts["stratum"], weight)
    return StudyArrays(
        study, cases, texts, patient, answers, readers, scores, weight, stratum, stratum_size, seconds, gone
    )


def _strata(study: StudyInput, names: NDArray[np.object_], weight: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the stratum of each case and the candidates of each stratum."""
    known = {name: (position, n_candidates) for position, (name, n_candidates, _) in enumerate(study.strata)}
    if set(names) <= known.keys():
        sizes = np.array([n_candidates for _, n_candidates in known.values()], dtype=np.float64)
        return np.array([known[name][0] for name in names], dtype=np.int64), sizes
    groups = np.unique(np.nan_to_num(weight), return_inverse=True)[1].astype(np.int64)
    return groups, np.bincount(groups, np.nan_to_num(weight)).astype(np.float64)


def _in_order(ids: pd.Series) -> NDArray[np.int64]:
    """Positions of the ids in rising order; whole numbers by size, also when they come as text from a file."""
    texts = [str(value) for value in ids]
    if all(text.isdecimal() for text in texts):
        return np.array(sorted(range(len(texts)), key=lambda i: (int(texts[i]), texts[i])), dtype=np.int64)
    return np.array(sorted(range(len(texts)), key=lambda i: texts[i]), dtype=np.int64)


def _current_answers(votes: pd.DataFrame, known: pd.Index) -> tuple[FloatArray, tuple[str, ...], FloatArray]:
    """Matrix of the newest versions, its readers, and the measured reading times."""
    newest = votes.sort_values("version", kind="stable").drop_duplicates(["case_id", "reader"], keep="last")
    readers = tuple(sorted(str(r) for r in newest["reader"].unique()))
    answers = np.full((len(known), len(readers)), np.nan)
    rows = known.get_indexer(newest["case_id"])
    columns = pd.Index(readers).get_indexer(newest["reader"].astype(str))
    answers[rows, columns] = _numbers(newest["answer"], "votes.answer")
    seconds = np.empty(0)
    if "active_seconds" in newest:
        seconds = np.sort(_numbers(newest["active_seconds"], "votes.active_seconds"))
        seconds = seconds[np.isfinite(seconds) & (seconds > 0.0)]
    return check_answers(answers), readers, seconds


def _numbers(column: pd.Series, name: str) -> FloatArray:
    try:
        numbers: FloatArray = pd.to_numeric(column, errors="raise").to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError):
        raise InvalidInputError(
            f"Column '{name}' holds something that is not a number. Leave missing values empty."
        ) from None
    return numbers


def _demand_columns(table: str, frame: pd.DataFrame, names: Sequence[str]) -> None:
    if missing := [name for name in names if name not in frame.columns]:
        raise InvalidInputError(f"Table '{table}' has no column '{missing[0]}'; it needs {', '.join(names)}.")


def _demand_unique(table: str, frame: pd.DataFrame, names: list[str]) -> None:
    twice = frame.duplicated(names)
    if twice.any():
        value = ", ".join(str(frame.loc[twice, name].iloc[0]) for name in names)
        raise InvalidInputError(f"Table '{table}' has ({', '.join(names)}) = ({value}) twice; it must be unique.")


def _demand_known(table: str, frame: pd.DataFrame, known: pd.Index) -> None:
    unknown = frame.loc[~frame["case_id"].isin(known), "case_id"]
    if len(unknown):
        raise InvalidInputError(f"Table '{table}' names case {unknown.iloc[0]}, which is not among the study's cases.")
