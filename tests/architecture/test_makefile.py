"""What the Makefile promises whatever options make gets."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"
PYTHON = """#!/bin/sh
# Stands in for .venv/bin/python: says when a pip begins and ends.
echo begin
sleep 0.2
echo end
"""


def test_installs_do_not_overlap_with_several_jobs(tmp_path: Path) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("there is no make")
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "csrc").mkdir()
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    for name in ("pyproject.toml", "constraints.txt", "CMakeLists.txt", ".venv/stamp-venv"):
        (tmp_path / name).touch()
    command = [make, "-j4", ".venv/stamp-native", ".venv/stamp-dev"]
    env = {"PATH": os.environ["PATH"]}  # without the flags of a make that runs this test
    output = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    steps = [line for line in output.stdout.splitlines() if line in ("begin", "end")]
    assert steps == ["begin", "end"] * 4
