import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from biohash_mini import average_precision, datasets, features, results
from biohash_mini.cli import main
from biohash_mini.data import sources
from biohash_mini.datasets import load
from biohash_mini.experiments import EXPERIMENTS
from biohash_mini.features import MEAN, NETWORKS, STD, build, extract, preprocess
from biohash_mini.images import dark_features, kind_task, shadow
from biohash_mini.measures import METHODS, Cell
from biohash_mini.paper import TABLES
from biohash_mini.storage import digest, load_arrays, save_arrays

WEIGHTS = os.environ.get("BIOHASH_DATA", "")  # before the fixture hides it


@pytest.fixture(autouse=True)
def nothing_at_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("BIOHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BIOHASH_DATA", raising=False)


def pictures(n=6, height=32, width=32, seed=0):
    rng = np.random.default_rng(seed)
    coarse = torch.from_numpy(rng.uniform(0, 255, (n, 3, 5, 5)))
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 255)
    return smooth.round().to(torch.uint8).numpy()


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
        features.pretrained("alexnet", "pooled")
    monkeypatch.setitem(features.CONVOLUTIONS, "alexnet", digest({k: v.numpy() for k, v in state.items()}))
    loaded = features.pretrained("alexnet", "pooled").state_dict()
    assert loaded.keys() == state.keys() and all(torch.equal(loaded[key], state[key]) for key in state)


def test_the_canonical_file_serves_every_layer_and_another_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BIOHASH_DATA", str(tmp_path))
    state = build("alexnet", "pooled").state_dict()
    file = tmp_path / features.CANONICAL["alexnet"][0]
    torch.save(state | {"classifier.6.weight": torch.zeros(3, 2)}, file)
    with pytest.raises(ValueError, match="not the published file"):
        features.pretrained("alexnet", "pooled")
    monkeypatch.setitem(features.CANONICAL, "alexnet", (file.name, features.pooch.file_hash(str(file))[:8]))
    loaded = features.pretrained("alexnet", "pooled").state_dict()
    assert loaded.keys() == state.keys() and all(torch.equal(loaded[key], state[key]) for key in state)
    save_file(state, tmp_path / "alexnet_features_imagenet.safetensors")
    assert "classifier.6.weight" in features.weights("alexnet", "fc7")  # the convolutions alone would not do


def test_canonical_weights_are_downloaded_where_they_are_published(tmp_path, monkeypatch):
    asked = []

    def retrieve(url, known_hash, fname, path, downloader):
        asked.append(url)
        (path / fname).parent.mkdir(parents=True)
        torch.save(build("alexnet", "pooled").state_dict(), path / fname)
        return str(path / fname)

    monkeypatch.setattr(features.pooch, "retrieve", retrieve)
    with pytest.raises(ValueError, match="7be5be79"):  # what arrives is checked
        features.canonical_weights("alexnet")
    assert asked == ["https://download.pytorch.org/models/alexnet-owt-7be5be79.pth"]
    for file, sha256 in features.CANONICAL.values():
        assert file.removesuffix(".pth").endswith(sha256[:8])  # torchvision names a file by its checksum


# --- extraction


