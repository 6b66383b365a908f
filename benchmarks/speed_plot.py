"""The plot of README.md: each contender's time by that of the fastest of all, per row."""

from pathlib import Path

import matplotlib as mpl
from contenders import CLASSES, OURS, TITLES
from measurement import Comparison
from summary import seconds_rows

COLOURS = dict(zip(CLASSES, ("#d62728", "#4c78a8", "#72a5c9", "#9ecae9", "#bab0ac"), strict=True))


def plot(comparison: Comparison, path: Path) -> None:
    """Draw horizontal bars, one group per row of the table; 1 is the fastest."""
    mpl.use("svg")
    # the same bytes for the same figures: no date, and no random names of elements
    mpl.rcParams["svg.hashsalt"] = "torchgbdt"
    from matplotlib import pyplot as plt

    rows = seconds_rows(comparison)
    names = [name for name in CLASSES if any(name in row.values for row in rows)]
    figure, axes = plt.subplots(figsize=(7.5, 0.62 * len(rows) + 1.1))
    height = 0.8 / len(names)
    for index, name in enumerate(names):
        places, lengths = [], []
        for position, row in enumerate(rows):
            if name in row.values:
                places.append(position + (index - (len(names) - 1) / 2) * height)
                lengths.append(row.values[name] / min(row.values.values()))
        label = TITLES[name]
        bars = axes.barh(places, lengths, height * 0.9, label=label, color=COLOURS[name])
        if name == OURS:
            axes.bar_label(bars, fmt="%.2f", fontsize=7, padding=2)
    axes.set_yticks(range(len(rows)), [row.title for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.6)
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_xlabel("time by that of the fastest (1 is the fastest, log scale)", fontsize=8)
    axes.legend(fontsize=7, frameon=False, ncols=len(names), loc="lower center",
                bbox_to_anchor=(0.3, 1.0))  # fmt: skip
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
