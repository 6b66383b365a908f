"""Metal's own compiler on all that is shipped, and on the snippets that the lint was made from."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from metal.msl_lint_kernels import find_kernels
from metal.msl_lint_text import code_tokens
from metal.shipped_variants import shipped_files, variants
from metal.snippets.bad_kernels import BAD_KERNELS
from metal.snippets.bad_language import BAD_LANGUAGE
from metal.snippets.bad_memory import BAD_MEMORY
from metal.snippets.bad_snippet import assembled
from metal.snippets.good_snippets import GOOD_SNIPPETS

from torchgbdt.backends.metal_library import assemble

pytestmark = pytest.mark.mps

THREADGROUP_BYTES = 16 * 1024
GROUP_SIZE = 256
SIMDGROUP_WIDTH = 32


@pytest.mark.parametrize("file", shipped_files())
def test_a_shipped_file_compiles_in_all_variants(file: str) -> None:
    for constants in variants(file):
        text = assemble(file, constants)
        library = torch.mps.compile_shader(text)
        for kernel in find_kernels(code_tokens(text)):
            check_limits(getattr(library, kernel.name))


def check_limits(kernel: Any) -> None:
    assert kernel.max_threads_per_threadgroup >= GROUP_SIZE
    assert kernel.thread_execution_width == SIMDGROUP_WIDTH
    assert kernel.static_thread_group_memory_length <= THREADGROUP_BYTES


@pytest.mark.parametrize("source", GOOD_SNIPPETS.values(), ids=GOOD_SNIPPETS)
def test_what_the_lint_calls_good_compiles(source: str) -> None:
    torch.mps.compile_shader(assembled(source))


def test_what_the_lint_refuses_is_told_apart(print_report: Callable[[str], None]) -> None:
    """Some of it Metal compiles: not portable, or a convention of ours. Told, not asserted."""
    snippets = [*BAD_LANGUAGE, *BAD_MEMORY, *BAD_KERNELS]
    compiled = [one.name for one in snippets if compiles(one.text)]
    print_report(f"Metal compiles {len(compiled)} of {len(snippets)} refused snippets: {compiled}")


def compiles(text: str) -> bool:
    try:
        torch.mps.compile_shader(text)
    except (SyntaxError, RuntimeError, UnicodeError):
        return False
    return True
