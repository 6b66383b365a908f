"""One run and many: what is timed and in which order, and what becomes of runs that fail."""

import os
from pathlib import Path
from typing import Any

import compare
import contenders
import numpy as np
import one_run
import pytest
import resident_memory
from contenders.contender import Contender
from contenders.settings import Settings
from measurement import Measurement
from plan import Run, make_plan
from processes import FailedRunError
from workloads import FULL, make_data, quick_version

DATA = make_data(quick_version(FULL["W4"]))


class Recorder(Contender):
    """Knows the answers to the test rows, and writes down what it is asked."""

    calls: list[str]

    def version(self) -> str:
        return "1"

    def load(self, X: Any, y: Any) -> Any:
        self.calls.append("load")

    def bin(self, data: Any) -> Any:
        self.calls.append("bin")

    def bin_alone(self, data: Any) -> None:
        self.calls.append("bin alone")

    def train(self, binned: Any) -> None:
        self.calls.append("train")

    def predict(self, X: Any) -> Any:
        self.calls.append(f"predict {len(X)}")
        return DATA.y_test if np.array_equal(X, DATA.X_test) else None

    def digest(self) -> str:
        return "d"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the contender of a run is asked."""
    found: list[str] = []

    def make(name: str, settings: Settings) -> Recorder:
        recorder = Recorder(settings)
        recorder.calls = found
        return recorder

    def restart() -> bool:
        found.append("peak restarted")
        return False

    monkeypatch.setattr(contenders, "make_contender", make)
    monkeypatch.setattr(resident_memory, "restart_peak", restart)
    return found


def run(task: str) -> dict[str, Any]:
    return one_run.run("recorder", "W4", task, 2, True, None)


def test_training_is_measured_from_rows_in_memory_to_the_model(calls: list[str]) -> None:
    result = run("train")
    assert calls == ["load", "peak restarted", "bin", "train", "predict 20000"]
    assert (result["metric"], result["digest"], result["threads"]) == (0, "d", 2)
    assert 0 <= result["binning_seconds"] <= result["seconds"]


def test_prediction_is_that_of_the_training_rows(calls: list[str]) -> None:
    assert run("predict")["predict_seconds"] >= 0
    assert calls[4:] == ["predict 20000", *["predict 2500"] * one_run.PREDICTIONS]


def test_binning_alone_is_measured_without_training(calls: list[str]) -> None:
    assert run("bin").keys() == {
        "contender", "workload", "task", "threads", "version", "seconds",
    }  # fmt: skip
    assert calls == ["load", "bin alone"]


@pytest.mark.usefixtures("calls")
def test_binning_within_training_has_no_time_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recorder, "bins_apart", False)
    assert run("train")["binning_seconds"] is None


@pytest.mark.usefixtures("calls")
def test_openmp_gets_as_many_threads_as_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    command = ["one_run.py", "recorder", "W4", "--quick", "--task", "bin", "--threads", "3"]
    monkeypatch.setattr("sys.argv", command)
    one_run.main()
    assert os.environ["OMP_NUM_THREADS"] == "3"


def fake(one: Run) -> Measurement:
    return Measurement(one.contender, one.workload, one.task, one.threads, "1", 1.0)


@pytest.mark.parametrize(
    ("error", "n_measured", "n_failed"),
    [(FailedRunError("out of luck"), 3, 1), (KeyboardInterrupt(), 1, 3)],
)
def test_a_failed_run_is_counted_and_ctrl_c_keeps_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    n_measured: int,
    n_failed: int,
) -> None:
    runs = list(make_plan(["W4"], ["a", "b"], 2, 2))

    def measure(one: Run, *_: object) -> Measurement:
        if one is runs[1]:
            raise error
        return fake(one)

    monkeypatch.setattr(compare, "measure", measure)
    measurements, failed = compare.run_all(runs, quick=True)
    assert (len(measurements), failed) == (n_measured, n_failed)
    said = capsys.readouterr().out
    assert ("out of luck" in said) == (n_measured == 3)
    command = ["compare.py", "--quick", "--rows", "W4", "--contenders", "torchgbdt", "sklearn",
               "--repeats", "1", "--out", str(tmp_path / "one")]  # fmt: skip
    monkeypatch.setattr("sys.argv", command)
    monkeypatch.setattr(compare, "make_plan", lambda *_: runs)
    with pytest.raises(SystemExit, match=f"^{n_failed} of 4 runs failed"):
        compare.main()
    assert len(compare.Comparison.load(tmp_path / "one.json").measurements) == n_measured
    assert (tmp_path / "one.md").read_text("utf-8").startswith("# Speed")


def test_only_a_whole_run_of_full_sizes_takes_the_place_of_the_table() -> None:
    names = [compare.file_name(*flags) for flags in ((False, True), (False, False), (True, True))]
    assert names == ["speed", "part", "quick"]


@pytest.mark.parametrize(
    ("arguments", "name"), [([], "speed"), (["--rows", "W4"], "part"), (["--quick"], "quick")]
)
def test_what_was_asked_for_decides_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], name: str
) -> None:
    monkeypatch.setattr("sys.argv", ["compare.py", "--repeats", "1", *arguments])
    monkeypatch.setattr(compare, "RESULTS", tmp_path)
    monkeypatch.setattr(compare, "is_installed", lambda _: True)
    monkeypatch.setattr(compare, "run_all", lambda runs, _: ([fake(one) for one in runs], 0))
    compare.main()
    assert {file.name for file in tmp_path.iterdir()} == {f"{name}.json", f"{name}.md"}


def test_where_nothing_was_measured_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "make_data", interrupted)
    monkeypatch.setattr(compare, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["compare.py", "--quick", "--rows", "W4"])
    with pytest.raises(SystemExit, match="nothing is written"):
        compare.main()
    assert list(tmp_path.iterdir()) == []
