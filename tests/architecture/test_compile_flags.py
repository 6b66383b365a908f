"""What the compiler is told about floating point, as CMake really tells it.

Hostile flags of the environment stand in front of ours; of contradicting flags the last one counts.
"""

import json
import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from architecture.repository import ROOT

SCRIPTS = Path(sys.executable).parent  # cmake and ninja are installed there
HOSTILE = "-ffast-math -ftrapping-math -ffp-contract=fast"


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Source file -> its compile command, for the extension and the C++ tests."""
    build = tmp_path_factory.mktemp("build")
    options = ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DTORCHGBDT_BUILD_TESTS=ON"]
    options += [f"-DCMAKE_CXX_FLAGS={HOSTILE}", f"-DPython_EXECUTABLE={sys.executable}"]
    options += [f"-Dnanobind_DIR={nanobind_folder()}"]
    result = subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", *options],
        env={**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ.get('PATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    entries = json.loads((build / "compile_commands.json").read_text("utf-8"))
    return {
        str(Path(entry["file"]).relative_to(ROOT)): shlex.split(entry["command"])
        for entry in entries
        if Path(entry["file"]).is_relative_to(ROOT / "csrc")
    }


@cache
def nanobind_folder() -> str:
    command = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def last(command: list[str], *prefixes: str) -> str:
    return [part for part in command if part.startswith(prefixes)][-1]


def test_every_source_is_compiled(commands: dict[str, list[str]]) -> None:
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "csrc").rglob("*.cpp")}
    assert commands.keys() == sources


def test_nothing_is_contracted_whatever_the_environment_says(
    commands: dict[str, list[str]],
) -> None:
    found = {file: last(command, "-ffp-contract") for file, command in commands.items()}
    assert set(found.values()) == {"-ffp-contract=off"}, found


def test_nothing_is_reordered_whatever_the_environment_says(commands: dict[str, list[str]]) -> None:
    found = {file: last(c, "-ffast-math", "-fno-fast-math") for file, c in commands.items()}
    assert set(found.values()) == {"-fno-fast-math"}, found


def test_selections_may_become_vector_code(commands: dict[str, list[str]]) -> None:
    found = {file: last(c, "-ftrapping-math", "-fno-trapping-math") for file, c in commands.items()}
    assert set(found.values()) == {"-fno-trapping-math"}, found


def test_no_source_is_compiled_for_one_machine_or_with_openmp(
    commands: dict[str, list[str]],
) -> None:
    refused = ("-march=native", "-mcpu=native", "-mtune=native", "-fopenmp", "-Ofast")
    found = {file: [p for p in c if p.startswith(refused)] for file, c in commands.items()}
    assert {file: flags for file, flags in found.items() if flags} == {}
