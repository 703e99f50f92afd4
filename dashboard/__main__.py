"""`python -m dashboard`: serve the site named by ALERTREVIEW_HOME on this machine."""

import sys

import click

from alertreview.cli.console import EXIT_INTERRUPTED
from core.errors import AlertReviewError
from dashboard.launch import DEFAULT_PORT, serve


@click.command()
@click.option("--port", default=DEFAULT_PORT, show_default=True, help="Port on the loopback address.")
@click.option("--browser", is_flag=True, help="Open a browser window.")
def main(port: int, browser: bool) -> None:
    """Serve the dashboard of the site in ALERTREVIEW_HOME until stopped."""
    try:
        serve(port=port, open_browser=browser)
    except KeyboardInterrupt:
        click.echo("The dashboard has stopped.", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except AlertReviewError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
