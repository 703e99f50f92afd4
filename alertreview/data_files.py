"""Where the files of data/ are: beside the packages in a checkout, inside alertreview/ in an installed wheel."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def data_folder() -> Path:
    """Folder with mapping presets and dictionaries.

    Returns
    -------
    Path
    """
    installed = _HERE / "data"
    return installed if installed.is_dir() else _HERE.parent / "data"


def preset_paths() -> dict[str, Path]:
    """Site mappings that come with the program, by name, in alphabetical order."""
    return {path.stem: path for path in sorted((data_folder() / "mappings").glob("*.yaml"))}
