"""Measuring in another process: what it is told, what it answers, and what runs beside it."""

import json
import subprocess
import sys
from pathlib import Path

import processes
import pytest
from plan import Run
from processes import FailedRunError, burning, measure

ENVIRONMENT = {"PATH": "bin", "OMP_DYNAMIC": "1"}

ANSWER = """\
import json, os, sys
print("chatter of a library")
fields = {"contender": "c", "workload": "W4", "task": "train", "threads": 3, "seconds": 1.5}
print(json.dumps(fields | {"version": json.dumps([sys.argv[1:], sorted(os.environ)])}))
"""


@pytest.fixture
def one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script in place of one_run.py; it says how it was called."""
    monkeypatch.setattr(processes, "HERE", tmp_path)
    script = tmp_path / "one_run.py"
    script.write_text(ANSWER, "utf-8")
    return script


@pytest.mark.usefixtures("one_run")
def test_a_run_is_told_all_there_is_to_know_and_its_last_line_counts() -> None:
    measured = measure(Run("c", "W4", "train", 3), True, Path("rows"), ENVIRONMENT)
    assert (measured.contender, measured.seconds, measured.busy) == ("c", 1.5, False)
    arguments, variables = json.loads(measured.version)
    assert " ".join(arguments) == "c W4 --task train --threads 3 --data rows --quick"
    assert "OMP_DYNAMIC" not in variables and "PATH" in variables
    measured = measure(Run("c", "W4", "bin", 3), False, Path("rows"), ENVIRONMENT)
    assert json.loads(measured.version)[0][3:] == ["bin", "--threads", "3", "--data", "rows"]


def test_a_run_that_fails_is_an_error_with_what_it_said(one_run: Path) -> None:
    for code, message in (
        ("import sys; sys.exit('out of luck')", "out of luck"),
        ("import os; os._exit(3)", "exit status 3"),
    ):
        one_run.write_text(code, "utf-8")
        with pytest.raises(FailedRunError, match=message):
            measure(Run("c", "W4", "train", 1), True, Path("rows"), ENVIRONMENT)


def test_a_run_that_does_not_end_is_ended(one_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LIMIT_SECONDS", 1)
    one_run.write_text("import time\ntime.sleep(1000)", "utf-8")
    with pytest.raises(FailedRunError, match="no result within 1 s"):
        measure(Run("c", "W4", "train", 1), True, Path("rows"), ENVIRONMENT)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process that is started to burn."""
    found: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: object) -> None:
            super().__init__(command, **options)  # type: ignore[call-overload]
            if "-S" in command:
                found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    return found


@pytest.mark.usefixtures("one_run")
def test_a_busy_run_has_as_many_burners_as_threads(
    started: list[subprocess.Popen[bytes]],
) -> None:
    assert measure(Run("c", "W4", "train", 3, busy=True), True, Path("rows"), ENVIRONMENT).busy
    assert len(started) == 3
    assert all(one.returncode is not None for one in started)
    measure(Run("c", "W4", "train", 3), True, Path("rows"), ENVIRONMENT)
    assert len(started) == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, FailedRunError])
def test_burners_never_rest_and_end_whatever_happens(error: type[BaseException]) -> None:
    with pytest.raises(error), burning(2) as others:
        assert [one.poll() for one in others] == [None, None]
        raise error
    assert len(others) == 2
    assert all(one.returncode is not None for one in others)


def test_burners_end_where_one_of_them_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def only_one(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        if first:
            raise OSError("no more processes")
        first.append(start(*arguments, **options))  # type: ignore[call-overload]
        return first[0]

    monkeypatch.setattr(subprocess, "Popen", only_one)
    with pytest.raises(OSError, match="no more"), burning(2):
        pass
    assert first[0].returncode is not None


def test_burners_end_after_a_parent_that_was_killed() -> None:
    code = "import os, signal, processes\nwith processes.burning(2): os.kill(os.getpid(), 9)"
    # who holds the other end of the pipe has not ended
    parent = subprocess.run([sys.executable, "-c", code], cwd=processes.HERE, check=False,
                            stdout=subprocess.PIPE, timeout=60)  # fmt: skip
    assert parent.returncode == -9
