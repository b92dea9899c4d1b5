"""Training and encoding beside their floor, the bare matrix products, beside other learners, and by threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from operator import mul
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize

from ...codes import Codes, SparseCodes
from ...datasets import Task
from ...hashers import BioConvHash, BioHash, GreedyHash, SOLHash
from ...hashers.convolution.maps import sample_patches, unit_patches
from ...metrics import mean_average_precision
from ...plasticity import energy, train
from .. import growth
from ..protocols import validation_task
from . import process

LAYERS = [(2, 40), (16, 320), (32, 640), (16, 3200)]  # k, m
LENGTHS = (2, 8, 32)
ACTIVITY = 0.05
_BATCH = 100


def _forget(results: Iterator[Any]) -> None:
    """Compute one result after the other and keep none: new memory for each would cost more than some products."""
    deque(results, maxlen=0)


def seconds_of(who: str, k: int, m: int, quick: bool) -> dict[str, float]:
    r"""Return the seconds of a pass of training and of encoding, ours or the products that neither can do without.

    .. math:: S = X W^\top \text{ for every minibatch, and for all rows}
    """
    X = torch.from_numpy(validation_task("mnist", "mini", 0).database[: 1000 if quick else 10_000])
    hasher = BioHash(k, activity=k / m, max_epochs=1).fit(X[: max(m, 1000)])
    centred, W = X - hasher.mean_, hasher.weights_

    def learn() -> None:
        rng = torch.Generator().manual_seed(0)
        train(centred, W, reduction="implicit", learning_rate=1e-3, max_epochs=1, norm_tol=0, smooth=True, rng=rng)

    def products(size: int) -> Callable[[], Any]:
        return lambda: _forget(rows @ W.T for rows in centred.split(size))

    ours = {"training": learn, "encoding": lambda: hasher.encode(X)}
    calls = ours if who == "ours" else {"training": products(_BATCH), "encoding": products(4096)}
    return {name: process.best_seconds(call, 1 if quick else 7) for name, call in calls.items()}


def floors(quick: bool, threads: int) -> Iterator[dict]:
    """Yield the rows of training and encoding beside the bare products."""
    n = 1000 if quick else 10_000
    for k, m in LAYERS[:1] if quick else LAYERS:
        arguments = {"k": k, "m": m, "quick": quick}
        found = {
            who: process.apart(__name__, "seconds_of", threads, who=who, **arguments) for who in ("ours", "products")
        }
        for call, slower in (("training", 3.0 if m < 320 else 1.5), ("encoding", 1.3)):
            seconds = {who: found[who][call] for who in found}
            about = {"what": f"{call}, floor", "n": n, "k": k, "m": m, "call": "a pass"}
            yield {**about, "target": 1 / slower, "took": seconds}


def stages_of(who: str, k: int, images: int, patches: int) -> dict[str, float]:
    r"""Return the seconds of each stage of BioConvHash on digits, ours or the products of it in float32.

    .. math:: \text{filters: } X W^\top \text{ of patches}, \qquad \text{features: of all patches of all images},
              \qquad \text{layer, codes: } f W^\top \text{ of all features, zeros too}
    """
    X = validation_task("mnist", "mini", 0).database[:images]
    hasher = BioConvHash(k, image_shape=(1, 28, 28), n_patches=patches, filter_epochs=1, max_epochs=1)
    hasher.fit_features(X)
    features = hasher.features(X)
    hasher.fit_layer(features)
    calls: dict[str, Callable[[], Any]] = {
        "filters": lambda: hasher.fit_features(X),
        "features": lambda: hasher.features(X),
        "layer": lambda: hasher.fit_layer(features),
        "codes": lambda: hasher.encode_features(features, [k]),
    }
    if who == "products":
        pictures, rng = torch.from_numpy(X).reshape(-1, 1, 28, 28), torch.Generator().manual_seed(0)
        filters = [(size, hasher.filters(size)) for size in hasher.kernel_sizes]
        seen = [(sample_patches(pictures, size, patches, True, rng), W) for size, W in filters]
        every = [(list(unit_patches(pictures, size).split(2)), W) for size, W in filters]
        f = features.float() * hasher.scale_ - hasher.mean_
        calls = {
            "filters": lambda: _forget(rows @ W.T for P, W in seen for rows in P.split(_BATCH)),
            "features": lambda: _forget(P @ W.T for parts, W in every for P in parts),
            "layer": lambda: _forget(rows @ hasher.weights_.T for rows in f.split(_BATCH)),
            "codes": lambda: _forget(rows @ hasher.weights_.T for rows in f.split(256)),
        }
    return {name: process.best_seconds(call, 1 if images < 100 else 3) for name, call in calls.items()}


def _gflop(k: int, images: int, patches: int) -> dict[str, float]:
    """Return the billions of operations of the products of each stage of BioConvHash on digits."""
    inputs, positions, filters = (9, 16), (26**2, 25**2), 500  # of each kernel size
    layer = 2 * 100 * filters * round(k / ACTIVITY)  # of an image, with 100 pools of each size
    features = filters * sum(map(mul, inputs, positions))
    counts = {"filters": patches * filters * sum(inputs), "features": images * features}
    counts |= {"layer": images * layer, "codes": images * layer}
    return {name: 2e-9 * n for name, n in counts.items()}


def convolution(quick: bool, threads: int) -> Iterator[dict]:
    """Yield the rows of BioConvHash's stages beside the products that each would take if no number were zero."""
    images, patches = (40, 500) if quick else (3000, 100_000)
    for k in LENGTHS[:1] if quick else (2, 16):
        arguments = {"k": k, "images": images, "patches": patches}
        found = {
            who: process.apart(__name__, "stages_of", threads, who=who, **arguments) for who in ("ours", "products")
        }
        for stage, gflop in _gflop(k, images, patches).items():
            about = {"what": "BioConvHash", "n": images, "k": k, "m": round(k / ACTIVITY), "call": stage}
            seconds = {who: found[who][stage] for who in found}
            yield {**about, "target": None, "gflop": gflop, "took": seconds}


