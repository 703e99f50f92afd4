"""FHIR bulk exports: what each resource becomes, what is no decision, and what is refused naming line and element."""

import bz2
import io
import json
import shutil
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alertreview.cli.main import main
from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort, import_snapshot
from alertreview.records.mapping_help import check_mapping
from alertreview.records.snapshots import read_snapshot
from alertreview.records.sources import fhir, ndjson
from alertreview.records.sources.formats import detect_format
from alertreview.records.sources.text_tables import TextFile
from core.errors import SourceError
from core.events.mapping import load_mapping, parse_mapping
from core.events.plausibility import Severity
from tests.support.fhir_records import (
    bundle,
    coded,
    encounter,
    lab,
    order,
    patient,
    write_bundles,
    write_export,
)
from tests.support.frames import assert_same_frame

dump = json.dumps

WHOLE = [patient(), encounter(), lab(), order()]


def mapping(**changes):
    content = load_mapping(preset_paths()["fhir"]).model_dump(mode="json")
    return parse_mapping({**content, **changes}, "test")


def rows(folder, *resources, **changes):
    source = fhir.read(write_export(folder, *resources), mapping(**changes))
    return pd.concat(list(source.chunks), ignore_index=True), source


def codes(folder, *resources):
    return list(rows(folder, patient(), *resources)[0]["code"].astype("str"))[2:]


def test_a_folder_a_zip_archive_and_one_packed_file_are_told_from_their_names(tmp_path):
    folder = write_export(tmp_path / "plain", *WHOLE)
    packed = write_export(tmp_path / "packed", *WHOLE, packed=True)
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for path in folder.iterdir():
            opened.write(path, path.name)
    counts = [check_mapping(source, format=detect_format(source)).n_rows for source in (folder, packed, archive)]
    assert counts == [6, 6, 6]
    assert detect_format(packed / "MimicPatient.ndjson.gz") == "fhir"


def test_what_refers_to_a_merged_patient_is_of_the_one_that_replaced_them(tmp_path):
    """Twice over, by any name; those who replace each other, or are replaced by nobody, stay who they are."""
    links = {"p1": "Patient/p2", "p2": "Patient/p3", "p4": "Patient/p5", "p5": "Patient/p4", "p6": "Patient/none"}
    people = [patient(f"p{i}") for i in (3, *range(7, 9))]
    people += [patient(a, link=[{"other": {"reference": b}, "type": "replaced-by"}]) for a, b in links.items()]
    people[1]["link"] = [{"other": {"reference": "Patient/p8"}, "type": "seealso"}]
    found, source = rows(tmp_path, *people, *(lab(of=f"p{i}") for i in range(1, 9)))
    results = found[found["value"].notna()]
    assert sorted(results["subject"]) == ["p3", "p3", "p3", "p4", "p5", "p6", "p7", "p8"]
    assert sorted(found["subject"][found["code"] == "BIRTH"]) == ["p3", "p4", "p5", "p6", "p7", "p8"]
    assert source.remarks[0].startswith("2 Patients replaced by another one")


def test_times_with_an_offset_are_read_in_the_zone_of_the_site(tmp_path):
    times = ["2026-07-01T08:00:00+02:00", "2026-07-01T06:00:00.123Z", "2026-07-01T08:00:00", "2026-07-01"]
    found, _ = rows(tmp_path, patient(), *(lab(each) for each in times), timezone="Europe/Zurich")
    assert list(found["time"][2:]) == [pd.Timestamp("2026-07-01 08:00")] * 3 + [pd.Timestamp("2026-07-01")]


def test_a_zone_that_the_offsets_contradict_is_remarked_on(tmp_path):
    away = [encounter(period={"start": "2026-01-01T06:00:00-05:00", "end": "2026-01-02T06:00:00-05:00"})]
    assert any(
        "-05:00" in remark and "timezone" in remark for remark in rows(tmp_path / "a", patient(), *away)[1].remarks
    )
    assert rows(tmp_path / "b", patient(), *away, timezone="America/New_York")[1].remarks == []


def test_an_encounter_that_the_export_holds_twice_is_one_stay(tmp_path):
    stays = [encounter(), encounter("e2", period={"start": "2026-02-01T06:00:00Z", "end": "2026-02-03T10:00:00Z"})]
    once, _ = build_cohort(write_export(tmp_path / "a", patient(), lab(), *stays), format="fhir", min_positive=1)
    twice, report = build_cohort(
        write_export(tmp_path / "b", patient(), lab(), *stays, *stays), format="fhir", min_positive=1
    )
    assert (report.stays.n_stays, report.stays.n_overlapping, report.read.n_duplicates_dropped) == (2, 0, 4)
    assert twice.content_hash == once.content_hash
    # One id for two periods: a corrected line, or an id that was used again. Neither is lost.
    again = [encounter(), encounter(period=stays[1]["period"])]
    _, report = build_cohort(write_export(tmp_path / "c", patient(), lab(), *again), format="fhir", min_positive=1)
    assert report.stays.n_stays == 2


def test_codes_have_the_names_that_the_export_gives_them(tmp_path):
    pressure = {"component": [{"code": coded("8480-6", "Systolic"), "valueQuantity": {"value": 120, "unit": "mmHg"}}]}
    found, source = rows(
        tmp_path, patient(), lab(), lab(valueQuantity=None, category=[coded("vital-signs")], **pressure), order()
    )
    names = {code: source.descriptions.get(code) for code in found["code"].astype("str")[2:]}
    assert names == {
        "OBSERVATION//laboratory//LOINC//2823-3//mmol/L": "Potassium",
        "OBSERVATION//vital-signs//LOINC//8480-6//mmHg": "Systolic",
        "MEDICATION//ORDER//RxNorm//1191": "Aspirin",
    }


