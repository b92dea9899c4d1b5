"""Arguments that mean nothing, found by the campaign of malformed input: each is refused by its name."""

import numpy as np
import pytest
import torch

from biohash_mini import LSH, BioHash, HammingIndex, average_precision, circle, mean_average_precision, recall
from biohash_mini.codes import DenseCodes, SparseCodes
from biohash_mini.datasets import load, nearest
from biohash_mini.hashers import Hasher
from biohash_mini.metrics import functional_smoothness
from biohash_mini.storage import load_arrays, save_arrays
from tests.helpers import random_codes

CODES = random_codes("sparse", 5, 30, 3)
NO_COUNT = [2.5, float("nan"), "3", None, True, [3], 0]
NO_SEED = [-1, 0.5, "zero", None, True, [1]]


@pytest.mark.parametrize("value", NO_COUNT)
@pytest.mark.parametrize(
    ("name", "call"),
    {
        "top": lambda v: HammingIndex(CODES).search(CODES, v),
        "top of nearest": lambda v: nearest(np.eye(3), np.eye(3), v),
        "n_units": lambda v: SparseCodes([[0]], v),
        "n_units of bits": lambda v: DenseCodes(np.zeros((3, 2), np.uint8), v),
        "hash_length": lambda v: SparseCodes.top_k(torch.eye(6), v),
        "n_units of the circle": lambda v: circle.optimal_angles(v, 0.5),
        "hash_length of the circle": lambda v: circle.kl_divergence(0.5, v, 4),
        "n_units of pairs": lambda v: circle.false_negative_rate(0.3, v, 1),
        "rows per class": lambda v: load("mnist").retrieval_task(0, 0 if v is None else v),
        "size": lambda v: load("mnist").word_task(0, 0 if v is None else v),
    }.items(),
    ids=str,
)
def test_what_is_no_count_is_refused_by_name(name, call, value):
    with pytest.raises(ValueError, match=f"{name.split(' of ')[0]} must"):
        call(value)


def test_an_integer_beyond_all_floats_is_no_number():
    with pytest.raises(ValueError, match="learning_rate must be a finite number"):
        BioHash(2, learning_rate=10**400).fit(np.eye(4))


def test_a_masked_array_is_refused_where_something_is_masked():
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert LSH(2).fit(np.ma.masked_greater(X, 99)).encode(X) == LSH(2).fit(X).encode(X)
    for use in (LSH(2).fit, LSH(2).fit(X).encode):
        with pytest.raises(ValueError, match="X is a masked array, some values of which are missing"):
            use(np.ma.masked_greater(X, 1))
    a, b = np.ma.masked_equal([1, 2], 2), np.array([1, 0])
    for use in (lambda: average_precision(a, b), lambda: average_precision(b, np.ma.masked_equal(b, 0))):
        with pytest.raises(ValueError, match=r"masked|relevant"):
            use()
    with pytest.raises(ValueError, match="queries and database must all be known"):
        nearest(np.ma.masked_greater(X, 1), X, 1)


@pytest.mark.parametrize("kind", [complex, str, object])
def test_nearest_takes_real_numbers_alone(kind):
    with pytest.raises(ValueError, match="queries and database must be real numbers"):
        nearest(np.eye(3).astype(kind), np.eye(3), 1)


@pytest.mark.parametrize("width", [6, 200])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_activations_of_which_one_is_nan_have_no_largest(k, width):
    S = torch.arange(2.0 * width).reshape(2, width)
    S[1, 2] = float("nan")
    for make in (lambda S: SparseCodes.top_k(S, k), DenseCodes.signs):
        with pytest.raises(ValueError, match="no NaN"):
            make(S)
        with pytest.raises(ValueError, match=r"shape \(n, m\)"):
            make(S[0])


def test_codes_of_more_units_than_32_bits_number_are_refused_and_units_are_not_cut_off():
    for m in (1 << 31, 10**30):
        with pytest.raises(ValueError, match="n_units must be an integer from 1 to 2147483647"):
            SparseCodes([[0, 1]], m)
    with pytest.raises(IndexError, match="no units of them"):
        CODES[:, :2]


