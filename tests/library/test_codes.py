import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from biohash_mini import codes as codes_module
from biohash_mini.codes import Codes, DenseCodes, SparseCodes, concatenate
from biohash_mini.storage import save_arrays
from tests.helpers import random_codes


def dense_matrix(codes):
    matrix = codes.to_matrix()
    return np.asarray(matrix if isinstance(codes, DenseCodes) else matrix.toarray())


sizes = st.tuples(st.integers(1, 80), st.integers(1, 80)).map(lambda s: (max(s), min(s)))
kinds = st.sampled_from(["sparse", "dense"])


@settings(deadline=None)
@given(kinds, sizes, st.integers(0, 12), st.integers(1, 12))
def test_hamming_counts_the_bits_that_differ(kind, mk, q, n):
    a, b = random_codes(kind, q, *mk, seed=1), random_codes(kind, n, *mk, seed=2)
    want = (dense_matrix(a)[:, None] != dense_matrix(b)[None]).sum(2)
    assert np.array_equal(a.hamming(b), want)
    assert want.max(initial=0) <= a.max_distance


def test_hamming_in_blocks_is_hamming(monkeypatch):
    a, b = random_codes("sparse", 7, 20, 4), random_codes("sparse", 11, 20, 4, seed=3)
    whole = a.hamming(b)
    monkeypatch.setattr(codes_module, "_BLOCK", 12)
    assert np.array_equal(a.hamming(b), whole)


@pytest.mark.parametrize(
    ("m", "k", "bits", "dtype"),
    [(40, 2, 12, np.uint8), (400, 2, 18, np.uint16), (256, 3, 24, np.uint8), (1, 1, 0, np.uint8)],
)
def test_sparse_codes_cost_k_log_m_bits_and_the_smallest_integers(m, k, bits, dtype):
    codes = random_codes("sparse", 5, m, k)
    assert codes.bits_per_item == bits
    assert codes.active.dtype == dtype
    assert (np.diff(codes.active.astype(int), axis=1) > 0).all()


def test_dense_codes_cost_their_bits():
    codes = random_codes("dense", 5, 19, 0)
    assert codes.bits_per_item == 19
    assert codes.array.shape == (5, 3)


def test_top_k_takes_the_largest_and_breaks_ties_by_unit():
    S = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 2.0, 2.0], [4.0, 3.0, 2.0, 1.0]])
    assert SparseCodes.top_k(S, 2).active.tolist() == [[0, 1], [1, 2], [0, 1]]


@pytest.mark.parametrize("k", [1, 6])
def test_top_k_reaches_from_one_unit_to_all(k):
    S = torch.randn(9, 6, generator=torch.Generator().manual_seed(0))
    codes = SparseCodes.top_k(S, k)
    assert codes.active.shape == (9, k)
    assert (codes.active == 0).any() or k == 1


@pytest.mark.parametrize("k", [0, 7])
def test_top_k_refuses_a_hash_length_that_does_not_fit(k):
    with pytest.raises(ValueError, match="between 1 and the number of units 6"):
        SparseCodes.top_k(torch.zeros(2, 6), k)


def test_signs_are_off_at_zero():
    assert DenseCodes.signs(torch.tensor([[-1.0, 0.0, 2.0]])).to_matrix().tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_slices_and_pieces_make_up_the_whole(kind):
    codes = random_codes(kind, 10, 30, 5)
    assert concatenate([codes[:3], codes[3:4], codes[4:]]) == codes
    assert codes[np.array([2, 2])] == concatenate([codes[2], codes[2]])
    assert len(codes[-1]) == 1 and codes[5:5].hamming(codes).shape == (0, 10)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_codes_survive_the_disk(kind, tmp_path):
    codes = random_codes(kind, 10, 30, 5)
    codes.save(tmp_path / "c.safetensors")
    assert Codes.load(tmp_path / "c.safetensors") == codes


def test_codes_of_other_kinds_or_sizes_are_not_compared():
    sparse = random_codes("sparse", 3, 30, 5)
    for other in (random_codes("dense", 3, 30, 5), random_codes("sparse", 3, 31, 5), random_codes("sparse", 3, 30, 4)):
        with pytest.raises(ValueError, match="cannot compare"):
            sparse.hamming(other)


@pytest.mark.parametrize(
    ("active", "m", "message"),
    [
        ([[0, 0]], 4, "distinct"),
        ([[0, 4]], 4, r"lie in \[0, 4\)"),
        ([[-1, 1]], 4, r"lie in \[0, 4\)"),
        ([[0.5]], 4, "integers"),
        ([0, 1], 4, "shape"),
    ],
)
def test_impossible_sparse_codes_are_refused(active, m, message):
    with pytest.raises(ValueError, match=message):
        SparseCodes(np.array(active), m)


def test_impossible_dense_codes_are_refused():
    with pytest.raises(ValueError, match="past 7 must be zero"):
        DenseCodes(np.array([[255]], np.uint8), 7)
    with pytest.raises(ValueError, match="need uint8"):
        DenseCodes(np.array([[255]], np.uint8), 9)


