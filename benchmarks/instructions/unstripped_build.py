"""The extension as it is installed, but with its symbols: callgrind counts by function name."""

import re
import subprocess
import sys
from pathlib import Path

from machine import ROOT

FOLDER = ROOT / "build" / "instructions"

# The linker strips what is of build type Release; so the type has a name of its own, and for the
# kernels the flags of that one.
RELEASE_FLAGS = "-O3 -DNDEBUG"


def build() -> Path:
    """Compile what has changed; the path of the module."""
    tools = Path(sys.executable).parent
    nanobind = _run([sys.executable, "-m", "nanobind", "--cmake_dir"]).strip()
    _run([_tool(tools, "cmake"), "-S", str(ROOT), "-B", str(FOLDER), "-G", "Ninja",
          "-DCMAKE_BUILD_TYPE=Symbols", f"-DCMAKE_CXX_FLAGS_SYMBOLS={RELEASE_FLAGS}",
          f"-DCMAKE_MAKE_PROGRAM={_tool(tools, 'ninja')}",
          f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"])  # fmt: skip
    _run([_tool(tools, "cmake"), "--build", str(FOLDER), "--target", "_native"])
    (module,) = FOLDER.glob("_native*.so")
    return module


def compiler() -> str:
    """Which one compiled it, e.g. ``GNU 12.2.0``."""
    (file,) = FOLDER.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")
    text = file.read_text("utf-8")
    found = [
        re.search(rf'^set\(CMAKE_CXX_COMPILER_{name} "([^"]*)"\)', text, re.MULTILINE)
        for name in ("ID", "VERSION")
    ]
    return " ".join(match.group(1) for match in found if match is not None)


def _tool(folder: Path, name: str) -> str:
    """That of the virtual environment, else whatever is called so."""
    return str(folder / name) if (folder / name).exists() else name


def _run(command: list[str]) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SystemExit(f"{command[0]} is not there; `make bench-check` installs it.") from error
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")
    return result.stdout
