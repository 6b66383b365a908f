"""From MSL text to a shared library, kept on disk by everything that went into it."""

import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from .token_pass import KernelSignature, Parameter, rewrite
from .tokens import MetalSyntaxError

_HERE = Path(__file__).parent
SOURCE_NAME = "kernel.metal"
"""What the compiler takes the text for."""

# Floating point as the contract has it. Kernels read vectors of bytes: no strict aliasing.
_FLAGS = (
    *("-O2", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-fast-math"),
    *("-fno-exceptions", "-fno-rtti"),
)
_KERNEL_FLAGS = ("-Wno-attributes", "-Wno-unknown-pragmas", "-w", "-D__METAL_VERSION__=310")

_METAL_INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*<(?:metal_\w+|simd/simd\.h)>", re.MULTILINE
)


@dataclass(frozen=True)
class BuildOptions:
    """What changes the machine code.

    Parameters
    ----------
    instrumented : every access to memory asks the runtime.
    standard : of C++; Metal has 14 up to version 3.2 and 17 from version 4.
    ucontext : switch fibres the portable way.
    """

    instrumented: bool = False
    standard: str = "c++14"
    ucontext: bool = False


@dataclass(frozen=True)
class BuiltLibrary:
    """A loaded library and the kernels in it."""

    path: Path
    library: ctypes.CDLL
    runtime: ctypes.CDLL
    kernels: tuple[KernelSignature, ...]


def build(source: str, options: BuildOptions) -> BuiltLibrary:
    """Compile MSL, or find it compiled.

    Raises
    ------
    SyntaxError : with the compiler's message.
    """
    runtime = _runtime(options)
    flags = [*_FLAGS, *_KERNEL_FLAGS, f"-std={options.standard}"]
    if options.instrumented:
        flags += ["-fsanitize=thread", "-DEMU_INSTRUMENTED", "-g1"]  # -g1: lines
    key = _key("kernel", source, *flags, runtime.stem)
    library = _folder() / f"{key}.so"
    signatures = library.with_suffix(".json")
    if not (signatures.exists() and library.exists()):
        kernels = _compile_kernel(source, flags, runtime, library)
        with _atomically(signatures) as path:
            path.write_text(json.dumps([asdict(kernel) for kernel in kernels]), "utf-8")
    return BuiltLibrary(library, _load(library), _load(runtime), _read_signatures(signatures))


def _read_signatures(path: Path) -> tuple[KernelSignature, ...]:
    return tuple(
        KernelSignature(one["name"], tuple(Parameter(**buffer) for buffer in one["buffers"]))
        for one in json.loads(path.read_text("utf-8"))
    )


def _compile_kernel(
    source: str, flags: Sequence[str], runtime: Path, library: Path
) -> list[KernelSignature]:
    if not source.isascii():
        raise SyntaxError("the source has characters that are not ASCII")
    text = f'#line 1 "{SOURCE_NAME}"\n' + _METAL_INCLUDE.sub("", source)
    compile_by = [_compiler(), *flags]
    preprocessed = _run([*compile_by, "-E", "-x", "c++", "-"], text)
    try:
        cpp, kernels = rewrite(preprocessed)
    except MetalSyntaxError as error:
        message = f"{SOURCE_NAME}:{error.line}: error: {error.message}"
        raise SyntaxError(message) from None
    text = f'#include "metal_shim.h"\n#include "entry.h"\n#line 1 "{SOURCE_NAME}"\n{cpp}'
    with _atomically(library) as path:
        objects = path.with_suffix(".o")
        try:
            _run([*compile_by, f"-I{_HERE}", "-c", "-x", "c++", "-", "-o", str(objects)], text)
            # Without -fsanitize=thread: the hooks that instrumented code calls are the runtime's.
            names = [str(objects), str(runtime), "-lm"]
            _run([_compiler(), "-shared", *names, "-o", str(path)], "")
        finally:
            objects.unlink(missing_ok=True)
    return kernels


# --- the runtime ----------------------------------------------------------------------------------


@lru_cache
def _runtime(options: BuildOptions) -> Path:
    flags = [*_FLAGS, "-std=c++17", "-Wall", "-Wextra", "-fvisibility=hidden"]
    if options.ucontext:
        flags.append("-DEMU_UCONTEXT")
    sources = sorted(_HERE.glob("*.cpp"))
    library = _folder() / f"{_key('runtime', _headers_and_sources(), *flags)}.so"
    if not library.exists():
        with _atomically(library) as path:
            names = [str(source) for source in sources]
            _run([_compiler(), *flags, "-shared", *names, "-ldl", "-o", str(path)], "")
    return library


@lru_cache
def _headers_and_sources() -> str:
    patterns = ("*.h", "*.cpp", "token*.py", "build.py")
    files = sorted(path for pattern in patterns for path in _HERE.glob(pattern))
    return "".join(f"{path.name}\n{path.read_text('utf-8')}" for path in files)


# --- files and processes --------------------------------------------------------------------------


@lru_cache
def _load(path: Path) -> ctypes.CDLL:
    # The interpreter lock stays held: the state of a dispatch is global.
    return ctypes.PyDLL(str(path))


@lru_cache
def _compiler() -> str:
    for name in ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise RuntimeError("the Metal emulator needs a C++ compiler: c++, g++ or clang++")


@lru_cache
def _compiler_version() -> str:
    return _run([_compiler(), "--version"], "")


def _key(*parts: str) -> str:
    text = "\0".join([_compiler_version(), *parts])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


@lru_cache
def _folder() -> Path:
    """This user's own: what lies there is executed."""
    folder = Path(tempfile.gettempdir()) / f"torchgbdt-metal-emulator-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise RuntimeError(f"{folder} belongs to somebody else, or others may write there")
    return folder


class _atomically:
    """A path to write to; it becomes ``target`` at the end, in one step, or nothing is left."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._path = target.with_name(f"{target.stem}-{os.getpid()}-{os.urandom(4).hex()}")

    def __enter__(self) -> Path:
        return self._path

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._path.replace(self._target)
        else:
            self._path.unlink(missing_ok=True)


def _run(command: Sequence[str], text: str) -> str:
    english = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, env=english
    )
    if done.returncode != 0:
        raise SyntaxError(done.stderr.strip() or f"{command[0]} failed")
    return done.stdout
