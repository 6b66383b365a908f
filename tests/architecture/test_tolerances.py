"""Results are compared exactly; what is not takes its tolerance, and the reason, from one file."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from architecture.repository import ROOT, source_files

TOLERANCES = ROOT / "tests" / "support" / "tolerances.py"
# Of pytest, numpy, torch and math; the rest are what they call their arguments.
INEXACT = {"approx", "allclose", "assert_allclose", "assert_close", "isclose"}
INEXACT |= {"assert_almost_equal", "assert_array_almost_equal", "assert_approx_equal"}
INEXACT |= {"atol", "rtol", "abs_tol", "rel_tol"}
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def tolerances_in(code: str) -> list[int]:
    """Lines that compare inexactly, or assert that something lies below a small number."""
    return sorted({line for node in ast.walk(ast.parse(code)) for line in _found_at(node)})


def _found_at(node: ast.AST) -> Iterator[int]:
    name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None)
    if name in INEXACT:
        yield node.lineno
    if isinstance(node, ast.Assert):
        for part in ast.walk(node.test):
            if isinstance(part, ast.Compare) and any(isinstance(op, ORDER) for op in part.ops):
                yield from (inner.lineno for inner in ast.walk(part) if _is_small_literal(inner))


def _is_small_literal(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value < 0.01
    is_power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    return is_power and isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)


@pytest.mark.parametrize(
    "code",
    [
        "assert x == pytest.approx(y)",
        "np.testing.assert_allclose(x, y)",
        "assert math.isclose(x, y, rel_tol=SOME)",
        "torch.allclose(x, y, atol=1)",
        "assert abs(x - y) < 1e-3",
        "assert (abs(x - y) <= 0.001 * y).all()",
        "assert 2.0**-20 * y > abs(x - y)",
        "assert all(\n    abs(x - y) < 2**-20\n    for x in z\n)",
    ],
)
def test_a_tolerance_is_seen(code: str) -> None:
    assert tolerances_in(code) != []


def test_exact_comparisons_and_named_tolerances_are_none() -> None:
    exact = "assert x == 1e-9\nassert abs(x - y) <= LOSS_RISE * spread\nassert x < 0.6 * y"
    assert tolerances_in(exact) == []


def test_no_test_has_a_tolerance_of_its_own() -> None:
    found: dict[Path, list[int]] = {
        path.relative_to(ROOT): tolerances_in(path.read_text("utf-8"))
        for path in source_files()
        if path.is_relative_to(ROOT / "tests") and path.suffix == ".py" and path != TOLERANCES
    }
    assert len(found) > 50
    assert {path: lines for path, lines in found.items() if lines} == {}
