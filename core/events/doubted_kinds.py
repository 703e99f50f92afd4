"""Rules of a mapping that seem to mean another kind of event: labs for drugs, stops for starts, orders for results."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from core.events.code_book import CodeBook, Recognised
from core.events.plausibility import Finding
from core.events.stream import among
from core.kinds import KIND_OF_EVENT, EventKind, Kind

IntArray = npt.NDArray[np.integer]

_SAID_OF_FAMILY = {
    Kind.LAB_ORDER: frozenset({"lab", "labs", "laboratory", "loinc", "measurement", "measurements"}),
    Kind.MEDICATION: frozenset(
        ["medication", "medications", "drug", "drugs", "med", "rx", "rxnorm", "ndc", "atc", "emar", "prescriptions"]
    ),
}
"""Words at the beginning of a code that say of which kind of decision it tells."""
_OTHER_WORDS = frozenset(["level", "levels", "screen", "monitoring"])
"""With these, the word for a drug is that of a lab."""
_SAID_OF_END = frozenset(["stop", "stopped", "end", "ended", "discontinued", "discharge", "finish", "finished"])
_SAID_OF_START = frozenset(["start", "started", "begin", "begun", "order", "ordered", "admission", "admit"])
_STARTS = (EventKind.MEDICATION_ORDER, EventKind.ADMINISTRATION, EventKind.ADMISSION)
_ENDS = (EventKind.MEDICATION_STOP, EventKind.DISCHARGE)
_CONCENTRATION = re.compile(r".*/[du]?L")
"""A unit of what is measured in blood; doses have none of these."""
_NAMES = {
    Kind.LAB_ORDER: """
        alt ast inr ptt crp wbc rbc hgb creatinine kreatinin creatinina hemoglobin hämoglobin haemoglobin hematocrit
        platelet_count white_blood_cells urea_nitrogen bun bilirubin bilirubin,_total
        anion_gap ph pco2 po2 troponin troponin_t troponin_i hba1c ferritin mcv mch mchc rdw alkaline_phosphatase
        lipase procalcitonin d-dimer c-reactive_protein neutrophils lymphocytes monocytes""",
    Kind.MEDICATION: """
        furosemide metoprolol ondansetron pantoprazole omeprazole docusate senna bisacodyl atorvastatin simvastatin
        rosuvastatin lisinopril amlodipine hydralazine carvedilol bisoprolol ramipril torasemide enoxaparin clopidogrel
        apixaban prednisone prednisolone albuterol ipratropium propofol metamizole famotidine polyethylene_glycol
        metoprolol_tartrate furosemide_(lasix) docusate_sodium insulin_glargine acetylsalicylic_acid""",
}
_FAMILY_OF_NAME = {name.replace("_", " "): kind for kind, names in _NAMES.items() for name in names.split()}
"""Names of labs that are no drug (potassium is both; red cells are given), and of drugs whose level nobody measures."""
_ENOUGH_ROWS, _ENOUGH_SERIES, _SHARE_OF_PAIRS = 20, 10, 0.9


def says_another_kind(code: str, found: Recognised) -> bool:
    """Return whether words of a code contradict the kind that the mapping gives it."""
    parts = code.casefold().split("//")
    first = set(re.split(r"[^a-z]+", parts[0]))
    is_start, is_end = (not said.isdisjoint({*first, *parts}) for said in (_SAID_OF_START, _SAID_OF_END))
    if is_start is not is_end and found.kind in (_STARTS if is_end else _ENDS):
        return True
    # The item is no word for its kind.
    words = first.union(*(re.split(r"[^a-z]+", part) for part in parts[1:2] if parts[2:]))
    said = [kind for kind, of_kind in _SAID_OF_FAMILY.items() if not words.isdisjoint(of_kind)]
    meant = KIND_OF_EVENT.get(found.kind) if found.kind else None
    return len(said) == 1 and meant in _SAID_OF_FAMILY and meant is not said[0] and words.isdisjoint(_OTHER_WORDS)


class KindDoubts:
    """Counts over all parts of an event stream that tell what kind of event the codes are of.

    Of what is added to an earlier import, a course may have begun there.
    """

    def __init__(self, book: CodeBook, units: Sequence[str], *, is_addition: bool = False) -> None:
        self._book, self._is_addition = book, is_addition
        self._is_of_blood = np.array([_CONCENTRATION.fullmatch(unit) is not None for unit in units])
        self._n = np.zeros((4, len(book.found)), dtype=np.int64)
        """Rows by code: all, with a number, with a number or text, in a unit of what is measured in blood."""
        self._n_ended = self._n_ended_first = self._n_endless = self._n_paired = 0

    def add(
        self, codes: IntArray, value: npt.NDArray[np.float64], has_text: npt.NDArray[np.bool_], unit: IntArray
    ) -> None:
        """Count the rows of some patients."""
        has_number = ~np.isnan(value)
        everything = np.ones(len(codes), dtype=bool)
        for n, rows in zip(
            self._n, (everything, has_number, has_number | has_text, self._is_of_blood[unit]), strict=True
        ):
            n += np.bincount(codes[rows], minlength=len(n))

    def add_courses(self, kind: IntArray, series: IntArray, time: npt.NDArray[np.datetime64]) -> None:
        """Count the courses of drugs, all of some patients: which begin with a stop, and which have starts in pairs."""
        if self._is_addition:
            return
        mine = among(kind, Kind.MEDICATION.events)
        names, number = np.unique(series[mine], return_inverse=True)
        is_stop, when = kind[mine] == EventKind.MEDICATION_STOP.number, time[mine].view(np.int64)
        first = np.full((2, len(names)), np.iinfo(np.int64).max)
        for at, rows in zip(first, (~is_stop, is_stop), strict=True):
            np.minimum.at(at, number[rows], when[rows])
        is_start = kind[mine] == EventKind.MEDICATION_ORDER.number
        n_starts, n_stops = (np.bincount(number[rows], minlength=len(names)) for rows in (is_start, is_stop))
        is_endless = (n_starts > 0) & (n_stops == 0)
        self._n_ended += int((n_stops > 0).sum())
        self._n_ended_first += int((first[1] < first[0]).sum())
        self._n_endless += int(is_endless.sum())
        self._n_paired += int((is_endless & (n_starts % 2 == 0)).sum())

    def findings(self, names: Sequence[str]) -> Iterator[Finding]:
        """Judge what was counted; `names` are those of the codes, for people."""
        doubted = {i for i in range(len(names)) if self._n[0, i] and self._is_doubted(i, names[i])}
        of_rule: defaultdict[int, list[int]] = defaultdict(list)
        for i, found in enumerate(self._book.found):
            if found.kind is EventKind.LAB_RESULT:
                of_rule[found.rule].append(i)
        for mine in of_rule.values():
            # What is measured has a result now and then.
            if self._n[0, mine].sum() >= _ENOUGH_ROWS and not self._n[2, mine].any():
                doubted.update(mine)
        examples = Counter({i: int(self._n[0, i]) for i in doubted})
        is_of_item = np.array([found.kind in KIND_OF_EVENT for found in self._book.found], dtype=bool)
        yield Finding(
            "mistaken_kinds",
            examples.total(),
            int(self._n[0, is_of_item].sum()),
            tuple(f"{self._book.code(i)} as {self._book.found[i].kind}" for i, _ in examples.most_common(5)),
        )
        is_paired = self._n_endless >= _ENOUGH_SERIES and self._n_paired > _SHARE_OF_PAIRS * self._n_endless
        yield Finding(
            "swapped_courses",
            self._n_ended_first + is_paired * self._n_paired,
            self._n_ended + is_paired * self._n_endless,
        )

    def _is_doubted(self, i: int, name: str) -> bool:
        found, (n, n_numbers, _, n_of_blood) = self._book.found[i], self._n[:, i]
        kind = KIND_OF_EVENT.get(found.kind) if found.kind else None
        if kind not in _SAID_OF_FAMILY:
            return says_another_kind(self._book.code(i), found)
        known = _FAMILY_OF_NAME.get(re.split(r"//| ?\[", name.casefold())[0], kind)
        return (
            known is not kind
            or says_another_kind(self._book.code(i), found)
            or (kind is Kind.MEDICATION and 2 * n_of_blood > n)
            or (found.kind is EventKind.LAB_ORDER and 2 * n_numbers > n)
        )
