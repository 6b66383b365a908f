"""One round: scales over all ranks, typed errors, and the order of calls."""

from typing import Any

import numpy as np
import pytest
from core.recording import RecordingBackend
from support.exact import assert_identical
from support.ranks import run_ranks
from support.runs import integer_thresholds, run_rows, run_settings

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.clock import PhaseClock
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.growth import TreeGrower, TreeLimits
from torchgbdt.core.histogram_plan import HistogramPlan
from torchgbdt.core.rounds import Booster
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.splits import SplitRules


class NoteRules(TreeGrower):
    """Keeps what each tree is grown with, and grows it."""

    def grow(self, root: Any, rules: SplitRules) -> Any:
        self.seen = [*getattr(self, "seen", []), (root, rules)]
        return super().grow(root, rules)


def booster(
    backend: OracleBackend,
    communicator: Communicator = SINGLE_RANK,
    trees_per_round: int = 1,
    **settings: Any,
) -> Booster:
    """A booster on a run of four rows in four bins, labels 4 0 0 -4."""
    thresholds = integer_thresholds([4])
    labels = np.array([4, 0, 0, -4], np.float32)
    rows = run_rows(np.arange(4)[:, None], labels)
    backend.prepare(rows, [], run_settings(thresholds, n_slots=2))
    checked = TrainerSettings(
        **{"min_samples_leaf": 1, "min_child_weight": 0, "reg_lambda": 0, **settings}
    )
    clock = PhaseClock()
    limits = TreeLimits(checked.max_depth, checked.learning_rate)
    grower = NoteRules(backend, communicator, HistogramPlan(2), limits, thresholds, clock)
    return Booster(backend, communicator, grower, checked, trees_per_round, clock)


def extremes(
    largest: tuple[float, float], smallest: float = 0.0, finite: bool = True
) -> GradientExtremes:
    return GradientExtremes(np.array([largest], np.float64), smallest, finite)


def answering(answer: GradientExtremes) -> RecordingBackend:
    def compute_gradients(arguments: Any, oracle: Any) -> GradientExtremes:
        oracle()
        return answer

    return RecordingBackend(compute_gradients=compute_gradients)


def two_trees_per_round() -> RecordingBackend:
    """Both trees see the gradients of output 0, and change nothing."""
    backend = RecordingBackend(
        compute_gradients=lambda *_: OracleBackend.compute_gradients(backend, 0),
        update_predictions=lambda *_: None,
    )
    return backend


# ------------------------------------------------------------------------------------ the calls


def test_a_round_goes_from_gradients_to_predictions() -> None:
    backend = RecordingBackend()
    one = booster(backend, max_depth=1)
    backend.calls.clear()
    (tree,) = one.boost(0)
    assert backend.names == [
        *("sample_rows", "compute_gradients", "round_gradients"),
        *("build_histograms", "subtract_histograms", "find_splits", "update_predictions"),
    ]
    assert backend.arguments("update_predictions") == [(tree, 0)]


def test_all_trees_of_a_round_are_grown_from_the_state_at_its_start() -> None:
    backend = two_trees_per_round()
    trees = booster(backend, trees_per_round=2, max_depth=1).boost(3)
    order = [name for name in backend.names if name in ("round_gradients", "update_predictions")]
    assert order == ["round_gradients"] * 2 + ["update_predictions"] * 2
    assert [output for (output,) in backend.arguments("compute_gradients")] == [0, 1]
    assert backend.arguments("update_predictions") == [(trees[0], 0), (trees[1], 1)]


@pytest.mark.parametrize(("round_index", "per_round", "expected"), [(0, 1, [0]), (3, 2, [6, 7])])
def test_trees_are_numbered_through_all_rounds(
    round_index: int, per_round: int, expected: list[int]
) -> None:
    backend = two_trees_per_round()
    booster(backend, trees_per_round=per_round).boost(round_index)
    assert [tree for (tree,) in backend.arguments("sample_rows")] == expected


def test_phases_of_a_round_are_timed() -> None:
    one = booster(OracleBackend())
    one.boost(0)
    assert {"gradients", "update_predictions", "search_level"} <= set(one.clock.seconds)


# ------------------------------------------------------------------------------- scales and rules


