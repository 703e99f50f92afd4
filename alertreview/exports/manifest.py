"""The manifest of an export: what was written, from what, with checksums; and the check that nothing changed since."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from alertreview.exports.formats import ExportFormat, WrittenFile
from alertreview.files import parse_json
from core.errors import InvalidInputError

MANIFEST = "manifest.json"
MANIFEST_VERSION = 2


def write_manifest(
    folder: Path,
    files: Sequence[WrittenFile],
    study: Mapping[str, Any],
    *,
    created_at: datetime,
    origin: Mapping[str, str],
    report_hash: str,
) -> Path:
    """Write ``manifest.json``, last of all files: an export without it is not finished.

    `study` holds the settings from `alertreview.exports.study_rows.study_settings`; `origin` code version, data hash,
    run, rubric and guideline versions, head of the audit chain, and who exported; the content hash is of the report
    that these files give again.
    """
    if created_at.utcoffset() is None:
        raise InvalidInputError("The time of an export needs a zone. Give an aware datetime.")
    manifest: dict[str, Any] = {
        "manifest_version": MANIFEST_VERSION,
        "created_at": created_at.isoformat(),
        "origin": {key: origin[key] for key in sorted(origin)},
        "report_sha256": report_hash,
        "study": dict(study),
        "files": [
            {
                "name": file.path.relative_to(folder).as_posix(),
                "table": file.table,
                "format": file.format.value,
                "rows": file.n_rows,
                "bytes": file.n_bytes,
                "sha256": file.sha256,
            }
            for file in files
        ],
    }
    manifest["manifest_sha256"] = manifest_hash(manifest)
    path, part = folder / MANIFEST, folder / f".{MANIFEST}.part"
    part.write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def manifest_hash(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest without its own hash, in canonical JSON."""
    plain = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of an export; raise InvalidInputError if there is none, or it is not one of this program."""
    path = folder / MANIFEST
    try:
        manifest = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInputError(f"{folder} has no {MANIFEST}: no export, or an unfinished one.") from None
    except (OSError, ValueError):
        raise InvalidInputError(f"{path} cannot be read as JSON. Export again.") from None
    if not isinstance(manifest, dict) or manifest.get("manifest_version") != MANIFEST_VERSION:
        raise InvalidInputError(f"{path} is not a manifest of version {MANIFEST_VERSION}. Export again.")
    return manifest


def files_of(folder: Path, manifest: Mapping[str, Any], table: str) -> dict[ExportFormat, Path]:
    """Return the paths of a table's files by format."""
    return {ExportFormat(f["format"]): folder / f["name"] for f in manifest["files"] if f["table"] == table}


def changed_files(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Return the files of an export that are missing or changed."""
    changed = []
    for file in manifest["files"]:
        path = folder / file["name"]
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != file["sha256"]:
            changed.append(str(file["name"]))
    return changed
