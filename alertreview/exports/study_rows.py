"""Rows of every exported table of a study, made from what its report is made from."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alertreview.exports.schema import TableSchema, table_schema
from core.errors import InvalidInputError
from core.statistics.consensus import UNUSUAL_OR_RELEVANT, adjudicated_label, dawid_skene, positive_votes
from core.statistics.estimate import Estimate
from core.studies.make_report import case_states, majority_labels
from core.studies.report import AgreementFigures, PairAgreement, StudyReport, SubgroupDifference, SubgroupReport
from core.studies.report_input import StudyArrays, StudyInput, prepare
from core.vocabulary import reading

Row = dict[str, object]
RECOMPUTED_FROM = ("cases", "judgments", "scores", "strata", "budgets", "repeats")
"""Tables from which `alertreview recompute` makes the report again."""


def study_settings(study: StudyInput) -> dict[str, Any]:
    """Return what a report needs beside the tables, for the manifest."""
    return {
        "slug": study.slug,
        "title": study.title,
        "question": study.question,
        "simulated": study.simulated,
        "locked": study.locked,
        "n_slots": study.n_slots,
        "n_instances": study.n_instances,
        "n_candidates": study.n_candidates,
        "n_patient_days": study.n_patient_days,
        "headline_budget": study.headline_budget,
        "positive_texts": list(study.positive_texts),
        "level": study.level,
        "readers": sorted({str(r) for r in study.votes["reader"]}),
        "design": {str(k): str(v) for k, v in sorted(study.design.items())},
    }


def study_schema(name: str, study: StudyInput) -> TableSchema:
    """Return a table's columns, those that repeat for each reader written out."""
    return table_schema(name, study.snapshot_hour).for_readers(sorted({str(r) for r in study.votes["reader"]}))


def study_rows(
    study: StudyInput,
    report: StudyReport,
    *,
    case_details: Mapping[str, Mapping[str, object]] | None = None,
    vote_details: Mapping[tuple[str, str, int], Mapping[str, object]] | None = None,
) -> dict[str, Iterable[Row]]:
    """Return the rows of every table of a study, by table name, each to be read once.

    `case_details` holds, by case id as text, further columns of "cases", "judgments" and "labels" that a report does
    not need (``alert_id``, ``run_id``, ``snapshot_at``); columns a table does not have are left out. `vote_details`
    holds, by (case id, reader, version), further columns of "judgments" (``slot``, ``answer_text``, ``certainty``,
    ``comment``, ``saw_score`` ...).
    """
    arrays = prepare(study)
    cases = case_details or {}
    return {
        "judgments": _judgments(arrays, cases, vote_details or {}),
        "cases": _cases(arrays, report, cases),
        "labels": _labels(arrays, cases),
        "scores": _scores(arrays),
        "strata": _strata(study),
        "budgets": _budgets(study),
        "agreement": _agreement(study, report),
        "case_use": _case_use(study, report),
        "multi_reader": multi_reader_rows(study),
        "repeats": _repeats(study),
        "figures": _figures(study, report),
    }


def label_rows(
    study: StudyInput,
    table: str,
    *,
    case_details: Mapping[str, Mapping[str, object]] | None = None,
    vote_details: Mapping[tuple[str, str, int], Mapping[str, object]] | None = None,
) -> Iterator[Row]:
    """Return the rows of "judgments" or "labels" alone, the same as `study_rows` gives; they need no report."""
    arrays = prepare(study)
    if table == "labels":
        return _labels(arrays, case_details or {})
    return _judgments(arrays, case_details or {}, vote_details or {})


def _base(arrays: StudyArrays, row: int, schema: TableSchema, details: Mapping[str, Mapping[str, object]]) -> Row:
    """Return the columns shared by tables about cases, and the table's own ones."""
    names = set(schema.names)
    own = {name: arrays.column(name)[row] for name in arrays.texts if name in names}
    base: Row = {**own, "study": arrays.source.slug}
    base |= {k: v for k, v in details.get(str(own["case_id"]), {}).items() if k in names}
    return base


