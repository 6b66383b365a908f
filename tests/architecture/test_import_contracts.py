"""The import contracts of pyproject.toml hold, and each of them can fail.

Every contract is broken once, by a line planted in a temporary copy of the package.
"""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from architecture.repository import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
    "contracts"
]

# (contract, file that gets the line, line)
VIOLATIONS = [
    ("package-layers", "core/trainer.py", "import torchgbdt.torch_api.trainer"),
    ("package-layers", "core/trainer.py", "import torchgbdt"),  # reaches upwards through the root
    ("package-layers", "torch_api/trainer.py", "import torchgbdt.sklearn_api.regressor"),
    ("package-layers", "serialization/metadata.py", "import torchgbdt.backends.registry"),
    ("package-layers", "backends/oracle.py", "import torchgbdt.torch_api.tensors"),
    ("package-layers", "backends/oracle.py", "from torchgbdt import _native"),
    ("package-layers", "stray_module.py", "# a module that no layer names"),
    ("core-layers", "core/tree.py", "import torchgbdt.core.growth"),
    ("core-layers", "core/stray_module.py", "# a module that no layer names"),
    ("core-is-pure", "core/splits.py", "import torch"),
    ("core-is-pure", "core/model.py", "from pathlib import Path"),
    ("core-is-pure", "core/model.py", "import os.path"),
    ("no-frame-library", "torch_api/frames.py", "import pandas"),
    ("no-frame-library", "sklearn_api/inputs.py", "from polars import DataFrame"),
    ("backend-layers", "backends/native.py", "import torchgbdt.backends.oracle"),
    ("backend-layers", "backends/oracle.py", "import torchgbdt.backends.native"),
    ("backend-layers", "backends/oracle.py", "import torchgbdt.backends.registry"),
    ("no-circles", "torch_api/tensors.py", "import torchgbdt.torch_api.trainer"),
]

# The import hook of an editable install would find the real package before the copy.
LINT = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.path.insert(0, ".")
from importlinter.cli import lint_imports
sys.exit(lint_imports(config_filename="pyproject.toml", limit_to_contracts=(sys.argv[1],),
                      no_cache=True, no_logo=True))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(
        ROOT / "torchgbdt",
        tmp_path / "torchgbdt",
        ignore=lambda _, names: [name for name in names if Path(name).suffix not in {".py", ""}],
    )
    return tmp_path


def lint(folder: Path, contract: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, contract],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("contract", [contract["id"] for contract in CONTRACTS])
def test_contract_is_kept(copy: Path, contract: str) -> None:
    result = lint(copy, contract)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Contracts: 1 kept, 0 broken." in result.stdout


@pytest.mark.parametrize(("contract", "file", "line"), VIOLATIONS)
def test_planted_violation_breaks_the_contract(
    copy: Path, contract: str, file: str, line: str
) -> None:
    planted = copy / "torchgbdt" / file
    before = planted.read_text("utf-8") if planted.exists() else ""
    planted.write_text(f"{before}\n{line}\n", "utf-8")
    result = lint(copy, contract)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Contracts: 0 kept, 1 broken." in result.stdout


def test_every_contract_is_broken_once() -> None:
    assert {contract for contract, _, _ in VIOLATIONS} == {c["id"] for c in CONTRACTS}
