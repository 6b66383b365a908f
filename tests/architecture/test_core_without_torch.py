"""The core is numpy only: it works where torch is absent, and the package itself imports lazily."""

import subprocess
import sys
from pathlib import Path

import pytest

import torchgbdt

CORE = Path(torchgbdt.__file__).parent / "core"
CORE_MODULES = sorted(
    f"torchgbdt.core.{file.stem}" for file in CORE.glob("*.py") if file.stem != "__init__"
)

BLOCK_TORCH = """
import sys

class TorchIsAbsent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, TorchIsAbsent())
"""


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_core_is_not_empty() -> None:
    assert "torchgbdt.core.trainer" in CORE_MODULES


@pytest.mark.parametrize("module", CORE_MODULES)
def test_core_module_imports_with_torch_absent(module: str) -> None:
    result = run_python(f"{BLOCK_TORCH}\nimport {module}\nassert 'torch' not in sys.modules")
    assert result.returncode == 0, result.stderr


def test_torch_is_really_blocked_in_these_subprocesses() -> None:
    result = run_python(f"{BLOCK_TORCH}\nimport torch")
    assert "ModuleNotFoundError" in result.stderr


def test_importing_the_package_imports_nothing_heavy() -> None:
    result = run_python(
        "import sys, torchgbdt\n"
        "heavy = {'torch', 'numpy', 'sklearn', 'safetensors', 'narwhals'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert result.returncode == 0, result.stderr


def test_version_and_errors_need_no_torch() -> None:
    result = run_python(
        f"{BLOCK_TORCH}\nimport torchgbdt\n"
        "assert torchgbdt.__version__\n"
        "assert issubclass(torchgbdt.errors.InvalidDataError, ValueError)\n"
        "assert torchgbdt.TrainerState.COMPLETED"
    )
    assert result.returncode == 0, result.stderr