def _judgments(
    arrays: StudyArrays,
    cases: Mapping[str, Mapping[str, object]],
    details: Mapping[tuple[str, str, int], Mapping[str, object]],
) -> Iterator[Row]:
    schema = table_schema("judgments")
    position = {case: row for row, case in enumerate(arrays.column("case_id"))}
    votes = arrays.source.votes
    newest = votes.groupby(["case_id", "reader"], sort=False)["version"].transform("max")
    seconds = votes["active_seconds"] if "active_seconds" in votes else [None] * len(votes)
    keys = [position[str(case)] for case in votes["case_id"]]
    order = np.lexsort((votes["version"].to_numpy(), votes["reader"].astype(str).to_numpy(dtype=str), keys))
    columns = [list(c) for c in (votes["case_id"], votes["reader"], votes["answer"], votes["version"], newest, seconds)]
    for i in order:
        case, reader, answer, version, last, active = (column[i] for column in columns)
        row = _base(arrays, keys[i], schema, cases)
        row |= {"reader": str(reader), "answer": answer, "version": version, "is_current": bool(version == last)}
        row["active_seconds"] = active
        yield row | dict(details.get((str(case), str(reader), int(version)), {}))


def _cases(arrays: StudyArrays, report: StudyReport, details: Mapping[str, Mapping[str, object]]) -> Iterator[Row]:
    schema = table_schema("cases")
    numbers = {n: arrays.numbers(n) for n in ("inclusion_probability", "adjudicated_answer", "record_reference")}
    states = case_states(arrays)
    for row in range(arrays.n):
        case = _base(arrays, row, schema, details) | {name: values[row] for name, values in numbers.items()}
        case["state"] = str(states[row])
        case |= {f"answer_{r}": answer for r, answer in zip(arrays.readers, arrays.answers[row], strict=True)}
        yield case


def _labels(arrays: StudyArrays, details: Mapping[str, Mapping[str, object]]) -> Iterator[Row]:
    schema = table_schema("labels")
    votes = positive_votes(arrays.answers)
    majority, wider = majority_labels(arrays), majority_labels(arrays, UNUSUAL_OR_RELEVANT)
    consensus = adjudicated_label(majority, arrays.numbers("adjudicated_answer"))
    probability = dawid_skene(votes).probability
    record, states = arrays.numbers("record_reference"), case_states(arrays)
    for row in range(arrays.n):
        answered = ~np.isnan(arrays.answers[row])
        yield _base(arrays, row, schema, details) | {
            "n_judgments": int(answered.sum()),
            "n_positive_votes": int((votes[row] == 1.0).sum()),
            "n_negative_votes": int((votes[row] == 0.0).sum()),
            "n_cannot_judge": int(answered.sum() - (~np.isnan(votes[row])).sum()),
            "state": str(states[row]),
            "reading": reading(arrays.source.design),
            "majority_label": majority.label[row],
            "majority_why_not": majority.why_not[row] or None,
            "consensus_label": consensus.label[row],
            "majority_label_unusual": wider.label[row],
            "dawid_skene_probability": probability[row],
            "record_reference": record[row],
        }


def _scores(arrays: StudyArrays) -> Iterator[Row]:
    for position, (key, label) in enumerate(arrays.source.scorer_labels.items(), start=1):
        shared = {"study": arrays.source.slug, "scorer": key, "scorer_label": label, "position": position}
        for case, score in zip(arrays.column("case_id"), arrays.scores[key], strict=True):
            yield shared | {"case_id": case, "score": score}


def _strata(study: StudyInput) -> Iterator[Row]:
    for position, (name, population, chosen) in enumerate(study.strata, start=1):
        yield {
            "study": study.slug,
            "stratum": name,
            "position": position,
            "n_population": population,
            "n_chosen": chosen,
        }


def _budgets(study: StudyInput) -> Iterator[Row]:
    for curve, budgets in study.budgets.items():
        for budget in budgets:
            yield {
                "study": study.slug,
                "curve": curve,
                "alerts_per_patient_day": budget.alerts_per_patient_day,
                "threshold": budget.threshold,
                "n_alerts": budget.n_alerts,
            }


