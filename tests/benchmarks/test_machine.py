"""What is said of the machine and of the code, and memory where the system tells it."""

import shutil
import subprocess
from pathlib import Path

import machine
import one_run
import pytest
import resident_memory


def git(folder: Path, *arguments: str) -> None:
    owner = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    subprocess.run(["git", "-C", str(folder), *owner, *arguments], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a file at each place that figures may depend on, all committed."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in ("torchgbdt/a.py", "csrc/cpu/a.cpp", "CMakeLists.txt", "pyproject.toml",
                 "benchmarks/a.py", "benchmarks/results/a.json", "README.md"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old", "utf-8")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "all")
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("torchgbdt/a.py", "+"),
        ("csrc/cpu/new.h", "+"),
        ("CMakeLists.txt", "+"),
        ("pyproject.toml", "+"),
        ("benchmarks/a.py", "+"),
        ("benchmarks/results/a.json", ""),
        ("README.md", ""),
    ],
)
def test_a_commit_is_marked_where_what_figures_depend_on_differs(
    clone: Path, name: str, mark: str
) -> None:
    commit = str(machine.machine_facts()["commit"])
    assert len(commit) >= 7 and commit.isalnum()
    (clone / name).write_text("new", "utf-8")
    assert machine.machine_facts()["commit"] == commit + mark


def test_outside_of_a_clone_the_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert machine.machine_facts()["commit"] == "unknown"


def test_what_was_resident_before_is_no_part_of_the_peak() -> None:
    if not resident_memory.restart_peak():
        pytest.skip("this system does not restart the peak")
    size = 64 << 20
    gone = bytearray(size)
    with_it = resident_memory.peak_bytes()
    del gone
    before = resident_memory.resident_bytes()
    assert resident_memory.restart_peak()
    assert resident_memory.peak_bytes() < with_it - size // 2
    again = bytearray(size)
    del again
    assert resident_memory.peak_bytes() > before + size // 2


def test_memory_is_not_measured_where_an_earlier_peak_would_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident_memory, "_RESET", tmp_path / "none/clear_refs")
    result = one_run.run("sklearn", "W4", "train", 1, True, None)
    assert result["seconds"] > 0 and not result.keys() & {"peak_bytes", "growth_bytes"}
