"""Worked examples of logistic and softmax, whose first gradients are fractions.

Logistic at log-odds 0:  sigmoid = 1/2, so g = 1/2 - y and h = 1/2 * 1/2 = 1/4.
Softmax at equal shares: g = 1/K - [y = k] and h = 2 * 1/K * (K - 1)/K, whatever the shares are.

Gains and leaf values as in hand_trees.py; each class has a tree of its own.
"""

import math

import numpy as np
from support.worked_tree import NAN, Leaf, Split, WorkedTree

LOGISTIC_FOUR_ROWS = WorkedTree(
    # x = 0 1 2 3, y = 0 0 1 1: log-odds ln(2/2) = 0, g = 1/2 1/2 -1/2 -1/2, h = 1/4, lambda 1.
    # After x = 1: GL = 1, HL = 1/2, GR = -1, HR = 1/2, G = 0:
    #   gain = 1/2 * (1/(3/2) + 1/(3/2) - 0) = 2/3; leaves -1/(3/2) = -2/3 and 2/3.
    # After x = 0: GL = 1/2, HL = 1/4, GR = -1/2, HR = 3/4:
    #   1/2 * ((1/4)/(5/4) + (1/4)/(7/4)) = 6/35 is less; after x = 2 likewise.
    # The children's rows all have the same g and h: no split.
    x=[[0], [1], [2], [3]],
    y=[0, 0, 1, 1],
    baseline=0.0,
    nodes=[Split(0, 1, 1.5, 2 / 3, 4), Leaf(-2 / 3, 2), Leaf(2 / 3, 2)],
    settings={"objective": "logistic", "reg_lambda": 1.0, "max_depth": 2},
    hessian=0.25,
)

LOGISTIC_GIVEN_BASELINE = WorkedTree(
    # y = 1 0 0 0 with a given baseline of 0: g = -1/2 1/2 1/2 1/2, h = 1/4, lambda 0.
    # After x = 0: GL = -1/2, HL = 1/4; GR = 3/2, HR = 3/4; G = 1, H = 1:
    #   gain = 1/2 * ((1/4)/(1/4) + (9/4)/(3/4) - 1/1) = 1/2 * (1 + 3 - 1) = 3/2; leaves 2 and -2.
    # After x = 1: GL = 0, GR = 1, HR = 1/2: 1/2 * (0 + 2 - 1) = 1/2 is less; after x = 2:
    #   GL = 1/2, HL = 3/4, GR = 1/2, HR = 1/4: 1/2 * (1/3 + 1 - 1) = 1/6 is less.
    x=[[0], [1], [2], [3]],
    y=[1, 0, 0, 0],
    baseline=0.0,
    nodes=[Split(0, 0, 0.5, 1.5, 4), Leaf(2.0, 1), Leaf(-2.0, 3)],
    settings={"objective": "logistic", "reg_lambda": 0.0, "max_depth": 1, "baseline": 0.0},
    hessian=0.25,
)

LOGISTIC_WEIGHTS = WorkedTree(
    # y = 0 0 1 with weights 1/2 1/2 1: log-odds ln(1/1) = 0, g = 1/4 1/4 -1/2, h = 1/8 1/8 1/4,
    # lambda 1/2. After x = 1: GL = 1/2, HL = 1/4; GR = -1/2, HR = 1/4:
    #   gain = 1/2 * ((1/4)/(3/4) + (1/4)/(3/4) - 0) = 1/3; leaves -(1/2)/(3/4) = -2/3 and 2/3.
    # After x = 0: GL = 1/4, HL = 1/8, GR = -1/4, HR = 3/8:
    #   1/2 * ((1/16)/(5/8) + (1/16)/(7/8)) = 3/35 is less.
    # More rows lie on the left: missing rows would go there.
    x=[[0], [1], [2]],
    y=[0, 0, 1],
    baseline=0.0,
    nodes=[Split(0, 1, 1.5, 1 / 3, 3, missing_left=True), Leaf(-2 / 3, 2), Leaf(2 / 3, 1)],
    settings={"objective": "logistic", "reg_lambda": 0.5, "max_depth": 2},
    weights=[0.5, 0.5, 1.0],
    hessian=0.25,
)

