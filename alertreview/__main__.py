"""The console script, and ``python -m alertreview``: nothing is imported before the packages are known to be ours."""

import sys

from alertreview.installation import foreign_package


def main() -> int:
    """Run the command line, unless a package of another program stands in for one of ours."""
    if sentence := foreign_package():
        sys.stderr.write(f"alertreview: {sentence}\n")
        return 2
    from alertreview.console import stop_in_order

    stop_in_order()
    from alertreview.cli.main import main as run_command_line

    return run_command_line()


if __name__ == "__main__":
    sys.exit(main())
