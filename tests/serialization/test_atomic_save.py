"""A save that fails or is killed leaves the old file or the new one, and nothing else behind."""

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from serialization.model_files import small_model

from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.serialization import load_model, save_model

OLD, NEW = small_model(1), small_model(2)


def names_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_model(OLD, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_save_replaces_a_file(path: Path) -> None:
    save_model(NEW, path)
    assert load_model(path).digest() == NEW.digest()
    assert names_in(path.parent) == [path.name]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("call", ["open", "fdopen", "fchmod", "fsync"])
def test_failing_call_leaves_the_old_file_and_no_other(
    call: str, error: BaseException, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(type(error)):
            save_model(NEW, path)
    assert load_model(path).digest() == OLD.digest()
    assert names_in(path.parent) == [path.name]


def test_failing_rename_leaves_the_old_file_and_no_other(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> Any:
        raise OSError("read-only")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="read-only"):
        save_model(NEW, path)
    assert load_model(path).digest() == OLD.digest()
    assert names_in(path.parent) == [path.name]


def test_data_reach_the_disk_before_the_name_and_the_name_before_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        calls.append(f"sync {kind}")
        fsync(descriptor)

    def noted_replace(self: Path, target: Path) -> Path:
        calls.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    save_model(NEW, path)
    assert calls == ["sync file", "rename", "sync folder"]


def test_file_system_that_cannot_sync_folders_is_no_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError("not supported")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    save_model(NEW, path)
    assert load_model(path).digest() == NEW.digest()


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_new_file_has_the_usual_permissions(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        save_model(NEW, tmp_path / "m")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == mode


def test_replaced_file_keeps_its_permissions(path: Path) -> None:
    path.chmod(0o640)
    save_model(NEW, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_stays_a_link(path: Path) -> None:
    link = path.parent / "latest"
    link.symlink_to(path.name)
    save_model(NEW, link)
    assert link.is_symlink()
    assert load_model(path).digest() == NEW.digest()


def test_link_to_nothing_creates_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("m")
    save_model(NEW, tmp_path / "latest")
    assert load_model(tmp_path / "m").digest() == NEW.digest()


def test_longest_name_is_possible(tmp_path: Path) -> None:
    save_model(NEW, tmp_path / ("m" * 255))
    assert names_in(tmp_path) == ["m" * 255]


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_model(NEW, "m.safetensors")
    assert load_model("m.safetensors").digest() == NEW.digest()


def test_missing_folder_is_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist; create it first"):
        save_model(NEW, tmp_path / "no" / "m")


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_replaced(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    if kind == "folder":
        target.mkdir()
    else:
        os.mkfifo(target)
    with pytest.raises(InvalidParameterError, match="path must name a file"):
        save_model(NEW, target)
    assert names_in(tmp_path) == ["target"]


SAVE_FOR_EVER = """
import sys
from serialization.model_files import small_model
from torchgbdt.serialization import save_model
models = [small_model(1, 200), small_model(2, 200)]
print("saving", flush=True)
while True:
    for model in models:
        save_model(model, sys.argv[1])
"""


def test_killed_process_leaves_a_whole_file(tmp_path: Path) -> None:
    path, rng = tmp_path / "m", random.Random(0)
    allowed = {small_model(seed, 200).digest() for seed in (1, 2)}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOR_EVER, str(path)],
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"saving\n"
        while not path.exists():
            time.sleep(0.001)
        time.sleep(rng.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert load_model(path).digest() in allowed
