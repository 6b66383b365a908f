"""Worked examples: data so small that every number of the tree can be checked on a napkin.

Squared error throughout: g = prediction - label = baseline - y in the first round, h = 1.

    gain  = 0.5 * (GL^2/(HL + lambda) + GR^2/(HR + lambda) - G^2/(H + lambda)) - gamma
    value = -learning_rate * G / (H + lambda), as float32

``reg_lambda`` is mostly chosen so that denominators are powers of two or quotients are exact.
"""

import numpy as np
from support.worked_tree import NAN, Leaf, Split, WorkedTree

FOUR_ROWS = WorkedTree(
    # x = 0 1 2 3, y = 0 0 1 1: baseline 1/2, g = 1/2 1/2 -1/2 -1/2, lambda 1.
    # After x = 1: GL = 1, HL = 2, GR = -1, HR = 2, G = 0:
    #   gain = 1/2 * (1/3 + 1/3 - 0) = 1/3; leaves -1/3 and +1/3. Threshold (1 + 2) / 2.
    # After x = 0: GL = 1/2, HL = 1: 1/2 * (1/8 + 1/16 - 0) is less; after x = 2 likewise.
    # The children's rows all have the same g: no split.
    x=[[0], [1], [2], [3]],
    y=[0, 0, 1, 1],
    baseline=0.5,
    nodes=[Split(0, 1, 1.5, 1 / 3, 4), Leaf(-1 / 3, 2), Leaf(1 / 3, 2)],
    settings={"reg_lambda": 1.0, "max_depth": 2},
)

TWO_LEVELS = WorkedTree(
    # Two features; y = 0 2 8 14 at (x0, x1) = (0,0) (0,1) (1,0) (1,1); baseline 6,
    # g = 6 4 -2 -8, lambda 0.
    # Root, feature 0: GL = 10, GR = -10, H = 2 each: gain = 1/2 * (50 + 50 - 0) = 50.
    #       feature 1: GL = 4, GR = -4: gain = 1/2 * (8 + 8) = 8.
    # Left  (g 6, 4):   feature 1: 1/2 * (36 + 16 - 100/2) = 1, leaves -6 and -4.
    # Right (g -2, -8): feature 1: 1/2 * (4 + 64 - 100/2) = 9, leaves 2 and 8.
    # Feature 0 is constant below the root. No missing values: both sides are equally large, so
    # missing rows would go right.
    x=[[0, 0], [0, 1], [1, 0], [1, 1]],
    y=[0, 2, 8, 14],
    baseline=6.0,
    nodes=[
        Split(0, 0, 0.5, 50.0, 4),
        Split(1, 0, 0.5, 1.0, 2),
        Split(1, 0, 0.5, 9.0, 2),
        *(Leaf(-6.0, 1), Leaf(-4.0, 1), Leaf(2.0, 1), Leaf(8.0, 1)),
    ],
    settings={"reg_lambda": 0.0, "max_depth": 2},
)

LEARNING_RATE = WorkedTree(
    # As FOUR_ROWS with learning rate 1/4 and lambda 2: gain = 1/2 * (1/4 + 1/4) = 1/4,
    # leaves -+ 1/4 * 1/4.
    x=[[0], [1], [2], [3]],
    y=[0, 0, 1, 1],
    baseline=0.5,
    nodes=[Split(0, 1, 1.5, 0.25, 4), Leaf(-0.0625, 2), Leaf(0.0625, 2)],
    settings={"reg_lambda": 2.0, "max_depth": 2, "learning_rate": 0.25},
)

MISSING_VALUE = WorkedTree(
    # x = 1 2 missing missing, y = 0 4 4 4: baseline 3, g = 3 -1 -1 -1, lambda 0.
    # After x = 1, missing right: GL = 3, HL = 1; GR = -3, HR = 3:
    #   gain = 1/2 * (9 + 3 - 0) = 6.
    # After x = 1, missing left: GL = 1, HL = 3; GR = -1, HR = 1: 1/2 * (1/3 + 1) is less.
    # After x = 2 (values | missing), threshold +inf: GL = 2, GR = -2: 1/2 * (2 + 2) = 2 is less.
    x=[[1], [2], [NAN], [NAN]],
    y=[0, 4, 4, 4],
    baseline=3.0,
    nodes=[Split(0, 0, 1.5, 6.0, 4, missing_left=False), Leaf(-3.0, 1), Leaf(1.0, 3)],
    settings={"reg_lambda": 0.0, "max_depth": 2},
)

