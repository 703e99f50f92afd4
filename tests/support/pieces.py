"""Pieces of the machine that some tests need: a browser, a server, a folder of records."""

import os

import pytest

MISSING_PIECE = "missing piece: "
"""How the reason of a skip begins when the machine lacks something."""


def require(present: bool, what: str, how_to_get_it: str) -> None:
    """Skip the test if a piece is missing; the summary names it. Fail instead if ALERTREVIEW_REQUIRE_ALL=1."""
    if present:
        return
    if os.environ.get("ALERTREVIEW_REQUIRE_ALL") == "1":
        pytest.fail(f"{what} is required here and missing: {how_to_get_it}")
    pytest.skip(f"{MISSING_PIECE}{what}: {how_to_get_it}")
