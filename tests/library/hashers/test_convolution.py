import numpy as np
import pytest
import torch
from sklearn.base import clone

from biohash_mini import BioConvHash
from biohash_mini.datasets import load
from biohash_mini.hashers.convolution.maps import ByteFeatures, inhibit_and_pool, sample_patches, unit_patches
from biohash_mini.plasticity import train


def small(**given):
    defaults = {"activity": 0.1, "n_filters": 12, "channel_winners": 3, "n_patches": 500, "filter_epochs": 2}
    return BioConvHash(2, **{**defaults, "max_epochs": 5, **given})


@pytest.fixture(scope="module")
def digits():
    mnist = load("mnist", "mini")
    return mnist.vectors(np.arange(300)).reshape(-1, *mnist.image_shape)


@pytest.fixture(scope="module")
def fitted(digits):
    return small().fit(digits)


def slow_features(image, filters, size, winners, pool, stride, normalize=True):
    """The features of one image and one kernel size, written as the paper says it."""
    _, h, w = image.shape
    maps = np.zeros((len(filters), h - size + 1, w - size + 1))
    for y in range(h - size + 1):
        for x in range(w - size + 1):
            patch = image[:, y : y + size, x : x + size].ravel()
            norm = np.linalg.norm(patch)
            if norm > 1e-3:
                a = filters @ (patch / norm if normalize else patch)
                kept = np.argsort(-a, kind="stable")[:winners]
                maps[kept, y, x] = np.maximum(a[kept], 0)
    starts = [range(0, side - pool + 1, stride) for side in maps.shape[1:]]
    return np.array([maps[:, y : y + pool, x : x + pool].max((1, 2)) for y in starts[0] for x in starts[1]])


@pytest.mark.parametrize(("size", "winners", "pool", "stride"), [(3, 1, 7, 2), (4, 5, 3, 1), (2, 12, 4, 3)])
@pytest.mark.parametrize("normalize", [True, False])
def test_features_are_the_slow_loop(size, winners, pool, stride, normalize):
    rng = np.random.default_rng(0)
    images = rng.random((4, 2, 12, 13), dtype=np.float32)
    images[:, :, :6, :6] = 0  # blank patches
    filters = rng.normal(size=(12, 2 * size**2)).astype(np.float32)
    A = unit_patches(torch.from_numpy(images), size, normalize) @ torch.from_numpy(filters).T
    pooled = inhibit_and_pool(A, 12 - size + 1, winners, pool, stride)
    for image, got in zip(images, pooled.numpy(), strict=True):
        np.testing.assert_allclose(
            got, slow_features(image, filters, size, winners, pool, stride, normalize), atol=1e-5
        )


def test_the_fused_pass_is_the_tensor_operations():
    A = torch.randn(3, 11 * 9, 20, generator=torch.Generator().manual_seed(0))
    top, channels = A.topk(4, dim=2)
    kept = torch.zeros_like(A).scatter_(2, channels, top.clamp_min(0)).transpose(1, 2).reshape(3, 20, 11, 9)
    want = torch.nn.functional.max_pool2d(kept, 5, 2).flatten(2).transpose(1, 2)
    torch.testing.assert_close(inhibit_and_pool(A, 11, 4, 5, 2), want)


@pytest.mark.parametrize("winners", [1, 3, 7, 20])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_of_equal_channels_those_that_stand_first_stay(winners, scale):
    rng = np.random.default_rng(winners)
    A = rng.integers(-3, 4, (40, 30, 20)).astype(np.float32) * np.float32(scale)  # each image is a line of positions
    order = np.argsort(-A, axis=2, kind="stable")[:, :, :winners]
    want = np.zeros_like(A)
    np.put_along_axis(want, order, np.take_along_axis(A, order, 2).clip(0), 2)
    np.testing.assert_array_equal(inhibit_and_pool(torch.from_numpy(A), 1, winners, 1, 1).numpy(), want)


def test_a_patch_does_not_see_the_light_and_a_blank_one_gives_nothing():
    X = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)) + 0.1
    torch.testing.assert_close(unit_patches(0.3 * X, 3), unit_patches(X, 3))
    assert not unit_patches(torch.zeros(1, 3, 8, 8), 3).any()
    assert unit_patches(0.3 * X, 3, normalize=False).max() < 0.5


def test_bytes_stand_for_activations_to_half_a_level(digits, fitted):
    X = torch.from_numpy(digits[:20])
    exact = torch.cat([fitted._pooled(X, size) for size in fitted.kernel_sizes], 1)
    stored = fitted.features(digits[:20])
    features = ByteFeatures(stored, fitted.scale_, torch.zeros_like(fitted.scale_))
    inside = exact < 255 * fitted.scale_
    assert stored.dtype == torch.uint8 and inside.float().mean() > 0.999
    assert ((features[:] - exact).abs() <= fitted.scale_ / 2 + 1e-6)[inside].all()