@pytest.mark.parametrize(
    ("value", "number", "text"),
    [
        ({"valueQuantity": {"value": 4.25, "unit": "mmol/L"}}, 4.25, ""),
        ({"valueQuantity": {"value": 0.5, "comparator": "<"}}, None, "<0.5"),
        ({"valueQuantity": {"value": 4.25, "unit": "mmol/L"}, "valueString": "9.9"}, 4.25, "9.9"),
        ({"valueInteger": 3}, 3.0, ""),
        ({"valueString": " cloudy "}, None, "cloudy"),
        ({"valueBoolean": False}, None, "false"),
        ({"valueCodeableConcept": coded("10828004", "Positive")}, None, "Positive"),
        ({"valueCodeableConcept": {"coding": [{"display": "Positive"}]}}, None, "Positive"),
        ({"valueRange": {"low": {"value": 1}, "high": {"value": 2.5}}}, None, "1-2.5"),
        ({"valueRatio": {"numerator": {"value": 1}, "denominator": {"value": 128}}}, None, "1:128"),
        ({"dataAbsentReason": coded("unknown")}, None, "unknown"),
    ],
)
def test_every_kind_of_value_becomes_a_number_or_a_text(tmp_path, value, number, text):
    found, _ = rows(tmp_path, patient(), lab(**({"valueQuantity": None} | value)))
    assert found["text"].iloc[-1] == text
    assert found["value"].iloc[-1] == number or (number is None and np.isnan(found["value"].iloc[-1]))


@pytest.mark.parametrize(
    ("resource", "why"),
    [
        (order(status="cancelled"), "MedicationRequest//cancelled"),
        (order(status="entered-in-error"), "MedicationRequest//entered-in-error"),
        (order(status="draft"), "MedicationRequest//draft"),
        (order(intent="proposal"), "MedicationRequest//proposal"),
        (order(intent="plan"), "MedicationRequest//plan"),
        (order(intent="Plan"), "MedicationRequest//plan"),
        (order(doNotPerform=True), "MedicationRequest//doNotPerform"),
        (order(resourceType="MedicationAdministration", status="not-done"), "MedicationAdministration//not-done"),
        (lab(status="cancelled"), "Observation//cancelled"),
        (lab(status="entered-in-error"), "Observation//entered-in-error"),
        (lab(resourceType="ServiceRequest", status="revoked", intent="order"), "ServiceRequest//revoked"),
        (lab(resourceType="ServiceRequest", status="active", intent="option"), "ServiceRequest//option"),
        (encounter(status="planned"), "Encounter//planned"),
        (lab(resourceType="Condition", verificationStatus=coded("refuted")), "Condition//refuted"),
    ],
)
def test_what_was_not_decided_or_not_done_is_no_event_and_counted_by_status(tmp_path, resource, why):
    assert codes(tmp_path, resource) == [f"NOT_DONE//{why}"]
    assert mapping().compiled_rules[0][0].fullmatch(f"NOT_DONE//{why}")
    assert mapping().rules[0].kind == "IGNORE"


BUNDLES = {
    "pages of a search": lambda of: {f"{i}.json": dump(bundle(each, kind="searchset")) for i, each in enumerate(of)},
    "one Bundle in another": lambda of: {"all.json": dump(bundle(bundle(*of[1:]), of[0]))},
    "a Bundle on each line": lambda of: {"all.ndjson": "".join(dump(bundle(each)) + "\n" for each in of)},
    "a resource in each file": lambda of: {f"{i}.JSON": dump(each, indent=1) for i, each in enumerate(of)},
    "a list of resources": lambda of: {"all.json": dump(of)},
    "lines in a file called JSON": lambda of: {"all.json": "\n".join(map(dump, of))},
    "packed, with a mark, about itself last": lambda of: {
        "all.json.bz2": "\ufeff" + dump(dict(reversed(bundle(*of).items()), note=[], empty={}))
    },
    "addresses of a server": lambda of: {
        "all.json": dump(bundle(*of)).replace("urn:uuid:", "https://hospital.example/fhir/Patient/")
    },
}


@pytest.mark.parametrize("name", BUNDLES)
@pytest.mark.parametrize("is_archive", [False, True])
def test_resources_in_bundles_are_read_as_on_lines(tmp_path, monkeypatch, name, is_archive):
    """Also where a block of the file ends in any place of it."""
    monkeypatch.setattr(ndjson, "_BLOCK", 7)
    folder = tmp_path / "bundles"
    folder.mkdir()
    for file, content in BUNDLES[name](WHOLE).items():
        packed = bz2.compress(content.encode()) if file.endswith(".bz2") else content.encode()
        (folder / file).write_bytes(packed)
    source = folder
    if is_archive:
        source = Path(shutil.make_archive(str(tmp_path / "bundles"), "zip", folder))
    assert detect_format(source) == "fhir"
    found = pd.concat(list(fhir.read(source, mapping()).chunks), ignore_index=True)
    wanted, _ = rows(tmp_path / "lines", *WHOLE)
    columns = ["subject", "time", "code", "value", "end"]
    assert_same_frame(
        *(
            each[columns].astype({"code": "str"}).sort_values(["time", "code"], ignore_index=True)
            for each in (found, wanted)
        )
    )


