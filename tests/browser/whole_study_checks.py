"""What a study must have stored, read by plain SQL, and its figures computed plainly: votes counted, pairs counted."""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

CURRENT = """
    SELECT j.answer, j.comment FROM judgment j JOIN person p ON p.id = j.reviewer_id
    JOIN study_case c ON c.id = j.case_id JOIN study s ON s.id = c.study_id
    WHERE s.slug = ? AND c.number = ? AND p.name = ? ORDER BY j.version DESC LIMIT 1"""
VERSIONS = """
    SELECT c.number, p.name, j.answer, j.comment, j.saw_score_before FROM judgment j
    JOIN person p ON p.id = j.reviewer_id JOIN study_case c ON c.id = j.case_id JOIN study s ON s.id = c.study_id
    WHERE s.slug = ? ORDER BY c.number, p.name, j.version"""
NUMBERS = """
    SELECT c.number, v.score, v.scaled_score, v.soft_label, v.support, c.inclusion_probability
    FROM case_score v JOIN study_case c ON c.id = v.case_id JOIN study s ON s.id = c.study_id WHERE s.slug = ?"""
SCALED = """
    SELECT v.scorer, c.number, v.scaled_score, 1.0 / c.inclusion_probability
    FROM case_score v JOIN study_case c ON c.id = v.case_id JOIN study s ON s.id = c.study_id WHERE s.slug = ?"""
ADJUDICATIONS = """
    SELECT c.number, a.answer, p.name FROM adjudication a JOIN study_case c ON c.id = a.case_id
    JOIN study s ON s.id = c.study_id JOIN person p ON p.id = a.adjudicator_id WHERE s.slug = ?"""
Versions = Mapping[tuple[int, str], Sequence[tuple[int | None, str]]]


