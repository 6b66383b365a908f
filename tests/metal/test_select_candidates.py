"""Joining the candidates of a node's features, against a plain loop."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatorOptions
from metal.mutations import BARRIER, without
from metal.split_searches import STALE, kernel_library

from torchgbdt.backends.metal_library import MetalLibrary, assemble
from torchgbdt.backends.split_candidates import (
    CANDIDATE_WORDS,
    MAX_CANDIDATES,
    RESULT_WORDS,
    SUMMARY_WORDS,
)
from torchgbdt.core.arrays import AnyArray

NONCE = 99
OVERFLOW, FAULT = -1, -2

Candidate = tuple[float, int, int, int, int]
"""Upper rank, code, and of the left side count, gradient and Hessian."""


@dataclass(frozen=True)
class Feature:
    """What scan_splits says about a feature of a node; ``mark`` instead of a number, or None."""

    lower: float
    candidates: list[Candidate] = field(default_factory=list)
    mark: int | None = None
    nonce: int = NONCE
    upper: float = 0.0


@dataclass(frozen=True)
class Node:
    """A node's features, and its gradient and Hessian."""

    features: list[Feature]
    sums: tuple[int, int] = (0, 2**61)


def words_of(values: list[int]) -> list[int]:
    """64-bit numbers as two words each, low first."""
    words: list[int] = np.array(values, "<i8").view("<i4").tolist()
    return words


def bits(rank: float) -> int:
    return int(np.float32(rank).view(np.int32))


def select(nodes: list[Node], library: MetalLibrary | None = None) -> AnyArray:
    """Results of the kernel, int32 (n_nodes, RESULT_WORDS)."""
    n_features = len(nodes[0].features)
    summaries = np.full((len(nodes), n_features, SUMMARY_WORDS), STALE, np.int32)
    shape = (len(nodes), n_features, MAX_CANDIDATES, CANDIDATE_WORDS)
    candidates = np.full(shape, STALE, np.int32)
    for i, node in enumerate(nodes):
        for f, feature in enumerate(node.features):
            n = len(feature.candidates) if feature.mark is None else feature.mark
            summaries[i, f] = (bits(feature.lower), bits(feature.upper), n, feature.nonce)
            for k, (upper, code, *sums) in enumerate(feature.candidates):
                candidates[i, f, k] = (bits(upper), code, *words_of(sums))
    results = torch.full((len(nodes), RESULT_WORDS), STALE, dtype=torch.int32)
    search = [len(nodes), n_features, 0, 0, 1, 0, 1, 0, NONCE]
    (library or kernel_library()).kernel("select_candidates")(
        torch.from_numpy(summaries),
        torch.from_numpy(candidates),
        results,
        search,
        [word for node in nodes for word in words_of(list(node.sums))],
        threads=256 * len(nodes),
        group_size=256,
    )
    return results.numpy()


def expected_result(node: Node) -> list[int]:
    """The same in a plain loop."""
    enough = max(feature.lower for feature in node.features)
    kept: list[list[int]] = []
    n = 0
    for f, feature in enumerate(node.features):
        if feature.mark is None:
            for upper, code, count, gradient, hessian in feature.candidates:
                right = (node.sums[0] - gradient, node.sums[1] - hessian)
                tied = any(one[-2:] in ([gradient, hessian], [*right]) for one in kept)
                if upper >= enough and not tied:
                    kept.append([f, code, count, gradient, hessian])
        elif feature.mark == OVERFLOW and feature.upper >= enough:
            n = OVERFLOW
    n = OVERFLOW if len(kept) > MAX_CANDIDATES else n or len(kept)
    faulty = any(one.mark == FAULT or one.nonce != NONCE for one in node.features)
    words = [n, int(faulty), NONCE, 0]
    for feature_, code, *sums in kept if n != OVERFLOW else []:
        words += [feature_, code, *words_of(sums)]
    return words + [0] * (RESULT_WORDS - len(words))


def assert_selected(nodes: list[Node], library: MetalLibrary | None = None) -> AnyArray:
    results = select(nodes, library)
    assert results.tolist() == [expected_result(node) for node in nodes]
    return results


# -------------------------------------------------------------------------------------- by hand


def one(upper: float, gradient: int = 1, hessian: int = 1, code: int = 0) -> Candidate:
    return (upper, code, 5, gradient, hessian)


def number(*features: Feature, sums: tuple[int, int] = (0, 2**61)) -> int:
    """Of candidates, after the whole result has been compared."""
    return int(assert_selected([Node(list(features), sums)])[0, 0])


def test_candidates_reach_the_largest_lower_rank_of_all_features() -> None:
    assert number(Feature(1.0, [one(1.5)]), Feature(2.0, [one(2.5, 2)])) == 1
    assert number(Feature(1.0, [one(2.0)]), Feature(2.0, [one(2.5, 2)])) == 2
    assert number(Feature(1.0, [one(1.9999999)]), Feature(2.0, [one(2.5, 2)])) == 1
    assert number(Feature(3.0, [])) == 0
    assert number(Feature(0.0, []), Feature(0.0, [])) == 0


def test_of_equal_left_sides_only_the_first_is_kept() -> None:
    assert number(Feature(1.0, [one(1.5, 7, 3), one(1.4, 7, 3)]), Feature(1.0, [one(2, 7, 3)])) == 1
    assert number(Feature(1.0, [one(1.5, 7, 3)]), Feature(1.0, [one(1.5, 7, 4)])) == 2
    assert number(Feature(1.0, [one(1.5, 7, 3)]), Feature(1.0, [one(1.5, 7 + 2**32, 3)])) == 2


