"""The tables in Markdown: seconds, memory, test metrics, and what is asked of them."""

from collections.abc import Callable, Sequence

from bars import bars
from contenders import CLASSES, OURS, TITLES
from measurement import Comparison
from summary import Row, seconds_rows, slow_downs, training_rows


def page(comparison: Comparison) -> str:
    """All there is to say about a comparison; nothing of what it has no measurements for."""
    sections = {
        "": (speed_table(comparison), ""),
        "Memory": (
            memory_table(comparison),
            "Peak while binning and training, less what was resident before: rows and library.",
        ),
        "Quality": (
            metric_table(comparison),
            "RMSE or log loss on the test rows: smaller is better.",
        ),
        "On a busy machine": (
            busy_table(comparison),
            "How many times slower beside as many busy processes as threads; a fair share is 2.",
        ),
        "What is asked": (
            bars_table(comparison),
            "What torchgbdt wants to reach, and whether this run did: meant for full sizes and "
            "nothing else running, and of no weight otherwise. A slash divides.",
        ),
    }
    parts = ["# Speed", sources(comparison)]
    for title, (table, words) in sections.items():
        if table:
            parts += [part for part in (title and f"## {title}", words, table) if part]
    return "\n\n".join(parts) + "\n"


def sources(comparison: Comparison) -> str:
    """Where the figures come from: machine, versions, commit."""
    facts = comparison.facts
    versions = {one.contender: one.version for one in comparison.measurements}
    peers = [f"{TITLES[name]} {versions[name]}" for name in _names(comparison) if name != OURS]
    text = (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']:.0f} GB, "
        f"{facts['system']}; {facts['threads']} threads, medians of {facts['repeats']}; "
        f"{OURS} at commit {facts['commit']}, torch {facts['torch']}, numpy {facts['numpy']}, "
        f"Python {facts['python']}; {', '.join([*peers, facts['date']])}."
    )
    return f"Quick sizes, not those of the titles. {text}" if facts["quick"] else text


def speed_table(comparison: Comparison) -> str:
    """Seconds of every contender, and ours by those of the fastest peer."""
    return _table("seconds", comparison, seconds_rows(comparison), _seconds)


def memory_table(comparison: Comparison) -> str:
    """What became resident on top of the rows and the library."""
    rows = training_rows(comparison, lambda m: m.growth_bytes)
    return _table("MB", comparison, rows, lambda value: f"{value / 1e6:.0f}")


def metric_table(comparison: Comparison) -> str:
    """The test metric, so that nobody is fast by learning less."""
    rows = training_rows(comparison, lambda m: m.metric)
    return _table("test metric", comparison, rows, lambda value: f"{value:.4f}", digits=4)


def busy_table(comparison: Comparison) -> str:
    """How much slower each is beside as many busy processes as threads."""
    row = slow_downs(comparison)
    return _table("times", comparison, [row] if row.values else [], lambda v: f"{v:.1f}")


def bars_table(comparison: Comparison) -> str:
    """Each bar with its figure."""
    lines = ["| what | figure | asked | met |", "|---|---|---|---|"]
    found = list(bars(comparison))
    for bar in found:
        asked = f"{'>=' if bar.at_least else '<='} {bar.limit:g}"
        met = "yes" if bar.met else "**no**"
        lines.append(f"| {bar.title} | {bar.figure:.5g} | {asked} | {met} |")
    return "\n".join(lines) if found else ""


def _table(
    head: str,
    comparison: Comparison,
    rows: Sequence[Row],
    cell: Callable[[float], str],
    digits: int = 2,
) -> str:
    """One line per row, one column per contender, the smallest figure of a line in bold."""
    if not rows:
        return ""
    names = _names(comparison)
    titles = [TITLES[name] for name in names]
    lines = [f"| {head} | {' | '.join(titles)} | ours / best peer |"]
    lines.append("|---" * (len(names) + 2) + "|")
    for row in rows:
        least = min(row.values.values())
        cells = [
            "" if value is None else f"**{cell(value)}**" if value == least else cell(value)
            for value in map(row.values.get, names)
        ]
        ratio = "" if row.ratio is None else f"{row.ratio:.{digits}f}"
        lines.append(f"| {row.title} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def _names(comparison: Comparison) -> list[str]:
    """Contenders that were measured, ours first."""
    measured = {one.contender for one in comparison.measurements}
    return [name for name in CLASSES if name in measured]


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"
