import numpy as np
import pytest
import torch

from biohash_mini import METHODS, average_precision
from biohash_mini.datasets import load, sources
from biohash_mini.datasets.networks import NETWORKS, preprocess
from biohash_mini.reproduction import results, scores
from biohash_mini.reproduction.declarations import EXPERIMENTS
from biohash_mini.reproduction.experiment import Trial
from biohash_mini.reproduction.measure import Outcome, measure
from biohash_mini.reproduction.paper import TABLES
from biohash_mini.reproduction.protocols import dark_features, deep_task, map_task, shadow
from biohash_mini.reproduction.settings import RIVALS
from biohash_mini.storage import save_arrays
from tests.library.datasets.pictures import Tiny, rows


@pytest.fixture(autouse=True)
def nothing_at_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("BIOHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BIOHASH_DATA", raising=False)


def test_tables_on_features_have_the_papers_methods_and_lengths():
    for network in NETWORKS:
        experiment, table = EXPERIMENTS[f"cifar10-{network}"], TABLES[f"cifar10-{network}"]
        cells = {(trial.row.label, trial.hash_length) for trial in experiment.trials()}
        ours = set(METHODS) - RIVALS - {"BioConvHash"} | ({"GreedyHash"} if network == "vgg16" else set())
        ours |= {"BioHash, started on data"}
        assert cells == {(method, k) for method in ours for k in table.hash_lengths} - {("BioHash", 64)}


def test_a_cell_on_features_says_what_was_hashed_and_what_no_hash_would_give():
    experiment = EXPERIMENTS["cifar10-alexnet"]
    for method, k in (("LSH", 4), ("BioHash", 2)):
        record = measure(experiment, Trial(experiment.row(method), k, 0), "mini")
        assert record["layer"] == "alexnet pooled, 224 px"
        assert record["worst"] <= record["value"] < record["no_hash"] < 100
    assert record["params"]["activity"] == 0.005 and record["n_units"] == 400


def test_kinds_of_a_map_are_rotations_of_it_and_scaled_to_variance_one_when_whitened():
    whole, turned, white = (map_task("cifar10-alexnet", "mini", 0, "pool5", whiten) for whiten in (None, False, True))
    want = whole.database - whole.database.mean(0)
    np.testing.assert_allclose((turned.database[:50] ** 2).sum(1), (want[:50] ** 2).sum(1), rtol=1e-3)
    np.testing.assert_allclose(white.database.std(0, ddof=1), 1, atol=2e-2)
    assert white.train is white.database and len(white.queries) == len(whole.queries) == 1000


def test_what_is_made_of_a_map_is_scored_on_the_validation_split():
    experiment = EXPERIMENTS["map-kinds-alexnet"]
    record = measure(experiment, Trial(experiment.row("pooled, whitened"), 2, 0), "mini")
    assert record["worst"] <= record["value"] < record["no_hash"] < 100 and record["params"]["activity"] == 0.005
    save_arrays(sources.cache_path("cifar10-alexnet-pooled"), rows(), network="alexnet", layer="pooled", side=64)
    with pytest.raises(ValueError, match="pool5 is needed, and there is alexnet pooled, 64 px"):
        map_task("cifar10-alexnet", "full", 0, "pool5")


def test_tables_hash_components_of_a_map_that_was_not_pooled_and_say_so():
    rng = np.random.default_rng(0)
    maps = rng.random((10_200, 4)) @ rng.random((4, 2304))  # of four positions, of rank four
    arrays = {"X": maps.astype(np.float16), "labels": np.arange(10_200) % 10}
    save_arrays(sources.cache_path("cifar10-alexnet-pool5"), arrays, network="alexnet", layer="pool5", side=95)
    task = deep_task("cifar10-alexnet", "full", 0, rank=4)
    whole = load("cifar10-alexnet", "full", pool=False).retrieval_task(seed=0)
    want = np.linalg.norm(whole.queries[0] - whole.queries[1:20], axis=1)
    np.testing.assert_allclose(np.linalg.norm(task.queries[0] - task.queries[1:20], axis=1), want, rtol=1e-2)
    experiment = EXPERIMENTS["cifar10-alexnet"]
    found = Outcome(experiment.row("LSH"), 2, 0, "cifar10-alexnet", "full", task, *[None] * 5)
    assert scores.layer(found, pool=False) == {"layer": "alexnet pool5, 4 components, 95 px"}


def test_tables_want_more_than_a_pooled_map():
    save_arrays(sources.cache_path("cifar10-vgg16-pooled"), rows(), network="vgg16", layer="pooled", side=64)
    with pytest.raises(ValueError, match="fc7 or pool5 is needed, and there is vgg16 pooled, 64 px"):
        deep_task("cifar10-vgg16", "full", 0)


def test_queries_in_shadow_are_seen_as_the_others_were(monkeypatch):
    monkeypatch.setattr("biohash_mini.reproduction.protocols.pretrained", lambda name, layer: Tiny())
    about = {"network": "vgg16", "layer": "pooled", "side": 20, "batch_size": 200}
    save_arrays(sources.cache_path("cifar10-vgg16-pooled"), rows(), **about)
    got = dark_features("cifar10-vgg16", "mini", 0)
    queries = load("cifar10").retrieval_task(seed=0).queries.reshape(-1, 3, 32, 32)
    dark = np.rint(255 * shadow(queries)).astype(np.uint8)
    with torch.inference_mode():
        want = Tiny()(preprocess(torch.from_numpy(dark), 20))
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)  # half precision
    assert sources.cache_path("cifar10-vgg16-pooled-shadows-0-mini").exists()


def test_no_hash_is_the_ranking_by_cosine():
    task = load("cifar10-alexnet").retrieval_task(seed=0)
    Q, X = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (task.queries, task.database))
    relevant = task.query_labels[:, None] == task.database_labels
    want = 100 * average_precision(-(Q @ X.T), relevant, at=1000).mean()
    experiment = EXPERIMENTS["cifar10-alexnet"]
    record = measure(experiment, Trial(experiment.row("LSH"), 2, 0), "mini")
    assert record["no_hash"] == pytest.approx(want, abs=0.01)


def test_titles_say_whether_the_recorded_features_are_the_papers():
    for network in NETWORKS:
        layers = {r["layer"] for r in results.read(f"cifar10-{network}") if r["profile"] == "full"}
        title = EXPERIMENTS[f"cifar10-{network}"].title
        assert all(("fc7" in layer) != ("not like for like" in title) for layer in layers), (title, layers)