class StoredStudy:
    """A study as it is in the database file, asked without the program."""

    def __init__(self, database: Path, slug: str) -> None:
        self._database, self._slug = database, slug

    def _rows(self, query: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as connection:
            return connection.execute(query, (self._slug, *values)).fetchall()

    def case_numbers(self) -> dict[int, int]:
        """Number in the study of each case by its number in the database."""
        query = "SELECT c.id, c.number FROM study_case c JOIN study s ON s.id = c.study_id WHERE s.slug = ?"
        return dict(self._rows(query))

    def strata(self) -> list[str]:
        """What the strata are called."""
        query = "SELECT DISTINCT c.stratum FROM study_case c JOIN study s ON s.id = c.study_id WHERE s.slug = ?"
        return [stratum for (stratum,) in self._rows(query)]

    def shares(self) -> set[float]:
        """With which chance cases were chosen."""
        query = "SELECT c.inclusion_probability FROM study_case c JOIN study s ON s.id = c.study_id WHERE s.slug = ?"
        return {share for (share,) in self._rows(query)}

    def numbers(self) -> dict[int, list[float]]:
        """Every score of each case and what goes with it, by case number: nothing of it is for a blinded reader."""
        found: dict[int, list[float]] = {}
        for number, *values in self._rows(NUMBERS):
            found.setdefault(number, []).extend(value for value in values if value is not None)
        return found

    def current(self, case: int, name: str) -> tuple[int, str] | None:
        """Answer and comment that stand; None where there is none or it was taken back."""
        rows = self._rows(CURRENT, case, name)
        return rows[0] if rows and rows[0][0] is not None else None

    def versions(self) -> dict[tuple[int, str], list[tuple[int | None, str]]]:
        """Answers and comments in the order of their versions, by case number and reader."""
        found: dict[tuple[int, str], list[tuple[int | None, str]]] = {}
        for number, name, answer, comment, _ in self._rows(VERSIONS):
            found.setdefault((number, name), []).append((answer, comment if answer is not None else ""))
        return found

    def n_unblinded(self) -> int:
        """Judgments that carry the mark that their reader had seen the score."""
        return sum(bool(seen) for *_, seen in self._rows(VERSIONS))

    def adjudications(self) -> dict[int, tuple[int, str]]:
        """Answer and adjudicator by case number."""
        return {number: (answer, name) for number, answer, name in self._rows(ADJUDICATIONS)}

    def scaled(self) -> dict[str, dict[int, tuple[float, float]]]:
        """Scaled score and weight of each case by scorer."""
        found: dict[str, dict[int, tuple[float, float]]] = {}
        for scorer, number, score, weight in self._rows(SCALED):
            found.setdefault(scorer, {})[number] = (score, weight)
        return found

    def status(self) -> str:
        """Where the study stands."""
        return str(self._rows("SELECT status FROM study WHERE slug = ?")[0][0])


def final_answers(typed: Versions) -> dict[int, list[int]]:
    """Answers that stand in the end, by case number, from what was typed."""
    found: dict[int, list[int]] = {}
    for (case, _), entries in typed.items():
        answer = entries[-1][0]
        assert answer is not None
        found.setdefault(case, []).append(answer)
    return found


def majority(answers: Sequence[int]) -> bool | None:
    """Whether most of those who judged say "unusual and relevant", two at the least; None when that is not decided."""
    counted = Counter(answer == 3 for answer in answers if answer != 0)
    yes, no = counted[True], counted[False]
    if yes >= 2 and yes > no:
        return True
    return False if no >= 2 and no > yes else None


def pair_auc(
    is_positive: Mapping[int, bool | None], scored: Mapping[int, tuple[float, float]], *, weighted: bool
) -> float | None:
    """Share of pairs of a positive and a negative case with the higher score at the positive one, ties half."""
    won = pairs = 0.0
    for case, (score, weight) in scored.items():
        for other, (score_below, weight_below) in scored.items():
            if is_positive.get(case) is True and is_positive.get(other) is False:
                both = weight * weight_below if weighted else 1.0
                pairs += both
                won += both * (1.0 if score > score_below else 0.5 if score == score_below else 0.0)
    return won / pairs if pairs else None


def check_votes(stored: StoredStudy, typed: Versions) -> None:
    """What is stored is what was typed: every version of every answer, and nothing else."""
    kept = stored.versions()
    assert kept == {pair: list(entries) for pair, entries in typed.items()}
    assert stored.n_unblinded() == 0


def check_report(stored: StoredStudy, report: Mapping[str, Any], typed: Versions) -> int:
    """The report's labels and AUCs are those that plain counting gives; gives how many AUCs were compared."""
    answers = final_answers(typed)
    by_votes = {case: majority(given) for case, given in answers.items()}
    settled = {case: answer for case, (answer, _) in stored.adjudications().items()}
    assert set(settled) == {case for case, label in by_votes.items() if label is None}
    with_adjudicator = by_votes | {case: None if answer == 0 else answer == 3 for case, answer in settled.items()}
    n_compared = 0
    for key, labels in (("majority-3", by_votes), ("adjudicated-3", with_adjudicator)):
        found = [result for result in report["results"] if result["key"] == key]
        # Without a case to settle the second labelling is the first, and is not printed again.
        assert found or labels == by_votes, key
        for result in found:
            words = {True: "positive", False: "negative", None: "undetermined"}
            printed = {int(case["case_label"].lstrip("C")): case["label"] for case in result["cases"]}
            assert printed == {case: words[label] for case, label in labels.items()}
            for scorer in result["scorers"]:
                scored = stored.scaled()[scorer["scorer"]]
                for name, weighted in (("auc_naive", False), ("auc_weighted", True)):
                    plain = pair_auc(labels, scored, weighted=weighted)
                    value = scorer[name]["value"]
                    same = value is None if plain is None else abs(value - plain) < 1e-9
                    assert same, (key, scorer["scorer"], name, value, plain)
                    n_compared += 1
    assert n_compared
    return n_compared


def read_report(path: Path) -> dict[str, Any]:
    """Read the report that the page gave as a file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return dict(content)
