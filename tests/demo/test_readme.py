"""What the README shows: its quickstart runs as it stands, and its flights are the demo's."""

import re
import subprocess
import sys
from pathlib import Path

from architecture.repository import ROOT
from flights_data import load_flights

import torchgbdt as tg

README = (ROOT / "README.md").read_text("utf-8")


def test_the_examples_run_one_after_the_other(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) == 3
    code = "\n".join([*examples, "print(tg.load('model.safetensors').digest())"])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    digest = tg.load(tmp_path / "model.safetensors").digest()
    assert result.stdout.split().count(digest) == 2  # printed by the first example, and found again
    assert "['large' 'medium' 'small']" in result.stdout


def test_the_readme_counts_the_flights_that_the_demo_uses() -> None:
    flights = load_flights()
    numbers = [len(part.y) for part in (flights.train, flights.valid, flights.test)]
    numbers += [flights.n_read, flights.n_read - sum(numbers)]
    assert [number for number in numbers if f" {number:,}" not in README.replace("\n", " ")] == []
