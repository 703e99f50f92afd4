"""Start the dashboard's server with every protecting setting: on this machine, or behind a TLS proxy."""

import os
import socket
import sys
import threading
import time
import webbrowser
from pathlib import Path

import click

from alertreview.configuration import WebSettings
from alertreview.settings import FIRST_PAGE_VARIABLE, load_web_settings
from core.errors import SettingsError
from dashboard.gate.gate import OPEN_ADDRESS, SETTINGS, allowed_hosts

APP = Path(__file__).resolve().parent / "app.py"
DEFAULT_PORT = 8501


def settings(port: int, *, address: str = "127.0.0.1", web: WebSettings | None = None) -> dict[str, object]:
    """Return Streamlit's settings.

    Raise SettingsError if the address is not this machine's and open without TLS, or the port is out of range.
    """
    web = web or WebSettings()
    if not web.may_listen_on(address):
        raise SettingsError(f"The address is {address!r}. {OPEN_ADDRESS}")
    if not 1 <= port <= 65535:
        raise SettingsError(f"Port {port} is not between 1 and 65535. Give for example --port {DEFAULT_PORT}.")
    options = {**SETTINGS, "server.allowedHosts": allowed_hosts(web)}
    if web.base_path:
        options["server.baseUrlPath"] = web.base_path.strip("/")
    return {**options, "server.address": address, "server.port": port, "server.headless": True}


def serve(*, port: int = DEFAULT_PORT, open_browser: bool = False) -> None:
    """Serve the dashboard of the site in ALERTREVIEW_HOME until stopped.

    Raise SettingsError if a setting cannot be used, the address is open without TLS, or the port is out of range or
    taken.
    """
    web = load_web_settings()
    options = settings(port, address=web.address, web=web)
    _check_port_is_free(web.address, port)
    show_first_page(port, os.environ.pop(FIRST_PAGE_VARIABLE, "/"), open_browser=open_browser)
    from streamlit import config
    from streamlit.web import bootstrap

    # Streamlit looks for its config file beside the starting script, so name ours. Load it before the application is
    # made, so that the gate sees the settings the server runs with.
    sys.argv = [str(APP)]
    config._main_script_path = str(APP)  # noqa: SLF001 - what `streamlit run` sets as well
    bootstrap.load_config_options({name.replace(".", "_"): value for name, value in options.items()})
    from dashboard.app import app

    app.run(config=options)


def show_first_page(port: int, path: str, *, open_browser: bool) -> None:
    """Print the link of the first page where it is more than the start page, and open it when the server answers."""
    address = f"http://127.0.0.1:{port}{path}"
    if path != "/":
        click.echo(f"No accounts yet. This link signs you in as the owner, once, within 24 hours:\n{address}")
    if open_browser:
        threading.Thread(target=_open_when_ready, args=(port, address), daemon=True).start()


def _open_when_ready(port: int, address: str) -> None:
    for _ in range(150):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                webbrowser.open(address)
                return
        time.sleep(0.2)


def _check_port_is_free(address: str, port: int) -> None:
    """Raise SettingsError if the port is taken; Streamlit would silently try the next one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise SettingsError(
                f"Port {port} on {address} cannot be used ({error.strerror}). "
                f"Stop what uses it, or choose another with --port {port + 1 if port < 65535 else port - 1}."
            ) from error
