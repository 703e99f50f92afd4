"""Checks and drafts of a site mapping agree with what the import then does."""

import pytest
import yaml

from alertreview.files import preset_paths
from alertreview.operations.upgrade import open_database
from alertreview.records.import_site import import_records
from alertreview.records.importing import build_cohort
from alertreview.records.mapping_help import check_mapping, order_groups_text, save_suggestion, suggest_mapping
from alertreview.records.snapshots import read_snapshot
from alertreview.settings import load_settings
from core.errors import MappingError, NotFoundError
from core.events.code_book import recognise
from core.events.mapping import load_mapping
from core.kinds import EventKind
from core.simulation.hospital import simulate_cohort, write_meds
from tests.support.records import write_meds as write_rows

OWN_SPELLING = [
    (1, "2026-01-01 10:00", "ADMIT:Ward 3"),
    (1, "2026-01-02 07:00", "LABRESULT:Kalium:mmol/L", 4.1),
    (1, "2026-01-02 09:00", "LABRESULT:Kalium:mmol/L", 4.3),
    (1, "2026-01-02 09:30", "DRUG:Heparin"),
    (1, "2026-01-02 09:40", "ZZTOP:1"),
    (1, "2026-01-03 12:00", "DISCHARGE:Home"),
]


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    return write_meds(simulate_cohort(n_patients=15, n_days=12), tmp_path_factory.mktemp("help") / "hospital")


def test_a_check_counts_what_the_import_will_count(hospital):
    check = check_mapping(hospital)
    _, report = build_cohort(hospital)
    assert check.mapping == "simulated"
    assert check.kinds == (*report.read.kinds, *report.read.facts)
    assert report.read.kinds
    assert report.read.facts
    assert check.n_rows == report.read.n_rows
    assert check.problems == ()
    assert "LAB_RESULT" in "\n".join(check.lines())


def test_a_check_names_what_a_mapping_lacks(tmp_path):
    check = check_mapping(write_rows(tmp_path, OWN_SPELLING), mapping="mimic-iv-meds")
    assert check.share_recognised == 0
    assert len(check.problems) == 3
    assert "no stays" in "\n".join(check.lines())


def test_a_draft_for_unknown_codes_can_be_saved_and_imported(tmp_path):
    folder = write_rows(tmp_path / "records", OWN_SPELLING)
    draft = suggest_mapping(folder)
    path = tmp_path / "mine.yaml"
    save_suggestion(draft, path)
    assert load_mapping(path).name == "my-site"
    cohort, report = build_cohort(folder, mapping=path, min_positive=1)
    assert set(cohort.tasks["task_key"]) == {"LAB_ORDER/Kalium", "MEDICATION/heparin"}
    assert set(cohort.events.loc[cohort.events["kind"] == "LAB_RESULT", "unit"]) == {"mmol/L"}
    assert any("ZZTOP" in drop.reason for drop in report.read.dropped)
    assert any("DRUG" in note for note in draft.notes)


def test_a_draft_starts_from_the_preset_that_knows_most(hospital):
    draft = suggest_mapping(hospital)
    assert "simulated" in draft.notes[0]
    assert draft.check.share_recognised > 0.95


def test_an_existing_file_is_not_overwritten(tmp_path, hospital):
    path = tmp_path / "mine.yaml"
    path.write_text("mine")
    with pytest.raises(MappingError, match="exists already"):
        save_suggestion(suggest_mapping(hospital), path)
    assert path.read_text() == "mine"
    with pytest.raises(MappingError, match="cannot be written"):
        save_suggestion(suggest_mapping(hospital), tmp_path / "no" / "folder.yaml")


@pytest.fixture
def site(tmp_path):
    settings = load_settings(tmp_path / "site", None, create=True)
    with open_database(settings, upgrade=True) as database:
        yield settings, database


def test_order_groups_come_out_as_a_part_of_a_mapping_and_go_in_edited(site, hospital, tmp_path):
    settings, database = site
    import_records(settings, database, hospital, "meds", "simulated")
    text = order_groups_text(database)
    found = yaml.safe_load(text)["order_groups"]
    snapshot = read_snapshot(next(settings.snapshots.iterdir()))
    groups = snapshot.tasks.set_index("task_key")["order_group"]
    assert {key: name for name, keys in found.items() for key in keys} == groups[groups != ""].to_dict()
    first, *others = found
    moved = found[first][0]
    edited = {"Renamed": found[first][1:], "": [moved]} | {name: found[name] for name in others}
    content = load_mapping(preset_paths()["simulated"]).model_dump(mode="json") | {
        "name": "own",
        "order_groups": edited,
    }
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(content))
    cohort, _ = build_cohort(hospital, mapping=path)
    again = cohort.tasks.set_index("task_key")["order_group"]
    assert again[moved] == ""
    assert set(again[found[first][1:]]) == {"Renamed"}


def test_without_an_import_there_are_no_order_groups(site):
    with pytest.raises(NotFoundError, match="Import records first"):
        order_groups_text(site[1])


OWN_CODES = [
    (1, "2026-01-01 10:00", "VISIT^IN"),
    (1, "2026-01-02 08:30", "LABORDER^K"),
    (1, "2026-01-02 09:00", "RX^Heparin"),
    (1, "2026-01-02 10:00", "labresult", 4.1),
    (1, "2026-01-05 12:00", "DISCHARGE"),
]


def test_a_draft_names_an_item_in_every_rule_that_needs_one(tmp_path):
    draft = suggest_mapping(write_rows(tmp_path / "records", OWN_CODES))
    (tmp_path / "own.yaml").write_text(draft.text)
    own = load_mapping(tmp_path / "own.yaml")
    found = {code: recognise(code, own) for _, _, code, *_ in OWN_CODES}
    assert found["LABORDER^K"].item == "K"
    assert (found["RX^Heparin"].kind, found["RX^Heparin"].item) == (EventKind.MEDICATION_ORDER, "heparin")
    assert found["labresult"].item
    assert own.without_item() == ()


def test_a_rule_without_an_item_is_named_by_the_check_and_by_the_import(tmp_path):
    rules = [{"code": r"VISIT\^IN", "kind": "ADMISSION"}, {"code": "DISCHARGE", "kind": "DISCHARGE"}]
    rules += [{"code": r"LABORDER\^K", "kind": "LAB_ORDER"}, {"code": r"RX\^(?P<item>.+)", "kind": "MEDICATION_ORDER"}]
    content = {"name": "own", "title": "Own", "format": "meds", "rules": rules, "min_positive": 1}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(content))
    folder = write_rows(tmp_path / "records", OWN_CODES)
    _, report = build_cohort(folder, mapping=tmp_path / "own.yaml")
    for said in (check_mapping(folder, mapping=tmp_path / "own.yaml").problems, report.read.remarks):
        (sentence,) = [one for one in said if "drug order has a stop" not in one]
        assert r"The rule 'LABORDER\\^K' (LAB_ORDER) names no item" in sentence


def test_every_preset_names_its_items():
    assert all(load_mapping(path).without_item() == () for path in preset_paths().values())
