"""Where a site is found: options before environment before defaults, and clear words when it is not there."""

from pathlib import Path

import pytest

from alertreview.settings import default_home, load_settings
from core.errors import SettingsError


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ALERTREVIEW_HOME", "ALERTREVIEW_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_the_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALERTREVIEW_HOME", str(tmp_path / "other"))
    assert load_settings(tmp_path).home == tmp_path


def test_the_environment_wins_over_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALERTREVIEW_HOME", str(tmp_path))
    monkeypatch.setenv("ALERTREVIEW_DATABASE", "sqlite:///elsewhere.db")
    settings = load_settings()
    assert (settings.home, settings.database_url) == (tmp_path, "sqlite:///elsewhere.db")


def test_the_default_is_made_on_demand_for_its_owner_alone(tmp_path: Path) -> None:
    home = load_settings(create=True).home
    assert home == default_home() == tmp_path / "data" / "alertreview"
    assert home.stat().st_mode & 0o077 == 0


def test_the_database_is_a_file_in_the_home(tmp_path: Path) -> None:
    assert load_settings(tmp_path).database_url == f"sqlite:///{tmp_path / 'alertreview.db'}"


def test_a_home_that_is_not_there_is_named_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no home at .*nowhere.*alertreview init"):
        load_settings(tmp_path / "nowhere")


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="is a file; a folder is needed"):
        load_settings(tmp_path / "file", create=True)


def test_a_home_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be created"):
        load_settings(tmp_path / "file" / "home", create=True)