def test_features_are_centred_by_their_own_mean():
    levels = torch.randint(0, 256, (3000, 7), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    features = ByteFeatures(levels, torch.full((7,), 0.01))
    torch.testing.assert_close(features[:].mean(0), torch.zeros(7), atol=1e-5, rtol=0)
    torch.testing.assert_close(features[torch.tensor([5, 3])], 0.01 * levels[[5, 3]].float() - features.mean)


def test_sampled_patches_come_from_the_images(digits):
    X = torch.from_numpy(digits[:2])
    patches = sample_patches(X, 3, 200, True, torch.Generator().manual_seed(0))
    every = unit_patches(X, 3).flatten(0, 1)
    assert patches.shape == (200, 9)
    assert (torch.cdist(patches, every).min(1).values < 1e-3).all()
    with pytest.raises(ValueError, match="nothing to learn from"):
        sample_patches(torch.zeros(2, 1, 9, 9), 3, 200, True, torch.Generator())


def test_codes_have_k_units_and_the_same_seed_gives_the_same(digits, fitted):
    codes = fitted.encode(digits)
    assert codes.active.shape == (300, 2) and codes.n_units == 20
    assert clone(fitted).fit(digits).encode(digits) == codes
    assert small(seed=1).fit(digits).encode(digits) != codes


def test_stages_can_be_taken_apart(digits, fitted):
    apart = small().fit_features(digits)
    levels = apart.features(digits)
    assert apart.fit_layer(levels).encode_features(levels, [2])[2] == fitted.encode(digits)


def test_the_layer_may_take_either_step(digits, fitted):
    levels = fitted.features(digits)
    pace = {"reduction": "max", "learning_rate": 0.02, "batch_size": 100, "max_epochs": 5, "norm_tol": 0.0}
    other = clone(fitted).set_params(**pace, smooth=False, start="normal").fit(digits)
    rng = torch.Generator().manual_seed(0)
    W = torch.randn(20, levels.shape[1], generator=rng)
    train(ByteFeatures(levels, fitted.scale_), W, **pace, rng=rng)
    torch.testing.assert_close(other.weights_, W)


def test_codes_hardly_change_in_the_shade(digits):
    bright = digits + 0.2  # no blank patches
    hasher = small(n_filters=50).fit(bright)
    light, shade = hasher.encode(bright), hasher.encode(0.3 * bright)
    assert (light.active == shade.active).mean() > 0.98


def test_each_kernel_size_may_have_its_own_delta(digits):
    hasher = small(kernel_sizes=(3, 5), delta=(0.1, 0.2)).fit(digits)
    assert hasher.filters_3_.shape == (12, 9) and hasher.filters_5_.shape == (12, 25)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"channel_winners": 13}, "channel_winners must be at most the number of filters 12"),
        ({"delta": (0.1, 0.1, 0.1)}, "delta must be one number or one for each of 2"),
        ({"kernel_sizes": (3, 25)}, "too small for kernels of 25 pooled by 7"),
        ({"kernel_sizes": ()}, "at least one size"),
        ({"stride": 0}, "stride must be at least 1"),
        ({"reduction": "sum"}, "reduction must be max, mean or implicit, got 'sum'"),
    ],
)
def test_parameters_that_cannot_work_are_refused(digits, given, message):
    with pytest.raises(ValueError, match=message):
        small(**given).fit(digits)


def test_images_of_another_shape_are_refused(digits, fitted):
    with pytest.raises(ValueError, match=r"images have shape \(1, 27, 28\)"):
        fitted.encode(digits[:, :, 1:])
    with pytest.raises(ValueError, match=r"must be images of shape \(n, c, h, w\), or rows with image_shape set"):
        small().fit(digits.reshape(300, -1))


def test_rows_are_images_where_their_shape_is_known(digits, fitted):
    rows = digits.reshape(300, -1)
    assert fitted.encode(rows) == fitted.encode(digits)
    assert small(image_shape=(1, 28, 28)).fit(rows).encode(rows) == fitted.encode(digits)


def test_a_shape_is_learned_anew_by_the_next_fit_and_held_to_by_every_stage(digits, fitted):
    narrow = digits.reshape(300, 1, 14, 56)
    with pytest.raises(ValueError, match=r"images have shape \(1, 14, 56\), but filters were learned from"):
        fitted.features(narrow)
    again = small(image_shape=(1, 28, 28)).fit(digits).set_params(image_shape=(1, 14, 56)).fit(narrow.reshape(300, -1))
    assert again.encode(narrow) == small().fit(narrow).encode(narrow)