def test_of_a_bundle_no_more_than_the_next_entry_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(ndjson, "_BLOCK", 100)
    stream = io.BytesIO(dump(bundle(*WHOLE * 100)).encode())
    found = ndjson.entries(TextFile("all.json", "all", lambda: nullcontext(stream)))
    for _ in range(10):
        next(found)
    assert stream.tell() < 10_000 < len(stream.getvalue())


def test_versions_statuses_and_unused_resources_of_bundles(tmp_path):
    results = [version(lab(value=value), "a", str(value)) for value in (5, 4)]
    other = {"resourceType": "Claim", "id": "c"}
    source = write_bundles(tmp_path, patient(), encounter(), *results, order(status="cancelled"))
    (source / "more.json").write_text(dump({"resourceType": "Bundle", "entry": [{"resource": other}, {}]}))
    (source / "log.json").write_text("{}")
    found = fhir.read(source, mapping())
    table = pd.concat(list(found.chunks))
    assert list(table["value"].dropna()) == [5]
    assert "NOT_DONE//MedicationRequest//cancelled" in set(table["code"])
    assert found.remarks == [
        "1 entry left out: a later version of the same resource is there.",
        "Entries of Bundles not read, because nothing uses them: Claim (1), no resource (1).",
    ]
    assert next(each.examples for each in found.findings if each.name == "unread_files") == ("log.json",)


BROKEN = [
    (lambda said: said.replace('"value": 4.1', '"value": "4.1"'), "entry 3: value is a text"),
    (lambda said: said.replace('"method": "POST"', '"method": "DELETE"'), "entry 1: deletes a resource"),
    (lambda said: said.replace("4.1", "NaN"), "after entry 2 comes what is not JSON (a number or depth"),
    (lambda said: said.replace("4.1", "\udcff"), "after entry 0 comes what is not JSON (invalid start byte)"),
    (lambda said: said.replace("4.1", "4,1"), "after entry 2 comes what is not JSON (Expecting property name"),
    (lambda said: said[:-200], "after entry 3 comes what is not JSON"),
    (lambda said: said[:-1], "after entry 4 comes what is not JSON (the end instead of"),
    (lambda said: said.replace('"entry": [', '"entry": [[], '), "entry 1: is not a JSON object"),
    (lambda said: said.replace("4.1", "[" * 90_000 + "]" * 90_000), "after entry 2 comes what is not JSON"),
    (lambda said: said.replace('"Patient"', '"Person"'), "holds no Patient resource"),
]


@pytest.mark.parametrize(("harm", "rule"), BROKEN, ids=[rule for _, rule in BROKEN])
def test_what_is_wrong_in_a_bundle_is_refused_with_file_and_entry(tmp_path, capsys, harm, rule):
    path = tmp_path / "all.json"
    path.write_bytes(harm(dump(bundle(*WHOLE))).encode(errors="surrogateescape"))
    assert main(["import", str(path), "--home", str(tmp_path / "site")]) == 2
    assert f"all.json: {rule}" in capsys.readouterr().err


def test_a_doubt_about_a_bundle_does_not_say_what_its_file_is_called(tmp_path):
    """Files of Bundles are called like their patients."""
    source = write_bundles(tmp_path, *STAY, patient("p2"), order("1900-01-01T09:00:00Z", of="p2"))
    _, report = build_cohort(source, format="fhir", min_positive=1)
    doubted = next(each for each in report.checks if each.name == "sentinel_dates")
    assert doubted.examples == ("Bundle 2 by name, row 1",)
    assert "Lovelace" not in report.to_html()


@pytest.mark.parametrize(("harm", "rule"), BROKEN[:3], ids=[rule for _, rule in BROKEN[:3]])
def test_an_error_in_a_bundle_does_not_say_what_its_file_is_called(tmp_path, capsys, harm, rule):
    source = tmp_path / "records"
    source.mkdir()
    (source / "Ada_Lovelace.json").write_text(harm(dump(bundle(*WHOLE))))
    assert main(["import", str(source), "--home", str(tmp_path / "site")]) == 2
    said = capsys.readouterr().err
    assert f"Bundle 1 by name: {rule}" in said
    assert "Lovelace" not in said


STAY = [patient(), encounter(), lab()]


@pytest.mark.parametrize("status", ["Canceled", "ENTERED_IN_ERROR", "Not Given", "storniert"])
@pytest.mark.parametrize("kind", ["MedicationRequest", "MedicationAdministration"])
def test_statuses_that_fhir_does_not_know_mean_what_the_mapping_says(tmp_path, kind, status):
    timed = {"effectiveDateTime": "2026-01-01T09:00:00Z"} if kind == "MedicationAdministration" else {}
    drug = order(resourceType=kind, status=status, **timed)
    cohort, report = build_cohort(write_export(tmp_path, *STAY, drug), format="fhir", min_positive=1)
    assert set(cohort.tasks["kind"]) == {"LAB_ORDER"}
    assert next(each.count for each in report.checks if each.name == "never_done") == 1


