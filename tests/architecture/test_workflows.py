"""What runs on GitHub's machines: pinned, with few rights, and never green for nothing.

Read as text: no YAML parser is installed.
"""

import re
from pathlib import Path

import pytest
from architecture.repository import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))


def jobs(text: str) -> dict[str, str]:
    """Name -> text of each job."""
    parts = re.split(r"^  ([\w-]+):\n", text.partition("\njobs:\n")[2], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_pinned_limited_and_may_read_only(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.findall(r"^permissions:\n((?:  .*\n)*)", text, re.MULTILINE) == ["  contents: read\n"]
    assert text.count("permissions:") == 1
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", one)] == []
    assert jobs(text)
    for job in jobs(text).values():
        assert len(re.findall(r"^    runs-on: [a-z]+-\d[\d.]*$", job, re.MULTILINE)) == 1
        assert len(re.findall(r"^    timeout-minutes: \d+$", job, re.MULTILINE)) == 1


def test_linux_runs_what_a_person_runs() -> None:
    commands = {path.stem: re.findall(r"run: (make .*)", path.read_text()) for path in WORKFLOWS}
    assert commands["linux"] == ["make test PYTHON=python"]
    assert commands["sanitize"] == ["make sanitize PYTHON=python"]


def test_the_job_on_an_apple_gpu_fails_without_one() -> None:
    text = (FOLDER / "mps.yml").read_text("utf-8")
    found = jobs(text)
    assert found.keys() == {"macos-15", "macos-26"}
    for name, job in found.items():
        assert f"runs-on: {name}\n" in job
        assert "timeout-minutes: 20\n" in job
        assert ("continue-on-error: true\n" in job) == (name == "macos-26")
    first, then = re.findall(r"run: (python .*)", found["macos-15"])
    assert first == "python tests/hardware/round_trip.py"
    assert then == "python -m pytest tests/hardware -m mps --require-backend mps"
    pins = (ROOT / ".github" / "constraints-mps.txt").read_text("utf-8").splitlines()
    assert pins[-1] == "torch==2.14.*"
