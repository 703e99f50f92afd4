"""What commands share: the options that name a site, and one line instead of a traceback for the unforeseen."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from alertreview.settings import DATABASE_VARIABLE, HOME_VARIABLE, default_home, load_settings
from core.errors import AlertReviewError, MissingPackageError, SettingsError

EXIT_UNEXPECTED = 1


SEED = click.IntRange(0, 2**32 - 1)
COUNT = click.IntRange(1, 2**31 - 1)


class FilePath(click.Path):
    """A file or folder; an empty name is none, and ``-`` is standard output where `allow_dash` says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or refuse an empty name and a ``-`` that would become a file."""
        if value == "":
            self.fail("The name of the file or folder is empty.", param, ctx)
        if str(value) == "-" and not self.allow_dash:
            self.fail(
                "'-' means standard output or input, which is not possible here. Name a file or folder.", param, ctx
            )
        return super().convert(value, param, ctx)


def out_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for ``--out``: a file, or standard output."""
    path = FilePath(path_type=Path, allow_dash=True)
    return click.option("--out", type=path, help=f"{what} (default, and -: standard output).")


class UnexpectedError(AlertReviewError):
    """Something that no rule foresaw; where it happened is in the log of the home."""

    exit_code = EXIT_UNEXPECTED


def site_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with ``--home``, ``--database``, their environment variables, and a log of unforeseen errors."""
    command = log_the_unforeseen(command)
    for decorate in (
        click.option(
            "--database", metavar="URL", envvar=DATABASE_VARIABLE, help="SQLAlchemy URL; by default a file in the home."
        ),
        click.option(
            "--home",
            metavar="DIR",
            envvar=HOME_VARIABLE,
            type=FilePath(path_type=Path),
            help="Folder of the site, with its imports and its database.",
        ),
    ):
        command = decorate(command)
    return command


def with_settings(
    *, create: bool = False, must_exist: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for a command with the options of `site_options` that gets the site's settings in their place.

    They are read as `load_settings` says.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def reading(*, home: Path | None, database: str | None, **options: Any) -> Any:
            return command(load_settings(home, database, create=create, must_exist=must_exist), **options)

        return site_options(reading)

    return decorate


def with_application(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the options of `site_options` that gets the site, opened, in their place."""

    @functools.wraps(command)
    def opening(*, home: Path | None, database: str | None, **options: Any) -> Any:
        from alertreview.application import open_application

        with open_application(home, database) as application:
            return command(application, **options)

    return site_options(opening)


def list_format(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with ``--format``: a table for people, CSV and JSON for scripts."""
    return click.option(
        "--format", "output_format", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True
    )(command)


def result_format(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with ``--format``: lines for people, a JSON object for scripts."""
    return click.option(
        "--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True
    )(command)


def file_format(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for ``--format``: the format that the name of ``--out`` ends in, or the first."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def writing(*, output_format: str | None, out: Path | None, **options: Any) -> Any:
            named = out.suffix[1:].lower() if out is not None else ""
            return command(
                output_format=output_format or (named if named in formats else formats[0]), out=out, **options
            )

        text = f"Format of the file (default: what its name ends in, else {formats[0]})."
        return click.option("--format", "output_format", type=click.Choice(formats), help=text)(writing)

    return decorate


class _FormatName(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.2
    """Name of a format of records; the table of formats is imported only when it is needed, because it is slow."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from alertreview.records.sources.formats import FORMATS

        return str(click.Choice(list(FORMATS)).convert(value, param, ctx))

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        from alertreview.records.sources.formats import FORMATS

        return f"[{'|'.join(FORMATS)}]"


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with SOURCE, a path or a URL, ``--schema``, and ``--format``: told from SOURCE if left out."""

    @log_the_unforeseen
    @functools.wraps(command)
    def reading(*, source: str, source_format: str | None, **options: Any) -> Any:
        from alertreview.records.sources.formats import detect_format

        if not source:
            raise click.UsageError("SOURCE is empty. Name a folder, a file or a URL.")
        place = source if "://" in source else Path(source)
        return command(source=place, source_format=source_format or detect_format(place), **options)

    for decorate in (
        click.option("--schema", help="Schema of an OMOP CDM that is read from a database."),
        click.option(
            "--format",
            "source_format",
            type=_FormatName(),
            help="Format of SOURCE (default: detected from its files).",
        ),
        click.argument("source"),
    ):
        reading = decorate(reading)
    return reading


def log_the_unforeseen(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn an unforeseen error into one line; its place is logged, its text (patient data?) is not."""

    @functools.wraps(command)
    def guarded(*args: Any, **options: Any) -> Any:
        try:
            return _stopping_when_told(command, *args, **options)
        except (AlertReviewError, click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except ModuleNotFoundError as error:
            raise MissingPackageError(error.name or str(error)) from error
        except OSError as error:
            place = f": {error.filename}" if error.filename else ""
            raise SettingsError(
                f"{error.strerror or 'The system refused'}{place}. Nothing half-done is visible."
            ) from error
        except Exception as error:
            from alertreview.cli.console import write_technical_log

            log_file = Path(options.get("home") or default_home()) / "alertreview.log"
            sentence = f"an unexpected error ({type(error).__name__}); nothing half-done is visible"
            try:
                write_technical_log(log_file, error)
            except OSError:
                raise UnexpectedError(f"{sentence}.") from error
            raise UnexpectedError(f"{sentence}. Where it happened: {log_file}") from error

    return guarded


def _stopping_when_told(command: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Run a command; an order to stop is raised as such, whatever error compiled code or a clean-up made of it.

    A signal that arrives while numba unpacks the arguments of a compiled function comes out as a SystemError.
    """
    try:
        return command(*args, **options)
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, (KeyboardInterrupt, SystemExit)):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        raise
