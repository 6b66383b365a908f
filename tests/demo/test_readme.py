"""The README's quickstart runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

from architecture.repository import ROOT

import torchgbdt as tg


def test_the_quickstart_runs_and_prints_a_digest(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[-1] == tg.load(tmp_path / "model.safetensors").digest()
