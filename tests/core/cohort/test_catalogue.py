"""The default catalogue: labs of one order are one task, and what nobody orders is not asked about."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from core.cohort.catalogue import NO_NAME, RULES, members_of, panels_and_asked, why_no_order, with_catalogue
from core.cohort.tasks import Tasks
from core.kinds import Kind, task_key

LAB, DRUG = Kind.LAB_ORDER, Kind.MEDICATION


def tasks(rows, decisions=None):
    """Tasks of rows (kind, name, order group); without decisions, task i is positive in the first n - i instances."""
    n = len(rows)
    taken = np.tril(np.ones((n, n), dtype=bool))[::-1] if decisions is None else np.array(decisions, dtype=bool)
    table = pd.DataFrame(
        {
            "task_key": [task_key(kind, f"{i}-{name}") for i, (kind, name, _) in enumerate(rows)],
            "name": [name for _, name, _ in rows],
            "kind": [kind.value for kind, _, _ in rows],
            "n_positive": taken.sum(axis=0),
            "order_group": [group for *_, group in rows],
        }
    )
    return Tasks(table, sparse.csc_matrix(taken))


def off(kind, name, item="1"):
    return why_no_order(name, task_key(kind, item))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LAB, "Blue Top Hold [Blood]"),
        (LAB, "SPECIMEN TYPE"),
        (LAB, "Urine tube, held [Urine]"),
        (LAB, "Length of Urine Collection|Urine|Chemistry"),
        (LAB, "PEEP (Blood)"),
        (LAB, "PEEP set"),
        (LAB, "Temperature (Blood)"),
        (LAB, "Temperature Celsius"),
        (LAB, "SpO2 [%]"),
        (LAB, "Intubated|Blood|Blood Gas"),
        (LAB, "Oxygen [Blood]"),
        (LAB, "Ventilation Rate [Blood]"),
        (LAB, "Estimated GFR (MDRD equation) [Blood] [50920]"),
        (LAB, "Anion gap"),
        (LAB, "Bilirubin, Indirect [Blood]"),
        (LAB, "RDW-SD [Blood]"),
        (LAB, "Urine Color [Urine]"),
        (LAB, "Hypochromia [Blood]"),
        (LAB, "Nucleated Red Cells [Blood]"),
        (LAB, "H [Blood]"),
        (LAB, "Hemolysis index"),
        (LAB, "Haemolysis"),
        (LAB, "Icterus index"),
        (LAB, "Lipemia [Blood]"),
        (DRUG, "Vial"),
        (DRUG, "Vial given"),
        (DRUG, "NS 100ml"),
        (DRUG, "LR"),
        (DRUG, "0.9% Sodium Chloride 250 mL Bag"),
        (DRUG, "Iso-Osmotic Dextrose 50ml Bag"),
        (DRUG, "10 mL Syringe"),
        (DRUG, "Sodium Chloride 0.9% Flush"),
        (DRUG, "Sterile Water for Injection"),
    ],
)
def test_what_nobody_orders_is_not_asked_about(kind, name):
    assert off(kind, name) not in ("", NO_NAME)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LAB, "Potassium [Blood]"),
        (LAB, "Oxygen Saturation [Blood]"),
        (LAB, "Lactate"),
        (LAB, "Osmolality, Measured [Blood]"),
        (LAB, "Blood Culture"),
        (LAB, "Troponin T [Blood]"),
        (LAB, "Iron [Blood]"),
        (LAB, "Lipase"),
        (LAB, "Lipid panel"),
        (LAB, "Ionized Calcium"),
        (LAB, "Hemoglobin A1c"),
        (LAB, "Hemoglobin"),
        (LAB, "Haemoglobin (g/dL)"),
        (LAB, "Hemopexin"),
        (LAB, "Lipoprotein(a)"),
        (LAB, "Haptoglobin"),
        (LAB, "Lymphocyte subsets"),
        (LAB, "Stool"),
        (DRUG, "Dextrose 50%"),
        (DRUG, "Sodium Chloride 3% (Hypertonic)"),
        (DRUG, "Sodium Bicarbonate"),
        (DRUG, "Calcium Gluconate 2 g / 100 mL Premix Bag"),
        (DRUG, "CefTRIAXone Send Vial"),
        (DRUG, "Insulin"),
        (DRUG, "Penicillin G"),
        (DRUG, "Lorazepam"),
        (DRUG, "D-Mannose"),
        (DRUG, "Swish and spit"),
        (DRUG, "Nsaid gel"),
    ],
)
def test_what_is_ordered_or_given_is_asked_about(kind, name):
    assert off(kind, name) == ""


@pytest.mark.parametrize("name", ["50868", "00409-6102", "", " ", "1.5"])
def test_what_has_only_a_code_is_not_asked_about(name):
    assert off(LAB, name) == off(DRUG, name) == NO_NAME


@given(st.sampled_from([rule.kind for rule in RULES]), st.text(max_size=20))
def test_no_name_breaks_the_rules_and_case_does_not_matter(kind, name):
    assert isinstance(off(kind, name), str)
    assert off(kind, "peep") == off(kind, "PEEP")


BLOOD_GAS = [
    (LAB, name, "g") for name in ("Specimen Type", "pH [Blood]", "pCO2 [Blood]", "pO2 [Blood]", "PEEP [Blood]")
]


def test_the_labs_of_an_order_group_are_one_task_with_its_members():
    found = with_catalogue(tasks([*BLOOD_GAS, (LAB, "Iron", ""), (DRUG, "Propofol", "g")]), {})
    panel = found.table.iloc[-1]
    assert (panel["name"], panel["task_key"], panel["kind"]) == ("Blood gas", "LAB_ORDER/panel:blood-gas", "LAB_ORDER")
    assert members_of(panel["members"]) == tuple(found.table["task_key"][:5])
    assert found.table["off"].tolist() == ["It is asked about as part of Blood gas."] * 5 + ["", "", ""]


@settings(deadline=None)
@given(
    arrays(bool, st.tuples(st.integers(1, 8), st.just(6))),
    st.lists(st.sampled_from(["", "a", "b"]), min_size=6, max_size=6),
)
def test_a_panel_is_decided_on_where_any_member_is(decisions, groups):
    rows = [(LAB if i < 4 else DRUG, f"Thing {i}", group) for i, group in enumerate(groups)]
    given_tasks = tasks(rows, decisions)
    found = with_catalogue(given_tasks, {})
    dense, names = found.decisions.toarray(), found.table["task_key"].tolist()
    assert np.array_equal(dense[:, :6], decisions)
    assert dense.shape == (len(decisions), len(found.table))
    is_panel, is_asked = panels_and_asked(found.table)
    inside = set()
    for column in np.flatnonzero(is_panel):
        members = [names.index(key) for key in members_of(found.table["members"][column])]
        assert len(members) > 1
        assert dense[:, column].tolist() == decisions[:, members].any(axis=1).tolist()
        assert found.table["n_positive"][column] == dense[:, column].sum()
        inside.update(members)
    assert inside == {i for i in range(4) if groups[i] and groups[:4].count(groups[i]) > 1}
    assert {int(i) for i in np.flatnonzero(~is_asked)} == inside


def test_a_panel_without_any_order_is_not_asked_about_and_says_why():
    found = with_catalogue(tasks([(LAB, "H [Blood]", "g"), (LAB, "I [Blood]", "g")]), {}).table
    assert found["name"].tolist()[-1] == "H [Blood] and 1 more"
    assert found["off"].tolist() == ["None of it is an order. It is a sign that the specimen is spoiled."] * 3


def test_a_panel_nobody_knows_is_named_after_its_commonest_order():
    rows = [(LAB, name, "g") for name in ("Specimen Type", "Zinc|Blood|Chemistry", "Copper [Blood]")]
    assert with_catalogue(tasks(rows), {}).table["name"].tolist()[-1] == "Zinc, Blood and 2 more"


def test_a_group_that_the_mapping_names_keeps_its_name():
    rows = [(LAB, "Zinc", "Trace elements"), (LAB, "Copper", "Trace elements")]
    table = with_catalogue(tasks(rows), {"Trace elements": ()}).table
    assert table["name"].tolist()[-1] == "Trace elements"


def test_no_two_tasks_have_one_name():
    rows = [*BLOOD_GAS, *((LAB, name, "h") for _, name, _ in BLOOD_GAS), (LAB, "Blood gas", "")]
    names = with_catalogue(tasks(rows), {}).table["name"].tolist()
    assert names[-2:] == ["Blood gas (2)", "Blood gas (3)"]
    keys = with_catalogue(tasks(rows), {}).table["task_key"]
    assert keys.is_unique


def test_where_every_lab_stands_alone_and_is_an_order_nothing_changes():
    given_tasks = tasks([(LAB, "Zinc", ""), (LAB, "Copper", ""), (DRUG, "Heparin", "g"), (DRUG, "Aspirin", "g")])
    found = with_catalogue(given_tasks, {})
    pd.testing.assert_frame_equal(found.table, given_tasks.table)
