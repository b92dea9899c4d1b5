"""scikit-learn's own checks of an estimator, and the few that hashers do not meet, each with its reason."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from biohash_mini import METHODS, BioConvHash
from biohash_mini.inputs import as_rows

from .contract import make

#: Checks that every hasher fails, and why.
EXCEPTIONS = {
    "check_dtype_object": "arrays of objects are refused, even where each object is a number",
}
VECTORS = [name for name, method in METHODS.items() if not method.takes_images]
QUICK = ("LSH", "BioHash")


#: BioConvHash takes images, and the checks give it tables of any width: those below say so, and nothing else is wrong.
NEEDS_IMAGES = """
    check_fit_score_takes_y check_estimators_overwrite_params check_dont_overwrite_parameters
    check_f_contiguous_array_estimator check_estimators_fit_returns_self check_readonly_memmap_input
    check_positive_only_tag_during_fit check_estimators_dtypes check_pipeline_consistency check_estimators_pickle
    check_transformer_data_not_an_array check_transformer_general check_methods_sample_order_invariance
    check_methods_subset_invariance check_fit2d_1sample check_fit2d_1feature check_dict_unchanged
    check_fit_idempotent check_fit_check_is_fitted check_n_features_in check_fit2d_predict1d check_estimators_nan_inf
    check_n_features_in_after_fitting
"""
SMALL = {"kernel_sizes": (1,), "n_filters": 6, "channel_winners": 2, "pool": 1, "stride": 1, "n_patches": 200}
SMALL |= {"filter_epochs": 1, "max_epochs": 1, "activity": 0.5}


class Strips(BioConvHash):
    """A convolution for which every row is an image of one line, so that any table is a set of images."""

    def _images(self, X, shape, anew=False):
        rows = as_rows(X)
        return super()._images(rows, shape or (1, 1, rows.shape[1]), anew)


def failures(hasher):
    """Return the checks that a hasher fails, and what it said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks fit to a few rows, of which some bits are constant
        outcome = check_estimator(hasher, on_fail=None, on_skip=None)
    assert len(outcome) > 30
    return {o["check_name"]: str(o["exception"]) for o in outcome if o["status"] == "failed"}


def test_a_convolution_meets_them_too_where_rows_are_images():
    assert failures(Strips(1, **SMALL, normalize=False)).keys() == EXCEPTIONS.keys()


def test_a_convolution_that_is_given_tables_asks_for_images():
    found = failures(BioConvHash(1, **SMALL))
    assert found.keys() == EXCEPTIONS.keys() | set(NEEDS_IMAGES.split())
    said = ("X must be images", "unexpectedly", "doesn't check for NaN")  # ours, or what hides it
    assert [n for n in NEEDS_IMAGES.split() if not any(words in found[n] for words in said)] == []


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in VECTORS])
def test_a_vector_hasher_meets_the_checks_of_scikit_learn_but_for_named_exceptions(name):
    assert failures(make(name, 1)).keys() == EXCEPTIONS.keys()