def _agreement(study: StudyInput, report: StudyReport) -> Iterator[Row]:
    found = report.agreement
    tables = [("answers", found.answers), ("positive", found.positive)]
    tables += [("positive", figures) for figures in (*found.by_kind, *found.by_decision, *found.by_task)]
    for question, figures in tables:
        for measure in ("raw", "fleiss", "alpha", "ac1"):
            yield _coefficient(study, question, figures, measure, getattr(figures, measure))
    for pair in found.pairs:
        for measure, estimate in (("raw", pair.raw), ("cohen", pair.cohen)):
            shared = {"study": study.slug, "question": "positive", "cases": "all cases", "measure": measure}
            yield shared | {"readers": f"{pair.reader_a}, {pair.reader_b}"} | _figure(estimate, pair.n_cases)


def _coefficient(study: StudyInput, question: str, figures: AgreementFigures, measure: str, estimate: Estimate) -> Row:
    shared = {"study": study.slug, "question": question, "cases": figures.name, "readers": "all", "measure": measure}
    return shared | _figure(estimate, figures.n_cases)


def _figure(estimate: Estimate, n_cases: int) -> Row:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "level": estimate.level,
        "n_cases": n_cases,
        "reason": estimate.reason or None,
    }


def _case_use(study: StudyInput, report: StudyReport) -> Iterator[Row]:
    for result in report.results:
        for case in result.cases:
            yield {
                "study": study.slug,
                "result": result.key,
                "case_label": case.case_label,
                "state": str(case.state),
                "label": case.label,
                "used": case.used,
                "why_not": case.why_not or None,
            }


def _repeats(study: StudyInput) -> Iterator[Row]:
    for pair in study.repeats.to_dict("records"):
        row: Row = {"study": study.slug, "case_id": str(pair["case_id"]), "reader": str(pair["reader"])}
        yield row | {name: int(pair[name]) for name in ("first_answer", "repeat_answer")}


def _figures(study: StudyInput, report: StudyReport) -> Iterator[Row]:
    tested = _p_values(report)
    for path, found in estimates_of(report):
        row: Row = {"study": study.slug, "figure": path, "value": found.value, "low": found.low, "high": found.high}
        row |= {"level": found.level, "n": found.n, "reason": found.reason or None, "method": found.method or None}
        plain, adjusted = tested.get(path, (None, None))
        yield row | {"p_value": plain, "p_holm": adjusted}


def _p_values(report: StudyReport) -> dict[str, tuple[float | None, float | None]]:
    """Return the p value of each difference, and the one adjusted by Holm, by the name of the figure."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for result in report.results:
        place = f"results/{result.key}"
        for one in result.comparisons:
            found[f"{place}/comparisons/{one.scorer_b}/difference_naive"] = one.p_value, None
            found[f"{place}/comparisons/{one.scorer_b}/difference_weighted"] = one.p_value_weighted, one.p_holm
        for group in result.subgroup_differences:
            name = f"{place}/subgroup_differences/{group.grouping}={group.group}/difference"
            found[name] = group.p_value, group.p_holm
    if report.multi_reader is not None:
        found |= {f"multi_reader/differences/{key}": (p, None) for key, p in report.multi_reader.p_values.items()}
    return found


NAMES = ("key", "scorer", "reader", "scorer_b", "stratum", "name", "chance", "alerts_per_patient_day")
"""Fields that name a member of a list in a report, the first that it has."""


def estimates_of(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Estimate]]:
    """Yield every estimate of a report with its place."""
    if isinstance(value, Estimate):
        yield "/".join(path), value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from estimates_of(inner, (*path, str(key)))
    elif isinstance(value, tuple):
        for place, inner in enumerate(value):
            yield from estimates_of(inner, (*path, _name(inner, place)))
    elif dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            yield from estimates_of(getattr(value, one.name), (*path, one.name))


def _name(value: object, place: int) -> str:
    if isinstance(value, PairAgreement):
        return f"{value.reader_a}, {value.reader_b}"
    if isinstance(value, (SubgroupReport, SubgroupDifference)):
        return f"{value.grouping}={value.group}"
    return next((str(getattr(value, name)) for name in NAMES if hasattr(value, name)), str(place))


def multi_reader_rows(study: StudyInput) -> Iterator[Row]:
    """Yield reader-case-modality-score rows for multi-reader multi-case software; labels come first, as reader -1."""
    arrays = prepare(study)
    ids, votes = arrays.column("case_id"), positive_votes(arrays.answers)
    majority = majority_labels(arrays).label
    for case, label in zip(ids, majority, strict=True):
        if not np.isnan(label):
            yield {"reader_id": "-1", "case_id": case, "modality_id": "truth", "score": label}
    for column, reader in enumerate(arrays.readers):
        for case, answer, vote in zip(ids, arrays.answers[:, column], votes[:, column], strict=True):
            if not np.isnan(vote):
                yield {"reader_id": reader, "case_id": case, "modality_id": "reader", "score": answer}
    for key, scores in arrays.scores.items():
        for case, score in zip(ids, scores, strict=True):
            if np.isfinite(score):
                yield {"reader_id": key, "case_id": case, "modality_id": "scorer", "score": score}


MEDS_LABELS = pa.schema(
    [
        pa.field("subject_id", pa.int64(), nullable=False),
        pa.field("prediction_time", pa.timestamp("us"), nullable=False),
        pa.field("boolean_value", pa.bool_(), nullable=False),
    ]
)
"""The MEDS label schema without the optional columns that hold nothing here: a null in one of them is not valid."""
_MEDS_README = """\
# Expert labels{simulated}