def test_scales_and_rules_of_a_tree_by_hand() -> None:
    one = booster(OracleBackend(), reg_lambda=0.25, gamma=0.5, min_child_weight=1.5)
    one.boost(0)
    (root, rules), *_ = one.grower.seen
    # max|g| = 4 = 1/2 * 2^3: 30 - 3; max h = 1 = 1/2 * 2^1: 29 - 1; 1.5 * 2^28 Hessian units.
    assert rules.scales.tolist() == [[27, 28]]
    assert rules.min_hessian.tolist() == [3 * 2**27]
    assert rules.scales.dtype == rules.min_hessian.dtype == np.int64
    assert (rules.reg_lambda, rules.gamma, rules.min_samples_leaf) == (0.25, 0.5, 1)
    assert (root.n_rows, root.count) == (4, 4)
    assert root.sums.tolist() == [[0, 4 * 2**28]]


def test_the_backend_rounds_with_the_scales_of_the_rules() -> None:
    backend = RecordingBackend()
    one = booster(backend)
    one.boost(0)
    assert_identical(backend.arguments("round_gradients")[0][0], one.grower.seen[0][1].scales)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_scales_and_totals_are_those_of_all_ranks(size: int) -> None:
    # Rank r reports gradients up to 4 * 2^r and Hessians up to 4^r: the last rank decides.
    def work(communicator: Communicator) -> tuple[Any, SplitRules]:
        rank = communicator.rank
        one = booster(answering(extremes((4 * 2.0**rank, 4.0**rank))), communicator)
        one.boost(0)
        return one.grower.seen[0]

    for root, rules in run_ranks(size, work):
        assert rules.scales.tolist() == [[27 - (size - 1), 28 - 2 * (size - 1)]]
        assert (root.n_rows, root.count) == (4, 4 * size)
        assert root.sums[0, 1] == size * 4 * 2 ** rules.scales[0, 1]


def test_no_gradient_at_all_has_scale_zero() -> None:
    one = booster(answering(extremes((0.0, 1.0), 1.0)))
    assert one._scales(extremes((0.0, 0.0)), 0).tolist() == [[0, 0]]


# -------------------------------------------------------------------------------------- errors


BAD = {
    "not finite": (extremes((1.0, 1.0), finite=False), "is NaN or infinite"),
    "nan": (extremes((np.nan, np.nan), np.nan, finite=False), "is NaN or infinite"),
    "infinite": (extremes((np.inf, 1.0), finite=False), "is NaN or infinite"),
    "negative": (extremes((1.0, 1.0), -1e-30), "a Hessian of tree 5 is negative; none may be."),
}


@pytest.mark.parametrize("kind", BAD)
def test_gradients_that_cannot_be_rounded_are_a_typed_error(kind: str) -> None:
    answer, message = BAD[kind]
    backend = answering(answer)
    one = booster(backend)
    with pytest.raises(InvalidDataError) as caught:
        one.boost(5)
    assert message in str(caught.value)
    assert "tree 5" in str(caught.value)
    assert "round_gradients" not in backend.names


@pytest.mark.parametrize("bad_rank", [0, 1, 2])
@pytest.mark.parametrize("kind", BAD)
def test_the_error_is_raised_on_every_rank(kind: str, bad_rank: int) -> None:
    answer, message = BAD[kind]

    def work(communicator: Communicator) -> str:
        good = extremes((1.0, 1.0), 1.0)
        backend = answering(answer if communicator.rank == bad_rank else good)
        one = booster(backend, communicator)
        with pytest.raises(InvalidDataError) as caught:
            one.boost(5)
        return str(caught.value)

    messages = run_ranks(3, work)
    assert len(set(messages)) == 1
    assert message in messages[0]


def test_a_nan_beside_a_negative_hessian_is_named_first() -> None:
    one = booster(answering(extremes((np.nan, 1.0), -1.0, finite=False)))
    with pytest.raises(InvalidDataError, match="NaN or infinite"):
        one.boost(0)


@pytest.mark.parametrize("smallest", [0.0, -0.0])
def test_a_hessian_of_zero_is_not_negative(smallest: float) -> None:
    booster(answering(extremes((4.0, 1.0), smallest))).boost(0)
