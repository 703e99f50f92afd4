"""Commands about people: who may sign in, in which role and for which units."""

import getpass
import warnings
from typing import TYPE_CHECKING

import click

from alertreview.cli.options import COUNT, list_format, result_format, with_application
from alertreview.cli.tables import print_list, show, tell, tell_done
from alertreview.rights import role_words
from core.errors import RefusedError
from core.vocabulary import Role, SignInSource

if TYPE_CHECKING:
    from alertreview.application import Application

ROLES = click.Choice([role.value for role in Role])
ALL_UNITS = "all"
UNIT_HELP = "Unit whose patients the person may see; repeat for several (default: all units)."


@click.group()
def account() -> None:
    """Manage people who may sign in: create, reset, disable, list, role."""


@account.command()
@click.argument("name")
@click.option(
    "--role",
    "roles",
    required=True,
    multiple=True,
    type=ROLES,
    help="What the person may do; repeat for several roles.",
)
@click.option("--login", default="", help="What the person types to sign in (default: the name in small letters).")
@click.option("--unit", "units", multiple=True, help=UNIT_HELP)
@click.option(
    "--source",
    type=click.Choice([source.value for source in SignInSource]),
    default=SignInSource.LOCAL.value,
    show_default=True,
    help="Who vouches for the person: a password here, an identity provider, or a proxy.",
)
@result_format
@with_application
def create(
    application: "Application",
    name: str,
    roles: tuple[str, ...],
    login: str,
    units: tuple[str, ...],
    source: str,
    output_format: str,
) -> None:
    """Create an account for NAME and print a one-time code for the first sign-in.

    A person of that name without an account, a reader of a study say, keeps everything and gets one. The first
    account ends the demonstration of a simulated site: from then on everybody signs in.
    """
    first, *further = map(Role, roles)
    code = application.accounts.create(
        name, first, login=login, source=SignInSource(source), units=units or None, further_roles=further
    )
    person = application.accounts.find(name)
    if output_format == "json":
        show({"person": person.person_id, "login": person.login, "code": code or None}, (), output_format)
        return
    tell(f"Created: {person.name}, {role_words(person.roles)}, login '{person.login}'.")
    _say_code(code)


@account.command()
@click.argument("login")
@result_format
@with_application
def reset(application: "Application", login: str, output_format: str) -> None:
    """Print a new one-time code for LOGIN; the password is cleared and every session ends."""
    code = application.accounts.reset(application.accounts.find(login).person_id)
    if output_format == "json":
        show({"login": login, "code": code or None}, (), output_format)
        return
    _say_code(code)


@account.command()
@click.argument("login")
@click.option("--enable", is_flag=True, help="Allow the person to sign in again.")
@click.option("--reason", default="", help="For the audit trail.")
@result_format
@with_application
def disable(application: "Application", login: str, enable: bool, reason: str, output_format: str) -> None:
    """Deactivate LOGIN: every session ends at once. Judgments stay; nobody is ever deleted."""
    person = application.accounts.find(login)
    application.accounts.set_active(person.person_id, enable, reason=reason)
    said = f"{person.name} may {'sign in again' if enable else 'no longer sign in'}."
    tell_done({"person": person.person_id, "login": person.login, "active": enable}, [said], output_format)


@account.command()
@click.argument("login")
@click.argument("roles", nargs=-1, type=ROLES, metavar="[ROLE]...")
@click.option("--unit", "units", multiple=True, help=UNIT_HELP)
@click.option("--all-units", is_flag=True, help="Remove the limit to units.")
@click.option("--reason", default="", help="For the audit trail.")
@result_format
@with_application
def role(
    application: "Application",
    login: str,
    roles: tuple[str, ...],
    units: tuple[str, ...],
    all_units: bool,
    reason: str,
    output_format: str,
) -> None:
    """Change the roles or units of LOGIN; takes effect at the person's next action. Rights of several ROLEs add up."""
    if not roles and not units and not all_units:
        raise click.UsageError("Name a role, or units with --unit or --all-units.")
    if units and all_units:
        raise click.UsageError("--unit and --all-units are mutually exclusive.")
    person_id = application.accounts.find(login).person_id
    if roles:
        first, *further = map(Role, roles)
        application.accounts.set_role(person_id, first, further_roles=further, reason=reason)
    if units or all_units:
        application.accounts.set_units(person_id, units or None)
    person = application.accounts.find(login)
    limit = "all units" if person.units is None else ", ".join(person.units)
    result = {
        "person": person.person_id,
        "login": person.login,
        "roles": [one.value for one in Role if one in person.roles],
        "units": None if person.units is None else sorted(person.units),
    }
    tell_done(result, [f"{person.name}: {role_words(person.roles)}, {limit}."], output_format)


