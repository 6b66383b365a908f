"""From measurements to the table, the bars, the plot and README.md."""

from pathlib import Path
from typing import Any

import pytest
import report
from bars import Bar, bars
from contenders import CLASSES
from measurement import Comparison, Measurement, under_load
from plan import Run, make_plan
from summary import growth_per_row, seconds_rows, slow_downs, speed_up, training_rows
from tables import bars_table, memory_table, metric_table, page, sources, speed_table
from workloads import FULL

FACTS: dict[str, Any] = {
    "processor": "abacus", "cores": 2, "memory_gb": 1.0, "system": "none", "threads": 2,
    "repeats": 3, "quick": False, "commit": "abc", "torch": "2", "numpy": "2", "python": "3",
    "date": "2026-11-30",
}  # fmt: skip


def measured(contender: str, seconds: float, **fields: Any) -> Measurement:
    given: dict[str, Any] = {"workload": "W1", "task": "predict", "threads": 2, **fields}
    return Measurement(contender, version="1", seconds=seconds, **given)


COMPARISON = Comparison(
    FACTS,
    [
        *(measured("torchgbdt", s, metric=1.003, predict_seconds=0.5) for s in (4, 2, 9)),
        *(measured("lightgbm", s, metric=1.0, predict_seconds=0.25) for s in (5, 5, 5)),
        *(measured("catboost", s, metric=1.1) for s in (8, 8, 8)),
        measured("torchgbdt", 7.6, threads=1, task="train", digest="d"),
        measured("torchgbdt", 20.0, workload="W1x4", task="train"),
        measured("torchgbdt", 1.0, task="bin"),
        measured("lightgbm", 4.0, task="bin"),
        measured("torchgbdt", 2.0, workload="W1/10", task="train"),
        under_load(measured("torchgbdt", 5.5, workload="W1/10", task="train")),
        measured("lightgbm", 1.0, workload="W1/10", task="train"),
        under_load(measured("lightgbm", 7.0, workload="W1/10", task="train")),
    ],
)


def test_rows_are_medians_of_what_belongs_together() -> None:
    training, prediction, binning = seconds_rows(COMPARISON)
    assert training.values == {"torchgbdt": 4, "lightgbm": 5, "catboost": 8}
    assert prediction.values == {"torchgbdt": 0.5, "lightgbm": 0.25}
    assert binning.values == {"torchgbdt": 1, "lightgbm": 4}
    assert (training.best_peer, training.ratio) == ("lightgbm", 0.8)


def test_ratios_of_one_contender_with_itself() -> None:
    assert speed_up(COMPARISON) == 1.9
    assert growth_per_row(COMPARISON) == 20 / 4 / 4
    assert slow_downs(COMPARISON).values == {"torchgbdt": 2.75, "lightgbm": 7}
    assert speed_up(Comparison({**FACTS, "threads": 1}, COMPARISON.measurements)) is None


def test_bars_say_what_is_met() -> None:
    found = {bar.title.partition(":")[0]: bar.met for bar in bars(COMPARISON)}
    assert found == {
        "times as fast as the fastest peer": True,  # the last of this title: binning, 4 >= 3
        "test metric / best peer's (LightGBM by columns)": False,  # 1.003 > 1.002
        "2 threads, times as fast as one": True,
        "slow-down on a busy machine, 100k x 28, 100 trees, depth 6": False,  # 2.75 > 2.5
        "seconds per row with 4M rows / with 1M": False,  # 1.25 > 1
        "different models of torchgbdt on the same workload": True,
    }
    assert [bar.limit for bar in bars(COMPARISON)] == [3, 3, 3, 1.002, 1.8, 2.5, 1, 1]
    speed = [(bar.figure, bar.limit, bar.met) for bar in bars(COMPARISON)][:3]
    assert speed == [(1.25, 3, False), (0.5, 3, False), (4, 3, True)]  # W1, prediction, binning


def test_a_bar_is_met_at_its_limit() -> None:
    assert Bar("", 2, 2).met and Bar("", 2, 2, at_least=True).met
    assert not Bar("", 2.1, 2).met and not Bar("", 1.9, 2, at_least=True).met


