"""Presets and dictionary are found in a checkout and in an installed wheel."""

from alertreview.files import data_folder, preset_paths


def test_presets_are_found_in_the_checkout():
    assert {"mimic-iv-meds", "omop", "csv", "simulated"} <= set(preset_paths())
    assert (data_folder() / "README.md").exists()


def test_an_installed_wheel_looks_inside_its_own_package(tmp_path, monkeypatch):
    (tmp_path / "data" / "mappings").mkdir(parents=True)
    (tmp_path / "data" / "mappings" / "mine.yaml").write_text("name: mine")
    monkeypatch.setattr("alertreview.files._HERE", tmp_path)
    assert data_folder() == tmp_path / "data"
    assert list(preset_paths()) == ["mine"]