def by_threads(quick: bool, threads: int) -> Iterator[dict]:
    """Yield the rows of training, encoding and search with all threads beside one: the ratio is the speed-up."""
    size = growth.Size(200, 16, 600, 4) if quick else growth.BASE
    ours, alone = (growth.Cost(*process.apart(growth.__name__, "clocked", t, size=[*size])) for t in (threads, 1))
    for name in ("training", "encoding", "search"):
        about = {"what": f"threads, {name}", "n": size.n, "k": size.k, "m": size.m, "call": f"{threads} of them"}
        yield {**about, "target": 1.0, "took": {"ours": getattr(ours, name), "one thread": getattr(alone, name)}}


@cache
def _task(quick: bool) -> Task:
    return validation_task("mnist", "mini" if quick else "full", 0)


def _layer(W: np.ndarray, task: Task, k: int) -> tuple[Codes, Codes, float]:
    """Return the codes of queries and database by units W (m, d), and the energy of the units on the training rows."""
    mean, units = torch.from_numpy(task.train.mean(0)), torch.from_numpy(W)
    queries, database = (
        SparseCodes.top_k((torch.from_numpy(X) - mean) @ units.T, k) for X in (task.queries, task.database)
    )
    return queries, database, energy(torch.from_numpy(task.train) - mean, units).item()


def _by_faiss(kind: str) -> Callable[[np.ndarray, int, int], np.ndarray]:
    """Return a spherical k-means of faiss: centred rows, units, iterations -> centroids of norm one."""

    def learn(X: np.ndarray, m: int, effort: int) -> np.ndarray:
        import faiss

        all_rows = {"max_points_per_centroid": len(X)}
        found = getattr(faiss, kind)(X.shape[1], m, niter=effort, spherical=True, seed=1, **all_rows)
        found.train(X)
        return normalize(found.centroids)

    return learn