def test_the_table_of_bars_says_what_was_asked() -> None:
    lines = bars_table(COMPARISON).splitlines()
    assert lines[2].endswith(": 1M x 28, 100 trees, depth 6 | 1.25 | >= 3 | **no** |")
    assert lines[-2].endswith(" | 1.25 | <= 1 | **no** |")
    assert lines[-1].endswith(" | 1 | <= 1 | yes |")


def test_each_workload_has_an_aim_of_its_own() -> None:
    assert {name: workload.aim for name, workload in FULL.items()} == {
        "W1": 3.0, "W2": 2.5, "W3": 2.5, "W4": 1.5, "W5": 2.0, "W6": 2.0,
    }  # fmt: skip


def test_memory_is_asked_of_the_first_workload_alone() -> None:
    for workload, n_bars in (("W1", 1), ("W4", 0)):
        runs = [
            measured(name, 1.0, workload=workload, growth_bytes=size)
            for name, size in (("torchgbdt", 5), ("xgboost", 4))
        ]
        found = [bar for bar in bars(Comparison(FACTS, runs)) if "memory" in bar.title]
        assert [(bar.figure, bar.met) for bar in found] == [(1.25, False)] * n_bars


def test_where_symmetric_trees_are_best_ours_are_compared_with_their_like_too() -> None:
    runs = [
        measured(name, 1.0, metric=metric)
        for name, metric in (("torchgbdt", 1.0), ("catboost", 0.8), ("xgboost", 1.25))
    ]
    found = [bar for bar in bars(Comparison(FACTS, runs)) if "metric" in bar.title]
    assert [(bar.figure, bar.met) for bar in found] == [(1.25, False), (0.8, True)]
    assert ["(CatBoost)" in bar.title for bar in found] == [True, False]


def test_the_report_writes_page_plot_and_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, readme = tmp_path / "speed.json", tmp_path / "README.md"
    COMPARISON.save(file)
    readme.write_text(f"{report.BEGIN}{report.END}", "utf-8")
    monkeypatch.setattr("sys.argv", ["report.py", str(file), "--readme", str(readme)])
    report.main()
    assert speed_table(COMPARISON) in readme.read_text("utf-8")
    assert file.with_suffix(".md").read_text("utf-8") == page(COMPARISON)
    assert file.with_suffix(".svg").stat().st_size < 100_000
    Comparison({**FACTS, "quick": True}, COMPARISON.measurements).save(file)
    with pytest.raises(SystemExit, match="quick sizes"):
        report.main()
    file.unlink()
    with pytest.raises(SystemExit, match="make bench"):
        report.main()


def test_two_models_of_one_workload_are_told() -> None:
    other = measured("torchgbdt", 1.0, digest="e", threads=1)
    elsewhere = measured("torchgbdt", 1.0, digest="f", workload="W4")
    bar = list(bars(Comparison(FACTS, [*COMPARISON.measurements, other, elsewhere])))[-1]
    assert (bar.figure, bar.met) == (2, False)


def test_the_table_has_the_best_in_bold_and_a_gap_where_nothing_was_measured() -> None:
    lines = speed_table(COMPARISON).splitlines()
    assert lines[0] == "| seconds | torchgbdt | LightGBM by columns | CatBoost | ours / best peer |"
    assert lines[2] == "| 1M x 28, 100 trees, depth 6 | **4.00** | 5.00 | 8.00 | 0.80 |"
    assert lines[3] == "| predict 1M x 28, 100 trees, depth 6 | 0.500 | **0.250** |  | 2.00 |"
    assert metric_table(COMPARISON).splitlines()[2].endswith("| 1.1000 | 1.0030 |")


def test_memory_is_in_megabytes_and_quick_sizes_are_told() -> None:
    quick = Comparison({**FACTS, "quick": True}, [measured("torchgbdt", 1.0, growth_bytes=3e6)])
    assert memory_table(quick).splitlines()[2] == "| 1M x 28, 100 trees, depth 6 | **3** |  |"
    assert sources(quick).startswith("Quick sizes") and "Quick" not in sources(COMPARISON)


def test_a_comparison_without_peers_has_no_ratios() -> None:
    alone = Comparison(FACTS, [measured("torchgbdt", 1.0)])
    assert speed_table(alone).splitlines()[2] == "| 1M x 28, 100 trees, depth 6 | **1.00** |  |"
    assert [row.ratio for row in training_rows(alone, lambda m: m.metric)] == []
    assert list(bars(alone)) == []


