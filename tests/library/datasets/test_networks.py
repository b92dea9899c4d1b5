import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pooch
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from biohash_mini.datasets import Dataset, data_path, load, networks
from biohash_mini.datasets.networks import MEAN, STD, build, extract, preprocess
from biohash_mini.storage import digest, load_arrays, save_arrays

from .pictures import Tiny, killed_network, pictures

pytestmark = pytest.mark.usefixtures("nothing_at_hand")
WEIGHTS = os.environ.get("BIOHASH_DATA", "")  # before the fixture hides it


# --- the networks


@pytest.mark.parametrize(
    ("name", "layer", "side", "d"),
    [
        ("alexnet", "pool5", 224, 256 * 6 * 6),
        ("alexnet", "pooled", 224, 256),
        ("alexnet", "pooled", 63, 256),
        ("alexnet", "fc7", 63, 4096),
        ("vgg16", "pool5", 64, 512 * 2 * 2),
        ("vgg16", "pooled", 64, 512),
        ("vgg16bn", "pooled", 32, 512),
    ],
)
def test_features_have_their_size_and_are_not_negative(name, layer, side, d):
    network = build(name, layer)
    with torch.inference_mode():
        X = network(torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(0)))
    assert X.shape == (2, d) and X.min() == 0 < X.max()


def parameters(network):
    return {key: tuple(value.shape) for key, value in network.state_dict().items()}


def test_alexnet_has_torchvisions_parameters():
    assert parameters(build("alexnet", "fc7")) == {
        "features.0.weight": (64, 3, 11, 11),
        "features.0.bias": (64,),
        "features.3.weight": (192, 64, 5, 5),
        "features.3.bias": (192,),
        "features.6.weight": (384, 192, 3, 3),
        "features.6.bias": (384,),
        "features.8.weight": (256, 384, 3, 3),
        "features.8.bias": (256,),
        "features.10.weight": (256, 256, 3, 3),
        "features.10.bias": (256,),
        "classifier.1.weight": (4096, 9216),
        "classifier.1.bias": (4096,),
        "classifier.4.weight": (4096, 4096),
        "classifier.4.bias": (4096,),
    }


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("vgg16", [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28]),
        ("vgg16bn", [0, 3, 7, 10, 14, 17, 20, 24, 27, 30, 34, 37, 40]),
    ],
)
def test_vgg_has_torchvisions_parameters(name, positions):
    with torch.device("meta"):  # shapes only: fc6 alone has a hundred million weights
        shapes = parameters(build(name, "fc7"))
    widths = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    for position, before, after in zip(positions, widths[:-1], widths[1:], strict=True):
        assert shapes.pop(f"features.{position}.weight") == (after, before, 3, 3)
        assert shapes.pop(f"features.{position}.bias") == (after,)
        if name == "vgg16bn":
            norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
            assert [shapes.pop(f"features.{position + 1}.{key}") for key in norm] == [(after,)] * 4 + [()]
    assert shapes == {
        "classifier.0.weight": (4096, 25088),
        "classifier.0.bias": (4096,),
        "classifier.3.weight": (4096, 4096),
        "classifier.3.bias": (4096,),
    }


def kinds(network):
    return "".join(type(layer).__name__[0] for layer in network)


def test_layers_stand_in_the_published_order():
    with torch.device("meta"):
        alexnet, vgg, norm = (build(name, "fc7") for name in ("alexnet", "vgg16", "vgg16bn"))
    assert kinds(alexnet.features) == "CRMCRMCRCRCRM" and kinds(alexnet.classifier) == "DLRDLR"
    assert kinds(vgg.features) == "CRCRMCRCRMCRCRCRMCRCRCRMCRCRCRM" and kinds(vgg.classifier) == "LRDLR"
    assert kinds(norm.features) == kinds(vgg.features).replace("C", "CB")
    assert not any(network.training for network in (alexnet, vgg, norm))  # dropout does nothing, norms are fixed


def test_the_pooled_map_is_the_mean_of_the_flat_one():
    flat, pooled = build("alexnet", "pool5"), build("alexnet", "pooled")
    pooled.load_state_dict(flat.state_dict())
    x = preprocess(torch.from_numpy(pictures(2)), 96)
    with torch.inference_mode():
        want = flat(x).reshape(2, 256, -1).mean(2)
        torch.testing.assert_close(pooled(x), want)


def test_unknown_networks_and_layers_are_refused_with_the_known_ones():
    for name, layer in (("resnet", "fc7"), ("alexnet", "fc9")):
        with pytest.raises(ValueError, match=r"fc7, pool5, pooled of vgg16, vgg16bn, alexnet"):
            build(name, layer)


# --- what the network sees


def slow_resize(channel, height, width):
    """Resize by weighted means, one pixel at a time: a triangle as wide as the step between samples, or two pixels."""

    def weights(new, old):
        scale, W = old / new, np.zeros((new, old))
        reach = max(scale, 1.0)
        for i in range(new):
            for j in range(old):
                W[i, j] = max(0.0, 1 - abs(j + 0.5 - (i + 0.5) * scale) / reach)
        return W / W.sum(1, keepdims=True)

    return weights(height, channel.shape[0]) @ channel @ weights(width, channel.shape[1]).T


