"""Every variant of every kernel of csrc/metal that is ever compiled."""

from collections.abc import Iterator
from itertools import product

from architecture.repository import ROOT

from torchgbdt.backends.row_chunks import HistogramVariant
from torchgbdt.backends.threshold_keys import KEY_FORMS
from torchgbdt.core.metrics import MetricKind
from torchgbdt.core.objectives import ObjectiveKind

Constants = dict[str, int | str]

METAL = ROOT / "csrc" / "metal"


def shipped_files() -> list[str]:
    """Names of the .metal files, without their ending."""
    return sorted(path.stem for path in METAL.glob("*.metal"))


def variants(file: str) -> list[Constants]:
    """The constants of each variant of a file."""
    different = {tuple(sorted(one.items())): one for one in _VARIANTS[file]()}
    return list(different.values())


def _one() -> Iterator[Constants]:
    yield {}


def _key_forms() -> Iterator[Constants]:
    for form in KEY_FORMS.values():
        yield form.constants()


def _bin_features() -> Iterator[Constants]:
    for constants, has_kept_rows in product(_key_forms(), (0, 1)):
        yield {**constants, "HAS_KEPT_ROWS": has_kept_rows}


def _histograms() -> Iterator[Constants]:
    for constant_hessian, returning in ((False, True), (True, True), (True, False)):
        yield {**HistogramVariant(constant_hessian, returning).constants()}


def _gradients() -> Iterator[Constants]:
    for kind, has_weights, has_margins in product(ObjectiveKind, (0, 1), (0, 1)):
        is_squared_error = kind == ObjectiveKind.SQUARED_ERROR
        if has_margins and is_squared_error:
            continue
        for constant_hessian in (0, 1) if is_squared_error and not has_weights else (0,):
            yield {
                "OBJECTIVE": int(kind),
                "HAS_WEIGHTS": has_weights,
                "HAS_MARGINS": has_margins,
                "CONSTANT_HESSIAN": constant_hessian,
            }


def _losses() -> Iterator[Constants]:
    labels_have_margins = (MetricKind.SQUARED_ERROR, MetricKind.ABSOLUTE_ERROR)
    for kind, has_weights, has_margins in product(MetricKind, (0, 1), (0, 1)):
        if not (has_margins and kind in labels_have_margins):
            yield {"METRIC": int(kind), "HAS_WEIGHTS": has_weights, "HAS_MARGINS": has_margins}


def _either(name: str) -> Iterator[Constants]:
    yield {name: 0}
    yield {name: 1}


_VARIANTS = {
    "bin_features": _bin_features,
    "build_histograms": _histograms,
    "compute_gradients": _gradients,
    "compute_losses": _losses,
    "compute_softmax_terms": lambda: _either("HAS_MARGINS"),
    "conformance_probe": _one,
    "predict": _key_forms,
    "reduce_histograms": _histograms,
    "round_gradients": lambda: _either("CONSTANT_HESSIAN"),
    "route_rows": _one,
    "scan_splits": lambda: _either("CONSTANT_HESSIAN"),
    "select_candidates": _one,
    "sum_losses": _one,
    "update_predictions": _one,
    "write_words": _one,
}