LOGISTIC_MISSING_LEFT = WorkedTree(
    # x = 1 2 missing missing, y = 0 1 0 1 with weights 1 3 3 1: log-odds ln(4/4) = 0,
    # g = 1/2 -3/2 3/2 -1/2, h = 1/4 3/4 3/4 1/4, lambda 1/2; G = 0.
    # After x = 1, missing left: GL = 1/2 + 3/2 - 1/2 = 3/2, HL = 5/4; GR = -3/2, HR = 3/4:
    #   gain = 1/2 * ((9/4)/(7/4) + (9/4)/(5/4)) = 1/2 * (9/7 + 9/5) = 54/35.
    # After x = 1, missing right: GL = 1/2, HL = 1/4; GR = -1/2, HR = 7/4:
    #   1/2 * (1/3 + 1/9) is less.
    # After x = 2 (values | missing): GL = -1, HL = 1; GR = 1, HR = 1: 1/2 * (2/3 + 2/3) is less.
    # Leaves -(3/2)/(7/4) = -6/7 and (3/2)/(5/4) = 6/5.
    x=[[1], [2], [NAN], [NAN]],
    y=[0, 1, 0, 1],
    baseline=0.0,
    nodes=[
        Split(0, 0, 1.5, 0.5 * (2.25 / 1.75 + 2.25 / 1.25), 4, missing_left=True),
        *(Leaf(-6 / 7, 3), Leaf(6 / 5, 1)),
    ],
    settings={"objective": "logistic", "reg_lambda": 0.5, "max_depth": 1},
    weights=[1.0, 3.0, 3.0, 1.0],
    hessian=0.25,
)

LOGISTIC_MIN_CHILD_WEIGHT_STOPS = WorkedTree(
    # LOGISTIC_GIVEN_BASELINE with min_child_weight 1/2, which takes two rows of h = 1/4 each: only
    # the split after x = 1 is allowed. It gains 1/2; leaves -0/(1/2) = +0 and -1/(1/2) = -2.
    x=[[0], [1], [2], [3]],
    y=[1, 0, 0, 0],
    baseline=0.0,
    nodes=[Split(0, 1, 1.5, 0.5, 4), Leaf(0.0, 2), Leaf(-2.0, 2)],
    settings={
        **{"objective": "logistic", "reg_lambda": 0.0, "max_depth": 1, "baseline": 0.0},
        "min_child_weight": 0.5,
    },
    hessian=0.25,
)

SOFTMAX_TWO_CLASSES = WorkedTree(
    # y = 0 0 1 1, K = 2: shares 1/2, g of class 0 = -1/2 -1/2 1/2 1/2, h = 2 * 1/2 * 1/2 = 1/2.
    # Lambda 1. After x = 1: GL = -1, HL = 1, GR = 1, HR = 1:
    #   gain = 1/2 * (1/2 + 1/2 - 0) = 1/2; leaves 1/2 and -1/2. Class 1 has the opposite gradients.
    x=[[0], [1], [2], [3]],
    y=[0, 0, 1, 1],
    baseline=[math.log(1 / 2)] * 2,
    nodes=[Split(0, 1, 1.5, 0.5, 4), Leaf(0.5, 2), Leaf(-0.5, 2)],
    other_trees=[[Split(0, 1, 1.5, 0.5, 4), Leaf(-0.5, 2), Leaf(0.5, 2)]],
    settings={"objective": "softmax", "reg_lambda": 1.0, "max_depth": 1},
    hessian=0.5,
)