@pytest.mark.parametrize(("height", "width", "side"), [(32, 32, 56), (32, 32, 21), (90, 61, 28), (40, 71, 35)])
def test_preprocessing_equals_a_slow_reference(height, width, side):
    image = pictures(1, height, width)[0]
    scaled = round(side * 256 / 224)
    size = (scaled * height // min(height, width), scaled * width // min(height, width))
    top, left = round((size[0] - side) / 2), round((size[1] - side) / 2)
    seen = preprocess(torch.from_numpy(image[None]), side)[0].numpy()
    levels = seen * np.reshape(STD, (3, 1, 1)) + np.reshape(MEAN, (3, 1, 1))
    for channel, got in zip(image, levels * 255, strict=True):
        want = slow_resize(channel.astype(float), *size)[top : top + side, left : left + side]
        assert np.abs(got - want).max() < 0.501  # rounded to whole levels
        np.testing.assert_allclose(got, np.rint(got), atol=1e-3)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (300, 400)])
def test_resizing_is_pillows_to_one_level(height, width):
    image = pictures(1, height, width)[0]
    size = (int(256 * width / min(height, width)), int(256 * height / min(height, width)))
    pillow = Image.fromarray(image.transpose(1, 2, 0)).resize(size, Image.Resampling.BILINEAR)
    top, left = round((size[1] - 224) / 2), round((size[0] - 224) / 2)
    want = np.asarray(pillow, float)[top : top + 224, left : left + 224].transpose(2, 0, 1)
    seen = preprocess(torch.from_numpy(image[None]))[0].numpy()
    levels = 255 * (seen * np.reshape(STD, (3, 1, 1)) + np.reshape(MEAN, (3, 1, 1)))
    assert levels.shape == (3, 224, 224) and np.abs(levels - want).max() < 1.001


# --- weights


def test_convolutions_are_read_from_the_given_folder_and_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("BIOHASH_DATA", str(tmp_path))
    state = build("alexnet", "pool5").state_dict()
    save_file(state, tmp_path / "alexnet_features_imagenet.safetensors")
    with pytest.raises(ValueError, match="published convolutions"):
        networks.pretrained("alexnet", "pooled")
    monkeypatch.setitem(networks.CONVOLUTIONS, "alexnet", digest({k: v.numpy() for k, v in state.items()}))
    loaded = networks.pretrained("alexnet", "pooled").state_dict()
    assert loaded.keys() == state.keys() and all(torch.equal(loaded[key], state[key]) for key in state)


def test_the_canonical_file_serves_every_layer_and_another_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BIOHASH_DATA", str(tmp_path))
    state = build("alexnet", "pooled").state_dict()
    file = tmp_path / networks.CANONICAL["alexnet"][0]
    torch.save(state | {"classifier.6.weight": torch.zeros(3, 2)}, file)
    with pytest.raises(ValueError, match="not the published file"):
        networks.pretrained("alexnet", "pooled")
    monkeypatch.setitem(networks.CANONICAL, "alexnet", (file.name, hashlib.sha256(file.read_bytes()).hexdigest()[:8]))
    loaded = networks.pretrained("alexnet", "pooled").state_dict()
    assert loaded.keys() == state.keys() and all(torch.equal(loaded[key], state[key]) for key in state)
    save_file(state, tmp_path / "alexnet_features_imagenet.safetensors")
    assert "classifier.6.weight" in networks.weights("alexnet", "fc7")  # the convolutions alone would not do