def test_an_order_on_hold_counts_and_is_doubted_and_a_dose_on_hold_was_begun(tmp_path):
    given = order(resourceType="MedicationAdministration", status="on-hold", effectiveDateTime="2026-01-01T09:00:00Z")
    source = write_export(tmp_path, *STAY, order(status="on-hold"), given)
    cohort, report = build_cohort(source, format="fhir", min_positive=1)
    assert {"MEDICATION_ORDER", "ADMINISTRATION"} < set(cohort.events["kind"])
    assert next(each.count for each in report.checks if each.name == "held_orders") == 1


STATUS_CHANGED = "http://hl7.org/fhir/5.0/StructureDefinition/extension-MedicationRequest.statusChanged"
NOON = "2026-01-02T12:00:00Z"


@pytest.mark.parametrize(
    ("changes", "n_doubted"),
    [
        ({"status": "active"}, 0),
        ({"status": "stopped"}, 1),
        ({"status": "completed", "meta": {"lastUpdated": NOON}}, 1),
        ({"status": "stopped", "extension": [{"url": STATUS_CHANGED, "valueDateTime": NOON}]}, 0),
        ({"status": "stopped", "statusReason": {"extension": [{"url": "x/stop-date", "valueDateTime": NOON}]}}, 0),
        (
            {
                "status": "stopped",
                "extension": [{"url": "why", "extension": [{"url": "statusChangeDate", "valueDateTime": NOON}]}],
            },
            0,
        ),
    ],
)
def test_an_order_that_has_ended_has_its_end_or_is_doubted(tmp_path, changes, n_doubted):
    source = write_export(tmp_path, *STAY, order(**changes))
    cohort, report = build_cohort(source, format="fhir", mapping="fhir", min_positive=1)
    stops = cohort.events.loc[cohort.events["kind"] == "MEDICATION_STOP", "time"]
    assert list(stops.astype("str")) == (["2026-01-02 12:00:00"] if "xtension" in str(changes) else [])
    assert next(each.count for each in report.checks if each.name == "ended_orders") == n_doubted


def test_a_status_that_nobody_knows_counts_and_is_named(tmp_path):
    drug = order(status="Vidimiert", authoredOn="2026-01-01T09:00:00Z")
    cohort, report = build_cohort(write_export(tmp_path, *STAY, drug), format="fhir", min_positive=1)
    assert set(cohort.tasks["kind"]) == {"LAB_ORDER", "MEDICATION"}
    unknown = next(each for each in report.checks if each.name == "unknown_words")
    assert (unknown.count, unknown.examples) == (1, ("vidimiert",))


def test_what_is_doubted_is_named_by_file_and_line(tmp_path):
    away = encounter("e2", period={"start": "2026-01-08T06:00:00Z", "end": "9999-12-31T00:00:00Z"})
    far = [order(f"{year}-01-01T09:00:00Z") for year in (2026, 1900)]
    _, report = build_cohort(write_export(tmp_path, *STAY, away, *far), format="fhir", min_positive=1)
    doubted = next(each for each in report.checks if each.name == "sentinel_dates")
    assert doubted.examples == ("Encounter.000.ndjson, row 2", "MedicationRequest.000.ndjson, row 2")


def version(resource, name, number, updated="2026-02-01T00:00:00Z", **changes):
    return {**resource, **changes, "id": name, "meta": {"versionId": number, "lastUpdated": updated}}


def test_of_several_versions_of_a_resource_the_last_one_counts(tmp_path):
    """A corrected result, an order found to be an error, and an order of which nothing changed but the version."""
    results = [version(lab(value=4.1), "a", "1"), version(lab(value=5.2), "a", "2", status="corrected")]
    others = [version(lab(value=each), name, "1") for name, each in (("b", 4.3), ("c", 4.4))]
    orders = [version(order(), "d", "10", status="entered-in-error"), version(order(), "d", "9")]
    found, source = rows(tmp_path, patient(), encounter(), *results[::-1], *others, *orders)
    assert sorted(found["value"].dropna()) == [4.3, 4.4, 5.2]
    assert "NOT_DONE//MedicationRequest//entered-in-error" in set(found["code"])
    assert not found["code"].astype("str").str.startswith("MEDICATION//").any()
    assert [each.partition(" left out")[0] for each in source.remarks] == [
        "1 line of Observation",
        "1 line of MedicationRequest",
    ]


@pytest.mark.parametrize("last", ["line", "entry"])
def test_versions_on_a_line_and_in_a_bundle_are_one_resource(tmp_path, last):
    """One result and one order in both, of which the last version counts; one result in one version, in both."""
    numbers = {"line": ("2", "1"), "entry": ("1", "2")}[last]
    on_line, in_bundle = (
        [version(lab(value=4 + int(number)), "a", number), version(order(f"2026-01-0{number}T09:00:00Z"), "b", number)]
        for number in numbers
    )
    same = version(lab(value=9), "c", "1")
    folder = write_export(tmp_path, patient(), encounter(), *on_line, same)
    (folder / "Ada.json").write_text(dump(bundle(patient("p2"), *in_bundle, same)).replace("urn:uuid:p1", "Patient/p1"))
    source = fhir.read(folder, mapping())
    found = pd.concat(list(source.chunks)).drop_duplicates(["subject", "time", "code", "value"])
    assert sorted(found["value"].dropna()) == [6, 9]
    assert list(found.loc[found["code"].astype("str").str.startswith("MED"), "time"].dt.day) == [2]
    left_out = sorted(each.partition(" left out")[0] for each in source.remarks)
    assert left_out == {"line": ["2 entries"], "entry": ["1 line of MedicationRequest", "1 line of Observation"]}[last]


