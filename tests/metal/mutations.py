"""Edits of a kernel's text that a test must notice."""

from collections.abc import Callable

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def without(text: str, occurrence: int = 0) -> Callable[[str], str]:
    """An edit that takes out one occurrence of a text."""

    def edit(source: str) -> str:
        parts = source.split(text)
        parts[occurrence : occurrence + 2] = [parts[occurrence] + parts[occurrence + 1]]
        return text.join(parts)

    return edit
