"""Put the table of a comparison into README.md, between two markers, and draw the plot.

    .venv/bin/python benchmarks/report.py         reads benchmarks/results/speed.json

This changes README.md. Figures of your own machine need none of it: compare.py wrote its tables.
"""

import argparse
from pathlib import Path

from compare import RESULTS
from machine import ROOT
from measurement import Comparison
from speed_plot import plot
from tables import page, sources, speed_table

BEGIN = "<!-- speed: written by benchmarks/report.py -->\n"
END = "<!-- end of speed -->\n"


def with_table(readme: str, comparison: Comparison) -> str:
    """The text of README.md with the table of this comparison."""
    before, found, rest = readme.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise SystemExit(f"README.md lacks the lines {BEGIN!r} and {END!r}.")
    table = f"\n{speed_table(comparison)}\n\n{sources(comparison)}\n\n"
    picture = "![Training time by the fastest peer's](benchmarks/results/speed.svg)\n\n"
    return f"{before}{BEGIN}{table}{picture}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=RESULTS / "speed.json",
                        help="what compare.py wrote (default: results/speed.json); "
                             "plot and page are written beside it")  # fmt: skip
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md",
                        help="the page to change (default: README.md)")  # fmt: skip
    options = parser.parse_args()
    if not options.file.is_file():
        raise SystemExit(f"there is no {options.file}; `make bench` writes one.")
    comparison = Comparison.load(options.file)
    if comparison.facts["quick"]:
        raise SystemExit("quick sizes are not what README.md is about.")
    options.file.with_suffix(".md").write_text(page(comparison), "utf-8")
    plot(comparison, options.file.with_suffix(".svg"))
    readme = options.readme
    readme.write_text(with_table(readme.read_text("utf-8"), comparison), "utf-8")


if __name__ == "__main__":
    main()
