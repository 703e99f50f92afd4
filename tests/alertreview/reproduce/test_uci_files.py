"""Files of the UCI archive: read from a folder, else fetched and checked, else an error that says what to do."""

import urllib.error
import urllib.request
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from alertreview.reproduce import uci
from alertreview.reproduce.uci import UCI_FILES, UciFile, checked, fingerprint, parse, read_uci
from core.errors import InvalidInputError, SourceError

WINE, HOUSING, MPG = UCI_FILES
TEXTS = {
    WINE.name: '"acidity";"alcohol";"quality"\n7.4;9.4;5\n6.0;11;8\n7.0;10;3\n',
    HOUSING.name: " 0.1  18.0  24.0\n 0.2   0.0  50.0\n 0.3   1.0   5.0\n",
    MPG.name: '18.0  8  130.0\t"chevrolet ?"\n25.0  4  ?\t"ford pinto"\n40.0  4  60.0\t"honda"\n',
}


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> tuple[UciFile, ...]:
    files = tuple(replace(file, sha256=fingerprint(TEXTS[file.name])) for file in UCI_FILES)
    monkeypatch.setattr(uci, "UCI_FILES", files)
    return files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    for name, text in TEXTS.items():
        (data / name).write_text(text, encoding="utf-8")
    return data


def no_network(*_: object, **__: object) -> None:
    raise urllib.error.URLError("no network here")


def test_files_of_a_folder_are_read_and_nothing_is_fetched(
    small_files: tuple[UciFile, ...], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    wine, housing, mpg = read_uci(folder, tmp_path / "fetched")
    np.testing.assert_array_equal(wine.X, [[7.4, 9.4], [6.0, 11], [7.0, 10]])
    np.testing.assert_array_equal(wine.response, [5, 8, 3])
    np.testing.assert_array_equal(housing.response, [24, 50, 5])
    np.testing.assert_array_equal(mpg.response, [18, 40])
    np.testing.assert_array_equal(mpg.X, [[8, 130], [4, 60]])
    assert (wine.n_left_out, housing.n_left_out, mpg.n_left_out) == (0, 0, 1)


def test_missing_files_are_fetched_once_and_checked(
    small_files: tuple[UciFile, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def archive(address: str, timeout: int) -> BytesIO:
        asked.append(address)
        return BytesIO(TEXTS[address.rsplit("/", 1)[1]].encode())

    monkeypatch.setattr(urllib.request, "urlopen", archive)
    first = read_uci(None, tmp_path / "fetched")
    again = read_uci(None, tmp_path / "fetched")
    assert asked == [file.address for file in UCI_FILES]
    assert all(address.startswith("https://") for address in asked)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.X, other.X)


def test_a_file_that_cannot_be_fetched_is_named_with_its_address_and_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    for data in (None, tmp_path):
        with pytest.raises(SourceError) as refused:
            read_uci(data, tmp_path / "fetched")
        for part in (WINE.name, WINE.address, "no network here", "--data", HOUSING.name, MPG.name):
            assert part in str(refused.value)
    assert not (tmp_path / "fetched").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere is not a folder.*--data"):
        read_uci(tmp_path / "nowhere", tmp_path)


def test_another_content_is_refused_wherever_it_comes_from(
    small_files: tuple[UciFile, ...], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / HOUSING.name).write_text(TEXTS[HOUSING.name].replace("50.0", "51.0"), encoding="utf-8")
    with pytest.raises(SourceError, match=r"housing\.data is not the housing\.data .*SHA-256"):
        read_uci(folder, tmp_path)
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: BytesIO(b"<html>moved</html>"))
    with pytest.raises(SourceError, match=r"https://.*winequality-red\.csv is not"):
        read_uci(None, tmp_path / "fetched")
    assert not (tmp_path / "fetched" / WINE.name).exists()


def test_line_ends_and_trailing_blanks_make_no_other_file() -> None:
    text = TEXTS[HOUSING.name]
    assert fingerprint(text) == fingerprint(text.replace("\n", "  \r\n")) == fingerprint(text + "\n\n")
    assert fingerprint(text) != fingerprint(text.replace("0.2", "0.3"))
    assert checked(replace(HOUSING, sha256=fingerprint(text)), text.encode(), "x") == text


def test_words_among_the_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"housing\.data holds something that is not a number"):
        parse(HOUSING, "1.0 two 3.0\n")


@pytest.mark.real_data
def test_the_archives_files_have_the_stated_rows(real_data: Path, tmp_path: Path) -> None:
    found = read_uci(real_data / "uci", tmp_path)
    assert [data.X.shape for data in found] == [(1599, 11), (506, 13), (392, 7)]
    assert [data.n_left_out for data in found] == [0, 0, 6]
    assert [(data.response.min(), data.response.max()) for data in found] == [(3, 8), (5, 50), (9, 46.6)]