@settings(deadline=None)
@given(kinds, sizes, st.integers(0, 12))
def test_packed_bits_are_numpys(kind, mk, n):
    codes = random_codes(kind, n, *mk)
    assert codes.packed().dtype == np.uint8
    assert np.array_equal(codes.packed(), np.packbits(dense_matrix(codes), axis=1))


def test_packed_bits_fill_bytes_from_the_left():
    assert SparseCodes(np.array([[0, 9], [7, 8]]), 10).packed().tolist() == [[0b10000000, 0b01000000], [1, 0b10000000]]


@settings(deadline=None)
@given(kinds, sizes, st.integers(1, 12))
def test_a_matrix_has_its_codes_in_either_layout(kind, mk, n):
    codes = random_codes(kind, n, *mk)
    assert Codes.from_matrix(codes.to_matrix()) == codes
    for matrix in (dense_matrix(codes), dense_matrix(codes).astype(bool), sp.coo_matrix(dense_matrix(codes) * 1.0)):
        assert type(codes).from_matrix(matrix) == codes


def test_a_sparse_matrix_is_left_as_it_was():
    matrix = sp.csr_array((np.array([1.0, 0.0, 1.0, 1.0]), np.array([2, 1, 0, 1]), np.array([0, 2, 3, 4])), (3, 3))
    assert SparseCodes.from_matrix(matrix).active.tolist() == [[2], [0], [1]]
    assert matrix.nnz == 4 and matrix.indices.tolist() == [2, 1, 0, 1]


@pytest.mark.parametrize("layout", [np.array, sp.csr_array])
@pytest.mark.parametrize("entry", [2, -1, 0.5, np.nan])
def test_a_matrix_holds_nothing_but_zeros_and_ones(layout, entry):
    for kind in (Codes, SparseCodes, DenseCodes):
        with pytest.raises(ValueError, match=f"nothing but 0 and 1, got {entry}"):
            kind.from_matrix(layout(np.array([[1, 0, 0], [0, entry, 0]])))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 1, 0], [0, 1, 0]], r"same number of ones, at least 1, got \[1, 2\]"),
        ([[0, 0], [0, 0]], r"at least 1, got \[0\]"),
        (np.zeros((0, 4), int), r"at least 1, got \[\]"),
        ([1, 0, 1], r"shape \(n, m\), got \(3,\)"),
    ],
)
def test_sparse_codes_need_a_matrix_with_equally_many_ones_in_each_row(matrix, message):
    with pytest.raises(ValueError, match=message):
        SparseCodes.from_matrix(matrix)


def test_without_faiss_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r'pip install "biohash-mini\[faiss\]"'):
        random_codes("dense", 3, 16, 0).to_faiss()


def test_codes_are_tied_to_the_model_whose_digest_they_carry(tmp_path):
    codes = random_codes("sparse", 5, 20, 3)
    codes.save(tmp_path / "tied", model="abc")
    codes.save(tmp_path / "free")
    assert Codes.load(tmp_path / "tied", model="abc") == Codes.load(tmp_path / "tied") == codes
    assert Codes.load(tmp_path / "free", model="abc") == codes
    with pytest.raises(ValueError, match="tied holds codes of another model: hash the vectors anew"):
        Codes.load(tmp_path / "tied", model="xyz")


@pytest.mark.parametrize("about", [{"codes": ["SparseCodes"]}, {"n_units": "20"}, {"n_units": None}, {"n_units": True}])
def test_a_sealed_file_that_does_not_describe_codes_is_refused(about, tmp_path):
    given = {"codes": "SparseCodes", "n_units": 20} | about
    save_arrays(tmp_path / "x", {"array": np.zeros((2, 1), np.uint8)}, **given)
    with pytest.raises(ValueError, match="does not hold codes"):
        Codes.load(tmp_path / "x")


@pytest.mark.parametrize("k", [1, 3, 64, 65, 70])
def test_winners_are_the_first_of_a_stable_sort(k):
    S = torch.randint(-3, 4, (300, 70), generator=torch.Generator().manual_seed(k)).float()
    S[0], S[1, ::2] = 0, -torch.inf
    want = S.sort(dim=1, descending=True, stable=True).indices[:, :k].sort(dim=1).values
    assert np.array_equal(SparseCodes.top_k(S, k).active, want.numpy())


@pytest.mark.parametrize(("k", "m"), [(1, 200), (2, 40), (16, 320), (32, 640), (64, 64)])
@pytest.mark.parametrize("scale", [1, 1e-38, 3e38])
def test_winners_of_rows_of_any_size_are_those_of_a_stable_sort(k, m, scale):
    S = torch.randn(300, m, generator=torch.Generator().manual_seed(m)).clamp(-0.9, 0.9) * scale
    S[0, -1], S[1, 0], S[2, :3] = 1e30, -1e30, -torch.inf
    S[3:6, 1::2] = S[3:6, ::2]  # pairs of equal entries
    want = S.sort(dim=1, descending=True, stable=True).indices[:, :k].sort(dim=1).values
    assert np.array_equal(SparseCodes.top_k(S, k).active, want.numpy())
