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
    "xgboost": "with_xgboost.XGBoost",
    "catboost": "with_catboost.CatBoost",
    "sklearn": "with_sklearn.ScikitLearn",
}
"""Module and class by the name of the package that is imported."""
PEERS = tuple(name for name in CLASSES if name != OURS)
TITLES = {OURS: OURS, "lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"} | {
    "sklearn": "scikit-learn HGB"
}


def make_contender(name: str, settings: Settings) -> Contender:
    """Import the library and set it up."""
    module, _, class_name = CLASSES[name].partition(".")
    contender: Contender = getattr(import_module(f"contenders.{module}"), class_name)(settings)
    return contender


def is_installed(name: str) -> bool:
    """Whether the library could be imported."""
    return util.find_spec(name) is not None
