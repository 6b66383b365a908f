"""Reductions over ranks: exact, in rank order, and never a deadlock."""

import threading
import time

import numpy as np
import pytest
from support.ranks import run_ranks

from torchgbdt.core.communicator import SINGLE_RANK, Communicator, InProcessRanks
from torchgbdt.core.errors import BackendError

SIZES = [1, 2, 3]


def test_a_single_rank_is_the_identity() -> None:
    array = np.array([1, 2], np.int64)
    SINGLE_RANK.sum_int64(array)
    assert array.tolist() == [1, 2]
    assert SINGLE_RANK.max_float64(np.array([1.5, np.nan])).tolist()[0] == 1.5
    assert [SINGLE_RANK.any_true(flag) for flag in (True, False)] == [True, False]
    assert [part.tolist() for part in SINGLE_RANK.gather(array)] == [[1, 2]]
    assert (SINGLE_RANK.rank, SINGLE_RANK.size) == (0, 1)


@pytest.mark.parametrize("size", SIZES)
def test_ranks_know_their_number_and_the_size_of_the_group(size: int) -> None:
    assert run_ranks(size, lambda c: (c.rank, c.size)) == [(rank, size) for rank in range(size)]


@pytest.mark.parametrize("size", SIZES)
def test_gather_gives_every_rank_all_arrays_in_rank_order(size: int) -> None:
    def work(communicator: Communicator) -> list[list[int]]:
        # Rank r hands in r entries: shapes may differ, and rank 0 has none.
        parts = communicator.gather(np.full(communicator.rank, communicator.rank, np.int64))
        return [part.tolist() for part in parts]

    assert run_ranks(size, work) == [[[rank] * rank for rank in range(size)]] * size


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.uint64, np.float64, [("key", "<u8"), ("row", "u1")]]
)
def test_gather_keeps_dtypes_and_trailing_axes(dtype: object) -> None:
    array = np.zeros((2, 3), dtype)
    for parts in run_ranks(2, lambda c: c.gather(array)):
        assert [(part.dtype, part.shape) for part in parts] == [(array.dtype, (2, 3))] * 2


def test_gathered_arrays_are_copies() -> None:
    def work(communicator: Communicator) -> list[int]:
        own = np.array([communicator.rank], np.int64)
        parts = communicator.gather(own)
        own[0] = 99  # too late to be seen by the other rank
        parts[0][0] += 10 * (communicator.rank + 1)  # seen by this rank only
        communicator.any_true(False)
        return [int(part[0]) for part in parts]

    assert run_ranks(2, work) == [[10, 1], [20, 1]]


@pytest.mark.parametrize("size", SIZES)
def test_sum_is_exact_where_float64_would_round(size: int) -> None:
    def work(communicator: Communicator) -> list[list[int]]:
        array = np.array([[2**53 + 1, -communicator.rank], [1, 0]], np.int64)
        communicator.sum_int64(array)
        return array.tolist()

    ranks = sum(range(size))
    assert run_ranks(size, work) == [[[size * (2**53 + 1), -ranks], [size, 0]]] * size


def test_sum_writes_into_a_view_of_a_larger_array() -> None:
    def work(communicator: Communicator) -> list[int]:
        whole = np.arange(4, dtype=np.int64)
        communicator.sum_int64(whole[1::2])
        return whole.tolist()

    assert run_ranks(2, work) == [[0, 2, 2, 6]] * 2


@pytest.mark.parametrize("size", SIZES)
def test_max_is_taken_element_by_element(size: int) -> None:
    def work(communicator: Communicator) -> list[float]:
        local = np.array([communicator.rank, -communicator.rank, -np.inf], np.float64)
        return communicator.max_float64(local).tolist()

    assert run_ranks(size, work) == [[size - 1, 0, -np.inf]] * size


@pytest.mark.parametrize("rank_with_nan", [0, 1])
def test_max_keeps_nan_of_any_rank(rank_with_nan: int) -> None:
    def work(communicator: Communicator) -> float:
        value = np.nan if communicator.rank == rank_with_nan else 1.0
        return float(communicator.max_float64(np.array([value]))[0])

    assert np.isnan(run_ranks(2, work)).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rank_with_flag", [None, 0, 1, 2])
def test_any_true_sees_the_flag_of_any_rank(size: int, rank_with_flag: int | None) -> None:
    found = run_ranks(size, lambda c: c.any_true(c.rank == rank_with_flag))
    assert found == [rank_with_flag in range(size)] * size


def test_many_reductions_in_a_row_do_not_mix() -> None:
    def work(communicator: Communicator) -> list[int]:
        totals = []
        for step in range(200):
            if step % 7 == communicator.rank:
                time.sleep(0.0002)  # ranks drift apart
            array = np.array([step * (communicator.rank + 1)], np.int64)
            communicator.sum_int64(array)
            totals.append(int(array[0]))
        return totals

    assert run_ranks(3, work) == [[6 * step for step in range(200)]] * 3


# -------------------------------------------------------------------------------------- failures


@pytest.mark.timeout(30)
def test_abort_wakes_waiting_ranks_with_a_backend_error() -> None:
    group = InProcessRanks(3)
    errors: list[BaseException] = []

    def wait(rank: int) -> None:
        try:
            group.rank(rank).any_true(False)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=wait, args=(rank,), daemon=True) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    group.abort()
    for thread in threads:
        thread.join(10)
    assert [type(error) for error in errors] == [BackendError, BackendError]
    assert str(errors[0]) == "another rank of this run failed; see its error."


@pytest.mark.timeout(30)
def test_an_aborted_group_stays_aborted() -> None:
    group = InProcessRanks(2)
    group.abort()
    with pytest.raises(BackendError, match="another rank of this run failed"):
        group.rank(0).gather(np.zeros(1))


def test_the_error_of_the_rank_that_failed_is_the_one_that_is_seen() -> None:
    def work(communicator: Communicator) -> bool:
        if communicator.rank == 1:
            raise KeyError("rank 1")
        return communicator.any_true(False)

    with pytest.raises(KeyError, match="rank 1"):
        run_ranks(3, work)
