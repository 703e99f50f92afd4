"""Blinding of the review: nothing that a reader is given tells score, stratum or what others answered."""

import re
from dataclasses import fields, is_dataclass, replace
from typing import get_args, get_type_hints

import pytest

from alertreview.alerts.filters import show_score
from alertreview.review.models import BlindedCase, DraftView
from core.vocabulary import Answer, Decision
from tests.support.review_acts import captured, next_case, save
from tests.support.stored_site import StoredSite, new_instances, new_snapshot, new_tasks


def test_a_blinded_case_has_no_field_that_could_unblind() -> None:
    names = {field.name for field in fields(BlindedCase)}
    assert not any(re.search("score|rank|stratum|support|soft|peer|vote|scorer|alert", name) for name in names)


def test_no_part_of_a_blinded_case_has_a_field_that_could_unblind() -> None:
    parts, seen = [BlindedCase], set()
    while parts:
        part = parts.pop()
        seen.add(part.__name__)
        for field in fields(part):
            words = set(field.name.split("_"))
            assert not words & {"score", "scaled", "support", "stratum", "rank", "vote", "votes", "peer", "soft"}, field
            asked = [get_type_hints(part)[field.name]]
            while asked:
                kind = asked.pop()
                asked += get_args(kind)
                if is_dataclass(kind) and isinstance(kind, type) and kind.__name__ not in seen:
                    parts.append(kind)
    assert {"CaseView", "Timeline", "TimelineLab", "TimelineDrug", "LastValue"} <= seen


def test_the_review_reads_no_score_no_stratum_and_no_other_reader(site: StoredSite) -> None:
    first, second, _ = site.study(3, 3)
    other = next_case(site, first)
    save(site, first, other, Answer.RELEVANT, comment="canary-comment")
    with captured(site.database) as statements:
        site.review.queue("demo", second)
        case = site.review.case("demo", second, other.case_id)
        site.review.save_draft("demo", second, case.case_id, DraftView(Answer.USUAL, None, ""))
        site.review.next_case("demo", second, case.case_id)
        site.review.my_judgments(second)
    text = "\n".join(statements)
    assert "FROM study_case" in text
    for word in ("case_score", "stratum", "inclusion_probability", "alert", "task_result", "adjudication", "reference"):
        assert word not in text, word
    for statement in statements:
        if "FROM judgment" in statement or "JOIN judgment" in statement:
            assert "judgment" in statement
            assert re.search(r"reviewer_id = ", statement), "only a reader's own judgments are read"
    assert "canary-comment" not in repr(case)
    assert case.draft == DraftView(None, None, "")


def test_a_case_shows_its_own_patient_of_its_own_import(site: StoredSite) -> None:
    reader = site.study(6, 3)[0]
    for _ in range(6):
        case = next_case(site, reader)
        with site.database.read() as uow:
            row = next(row for row in uow.cases.in_study(1) if row.id == case.case_id)
        assert case.patient.timeline.decision_name == f"{row.task_key} of row {row.row_index} in {'a' * 64}"
        assert case.patient.last_values[0].hours_old == row.row_index
        assert case.task_name == row.task_name
        save(site, reader, case)


@pytest.mark.parametrize(
    ("task", "decision", "words"),
    [
        (0, Decision.OMISSION, "Troponin I not ordered"),
        (0, Decision.COMMISSION, "Troponin I ordered"),
        (1, Decision.OMISSION, "Heparin not given"),
        (1, Decision.COMMISSION, "Heparin given"),
    ],
)
def test_the_decision_is_said_in_words(site: StoredSite, task: int, decision: Decision, words: str) -> None:
    run_id = site.publish([])
    site.studies.create_study("demo", "A study", run_id, [site.case(0, task, decision=decision)], n_slots=1)
    reader = site.person("Reader")
    site.studies.add_readers("demo", [reader])
    site.studies.open_study("demo")
    assert next_case(site, reader).decision_words == words


def test_the_words_are_those_of_the_import(site: StoredSite) -> None:
    summary = {"words": {"LAB_ORDER": "measured", site.tasks[1].task_key: "dispensed"}}
    with site.database.write() as uow:
        uow.snapshots.add(replace(new_snapshot("b" * 64), import_summary=summary), new_instances(4), new_tasks(4))
        uow.commit()
    later = StoredSite.reopen(site.database)
    run_id = later.publish([])
    chosen = [later.case(0, 0), later.case(1, 1), later.case(2, 3)]
    later.studies.create_study("demo", "A study", run_id, chosen, n_slots=1)
    reader = later.person("Reader")
    later.studies.add_readers("demo", [reader])
    later.studies.open_study("demo")
    for _ in chosen:
        case = next_case(later, reader)
        done = {site.tasks[0].name: "measured", site.tasks[1].name: "dispensed"}.get(case.task_name, "given")
        assert case.decision_words == f"{case.task_name} not {done}"
        save(later, reader, case)
    assert len({judgment.decision_words for judgment in later.review.my_judgments(reader)}) == 3


def test_labels_and_positions_are_the_readers_own(site: StoredSite) -> None:
    first, second, _ = site.study(9, 3)
    labels = []
    for reader, letter in ((first, "A"), (second, "B")):
        seen, case = [], site.review.next_case("demo", reader)
        while case is not None:
            seen.append((case.case_label, case.position, case.n_cases))
            save(site, reader, case)
            case = site.review.next_case("demo", reader, case.case_id)
        assert seen == [(f"{letter}{i}", i, 9) for i in range(1, 10)]
        labels.append([judgment.case_id for judgment in site.review.my_judgments(reader)])
    assert labels[0] != labels[1]


def test_an_alert_hides_its_score_from_a_reader_who_has_still_to_judge_it(site: StoredSite) -> None:
    run_id = site.publish([site.alert(0, 0, 1, Decision.OMISSION)])
    site.studies.create_study("demo", "A study", run_id, [site.case(0, 0), site.case(1, 0)], n_slots=1)
    early, late, stranger = site.person("Early"), site.person("Late"), site.person("Stranger")
    assert show_score(site.database, site.clock, early, 1), "the study is not open"
    assert show_score(site.database, site.clock, early, 1)
    site.studies.add_readers("demo", [early, late])
    site.studies.open_study("demo")
    assert not show_score(site.database, site.clock, early, 1)
    assert not show_score(site.database, site.clock, late, 1)
    assert show_score(site.database, site.clock, stranger, 1)
    for _ in range(2):
        save(site, early, next_case(site, early))
    assert show_score(site.database, site.clock, early, 1)
    marks = {vote.case_number: vote.saw_score_before for vote in site.studies.votes("demo")}
    assert marks == {1: True, 2: False}
