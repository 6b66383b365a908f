"""One picture of a training run: how the error fell, and what the trees looked at."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

BLUE, ORANGE, GREEN, GREY, PALE, INK = (
    "#1f6fb2",
    "#d1600a",
    "#3a8f5c",
    "#5b6069",
    "#eceef1",
    "#22262b",
)
STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": GREY,
    "axes.edgecolor": "#c4c8ce",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def plot_training(
    file: Path,
    *,
    curves: Mapping[str, Sequence[float]],
    rmse_of_mean: float,
    test_rmse: float,
    test_rmse_of_mean: float,
    importance: Mapping[str, float],
) -> None:
    """Write a PNG: learning curves on the left, importances on the right; errors in minutes.

    ``curves`` holds the error after each tree, ``rmse_of_mean`` the error of predicting the mean on
    the flights of the last curve.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(13, 6.2), dpi=150, facecolor="white")
        left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
        figure.subplots_adjust(left=0.06, right=0.975, top=0.77, bottom=0.115, wspace=0.8)
        title = f"How late will it land? Predicted at the gate, {test_rmse:.0f} minutes off"
        figure.text(0.06, 0.93, title, fontsize=17, weight="bold")
        subtitle = (
            "Flights out of New York City in 2013. Root-mean-square error on the unseen flights of "
            f"November and December: {test_rmse:.1f} min; predicting the mean: "
            f"{test_rmse_of_mean:.1f} min."
        )
        figure.text(0.06, 0.885, subtitle, color=GREY)
        draw_curves(left, curves, rmse_of_mean, test_rmse)
        draw_importance(right, importance)
        figure.savefig(file)


def draw_curves(
    axes: Axes, curves: Mapping[str, Sequence[float]], rmse_of_mean: float, test_rmse: float
) -> None:
    axes.set_title("Error while training", loc="left", weight="bold", pad=10)
    last = max(len(values) for values in curves.values())
    ends = []
    for (name, values), color in zip(curves.items(), (GREEN, BLUE), strict=False):
        axes.plot(range(1, len(values) + 1), values, color=color, linewidth=2.2)
        ends.append((values[-1], name, color))
    axes.plot([last], [test_rmse], "o", color=ORANGE, markersize=7, clip_on=False, zorder=3)
    ends.append((test_rmse, "test", ORANGE))

    axes.axhline(rmse_of_mean, color=GREY, linewidth=1.2, linestyle=(0, (5, 3)))
    compared_with = list(curves)[-1]
    axes.annotate(
        f"predicting the mean ({compared_with}): {rmse_of_mean:.1f}",
        (last, rmse_of_mean),
        xytext=(0, 4),
        textcoords="offset points",
        color=GREY,
        ha="right",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
    highest = max(rmse_of_mean, test_rmse, *(max(values) for values in curves.values()))
    axes.set_xlabel("trees")
    axes.set_ylabel("root-mean-square error (minutes)")
    axes.set_xlim(0, last)
    axes.set_ylim(0, highest * 1.08)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    axes.grid(axis="y", color=PALE)
    axes.set_axisbelow(True)

    ends.sort()
    line_of_text = 0.05 * axes.get_ylim()[1]
    heights = apart([value for value, _, _ in ends], line_of_text)
    for height, (value, name, color) in zip(heights, ends, strict=True):
        axes.annotate(
            f"{value:.1f}  {name}",
            (last, height),
            xytext=(10, 0),
            textcoords="offset points",
            color=color,
            weight="bold",
            va="center",
            annotation_clip=False,
        )


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights, moved no more than it takes to lie at least ``gap`` apart.

    Those that would overlap form a group, spaced evenly around its mean.
    """
    groups: list[list[float]] = []
    for height in heights:
        group = [height]
        while groups and spaced(group, gap)[0] - spaced(groups[-1], gap)[-1] < gap:
            group = groups.pop() + group
        groups.append(group)
    return [place for group in groups for place in spaced(group, gap)]


def spaced(group: Sequence[float], gap: float) -> list[float]:
    first = sum(group) / len(group) - gap * (len(group) - 1) / 2
    return [first + gap * row for row in range(len(group))]


def draw_importance(axes: Axes, importance: Mapping[str, float]) -> None:
    """Dots on a logarithmic axis: one feature takes nearly all, and the others still differ."""
    total = sum(importance.values()) or 1.0
    shares = sorted((100 * value / total, name) for name, value in importance.items() if value > 0)
    names = [name for _, name in shares]
    values = [share for share, _ in shares]
    lowest = min(values, default=1.0) / 2

    axes.set_title("What the trees looked at", loc="left", weight="bold", pad=10)
    axes.set_xscale("log")
    axes.hlines(names, lowest, values, color=PALE, linewidth=5)
    axes.plot(values, names, "o", color=BLUE, markersize=8)
    for row, share in enumerate(values):
        axes.annotate(
            f"{share:.2g} %",
            (share, row),
            xytext=(10, 0),
            textcoords="offset points",
            va="center_baseline",
        )
    ticks = [tick for tick in (0.01, 0.1, 1, 10, 100) if tick > lowest]
    axes.set_xticks(ticks, [f"{tick:g} %" for tick in ticks])
    axes.set_xlim(lowest, 300)
    axes.minorticks_off()
    axes.set_xlabel("share of the loss removed by its splits (log scale)", loc="left")
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.05)
