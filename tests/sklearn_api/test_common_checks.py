"""scikit-learn's own checks of an estimator, on both of ours.

As constructed, where data of a few dozen rows mostly grow no trees; and with few rows per leaf,
where they do.
"""

from typing import Any

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import torchgbdt as tg

SMALL_LEAVES = {"n_estimators": 5, "min_samples_leaf": 1}

ESTIMATORS = [
    tg.GBDTRegressor(),
    tg.GBDTRegressor(**SMALL_LEAVES),
    tg.GBDTClassifier(),
    tg.GBDTClassifier(**SMALL_LEAVES),
]
PEERS = {
    tg.GBDTRegressor: HistGradientBoostingRegressor,
    tg.GBDTClassifier: HistGradientBoostingClassifier,
}


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Check -> why it fails."""
    if isinstance(estimator, tg.GBDTClassifier) and estimator.min_samples_leaf == 20:
        return {
            "check_sample_weight_equivalence_on_dense_data": (
                "a weight of 2 is a repeated row up to float32 rounding: 2e-7 after 100 rounds, "
                "where the check allows 1e-7"
            )
        }
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failed_checks)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_every_expected_failure_is_one_of_the_histogram_booster_of_scikit_learn(
    estimator: Any,
) -> None:
    from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS

    allowed = PER_ESTIMATOR_XFAIL_CHECKS[PEERS[type(estimator)]]
    assert expected_failed_checks(estimator).keys() <= allowed.keys()
