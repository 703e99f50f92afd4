"""Column types: aware times, compressed vectors, answer codes."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sqlalchemy.dialects import postgresql, sqlite

from core.errors import InvalidInputError
from core.kinds import Kind
from core.vocabulary import Answer
from db.models.types import AnswerCode, CompressedVector, UtcDateTime, deflate, words

EARLIEST, LATEST = datetime.fromisoformat("1900-01-02"), datetime.fromisoformat("2300-01-01")
SQLITE = sqlite.dialect()
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=OFFSETS, min_value=EARLIEST, max_value=LATEST))
def test_a_moment_keeps_its_instant_and_loses_its_zone(moment: datetime) -> None:
    kind = UtcDateTime()
    stored = kind.process_bind_param(moment, SQLITE)
    assert stored is not None
    as_sqlite_gives_it = stored.replace(tzinfo=None)
    for given_back in (stored, as_sqlite_gives_it):
        read = kind.process_result_value(given_back, SQLITE)
        assert read == moment
        assert read is not None
        assert read.tzinfo is UTC


def test_a_moment_without_zone_is_refused_without_naming_it() -> None:
    with pytest.raises(InvalidInputError, match="without time zone") as caught:
        UtcDateTime().process_bind_param(datetime.fromisoformat("2026-01-01"), SQLITE)
    assert "2026" not in str(caught.value)


def test_missing_values_stay_missing() -> None:
    for kind in (UtcDateTime(), CompressedVector("float32"), AnswerCode()):
        assert kind.process_bind_param(None, SQLITE) is None
        assert kind.process_result_value(None, SQLITE) is None


@given(hnp.arrays(np.float32, st.integers(0, 50), elements=st.floats(width=32)))
def test_a_vector_comes_back_bit_by_bit_with_its_gaps(vector: np.ndarray) -> None:
    kind = CompressedVector("float32")
    stored = kind.process_bind_param(vector, SQLITE)
    assert stored is not None
    read = kind.process_result_value(stored, SQLITE)
    assert read is not None
    assert read.tobytes() == vector.astype("<f4").tobytes()
    assert not read.flags.writeable


def test_a_vector_is_no_matrix_and_is_not_rounded_to_whole_numbers() -> None:
    with pytest.raises(InvalidInputError, match="has 2"):
        CompressedVector("float32").process_bind_param(np.zeros((2, 2)), SQLITE)
    with pytest.raises(TypeError, match="Cannot cast"):
        CompressedVector("int16").process_bind_param(np.array([0.5]), SQLITE)


@pytest.mark.parametrize("answer", list(Answer))
def test_an_answer_is_stored_as_its_number(answer: Answer) -> None:
    assert AnswerCode().process_bind_param(answer, SQLITE) == int(answer)
    assert AnswerCode().process_result_value(int(answer), SQLITE) is answer


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()])
def test_a_vocabulary_is_text_in_every_database(dialect: object) -> None:
    assert words(Kind, "kind").compile(dialect) == "VARCHAR(20)"  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["noise", "gaps"])
def test_vectors_are_deflated_only_where_that_makes_them_smaller(name: str) -> None:
    values = np.random.default_rng(0).random(20_000).astype(np.float32)
    if name == "gaps":
        values[::2] = np.nan
        values[1::4] = 0.5
    stored = deflate(values, "float32")
    kind = CompressedVector("float32")
    assert (len(stored) < 0.8 * values.nbytes) == (name == "gaps")
    assert kind.process_bind_param(stored, SQLITE) is stored
    np.testing.assert_array_equal(kind.process_result_value(stored, SQLITE), values)
    np.testing.assert_array_equal(kind.process_result_value(kind.process_bind_param(values, SQLITE), SQLITE), values)