def test_lines_that_are_no_versions_of_each_other_all_count(tmp_path):
    """The same line twice, an id of two patients, and an id without any version."""
    same = [version(lab(value=4.1), "a", "1")] * 2
    of_two = [version(lab(value=4.2, of=each), "b", number) for each, number in (("p1", "1"), ("p2", "2"))]
    bare = [lab(value=each, id="c") for each in (4.3, 4.4)]
    found, source = rows(tmp_path, patient(), patient("p2"), encounter(), *same, *of_two, *bare)
    assert sorted(found["value"].dropna()) == [4.1, 4.1, 4.2, 4.2, 4.3, 4.4]
    said = "1 resource with the id of another one of their patient, other content, and no version: all count."
    assert source.remarks == [said]


@pytest.mark.parametrize("name", [{}, {"id": ""}, {"contained": [{"resourceType": "Specimen", "id": "s"}]}])
@pytest.mark.parametrize("in_bundle", [True, False])
def test_resources_without_an_id_are_no_versions_of_each_other(tmp_path, in_bundle, name):
    results = [lab(value=each, meta={"lastUpdated": f"2026-02-01T00:00:0{each}Z"}) | name for each in range(1, 4)]
    folder = write_export(tmp_path, patient(), encounter(), *([] if in_bundle else results))
    if in_bundle:
        entries = [{"resource": each} for each in results]
        (folder / "Ada.json").write_text(dump({"resourceType": "Bundle", "type": "collection", "entry": entries}))
    source = fhir.read(folder, mapping())
    assert sorted(pd.concat(list(source.chunks))["value"].dropna()) == [1, 2, 3]
    assert source.remarks == []


@pytest.mark.parametrize(
    ("former", "later"),
    [
        ("2026-02-01T01:00:00+02:00", "2026-02-01T00:30:00Z"),
        ("2026-02-01T00:00:00Z", "2026-02-01T00:00:00.5Z"),
        ("2026-02-01T00:00:00.123Z", "2026-02-01T00:00:00.1234567Z"),
    ],
)
def test_the_later_version_is_found_however_its_time_is_written(tmp_path, former, later):
    for number, order_of in enumerate((1, -1)):
        both = [version(lab(value=4.1), "a", "", former), version(lab(value=5.2), "a", "", later)][::order_of]
        found, _ = rows(tmp_path / str(number), patient(), encounter(), *both)
        assert list(found["value"].dropna()) == [5.2]


def test_a_part_of_an_encounter_that_nothing_tells_of_is_a_stay(tmp_path):
    part, whole = encounter("e2", partOf={"reference": "Encounter/e1"}), encounter()
    assert "ENCOUNTER//IMP////ADMISSION" in codes(tmp_path / "alone", part)
    assert codes(tmp_path / "both", part, whole)[0] == "ENCOUNTER//IMP////PART"


def test_what_is_of_no_patient_is_left_out_and_named(tmp_path):
    others = [lab(value=9, subject={"reference": each}) for each in ("Device/1", "http://a.org/fhir/Group/2")]
    found, source = rows(tmp_path, *WHOLE, *others)
    assert list(found["value"].dropna()) == [4.1]
    said = "Left out, because they are of a device, group or place and no patient: Observation (2)."
    assert source.remarks == [said]


def test_what_was_not_done_is_doubted_where_it_is_much(tmp_path):
    called_off = [order(f"2026-01-0{day}T09:00:00Z", status="cancelled") for day in (1, 2, 3)]
    _, report = build_cohort(write_export(tmp_path, *WHOLE, *called_off), format="fhir", min_positive=1)
    check = next(each for each in report.checks if each.name == "never_done")
    assert (check.severity, check.count) == (Severity.YELLOW, 3)


@pytest.mark.parametrize("status", ["active", "on-hold", "completed", "stopped", "ended"])
def test_an_order_that_was_stopped_was_an_order(tmp_path, status):
    assert codes(tmp_path, order(status=status)) == ["MEDICATION//ORDER//RxNorm//1191"]


@pytest.mark.parametrize(
    ("medication", "drug"),
    [
        ({"medicationReference": {"reference": "#m"}, "contained": [{"id": "m", "code": coded("Heparin")}]}, "Heparin"),
        ({"medicationReference": {"reference": "Medication/m1"}}, "Insulin"),
        ({"medicationReference": {"reference": "https://server/fhir/Medication/m1/_history/2"}}, "Insulin"),
        ({"medicationReference": {"reference": "urn:uuid:m1"}}, "Insulin"),
        ({"medicationReference": {"reference": "Medication/mix"}}, "Insulin + Dextrose"),
        ({"medicationReference": {"reference": "Medication/named"}}, "Senna"),
        ({"medicationCodeableConcept": {"text": "Own  mixture"}}, "Own mixture"),
    ],
)
def test_drugs_are_found_by_code_reference_contained_and_mixture(tmp_path, medication, drug):
    known = [
        {"resourceType": "Medication", "id": "m1", "code": coded("5856", "Insulin")},
        {
            "resourceType": "Medication",
            "id": "named",
            "identifier": [{"system": "x/medication-name", "value": "Senna"}],
        },
        {
            "resourceType": "Medication",
            "id": "mix",
            "ingredient": [
                {"itemReference": {"reference": "Medication/m1"}},
                {"itemCodeableConcept": coded("4850", "Dextrose")},
            ],
        },
    ]
    found, source = rows(tmp_path, patient(), *known, order(**({"medicationCodeableConcept": None} | medication)))
    assert source.descriptions[str(found["code"].iloc[-1])] == drug


