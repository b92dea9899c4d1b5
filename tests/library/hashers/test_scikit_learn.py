"""scikit-learn's own checks of an estimator, and the few that hashers do not meet, each with its reason."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from biohash_mini import METHODS

from .contract import make

#: Checks that every vector hasher fails, and why. BioConvHash is not here: it takes images, not any table of numbers.
EXCEPTIONS = {
    "check_complex_data": "refused, as it asks, in our words: X must hold real numbers",
    "check_dtype_object": "arrays of objects are refused, even where each object is a number",
    "check_estimators_empty_data_messages": "refused, as it asks, in our words: X must have shape (n, d)",
    "check_estimators_nan_inf": "refused, as it asks, in our words, which name the entry: X[5, 3] is nan",
    "check_fit2d_predict1d": "refused, as it asks, in our words, which name the shape",
    "check_n_features_in_after_fitting": "refused, as it asks, in our words: X has 3 features, but was fitted with 4",
}
VECTORS = [name for name, method in METHODS.items() if not method.takes_images]
QUICK = ("LSH", "BioHash")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in VECTORS])
def test_a_vector_hasher_meets_the_checks_of_scikit_learn_but_for_named_exceptions(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks fit to a few rows, of which some bits are constant
        outcome = check_estimator(make(name, 1), on_fail=None, on_skip=None)
    assert {o["check_name"]: o["exception"] for o in outcome if o["status"] == "failed"}.keys() == EXCEPTIONS.keys()
    assert len(outcome) > 30
