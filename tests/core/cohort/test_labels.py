"""Labelled days against looking into every window, and what an import does with days that nobody labelled."""

import numpy as np
import pandas as pd
import pytest

from core.cohort.build import build
from core.cohort.cohort import About
from core.errors import MappingError
from tests.support.records import RULES, parts, site

MAPPING = site(
    rules=[*RULES, *({"code": f"{name}:(?P<item>.+)", "kind": name} for name in ("LABEL_TRUE", "LABEL_FALSE"))]
)
START = pd.Timestamp("2026-01-01 10:00")


def records():
    """Six patients of six days each, with a drug on every second day."""
    for patient in range(1, 7):
        yield (patient, START, "IN")
        yield from ((patient, START + pd.Timedelta(days=day), "GIVE//A") for day in range(0, 6, 2))
        yield (patient, START + pd.Timedelta(days=6), "OUT")


def random_labels(seed):
    """Labels at any hour, each (question, patient, time) once."""
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(500):
        question, patient, hour = rng.choice(["a", "b"]), int(rng.integers(1, 7)), int(rng.integers(-30, 200))
        if (question, patient, hour) not in seen:
            seen.add((question, patient, hour))
            kind = rng.choice(["LABEL_TRUE", "LABEL_FALSE"])
            yield (patient, START + pd.Timedelta(hours=hour), f"{kind}:{question}")


def imported(rows, mapping=MAPPING):
    return build(*parts(list(rows), mapping), mapping, About("test", {}, simulated=False), lambda what, share: None)


@pytest.mark.parametrize("seed", range(3))
def test_days_and_decisions_agree_with_looking_into_every_window(seed):
    plain, _ = imported([*records()])
    labels = list(random_labels(seed))[: 150 + 100 * seed]
    cohort, report = imported([*records(), *labels])
    wanted = []
    for patient, at in zip(plain.instances["patient_id"], plain.instances["snapshot_at"], strict=True):
        until = at + pd.Timedelta(days=1)
        mine = [code for who, time, code in labels if str(who) == patient and at <= time < until]
        if {code[-1] for code in mine} == {"a", "b"}:
            wanted.append((patient, at, "LABEL_TRUE:a" in mine, "LABEL_TRUE:b" in mine))
    columns = [cohort.tasks["task_key"].tolist().index(key) for key in ("LABEL/a", "LABEL/b")]
    found = cohort.instances[["patient_id", "snapshot_at"]].assign(
        **dict(zip("ab", cohort.decisions[:, columns].toarray().T, strict=True))
    )
    assert [tuple(row) for row in found.itertuples(index=False)] == wanted
    assert 0 < len(wanted) < len(plain.instances)
    assert (
        f"{len(plain.instances) - len(wanted):,} of {len(plain.instances):,} patient-days lack"
        in report.read.remarks[-1]
    )


def test_the_other_tasks_and_all_features_are_those_of_an_import_without_labels():
    plain, _ = imported([*records()])
    labels = [*random_labels(0)]
    cohort, _ = imported([*records(), *labels])
    keys = ["patient_id", "snapshot_at"]
    kept = plain.instances.reset_index().merge(cohort.instances[keys], on=keys)["index"].to_numpy()
    assert (cohort.features.toarray() == plain.features[kept][:, : cohort.features.shape[1]].toarray()).all()
    drug, other = (each.tasks["task_key"].tolist().index("MEDICATION/a") for each in (cohort, plain))
    assert (cohort.decisions[:, [drug]].toarray() == plain.decisions[kept][:, [other]].toarray()).all()
    assert not any(group == "a" or group == "b" for group in cohort.tasks["order_group"])


def test_labels_end_no_stay_and_no_data():
    rows = [(1, START, "IN"), (1, START + pd.Timedelta(days=2), "GIVE//A"), (2, START, "IN"), (2, START, "GIVE//A")]
    plain, _ = imported(rows)
    far = [(1, START + pd.Timedelta(days=day), f"LABEL_{'TRUE' if day % 2 else 'FALSE'}:a") for day in range(30)]
    cohort, _ = imported([*rows, *far])
    assert set(cohort.instances["snapshot_at"]) <= set(plain.instances["snapshot_at"])


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([(1, "2026-01-02 08:00", "LABEL_TRUE:a"), (2, "2026-01-02 08:00", "LABEL_TRUE:a")], "all 2 .* are true"),
        ([(1, "2026-01-02 08:00", "LABEL_FALSE:a")], "all 1 .* are false"),
        ([(1, "2020-01-02 08:00", "LABEL_TRUE:a")], r"No patient-day is labelled .*a 0"),
        (
            [(1, "2026-01-02 08:00", "LABEL_TRUE:a"), (1, "2026-01-03 08:00", "LABEL_FALSE:b")],
            "No patient-day .*a 1, b 1",
        ),
        ([(1, "2026-01-02 08:00", "LABEL_TRUE:a"), (1, "2026-01-02 08:00", "LABEL_FALSE:a")], "true and false for one"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(labels, words):
    with pytest.raises(MappingError, match=words):
        imported([*records(), *labels])


def test_rare_questions_are_named_with_the_number_needed():
    mapping = MAPPING.model_copy(update={"min_positive": 3})
    labels = [
        (patient, "2026-01-02 09:30", f"LABEL_{'TRUE' if patient == 1 else 'FALSE'}:a") for patient in range(1, 7)
    ]
    cohort, report = imported([*records(), *labels], mapping)
    assert "LABEL/a" not in set(cohort.tasks["task_key"])
    n_all = len(imported(records())[0].instances)
    of_question, of_all = report.read.remarks[:2]
    assert of_question == (
        "Labels of 'a': 6 for 6 patient-days, of which 6 are kept and 1 of these are true; 6 after the snapshot hour "
        "and counted for the snapshot before. It is no task: 3 true ones are needed (min_positive)."
    )
    assert of_all.startswith(f"{n_all - 6} of {n_all} patient-days lack a label of some question and are left out")
