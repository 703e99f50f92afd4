"""``python -m alertreview`` is the console script."""

import sys

from alertreview.cli import main

if __name__ == "__main__":
    sys.exit(main())
