"""The libraries that are compared: one file each, all with the same settings (``settings.py``).

No library is imported before it is asked for, and never two of them in one process.
"""

from importlib import import_module, util

from contenders.contender import Contender
from contenders.settings import Settings

OURS = "torchgbdt"
CLASSES = {
    OURS: "ours.Torchgbdt",
    "lightgbm": "with_lightgbm.LightGBM",
    "lightgbm_rows": "with_lightgbm.LightGBMByRows",
    "xgboost": "with_xgboost.XGBoost",
    "xgboost_quantile": "with_xgboost.XGBoostQuantile",
    "catboost": "with_catboost.CatBoost",
    "sklearn": "with_sklearn.ScikitLearn",
}
"""Module and class by name. Where it depends on the data which of two layouts is the faster or the
leaner, both compete."""
PEERS = tuple(name for name in CLASSES if name != OURS)
TITLES = {
    OURS: OURS,
    "lightgbm": "LightGBM by columns",
    "lightgbm_rows": "LightGBM by rows",
    "xgboost": "XGBoost",
    "xgboost_quantile": "XGBoost quantile",
    "catboost": "CatBoost",
    "sklearn": "scikit-learn HGB",
}


def make_contender(name: str, settings: Settings) -> Contender:
    """Import the library and set it up."""
    module, _, class_name = CLASSES[name].partition(".")
    contender: Contender = getattr(import_module(f"contenders.{module}"), class_name)(settings)
    return contender


def is_installed(name: str) -> bool:
    """Whether the library could be imported."""
    return util.find_spec(library_of(name)) is not None


def library_of(name: str) -> str:
    """The package that is imported for a contender."""
    return name.partition("_")[0]
