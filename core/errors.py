"""The one tree of errors: each names the thing, the rule, the value and the next step, in a data manager's words."""

import sys


class AlertReviewError(Exception):
    """Base of every error that a person may read; its text is shown as it is, without a traceback.

    Attributes
    ----------
    exit_code : int
        What the command line returns when this error ends a command.
    """

    exit_code = 2


class InvalidInputError(AlertReviewError, ValueError):
    """A value from outside breaks a rule: a file, a column, an array, an option."""


class SourceError(InvalidInputError):
    """A health record source is not what it claims to be; names file, expectation, finding and next step."""


class MappingError(InvalidInputError):
    """A site mapping is malformed, or recognises nothing in the source."""


class InvalidGraphError(InvalidInputError):
    """A similarity matrix is not square, not symmetric, or holds negative or non-finite weights."""


class TaskNotScorableError(AlertReviewError):
    """A task cannot be scored (too few decisions of one kind, no usable feature); the run goes on without it."""


class SettingsError(AlertReviewError):
    """A setting, home folder or environment variable cannot be used."""


class MissingPackageError(SettingsError):
    """A package that the program needs is not installed beside it.

    Parameters
    ----------
    name : str
        Of the module that cannot be imported.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The package '{name.partition('.')[0]}' is missing from the environment of {sys.executable}. "
            "Install what requirements/app.txt pins, or alertreview[app], or start alertreview from the environment "
            "where it was installed."
        )


class StoreError(AlertReviewError):
    """The database cannot do what was asked."""


class ForeignDatabaseError(StoreError):
    """The database belongs to another program, or to a newer version of this one."""


class DatabaseUnavailableError(StoreError):
    """The database is busy, read-only, full, damaged or gone; nothing of the attempted change was kept."""


class NotFoundError(StoreError):
    """What a link or an option names does not exist, or is not this person's to see."""


class ConflictError(StoreError):
    """Somebody changed the same thing meanwhile; the caller shows both and asks."""


class RefusedError(StoreError):
    """The rules do not allow this act now: no slot, study locked, no answer chosen, not this person's role."""


class SignedOutError(RefusedError):
    """The session has ended or never was one; nothing of the attempted act was kept."""


class ProviderUnavailableError(AlertReviewError):
    """The identity provider, or the mail server, does not answer."""


class ClusterError(AlertReviewError):
    """The cluster cannot be reached, or lost what it was working on."""


class AlertReviewWarning(UserWarning):
    """Base of every warning: the answer stands, but somebody should know."""


class NearlyDeadGraphWarning(AlertReviewWarning):
    """Most similarities are so small that soft labels hardly spread."""


class FewerNodesThanNeighboursWarning(AlertReviewWarning):
    """The graph has fewer nodes than the neighbours asked for; every node is a neighbour of every other."""
