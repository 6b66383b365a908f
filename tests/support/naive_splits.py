"""The best split of one node, one candidate after the other, in Python numbers.

    gain = (0.5 * ((score(left) + score(right)) - score(parent))) - gamma
    score(G, H) = G*G / (H + lambda), 0 where the denominator is 0

Written from design rules, not from the code it is compared with.
"""

import math
from collections.abc import Iterator
from typing import Any

from torchgbdt.core.splits import SplitRules

Sums = list[list[int]]
"""[[G, H] of each output], fixed point."""


def score(sums: list[int], scales: list[int], reg_lambda: float) -> float:
    gradient, hessian = (math.ldexp(float(q), -s) for q, s in zip(sums, scales, strict=True))
    denominator = hessian + reg_lambda
    return 0.0 if denominator == 0 else gradient * gradient / denominator


def gain(left: Sums, right: Sums, parent: Sums, rules: SplitRules) -> float:
    total = 0.0
    for k, scales in enumerate(rules.scales.tolist()):
        l_score, r_score, p_score = (
            score(sums[k], scales, rules.reg_lambda) for sums in (left, right, parent)
        )
        total += (l_score + r_score) - p_score
    return 0.5 * total - rules.gamma


def may_split(left: Sums, right: Sums, counts: tuple[int, int], rules: SplitRules) -> bool:
    """Enough rows and Hessian on both sides, and not the same -G/H on both."""
    if min(counts) < rules.min_samples_leaf:
        return False
    counted = 0
    for (_, left_h), (_, right_h), needed in zip(left, right, rules.min_hessian, strict=True):
        if left_h + right_h == 0:
            continue
        counted += 1
        if min(left_h, right_h) <= 0 or min(left_h, right_h) < needed:
            return False
    same_ratio = all(
        left_g * right_h == right_g * left_h
        for (left_g, left_h), (right_g, right_h) in zip(left, right, strict=True)
    )
    return counted > 0 and not same_ratio


def candidates(cells: list[list[int]]) -> Iterator[tuple[int, bool, list[int]]]:
    """(split bin, missing goes left, left words) of one feature, in the order that wins ties."""
    missing = cells[-1]
    n_value_bins = len(cells) - 1
    running = [0] * len(missing)
    for split_bin in range(n_value_bins):
        running = [a + b for a, b in zip(running, cells[split_bin], strict=True)]
        if split_bin == n_value_bins - 1 and missing[0] == 0:
            return
        yield split_bin, False, running
        if missing[0] > 0:
            yield split_bin, True, [a + b for a, b in zip(running, missing, strict=True)]


def best_split(
    features: list[list[list[int]]], count: int, parent: Sums, rules: SplitRules
) -> tuple[dict[str, Any], Sums] | None:
    """Fields of the winning SplitRecord and its left sums; None if nothing gains.

    Parameters
    ----------
    features : for each feature, for each code (the missing one last), [count, G..., H...].
    """
    best: tuple[dict[str, Any], Sums] | None = None
    best_gain = 0.0
    for feature, cells in enumerate(features):
        for split_bin, missing_left, words in candidates(cells):
            outputs = len(parent)
            left = [[words[1 + k], words[1 + outputs + k]] for k in range(outputs)]
            right = [
                [p - q for p, q in zip(*ab, strict=True)] for ab in zip(parent, left, strict=True)
            ]
            counts = (words[0], count - words[0])
            if not may_split(left, right, counts, rules):
                continue
            this_gain = gain(left, right, parent, rules)
            if this_gain > best_gain:
                best_gain = this_gain
                side = missing_left if cells[-1][0] > 0 else counts[0] > counts[1]
                record = {
                    "gain": this_gain,
                    "left_count": counts[0],
                    "right_count": counts[1],
                    "feature": feature,
                    "split_bin": split_bin,
                    "found": True,
                    "missing_left": side,
                }
                best = record, left
    return best
