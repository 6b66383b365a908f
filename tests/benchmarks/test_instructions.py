"""Instruction counts: what is read from callgrind, what is compared, and what is refused."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import check_instructions
import pytest
from instructions import callgrind, fixed_workloads, stored_counts
from instructions.stored_counts import Change, changes, toolchain

from torchgbdt import _native

ANNOTATED = """\
--------------------------------------------------------------------------------
1,234,567  PROGRAM TOTALS

  999,999  ???:_PyEval_EvalFrameDefault [/usr/bin/python3]
  500,000  ???:torchgbdt::find_splits(torchgbdt::FeatureBins const&, int) [/b/_native.so]
  400,000  ???:std::_Function_handler<void (long), torchgbdt::find_splits(int)::{lambda}>::_M_i()
      100  ???:torchgbdt::find_splits(torchgbdt::FeatureBins const&, int) [clone .cold]
   30,000  ???:torchgbdt::parallel_for(long) [/b/_native.so]
"""


def test_kernels_and_the_whole_are_read() -> None:
    kernels = frozenset(("find_splits", "predict"))
    expected = {"all": 1_234_567, "find_splits": 500_000}
    assert callgrind.kernel_counts(ANNOTATED, kernels) == expected
    with pytest.raises(SystemExit, match="no totals"):
        callgrind.kernel_counts("", kernels)


@pytest.mark.parametrize(
    ("stored", "found", "is_more"),
    [
        (1_000_000, 1_020_000, False),
        (1_000_000, 1_020_001, True),
        (1_000_000, 10, False),
        (99_999, 500_000, False),  # too small to matter
        (None, 500_000, False),
        (1_000_000, None, False),
    ],
)
def test_only_more_than_the_tolerance_is_more(
    stored: int | None, found: int | None, is_more: bool
) -> None:
    assert Change("w", "k", stored, found).is_more == is_more


def test_all_counts_of_both_sides_are_listed() -> None:
    found = list(changes({"a": {"x": 1, "y": 2}}, {"a": {"x": 3, "z": 4}, "b": {"x": 5}}))
    assert sorted((one.workload, one.kernel, one.stored, one.found) for one in found) == [
        ("a", "x", 1, 3),
        ("a", "y", 2, None),
        ("a", "z", None, 4),
        ("b", "x", None, 5),
    ]
    assert "+200.0%" in stored_counts.table(found)


def test_a_kernel_of_one_side_alone_is_an_error_that_names_it() -> None:
    stored = {"w": {"all": 500_000, "gone": 7, "same": 100_000}}
    counted = {"w": {"all": 400_000, "new": 9, "same": 102_000}, "other": {"all": 1}}
    lines = stored_counts.failures(list(changes(stored, counted)))
    assert lines[:-1] == [
        "w: gone is stored, but was not counted now.",
        "w: new was counted, but is not stored.",
        "other: all was counted, but is not stored.",
    ]
    assert "--store" in lines[-1]
    assert stored_counts.failures(list(changes(stored, stored))) == []
    assert stored_counts.failures([Change("w", "k", 100_000, 103_000)]) == [
        "1 counts grew by more than 2%."
    ]


@pytest.mark.parametrize(
    ("counted", "message"),
    [
        ({"w": {"all": 1_000_000}}, None),
        ({"w": {"all": 1_030_000}}, "1 counts grew"),
        ({"w": {}}, "w: all is stored, but was not counted now"),
    ],
)
def test_the_check_fails_with_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, counted: callgrind.Counts, message: str | None
) -> None:
    chain = toolchain("gcc", "1.0")
    monkeypatch.setattr("sys.argv", ["check_instructions.py"])
    monkeypatch.setattr(check_instructions, "build", lambda: Path("no.so"))
    monkeypatch.setattr(check_instructions, "compiler", lambda: "gcc")
    monkeypatch.setattr(callgrind, "valgrind_version", lambda: "1.0")
    monkeypatch.setattr(callgrind, "count", lambda *_: counted)
    monkeypatch.setattr(stored_counts, "load", lambda: {chain: {"w": {"all": 1_000_000}}})
    with pytest.raises(SystemExit, match=message) if message else nullcontext():
        check_instructions.main()


def test_storing_keeps_the_counts_of_other_toolchains(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    stored_counts.store("gcc", {"a": {"x": 1}}, file)
    stored_counts.store("clang", {"a": {"x": 2}}, file)
    stored_counts.store("gcc", {"a": {"x": 3}}, file)
    assert stored_counts.load(file) == {"gcc": {"a": {"x": 3}}, "clang": {"a": {"x": 2}}}


def test_the_stored_counts_are_of_the_workloads_there_are() -> None:
    stored = stored_counts.load()
    assert stored
    for counts in stored.values():
        assert list(counts) == list(fixed_workloads.NAMES)
        for kernels in counts.values():
            assert kernels.keys() <= {"all", *dir(_native)}


def test_another_toolchain_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["check_instructions.py"])
    monkeypatch.setattr(check_instructions, "build", lambda: Path("no.so"))
    monkeypatch.setattr(check_instructions, "compiler", lambda: "Cfront 3.0")
    monkeypatch.setattr(callgrind, "valgrind_version", lambda: "1.0")
    with pytest.raises(SystemExit, match=r"no counts .*\n  Cfront 3.0, .*valgrind 1.0"):
        check_instructions.main()
    assert toolchain("Cfront 3.0", "1.0") not in stored_counts.load()


def test_missing_valgrind_is_an_error_and_not_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="nothing was checked"):
        callgrind.valgrind_version()