@account.command(name="list")
@list_format
@with_application
def list_(application: "Application", output_format: str) -> None:
    """List everybody with login, roles, units and whether the account is active."""
    people = application.accounts.all()
    if not people and output_format == "table":
        tell("No accounts yet. Create the first administrator: alertreview account create NAME --role administrator")
        return
    print_list(
        people,
        {
            "person": lambda one: one.person_id,
            "login": lambda one: one.login or None,
            "roles": lambda one: role_words(one.roles),
            "state": lambda one: (
                "deactivated" if not one.active else "one-time code not used yet" if one.awaits_code else "active"
            ),
            "units": lambda one: ALL_UNITS if one.units is None else ", ".join(one.units) or "none",
            "name": lambda one: one.name,
        },
        output_format,
    )


def _say_code(code: str) -> None:
    if code:
        click.echo(f"One-time code, valid for 24 hours and shown only now: {code}")
        click.echo("The person opens the dashboard, chooses 'I have a one-time code' and sets a password.")
    else:
        tell("No code needed: the person uses the external sign-in that this site trusts.")


def ask_password() -> str:
    """Return a password, asked for at the terminal.

    Raise RefusedError if there is no terminal: a password that comes through a pipe is in a file or a history
    somewhere, and shows nobody's presence.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass("Password: ")
        except getpass.GetPassWarning:
            raise RefusedError(
                "The password is asked for at a terminal, and there is none. Run the command in a terminal "
                "(ssh -t over SSH), or sign on the Reports page."
            ) from None
        except EOFError:
            raise click.Abort from None


@account.group()
def token() -> None:
    """Manage tokens with which programs of a person read alerts and labels."""


@token.command(name="create")
@click.argument("login")
@click.option("--purpose", required=True, help="What it is for, to tell it from others later.")
@click.option("--days", type=click.IntRange(1, 366), default=90, show_default=True, help="Days until it expires.")
@result_format
@with_application
def create_token(application: "Application", login: str, purpose: str, days: int, output_format: str) -> None:
    """Create a token of the person with LOGIN and print it, once.

    It reads what the person may see at that moment, and changes nothing.
    """
    made = application.api_tokens.create(application.accounts.find(login).person_id, purpose, days)
    if output_format == "json":
        show({"token": made, "days": days}, (), output_format)
        return
    click.echo(made)
    click.echo(f"Valid for {days} days; it is not shown again.", err=True)


@token.command(name="list")
@list_format
@with_application
def list_tokens(application: "Application", output_format: str) -> None:
    """List all tokens with person, purpose, end and state, newest first."""
    print_list(
        application.api_tokens.all(),
        {
            "token": lambda one: one.token_id,
            "name": lambda one: one.name,
            "purpose": lambda one: one.purpose,
            "created_at": lambda one: one.created_at.isoformat(timespec="seconds"),
            "expires_at": lambda one: one.expires_at.isoformat(timespec="seconds"),
            "state": lambda one: one.state,
        },
        output_format,
    )


@token.command()
@click.argument("number", type=COUNT)
@result_format
@with_application
def revoke(application: "Application", number: int, output_format: str) -> None:
    """Revoke token NUMBER: its next request is refused."""
    application.api_tokens.revoke(number)
    tell_done({"token": number, "state": "revoked"}, [f"Token {number} is revoked."], output_format)


COMMANDS = (account,)