MISSING_LEFT = WorkedTree(
    # x = 1 2 missing missing, y = 0 4 0 0: baseline 1, g = 1 -3 1 1, lambda 0.
    # After x = 1, missing left: GL = 3, HL = 3; GR = -3, HR = 1: 1/2 * (3 + 9 - 0) = 6.
    x=[[1], [2], [NAN], [NAN]],
    y=[0, 4, 0, 0],
    baseline=1.0,
    nodes=[Split(0, 0, 1.5, 6.0, 4, missing_left=True), Leaf(-1.0, 3), Leaf(3.0, 1)],
    settings={"reg_lambda": 0.0, "max_depth": 2},
)

VALUES_AGAINST_MISSING = WorkedTree(
    # x = 7 7 missing missing, y = 0 0 2 2: baseline 1, g = 1 1 -1 -1, lambda 2.
    # The one value bin is the last one: threshold +inf. GL = 2, HL = 2, GR = -2, HR = 2:
    #   gain = 1/2 * (4/4 + 4/4 - 0) = 1; leaves -2/4 and 2/4.
    x=[[7], [7], [NAN], [NAN]],
    y=[0, 0, 2, 2],
    baseline=1.0,
    nodes=[Split(0, 0, np.inf, 1.0, 4), Leaf(-0.5, 2), Leaf(0.5, 2)],
    settings={"reg_lambda": 2.0, "max_depth": 1},
)

TIE_BETWEEN_FEATURES = WorkedTree(
    # FOUR_ROWS with the same column twice, then its mirror image: three bit-equal gains of 1/3,
    # and the lowest feature wins.
    x=[[0, 0, 3], [1, 1, 2], [2, 2, 1], [3, 3, 0]],
    y=[0, 0, 1, 1],
    baseline=0.5,
    nodes=[Split(0, 1, 1.5, 1 / 3, 4), Leaf(-1 / 3, 2), Leaf(1 / 3, 2)],
    settings={"reg_lambda": 1.0, "max_depth": 2},
)

TIE_BETWEEN_BINS = WorkedTree(
    # x = 0 1 2, y = 0 3 0: baseline 1, g = 1 -2 1, lambda 0.
    # After x = 0: GL = 1, HL = 1; GR = -1, HR = 2: 1/2 * (1 + 1/2 - 0) = 3/4.
    # After x = 1: GL = -1, HL = 2; GR = 1, HR = 1: the same, so the lower bin wins.
    # Right child, g -2 and 1: 1/2 * (4 + 1 - 1/2) = 9/4, leaves 2 and -1.
    # The first split leaves more rows on the right: missing rows would go there.
    x=[[0], [1], [2]],
    y=[0, 3, 0],
    baseline=1.0,
    nodes=[
        Split(0, 0, 0.5, 0.75, 3),
        Leaf(-1.0, 1),
        Split(0, 1, 1.5, 2.25, 2),
        *(Leaf(2.0, 1), Leaf(-1.0, 1)),
    ],
    settings={"reg_lambda": 0.0, "max_depth": 2},
)

TIE_BETWEEN_MISSING_SIDES = WorkedTree(
    # x = 0 1 missing, y = 0 2 1: baseline 1, g = 1 -1 0, lambda 0.
    # After x = 0, missing right: GL = 1, HL = 1; GR = -1, HR = 2: 1/2 * (1 + 1/2 - 0) = 3/4.
    # After x = 0, missing left:  GL = 1, HL = 2; GR = -1, HR = 1: the same, so right wins.
    x=[[0], [1], [NAN]],
    y=[0, 2, 1],
    baseline=1.0,
    nodes=[Split(0, 0, 0.5, 0.75, 3, missing_left=False), Leaf(-1.0, 1), Leaf(0.5, 2)],
    settings={"reg_lambda": 0.0, "max_depth": 1},
)

GAMMA_STOPS = WorkedTree(
    # TWO_LEVELS with gamma 8: the root gains 50 - 8, the right child 9 - 8, the left one would
    # gain 1 - 8 and stays a leaf of -(6 + 4)/2 = -5.
    x=TWO_LEVELS.x,
    y=TWO_LEVELS.y,
    baseline=6.0,
    nodes=[
        Split(0, 0, 0.5, 42.0, 4),
        Leaf(-5.0, 2),
        Split(1, 0, 0.5, 1.0, 2),
        *(Leaf(2.0, 1), Leaf(8.0, 1)),
    ],
    settings={"reg_lambda": 0.0, "max_depth": 2, "gamma": 8.0},
)

