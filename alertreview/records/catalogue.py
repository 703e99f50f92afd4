"""The task catalogue of an import: its tasks and panels, and which of them are asked about."""

from collections.abc import Sequence
from dataclasses import dataclass

from alertreview.records.snapshots import Snapshot, open_import
from alertreview.settings import Settings
from core.cohort.catalogue import members_of
from core.errors import NotFoundError
from core.kinds import Kind
from db.database import Database

WHERE = "The task catalogue says what is asked about (alertreview tasks list)."


@dataclass(frozen=True)
class CatalogueEntry:
    """A task of an import.

    Parameters
    ----------
    column : int
        Its column in the decisions of the snapshot.
    task_key, name, order_group : str
    kind : Kind
    n_positive : int
        Instances with the decision.
    n_instances : int
    members : tuple of str
        Task keys of what a panel brings, the commonest first; empty for a single task.
    item : str
        Name of what the features are of: for a panel, its commonest member.
    off : str
        Why it is not asked about, as a sentence; empty if it is.
    """

    column: int
    task_key: str
    name: str
    kind: Kind
    order_group: str
    n_positive: int
    n_instances: int
    members: tuple[str, ...]
    item: str
    off: str

    @property
    def rate(self) -> float:
        """Share of instances with the decision, in [0, 1]."""
        return self.n_positive / self.n_instances

    @property
    def left_out(self) -> str:
        """Why a scoring leaves it out; empty if it does not."""
        return f"Task '{self.name}' is not asked about. {self.off} {WHERE}" if self.off else ""


def task_catalogue(snapshot: Snapshot) -> tuple[CatalogueEntry, ...]:
    """Return the tasks of an import in column order, as its catalogue has them."""
    rows = snapshot.tasks.to_dict("records")
    names = {str(row["task_key"]): str(row["name"]) for row in rows}
    return tuple(
        CatalogueEntry(
            column=column,
            task_key=str(row["task_key"]),
            name=str(row["name"]),
            kind=Kind(row["kind"]),
            order_group=str(row["order_group"]),
            n_positive=int(row["n_positive"]),
            n_instances=len(snapshot.instances),
            members=(members := members_of(str(row.get("members", "")))),
            item=names[members[0]] if members else str(row["name"]),
            off=str(row.get("off", "")),
        )
        for column, row in enumerate(rows)
    )


def current_catalogue(settings: Settings, database: Database) -> tuple[CatalogueEntry, ...]:
    """Return the catalogue of the last import.

    Raises
    ------
    NotFoundError
        If nothing was imported yet.
    """
    with database.read() as uow:
        stored = uow.snapshots.latest()
        if stored is None:
            raise NotFoundError("There are no tasks yet: import health records first (alertreview import SOURCE).")
        return task_catalogue(open_import(settings, uow, stored.folder))


def reasons_left_out(entries: Sequence[CatalogueEntry]) -> dict[int, str]:
    """Return why tasks are not asked about, by column."""
    return {entry.column: entry.left_out for entry in entries if entry.off}
