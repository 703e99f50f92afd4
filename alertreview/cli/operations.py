"""Commands for whoever looks after a site: backups, the schema, the audit trail, and a look over everything."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from alertreview.cli.options import COUNT, EXIT_UNEXPECTED, FilePath, result_format, with_application, with_settings
from alertreview.cli.tables import show, tell, tell_done, write_out
from alertreview.settings import Settings, now
from core.number_texts import counted

if TYPE_CHECKING:
    from alertreview.application import Application
    from alertreview.operations.backup import VerifiedBackup
    from db.database import Database

_FOLDER = FilePath(path_type=Path)


@click.group()
def backup() -> None:
    """Create, verify and restore backups of the whole site."""


@backup.command()
@click.option("--to", type=_FOLDER, metavar="DIR", help="Folder of the backups (default: 'backups' in the home).")
@click.option("--keep", type=COUNT, metavar="N", help="Remove the oldest verified backups beyond N.")
@click.option(
    "--scratch-database", metavar="URL", help="Empty PostgreSQL database to try the backup in (default: a new one)."
)
@result_format
@with_settings()
def create(
    settings: Settings, to: Path | None, keep: int | None, scratch_database: str | None, output_format: str
) -> None:
    """Copy database and imports while the site is in use, and try the copy; only then it counts."""
    from alertreview.operations.backup import Backups

    verified = Backups(settings, now).create(to, keep=keep, scratch_url=scratch_database)
    _show_backup(verified, [f"Backup made and verified: {verified.folder}"], output_format)


@backup.command()
@click.argument("folder", type=_FOLDER)
@click.option("--scratch", type=_FOLDER, metavar="DIR", help="Where to try it (default: beside the backup).")
@click.option("--scratch-database", metavar="URL", help="Empty PostgreSQL database to try it in (default: a new one).")
@result_format
@with_settings(must_exist=False)
def verify(
    settings: Settings, folder: Path, scratch: Path | None, scratch_database: str | None, output_format: str
) -> None:
    """Restore a backup into a scratch place, check every row and file, and compute its reports."""
    from alertreview.operations.backup import verify_backup

    verified = verify_backup(folder, settings.database_url, scratch_url=scratch_database, place=scratch)
    reports = [f"Report of study {slug}: {digest}" for slug, digest in sorted(verified.reports.items())]
    _show_backup(verified, [*reports, f"Verified: {folder}"], output_format)


@backup.command()
@click.argument("folder", type=_FOLDER)
@result_format
@with_settings(must_exist=False)
def restore(settings: Settings, folder: Path, output_format: str) -> None:
    """Restore a site from a backup into an empty home and an empty database."""
    from alertreview.operations.backup import Backups

    manifest = Backups(settings, now).restore(folder)
    n_rows, head = manifest.contents.n_audit_events, manifest.contents.audit_head
    sentences = [
        f"Restored as it was at {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC: {settings.home}",
        "Everybody has to sign in again.",
        _head_line(n_rows, head),
    ]
    result = {
        "home": str(settings.home),
        "as_of": manifest.made_at.isoformat(),
        "audit_rows": n_rows,
        "audit_head": head,
    }
    tell_done(result, sentences, output_format)


@click.command()
@result_format
@with_settings()
def doctor(settings: Settings, output_format: str) -> None:
    """Check the site and name the next step for each finding; exits with 1 on a problem, not on a warning."""
    from alertreview.operations.doctor import Level, examine_site

    findings = []
    for finding in examine_site(settings, now()):
        if output_format == "text":
            click.echo(f"{finding.level.value:8} {finding.subject}: {finding.text}")
        findings.append(finding)
    n_problems = sum(finding.level is Level.PROBLEM for finding in findings)
    n_warnings = sum(finding.level is Level.WARNING for finding in findings)
    result = {
        "problems": n_problems,
        "warnings": n_warnings,
        "findings": [{"level": one.level.value, "subject": one.subject, "text": one.text} for one in findings],
    }
    show(result, [f"{counted(n_problems, 'problem')}, {counted(n_warnings, 'warning')}."], output_format)
    if n_problems:
        raise click.exceptions.Exit(EXIT_UNEXPECTED)


@click.command()
@click.option(
    "--out",
    type=FilePath(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Write to FILE, atomically (default, and -: standard output).",
)
@with_application
def metrics(application: "Application", out: Path | None) -> None:
    """Print figures of the site for Prometheus; with --out for the text file folder of its node exporter.

    They say how much there is and how old it is, and nothing of a patient.
    """
    from alertreview.operations.metrics import metrics_text

    write_out(out, metrics_text(application))


@click.command()
@click.option("--dry-run", is_flag=True, help="Show whose work waits, and send nothing.")
@result_format
@with_application
def digest(application: "Application", dry_run: bool, output_format: str) -> None:
    """Mail everybody with open work how much there is and where, and post the totals to a webhook; once a day.

    Numbers and links only, nothing of a patient. Made for cron: after a failure the same command sends the rest.
    """
    if dry_run:
        waiting = application.digests.open()
        people = [{"name": one.name, "address": one.address or None, "open": one.n_cases} for one in waiting]
        lines = [f"{one.name} ({one.address or 'no address'}): {one.n_cases} open" for one in waiting]
        show({"people": people}, lines or ["Nobody with an account has open work."], output_format)
        return
    outcome = application.digests.send()
    for one in outcome.without_address:
        click.echo(
            f"{one.name} has no mail address. Add the login to [digest.addresses] in alertreview.toml.", err=True
        )
    result = {
        "sent": len(outcome.sent),
        "sent_before": len(outcome.sent_before),
        "without_address": [one.name for one in outcome.without_address],
        "studies_posted": outcome.n_posted,
    }
    said = [f"Sent: {len(outcome.sent)}. Sent before on this day: {len(outcome.sent_before)}."]
    if outcome.n_posted:
        said.append(f"Posted to the webhook: {counted(outcome.n_posted, 'study', 'studies')}.")
    tell_done(result, said, output_format)


@click.group()
def db() -> None:
    """Manage the schema of the database: status, upgrade, downgrade, and rights on PostgreSQL."""


@db.command()
@result_format
@with_settings()
def status(settings: Settings, output_format: str) -> None:
    """Show which schema the database has and which one this version needs; changes nothing."""
    from db.database import Database
    from db.schema import head

    with Database(settings.database_url) as site:
        state = site.state()
        result: dict[str, Any] = {"database": site.name, "schema": state.revision, "needed": head()}
        if output_format == "text":
            click.echo(f"Database: {site.name}")
            click.echo(f"Schema: {state.revision or 'none'}, this version needs {head()}")
        site.check()
        with site.read() as uow:
            result |= {"audit_rows": uow.audit.count(), "audit_head": uow.audit.head()}
    show(result, [_head_line(result["audit_rows"], result["audit_head"])], output_format)


@db.command()
@click.option("--no-backup", is_flag=True, help="Skip the copy, because there is one already.")
@result_format
@with_settings()
def upgrade(settings: Settings, no_backup: bool, output_format: str) -> None:
    """Upgrade the database to this version's schema; an older one is copied first."""
    from alertreview.operations.upgrade import upgrade_site
    from db.database import Database

    with Database(settings.database_url) as site:
        copy = upgrade_site(settings, site, now(), backup=not no_backup)
        _tell_schema(site, copy, [], output_format)


