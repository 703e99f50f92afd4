"""The search through frames finds a secret in whatever way the dashboard could send it, and nothing where none is."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.blinded_frames import MANY, Secrets, leaks

SCORE = 0.87312345678
OTHERS = [0.5, 1.0, 138.25, 0.1234]
SECRETS = Secrets(texts=("Ben Reader",), numbers=(SCORE, 0.5, 1.0), words=("score", "auc"))


def _markdown(text: str) -> bytes:
    message = ForwardMsg()
    message.delta.new_element.markdown.body = text
    return message.SerializeToString()


def _table(column: list[float], kind: type) -> bytes:
    """A table as the dashboard sends it; that the column is hidden is not to be seen in what is sent."""
    return _sent(pa.Table.from_pandas(pd.DataFrame({"Lab": np.array(column, dtype=kind)})))


def _lists(column: list[float]) -> bytes:
    return _sent(pa.table({"Trend": [column]}))


def _sent(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    message = ForwardMsg()
    message.delta.new_element.dataframe.arrow_data.data = sink.getvalue().to_pybytes()
    return message.SerializeToString()


def _figure(column: list[float], kind: type) -> bytes:
    message = ForwardMsg()
    figure = go.Figure(go.Scatter(x=np.array(column, dtype=kind), y=list(column)[:1]))
    message.delta.new_element.plotly_chart.spec = figure.to_json()
    return message.SerializeToString()


def _number(values: list[float]) -> bytes:
    message = ForwardMsg()
    message.delta.new_element.slider.default.extend(values)
    return message.SerializeToString()


WAYS: dict[str, Callable[[list[float]], bytes]] = {
    "table": lambda values: _table(values, np.float64),
    "narrow table": lambda values: _table(values, np.float32),
    "lists in a table": _lists,
    "figure": lambda values: _figure([*OTHERS, *values], np.float64),
    "figure of single values": lambda values: _figure(values, object),
    "field of the protocol": _number,
    "text": lambda values: _markdown(f"of {values[-1]:.5f} mmol"),
    "text with all digits": lambda values: _markdown(f"of {values[-1]!r}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_number_is_found_in_whatever_way_it_is_sent(way: str) -> None:
    assert leaks([_markdown("Case 1"), WAYS[way]([*OTHERS, SCORE])], SECRETS)
    assert leaks([WAYS[way](OTHERS)], SECRETS) == []


def test_names_and_words_are_found_and_harmless_ones_are_not() -> None:
    assert leaks([_markdown("asked by Ben Reader")], SECRETS) == ["text: Ben Reader"]
    assert leaks([_markdown("Scaled Score")], SECRETS) == ["word: score"]
    assert leaks([_markdown("AUC")], SECRETS) == ["word: auc"]
    assert leaks([_markdown("glaucoma, Ben Header, 0.8732")], SECRETS) == []


def test_with_very_many_secrets_short_numbers_are_not_taken_for_one() -> None:
    many = Secrets(numbers=np.random.default_rng(1).random(5_000), words=(), decimals=MANY)
    assert leaks([_markdown("0.1234 0.4321 0.98765")], many) == []
    assert leaks([_markdown(f"{list(many.numbers)[7]:.12f}")], many)


def test_what_is_no_message_is_searched_all_the_same() -> None:
    assert leaks([b"\xff\xfe Ben Reader"], SECRETS) == ["text: Ben Reader"]


def test_only_the_name_of_the_vital_sign_is_read_over() -> None:
    assert leaks([b"Mobility Score, last value 3"], Secrets()) == []
    for frame in (b"Mobility Score; scaled score", b"Mobility Score\nScore", b"mobility: score"):
        assert leaks([frame], Secrets()) == ["word: score"]
