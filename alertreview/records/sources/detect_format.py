"""Which format a source of records is in, told from its files, for whoever does not name one."""

from pathlib import Path

from alertreview.records.sources.omop_tables import table_of
from alertreview.records.sources.text_tables import text_files


def detect_format(source: Path | str) -> str:
    """Return the format of a source from its type and file names.

    Parameters
    ----------
    source : Path or str
        A file, a folder, a zip archive, or the URL of a database.

    Returns
    -------
    {"meds", "omop", "csv"}
        A database is an OMOP CDM; so are tables of which one is called ``person``. A folder with parquet files is a
        MEDS data set. Any other text table is a long CSV file. MEDS where nothing can be told: its reader then says
        what it misses.

    Raises
    ------
    SourceError
        When there is no such file or folder, or an archive cannot be read.
    """
    if isinstance(source, str):
        return "omop"
    if source.is_dir() and next((source / "data").rglob("*.parquet"), None) is not None:
        return "meds"
    tables = [table_of(file) for file in text_files(source)]
    if "person" in tables:
        return "omop"
    return "csv" if tables else "meds"
