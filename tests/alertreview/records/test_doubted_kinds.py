"""Mappings whose rules mean another kind of event, or come to nothing, are doubted; sound ones are not."""

import pandas as pd
import pytest
import yaml

from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort
from alertreview.records.mapping_help import check_mapping
from core.events.mapping import load_mapping
from core.events.plausibility import OF_RULES, Severity
from tests.support.lying_records import FORMATS, hospital, write


def mapped(source_format, change, folder):
    """Write a preset with its rules changed."""
    content = load_mapping(preset_paths()[source_format]).model_dump(mode="json", exclude_defaults=True)
    own = folder / "own.yaml"
    own.write_text(yaml.safe_dump({**content, "rules": change(content["rules"])}), encoding="utf-8")
    return own


def kinds_swapped(**kinds):
    return lambda rules: [{**rule, "kind": kinds.get(rule["kind"], rule["kind"])} for rule in rules]


def raised(report):
    return {check.name: check.severity for check in report.checks if check.name in OF_RULES and check.count}


@pytest.mark.parametrize("source_format", FORMATS)
def test_sound_mappings_are_not_doubted(source_format, tmp_path):
    source = write(hospital(), source_format, tmp_path / "source")
    _, report = build_cohort(source, format=source_format, min_positive=1)
    assert raised(report) == {}
    check = check_mapping(source, format=source_format)
    assert (check.problems, check.rules) == ((), report.read.idle_rules)


@pytest.mark.parametrize("source_format", ["omop", "fhir"])
@pytest.mark.parametrize(
    "kinds",
    [
        {"LAB_RESULT": "ADMINISTRATION"},
        {"MEDICATION_ORDER": "LAB_RESULT", "MEDICATION_STOP": "LAB_RESULT"},
        {"MEDICATION_STOP": "MEDICATION_ORDER"},
        {"MEDICATION_ORDER": "MEDICATION_STOP"},
    ],
)
def test_rules_that_mean_another_kind_are_red(source_format, kinds, tmp_path):
    source = write(hospital(), source_format, tmp_path / "source")
    own = mapped(source_format, kinds_swapped(**kinds), tmp_path)
    _, report = build_cohort(source, format=source_format, mapping=own, min_positive=1)
    assert raised(report)["mistaken_kinds"] is Severity.RED
    assert check_mapping(source, format=source_format, mapping=own).problems


WORDLESS = {
    "LAB//ORDER//": "A//",
    "LAB//RESULT//": "B//",
    "MEDICATION//START//": "C//",
    "MEDICATION//STOP//": "D//",
}


def wordless(kinds, folder):
    """Import the hospital with codes that say nothing, read as the kinds say."""
    path = write(hospital(), "csv", folder)
    table = pd.read_csv(path, dtype="str", keep_default_na=False)
    for said, bare in WORDLESS.items():
        table["code"] = table["code"].str.replace(said, bare, regex=False)
    table.to_csv(path, index=False)
    rules = [
        {"code": f"{letter}//(?P<item>[^/]+)(//(?P<unit>.*))?", "kind": kind}
        for letter, kind in zip("ABCD", kinds, strict=True)
    ]
    own = mapped("csv", lambda presets: [*rules, *presets], folder)
    return raised(build_cohort(path, format="csv", mapping=own, min_positive=1)[1])


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        ("LAB_ORDER LAB_RESULT MEDICATION_ORDER MEDICATION_STOP", set()),
        ("LAB_ORDER MEDICATION_ORDER LAB_RESULT LAB_RESULT", {"mistaken_kinds"}),
        ("LAB_RESULT LAB_ORDER MEDICATION_ORDER MEDICATION_STOP", {"mistaken_kinds"}),
        ("LAB_ORDER LAB_RESULT MEDICATION_STOP MEDICATION_ORDER", {"swapped_courses"}),
        ("LAB_ORDER LAB_RESULT MEDICATION_ORDER MEDICATION_ORDER", {"swapped_courses"}),
        ("LAB_ORDER LAB_RESULT MEDICATION_STOP MEDICATION_STOP", {"swapped_courses"}),
    ],
)
def test_kinds_are_doubted_by_what_stands_behind_wordless_codes(kinds, names, tmp_path):
    found = wordless(kinds.split(), tmp_path)
    assert names <= found.keys()
    assert set(found.values()) <= {Severity.RED}
    assert bool(found) is bool(names)


@pytest.mark.parametrize(
    ("source_format", "first"), [("csv", "LAB//.*"), ("omop", "(MEASUREMENT|VISIT)//.+DISCHARGE|MEASUREMENT.*")]
)
def test_a_broad_rule_before_a_special_one_is_red_and_told(source_format, first, tmp_path):
    source = write(hospital(), source_format, tmp_path / "source")
    broad = {"code": first, "kind": "IGNORE", "reason": "by mistake"}
    own = mapped(source_format, lambda rules: [broad, *rules], tmp_path)
    _, report = build_cohort(source, format=source_format, mapping=own, min_positive=1)
    assert raised(report)["hidden_rules"] is Severity.RED
    assert any("taken by rule 1" in sentence for sentence in report.read.idle_rules)
    check = check_mapping(source, format=source_format, mapping=own)
    assert check.rules == report.read.idle_rules
    assert any("broader rule" in problem for problem in check.problems)


def test_rules_that_match_nothing_are_told_by_number(tmp_path):
    source = write(hospital(), "csv", tmp_path / "source")
    own = mapped("csv", lambda rules: [{"code": "LABB//(?P<item>.+)", "kind": "LAB_RESULT"}, *rules], tmp_path)
    _, report = build_cohort(source, format="csv", mapping=own, min_positive=1)
    assert report.read.idle_rules[0].startswith("No code matches rule 1, ")
    assert report.read.idle_rules[0] in "\n".join(report.lines())
    assert report.read.idle_rules[0] in "\n".join(check_mapping(source, format="csv", mapping=own).lines())
