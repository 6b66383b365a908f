"""One contender, one workload, one process: prints one line of JSON.

    python benchmarks/one_run.py lightgbm W4 --threads 2

The rows are there before the clock starts and the library is imported: what is counted is what a
project pays for each model. ``compare.py`` runs many of these.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PREDICTIONS = 3
"""Predictions are timed so often in one process, and their median counts."""


def main() -> None:
    options = parse_arguments()
    # Before any library starts its threads: OpenMP reads this when it is loaded.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    print(json.dumps(run(options.contender, options.workload, options.task, options.threads,
                         options.quick, options.data)), flush=True)  # fmt: skip


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("contender")
    parser.add_argument("workload", help="W1 to W6; W1x4 and W1/10 as well")
    parser.add_argument("--task", choices=["train", "predict", "bin"], default="train",
                        help="predict: the training rows, with a trained model")  # fmt: skip
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds")
    parser.add_argument("--data", type=Path, help="folder with the rows; made if not given")
    return parser.parse_args()


def run(
    name: str, workload_name: str, task: str, n_threads: int, quick: bool, folder: Path | None
) -> dict[str, Any]:
    """Run and measure; see the table of ``measured`` for what comes out."""
    from contenders import make_contender
    from contenders.settings import Settings
    from quality import checked_metric
    from resident_memory import peak_bytes, resident_bytes, restart_peak
    from workloads import find_workload, load_data, make_data

    workload = find_workload(workload_name, quick)
    data = make_data(workload) if folder is None else load_data(folder)
    contender = make_contender(name, Settings.of(workload, n_threads))
    result: dict[str, Any] = {"contender": name, "workload": workload_name, "task": task,
                              "threads": n_threads, "version": contender.version()}  # fmt: skip
    rows = contender.load(data.X, data.y)
    if task == "bin":
        return result | {"seconds": _seconds(lambda: contender.bin_alone(rows))}

    resident = resident_bytes() if restart_peak() else None
    processor = time.process_time()
    start = time.perf_counter()
    binned = contender.bin(rows)
    binned_at = time.perf_counter()
    contender.train(binned)
    end = time.perf_counter()
    result |= {
        "seconds": end - start,
        "binning_seconds": binned_at - start if contender.bins_apart else None,
        "processor_seconds": time.process_time() - processor,
    }
    if resident is not None:
        peak = peak_bytes()
        result |= {"peak_bytes": peak, "growth_bytes": peak - resident}
    result["metric"] = checked_metric(workload, contender.predict(data.X_test), data.y_test)
    result["digest"] = contender.digest()
    if task == "predict":
        del binned
        times = [_seconds(lambda: contender.predict(data.X)) for _ in range(PREDICTIONS)]
        result["predict_seconds"] = statistics.median(times)
    return result


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
