"""Compute the report of one study once for all tests of a process: most of them look at copies of the same site.

A report depends on its input alone (`tests/alertreview/exports/test_study_rows.py` computes one twice), so inputs
that are equal to the last bit share one. What recomputes a report from files is left alone.
"""

import hashlib
import pickle
from collections.abc import Iterator

import pytest

from alertreview.exports import exports
from alertreview.reports import service
from core.studies.make_report import study_report
from core.studies.report import StudyReport
from core.studies.report_input import StudyInput


@pytest.fixture(scope="session", autouse=True)
def reports_once() -> Iterator[None]:
    """Replace the computation in the services of the application."""
    known: dict[bytes, StudyReport] = {}

    def remembered(study: StudyInput) -> StudyReport:
        key = hashlib.sha256(pickle.dumps(study)).digest()
        if key not in known:
            known[key] = study_report(study)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        for module in (service, exports):
            patch.setattr(module, "study_report", remembered)
        yield
