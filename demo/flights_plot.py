"""One picture of a training run: how the error fell, and what the trees looked at."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
        figure.subplots_adjust(left=0.06, right=0.975, top=0.77, bottom=0.115, wspace=0.6)
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
    axes.annotate(
        f"predicting the mean: {rmse_of_mean:.1f}",
        (last, rmse_of_mean),
        xytext=(0, -5),
        textcoords="offset points",
        color=GREY,
        ha="right",
        va="top",
    )
    axes.set_xlabel("trees")
    axes.set_ylabel("root-mean-square error (minutes)")
    axes.set_xlim(0, last)
    axes.set_ylim(0, rmse_of_mean * 1.08)
    axes.grid(axis="y", color=PALE)
    axes.set_axisbelow(True)

    # Labels stand beside the ends of their lines, one line of text apart around their middle.
    line_of_text = 0.05 * axes.get_ylim()[1]
    ends.sort()
    middle = sum(value for value, _, _ in ends) / len(ends)
    for row, (value, name, color) in enumerate(ends):
        height = middle + (row - (len(ends) - 1) / 2) * line_of_text
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


def draw_importance(axes: Axes, importance: Mapping[str, float]) -> None:
    total = sum(importance.values()) or 1.0
    shares = sorted((value / total, name) for name, value in importance.items())
    names = [name for _, name in shares]
    axes.set_title("What the trees looked at", loc="left", weight="bold", pad=10)
    axes.barh(names, [share for share, _ in shares], color=BLUE, height=0.68)
    for row, (share, _) in enumerate(shares):
        label = f"{100 * share:.1f} %" if share >= 0.0005 else "under 0.1 %"  # what rounds to 0.0
        axes.annotate(
            label, (share, row), xytext=(6, 0), textcoords="offset points", va="center_baseline"
        )
    axes.set_xlabel("share of the loss that splits on the feature removed (gain)", loc="left")
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, (shares[-1][0] or 1.0) * 1.15)
    axes.margins(y=0.02)
