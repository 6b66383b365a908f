"""The Metal kernels: one text per variant, compiled once, called with numbers as int32.

    csrc/metal/<file>.metal --assemble: prelude, constants, our headers--> text --compile_shader-->
    library --> Kernel

torch finds no headers of ours and takes neither macros nor function constants, so a variant is a
text of its own. What compiles the text is an argument: ``torch.mps.compile_shader``, or the
emulator of the tests.
"""

import copy
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, TypeAlias

from torchgbdt.backends.metal_turns import Turns
from torchgbdt.core.errors import BackendError

CompileShader: TypeAlias = Callable[[str], Any]
"""As ``torch.mps.compile_shader``: source text -> library, with kernels as attributes."""

MAX_WORDS = 1_024
"""Words that one list argument may have: Metal takes 4 KB by value."""

_PRELUDE = """\
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#include <metal_stdlib>
using namespace metal;
"""

_INCLUDE = re.compile(r'^#include "((?:shared|metal)/[a-z0-9_]+\.h)"$')


def assemble(file: str, constants: Mapping[str, int | str]) -> str:
    """The text of csrc/metal/<file>.metal that is compiled.

    Parameters
    ----------
    file : name without folder and ending.
    constants : macros that the file asks for at its top.
    """
    seen: set[str] = set()
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    return _PRELUDE + defines + _with_headers(f"metal/{file}.metal", seen)


def _with_headers(path: str, seen: set[str]) -> str:
    """A source with our headers in place of their first #include, each once."""
    lines = []
    for line in _read(path).splitlines(keepends=True):
        found = _INCLUDE.match(line.rstrip("\n"))
        if found is None:
            if line.strip() != "#pragma once":
                lines.append(line)
        elif found[1] not in seen:
            seen.add(found[1])
            lines.append(_with_headers(found[1], seen))
    return "".join(lines)


@lru_cache
def _read(path: str) -> str:
    source = resources.files("torchgbdt") / "kernels" / path
    return source.read_text(encoding="ascii")  # Metal's compiler is handed ASCII


class Kernel:
    """A compiled kernel function. Calls return when the work is queued, not when it is done."""

    def __init__(self, function: Any, name: str, lock: threading.RLock, turns: Turns) -> None:
        self._function = function
        self._name = name
        self._lock = lock
        self._turns = turns

    def __call__(
        self, *arguments: Any, threads: int | Sequence[int], group_size: int | Sequence[int]
    ) -> None:
        """Queue one dispatch.

        Parameters
        ----------
        arguments : in the order of the kernel's buffers, but for the last two, which tell the turn:
            a contiguous tensor on the device; then more of them, or ints and lists of
            1..MAX_WORDS ints, which arrive as int32 words; unsigned ones wrap.
        threads : number of threads, in one to three dimensions, each > 0.
        group_size : threads per threadgroup, in as many dimensions.
        """
        turns = self._turns
        word, turn = turns.word_on(arguments[0].device), turns.next_turn()
        passed = [_as_words(one) for one in (*arguments, word, turn)]
        casts = {i: "int32" for i, one in enumerate(passed) if isinstance(one, int | list)}
        with self._lock:  # torch's own caches are not safe to use from several threads
            try:
                self._function(*passed, threads=threads, group_size=group_size, arg_casts=casts)
            except Exception as error:  # of whatever kind: a lost dispatch must end the run
                raise BackendError(f"kernel {self._name!r} cannot be started: {error}") from error
        turns.add(self._name)


class MetalLibrary:
    """Compiled kernels, each text once.

    Parameters
    ----------
    compile_shader : ``torch.mps.compile_shader`` or what stands in for it.

    Attributes
    ----------
    turns : of all its kernels.
    """

    def __init__(self, compile_shader: CompileShader) -> None:
        self.turns = Turns()
        self._compile_shader = compile_shader
        self._lock = threading.RLock()
        self._libraries: dict[str, Any] = {}
        self._kernels: dict[Any, Kernel] = {}

    def with_turns(self, turns: Turns) -> "MetalLibrary":
        """The same compiled kernels, for another run: turns belong to one run, in one thread."""
        result = copy.copy(self)
        result.turns, result._kernels = turns, {}
        return result

    def kernel(
        self,
        file: str,
        function: str | None = None,
        constants: Mapping[str, int | str] | None = None,
    ) -> Kernel:
        """A kernel of csrc/metal/<file>.metal, compiled on first use.

        Parameters
        ----------
        function : its name; None where it is that of the file.

        Raises
        ------
        BackendError : it does not compile. There is no other way to do its work here.
        """
        name = function or file
        variant = (file, name, tuple((constants or {}).items()))
        with self._lock:
            if variant not in self._kernels:
                self._kernels[variant] = self._compile(file, name, constants or {})
            return self._kernels[variant]

    def _compile(self, file: str, name: str, constants: Mapping[str, int | str]) -> Kernel:
        source = assemble(file, constants)
        try:
            if source not in self._libraries:
                self._libraries[source] = self._compile_shader(source)
            function = getattr(self._libraries[source], name)
        except (SyntaxError, RuntimeError) as error:
            raise BackendError(
                f"Metal kernel {name!r} does not compile here: {error}. Please report this with "
                f"the versions of macOS and torch; backend='cpu' trains the same model on a copy "
                f"of the data."
            ) from error
        return Kernel(function, name, self._lock, self.turns)


def _as_words(argument: Any) -> Any:
    """Integers as torch passes them on: signed, of 32 bits."""
    if isinstance(argument, int):
        return _signed(argument)
    if isinstance(argument, list):
        if not 0 < len(argument) <= MAX_WORDS:
            raise ValueError(f"a list argument has 1..{MAX_WORDS} words; found {len(argument)}.")
        return [_signed(word) for word in argument]
    return argument


def _signed(word: int) -> int:
    if not -(2**31) <= word < 2**32:
        raise ValueError(f"{word} does not fit into a word of 32 bits.")
    return word - 2**32 if word >= 2**31 else word