def test_a_right_side_that_equals_an_earlier_left_side_is_tied() -> None:
    features = (Feature(1.0, [one(1.5, 7, 3)]), Feature(1.0, [one(1.5, -17, 97)]))
    assert number(*features, sums=(-10, 100)) == 1
    assert number(*features, sums=(-10, 101)) == 2
    assert number(*features, sums=(-11, 100)) == 2


def test_there_is_room_for_eight() -> None:
    features = [Feature(1.0, [one(1.5, i), one(1.5, i, 2)]) for i in range(5)]
    assert number(*features[:4]) == 8
    assert number(*features) == OVERFLOW
    assert number(*features[:4], features[0]) == 8


def test_copies_of_a_column_take_no_room() -> None:
    assert number(*[Feature(1.0, [one(1.5, 3), one(1.5, 4)])] * 700) == 2


def test_an_overflow_of_a_feature_counts_only_where_it_reaches_the_largest_lower_rank() -> None:
    overflow = Feature(1.0, [], OVERFLOW, upper=1.5)
    assert number(overflow, Feature(1.5, [one(1.6)])) == OVERFLOW
    assert number(overflow, Feature(1.6, [one(1.7)])) == 1
    assert number(Feature(1.0, [one(1.6)]), *[Feature(0.0)] * 299, overflow) == OVERFLOW


def test_faults_of_any_feature_are_passed_on() -> None:
    good = Feature(1.0, [one(1.5)])
    for bad in (Feature(1.0, [], FAULT), Feature(1.0, [one(1.5)], nonce=NONCE - 1)):
        for features in ([bad], [good, bad], [*[good] * 299, bad], [bad, *[good] * 299]):
            results = assert_selected([Node([good] * len(features)), Node(features)])
            assert results[:, 1].tolist() == [0, 1]


# ------------------------------------------------------------------------------------- at random


def random_nodes(seed: int, n_nodes: int, n_features: int) -> list[Node]:
    """Few distinct ranks and sums, so that ties and overflows are common."""
    rng = np.random.default_rng(seed)
    nodes = []
    for _ in range(n_nodes):
        features = []
        for _ in range(n_features):
            n = rng.integers(0, 4)
            sums = rng.integers(0, 4, (n, 2)).tolist()
            ranks = rng.choice([1.5, 1.75, 1.85, 1.95], n).tolist()
            codes = np.sort(rng.integers(0, 1024, n)).tolist()
            listed = [
                (r, code, code + 1, *s) for r, code, s in zip(ranks, codes, sums, strict=True)
            ]
            features.append(Feature(float(rng.choice([1.0, 1.2, 1.6, 1.8, 1.9])), listed))
        if rng.random() < 0.1:
            features[-1] = Feature(1.0, [], OVERFLOW, upper=float(rng.choice([1.0, 1.9])))
        nodes.append(Node(features, (int(rng.integers(0, 5)), int(rng.integers(3, 6)))))
    return nodes


OPTIONS = {
    "ascending": EmulatorOptions(),
    "shuffled": EmulatorOptions(shuffle_seed=1),
    "512 threads": EmulatorOptions(shuffle_seed=2, max_total_threads=512),
    "flushing": EmulatorOptions(shuffle_seed=3, flush_subnormals=True),
    "checked": EmulatorOptions(shuffle_seed=4, checked=True),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_selected_as_by_a_plain_loop(options: EmulatorOptions) -> None:
    library = kernel_library(options)
    for seed, (n_nodes, n_features) in enumerate([(20, 1), (20, 3), (10, 10), (3, 70)]):
        assert_selected(random_nodes(seed, n_nodes, n_features), library)


# --------------------------------------------------------------------- whether these tests bite


def edited_library(edit: Callable[[str], str]) -> MetalLibrary:
    """The kernel with its text edited, on a device that shuffles."""
    device = EmulatedDevice(EmulatorOptions(shuffle_seed=1))
    return MetalLibrary(lambda source: device.compile_shader(edit(source)))


def is_wrong(library: MetalLibrary) -> bool:
    """Whether some results differ from the plain loop's."""
    few = [node for seed in range(8) for node in random_nodes(seed, 8, 9)]
    # 8 and 9 different candidates, over and over in 72 features.
    many = [Node([Feature(1.0, [one(1.5, i % n)]) for i in range(72)]) for n in (8, 9)]
    return any(
        select(nodes, library).tolist() != [expected_result(node) for node in nodes]
        for nodes in (few, many)
    )


@pytest.mark.parametrize("place", range(3))
def test_a_missing_barrier_is_seen(place: int) -> None:
    assert not is_wrong(edited_library(lambda source: source))
    assert is_wrong(edited_library(without(BARRIER, place)))


def test_there_are_no_more_barriers() -> None:
    assert assemble("select_candidates", {}).count(BARRIER) == 3
    assert assemble("scan_splits", {"CONSTANT_HESSIAN": 0}).count("barrier(") == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" && first == NO_POSITION", ""),  # the last of a tie
        ("n_chosen > MAX_CANDIDATES", "n_chosen >= MAX_CANDIDATES"),
        ("uint(words[0]) >= enough", "uint(words[0]) > enough"),
        ("are_equal(left, subtract(parent, other_left))", "false"),
        ("uint(words[1]) >= enough", "true"),
    ],
)
def test_a_change_is_seen(old: str, new: str) -> None:
    exact = [Node([Feature(2.0, [one(2.0), one(2.5, 3)])])]
    assert old in assemble("select_candidates", {})
    library = edited_library(lambda source: source.replace(old, new, 1))
    wrong = select(exact, library).tolist() != [expected_result(exact[0])]
    assert wrong or is_wrong(library)
