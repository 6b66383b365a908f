"""Rules for a file of csrc/metal, and where a finding is said to be."""

from unittest import mock

import pytest
from metal import msl_lint
from metal.msl_lint_text import assemble_with_places

from torchgbdt.backends import metal_library

GOOD_FILE = """\
// Doubles numbers.
//
// Constants:
//   HAS_LIMIT  0 or 1
#include "shared/fixed_point.h"

#define WIDTH 4

kernel void twice(device float* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
#if HAS_LIMIT
    a[i] = 2.0f * torchgbdt::flush_subnormals(a[i * WIDTH]);
#endif
}
"""

BAD_FILES = {
    "other_name": ("void twice", "void half_of", "half_of does not belong into twice.metal"),
    "no_kernel": ("kernel void", "void", "has no kernel"),
    "constant_not_listed": ("HAS_LIMIT  0", "HAS  0", "HAS_LIMIT is not among the constants"),
    "constant_in_code": ("2.0f", "FACTOR", "FACTOR is not among the constants"),
    "header_of_others": ('"shared/fixed_point.h"', "<metal_stdlib>", "unknown #include"),
    "header_that_is_not_there": ("fixed_point.h", "fixed.h", "unknown #include"),
    "header_behind_space": ('#include "', '#  include "', "unknown"),
    "comment_not_ascii": ("Doubles", "Doubles 2\u00d7", "is not ASCII"),
}


def test_a_good_file_passes() -> None:
    assert msl_lint.check_file("twice", GOOD_FILE) == []


@pytest.mark.parametrize(("old", "new", "says"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_caught(old: str, new: str, says: str) -> None:
    assert old in GOOD_FILE
    found = [str(one) for one in msl_lint.check_file("twice", GOOD_FILE.replace(old, new))]
    assert len(found) == 1, found
    assert says in found[0]


def test_constants_of_headers_are_listed_too() -> None:
    header = {
        "metal/wide.h": "// Wide.\n#define MORE 3\ninline int f() {\n    return WIDE + MORE;\n}\n"
    }
    text = GOOD_FILE.replace('"shared/fixed_point.h"', '"metal/wide.h"')
    with (
        mock.patch.object(msl_lint, "_read", header.__getitem__),
        mock.patch.object(msl_lint, "_is_there", header.__contains__),
    ):
        (found,) = msl_lint.check_file("twice", text)
        assert found.message.startswith("WIDE, of a header")
        assert (
            msl_lint.check_file("twice", text.replace("HAS_LIMIT  0", "HAS_LIMIT, WIDE  0")) == []
        )


def test_a_twin_may_share_a_file() -> None:
    twin = GOOD_FILE.replace("void twice", "void twice_more")
    assert msl_lint.check_file("twice", twin) == []


@pytest.fixture
def files() -> dict[str, str]:
    """What metal_library reads in place of csrc."""
    return {
        "metal/twice.metal": GOOD_FILE.replace("2.0f", "2.0"),
        "shared/fixed_point.h": '#pragma once\n#include "shared/portable.h"\n#define X \\\n  3\n'
        "namespace torchgbdt {\ninline float flush_subnormals(float x) {\n    return x;\n}\n"
        "inline float three() {\n    return exp(3.0f);\n}\n}\n",
        "shared/portable.h": "// nothing\n",
    }


@pytest.fixture
def read_from(files: dict[str, str]) -> object:
    with mock.patch.object(metal_library, "_read", files.__getitem__):
        yield


@pytest.mark.usefixtures("read_from")
def test_findings_name_the_file_and_line_that_they_come_from() -> None:
    found = msl_lint.check_variant("twice", {"HAS_LIMIT": 1})
    places = [one.partition(": ")[0] for one in found]
    assert places == [
        "shared/fixed_point.h:10",
        "metal/twice.metal:11",
        "shared/fixed_point.h:10",  # clang, with either dialect
        "shared/fixed_point.h:10",
    ]
    assert "2.0 is a double" in found[1]


@pytest.mark.usefixtures("read_from")
def test_what_a_variant_leaves_out_is_not_linted() -> None:
    found = msl_lint.check_variant("twice", {"HAS_LIMIT": 0})
    assert not any("twice.metal" in one for one in found)


@pytest.mark.usefixtures("read_from")
def test_places_are_of_the_text_that_is_compiled() -> None:
    constants: dict[str, int | str] = {"HAS_LIMIT": 1}
    assembled = assemble_with_places("twice", constants)
    assert assembled.text == metal_library.assemble("twice", constants)
    assert len(assembled.places) == len(assembled.text.splitlines())


def test_the_pragmas_are_missed() -> None:
    text = metal_library._PRELUDE
    assert msl_lint.lint(text) == []
    for line in text.splitlines()[:2]:
        (found,) = msl_lint.lint(text.replace(line + "\n", ""))
        assert "must begin with" in found.message
