"""Files that are nested more deeply than a parser can follow: a sentence that names the file, never a traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from alertreview.configuration import CONFIG_FILE, read_configuration
from alertreview.exports import manifest as of_export
from alertreview.exports.recompute import _jsonl
from alertreview.exports.schema import TableSchema
from alertreview.files import parse_json
from alertreview.operations import backup_manifest
from alertreview.records.snapshots import read_snapshot
from alertreview.records.sources.meds import _says_simulated
from core.errors import AlertReviewError

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.checklist("D1")
@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        (backup_manifest.MANIFEST, DEEP, lambda file: backup_manifest.read_manifest(file.parent)),
        (of_export.MANIFEST, DEEP, lambda file: of_export.read_manifest(file.parent)),
        ("labels.jsonl", DEEP, lambda file: list(_jsonl(file, TableSchema("labels", "", "", (), ())))),
        ("manifest.json", DEEP, lambda file: read_snapshot(file.parent)),
        ("dataset.json", DEEP, _says_simulated),
        (CONFIG_FILE, f"hosts = {DEEP}", lambda file: read_configuration(file.parent)),
    ],
)
def test_what_is_nested_too_deeply_is_refused_with_the_name_of_the_file(
    tmp_path: Path, name: str, text: str, read: Callable[[Path], object]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(AlertReviewError, match=rf"{tmp_path}|{name}") as refused:
        read(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_a_text_that_is_nested_too_deeply_is_no_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(DEEP)
