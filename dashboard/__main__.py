"""``python -m dashboard --port N``: serve the site named by ALERTREVIEW_HOME on this machine."""

import argparse
import sys

from alertreview.settings import load_settings
from core.errors import AlertReviewError
from dashboard.launch import serve


def main() -> int:
    """Serve until interrupted; return the exit code."""
    parser = argparse.ArgumentParser(prog="dashboard", description=__doc__)
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--browser", action="store_true", help="open a browser window")
    arguments = parser.parse_args()
    try:
        settings = load_settings()
        serve(settings.home, settings.database_url, arguments.port, open_browser=arguments.browser)
    except AlertReviewError as error:
        print(f"alertreview: {error}", file=sys.stderr)  # noqa: T201 - the one line a person reads in the terminal
        return error.exit_code
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