class Tiny(torch.nn.Sequential):
    def __init__(self):
        torch.manual_seed(0)
        super().__init__(torch.nn.Conv2d(3, 4, 5, stride=3), torch.nn.ReLU(), torch.nn.Flatten())
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


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
from tests.test_features import extract, killed_network, pictures
network = killed_network()
network.register_forward_hook(lambda *args: time.sleep(0.3))
extract(pictures(12), network, sys.argv[1], side=63, batch_size=2, device="cpu")
"""


def killed_network():
    torch.manual_seed(0)
    return build("alexnet", "pooled")


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


# --- the data sets


def rows(n=40, d=5):
    X = np.random.default_rng(0).random((n, d)).astype(np.float16)
    return {"X": X, "labels": np.repeat(np.arange(10, dtype=np.uint8), n // 10)}


def test_fc7_is_preferred_to_the_convolutions_and_both_say_what_they_are(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="`biohash features alexnet`"):
        load("cifar10-alexnet", "full")
    for layer in ("pooled", "fc7"):
        about = {"network": "alexnet", "layer": layer, "side": 112}
        save_arrays(sources.cache_path(f"cifar10-alexnet-{layer}"), rows(), **about)
        data = load("cifar10-alexnet", "full")
        assert data.layer == f"alexnet {layer}, 112 px" and data.sha256 == digest(rows())
        assert datasets.fetch("cifar10-alexnet") == datasets.data_path("cifar10-alexnet")
        assert datasets.verify("cifar10-alexnet") == data.sha256
    monkeypatch.setenv("BIOHASH_DATA", str(tmp_path / "given"))
    save_arrays(tmp_path / "given" / "cifar10-alexnet-pooled.safetensors", rows(), **about | {"side": 64})
    assert load("cifar10-alexnet", "full").layer.endswith("64 px")  # the given folder comes first


def test_maps_are_pooled_when_only_they_were_extracted():
    maps = np.random.default_rng(0).random((40, 256, 4)).astype(np.float16)
    about = {"network": "alexnet", "layer": "pool5", "side": 95}
    arrays = {**rows(), "X": maps.reshape(40, -1)}
    save_arrays(sources.cache_path("cifar10-alexnet-pool5"), arrays, **about)
    pooled, flat = load("cifar10-alexnet", "full"), load("cifar10-alexnet", "full", pool=False)
    np.testing.assert_allclose(pooled.X, maps.astype(np.float32).mean(2), rtol=1e-3)
    np.testing.assert_array_equal(flat.X, arrays["X"])
    assert (pooled.layer, flat.layer) == ("alexnet pooled, 95 px", "alexnet pool5, 95 px")
    assert pooled.sha256 == flat.sha256 == digest(arrays)


def test_damaged_features_are_refused_rather_than_replaced_by_others():
    about = {"network": "alexnet", "layer": "pooled", "side": 224}
    save_arrays(sources.cache_path("cifar10-alexnet-pooled"), rows(), **about)
    sources.cache_path("cifar10-alexnet-fc7").write_bytes(b"half a file")
    for function in (lambda name: load(name, "full"), datasets.verify):
        with pytest.raises(ValueError, match="truncated"):
            function("cifar10-alexnet")


@pytest.mark.parametrize("network", NETWORKS)
def test_the_sample_of_features_has_the_rows_of_the_sample_of_images(network):
    data, images = load(f"cifar10-{network}"), load("cifar10")
    assert data.X.shape == (3_000, 256) and data.X.dtype == np.float16 and data.layer == "alexnet pooled, 224 px"
    np.testing.assert_array_equal(data.labels, images.labels)
    assert digest({"X": data.X, "labels": data.labels}) == data.sha256
    task, pixels = data.retrieval_task(seed=0), images.retrieval_task(seed=0)
    np.testing.assert_array_equal(task.query_ids, pixels.query_ids)  # so that pictures can be shown
    assert task.image_shape is None and len(task.database) == 2_500


def test_the_sample_of_features_is_what_the_network_gives(monkeypatch):
    monkeypatch.setenv("BIOHASH_DATA", WEIGHTS)
    if not WEIGHTS or not list(Path(WEIGHTS).glob("alexnet*")):
        pytest.skip("AlexNet's weights are not on this machine; name their folder in BIOHASH_DATA")
    network = features.pretrained("alexnet", "pooled")
    images = torch.from_numpy(load("cifar10").X[::1000].reshape(-1, 3, 32, 32))
    with torch.inference_mode():
        X = network(preprocess(images))
    np.testing.assert_allclose(load("cifar10-alexnet").X[::1000], X, rtol=2e-3, atol=1e-3)  # half precision


def test_full_features_take_the_queries_of_the_paper(monkeypatch):
    about = {"network": "vgg16", "layer": "pooled", "side": 112}
    save_arrays(sources.cache_path("cifar10-vgg16-pooled"), rows(11_000, 2), **about)
    task = load("cifar10-vgg16", "full").retrieval_task()
    assert (len(task.queries), len(task.database)) == (10_000, 1_000)


def test_the_command_extracts_to_where_the_data_set_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(features, "pretrained", lambda name, layer: Tiny())
    monkeypatch.setattr(features, "load", lambda name, profile: small)
    rows_of = {"labels": np.repeat(np.arange(10), 2), "image_shape": (3, 32, 32)}
    small = datasets.Dataset("cifar10", "full", pictures(20).reshape(20, -1), "", **rows_of)
    assert main(["features", "alexnet", "--side", "20", "--batch-size", "8"]) == 0
    assert capsys.readouterr().out.strip() == str(datasets.data_path("cifar10-alexnet"))
    assert load("cifar10-alexnet", "full").layer == "alexnet pooled, 20 px"
    assert main(["features", "alexnet", "--side", "24"]) == 2  # never over features of another kind
    assert main(["data", "path", "cifar10-vgg16"]) == 2 and "biohash features vgg16" in capsys.readouterr().err


# --- the experiments


def test_tables_on_features_have_the_papers_methods_and_lengths():
    for network in NETWORKS:
        experiment, table = EXPERIMENTS[f"cifar10-{network}"], TABLES[f"cifar10-{network}"]
        cells = {(cell.method, cell.hash_length) for cell in experiment.cells()}
        ours = {*METHODS, *experiment.also} - {"BioConvHash"}
        assert cells == {(method, k) for method in ours for k in table.hash_lengths}


def test_a_cell_on_features_says_what_was_hashed_and_what_no_hash_would_give():
    experiment = EXPERIMENTS["cifar10-alexnet"]
    for method, k in (("LSH", 4), ("BioHash", 2)):
        record = experiment.measure(experiment, Cell(method, k, 0), "mini")[method]
        assert record["layer"] == "alexnet pooled, 224 px"
        assert record["worst"] <= record["value"] < record["no_hash"] < 100
    assert record["params"]["activity"] == 0.005 and record["n_units"] == 400


def test_kinds_of_a_map_are_rotations_of_it_and_scaled_to_variance_one_when_whitened():
    whole, turned, white = (
        kind_task("cifar10-alexnet", "mini", 0, kind) for kind in ("pool5", "pool5, components", "pool5, whitened")
    )
    want = whole.database - whole.database.mean(0)
    np.testing.assert_allclose((turned.database[:50] ** 2).sum(1), (want[:50] ** 2).sum(1), rtol=1e-3)
    np.testing.assert_allclose(white.database.std(0, ddof=1), 1, atol=2e-2)
    assert white.train is white.database and len(white.queries) == len(whole.queries) == 1000


def test_what_is_made_of_a_map_is_scored_on_the_validation_split():
    experiment = EXPERIMENTS["map-kinds-alexnet"]
    record = experiment.measure(experiment, Cell("pooled, whitened", 2, 0), "mini")["pooled, whitened"]
    assert record["worst"] <= record["value"] < record["no_hash"] < 100 and record["params"]["activity"] == 0.005
    save_arrays(sources.cache_path("cifar10-alexnet-pooled"), rows(), network="alexnet", layer="pooled", side=64)
    with pytest.raises(ValueError, match="'pool5' needs pool5, and there is alexnet pooled, 64 px"):
        kind_task("cifar10-alexnet", "full", 0, "pool5")


def test_queries_in_shadow_are_seen_as_the_others_were(monkeypatch):
    monkeypatch.setattr("biohash_mini.images.pretrained", lambda name, layer: Tiny())
    about = {"network": "vgg16", "layer": "pooled", "side": 20, "batch_size": 200}
    save_arrays(sources.cache_path("cifar10-vgg16-pooled"), rows(), **about)
    got = dark_features("cifar10-vgg16", "mini", 0)
    queries = load("cifar10").retrieval_task(seed=0).queries.reshape(-1, 3, 32, 32)
    dark = np.rint(255 * shadow(queries)).astype(np.uint8)
    with torch.inference_mode():
        want = Tiny()(preprocess(torch.from_numpy(dark), 20))
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)  # half precision
    assert sources.cache_path("cifar10-vgg16-pooled-shadows-0").exists()


def test_no_hash_is_the_ranking_by_cosine():
    task = load("cifar10-alexnet").retrieval_task(seed=0)
    Q, X = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (task.queries, task.database))
    relevant = task.query_labels[:, None] == task.database_labels
    want = 100 * average_precision(-(Q @ X.T), relevant, at=1000).mean()
    experiment = EXPERIMENTS["cifar10-alexnet"]
    record = experiment.measure(experiment, Cell("LSH", 2, 0), "mini")["LSH"]
    assert record["no_hash"] == pytest.approx(want, abs=0.01)


def test_titles_say_whether_the_recorded_features_are_the_papers():
    for network in NETWORKS:
        layers = {r["layer"] for r in results.read(f"cifar10-{network}") if r["profile"] == "full"}
        title = EXPERIMENTS[f"cifar10-{network}"].title
        assert all(("fc7" in layer) != ("not like for like" in title) for layer in layers), (title, layers)
