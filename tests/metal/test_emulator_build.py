"""Compiled kernels are kept, and several processes may want the same one at once."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import torch
from metal.emulator import build
from metal.emulator.device import EmulatedDevice, EmulatorOptions

TESTS = Path(__file__).parents[1]


def new_source() -> str:
    """A text that nobody has compiled; its kernel writes 5."""
    return f"// {uuid.uuid4()}\nkernel void five(device int* out) {{ out[0] = 5; }}\n"


def test_a_text_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source = new_source()
    EmulatedDevice().compile_shader(source)

    def refuse(*_: object) -> str:
        raise AssertionError("the compiler runs")

    monkeypatch.setattr(build, "_run", refuse)
    out = torch.zeros(1, dtype=torch.int32)
    EmulatedDevice(EmulatorOptions(shuffle_seed=1)).compile_shader(source).five(out)
    assert out.tolist() == [5]
    for other in (EmulatorOptions(checked=True), EmulatorOptions(standard="c++17")):
        with pytest.raises(AssertionError, match="the compiler runs"):
            EmulatedDevice(other).compile_shader(source)
    with pytest.raises(AssertionError, match="the compiler runs"):
        EmulatedDevice().compile_shader(new_source())


def test_what_does_not_compile_leaves_no_file() -> None:
    before = set(build._folder().iterdir())
    with pytest.raises(SyntaxError):
        EmulatedDevice().compile_shader(new_source() + "nonsense")
    # Other processes may write here meanwhile: files of this one bear its number.
    mine = f"-{os.getpid()}-"
    assert not [path for path in set(build._folder().iterdir()) - before if mine in path.name]


def test_processes_may_compile_the_same_text_at_once() -> None:
    script = (
        "import sys\n"
        "from metal.emulator.build import BuildOptions, build\n"
        "assert build(sys.argv[1], BuildOptions()).kernels[0].name == 'five'\n"
    )
    command = [sys.executable, "-c", script, new_source()]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    running = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait(100) for process in running] == [0, 0, 0]
