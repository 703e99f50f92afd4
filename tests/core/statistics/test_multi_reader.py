"""Obuchowski and Rockette's analysis against OR-DBM MRMC 2.51 on its own example, and Holm's adjustment.

Data: Van Dyke et al. (1993), 5 readers, 2 tests, 69 normal and 45 abnormal cases; `tests/results/van_dyke.txt` has a
line for each reader and for each case the ratings of both tests. The figures are those that OR-DBM MRMC 2.51 prints for
them (the University of Iowa's program, whose method MRMCaov implements): trapezoidal area, jackknife, readers and cases
random. Source: RJafroc, tests/testthat/goodValues361/Iowa/VanDyke.txt; data: vignettes/VanDyke.lrc.
"""

from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from core.errors import InvalidInputError
from core.statistics.auc import auc
from core.statistics.multi_reader import holm, obuchowski_rockette

DATA = Path(__file__).parents[2] / "results" / "van_dyke.txt"
TRUTH = np.arange(114) >= 69


@pytest.fixture(scope="module")
def found():
    ratings = np.array(
        [[[int(digit) for digit in pair] for pair in line.split()] for line in DATA.read_text().splitlines()]
    )
    assert ratings.shape == (5, 114, 2)

    def areas(kept):
        return np.array([[auc(TRUTH[kept], ratings[j, kept, i]).value for j in range(5)] for i in range(2)])

    values = areas(np.ones(114, dtype=bool))
    without = np.array([areas(np.arange(114) != case) for case in range(114)])
    return values, obuchowski_rockette(values, without, n=114)


def test_areas_of_each_reader_are_the_printed_ones(found):
    printed = [
        [0.91964573, 0.85877617, 0.90386473, 0.97310789, 0.82979066],
        [0.94782609, 0.90531401, 0.92173913, 0.99935588, 0.92995169],
    ]
    np.testing.assert_allclose(found[0], printed, atol=5e-9)


def test_variance_components_are_the_printed_ones(found):
    analysis = found[1]
    components = (analysis.var_reader, analysis.var_interaction, analysis.cov1, analysis.cov2, analysis.cov3)
    np.testing.assert_allclose(components, (0.00153500, 0.00020040, 0.00034661, 0.00034407, 0.00023903), atol=5e-9)
    assert analysis.var_error == pytest.approx(0.00080229, abs=5e-9)


def test_intervals_of_both_tests_are_the_printed_ones(found):
    first, second = found[1].means
    np.testing.assert_allclose((first.value, first.low, first.high), (0.89703704, 0.82522360, 0.96885048), atol=5e-9)
    np.testing.assert_allclose((second.value, second.low, second.high), (0.94083736, 0.89413783, 0.98753689), atol=5e-9)


def test_the_difference_is_the_printed_one(found):
    test = found[1].differences[0, 1]
    figure = test.difference
    np.testing.assert_allclose((figure.value, figure.low, figure.high), (-0.04380, -0.08796, 0.00036), atol=5e-6)
    assert test.z == pytest.approx(-2.11, abs=5e-3)
    assert test.p_value == pytest.approx(0.0517, abs=5e-5)


def test_one_reader_has_no_analysis_and_equal_values_no_interval():
    one = obuchowski_rockette(np.array([[0.8]]), np.full((10, 1, 1), 0.8))
    assert one.means[0].reason == "not computable: fewer than two readers have an AUC"
    same = obuchowski_rockette(np.full((1, 2), 0.8), np.full((10, 1, 2), 0.8))
    assert "do not vary" in same.means[0].reason
    assert same.means[0].value == 0.8


def test_wrong_shapes_and_missing_values_are_refused():
    with pytest.raises(InvalidInputError, match="jackknife values of shape"):
        obuchowski_rockette(np.ones((2, 3)), np.ones((10, 3, 2)))
    with pytest.raises(InvalidInputError, match="not a number"):
        obuchowski_rockette(np.full((1, 2), np.nan), np.ones((10, 1, 2)))


def test_holm_is_that_of_statsmodels():
    p = [0.011, 0.2, 0.0004, 0.04, 0.9, 0.04, 0.7]
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1])
    assert holm([None, 0.5, None]) == (None, 0.5, None)
    assert holm([]) == ()
