"""Site mappings: presets are valid, mistakes are refused by file, key and rule, spellings are brought together."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alertreview.files import data_folder, preset_paths
from core.errors import MappingError
from core.events.code_book import recognise
from core.events.mapping import SiteMapping, load_mapping, normalise, parse_mapping
from core.kinds import EventKind
from tests.support.records import site

GOOD = {"name": "x", "title": "X", "format": "meds", "rules": [{"code": "A", "kind": "ADMISSION"}]}


@pytest.mark.parametrize("path", preset_paths().values(), ids=preset_paths().keys())
def test_every_preset_is_a_valid_mapping_named_like_its_file(path: Path):
    assert load_mapping(path).name == path.stem


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"timezon": "UTC"}, ["timezon", "Extra inputs"]),
        ({"timezone": "Mars/Olympus"}, ["timezone", "Mars/Olympus", "IANA"]),
        ({"snapshot_hour": 24}, ["snapshot_hour", "24"]),
        ({"min_positive": 0}, ["min_positive"]),
        ({"rules": []}, ["rules"]),
        ({"rules": [{"code": "(", "kind": "ADMISSION"}]}, ["rules.0.code", "regular expression"]),
        ({"rules": [{"code": "(?P<thing>.)", "kind": "ADMISSION"}]}, ["'thing'", "item, unit and event"]),
        ({"rules": [{"code": "A", "kind": "PARTY"}]}, ["rules.0.kind", "PARTY"]),
        ({"rules": [{"code": "A", "kind": "IGNORE"}]}, ["rules.0", "reason"]),
        ({"format": "FHIR R4"}, ["format", "FHIR R4"]),
    ],
)
def test_a_wrong_key_is_refused_naming_file_key_and_rule(change, parts):
    with pytest.raises(MappingError) as caught:
        parse_mapping({**GOOD, **change}, "ward.yaml")
    for part in ["ward.yaml", *parts]:
        assert part in str(caught.value)


def test_a_missing_key_is_refused_by_name():
    with pytest.raises(MappingError, match=r"m\.yaml: key title"):
        parse_mapping({key: value for key, value in GOOD.items() if key != "title"}, "m.yaml")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"a: [1", "not YAML"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"- 1\n- 2\n", "holds no keys"),
        (b"", "holds no keys"),
        (b"a: " + 5_000 * b"[" + 5_000 * b"]", "nested too deeply"),
        (b"a: " + 5_000 * b"{a: " + b"1" + 5_000 * b"}", "nested too deeply"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, content, part):
    path = tmp_path / "m.yaml"
    path.write_bytes(content)
    with pytest.raises(MappingError, match=part):
        load_mapping(path)


def test_a_missing_file_is_refused_with_its_path(tmp_path: Path):
    with pytest.raises(MappingError, match=r"gone\.yaml"):
        load_mapping(tmp_path / "gone.yaml")


def test_python_objects_in_yaml_are_refused(tmp_path: Path):
    path = tmp_path / "m.yaml"
    path.write_text("name: !!python/object/apply:os.system ['true']")
    with pytest.raises(MappingError, match="not YAML"):
        load_mapping(path)


@given(st.text())
def test_normalising_twice_changes_nothing_more(text):
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(alphabet="abcXYZ \t"), st.text(alphabet=" \t"))
def test_case_and_blanks_make_no_difference(text, blanks):
    assert normalise(blanks + text.upper() + blanks) == normalise(text)


def test_case_is_kept_where_the_mapping_says_so():
    assert recognise("START// Insulin  Lispro", site(keep_case=True)).item == "Insulin Lispro"


def test_patient_ids_carry_prefix_and_digits():
    assert site(patient_prefix="SIM-", patient_digits=4).patient_id(412) == "SIM-0412"


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_64_bit_identifiers_stay_exact(subject):
    assert int(site().patient_id(subject)) == subject


def test_every_key_and_kind_is_explained_in_the_readme_of_the_data():
    text = (data_folder() / "README.md").read_text(encoding="utf-8")
    for word in [*SiteMapping.model_fields, *EventKind, "IGNORE", *preset_paths()]:
        assert f"`{word}`" in text, word


def written(folder: Path, extra: str) -> Path:
    path = folder / "ward.yaml"
    path.write_text(
        f"name: x\ntitle: X\nformat: meds\nrules: [{{code: A, kind: ADMISSION}}]\n{extra}\n", encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(
    ("extra", "key", "value"),
    [
        ("names: {NO: Nitric oxide, 0050912: Creatinine}", "names", {"NO": "Nitric oxide", "0050912": "Creatinine"}),
        ("names: {2026-01-01: a, 1e3: b, 12:30: c}", "names", {"2026-01-01": "a", "1e3": "b", "12:30": "c"}),
        ("unknown_units: [no, off, 1.0]", "unknown_units", ("no", "off", "1.0")),
        ("not_done_words: [N, Yes]", "not_done_words", ("N", "Yes")),
        ("calendar_is_shifted: yes", "calendar_is_shifted", True),
        ("sentinels: [999999, -1.5]", "sentinels", (999999.0, -1.5)),
        ("snapshot_hour: 010", "snapshot_hour", 10),
        ("ignored_items: &some [UNK]\nunknown_units: *some", "unknown_units", ("UNK",)),
        ("<<: {timezone: Europe/Berlin}", "timezone", "Europe/Berlin"),
    ],
)
def test_a_value_is_what_stands_in_the_file(tmp_path: Path, extra, key, value):
    """YAML 1.1 reads NO as false, 010 as eight and 12:30 as 750."""
    assert getattr(load_mapping(written(tmp_path, extra)), key) == value


@pytest.mark.parametrize(
    ("extra", "part"),
    [
        ("timezone: UTC\ntimezone: Europe/Berlin", "line 6: the key 'timezone' stands twice"),
        ("rules: []", "line 5: the key 'rules' stands twice"),
        ("names:\n  A: b\n  A: c", "line 7: the key 'A' stands twice"),
        ("csv: {patient: a, time: b, 'patient': c}", "line 5: the key 'patient' stands twice"),
        ("min_positive: true", "min_positive = 'true'"),
        ("snapshot_hour: 8:00", "snapshot_hour = '8:00'"),
        ("result_delay_minutes: 1:00", "result_delay_minutes = '1:00'"),
        ("sentinels: [nan]", "finite number"),
        ("sentinels: [true]", "sentinels.0 = 'true'"),
        ("plausible: [{item: K, low: 15, high: 1}]", "low = 15 is not below high = 1"),
        ("plausible: [{item: K, low: nan}]", "plausible.0"),
        ("unit_conversions: [{item: K, from_unit: a, to_unit: b, factor: 0}]", "factor = 0"),
        ("unit_conversions: [{item: K, from_unit: a, to_unit: b, factor: inf}]", "finite number"),
        ("timezone: !!python/name:os.system ''", "not YAML"),
    ],
)
def test_what_one_value_would_hide_is_refused(tmp_path: Path, extra, part):
    with pytest.raises(MappingError) as caught:
        load_mapping(written(tmp_path, extra))
    assert part in str(caught.value)
    assert "ward.yaml" in str(caught.value)


def test_anchors_that_nest_a_billion_values_are_refused_at_once(tmp_path: Path):
    bomb = "&n0 [x]"
    for i in range(1, 12):
        bomb = f"&n{i} [{bomb}, {', '.join([f'*n{i - 1}'] * 8)}]"
    with pytest.raises(MappingError) as caught:
        load_mapping(written(tmp_path, f"ignored_items: [{bomb}]"))
    assert "ignored_items.0" in str(caught.value)
    assert len(str(caught.value)) < 1_000
