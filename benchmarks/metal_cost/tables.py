"""The page: predictions as markdown."""

from collections.abc import Iterable, Sequence

from metal_cost import devices
from metal_cost.cases import CHECKED, RECORDED, SHAPE_ROWS, TOLERANCE, Case
from metal_cost.devices import ATOMIC_RATES, DEVICES, LINE_BYTES, Device
from metal_cost.plan import WORD_FEATURES
from metal_cost.tuning import Choice, best_choice

MACBOOST = ("HIGGS", "M4 Max, 40 cores", 28.0)
"""Workload, device, ms per tree: its authors' 2.8 s for 100 trees of depth 6."""

TITLE = "# Metal kernels: time per tree (prediction, not a measurement)"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], n_text: int = 1) -> str:
    """Markdown; the first columns are text, the others are right-aligned."""
    lines = [head, ["---"] * n_text + ["---:"] * (len(head) - n_text), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def ms(seconds: float) -> str:
    """Milliseconds, three digits."""
    value = 1e3 * seconds
    return (
        f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    )


def times_table(cases: Sequence[Case]) -> str:
    """Every workload on every device, for each rate of atomics."""
    head = ["workload", "device", *(f"a = {rate:g}" for rate in ATOMIC_RATES), "binds",
            "of it waiting", "bytes per row",
            "MacBoost, published"]  # fmt: skip
    rows = []
    for case in cases:
        for device in DEVICES:
            found = [case.predict(device, rate) for rate in ATOMIC_RATES]
            binds = dict.fromkeys((found[0].bound, found[-1].bound))
            known = (case.workload.name, device.name) == MACBOOST[:2]
            rows.append(
                [
                    case.workload.title,
                    device.name,
                    *(ms(one.seconds) for one in found),
                    ", then ".join(binds),
                    ms(found[0].parts()["waiting"]),
                    f"{found[0].moved_bytes / case.workload.n_rows:.0f}",
                    f"{MACBOOST[2]:g}" if known else "",
                ]
            )
    return table(head, rows, n_text=2)


def kernel_table(case: Case, device: Device, rate: float) -> str:
    """One case, kernel by kernel, the largest first."""
    found = case.predict(device, rate)
    n_rows = case.workload.n_rows
    head = ["kernel", "dispatches", "bytes per row", "bandwidth ms", "atomics ms",
            "arithmetic ms", "predicted ms", "share"]  # fmt: skip
    rows = [
        [
            one.kernel,
            f"{one.dispatches:.1f}",
            f"{one.moved_bytes / n_rows:.1f}",
            *(ms(part) for part in (one.bandwidth, one.atomics, one.arithmetic, one.seconds)),
            f"{one.seconds / found.seconds:.0%}",
        ]
        for one in found.kernels()
    ]
    for name, seconds in (("waiting for the device", found.synchronizing),
                          ("queueing dispatches", found.queueing)):  # fmt: skip
        share = f"{seconds / found.seconds:.0%}"
        rows.append([name, "", "", "", "", "", ms(seconds), share])
    return table(head, rows)


def level_table(case: Case) -> str:
    """What gathering costs, by depth."""
    works = [work for work in case.works(case.default_tuning()) if "gathered" in work.sizes]
    depths = sorted({work.level for work in works})
    n_trees, n_rows = len(case.shapes), case.workload.n_rows
    padded = -(-case.workload.n_features // WORD_FEATURES) * WORD_FEATURES
    rows = []
    for depth in depths:
        line = [str(depth)]
        for kernel, wanted in (("build_histograms", padded), ("route_count", 1)):
            own = [work for work in works if (work.kernel, work.level) == (kernel, depth)]
            gathered = LINE_BYTES * sum(work.sizes["gathered"] for work in own)
            of_rows = sum(work.sizes["rows"] for work in own)
            share = f"{of_rows / n_trees / n_rows:.0%}"
            moved = f"{gathered / of_rows:.1f}" if own else ""
            used = f"{wanted * of_rows / gathered:.0%}" if own else ""
            line += [share, moved, used] if own else ["", "", ""]
        rows.append(line)
    head = ["level", "rows summed", "bytes moved of each", "used of a line",
            "rows routed", "bytes moved of each", "used of a line"]  # fmt: skip
    return table(head, rows)


def variants_table(returning: Case, plain: Case) -> str:
    """Both kernels for rows with a constant Hessian, at the same rate."""
    head = ["device", *(f"a = {rate:g}: {name}" for rate in ATOMIC_RATES
                        for name in ("returning", "nothing returned"))]  # fmt: skip
    rows = [
        [device.name, *(ms(case.predict(device, rate).seconds)
                        for rate in ATOMIC_RATES for case in (returning, plain))]
        for device in DEVICES
    ]  # fmt: skip
    return table(head, rows)


def tuning_table(cases: Sequence[Case], rate: float) -> str:
    """What other numbers of threadgroups would give."""
    head = ["workload", "device", "default ms", "best ms", "gain", "wanted_groups",
            "histogram_rows"]  # fmt: skip
    rows = []
    for case in cases:
        for device in DEVICES:
            default: Choice
            default, best = best_choice(case, device, rate)
            rows.append(
                [
                    case.workload.title,
                    device.name,
                    ms(default.seconds),
                    ms(best.seconds),
                    f"{1 - best.seconds / default.seconds:.0%}",
                    f"{best.tuning.wanted_groups:,}",
                    f"{best.tuning.histogram_rows:,}",
                ]
            )
    return table(head, rows, n_text=2)


def sharing_line(cases: Sequence[Case], device: Device, rate: float) -> str:
    """What it would mean if the groups of a chunk did not share lines."""
    both = [
        f"{case.workload.title}: {ms(case.predict(device, rate).seconds)} ms, then "
        f"{ms(case.predict(device, rate, shared=False).seconds)} ms"
        for case in cases
    ]
    return "; ".join(both)


def halves_line(cases: Sequence[Case], device: Device, rate: float) -> str:
    """What trees would take whose splits are even."""
    both = [
        f"{case.workload.title}: {ms(case.predict(device, rate).seconds)} ms, then "
        f"{ms(case.halved().predict(device, rate).seconds)} ms"
        for case in cases
    ]
    return "; ".join(both)


def assumptions(cases: Sequence[Case]) -> str:
    """What the figures rest on."""
    tree = cases[0].recorded
    worst = max(max(case.deviations.values()) for case in cases)
    sizes = " and ".join(f"{n:,}" for n, _ in RECORDED)
    lines = [
        f"Counters come from the Metal emulator: runs of {sizes} rows, fitted as sums of rows, "
        f"chunks, nodes and touched lines; on a run of {CHECKED[0]:,} rows they were off by at "
        f"most {worst:.1%} (allowed: {TOLERANCE:.0%}). Per tree the host waited "
        f"{tree.synchronizations} times, got {tree.bytes_to_host:,} bytes and uploaded "
        f"{tree.uploads} arrays.",
        f"Node sizes are those of trees of {SHAPE_ROWS:,} synthetic rows, scaled. HIGGS itself is "
        f"not here: its figure is for synthetic rows of its shape.",
        f"Memory moves lines of {LINE_BYTES} bytes at {devices.BANDWIDTH_SHARE:.0%} of the "
        f"published bandwidth, each line once per threadgroup. Nothing stays in a cache from one "
        f"dispatch to the next; small tables do within one, and the groups of a chunk, which run "
        f"side by side, share lines. A node's rows lie anywhere among all rows. One "
        f"source has lines of 32 bytes: gathering would then be far cheaper.",
        f"a: additions to threadgroup memory per clock and core, all lanes together; unknown. "
        f"Loads and stores: {devices.PLAIN_RATE:g}; atomics of device memory, all cores "
        f"together: {devices.DEVICE_ATOMIC_RATE:g}. Equal groups are handed to cores one by one, "
        f"so the last round leaves some idle. Bandwidth, atomics and arithmetic of a dispatch "
        f"overlap; dispatches do not.",
        f"Waiting: {1e6 * devices.SYNCHRONIZATION_SECONDS:.0f} us per synchronisation and "
        f"{1e6 * devices.DISPATCH_SECONDS:.1f} us to queue a dispatch (pytorch/pytorch#152199). "
        f"What the host computes between is not in it.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def page(cases: Sequence[Case], nothing_returned: Case) -> str:
    """All of it."""
    w1, higgs = cases[0], cases[1]
    m4 = next(device for device in DEVICES if device.name == MACBOOST[1])
    rate = ATOMIC_RATES[1]
    sections = [
        TITLE,
        "Nobody has run these kernels on a Mac yet. Written by `make bench-metal` "
        "(`benchmarks/metal_cost_model.py`) from counters of emulated runs and published figures "
        "of devices.",
        "## Milliseconds per tree\n\nMacBoost's figure is its authors' own: 2.8 s for 100 trees "
        "on HIGGS, whatever that includes.",
        times_table(cases),
        f"Trees that split rows in halves, and at every feature, have the most to sum: on "
        f"{m4.name} with a = {rate:g}, {halves_line(cases, m4, rate)}.",
        "## What it rests on",
        assumptions(cases),
    ]
    for case in (higgs, w1):
        title = f"## By kernel: {case.workload.title}, {m4.name}, a = {rate:g}"
        sections += [title, kernel_table(case, m4, rate)]
    sections += [
        f"## Gathering, by level: {higgs.workload.title}",
        level_table(higgs),
        f"If the groups of a chunk did not share lines, on {m4.name} with a = {rate:g}: "
        f"{sharing_line(cases, m4, rate)}.",
        f"## Histogram kernels with and without returned atomics: {w1.workload.title}",
        variants_table(w1, nothing_returned),
        "Both change two words per row and feature; the second empties threadgroup memory every "
        "2,047 rows. It wins only where an addition that returns is slower than one that does "
        "not.",
        f"## Threadgroups, a = {rate:g}",
        tuning_table(cases, rate),
    ]
    return "\n\n".join(sections) + "\n"
