"""Random damage: a file loads as a valid model or is refused; nothing else ever happens."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from serialization.model_files import VALID, lie, put_together, take_apart

from torchgbdt.core.errors import ModelFormatError
from torchgbdt.core.model import check_model
from torchgbdt.serialization import model_from_bytes


def load_or_refuse(data: bytes) -> bool:
    """Whether it loads; then it is valid. Any other exception fails the test."""
    try:
        model = model_from_bytes(data)
    except ModelFormatError:
        return False
    check_model(model)
    assert model.forest.n_trees == 4
    return True


def test_every_byte_of_the_header_flipped() -> None:
    end = 8 + int.from_bytes(VALID[:8], "little")
    for position in range(end):
        for flip in (0x01, 0x20, 0xFF):
            data = bytearray(VALID)
            data[position] ^= flip
            load_or_refuse(bytes(data))


def test_random_damage() -> None:
    rng = random.Random(0)
    for _ in range(3000):
        data = bytearray(VALID)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        if rng.random() < 0.1:
            position = rng.randrange(len(data) + 1)
            data[position:position] = rng.randbytes(rng.choice((1, 8, 100)))
        load_or_refuse(bytes(data))


def test_truncation_at_every_length_is_refused() -> None:
    for length in range(len(VALID)):
        assert not load_or_refuse(VALID[:length])


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    assert not load_or_refuse(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(take_apart(VALID)[1])), json_values)
def test_any_value_in_metadata(name: str, value: Any) -> None:
    header, metadata, arrays = take_apart(VALID)
    load_or_refuse(put_together(header, {**metadata, name: value}, arrays))


@given(
    st.sampled_from(sorted(take_apart(VALID)[0])),
    st.sampled_from(["dtype", "shape", "data_offsets"]),
    json_values,
)
def test_any_value_in_the_header(name: str, key: str, value: Any) -> None:
    load_or_refuse(lie(lambda header: header[name].update({key: value})))