def test_the_page_has_no_section_without_figures() -> None:
    alone = page(Comparison(FACTS, [measured("torchgbdt", 1.0)]))
    assert "| seconds |" in alone and "## " not in alone and "CatBoost" not in alone
    assert page(COMPARISON).count("\n## ") == 3  # nobody's memory was measured


def test_a_comparison_is_read_as_it_was_written(tmp_path: Path) -> None:
    COMPARISON.save(tmp_path / "new/one.json")
    assert Comparison.load(tmp_path / "new/one.json") == COMPARISON


def test_contenders_take_turns_and_nobody_is_always_first() -> None:
    runs = [run.contender for run in make_plan(["W4"], ["a", "b", "c"], 2, 4)]
    assert "".join(runs) == "abc" + "bac" + "cab" + "acb"


def test_the_first_row_brings_ours_on_one_thread_and_on_many_rows() -> None:
    assert list(make_plan(["W1"], ["torchgbdt"], 2, 1)) == [
        Run("torchgbdt", "W1", "predict", 2),
        Run("torchgbdt", "W1", "train", 1),
        Run("torchgbdt", "W1x4", "train", 2),
    ]
    assert Run("torchgbdt", "W1", "train", 1) not in make_plan(["W1"], ["torchgbdt"], 1, 1)


def test_binning_is_run_by_itself_and_the_busy_row_with_others_and_without() -> None:
    assert list(make_plan(["bin", "busy"], ["a", "b"], 2, 1)) == [
        Run("a", "W1", "bin", 2),
        Run("b", "W1", "bin", 2),
        Run("a", "W1/10", "train", 2),
        Run("a", "W1/10", "train", 2, busy=True),
        Run("b", "W1/10", "train", 2),
        Run("b", "W1/10", "train", 2, busy=True),
    ]


def test_the_report_replaces_what_is_between_the_markers_and_nothing_else() -> None:
    old = f"before\n{report.BEGIN}old table\n{report.END}after\n"
    new = report.with_table(old, COMPARISON)
    assert new.startswith(f"before\n{report.BEGIN}\n| seconds |")
    assert new.endswith(f"{report.END}after\n") and "old table" not in new
    assert report.with_table(new, COMPARISON) == new
    with pytest.raises(SystemExit, match="lacks the lines"):
        report.with_table("no markers", COMPARISON)


def test_the_readme_has_the_markers() -> None:
    readme = (report.ROOT / "README.md").read_text("utf-8")
    assert report.with_table(readme, COMPARISON).count("| seconds |") == 1


def test_the_plot_is_the_same_file_for_the_same_figures(tmp_path: Path) -> None:
    from speed_plot import plot

    for name in ("a.svg", "b.svg"):
        plot(COMPARISON, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_plot_shows_times_by_that_of_the_fastest_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes
    from speed_plot import plot

    shown = {}
    scatter = Axes.scatter

    def record(axes: Axes, x: list[float], y: list[int], **options: Any) -> object:
        shown[options["label"]] = list(zip(x, y, strict=True))
        return scatter(axes, x, y, **options)

    monkeypatch.setattr(Axes, "scatter", record)
    plot(COMPARISON, tmp_path / "plot.svg")
    assert shown == {
        "torchgbdt": [(0.8, 0), (2.0, 1), (0.25, 2)],
        "LightGBM by columns": [(1.0, 0), (1.0, 1), (1.0, 2)],
        "CatBoost": [(1.6, 0)],
    }


def test_the_legend_of_all_contenders_lies_within_the_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib import pyplot as plt
    from speed_plot import plot

    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    plot(Comparison(FACTS, [measured(name, 1.0) for name in CLASSES]), tmp_path / "plot.svg")
    monkeypatch.undo()
    (figure,) = figures
    legend = figure.axes[0].get_legend()
    assert len(legend.get_texts()) == len(CLASSES)
    legend_box, box = legend.get_window_extent(), figure.bbox
    plt.close(figure)
    assert box.x0 <= legend_box.x0 and legend_box.x1 <= box.x1
    assert box.y0 <= legend_box.y0 and legend_box.y1 <= box.y1