@pytest.mark.parametrize(
    ("relevant", "which", "exclude"),
    [
        (np.zeros((1, 4), bool), [0] * 5, None),
        (np.zeros((1, 5)), [0] * 5, None),
        (np.zeros((1, 5), bool), [0, 0, 0, 0, 1], None),
        (np.zeros((1, 5), bool), [0, 0, 0, 0, -1], None),
        (np.zeros((1, 5), bool), [0] * 4, None),
        (np.zeros((1, 5), bool), [0] * 5, [5, 0, 0, 0, 0]),
        (np.zeros((1, 5), bool), [0] * 5, [0]),
    ],
)
def test_histograms_look_at_no_row_that_does_not_exist(relevant, which, exclude):
    for codes in (CODES, random_codes("sparse", 5, 300, 3), random_codes("dense", 5, 16, 0)):
        with pytest.raises(ValueError, match="are not those of"):
            HammingIndex(codes).histograms(codes, relevant, np.array(which), exclude and np.array(exclude))


@pytest.mark.parametrize("seed", NO_SEED)
def test_a_task_needs_a_seed_that_can_be_repeated(seed):
    for make in (load("mnist").retrieval_task, load("glove").word_task):
        with pytest.raises(ValueError, match="seed must be an integer of at least 0"):
            make(seed)


def test_rows_of_different_length_and_sparse_tensors_are_refused_by_name():
    for X, words in (([[1.0], [1.0, 2.0]], "different lengths"), (torch.eye(4).to_sparse(), "to_dense")):
        with pytest.raises(ValueError, match=f"X .*{words}"):
            LSH(2).fit(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: average_precision(["a"], [1]), "distances must be real numbers"),
        (lambda: average_precision([1j], [1]), "distances must be real numbers"),
        (lambda: recall([[0]], [[0.5]]), "row numbers"),
        (lambda: recall([["a"]], [[0]]), "row numbers"),
        (lambda: functional_smoothness(np.full((5, 2), np.nan), CODES), "X must be finite"),
        (lambda: functional_smoothness(np.zeros(5), CODES), r"X must have shape \(n, d\)"),
        (lambda: functional_smoothness(np.eye(5), CODES, "a"), "fraction must lie"),
        (lambda: mean_average_precision(CODES, CODES, [[1], [2, 3]], np.zeros(5)), "labels must be an array"),
        (lambda: HammingIndex(CODES).search(None), "cannot compare"),
        (lambda: load(["mnist"]), "unknown data set"),
    ],
)
def test_what_is_no_number_or_no_array_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("angles", [[np.nan, 0.0], [np.inf], [], ["a"], None, [1j]])
def test_angles_are_finite_real_numbers(angles):
    with pytest.raises(ValueError, match="angles must"):
        circle.energy(angles, 0.5)


@pytest.mark.parametrize("sigma", ["a", [1.0], 1j, True - 1, 1e-300])
def test_the_width_of_a_density_is_a_positive_number(sigma):
    with pytest.raises(ValueError, match="sigma must be positive"):
        circle.energy([0.0, 1.0], sigma)


@pytest.mark.parametrize("theta", [np.nan, "a", None])
def test_an_angle_between_data_is_a_number(theta):
    with pytest.raises(ValueError, match="theta"):
        circle.false_negative_rate(theta, 5, 1)


def test_a_billion_units_on_the_circle_are_refused_at_once():
    with pytest.raises(ValueError, match="from 1 to 10000"):
        circle.optimal_angles(10**9, 0.5)


def test_the_base_class_of_the_methods_is_no_method_of_a_file(tmp_path):
    LSH(2).fit(np.eye(3)).save(tmp_path / "m")
    arrays, about = load_arrays(tmp_path / "m")
    save_arrays(tmp_path / "m", arrays, **{**about, "hasher": "Hasher"})
    with pytest.raises(ValueError, match="holds Hasher, not"):
        Hasher.load(tmp_path / "m")


def test_a_file_of_something_else_in_the_place_of_features_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("BIOHASH_CACHE", str(tmp_path))
    monkeypatch.delenv("BIOHASH_DATA", raising=False)
    CODES.save(tmp_path / "cifar10-alexnet-pooled.safetensors")
    with pytest.raises(ValueError, match=r"alexnet-pooled\.safetensors does not hold features"):
        load("cifar10-alexnet", "full")
