"""Shelves on disk: rows wait in files of a folder that is thrown away afterwards."""

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from core.errors import SourceError

_WRITE = pa.ipc.IpcWriteOptions(compression="lz4")


class DiskShelf:
    """A shelf whose parts are files in Arrow's stream format.

    Parameters
    ----------
    folder : Path
        Exists; the files of several shelves in it begin with the name of each.
    name : str
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._writers: dict[int, pa.RecordBatchStreamWriter] = {}

    def _path(self, part: int) -> Path:
        return self._folder / f"{self._name}-{part}.arrow"

    def put(self, part: int, rows: pd.DataFrame) -> None:
        """Add rows to a part.

        Raises
        ------
        SourceError
            When the disk is full or the folder cannot be written.
        """
        batch = pa.RecordBatch.from_arrays(
            [pa.array(rows[name].to_numpy()) for name in rows.columns], names=list(rows.columns)
        )
        try:
            if part not in self._writers:
                self._writers[part] = pa.ipc.new_stream(str(self._path(part)), batch.schema, options=_WRITE)
            self._writers[part].write_batch(batch)
        except OSError as error:
            raise _cannot_write(self._folder, error) from None

    def read(self, part: int, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Everything that was put into a part, in that order; nothing can be put into it afterwards."""
        self._close(part)
        path = self._path(part)
        if not path.exists():
            return pd.DataFrame()
        with pa.memory_map(str(path)) as file:
            included = None
            if columns is not None:
                names = pa.ipc.open_stream(file).schema.names
                included = sorted(names.index(name) for name in columns)
                file.seek(0)
            options = pa.ipc.IpcReadOptions(included_fields=included, use_threads=False)
            table = pa.ipc.open_stream(file, options=options).read_all()
            return pd.DataFrame({name: table.column(name).to_numpy() for name in table.schema.names})

    def _close(self, part: int) -> None:
        writer = self._writers.pop(part, None)
        if writer is not None:
            try:
                writer.close()
            except OSError as error:
                raise _cannot_write(self._folder, error) from None

    def drop(self, part: int) -> None:
        """Forget a part."""
        self._close(part)
        self._path(part).unlink(missing_ok=True)


def _cannot_write(folder: Path, error: OSError) -> SourceError:
    reason = error.strerror or os.strerror(error.errno or 0)
    return SourceError(f"{folder}: cannot be written ({reason}); nothing was kept. Make room, or choose another home.")
