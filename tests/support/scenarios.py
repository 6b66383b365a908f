"""All scenarios: small training runs by name.

``scenario(name)`` builds one, always the same, whose arrays are read-only. Sizes are chosen for a
plain-Python reference.
"""

import zlib
from functools import cache

import numpy as np
from support.runs import Scenario
from support.scenarios_of_classes import CLASS_SCENARIOS
from support.scenarios_of_regression import REGRESSION_SCENARIOS

SCENARIOS = {**REGRESSION_SCENARIOS, **CLASS_SCENARIOS}


@cache
def scenario(name: str) -> Scenario:
    one = SCENARIOS[name](np.random.default_rng(zlib.crc32(name.encode())))
    for rows in (one.train, *one.valids):
        for array in (rows.X, rows.y, rows.weights, rows.margins):
            if array is not None:
                array.setflags(write=False)
    return one
