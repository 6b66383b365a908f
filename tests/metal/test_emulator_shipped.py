"""The kernels of csrc/metal compile by the C++ that either version of Metal's language is based on.

The tests of the kernels compile them as C++14.
"""

import pytest
from metal.emulator.device import EmulatedDevice, EmulatorOptions
from metal.shipped_variants import Constants, shipped_files, variants

from torchgbdt.backends.metal_library import assemble


def first_and_last(file: str) -> list[Constants]:
    every = variants(file)
    return every[:1] + every[1:][-1:]


@pytest.mark.parametrize("file", shipped_files())
def test_a_kernel_compiles_as_cpp_17(file: str) -> None:
    device = EmulatedDevice(EmulatorOptions(standard="c++17"))
    for constants in first_and_last(file):
        assert dir(device.compile_shader(assemble(file, constants)))
