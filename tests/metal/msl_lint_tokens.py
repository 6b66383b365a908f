"""Rules of the lint that need no types: words, numbers and preprocessor lines.

Metal refuses most of this; the rest is not the same on every device, or cannot be used through
torch.
"""

import re
from collections.abc import Iterator

from metal.msl_lint_text import Finding, Token

ADDRESS_SPACES = {"device", "constant", "threadgroup", "thread"}

_NOT_IN_METAL = "is not in Metal"
_NOT_PORTABLE = "is not the same bits on every device"

_WORDS = {
    "double": _NOT_IN_METAL,
    "virtual": _NOT_IN_METAL,
    "override": _NOT_IN_METAL,
    "new": _NOT_IN_METAL,
    "delete": _NOT_IN_METAL,
    "goto": _NOT_IN_METAL,
    "try": _NOT_IN_METAL,
    "catch": _NOT_IN_METAL,
    "throw": _NOT_IN_METAL,
    "noexcept": _NOT_IN_METAL,
    "dynamic_cast": _NOT_IN_METAL,
    "typeid": _NOT_IN_METAL,
    "thread_local": _NOT_IN_METAL,
    "asm": _NOT_IN_METAL,
    "vertex": "is a word of Metal for other things than computing",
    "fragment": "is a word of Metal for other things than computing",
    "half": _NOT_PORTABLE,
    "bfloat": _NOT_PORTABLE,
    "fast": _NOT_PORTABLE,
    "precise": _NOT_PORTABLE,
    "atomic_float": "floats that are added in any order differ from run to run",
    "atomic_ulong": "only the newest devices have 64-bit atomics, and none can add",
    "atomic_bool": "use atomic_uint",
    "atomic_thread_fence": "threadgroups hand nothing to each other within a dispatch",
    "host_name": "the emulator knows no explicit instantiations: make variants by #define",
    "function_constant": "torch passes no function constants: make variants by #define",
}

# `fast` and `precise` are fine as names of ours: only as namespaces are they refused.
_NAMESPACES = {"fast", "precise"}

_FLOAT_FUNCTIONS = set(
    re.findall(
        r"\w+",
        """
        exp exp2 exp10 log log2 log10 log1p pow powr sqrt rsqrt fma mad sin cos tan sinh cosh tanh
        asin acos atan atan2 asinh acosh atanh sincos sinpi cospi fmod fract fmin fmax fabs ceil
        trunc round mix step smoothstep saturate ldexp frexp modf fdim copysign isnan isinf
        isfinite isnormal signbit length distance normalize dot cross reflect divide
        """,
    )
)

_UNSUFFIXED = re.compile(
    r"(\d+\.\d*|\.\d+)([eE][+-]?\d+)?[lL]?|\d+[eE][+-]?\d+[lL]?|0[xX][\da-fA-F.]+[pP][+-]?\d+[lL]?"
)

_PRAGMAS = ("#pragma METAL fp math_mode(safe)", "#pragma METAL fp contract(off)")


def check_tokens(found: list[Token]) -> Iterator[Finding]:
    """Words and numbers that may not stand where they do. found: without what #if leaves out."""
    padded = [*found, *[Token("\n", 0)] * 2]
    previous = Token("\n", 0)
    for token, after, second in zip(padded, padded[1:], padded[2:], strict=False):
        for message in _refused(previous.text, token, after.text, second.text):
            yield Finding(token.line, message)
        previous = token


def _refused(before: str, token: Token, after: str, second: str) -> Iterator[str]:
    text = token.text
    is_function = after == "(" and before not in (".", "->")
    if text in _NAMESPACES:
        if after == "::":
            yield f"{text}:: {_WORDS[text]}"
    elif text in _WORDS:
        yield f"{text}: {_WORDS[text]}"
    elif text == "std" and after == "::":
        yield f"std:: {_NOT_IN_METAL}"
    elif text == "long" and after == "long":
        yield f"long long {_NOT_IN_METAL}: long has 64 bits"
    elif text == "if" and after == "constexpr":
        yield f"if constexpr {_NOT_IN_METAL} before version 4"
    elif text == "atomic" and after == "<" and second not in ("int", "uint"):
        yield f"atomic<{second}>: only atomic_int and atomic_uint are everywhere, and exact"
    elif text.startswith("memory_order_") and text != "memory_order_relaxed":
        yield f"{text}: Metal has memory_order_relaxed only"
    elif text.startswith("simd_shuffle_and_fill"):
        yield f"{text}: not on every device"
    elif text in _FLOAT_FUNCTIONS and is_function:
        yield f"{text}() {_NOT_PORTABLE}: only + - * / rint floor min max abs select are"
    elif text in ADDRESS_SPACES and not (after[0].isalpha() or after[0] == "_"):
        yield f"{text} is a word of Metal: it stands before a type, and names nothing"
    elif text == "auto" and after in ("&", "*") and before not in ADDRESS_SPACES | {"const"}:
        yield f"auto{after} without address space"
    elif token.is_number and _UNSUFFIXED.fullmatch(text):
        yield f"{text} is a double in C++: write {text.rstrip('lL')}f"


def check_directives(text: str) -> Iterator[Finding]:
    """The prelude's pragmas, and no others; no #include but Metal's own. text: as assembled."""
    lines = text.split("\n")
    if tuple(lines[: len(_PRAGMAS)]) != _PRAGMAS:
        yield Finding(1, f"the text must begin with {' and '.join(_PRAGMAS)}")
    for number, line in enumerate(lines, start=1):
        words = line.replace("#", "# ", 1).split()
        if words[:2] == ["#", "include"] and words[2:] != ["<metal_stdlib>"]:
            yield Finding(number, f"unknown {line.strip()}: torch finds no headers of ours")
        if words[:2] == ["#", "import"]:
            yield Finding(number, "#import: use #include")
        if words[:2] == ["#", "pragma"] and number > len(_PRAGMAS) and "unroll" not in words:
            yield Finding(number, f"unknown {line.strip()}")


def check_ascii(text: str) -> Iterator[Finding]:
    """Torch hands Metal the text as ASCII."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.isascii():
            strange = next(one for one in line if not one.isascii())
            yield Finding(number, f"{strange!r} is not ASCII")
