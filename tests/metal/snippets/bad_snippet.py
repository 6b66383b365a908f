"""What a bad snippet is: a Metal text with one mistake, and who must notice it."""

from dataclasses import dataclass
from typing import Literal

from torchgbdt.backends import metal_library

Pass = Literal["lint", "address spaces", "C++14"]


@dataclass(frozen=True)
class BadSnippet:
    """says: words of the finding. source: without the prelude."""

    name: str
    caught_by: Pass
    says: str
    source: str

    @property
    def text(self) -> str:
        return assembled(self.source)


def assembled(source: str) -> str:
    """The text that metal_library would hand to Metal."""
    return metal_library._PRELUDE + source


def in_kernel(name: str, caught_by: Pass, says: str, statements: str) -> BadSnippet:
    """Statements of a kernel that has no mistake otherwise."""
    return BadSnippet(name, caught_by, says, KERNEL.format(statements=statements))


KERNEL = """\
[[max_total_threads_per_threadgroup(256)]] kernel void scale(
    device uint* numbers [[buffer(0)]], device float* floats [[buffer(1)]],
    device long* sums [[buffer(2)]], device atomic_uint* counts [[buffer(3)]],
    constant int& n [[buffer(4)]], uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]], uint group [[threadgroup_position_in_grid]]) {{
    threadgroup uint shared[256];
    threadgroup atomic_uint cells[256];
    shared[lane] = numbers[i] + n + group;
    atomic_store_explicit(&cells[lane], 0u, memory_order_relaxed);
    atomic_store_explicit(&counts[lane], 0u, memory_order_relaxed);
    floats[i] = float(sums[i]);
    {statements}
}}
"""