SOFTMAX_FOUR_CLASSES = WorkedTree(
    # A row of each of four classes: shares 1/4, g = -3/4 in the row of the class and 1/4 elsewhere,
    # h = 2 * 1/4 * 3/4 = 3/8; lambda 3/8, so that n rows have the denominator (n + 1) * 3/8. G = 0.
    # Class 0, after x = 0: GL = -3/4, GR = 3/4:
    #     gain = 1/2 * ((9/16)/(3/4) + (9/16)/(3/2)) = 1/2 * (3/4 + 3/8) = 9/16;
    #     leaves (3/4)/(3/4) = 1 and -(3/4)/(3/2) = -1/2.
    #   After x = 1: GL = -1/2, GR = 1/2: 1/2 * (2 * (1/4)/(9/8)) = 2/9 is less; after x = 2 too.
    # Class 1, after x = 1: GL = -1/2, GR = 1/2: gain = 2/9; leaves (1/2)/(9/8) = 4/9 and -4/9.
    #   After x = 0 or x = 2: 1/2 * ((1/16)/(3/4) + (1/16)/(3/2)) = 1/16 is less.
    # Classes 2 and 3 mirror 1 and 0. Where more rows lie on the left, missing ones would go there.
    x=[[0], [1], [2], [3]],
    y=[0, 1, 2, 3],
    baseline=[math.log(1 / 4)] * 4,
    nodes=[Split(0, 0, 0.5, 9 / 16, 4), Leaf(1.0, 1), Leaf(-0.5, 3)],
    other_trees=[
        [Split(0, 1, 1.5, 2 / 9, 4), Leaf(4 / 9, 2), Leaf(-4 / 9, 2)],
        [Split(0, 1, 1.5, 2 / 9, 4), Leaf(-4 / 9, 2), Leaf(4 / 9, 2)],
        [Split(0, 2, 2.5, 9 / 16, 4, missing_left=True), Leaf(-0.5, 3), Leaf(1.0, 1)],
    ],
    settings={"objective": "softmax", "reg_lambda": 0.375, "max_depth": 1},
    hessian=0.375,
)

P = float(np.float32(1 / 3))  # and float32(2/3) is twice that
H = float(np.float32(4 * P * P))

SOFTMAX_THREE_CLASSES = WorkedTree(
    # A row of each of three classes: with p = float32(1/3), g = -2p in the row of the class and p
    # elsewhere, h = float32(2p * 2p); about -2/3, 1/3 and 4/9. Lambda 0. G = 0.
    # Class 0, after x = 0: GL = -2p, HL = h, GR = 2p, HR = 2h:
    #     gain = 1/2 * (4p^2/h + 4p^2/(2h)), about 1/2 * (1 + 1/2) = 3/4;
    #     leaves 2p/h and -2p/(2h), about 3/2 and -3/4.
    #   After x = 1: GL = -p, HL = 2h, GR = p, HR = h: a quarter of that.
    # Class 1, g = p -2p p, after x = 0 and after x = 1 alike: 1/2 * (p^2/h + p^2/(2h)): the smaller
    #   bin wins; leaves -p/h and p/(2h).
    # Class 2 mirrors class 0.
    x=[[0], [1], [2]],
    y=[0, 1, 2],
    baseline=[math.log(1 / 3)] * 3,
    nodes=[
        Split(0, 0, 0.5, 0.5 * (4 * P * P / H + 4 * P * P / (2 * H)), 3),
        *(Leaf(2 * P / H, 1), Leaf(-P / H, 2)),
    ],
    other_trees=[
        [
            Split(0, 0, 0.5, 0.5 * (P * P / H + P * P / (2 * H)), 3),
            *(Leaf(-P / H, 1), Leaf(P / (2 * H), 2)),
        ],
        [
            Split(0, 1, 1.5, 0.5 * (4 * P * P / (2 * H) + 4 * P * P / H), 3, missing_left=True),
            *(Leaf(-P / H, 2), Leaf(2 * P / H, 1)),
        ],
    ],
    settings={"objective": "softmax", "reg_lambda": 0.0, "max_depth": 1},
    hessian=H,
)

CLASS_TREES = {
    name.lower(): tree for name, tree in list(globals().items()) if isinstance(tree, WorkedTree)
}
"""name -> worked example."""
