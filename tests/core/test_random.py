"""Philox4x32-10 against its authors' vectors and against a scalar reference written here."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tolerances import RANDOM_COUNT

from torchgbdt.core.arrays import UInt64Array
from torchgbdt.core.random import Purpose, philox4x32, random_keys, random_words

WORD = 2**32

words32 = st.integers(0, WORD - 1)
states = st.integers(0, 2**64 - 1)
row_ids = st.integers(0, 2**64 - 1)


def reference_philox(counter: tuple[int, ...], key: tuple[int, int]) -> tuple[int, ...]:
    """Ten rounds in Python integers, after figure 2 and table 2 of the paper."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, WORD)
        high1, low1 = divmod(0xCD9E8D57 * c2, WORD)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % WORD, (k1 + 0xBB67AE85) % WORD
    return c0, c1, c2, c3


# kat_vectors of Random123, the lines "philox4x32 10": counter, key, expected.
KNOWN_ANSWERS = {
    "zeros": ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    "ones": (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    "digits of pi": (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
}


def as_ints(words: tuple[UInt64Array, ...]) -> tuple[int, ...]:
    return tuple(int(word) for word in words)


@pytest.mark.parametrize("name", KNOWN_ANSWERS)
def test_philox_gives_the_known_answers_of_random123(name: str) -> None:
    counter, key, expected = KNOWN_ANSWERS[name]
    assert as_ints(philox4x32(counter, key)) == expected
    assert reference_philox(counter, key) == expected


@given(st.lists(st.tuples(words32, words32, words32, words32), max_size=5), words32, words32)
def test_philox_of_arrays_is_philox_of_each_element(
    counters: list[tuple[int, int, int, int]], k0: int, k1: int
) -> None:
    columns = tuple(np.array([c[i] for c in counters], np.uint64) for i in range(4))
    found = np.stack(philox4x32(columns, (k0, k1)), axis=-1).tolist()
    assert found == [list(reference_philox(counter, (k0, k1))) for counter in counters]


@given(states, st.sampled_from(Purpose), st.integers(0, 2**20), row_ids)
def test_counter_holds_item_tree_and_purpose_and_key_holds_random_state(
    random_state: int, purpose: Purpose, tree: int, item: int
) -> None:
    counter = (item % WORD, item // WORD, tree, int(purpose))
    expected = reference_philox(counter, (random_state % WORD, random_state // WORD))
    found = random_words(random_state, purpose, tree, np.array([item], np.uint64))
    assert tuple(int(word[0]) for word in found) == expected


@given(states, st.sampled_from(Purpose), st.integers(0, 2**20), row_ids)
def test_key_is_the_first_word_below_the_second(
    random_state: int, purpose: Purpose, tree: int, item: int
) -> None:
    items = np.array([item], np.uint64)
    first, second, _, _ = (int(w[0]) for w in random_words(random_state, purpose, tree, items))
    assert int(random_keys(random_state, purpose, tree, items)[0]) == first + WORD * second


def test_purposes_keep_their_numbers() -> None:
    # They are counter words: another number is another random stream, so another model.
    assert {purpose.name: int(purpose) for purpose in Purpose} == {
        "BINNING_SAMPLE": 1,
        "ROW_SAMPLE": 2,
        "COLUMN_SAMPLE": 3,
        "VALIDATION_SPLIT": 4,
    }


def keys(items: UInt64Array, random_state: int = 7, tree: int = 3) -> UInt64Array:
    return random_keys(random_state, Purpose.ROW_SAMPLE, tree, items)


def test_order_of_items_moves_keys_but_does_not_change_them() -> None:
    items = np.arange(1000, dtype=np.uint64)
    order = np.random.default_rng(0).permutation(1000)
    np.testing.assert_array_equal(keys(items[order]), keys(items)[order])


def test_keys_of_blocks_are_the_keys_of_the_whole() -> None:
    items = np.arange(1000, dtype=np.uint64)
    blocks = [keys(part) for part in np.array_split(items, [0, 1, 500, 999])]
    np.testing.assert_array_equal(np.concatenate(blocks), keys(items))


@pytest.mark.parametrize("shape", [(), (0,), (24,), (4, 6), (2, 3, 4)])
def test_shape_is_kept_and_does_not_change_keys(shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    items = np.arange(size, dtype=np.uint64).reshape(shape)
    assert keys(items).shape == shape
    np.testing.assert_array_equal(keys(items).ravel(), keys(np.arange(size, dtype=np.uint64)))


def test_strided_items_give_the_same_keys() -> None:
    items = np.arange(20, dtype=np.uint64)
    np.testing.assert_array_equal(keys(items[::-2]), keys(items)[::-2])


def test_signed_items_give_the_same_keys_as_unsigned_ones() -> None:
    items = np.arange(5)
    assert items.dtype == np.int64
    np.testing.assert_array_equal(keys(items), keys(items.astype(np.uint64)))


def test_items_are_left_as_they_were() -> None:
    items = np.arange(5, dtype=np.uint64)
    keys(items)
    np.testing.assert_array_equal(items, np.arange(5))


@pytest.mark.parametrize("low", [0, 1, WORD - 1])
def test_row_ids_beyond_32_bits_do_not_repeat_those_below(low: int) -> None:
    items = np.array([low, low + WORD, low + 2 * WORD], np.uint64)
    assert np.unique(keys(items)).size == 3


@pytest.mark.parametrize("other", [5 + WORD, 5 + 2**63])
def test_upper_half_of_random_state_matters(other: int) -> None:
    items = np.arange(100, dtype=np.uint64)
    assert not np.isin(keys(items, random_state=5), keys(items, random_state=other)).any()


def test_streams_of_other_purposes_trees_and_states_share_no_key() -> None:
    items = np.arange(100, dtype=np.uint64)
    streams = [
        random_keys(state, purpose, tree, items)
        for state in (0, 1)
        for purpose in Purpose
        for tree in (0, 1)
    ]
    assert np.unique(np.concatenate(streams)).size == 16 * 100


def test_words_are_uniform_enough_for_sampling_by_threshold() -> None:
    # 40,000 draws at rate 1/4: 10,000 expected, standard deviation sqrt(40,000 * 3/16) = 87.
    words = random_words(0, Purpose.ROW_SAMPLE, 0, np.arange(40_000, dtype=np.uint64))
    for word in words:
        assert word.max() < WORD
        assert abs(np.count_nonzero(word < WORD // 4) - 10_000) < RANDOM_COUNT * 87