def test_periods_of_orders_and_administrations_are_intervals_with_dose_and_route(tmp_path):
    bounds = {"boundsPeriod": {"start": "2026-01-01T09:00:00Z", "end": "2026-01-03T09:00:00Z"}}
    amounts = [{"doseQuantity": {"value": 5000.0, "unit": "units"}}]
    instruction = {"timing": {"repeat": bounds}, "route": coded("SC", "Subcutaneous"), "doseAndRate": amounts}
    period = {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T12:00:00Z"}
    given = {"resourceType": "MedicationAdministration", "status": "completed", "effectivePeriod": period}
    found, _ = rows(tmp_path, patient(), order(id="o1", dosageInstruction=[instruction]), order(None, id="a1", **given))
    said = ["MedicationRequest/o1/2026-01-01 09:00:00", "MedicationAdministration/a1/2026-01-01 10:00:00"]
    assert list(found["order"][2:]) == list(np.repeat(said, 2))
    told = found[2:][["code", "time", "end", "dose", "route"]].astype("object").to_numpy().tolist()
    start, end = pd.Timestamp("2026-01-01 09:00"), pd.Timestamp("2026-01-03 09:00")
    begun, stopped = pd.Timestamp("2026-01-01 10:00"), pd.Timestamp("2026-01-01 12:00")
    assert told[0] == ["MEDICATION//ORDER//RxNorm//1191", start, end, "5000 units", "Subcutaneous"]
    assert told[1][:2] == ["MEDICATION//STOP//RxNorm//1191", end]
    assert told[2][:3] == ["MEDICATION//GIVEN//RxNorm//1191//", begun, stopped]
    assert told[3][:2] == ["MEDICATION//STOP//RxNorm//1191", stopped]


@pytest.mark.parametrize(
    "instructions",
    [
        [{"text": "now"}, {"timing": {"repeat": {"boundsPeriod": {"end": "2026-01-03T09:00:00Z"}}}}],
        [{"timing": {"repeat": {"boundsDuration": {"value": 2, "code": "d"}}}}],
        [{"timing": {"repeat": {"boundsDuration": {"value": 48, "unit": "hours"}}}}],
    ],
)
def test_an_order_ends_as_any_of_its_instructions_says(tmp_path, instructions):
    found, _ = rows(tmp_path, patient(), order(dosageInstruction=instructions))
    assert found["time"].iloc[-1] == pd.Timestamp("2026-01-03 09:00")


@pytest.mark.parametrize("lasts", [{"value": 2, "code": "a"}, {"value": 1e9, "code": "d"}, {"value": -1, "code": "d"}])
def test_an_order_has_no_end_that_nobody_can_tell(tmp_path, lasts):
    told = codes(tmp_path, order(dosageInstruction=[{"timing": {"repeat": {"boundsDuration": lasts}}}]))
    assert told == ["MEDICATION//ORDER//RxNorm//1191"]


@pytest.mark.parametrize(
    "category",
    [
        [coded("Chem", system="urn:oid:1.2"), coded("laboratory")],
        [{"coding": [{"system": "urn:oid:1.2", "code": "LAB7"}, {"system": "x", "code": "laboratory"}]}],
        [coded("Laboratory")],
        [{"text": "Laboratory"}],
        [coded("social-history"), coded("laboratory")],
    ],
)
def test_a_lab_is_one_whatever_other_categories_it_has(tmp_path, category):
    assert codes(tmp_path, lab(category=category)) == ["OBSERVATION//laboratory//LOINC//2823-3//mmol/L"]


def test_results_without_a_category_are_counted_as_unknown():
    code = "OBSERVATION////LOINC//2823-3//mmol/L"
    assert not any(pattern.fullmatch(code) for pattern, _ in mapping().compiled_rules)


def test_the_code_of_a_unit_goes_before_its_words(tmp_path):
    ucum = {"value": 4.1, "unit": "millimole per liter", "code": "mmol/L", "system": "http://unitsofmeasure.org"}
    assert codes(tmp_path, lab(valueQuantity=ucum)) == ["OBSERVATION//laboratory//LOINC//2823-3//mmol/L"]


def test_a_result_whose_period_only_ends_has_that_time(tmp_path):
    found, _ = rows(tmp_path, patient(), lab(None, effectivePeriod={"end": "2026-01-01T09:00:00Z"}))
    assert found["time"].iloc[-1] == pd.Timestamp("2026-01-01 09:00")


@pytest.mark.parametrize("reference", [{"display": "Heparin"}, {"reference": "Medication/m1", "display": "Heparin"}])
def test_a_drug_without_any_medication_file_has_the_name_beside_the_reference(tmp_path, reference):
    made = order(medicationCodeableConcept=None, medicationReference=reference)
    assert codes(tmp_path, made) == ["MEDICATION//ORDER//NAME//Heparin"]


def test_an_encounter_of_a_class_in_small_letters_is_a_stay(tmp_path):
    found, _ = rows(tmp_path, patient(), encounter(**{"class": {"code": "imp"}}))
    assert "ENCOUNTER//IMP////ADMISSION" in found["code"].tolist()


def test_a_result_is_known_when_it_was_issued_and_has_its_reference_range(tmp_path):
    ranges = [
        {"type": coded("critical"), "low": {"value": 2.0}, "high": {"value": 7.0}},
        {"type": coded("normal"), "low": {"value": 3.5}, "high": {"value": 5.0}},
    ]
    found, _ = rows(tmp_path, patient(), lab(issued="2026-01-01T10:30:00Z", referenceRange=ranges))
    last = found.iloc[-1]
    assert (last["range_low"], last["range_high"]) == (3.5, 5.0)
    assert last["known_at"] == pd.Timestamp("2026-01-01 10:30")


def test_a_result_without_a_time_has_that_of_its_specimen(tmp_path):
    specimen = {
        "resourceType": "Specimen",
        "id": "s1",
        "subject": {"reference": "Patient/p1"},
        "collection": {"collectedDateTime": "2026-01-01T07:45:00Z"},
    }
    found, _ = rows(tmp_path, patient(), specimen, lab(None, specimen={"reference": "Specimen/s1"}))
    assert found["time"].iloc[-1] == pd.Timestamp("2026-01-01 07:45")


def test_patients_may_be_named_by_an_identifier(tmp_path):
    numbered = patient("0a8eebfd", identifier=[{"system": "urn:hospital", "value": "10000032"}])
    by_identifier = {"reference": "Patient?identifier=urn:hospital|10000032"}
    found, _ = rows(
        tmp_path, numbered, lab(of="0a8eebfd"), lab(subject=by_identifier), patient_identifier="urn:hospital"
    )
    assert set(found["subject"]) == {"10000032"}


def test_facts_of_the_patient_are_stored_with_the_import(tmp_path):
    facts = [
        lab(resourceType="Condition", category=[coded("problem-list-item")], code=coded("I50", "Heart failure")),
        lab(resourceType="Condition", category=[coded("encounter-diagnosis")], code=coded("J18", "Pneumonia")),
        {"resourceType": "AllergyIntolerance", "patient": {"reference": "Patient/p1"}, "code": coded("Penicillin")},
        lab(resourceType="Procedure", status="completed", performedDateTime="2026-01-02T10:00:00Z"),
    ]
    diagnosis = facts[1]
    diagnosis |= {"encounter": {"reference": "Encounter/e1"}}
    stay = encounter(reasonCode=[coded("267036007", "Dyspnea")])
    source = write_export(tmp_path / "export", patient(), stay, lab(), order(), *facts)
    snapshot = read_snapshot(import_snapshot(source, tmp_path / "home", format="fhir").folder)
    told = snapshot.facts_of("p1").set_index("kind")["name"].to_dict()
    assert told == {
        "ALLERGY": "Penicillin",
        "PROBLEM": "Heart failure",
        "DIAGNOSIS": "Pneumonia",
        "PROCEDURE": "Potassium",
        "REASON": "Dyspnea",
    }
    # A diagnosis without a date was coded for billing, and is known at the end of the encounter.
    known = snapshot.facts_of("p1").set_index("kind")["known_at"]
    assert known["DIAGNOSIS"] == pd.Timestamp("2026-01-04 10:00")


def test_files_that_nothing_uses_are_named_as_not_read(tmp_path):
    more = {"resourceType": "Practitioner", "id": "d1"}
    _, report = build_cohort(write_export(tmp_path, *WHOLE, more), format="fhir")
    assert any("Practitioner.000.ndjson" in remark and "Not read" in remark for remark in report.read.remarks)


WRONG = [
    ({"subject": None}, "subject is missing"),
    ({"subject": {"reference": "Patient/nobody"}}, "subject refers to a patient whom no Patient file holds"),
    ({"subject": "p1"}, "subject is a text; FHIR R4 has an object"),
    ({"subject": {"reference": 7}}, "reference is a number; FHIR R4 has a text"),
    ({"effectiveDateTime": 20260101}, "effectiveDateTime is a number; FHIR R4 has a text"),
    ({"effectiveDateTime": "01.02.2026"}, "effectiveDateTime is not a time such as"),
    ({"effectiveDateTime": "2026-02-30T10:00:00Z"}, "effectiveDateTime is not a time of the calendar"),
    ({"effectiveDateTime": "9999-12-31T23:00:00-10:00"}, "effectiveDateTime is not a time of the calendar"),
    ({"valueQuantity": {"value": "4,1"}}, "value is a text; FHIR R4 has a number"),
    ({"valueQuantity": {"value": True}}, "value is true or false; FHIR R4 has a number"),
    ({"valueQuantity": [4.1]}, "valueQuantity is a list; FHIR R4 has an object"),
    ({"category": ["laboratory"]}, "category is a list; FHIR R4 has a list of objects"),
    ({"valueQuantity": None, "valueString": "\ud800"}, "valueString holds half of a character"),
    ({"code": None}, "code is missing"),
    ({"medication": {"concept": {"text": "Aspirin"}}}, "medication is an element of FHIR R5"),
]


@pytest.mark.parametrize(("change", "rule"), WRONG, ids=[rule for _, rule in WRONG])
def test_a_wrong_element_is_refused_with_file_line_and_rule(tmp_path, change, rule):
    source = write_export(tmp_path / "export", *WHOLE, lab(**change))
    with pytest.raises(SourceError) as caught:
        import_snapshot(source, tmp_path / "home", format="fhir", mapping="fhir")
    assert "Observation.000.ndjson: line 2: " in str(caught.value)
    assert rule in str(caught.value)
    assert list((tmp_path / "home" / "snapshots").iterdir()) == []


LINES = [
    ('{"resourceType": "Observation", ', "line 2, column 33: is not JSON"),
    ("[1, 2]", "line 2: is not a JSON object"),
    ("[" * 5_000 + "]" * 5_000, "line 2: is"),
    ('{"resourceType": "Observation", "x": ' + "[" * 5_000 + "]" * 5_000 + "}", "line 2: "),
    ('{"resourceType": "Observation", "value": NaN}', "line 2: holds a number that JSON does not allow"),
    (
        '{"resourceType": "Observation", "value": ' + "9" * 5_000 + "}",
        "line 2: holds a number that JSON does not allow",
    ),
    ('{"resourceType": "Patient", "id": "p2"}', "line 2: is no Observation, as the lines before it"),
    (b'{"resourceType": "Observation", "note": "\xff"}', "line 2, byte 42: is not UTF-8"),
]


@pytest.mark.parametrize(("line", "rule"), LINES, ids=[str(i) for i in range(len(LINES))])
def test_a_broken_line_is_refused_with_file_line_and_column(tmp_path, line, rule):
    path = write_export(tmp_path, *WHOLE) / "Observation.000.ndjson"
    with path.open("ab") as file:
        file.write(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(SourceError) as caught:
        build_cohort(tmp_path, format="fhir")
    assert "Observation.000.ndjson: " in str(caught.value)
    assert rule in str(caught.value)


@pytest.mark.parametrize(
    ("resources", "rule"),
    [
        ([encounter(), lab()], "holds no Patient resource"),
        ([patient(id=None)], "id is missing"),
        ([*WHOLE, order(medicationCodeableConcept=None)], "are both missing or empty"),
        (
            [*WHOLE, order(medicationCodeableConcept=None, medicationReference={"reference": "Medication/9"})],
            "refers to a Medi",
        ),
        ([patient(), {"resourceType": "Medication", "id": "m"}], "has neither code, ingredient nor identifier"),
        (
            [
                patient(identifier=[{"system": "s", "value": "1"}]),
                patient("p2", identifier=[{"system": "s", "value": "1"}]),
            ],
            "has an id or identifier that another Patient has as well",
        ),
    ],
)
def test_an_export_that_does_not_hold_together_is_refused(tmp_path, resources, rule):
    source = write_export(tmp_path, *resources)
    with pytest.raises(SourceError, match=rule):
        build_cohort(source, format="fhir", mapping="fhir")


def test_a_cut_archive_and_an_unknown_first_line_are_refused(tmp_path):
    packed = write_export(tmp_path / "a", *WHOLE, packed=True) / "MimicObservation.ndjson.gz"
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(SourceError, match=r"MimicObservation.ndjson.gz: cannot be read after line"):
        build_cohort(tmp_path / "a", format="fhir")
    (write_export(tmp_path / "b", *WHOLE) / "extra.ndjson").write_text(json.dumps({"id": 1}))
    with pytest.raises(SourceError, match=r"extra.ndjson: line 1 has no resourceType"):
        build_cohort(tmp_path / "b", format="fhir")


def test_the_command_line_imports_an_export_and_refuses_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    good = write_export(tmp_path / "good", *WHOLE)
    assert main(["import", str(good), "--home", str(tmp_path / "home")]) == 0
    bad = write_export(tmp_path / "bad", *WHOLE, lab(subject=None))
    assert main(["import", str(bad), "--home", str(tmp_path / "home")]) != 0
    err = capsys.readouterr().err
    assert "Observation.000.ndjson: line 2: subject is missing" in err
    assert "Traceback" not in err


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just([]), st.just({}), st.just([1])
)
RESOURCES = [
    *WHOLE,
    order(dosageInstruction=[{"timing": {"repeat": {"boundsPeriod": {"start": "2026-01-01", "end": "2026-01-02"}}}}]),
    lab(component=[{"code": coded("8480-6"), "valueQuantity": {"value": 1}}], referenceRange=[{"low": {"value": 1}}]),
    lab(resourceType="Condition", verificationStatus=coded("confirmed"), recordedDate="2026-01-01"),
    {"resourceType": "Medication", "id": "m", "ingredient": [{"itemCodeableConcept": coded("x")}]},
    {"resourceType": "Location", "id": "l", "name": "East", "identifier": [{"system": "s", "value": "v"}]},
]


def places(element, path=()):
    """Every place inside a resource."""
    inside = element.items() if isinstance(element, dict) else enumerate(element) if isinstance(element, list) else ()
    for key, part in inside:
        yield (*path, key)
        yield from places(part, (*path, key))


def outcome(folder):
    """How many rows an export gives, or the words in which it is refused."""
    try:
        return sum(map(len, fhir.read(folder, mapping()).chunks)), ""
    except SourceError as error:
        return 0, str(error)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_stands_in_a_resource_is_read_or_refused_in_words(tmp_path_factory, data):
    resources = json.loads(json.dumps(RESOURCES))
    chosen = data.draw(st.integers(0, len(resources) - 1))
    path = data.draw(st.sampled_from([each for each in places(resources[chosen]) if each != ("resourceType",)]))
    element = resources[chosen]
    for key in path[:-1]:
        element = element[key]
    element[path[-1]] = data.draw(ODD)
    n_rows, error = outcome(write_export(tmp_path_factory.mktemp("fuzzed"), *resources))
    assert n_rows >= len(WHOLE) or ".ndjson" in error
