"""The kernels that are shipped pass the lint and clang, in every variant."""

import re

import pytest
from metal.address_spaces import active_text, check_address_spaces, parse
from metal.msl_lint import check_file, check_variant, lint
from metal.shipped_variants import METAL, shipped_files, variants

from torchgbdt.backends.metal_library import assemble


def test_the_folder_of_kernels_is_found() -> None:
    assert shipped_files(), f"no kernel in {METAL}"


@pytest.mark.parametrize("file", shipped_files())
def test_a_shipped_file_passes(file: str) -> None:
    assert [str(one) for one in check_file(file)] == []


@pytest.mark.parametrize("file", shipped_files())
def test_all_variants_of_a_shipped_file_pass(file: str) -> None:
    of_file = variants(file)
    assert of_file
    found = {problem for constants in of_file for problem in check_variant(file, constants)}
    assert sorted(found) == []


def test_every_address_space_of_a_shipped_kernel_is_checked() -> None:
    text = assemble("reduce_histograms", variants("reduce_histograms")[0])
    text = re.sub("//.*", "", active_text(text, parse(text)))
    passed = []
    for found in re.finditer(r"\b(device|constant) (?!int& )", text):
        for space in ("", "threadgroup "):
            changed = text[: found.start()] + space + text[found.end() :]
            if not lint(changed) and not check_address_spaces(changed):
                passed.append(f"{space} for {found[0]}")
    assert passed == []
