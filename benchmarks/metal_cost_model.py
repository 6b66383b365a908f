"""Predict how long trees take on Apple GPUs, from emulated runs and published figures.

    .venv/bin/python benchmarks/metal_cost_model.py     writes results/metal_cost.md and prints it

    small runs on the Metal emulator --metal_cost/recording--> counters of every dispatch
    --scaling--> counters as sums of rows, chunks, nodes    --plan--> dispatches of millions of rows
    --prediction, devices--> seconds per tree    --tables--> the page

No clock is read: the figures are the same on every machine, and are no measurement.
"""

import argparse
from pathlib import Path

from machine import ROOT
from metal_cost.cases import W1, WORKLOADS, make_case
from metal_cost.tables import page

RESULT = ROOT / "benchmarks" / "results" / "metal_cost.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULT,
                        help="what to write (default: results/metal_cost.md)")  # fmt: skip
    options = parser.parse_args()
    cases = [make_case(workload) for workload in WORKLOADS]
    text = page(cases, make_case(W1, returning_atomics=False))
    options.out.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
