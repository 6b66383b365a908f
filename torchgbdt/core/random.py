"""Counter-based random numbers: Philox4x32-10, keyed by what a number is for and never by when.

A draw depends only on (random_state, purpose, tree, item), where the item is a global row id or a
hashed node path. So neither thread, rank, batch nor row order can change it.

Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011. The constants and
the known-answer vectors in the tests are those of the authors' Random123 distribution.
"""

from enum import IntEnum

import numpy as np

from torchgbdt.core.arrays import AnyArray, UInt64Array

_ROUNDS = 10
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class Purpose(IntEnum):
    """What a stream of random words is for: streams with different purposes are independent."""

    BINNING_SAMPLE = 1
    ROW_SAMPLE = 2
    COLUMN_SAMPLE = 3
    VALIDATION_SPLIT = 4


def philox4x32(
    counter: tuple[AnyArray | int, ...], key: tuple[int, int]
) -> tuple[UInt64Array, ...]:
    """Ten rounds of Philox on four 32-bit counter words.

    Parameters
    ----------
    counter : four uint64 arrays (or ints) holding 32-bit words; broadcast together. IN.
    key : two 32-bit words.

    Returns
    -------
    Four uint64 arrays of 32-bit words, of the broadcast shape.
    """
    c0, c1, c2, c3 = (np.asarray(word, np.uint64) & _LOW for word in counter)
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0 = c0 * _MULTIPLIERS[0]
        product1 = c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> _SHIFT) ^ c1 ^ np.uint64(k0),
            product1 & _LOW,
            (product0 >> _SHIFT) ^ c3 ^ np.uint64(k1),
            product0 & _LOW,
        )
        k0 = (k0 + _WEYL[0]) & 0xFFFFFFFF
        k1 = (k1 + _WEYL[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def random_words(
    random_state: int, purpose: Purpose, tree: int, items: AnyArray
) -> tuple[UInt64Array, ...]:
    """Four random 32-bit words for each item.

    Parameters
    ----------
    random_state : 0 <= random_state < 2^64; the Philox key.
    purpose, tree : the upper two counter words; tree is 0 where no tree is meant.
    items : uint64, any shape; global row ids or hashed paths, the lower two counter words. IN.
    """
    item = np.asarray(items).astype(np.uint64, copy=False)
    counter = (item & _LOW, item >> _SHIFT, tree, int(purpose))
    return philox4x32(counter, (random_state & 0xFFFFFFFF, random_state >> 32))


def random_keys(random_state: int, purpose: Purpose, tree: int, items: AnyArray) -> UInt64Array:
    """One random 64-bit key for each item: the first two words, the first one in the low half."""
    low, high, _, _ = random_words(random_state, purpose, tree, items)
    return low | (high << _SHIFT)
