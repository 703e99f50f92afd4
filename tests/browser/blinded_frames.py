"""What must not be in the frames that a browser gets, looked for in their raw bytes and in everything they are made of.

Hidden columns, tables in Arrow, arrays that figures carry in base 64 and single numbers of the protocol count as sent.
"""

import base64
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

BANNED_WORDS = ("score", "rank", "stratum", "strata", "inclusion", "support", "soft label", "auc")
"""None of them, in small letters, stands on a page of the blinded review; they are names of what it must not hold."""
FEW, MANY = 4, 9
"""Decimals that a written number needs to be compared with a few secrets, and with thousands."""
_DECIMAL = re.compile(r"-?\d+\.(\d{4,})(?:e-?\d+)?")
VITAL_SIGN = "mobility score"
"""A vital sign of the simulated hospital, which a case shows like any other."""
_WORDS = {word: re.compile((rf"\b{word}\b" if word == "auc" else word).encode()) for word in BANNED_WORDS}
_ARRAY = re.compile(rb'"bdata"\s*:\s*"([A-Za-z0-9+/=]+)"')


@dataclass(frozen=True)
class Secrets:
    """What a person must not get.

    Parameters
    ----------
    texts : collection of str
        Names, comments and other texts; each is looked for as it is.
    numbers : collection of float
        Scores and the like. Those that are round at four decimals are left out: they say nothing when they turn up.
    words : collection of str
        Some of BANNED_WORDS.
    decimals : int
        FEW or MANY, as there are few or many numbers: with many, short ones turn up by chance.
    """

    texts: Collection[str] = ()
    numbers: Collection[float] = ()
    words: Collection[str] = BANNED_WORDS
    decimals: int = FEW

    @cached_property
    def wide(self) -> NDArray[np.float64]:
        """The numbers that cannot turn up by chance, rising."""
        all_numbers = np.array(sorted(set(self.numbers)), dtype="<f8")
        return all_numbers[np.abs(all_numbers - np.round(all_numbers, 4)) > 1e-9]

    @cached_property
    def narrow(self) -> frozenset[float]:
        """What is left of few numbers in four bytes; of many, too much would be alike."""
        return frozenset(self.wide.astype("<f4").tolist()) if self.decimals == FEW else frozenset()

    @cached_property
    def written(self) -> frozenset[str]:
        """How the numbers look with so many decimals and more."""
        return frozenset(f"{number:.{n}f}" for number in self.wide for n in range(self.decimals, MANY + 1))


def leaks(frames: Collection[bytes], *secrets: Secrets) -> list[str]:
    """Say what the frames hold of the secrets, each finding once; an empty list is what a blinded reader's give."""
    raw = b"\n".join(_with_arrays(frame) for frame in frames)
    small = raw.lower().replace(VITAL_SIGN.encode(), b"")
    written = set(_decimals(raw))
    numbers = {pair for frame in frames for pair in _numbers_inside(frame)}
    found: set[str] = set()
    for secret in secrets:
        found |= {f"word: {word}" for word in secret.words if _WORDS[word].search(small)}
        found |= {f"text: {text}" for text in secret.texts if text.encode() in raw}
        found |= {f"bytes of {number}" for number in _doubles(raw, secret.wide)}
        found |= {f"written: {token}" for token in written & secret.written}
        wide = frozenset(secret.wide.tolist())
        found |= {
            f"number: {value}" for value, narrow in numbers if value in wide or (narrow and value in secret.narrow)
        }
    return sorted(found)


def _with_arrays(frame: bytes) -> bytes:
    """Return a frame with the arrays of its figures behind it as plain bytes."""
    # Plotly writes the slash, which is a digit of base 64, by its number.
    arrays = _ARRAY.findall(frame.replace(b"\\u002f", b"/"))
    return b"\n".join((frame, *(base64.b64decode(array) for array in arrays)))


def _doubles(raw: bytes, wanted: NDArray[np.float64]) -> list[float]:
    """Return those of the wanted numbers whose eight bytes stand anywhere in a row of bytes."""
    bits = wanted.view("<u8")
    found = [np.empty(0, dtype="<u8")]
    for offset in range(min(8, max(0, len(raw) - 7))):
        here = np.frombuffer(raw, "<u8", count=(len(raw) - offset) // 8, offset=offset)
        found.append(bits[np.isin(bits, here)])
    return np.concatenate(found).view("<f8").tolist()


def _decimals(raw: bytes) -> Iterator[str]:
    for found in _DECIMAL.finditer(raw.decode("utf-8", "ignore")):
        yield f"{float(found[0]):.{min(len(found[1]), MANY)}f}"


def _numbers_inside(frame: bytes) -> Iterator[tuple[float, bool]]:
    """Return every number in the fields and tables of a frame's message, and whether it has four bytes only."""
    try:
        message = ForwardMsg.FromString(frame)
    except DecodeError:
        return
    yield from _numbers_of(message)


def _numbers_of(message: Message) -> Iterator[tuple[float, bool]]:
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            values = list(value.values())
        else:
            values = value if field.is_repeated else [value]
        for one in values:
            if isinstance(one, Message):
                yield from _numbers_of(one)
            elif isinstance(one, float):
                yield one, field.type == FieldDescriptor.TYPE_FLOAT
            elif isinstance(one, bytes):
                yield from _numbers_of_table(one)


def _numbers_of_table(content: bytes) -> Iterator[tuple[float, bool]]:
    try:
        table = pa.ipc.open_stream(content).read_all()
    except (pa.ArrowInvalid, OSError):
        return
    for column in table.columns:
        flat = column.combine_chunks()
        while pa.types.is_list(flat.type):
            flat = flat.flatten()
        if pa.types.is_floating(flat.type):
            yield from ((value, flat.type == pa.float32()) for value in flat.to_pylist() if value is not None)
