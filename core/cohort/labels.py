"""Labels of patients at times: which patient-days they stand for, and which days are labelled for every question."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.cohort.tasks import instance_of
from core.errors import MappingError
from core.events.stream import of_kind, seconds
from core.kinds import LABEL_EVENTS, EventKind

BoolArray = npt.NDArray[np.bool_]


@dataclass
class _Question:
    """Counts of one question, and its labelled days of each part."""

    counts: Counter[str] = field(default_factory=Counter)
    of_part: dict[int, tuple[BoolArray, BoolArray]] = field(default_factory=dict)
    """Days with any label and days labelled true."""


class LabelledDays:
    """Collects which instances are labelled, part by part.

    A label counts for the instance whose 24 h window holds its time, so that everything known at the snapshot was known
    at the time of the label. A day with several labels is true if any of them is. An instance without a label of some
    question is no instance of the cohort: "not labelled" must not be read as "false".
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._questions: dict[int, _Question] = {}
        self._n_instances: list[int] = []

    def add(self, events: pd.DataFrame, instances: pd.DataFrame) -> None:
        """Note the labels of one part.

        Raise MappingError when one patient has both labels of a question at one time.
        """
        part, n = len(self._n_instances), len(instances)
        self._n_instances.append(n)
        labels = events.loc[of_kind(events, LABEL_EVENTS), ["patient_id", "time", "item", "kind"]]
        if not len(labels):
            return
        row = instance_of(labels, events["patient_id"].cat.categories, instances)
        item = labels["item"].cat.codes.to_numpy()
        is_true = of_kind(labels, [EventKind.LABEL_TRUE])
        self._refuse_contradictions(labels.drop_duplicates())
        for number in np.unique(item).tolist():
            mine = item == number
            question = self._questions.setdefault(number, _Question())
            inside = mine & (row >= 0)
            true_days, false_days = np.zeros((2, n), dtype=bool)
            true_days[row[inside & is_true]] = True
            false_days[row[inside & ~is_true]] = True
            question.of_part[part] = (true_days | false_days, true_days)
            later = seconds(labels["time"])[inside] > seconds(instances["snapshot_at"])[row[inside]]
            question.counts += Counter(
                labels=int(mine.sum()),
                outside=int((mine & (row < 0)).sum()),
                later=int(later.sum()),
                both=int((true_days & false_days).sum()),
            )

    def _refuse_contradictions(self, labels: pd.DataFrame) -> None:
        doubled = labels.duplicated(["patient_id", "time", "item"])
        if doubled.any():
            name = self._names[int(labels["item"].cat.codes.to_numpy()[doubled.to_numpy()][0])]
            raise MappingError(
                f"Labels of {name!r}: {int(doubled.sum()):,} are true and false for one patient at one time. Correct "
                "the label file, or import the records again with the labels that hold."
            )

    def kept(self) -> list[BoolArray] | None:
        """Return the instances of each part that are labelled for every question; None without labels.

        Raise MappingError when no instance is, or those that are have one answer only.
        """
        if not self._questions:
            return None
        keep = [np.ones(n, dtype=bool) for n in self._n_instances]
        for question in self._questions.values():
            for part, mask in enumerate(keep):
                mask &= question.of_part[part][0] if part in question.of_part else False
        n_kept = sum(int(mask.sum()) for mask in keep)
        for question in self._questions.values():
            question.counts["days"] = sum(int(days.sum()) for days, _ in question.of_part.values())
            n_true = sum(int((true & keep[part]).sum()) for part, (_, true) in question.of_part.items())
            question.counts["true"], question.counts["kept"] = n_true, n_kept
        if n_kept == 0:
            found = ", ".join(f"{self._names[i]} {each.counts['days']:,}" for i, each in self._questions.items())
            raise MappingError(
                f"No patient-day is labelled for every question (labelled days: {found}). Check patients, times and "
                "time zone of the labels; import questions about other days into a site of their own."
            )
        for number, question in self._questions.items():
            if question.counts["true"] in (0, n_kept):
                only = "true" if question.counts["true"] else "false"
                raise MappingError(
                    f"Labels of {self._names[number]!r}: all {n_kept:,} patient-days that are labelled for every "
                    f"question are {only}, and there is nothing to compare. Leave this label file out, or label more."
                )
        return keep

    def sentences(self, positives_needed: int) -> tuple[str, ...]:
        """Say what came of the labels, in a sentence for each question and one on the days that were left out.

        Days labelled true without which a question is no task are `positives_needed`.
        """
        out = []
        for number, question in sorted(self._questions.items(), key=lambda each: self._names[each[0]]):
            n = question.counts
            said = f"Labels of {self._names[number]!r}: {n['labels']:,} for {n['days']:,} patient-days"
            said += f", of which {n['kept']:,} are kept and {n['true']:,} of these are true"
            extra = (
                (n["outside"], "outside any patient-day, left out"),
                (n["later"], "after the snapshot hour and counted for the snapshot before"),
                (n["both"], "days with both labels, counted as true"),
            )
            said += "".join(f"; {count:,} {words}" for count, words in extra if count) + "."
            if n["true"] < positives_needed:
                said += f" It is no task: {positives_needed} true ones are needed (min_positive)."
            out.append(said)
        if out:
            n_all, n_kept = sum(self._n_instances), next(iter(self._questions.values())).counts["kept"]
            out.append(
                f"{n_all - n_kept:,} of {n_all:,} patient-days lack a label of some question and are left out for "
                "every task: a day without a label is unknown, not false."
            )
        return tuple(out)