def test_canonical_weights_are_downloaded_where_they_are_published(tmp_path, monkeypatch):
    asked = []

    def retrieve(url, known_hash, fname, path, downloader):
        asked.append(url)
        (path / fname).parent.mkdir(parents=True)
        torch.save(build("alexnet", "pooled").state_dict(), path / fname)
        return str(path / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(ValueError, match="7be5be79"):  # what arrives is checked
        networks.canonical_weights("alexnet")
    assert asked == ["https://download.pytorch.org/models/alexnet-owt-7be5be79.pth"]
    for file, sha256 in networks.CANONICAL.values():
        assert file.removesuffix(".pth").endswith(sha256[:8])  # torchvision names a file by its checksum


# --- extraction


def test_extraction_is_the_network_on_preprocessed_images(tmp_path):
    images, network = pictures(7), Tiny()
    path = extract(images, network, tmp_path / "x.safetensors", side=20, batch_size=3, also={"labels": np.arange(7)})
    arrays, about = load_arrays(path)
    with torch.inference_mode():
        want = network(preprocess(torch.from_numpy(images), 20))
    np.testing.assert_allclose(arrays["X"], want, rtol=1e-3, atol=1e-4)  # half precision
    assert arrays["X"].dtype == np.float16 and arrays["labels"].tolist() == list(range(7)) and about["side"] == 20
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.safetensors"]  # no parts are left


def test_what_is_extracted_is_not_extracted_again(tmp_path):
    images, network, path = pictures(4), Tiny(), tmp_path / "x.safetensors"
    for _ in range(2):
        extract(images, network, path, side=20, batch_size=2)
    assert network.calls == 2
    with pytest.raises(ValueError, match="another kind"):
        extract(images, network, path, side=21, batch_size=2)
    with pytest.raises(ValueError, match="another kind"):
        extract(images[::-1].copy(), network, path, side=20, batch_size=2)


def test_parts_of_other_images_or_damaged_ones_are_computed_again(tmp_path):
    images, network, folder = pictures(4), Tiny(), tmp_path / "x.parts"
    want = load_arrays(extract(images, network, tmp_path / "whole.safetensors", side=20, batch_size=2))
    save_arrays(folder / "00000000.safetensors", {"X": np.zeros((2, 4), np.float16)}, start=0)
    (folder / "00000002.safetensors").write_bytes(b"half a file")
    got = load_arrays(extract(images, network, tmp_path / "x.safetensors", side=20, batch_size=2))
    assert digest(got[0]) == digest(want[0]) and got[1] == want[1]


SLOW = """
import sys, time
from biohash_mini.datasets.networks import extract
from tests.library.datasets.pictures import killed_network, pictures
network = killed_network()
network.register_forward_hook(lambda *args: time.sleep(0.3))
extract(pictures(12), network, sys.argv[1], side=63, batch_size=2, device="cpu")
"""


def content(path):
    """Return the description and the bytes of the arrays of a safetensors file."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def test_an_extraction_killed_half_way_ends_with_the_same_bytes(tmp_path):
    killed, parts = tmp_path / "killed.safetensors", tmp_path / "killed.parts"
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(killed)], stderr=subprocess.DEVNULL)
    while len(list(parts.glob("0*.safetensors"))) < 3:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(parts.glob("0*.safetensors")))
    assert 3 <= done < 6 and not killed.exists()

    network, computed = killed_network(), []
    network.register_forward_hook(lambda *args: computed.append(1))
    options = {"side": 63, "batch_size": 2, "device": "cpu"}
    extract(pictures(12), network, killed, **options)
    assert len(computed) == 6 - done  # what was done is not done again
    whole = extract(pictures(12), network, tmp_path / "whole.safetensors", **options)
    assert content(killed) == content(whole) and not parts.exists()


def test_a_process_whose_parts_another_has_removed_takes_what_that_one_wrote(tmp_path, monkeypatch):
    options, path = {"side": 63, "batch_size": 2, "device": "cpu", "verbose": False}, tmp_path / "x.safetensors"

    def overtaken(*_, **__):
        monkeypatch.setattr(networks, "save_arrays", save_arrays)
        extract(pictures(6), Tiny(), path, **options)
        raise FileNotFoundError("the folder of the parts is gone")

    monkeypatch.setattr(networks, "save_arrays", overtaken)
    extract(pictures(6), Tiny(), path, **options)
    assert len(load_arrays(path)[0]["X"]) == 6 and not path.with_suffix(".parts").exists()
    monkeypatch.setattr(networks, "save_arrays", lambda *_, **__: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="the disk is full"):
        extract(pictures(6), Tiny(), tmp_path / "y.safetensors", **options)


# --- CIFAR-10


def test_the_sample_of_features_is_what_the_network_gives(monkeypatch):
    monkeypatch.setenv("BIOHASH_DATA", WEIGHTS)
    if not WEIGHTS or not list(Path(WEIGHTS).glob("alexnet*")):
        pytest.skip("AlexNet's weights are not on this machine; name their folder in BIOHASH_DATA")
    network = networks.pretrained("alexnet", "pooled")
    images = torch.from_numpy(load("cifar10").X[::1000].reshape(-1, 3, 32, 32))
    with torch.inference_mode():
        X = network(preprocess(images))
    np.testing.assert_allclose(load("cifar10-alexnet").X[::1000], X, rtol=2e-3, atol=1e-3)  # half precision


def test_features_are_extracted_to_where_the_data_set_is_found(monkeypatch):
    rows_of = {"labels": np.repeat(np.arange(10), 2), "image_shape": (3, 32, 32)}
    small = Dataset("cifar10", "full", pictures(20).reshape(20, -1), "", **rows_of)
    monkeypatch.setattr(networks, "pretrained", lambda name, layer: Tiny())
    monkeypatch.setattr(networks, "load", lambda name, profile: small)
    assert networks.extract_cifar10("alexnet", side=20, batch_size=8) == data_path("cifar10-alexnet")
    data = load("cifar10-alexnet", "full")
    assert data.layer == "alexnet pooled, 20 px" and data.labels.tolist() == small.labels.tolist()
    with pytest.raises(ValueError, match="another kind"):
        networks.extract_cifar10("alexnet", side=24)
