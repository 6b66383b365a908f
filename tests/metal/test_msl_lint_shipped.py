"""The kernels that are shipped pass the lint and clang, in every variant."""

import pytest
from metal.msl_lint import check_file, check_variant
from metal.shipped_variants import METAL, shipped_files, variants


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