GAMMA_EQUALS_THE_GAIN = WorkedTree(
    # TWO_LEVELS with gamma 9: the right child gains 9 - 9 = 0, which is not > 0.
    x=TWO_LEVELS.x,
    y=TWO_LEVELS.y,
    baseline=6.0,
    nodes=[Split(0, 0, 0.5, 41.0, 4), Leaf(-5.0, 2), Leaf(5.0, 2)],
    settings={"reg_lambda": 0.0, "max_depth": 2, "gamma": 9.0},
)

MIN_SAMPLES_LEAF_STOPS = WorkedTree(
    # x = 0 1 2 3 4, y = 10 0 0 0 0: baseline 2, g = -8 2 2 2 2, lambda 0, two rows per leaf.
    # After x = 0 (not allowed): 1/2 * (64 + 16) = 40.
    # After x = 1: GL = -6, HL = 2; GR = 6, HR = 3: 1/2 * (18 + 12) = 15.
    # After x = 2: GL = -4, HL = 3; GR = 4, HR = 2: 1/2 * (16/3 + 8) is less.
    # The children hold 2 and 3 rows, too few for two leaves of 2.
    x=[[0], [1], [2], [3], [4]],
    y=[10, 0, 0, 0, 0],
    baseline=2.0,
    nodes=[Split(0, 1, 1.5, 15.0, 5), Leaf(3.0, 2), Leaf(-2.0, 3)],
    settings={"reg_lambda": 0.0, "max_depth": 3, "min_samples_leaf": 2},
)

MIN_CHILD_WEIGHT_STOPS = WorkedTree(
    # y = 0 6 6 with weights 1/2 1/4 1/4: baseline 3, g = w * (3 - y) = 3/2 -3/4 -3/4, h = w.
    # min_child_weight 1/2. After x = 0: HL = 1/2, HR = 1/2, allowed:
    #   gain = 1/2 * ((9/4)/(1/2) + (9/4)/(1/2) - 0) = 9/2; leaves -3 and 3.
    # After x = 1: HR = 1/4 is too little. The right child cannot be split either.
    x=[[0], [1], [2]],
    y=[0, 6, 6],
    baseline=3.0,
    nodes=[Split(0, 0, 0.5, 4.5, 3), Leaf(-3.0, 1), Leaf(3.0, 2)],
    settings={"reg_lambda": 0.0, "max_depth": 2, "min_child_weight": 0.5},
    weights=[0.5, 0.25, 0.25],
)

MIN_CHILD_WEIGHT_FORBIDS = WorkedTree(
    # The same with min_child_weight just above 1/2: nothing is allowed. The root is a leaf of
    # -G/H = -(3/2 - 3/4 - 3/4) / 1 = 0, and that is +0.
    x=[[0], [1], [2]],
    y=[0, 6, 6],
    baseline=3.0,
    nodes=[Leaf(0.0, 3)],
    settings={"reg_lambda": 0.0, "min_child_weight": float(np.nextafter(0.5, 1))},
    weights=[0.5, 0.25, 0.25],
)

EQUAL_RESIDUALS = WorkedTree(
    # All y are 1.1 and the baseline is given as 0: g = -float32(1.1) in all 11 rows, h = 1. So
    # GL*HR == GR*HL for every split, which is none. Lambda 1: leaf = 11 * float32(1.1) / 12.
    x=[[value] for value in range(11)],
    y=[1.1] * 11,
    baseline=0.0,
    nodes=[Leaf(11 * float(np.float32(1.1)) / 12, 11)],
    settings={"reg_lambda": 1.0, "baseline": 0.0},
)

EQUAL_RESIDUALS_LAMBDA_ZERO = WorkedTree(
    # Likewise with lambda 0. With c = float32(1.1), the split after x = 0 gains in real numbers
    # 1/2 * (c^2 + (10c)^2/10 - (11c)^2/11) = 0; float64 sees 2^-50, which must not be a split.
    x=EQUAL_RESIDUALS.x,
    y=EQUAL_RESIDUALS.y,
    baseline=0.0,
    nodes=[Leaf(float(np.float32(1.1)), 11)],
    settings={"reg_lambda": 0.0, "baseline": 0.0},
)

REGRESSION_TREES = {
    name.lower(): tree for name, tree in list(globals().items()) if isinstance(tree, WorkedTree)
}
"""name -> worked example."""