Study: {slug}. One file for each task, `relevant__<task>.parquet`, in the MEDS label schema.

- `subject_id`: the subject of the MEDS data set.
- `prediction_time`: the time of the instance, in the time of the site and without zone, as in MEDS.
- `boolean_value`: the verdict of the panel by majority. True: the alert on the decision of that day is unusual and
  clinically relevant. It does not say whether the decision itself was taken: join `labels` of the study's export.

Cases without a decided majority are not in the files.
"""


@dataclass(frozen=True)
class MedsLabel:
    """One label."""

    task_key: str
    patient_id: str  # a whole number written in digits, as MEDS subjects are
    snapshot_at: datetime  # site time, with or without zone; MEDS times carry none, so 08:00 stays 08:00
    is_positive: bool


def write_meds_labels(
    folder: Path, labels: Iterable[MedsLabel], *, slug: str, simulated: bool = False
) -> dict[str, Path]:
    """Write one file of labels for each task, and a README that says what the labels are; return the files by task key.

    Raise InvalidInputError if a patient id is not a whole number in digits: then the site's data are not MEDS subjects.
    """
    by_task: dict[str, list[MedsLabel]] = {}
    for label in labels:
        if not re.fullmatch(r"0|-?[1-9]\d{0,18}", label.patient_id) or abs(int(label.patient_id)) > 2**63 - 1:
            raise InvalidInputError(
                "A patient id of this study is not a whole number as MEDS subjects have it, so MEDS labels cannot be "
                "written. Choose another format."
            )
        by_task.setdefault(label.task_key, []).append(label)
    folder.mkdir(parents=True, exist_ok=True)
    readme = _MEDS_README.format(slug=slug, simulated=" (simulated, no real patient)" if simulated else "")
    (folder / "README.md").write_text(readme, encoding="utf-8")
    names = _file_names(sorted(by_task))
    return {task: _write(folder / names[task], by_task[task]) for task in sorted(by_task)}


def _file_names(tasks: list[str]) -> dict[str, str]:
    """Return safe file names that stay different."""
    names: dict[str, str] = {}
    for task in tasks:
        base = "relevant__" + (re.sub(r"[^A-Za-z0-9]+", "_", task).strip("_") or "task")
        name, turn = f"{base}.parquet", 2
        while name in names.values():
            name, turn = f"{base}_{turn}.parquet", turn + 1
        names[task] = name
    return names


def _write(path: Path, labels: list[MedsLabel]) -> Path:
    rows = sorted(labels, key=lambda label: (int(label.patient_id), label.snapshot_at.replace(tzinfo=None)))
    columns = {
        "subject_id": [int(label.patient_id) for label in rows],
        "prediction_time": [label.snapshot_at.replace(tzinfo=None) for label in rows],
        "boolean_value": [label.is_positive for label in rows],
    }
    part = path.with_name(f".{path.name}.part")
    pq.write_table(pa.table(columns, schema=MEDS_LABELS), part)
    part.replace(path)
    return path
