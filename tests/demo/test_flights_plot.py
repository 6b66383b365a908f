"""The plot's labels: beside the ends of their lines, and clear of each other and of the rest."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from flights_data import FEATURES
from flights_plot import apart, plot_training
from matplotlib.figure import Figure
from matplotlib.text import Annotation


@pytest.mark.parametrize(
    ("heights", "expected"),
    [
        ([], []),
        ([3.0], [3.0]),
        ([1.0, 5.0, 9.0], [1.0, 5.0, 9.0]),
        ([1.0, 3.0], [1.0, 3.0]),  # as close as may be
        ([1.0, 2.0], [0.5, 2.5]),
        ([4.0, 4.0, 4.0], [2.0, 4.0, 6.0]),
        ([1.0, 2.0, 9.0], [0.5, 2.5, 9.0]),
        ([1.0, 5.0, 5.0], [1.0, 4.0, 6.0]),
        ([1.5, 3.5, 4.0], [1.0, 3.0, 5.0]),  # pushed down, the second meets the first
    ],
)
def test_labels_move_no_more_than_they_must(heights: list[float], expected: list[float]) -> None:
    assert apart(heights, 2.0) == expected


def drawn(monkeypatch: pytest.MonkeyPatch, file: Path, ends: tuple[float, ...]) -> Figure:
    """The figure of a run whose training, validation and test errors end like this."""
    figures: list[Figure] = []
    save = Figure.savefig

    def save_and_keep(figure: Figure, *args: Any, **kwargs: Any) -> None:
        figures.append(figure)
        save(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", save_and_keep)
    training, validation, test = ends
    plot_training(
        file,
        curves={"training": [45.0, training], "validation": [50.0, validation]},
        rmse_of_mean=51.0,
        test_rmse=test,
        test_rmse_of_mean=40.0,
        importance={name: 2.0**i for i, name in enumerate(FEATURES.values())},
    )
    return figures[0]


@pytest.mark.parametrize(
    "ends",
    [
        (16.7, 17.7, 16.9),
        (16.9, 26.3, 17.1),
        (6.5, 41.1, 27.2),
        (20.0, 20.0, 20.0),
        (0.0, 50.9, 60.0),
    ],
)
def test_labels_overlap_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: tuple[float, ...]
) -> None:
    figure = drawn(monkeypatch, tmp_path / "plot.png", ends)
    left, right = figure.axes
    notes = [child for child in left.get_children() if isinstance(child, Annotation)]
    boxes = [note.get_window_extent() for note in notes]
    assert {note.get_text().split()[-1] for note in notes} >= {"training", "validation", "test"}
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    assert max(box.x1 for box in boxes) + 20 < right.get_tightbbox().x0
    assert right.get_tightbbox().x1 < figure.bbox.x1