def _by_minibatches(X: np.ndarray, m: int, effort: int) -> np.ndarray:
    """Return the centroids of scikit-learn's k-means by minibatches, on rows of norm one, after so many passes."""
    rule = MiniBatchKMeans(m, max_iter=effort, batch_size=1024, n_init=1, max_no_improvement=None, random_state=0)
    return normalize(rule.fit(normalize(X)).cluster_centers_).astype(np.float32)


KMEANS = {"faiss Kmeans": _by_faiss("Kmeans"), "faiss SuperKmeans": _by_faiss("SuperKmeans")}
KMEANS["MiniBatchKMeans"] = _by_minibatches
DEEP = {"GreedyHash": (GreedyHash, "max_epochs"), "SOLHash": (SOLHash, "n_steps")}
EFFORTS = (1, 2, 4, 8, 16, 32)  # passes, iterations or steps, until both goals are met


def efforts_of(who: str, k: int, quick: bool, goals: dict[str, float]) -> list[dict[str, float]]:
    """Return what a learner comes to with more and more effort: seconds, energy, mAP in percent; until the goals."""
    task, m = _task(quick), round(k / ACTIVITY)
    trials: list[dict[str, float]] = []
    for effort in (0, 0) if who == "ours" else (1, *EFFORTS[: 2 if quick else None]):  # the first one warms up
        start = perf_counter()
        if who in KMEANS:
            W = KMEANS[who](task.train - task.train.mean(0), m, effort)
            seconds = perf_counter() - start
            queries, database, reached = _layer(W, task, k)
        else:
            kind, name = DEEP.get(who, (BioHash, ""))
            hasher = kind(k, **{name: effort} if name else {"activity": ACTIVITY}).fit(task.train)
            seconds, reached = perf_counter() - start, None
            queries, database = hasher.encode(task.queries), hasher.encode(task.database)
            if who == "ours":
                reached = _layer(hasher.weights_.numpy(), task, k)[2]
        score = 100 * mean_average_precision(queries, database, task.query_labels, task.database_labels)
        trials.append({"effort": effort, "seconds": seconds, "energy": reached, "map": score})
        done = (reached is None or reached <= goals.get("energy", -np.inf)) and score >= goals.get("map", np.inf)
        if len(trials) > 1 and done:
            break
    return trials[1:]


def race(quick: bool, threads: int) -> Iterator[dict]:
    """Yield the rows of training on MNIST to the energy, and to the mAP, that BioHash comes to by its default.

    A learner that does not get there with 32 passes is given the seconds of those, which are too few.
    """
    for k in LENGTHS[:1] if quick else LENGTHS:
        (ours,) = process.apart(__name__, "efforts_of", threads, who="ours", k=k, quick=quick, goals={})
        goals = {"energy": ours["energy"], "map": ours["map"]}
        peers = [who for who in (*KMEANS, *DEEP) if "faiss" not in who or find_spec("faiss")]
        trials = {
            who: process.apart(__name__, "efforts_of", threads, who=who, k=k, quick=quick, goals=goals) for who in peers
        }
        for goal, sign in (("energy", 1), ("map", -1)):
            seconds, short = {"ours": ours["seconds"]}, []
            for who in peers:
                if trials[who][0][goal] is None:
                    continue
                there = [t for t in trials[who] if sign * t[goal] <= sign * goals[goal]]
                short += [] if there else [who]
                seconds[who] = (there[0] if there else trials[who][-1])["seconds"]
            about = {"what": f"training to equal {goal}", "n": len(_task(quick).train), "k": k}
            about |= {"m": round(k / ACTIVITY), "call": f"{goals[goal]:.2f}", "target": 1.0, "took": seconds}
            yield {**about, "not reached": short, "trials": {"ours": [ours], **trials}}
