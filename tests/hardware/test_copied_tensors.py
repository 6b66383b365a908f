"""What brings tests of kernels to hardware; it needs none itself."""

import torch
from architecture.repository import ROOT
from hardware import test_kernels_compute
from hardware.copied_tensors import CopyingDevice


class Library:
    """Of a device that is this one."""

    @staticmethod
    def add(target: torch.Tensor, number: int, source: torch.Tensor, threads: int) -> None:
        target[:threads] += number * source[:threads]


def test_results_come_back_and_views_stay_views() -> None:
    shared = torch.arange(10, dtype=torch.int64)
    target, source = shared[1::3], shared[8:9].expand(3)
    CopyingDevice(lambda _: Library, "cpu").compile_shader("").add(target, 2, source, threads=2)
    assert shared.tolist() == [0, 1 + 16, 2, 3, 4 + 16, 5, 6, 7, 8, 9]


def test_the_device_gets_copies() -> None:
    seen = []

    class Seeing:
        @staticmethod
        def see(one: torch.Tensor) -> None:
            seen.append(one)

    mine = torch.zeros(3, dtype=torch.bfloat16)
    CopyingDevice(lambda _: Seeing, "cpu").compile_shader("").see(mine)
    assert seen[0].data_ptr() != mine.data_ptr()
    assert (seen[0].dtype, seen[0].shape) == (mine.dtype, mine.shape)


def test_all_tests_of_kernels_run_on_hardware() -> None:
    files = {path.stem for path in (ROOT / "tests" / "metal").glob("test_*.py")}
    of_tools = {one for one in files if one.startswith(("test_emulator", "test_msl_lint"))}
    classes = (one for one in vars(test_kernels_compute).values() if isinstance(one, type))
    names = {one.__name__.rpartition(".")[2] for one in classes}
    assert files - of_tools - names == {"test_conformance_probe"}  # it has a test of its own there
