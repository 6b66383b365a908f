"""Every bad snippet is caught by the pass that it names, and for its mistake alone."""

import pytest
from metal.address_spaces import check_address_spaces, check_cpp14
from metal.msl_lint import lint
from metal.snippets.bad_kernels import BAD_KERNELS
from metal.snippets.bad_language import BAD_LANGUAGE
from metal.snippets.bad_memory import BAD_MEMORY
from metal.snippets.bad_snippet import BadSnippet, assembled, in_kernel
from metal.snippets.good_snippets import GOOD_SNIPPETS

PASSES = {"lint": lint, "address spaces": check_address_spaces, "C++14": check_cpp14}
BAD_SNIPPETS = [*BAD_LANGUAGE, *BAD_MEMORY, *BAD_KERNELS]


@pytest.mark.parametrize("bad", BAD_SNIPPETS, ids=lambda bad: bad.name)
def test_a_bad_snippet_is_caught(bad: BadSnippet) -> None:
    found = [str(one) for one in PASSES[bad.caught_by](bad.text)]
    assert any(bad.says in one for one in found), found


def test_names_of_bad_snippets_are_unique() -> None:
    names = [bad.name for bad in BAD_SNIPPETS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("source", GOOD_SNIPPETS.values(), ids=GOOD_SNIPPETS)
def test_a_good_snippet_passes(source: str) -> None:
    text = assembled(source)
    assert [*lint(text), *check_address_spaces(text), *check_cpp14(text)] == []


def test_the_kernel_around_bad_statements_is_good() -> None:
    text = in_kernel("nothing", "lint", "", "").text
    assert [*lint(text), *check_address_spaces(text), *check_cpp14(text)] == []