@db.command()
@click.argument("revision")
@click.option("--discard", is_flag=True, help="Downgrade even if rows or values are lost.")
@result_format
@with_settings()
def downgrade(settings: Settings, revision: str, discard: bool, output_format: str) -> None:
    """Downgrade the schema to REVISION, for an earlier version; refused if anything would be lost."""
    from alertreview.operations.upgrade import downgrade_site
    from db.database import Database

    with Database(settings.database_url) as site:
        copy, lost = downgrade_site(settings, site, revision, now(), discard=discard)
        _tell_schema(site, copy, lost, output_format)


def _tell_schema(site: "Database", copy: Path | None, lost: Sequence[str], output_format: str) -> None:
    schema = site.state().revision
    result = {"schema": schema, "copy": None if copy is None else str(copy), "lost": list(lost)}
    copied = [] if copy is None else [f"Copied first: {copy}"]
    tell_done(result, [*copied, *(f"Lost: {thing}" for thing in lost), f"Schema {schema}."], output_format)


@db.command()
@click.argument("role")
@result_format
@with_settings()
def grant(settings: Settings, role: str, output_format: str) -> None:
    """Grant ROLE on a PostgreSQL server the rights the program needs, without changes to the audit trail."""
    from db.database import Database
    from db.maintenance.roles import grant as grant_rights

    with Database(settings.database_url) as site:
        site.check()
        granted = grant_rights(site, role)
    tell_done(granted, (f"{table}: {rights}" for table, rights in granted.items()), output_format)


@click.group()
def audit() -> None:
    """Check the audit trail, or write it to a file."""


@audit.command(name="verify")
@click.option("--head", metavar="HASH", help="A head printed earlier; also detects a truncated tail.")
@result_format
@with_settings()
def verify_trail(settings: Settings, head: str | None, output_format: str) -> None:
    """Check every row against the one before and every sealed record against its seal, with the heads of backups."""
    from alertreview.operations.backup import list_backups
    from alertreview.operations.heads import known_heads
    from db.database import Database

    with Database(settings.database_url) as site:
        site.check()
        with site.read() as uow:
            report = uow.audit.require_whole(head, known_heads(settings, list_backups(settings.backups)))
    result = {"intact": True, "audit_rows": report.n_events, "audit_head": report.head}
    show(result, ["The audit trail is intact.", _head_line(report.n_events, report.head)], output_format)


@audit.command(name="export")
@click.argument("file", type=_FOLDER)
@with_settings()
def export_trail(settings: Settings, file: Path) -> None:
    """Write the audit trail to FILE (.jsonl or .csv), after verifying it."""
    from alertreview.access.audit_trail import AuditTrailService
    from db.database import Database

    with Database(settings.database_url) as site:
        site.check()
        report = AuditTrailService(site, now).export(file)
    tell(f"Written: {file}")
    tell(_head_line(report.n_events, report.head))


def _head_line(n_events: int, head: str) -> str:
    return f"Audit trail: {counted(n_events, 'row')}, head {head}"


def _show_backup(verified: "VerifiedBackup", lines: list[str], output_format: str) -> None:
    contents = verified.manifest.contents
    result = {
        "folder": str(verified.folder),
        "made_at": verified.manifest.made_at.isoformat(timespec="seconds"),
        "reports": verified.reports,
        "audit_rows": contents.n_audit_events,
        "audit_head": contents.audit_head,
    }
    show(result, [*lines, _head_line(contents.n_audit_events, contents.audit_head)], output_format)


COMMANDS = (backup, doctor, metrics, digest, db, audit)
