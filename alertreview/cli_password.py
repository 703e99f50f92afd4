"""Asks for a password where only a person can answer: at a terminal, without showing it."""

import getpass
import warnings

import click

from core.errors import RefusedError


def ask_password() -> str:
    """Ask at the terminal of this process.

    Returns
    -------
    str
        What was typed.

    Raises
    ------
    RefusedError
        If there is no terminal: a password that comes through a pipe stands in a file or a history somewhere, and
        shows nobody's presence.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass("Password: ")
        except getpass.GetPassWarning:
            raise RefusedError(
                "The password is asked for at a terminal, and here is none. Run the command in a terminal "
                "(ssh -t over SSH), or sign on the Reports page."
            ) from None
        except EOFError:
            raise click.Abort from None
