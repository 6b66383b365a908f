"""Compare torchgbdt with LightGBM, XGBoost, CatBoost and scikit-learn; run by ``make bench``.

    .venv/bin/python benchmarks/compare.py --quick --rows W4 bin

One process per run, and the libraries take turns. Prints the tables and writes them, with every
single measurement, to benchmarks/results/: "speed" if all rows of all contenders were measured,
"part" if not, "quick" for quick sizes. README.md, section "Speed", says what is the same for
all.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from contenders import CLASSES, is_installed
from machine import machine_facts
from measurement import Comparison, Measurement
from plan import ROWS, Run, make_plan
from processes import FailedRunError, measure
from tables import page
from workloads import find_workload, make_data, save_data

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    options = parse_arguments()
    contenders = [name for name in options.contenders if is_installed(name)]
    for name in options.contenders:
        if name not in contenders:
            print(f"{name} is not installed and left out; `make bench` installs all.")
    runs = list(make_plan(options.rows, contenders, options.threads, options.repeats))
    measurements, failed = run_all(runs, options.quick)
    facts = machine_facts() | {
        "threads": options.threads,
        "repeats": options.repeats,
        "quick": options.quick,
    }
    if not measurements:
        sys.exit("nothing was measured, and nothing is written.")
    comparison = Comparison(facts, measurements)
    is_whole = failed == 0 and set(options.rows) == set(ROWS) and len(contenders) == len(CLASSES)
    out = options.out or RESULTS / file_name(options.quick, is_whole)
    comparison.save(out.with_suffix(".json"))
    text = page(comparison)
    out.with_suffix(".md").write_text(text, "utf-8")
    print(f"\n{text}\nwritten to {out.with_suffix('.md')} and {out.with_suffix('.json')}")
    if failed:
        sys.exit(f"{failed} of {len(runs)} runs failed or were not made; see above.")


def file_name(quick: bool, is_whole: bool) -> str:
    """README.md is made of "speed": a part of it, or other sizes, must not take its place."""
    if quick:
        return "quick"
    return "speed" if is_whole else "part"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="rows:\n" + "".join(f"  {name:<6}{words}\n" for name, words in ROWS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), metavar="ROW",
                        help="of those below (default: all)")  # fmt: skip
    parser.add_argument("--contenders", nargs="+", choices=list(CLASSES), default=list(CLASSES),
                        metavar="NAME", help=f"of {', '.join(CLASSES)} (default: all)")  # fmt: skip
    parser.add_argument(
        "--repeats", type=int, default=3, help="medians are of so many runs (default: 3)"
    )
    parser.add_argument("--threads", type=int, default=2, help="of each contender (default: 2)")
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds: to try it out")
    parser.add_argument("--out", type=Path, help="file for the results, without its suffix "
                        "(default: in benchmarks/results)")  # fmt: skip
    return parser.parse_args()


def run_all(runs: Sequence[Run], quick: bool) -> tuple[list[Measurement], int]:
    """Measure, saying how far it is; how many runs lack. Ctrl-C ends it with what there is."""
    start = time.monotonic()
    measurements: list[Measurement] = []
    failed = 0
    with tempfile.TemporaryDirectory(prefix="torchgbdt-bench-") as temporary:
        folders: dict[str, Path] = {}
        for number, run in enumerate(runs, 1):
            try:
                if run.workload not in folders:
                    folder = Path(temporary) / str(len(folders))
                    save_data(make_data(find_workload(run.workload, quick)), folder)
                    folders[run.workload] = folder
                measured = measure(run, quick, folders[run.workload], os.environ)
            except FailedRunError as error:
                failed += 1
                said = f"failed:\n{error}"
            except KeyboardInterrupt:
                failed += len(runs) - number + 1
                print("interrupted: the tables have what was measured until now.")
                break
            else:
                measurements.append(measured)
                said = f"{measured.seconds:.3f} s"
            minutes = (time.monotonic() - start) / 60
            print(f"{minutes:5.1f} min [{number}/{len(runs)}] {run}: {said}", flush=True)
    return measurements, failed


if __name__ == "__main__":
    main()
