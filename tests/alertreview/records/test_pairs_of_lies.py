"""Two lies in one source: they are read as the honest source, or refused by name; one never hides the other."""

import os
import random

import pytest

from alertreview.records.importing import build_cohort
from core.errors import SourceError
from tests.support.lying_records import FORMATS, hospital, write
from tests.support.pairs_of_lies import LIES, honest, pairs, tell

ACTS = hospital(n=3)
N_MORE = int(os.environ.get("ALERTREVIEW_FUZZ_EXAMPLES", "0"))
SEED = 4711
_cohorts = {}


def imported(path, source_format):
    return build_cohort(path, format=source_format, min_positive=1)[0]


def plain(acts, source_format, folder):
    """Import the honest source, each once."""
    key = (source_format, tuple(acts))
    if key not in _cohorts:
        _cohorts[key] = imported(write(acts, source_format, folder), source_format)
    return _cohorts[key]


def assert_read_or_refused(source_format, tmp_path, *lies):
    source = tell(ACTS, source_format, tmp_path / "lying", *lies)
    if any(lie.is_refused for lie in lies):
        with pytest.raises(SourceError, match=r"row|column|line|file|empty"):
            imported(source, source_format)
        return
    cohort = imported(source, source_format)
    expected = plain(honest(ACTS, *lies), source_format, tmp_path / "honest")
    assert (len(cohort.patients), len(cohort.instances)) == (len(expected.patients), len(expected.instances))
    assert cohort.instances["snapshot_at"].tolist() == expected.instances["snapshot_at"].tolist()
    assert [*map(str.casefold, cohort.tasks["name"])] == [*map(str.casefold, expected.tasks["name"])]
    assert (cohort.decisions != expected.decisions).nnz == 0
    assert (cohort.features != expected.features).nnz == 0


def drawn(source_format):
    """Draw pairs until every lie was told, each with another partner, and as many more as the environment wants."""
    found = list(pairs(source_format))
    random.Random(SEED).shuffle(found)
    told, chosen = set(), []
    # Pairs that are refused tell least; those of two lies that were not told yet tell most.
    for n_new in (2, 1):
        for pair in sorted(found, key=lambda pair: sum(lie.is_refused for lie in pair)):
            new = {lie.name for lie in pair} - told
            if len(new) >= n_new:
                chosen.append(pair)
                told |= new
    return [*chosen, *found[:N_MORE]]


@pytest.mark.parametrize(
    ("source_format", "lies"),
    [
        pytest.param(each, lies, id=f"{each}, {lies[0].name}, {lies[1].name}")
        for each in FORMATS
        for lies in drawn(each)
    ],
)
def test_two_lies_are_read_as_the_honest_source_or_refused(source_format, lies, tmp_path):
    assert_read_or_refused(source_format, tmp_path, *lies)


@pytest.mark.parametrize("source_format", FORMATS)
def test_every_lie_is_told(source_format):
    told = {lie.name for pair in drawn(source_format) for lie in pair}
    assert told == {lie.name for lie in LIES if source_format in lie.formats}
