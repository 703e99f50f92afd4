"""An addition is read with the mapping of the import that it is added to, whatever has become of the preset since."""

import pytest
import yaml

from alertreview.cli.main import main
from alertreview.files import preset_paths
from alertreview.records import import_site, importing
from core.events.mapping import load_mapping

HEAD = "patient,time,code,value\n"
DAY = "{0},2026-01-0{1} 09:00,LAB//Potassium//mmol/L,4.1\n{0},2026-01-0{1} 12:00,MEDICATION//START//Heparin,\n"
STAYS = "".join(
    f"{who},2026-01-01 07:00,ADMISSION,\n{who},2026-01-06 15:00,DISCHARGE,\n"
    + "".join(DAY.format(who, i) for i in (1, 2, 3))
    for who in "ABC"
)


def changed(path, **keys):
    """Write the preset csv with other keys."""
    content = yaml.safe_load(preset_paths()["csv"].read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**content, **keys}, sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture
def site(tmp_path):
    source = tmp_path / "all.csv"
    source.write_text(HEAD + STAYS, encoding="utf-8")

    def run(*arguments):
        return main(["import", str(source), "--home", str(tmp_path / "home"), *map(str, arguments)])

    assert run() == 0
    return run


@pytest.mark.parametrize("keys", [{"timezone": "America/New_York"}, {"keep_case": True}, {"rules": "reversed"}])
def test_a_preset_that_changed_reads_an_addition_as_it_read_the_import(site, tmp_path, monkeypatch, capsys, keys):
    """The same records again are known already: nothing is there twice."""
    if keys == {"rules": "reversed"}:
        keys = {"rules": list(reversed(yaml.safe_load(preset_paths()["csv"].read_text(encoding="utf-8"))["rules"]))}
    new = changed(tmp_path / "csv.yaml", **keys)
    for module in (import_site, importing):
        monkeypatch.setattr(module, "preset_paths", lambda: {**preset_paths(), "csv": new})
    capsys.readouterr()
    assert site("--add") == 0
    told = capsys.readouterr().out
    assert "These records were read as the last import was" in told
    assert next(iter(keys)) in told
    assert "overlapping" not in told
    assert site("--add", "--mapping", new) == 2
    refused = capsys.readouterr().err
    assert f"now says something else under {next(iter(keys))}" in refused
    assert "Leave out --mapping" in refused


def test_a_mapping_of_one_s_own_need_not_be_named_again_and_may_grow(site, tmp_path, capsys):
    own = changed(tmp_path / "own.yaml", name="our-ward")
    assert site("--mapping", own) == 0
    assert site("--add") == 0
    rules = yaml.safe_load(own.read_text(encoding="utf-8"))["rules"]
    more = [*rules, {"code": "NEW//(?P<item>.+)", "kind": "LAB_RESULT"}]
    assert site("--add", "--mapping", changed(own, name="our-ward", rules=more, min_positive=2)) == 0
    capsys.readouterr()
    assert site("--add", "--mapping", changed(own, name="our-ward", rules=more[1:])) == 2
    assert "under rules" in capsys.readouterr().err


def test_what_rules_all_events_may_change(tmp_path):
    plain = load_mapping(preset_paths()["csv"])
    for keys in ({"min_positive": 3}, {"names": {"x": "X"}}, {"ask_about": "everything"}):
        assert load_mapping(changed(tmp_path / "a.yaml", **keys)).changed_from(plain) == ()
