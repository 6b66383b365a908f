"""The plot of README.md: each contender's time by that of the fastest peer, per row."""

from pathlib import Path

import matplotlib as mpl
from contenders import CLASSES, OURS, TITLES
from measurement import Comparison
from summary import seconds_rows

COLOURS = dict(
    zip(
        CLASSES,
        ("#d62728", "#1f77b4", "#aec7e8", "#2ca02c", "#98df8a", "#9467bd", "#7f7f7f"),
        strict=True,
    )
)
MARKERS = dict(zip(CLASSES, "ossDD^v", strict=True))


def plot(comparison: Comparison, path: Path) -> None:
    """One line of marks per row of the table; 1 is the fastest peer, to the left is faster."""
    mpl.use("svg")
    # the same bytes for the same figures: no date, and no random names of elements
    mpl.rcParams["svg.hashsalt"] = "torchgbdt"
    from matplotlib import pyplot as plt

    rows = [row for row in seconds_rows(comparison) if row.best_peer is not None]
    figure, axes = plt.subplots(figsize=(7.5, 0.36 * len(rows) + 1.5))
    for name in CLASSES:
        found = [
            (row.values[name] / row.values[row.best_peer], position)
            for position, row in enumerate(rows)
            if name in row.values and row.best_peer is not None
        ]
        if found:
            axes.scatter(
                [ratio for ratio, _ in found],
                [position for _, position in found],
                s=60 if name == OURS else 30,
                zorder=3 if name == OURS else 2,
                color=COLOURS[name],
                marker=MARKERS[name],
                label=TITLES[name],
            )
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row.title for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8, 16) if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel("time / that of the fastest peer (log scale; left of 1 is faster)", fontsize=8)
    # as wide as the picture in two lines; in one, the first names would be cut off
    axes.legend(fontsize=7, frameon=False, ncols=(len(CLASSES) + 1) // 2, loc="lower right",
                bbox_to_anchor=(1.0, 1.0))  # fmt: skip
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
